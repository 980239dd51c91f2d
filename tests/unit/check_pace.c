// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/sflow/pace.h"

#include "tests/unit/unit.h"

#define NS_PER_MS INT64_C(1000000)
#define TICK_MS   250

static struct ft_pace pace;
static int64_t now_ms;
static uint64_t waiting = 1000;

static void begin(uint32_t base_ms, uint32_t most_ms)
{
    now_ms = 1000000;
    ft_pace_begin(&pace, base_ms, most_ms, (struct ft_mono){now_ms * NS_PER_MS});
}

/* Ticks until the interval is `wanted`, with records that wait for so long, at most `limit_ms`.
 * Returns after how long it was; -1: it never was. */
static int64_t until(uint32_t wanted_ms, int64_t waits_ms, bool crowded, int64_t limit_ms)
{
    int64_t from_ms = now_ms;

    while (pace.interval_ms != wanted_ms && now_ms - from_ms < limit_ms) {
        now_ms += TICK_MS;
        ft_pace_step(&pace, waiting, waits_ms * NS_PER_MS, crowded,
                     (struct ft_mono){now_ms * NS_PER_MS});
    }
    return pace.interval_ms == wanted_ms ? now_ms - from_ms : -1;
}

START_TEST(records_that_wait_make_it_longer_step_by_step)
{
    begin(1000, 10000);
    ck_assert_int_eq(until(2000, 1400, false, 60000), -1);
    ck_assert_int_eq(until(2000, 1600, false, 60000), TICK_MS);
    ck_assert_int_eq(until(5000, 1600, false, 60000), 1000);
    ck_assert_int_eq(until(10000, 1600, false, 60000), 1000);
    ck_assert_int_eq(until(1, 90000, true, 60000), -1);
    ck_assert_uint_eq(pace.interval_ms, 10000);
}
END_TEST

START_TEST(it_gets_shorter_once_the_shorter_one_can_be_kept)
{
    begin(1000, 10000);
    ck_assert_int_gt(until(10000, 2000, false, 60000), 0);
    /* As long as half of what counts as behind: it would be behind again. */
    ck_assert_int_eq(until(5000, 800, false, 600000), -1);
    ck_assert_int_eq(until(5000, 700, false, 60000), 30000);
    ck_assert_int_eq(until(2000, 700, false, 60000), 15000);
    /* The records of 2 s take 0.6 s: those of 1 s may as well, and more than half of it. */
    ck_assert_int_eq(until(1000, 600, false, 600000), -1);
    ck_assert_int_eq(until(1000, 400, false, 60000), 10000);
    ck_assert_int_eq(until(1, 0, false, 60000), -1);
}
END_TEST

START_TEST(a_queue_that_is_half_full_is_behind_too)
{
    begin(1000, 10000);
    ck_assert_int_eq(until(2000, 0, true, 60000), 1000);
    ck_assert_int_eq(until(1000, 0, true, 60000), -1);
    ck_assert_uint_eq(pace.interval_ms, 10000);
}
END_TEST

/* Of few records it is no load that they wait. */
START_TEST(few_records_are_no_reason)
{
    begin(1000, 10000);
    waiting = 999;
    ck_assert_int_eq(until(2000, 20000, false, 60000), -1);
    waiting = 1000;
    ck_assert_int_eq(until(2000, 20000, false, 60000), TICK_MS);
    waiting = 999;
    ck_assert_int_eq(until(1000, 20000, false, 60000), 10000);
    waiting = 1000;
}
END_TEST

START_TEST(never_longer_than_allowed)
{
    begin(1000, 5000);
    ck_assert_int_gt(until(5000, 9000, true, 60000), 0);
    ck_assert_int_eq(until(10000, 9000, true, 60000), -1);
    begin(1000, 1000);
    ck_assert_int_eq(until(2000, 9000, true, 60000), -1);
    begin(1000, 500);
    ck_assert_int_eq(until(500, 9000, true, 60000), -1);
    begin(3000, 10000);
    ck_assert_int_eq(until(5000, 9000, false, 60000), 1000);
    ck_assert_int_gt(until(10000, 9000, false, 60000), 0);
    ck_assert_int_gt(until(3000, 0, false, 120000), 0);
    begin(60000, 10000);
    ck_assert_int_eq(until(10000, 9000, true, 60000), -1);
}
END_TEST

/* Until so many flows share one turn; after how long, or -1. */
static int64_t until_part(uint32_t wanted, int64_t waits_ms, int64_t limit_ms)
{
    int64_t from_ms = now_ms;

    while (pace.part != wanted && now_ms - from_ms < limit_ms) {
        now_ms += TICK_MS;
        ft_pace_step(&pace, waiting, waits_ms * NS_PER_MS, false,
                     (struct ft_mono){now_ms * NS_PER_MS});
    }
    return pace.part == wanted ? now_ms - from_ms : -1;
}

START_TEST(where_the_longest_does_not_suffice_flows_take_turns)
{
    begin(1000, 10000);
    ck_assert_int_gt(until(10000, 2000, false, 60000), 0);
    ck_assert_uint_eq(pace.part, 1);
    ck_assert_int_eq(until_part(2, 2000, 60000), 10000);
    ck_assert_int_eq(until_part(4, 2000, 60000), 10000);
    ck_assert_int_eq(until_part(32, 2000, 60000), 30000);
    ck_assert_int_eq(until_part(64, 90000, 600000), -1);
    /* All of them again before the interval gets shorter. */
    ck_assert_int_eq(until_part(16, 800, 600000), -1);
    ck_assert_int_eq(until_part(16, 700, 600000), 30000);
    ck_assert_int_eq(until_part(1, 0, 600000), 4 * 30000);
    ck_assert_uint_eq(pace.interval_ms, 10000);
    ck_assert_int_eq(until(5000, 0, false, 60000), 30000);
    ck_assert_uint_eq(pace.part, 1);
}
END_TEST

/* Who does not want longer intervals does not want fewer flows either. */
START_TEST(without_longer_intervals_all_flows_are_sent)
{
    begin(1000, 1000);
    ck_assert_int_eq(until_part(2, 90000, 600000), -1);
    ck_assert_uint_eq(pace.interval_ms, 1000);
}
END_TEST

FT_UNIT_MAIN("pace", records_that_wait_make_it_longer_step_by_step,
             it_gets_shorter_once_the_shorter_one_can_be_kept,
             a_queue_that_is_half_full_is_behind_too, few_records_are_no_reason,
             never_longer_than_allowed, where_the_longest_does_not_suffice_flows_take_turns,
             without_longer_intervals_all_flows_are_sent)
