// SPDX-License-Identifier: Apache-2.0
/*
 * A program's memory, shared out: whatever is set, fixed or asked for at least, what may be taken
 * is never more than the budget, and none takes more or less than it may.
 */
#include "config.h"

#include "lib/config/budget.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/unit.h"

#define MIB      (UINT64_C(1) << 20)
#define PROGRAMS 20000

START_TEST(the_rest_goes_by_weight)
{
    uint64_t flows = 0, events = 7, ring = 0, needed = 0;
    const char *culprit = NULL;
    struct ft_share shares[] = {
        {.what = "the program", .bytes = 10 * MIB},
        {.what = "flows", .key = "flows_max", .cap = &flows, .each_bytes = 1000, .weight = 3},
        {.what = "events", .key = "events_max", .cap = &events, .each_bytes = 100, .is_set = true},
        {.what = "ring",
         .key = "ring_max",
         .cap = &ring,
         .each_bytes = 1,
         .weight = 1,
         .in_bytes = true},
    };

    ck_assert_int_eq(ft_budget_share(shares, 4, 50 * MIB + 700, &culprit, &needed), 0);
    /* 40 MiB are left: 30 for flows, two digits of 31457, and 10 in full MiB for the ring. */
    ck_assert_uint_eq(flows, 31000);
    ck_assert_uint_eq(ring, 10 * MIB);
    ck_assert_uint_eq(events, 7);
    ck_assert_uint_eq(shares[0].bytes, 10 * MIB);
    ck_assert_uint_eq(shares[1].bytes, 31000000);
    ck_assert_uint_eq(shares[2].bytes, 700);
    ck_assert_uint_eq(shares[3].bytes, 10 * MIB);
    /* A reload keeps what runs. */
    shares[1].kept = true;
    ck_assert_int_eq(ft_budget_share(shares, 4, 100 * MIB, &culprit, &needed), 0);
    ck_assert_uint_eq(flows, 31000);
    ck_assert_uint_eq(ring, 60 * MIB);
}
END_TEST

START_TEST(what_is_needed_does_not_fit)
{
    uint64_t flows = 5, small = 900, large = 2000, needed = 0;
    const char *culprit = NULL;
    struct ft_share shares[] = {
        {.what = "flows", .key = "flows_max", .cap = &flows, .each_bytes = 10, .least = 50},
        {.what = "small", .key = "small_max", .cap = &small, .each_bytes = 1, .is_set = true},
        {.what = "large", .key = "large_max", .cap = &large, .each_bytes = 1, .is_set = true},
    };

    ck_assert_int_eq(ft_budget_share(shares, 3, 3399, &culprit, &needed), -EINVAL);
    ck_assert_str_eq(culprit, "large_max");
    ck_assert_uint_eq(needed, 3400);
    ck_assert_uint_eq(flows, 5);
    shares[0].weight = 1;
    ck_assert_int_eq(ft_budget_share(shares, 3, 3400, &culprit, &needed), 0);
    ck_assert_uint_eq(flows, 50);
    /* Nothing was set: the budget itself is too small. */
    ck_assert_int_eq(ft_budget_share(shares, 1, 499, &culprit, &needed), -EINVAL);
    ck_assert_str_eq(culprit, "memory_max");
    ck_assert_uint_eq(needed, 500);
}
END_TEST

static uint64_t state = 1;

static uint64_t below(uint64_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % n;
}

static void draw(struct ft_share *s, uint64_t *cap)
{
    static const double each[] = {1, 8, 48, 444, 2200, 98304};

    *s = (struct ft_share){.what = "thing", .key = "thing_max"};
    *cap = below(100000);
    if (below(8) == 0) {
        s->bytes = below(100 * MIB);
        return;
    }
    s->cap = cap;
    s->each_bytes = each[below(sizeof(each) / sizeof(each[0]))];
    s->in_bytes = s->each_bytes == 1 && below(2);
    s->weight = (double)(1 + below(50));
    s->least = below(2) ? below(1000) : 0;
    s->most = below(3) == 0 ? s->least + below(100000) : 0;
    s->is_set = below(6) == 0;
    s->kept = !s->is_set && below(8) == 0;
}

/* Of any program: the sum of caps times what one costs is within the budget, or it was refused with
 * what is needed at least. */
START_TEST(no_program_takes_more_than_it_is_given)
{
    uint64_t refused = 0;

    for (unsigned i = 0; i < PROGRAMS; i++) {
        struct ft_share shares[FT_SHARES_MAX];
        uint64_t caps[FT_SHARES_MAX], before[FT_SHARES_MAX], needed = 0;
        uint64_t budget = below(2) ? below(100 * MIB) : below(4096 * MIB);
        size_t count = 1 + below(FT_SHARES_MAX);
        const char *culprit = NULL;
        double least = 0, sum = 0;
        int rc;

        for (size_t k = 0; k < count; k++) {
            const struct ft_share *s = &shares[k];

            draw(&shares[k], &caps[k]);
            before[k] = caps[k];
            least += !s->cap ? (double)s->bytes
                             : s->each_bytes * (double)(s->is_set || s->kept ? caps[k] : s->least);
        }
        rc = ft_budget_share(shares, count, budget, &culprit, &needed);
        ck_assert_msg((rc == 0) == (least <= (double)budget), "program %u: %d", i, rc);
        refused += rc != 0;
        for (size_t k = 0; k < count && rc == 0; k++) {
            const struct ft_share *s = &shares[k];

            sum += s->cap ? s->each_bytes * (double)caps[k] : (double)s->bytes;
            if (!s->cap || s->is_set || s->kept) {
                ck_assert_uint_eq(caps[k], before[k]);
                continue;
            }
            ck_assert_msg(caps[k] >= s->least && (!s->most || caps[k] <= s->most),
                          "program %u: share %zu is %llu", i, k, (unsigned long long)caps[k]);
        }
        ck_assert_msg(sum <= (double)budget, "program %u: %.0f of %llu", i, sum,
                      (unsigned long long)budget);
    }
    /* Both happened often. */
    ck_assert_uint_gt(refused, PROGRAMS / 20);
    ck_assert_uint_lt(refused, PROGRAMS - PROGRAMS / 20);
}
END_TEST

START_TEST(sizes_for_a_person)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } sizes[] = {{0, "0 B"},
                 {9, "9 B"},
                 {1023, "1023 B"},
                 {1024, "1.0 KiB"},
                 {10 * 1024, "10 KiB"},
                 {1536, "1.5 KiB"},
                 {3696 * MIB, "3.6 GiB"},
                 {UINT64_C(5) << 40, "5.0 TiB"},
                 {UINT64_C(5) << 50, "5120 TiB"}};
    char text[FT_BUDGET_TEXT_BYTES];

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        ft_budget_format(sizes[i].bytes, text);
        ck_assert_str_eq(text, sizes[i].text);
    }
}
END_TEST

FT_UNIT_MAIN("budget", the_rest_goes_by_weight, what_is_needed_does_not_fit,
             no_program_takes_more_than_it_is_given, sizes_for_a_person)
