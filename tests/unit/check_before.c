// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/sflow/before.h"

#include "proto/packet.h"
#include "tests/unit/unit.h"

#define MAX 1024

/* That many sums that are as good as any. */
static uint64_t hash_of(uint64_t n)
{
    return n * UINT64_C(0x9E3779B97F4A7C15);
}

static void note(struct ft_before *b, uint64_t hash, uint32_t highest, int64_t last_ms)
{
    ft_before_note(b, hash,
                   &(struct ft_before_sum){.qp = 17,
                                           .highest = highest,
                                           .kind = FT_PSN_REQUEST,
                                           .last = {last_ms},
                                           .packets = 1000,
                                           .samples = 10,
                                           .interval_ms = 1000});
}

static bool find(const struct ft_before *b, uint64_t hash, int64_t now_ms, uint32_t *highest)
{
    return ft_before_find(b, hash, 17, FT_PSN_REQUEST, (struct ft_wall){now_ms}, highest);
}

START_TEST(a_sum_is_known_for_a_while)
{
    const int64_t at_ms = 1700000000000;
    struct ft_before *b = ft_before_new(MAX);
    uint32_t highest = 0;

    ck_assert(!find(b, hash_of(1), at_ms, &highest));
    note(b, hash_of(1), 100, at_ms);
    note(b, hash_of(2), 200, at_ms);
    note(b, hash_of(1), 300, at_ms + 1);
    ck_assert(find(b, hash_of(1), at_ms + 5000, &highest) && highest == 300);
    ck_assert(find(b, hash_of(2), at_ms + 5000, &highest) && highest == 200);
    ck_assert(!find(b, hash_of(2), at_ms + 5001, &highest));
    /* A clock that was set back. */
    ck_assert(!find(b, hash_of(2), at_ms - 1, &highest));
    ck_assert(
        !ft_before_find(b, hash_of(1), 18, FT_PSN_REQUEST, (struct ft_wall){at_ms + 1}, &highest));
    ck_assert(
        !ft_before_find(b, hash_of(1), 17, FT_PSN_RESPONSE, (struct ft_wall){at_ms + 1}, &highest));
    ck_assert_uint_eq(highest, 200);
    ft_before_free(b);
}
END_TEST

/* 4,194,304 packets: 18 samples' worth a second. */
START_TEST(a_fast_sum_is_known_as_long_as_its_numbers_last)
{
    struct ft_before *b = ft_before_new(MAX);
    struct ft_before_sum sum = {.qp = 17,
                                .highest = 100,
                                .kind = FT_PSN_REQUEST,
                                .packets = 10 << 20,
                                .samples = 10,
                                .interval_ms = 1000};
    uint32_t highest;

    ft_before_note(b, hash_of(1), &sum);
    ck_assert(find(b, hash_of(1), 220, &highest));
    ck_assert(!find(b, hash_of(1), 223, &highest));
    ft_before_free(b);
}
END_TEST

static size_t known(const struct ft_before *b, uint64_t from, uint64_t to)
{
    size_t count = 0;

    for (uint64_t n = from; n < to; n++) {
        uint32_t highest;

        if (find(b, hash_of(n), 1000, &highest)) {
            ck_assert_uint_eq(highest, n);
            count++;
        }
    }
    return count;
}

/* As many as it has room for are known but for what shares a place by chance, and of too many the
 * newest are. */
START_TEST(the_oldest_are_forgotten)
{
    struct ft_before *b = ft_before_new(MAX);

    ck_assert_uint_lt(ft_before_bytes(b), MAX * 16);
    ft_before_expect(b, 10 * (size_t)MAX);
    ck_assert_uint_eq(ft_before_bytes(b), MAX * 16);
    for (uint64_t n = 1; n <= MAX / 2; n++)
        note(b, hash_of(n), (uint32_t)n, 1);
    ck_assert_uint_ge(known(b, 1, MAX / 2 + 1), MAX / 2 * 9 / 10);
    for (uint64_t n = MAX; n < 3 * (uint64_t)MAX; n++)
        note(b, hash_of(n), (uint32_t)n, 2 + (int64_t)(n / MAX));
    ck_assert_uint_eq(known(b, 1, MAX / 2 + 1), 0);
    ck_assert_uint_ge(known(b, 2 * (uint64_t)MAX, 3 * (uint64_t)MAX), MAX * 7 / 10);
    ft_before_free(b);
}
END_TEST

FT_UNIT_MAIN("before", a_sum_is_known_for_a_while, a_fast_sum_is_known_as_long_as_its_numbers_last,
             the_oldest_are_forgotten)
