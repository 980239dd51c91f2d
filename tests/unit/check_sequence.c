// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/sflow/sequence.h"

#include "tests/unit/unit.h"

static int64_t take_all(struct ft_sequence *s, const uint32_t *numbers, size_t count)
{
    int64_t gap = 0;

    for (size_t i = 0; i < count; i++)
        gap += ft_sequence_take(s, numbers[i]);
    return gap;
}

#define TAKE(s, ...)                                                                               \
    take_all(s, (const uint32_t[]){__VA_ARGS__},                                                   \
             sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

START_TEST(counts_what_is_skipped)
{
    struct ft_sequence s = {0};

    ck_assert_int_eq(TAKE(&s, 7, 8, 9, 12, 13, 20), 2 + 6);
    ck_assert_uint_eq(s.last, 20);
}
END_TEST

START_TEST(a_late_number_takes_its_gap_back_once)
{
    struct ft_sequence s = {0};

    ck_assert_int_eq(TAKE(&s, 1, 5), 3);
    ck_assert_int_eq(ft_sequence_look(&s, 3), FT_SEQUENCE_LATE);
    ck_assert_int_eq(ft_sequence_take(&s, 3), -1);
    ck_assert_int_eq(ft_sequence_look(&s, 3), FT_SEQUENCE_SEEN);
    ck_assert_int_eq(ft_sequence_take(&s, 3), 0);
    ck_assert_int_eq(TAKE(&s, 2, 4), -2);
    ck_assert_int_eq(s.missing, 0);
}
END_TEST

START_TEST(any_order_of_a_complete_run_has_no_gap)
{
    uint32_t numbers[64];
    struct ft_sequence s;

    for (unsigned seed = 0; seed < 200; seed++) {
        s = (struct ft_sequence){0};
        srandom(seed);
        for (uint32_t i = 0; i < 64; i++)
            numbers[i] = UINT32_MAX - 20 + i; /* over the wrap */
        /* The first stays first: what came before it was never counted. */
        for (uint32_t i = 63; i > 1; i--) {
            uint32_t other = 1 + (uint32_t)random() % i;
            uint32_t swap = numbers[i];

            numbers[i] = numbers[other];
            numbers[other] = swap;
        }
        ck_assert_msg(take_all(&s, numbers, 64) == 0, "seed %u", seed);
        ck_assert_uint_eq(s.missing, 0);
    }
}
END_TEST

START_TEST(tells_early_far_and_seen_apart)
{
    struct ft_sequence s = {0};

    ck_assert_int_eq(ft_sequence_look(&s, 12345), FT_SEQUENCE_AHEAD);
    TAKE(&s, 100, 101);
    ck_assert_int_eq(ft_sequence_look(&s, 101), FT_SEQUENCE_SEEN);
    ck_assert_int_eq(ft_sequence_look(&s, 100), FT_SEQUENCE_SEEN);
    ck_assert_int_eq(ft_sequence_look(&s, 99), FT_SEQUENCE_EARLY);
    ck_assert_int_eq(ft_sequence_look(&s, 101 - FT_SEQUENCE_WINDOW), FT_SEQUENCE_FAR);
    ck_assert_int_eq(ft_sequence_look(&s, 101 + FT_SEQUENCE_JUMP_MAX), FT_SEQUENCE_FAR);
    ck_assert_int_eq(ft_sequence_look(&s, 100 + FT_SEQUENCE_JUMP_MAX), FT_SEQUENCE_AHEAD);
    ck_assert_int_eq(TAKE(&s, 99, 30, 101 + FT_SEQUENCE_JUMP_MAX), 0);
    ck_assert_uint_eq(s.last, 101);
}
END_TEST

START_TEST(forgets_what_left_the_window)
{
    struct ft_sequence s = {0};

    ck_assert_int_eq(TAKE(&s, 1, 3, 3 + 63), 1 + 62);
    ck_assert_int_eq(ft_sequence_look(&s, 3), FT_SEQUENCE_SEEN);
    ck_assert_int_eq(ft_sequence_look(&s, 2), FT_SEQUENCE_FAR);
    ck_assert_int_eq(ft_sequence_look(&s, 4), FT_SEQUENCE_LATE);
    ck_assert_int_eq(ft_sequence_take(&s, 66 + 64), 63);
    ck_assert_int_eq(ft_sequence_look(&s, 66), FT_SEQUENCE_FAR);
    ck_assert_int_eq(ft_sequence_look(&s, 67), FT_SEQUENCE_LATE);
}
END_TEST

/* A datagram of anybody, or one that a switch wrote wrongly. */
START_TEST(a_stray_number_takes_back_what_it_skipped)
{
    struct ft_sequence s = {0};

    ck_assert_int_eq(TAKE(&s, 100, 101, 101 + 1000000, 102), 0);
    ck_assert_uint_eq(s.last, 102);
    ck_assert_int_eq(TAKE(&s, 103, 5000, 900000, 106), 2);
    /* Lost indeed: what follows vouches for it. */
    ck_assert_int_eq(TAKE(&s, 1106, 1107), 999);
    ck_assert_int_eq(ft_sequence_look(&s, 107), FT_SEQUENCE_FAR);
    /* A late one of many lost ones is only out of order. */
    ck_assert_int_eq(TAKE(&s, 3107, 1108), 0);
    ck_assert_int_eq(TAKE(&s, 3108), 3108 - 1108 - 1);
    ck_assert_int_eq(TAKE(&s, 3109), 0);
    /* Backwards, as a restart is told. */
    ft_sequence_restart(&s, 2000);
    ck_assert_int_eq(ft_sequence_look(&s, 3110), FT_SEQUENCE_BACK);
    ck_assert_int_eq(TAKE(&s, 3110), 0);
    ft_sequence_restart(&s, 2000);
    ck_assert_int_eq(TAKE(&s, 2001, 3111), 3111 - 2001 - 1);
}
END_TEST

FT_UNIT_MAIN("sequence", counts_what_is_skipped, a_late_number_takes_its_gap_back_once,
             any_order_of_a_complete_run_has_no_gap, tells_early_far_and_seen_apart,
             forgets_what_left_the_window, a_stray_number_takes_back_what_it_skipped)
