// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/group/progress.h"

#include "tests/unit/unit.h"

#define WINDOW_MS  10000
#define GRACE_MS   2000
#define BACK_MS    300000
#define PARTITIONS 3
#define T0         1000000

static struct ft_group_progress *progress;
static struct ft_kafka_position list[PARTITIONS];

static void begin(bool of_parts)
{
    const struct ft_group_progress_config config = {.partitions = PARTITIONS,
                                                    .window_ms = WINDOW_MS,
                                                    .grace_ms = GRACE_MS,
                                                    .back_ms = BACK_MS,
                                                    .of_parts = of_parts};

    progress = ft_group_progress_new(&config);
    ck_assert_ptr_nonnull(progress);
}

static void end(void)
{
    ft_group_progress_free(progress);
}

START_TEST(who_begins_anew_has_the_windows_of_now)
{
    begin(false);
    /* Before it has partitions nothing is due. */
    ck_assert_int_eq(ft_group_progress_now(progress, T0), T0);
    ck_assert_int_eq(ft_group_progress_now(progress, T0 + 60000), T0);
    for (uint32_t i = 0; i < PARTITIONS; i++)
        ft_group_progress_gain(progress, i, 100, -1);
    ck_assert_int_eq(ft_group_progress_begin(progress, T0 + 60000), -1);
    ck_assert(!ft_group_progress_is_behind(progress));
    ck_assert_int_eq(ft_group_progress_now(progress, T0 + 60001), T0 + 60001);
    ck_assert(!ft_group_progress_holds(progress, 0, T0 + 90000, T0));
    end();
}
END_TEST

/* No partition is read beyond the time at which a window is due before all are read to there. */
START_TEST(windows_are_made_up_for_in_the_order_of_time)
{
    int64_t now_ms = T0 + 35000;

    begin(false);
    for (uint32_t i = 0; i < PARTITIONS; i++)
        ft_group_progress_gain(progress, i, 100, T0 + WINDOW_MS * (i == 1 ? 0 : 1));
    ck_assert_int_eq(ft_group_progress_begin(progress, now_ms), T0);
    ck_assert_int_eq(ft_group_progress_begin(progress, now_ms), -1);
    ck_assert(ft_group_progress_is_behind(progress));
    ck_assert_int_eq(ft_group_progress_now(progress, now_ms), T0);
    ck_assert(!ft_group_progress_holds(progress, 0, T0 + WINDOW_MS + GRACE_MS - 1, T0));
    ft_group_progress_read(progress, 0, 100);
    ck_assert(ft_group_progress_holds(progress, 0, T0 + WINDOW_MS + GRACE_MS, T0));
    ft_group_progress_end(progress, 1);
    /* The third is still being read. */
    ck_assert_int_eq(ft_group_progress_now(progress, now_ms), T0);
    ck_assert(ft_group_progress_holds(progress, 2, T0 + WINDOW_MS + GRACE_MS + 500, T0));
    ck_assert_int_eq(ft_group_progress_now(progress, now_ms), T0 + WINDOW_MS + GRACE_MS);
    /* Window closed: the messages are given again. */
    ck_assert(!ft_group_progress_holds(progress, 0, T0 + WINDOW_MS + GRACE_MS, T0 + WINDOW_MS));
    ft_group_progress_read(progress, 0, 101);
    ck_assert(
        !ft_group_progress_holds(progress, 2, T0 + WINDOW_MS + GRACE_MS + 500, T0 + WINDOW_MS));
    ft_group_progress_read(progress, 2, 100);
    ck_assert_int_eq(ft_group_progress_now(progress, now_ms), T0 + WINDOW_MS + GRACE_MS);
    ft_group_progress_end(progress, 0);
    ck_assert(ft_group_progress_is_behind(progress));
    ft_group_progress_end(progress, 2);
    ck_assert_int_eq(ft_group_progress_now(progress, now_ms), now_ms);
    ck_assert(!ft_group_progress_is_behind(progress));
    end();
}
END_TEST

/* One that was read to its end, but whose last message waits, is not there yet. */
START_TEST(a_message_that_waits_is_not_the_end)
{
    begin(false);
    ft_group_progress_gain(progress, 0, 100, T0);
    ft_group_progress_begin(progress, T0 + 50000);
    ck_assert(ft_group_progress_holds(progress, 0, T0 + 20000, T0));
    ft_group_progress_end(progress, 0);
    ck_assert_int_eq(ft_group_progress_now(progress, T0 + 50000), T0 + 20000);
    ck_assert(ft_group_progress_is_behind(progress));
    end();
}
END_TEST

/* What is too old to be applied is not made up for. */
START_TEST(windows_of_long_ago_are_left_out)
{
    int64_t now_ms = T0 + 3600000;
    int64_t from_ms;

    begin(false);
    ft_group_progress_gain(progress, 0, 100, T0);
    from_ms = ft_group_progress_begin(progress, now_ms);
    ck_assert_int_gt(from_ms, now_ms - BACK_MS);
    ck_assert_int_le(from_ms, now_ms - BACK_MS + 2 * WINDOW_MS);
    ck_assert_int_eq(from_ms % WINDOW_MS, 0);
    end();
}
END_TEST

static int64_t committed(int64_t end_ms)
{
    ck_assert_uint_eq(ft_group_progress_list(progress, end_ms, "flows", list), 1);
    ck_assert_int_eq(list[0].partition, 1);
    return list[0].offset;
}

/* From where it was read to when the window before was sealed: what came then can be of the next.
 */
START_TEST(samples_of_open_windows_are_read_again)
{
    begin(false);
    ft_group_progress_gain(progress, 1, 100, -1);
    ft_group_progress_begin(progress, T0);
    for (int i = 100; i < 110; i++)
        ft_group_progress_read(progress, 1, i);
    ft_group_progress_seal(progress);
    for (int i = 110; i < 115; i++)
        ft_group_progress_read(progress, 1, i);
    ck_assert_int_eq(committed(T0), 100);
    ck_assert_int_eq(list[0].note, T0);
    ft_group_progress_seal(progress);
    for (int i = 115; i < 130; i++)
        ft_group_progress_read(progress, 1, i);
    ck_assert_int_eq(committed(T0 + WINDOW_MS), 110);
    /* Who had it before has published more. */
    ft_group_progress_lose(progress, 1);
    ck_assert_uint_eq(ft_group_progress_list(progress, T0 + WINDOW_MS, "flows", list), 0);
    ft_group_progress_gain(progress, 1, 90, T0 + 5 * WINDOW_MS);
    ck_assert_int_eq(committed(T0 + 2 * WINDOW_MS), 90);
    ck_assert_int_eq(list[0].note, T0 + 5 * WINDOW_MS);
    end();
}
END_TEST

static int64_t part_committed(int64_t end_ms)
{
    ck_assert_uint_eq(ft_group_progress_list(progress, end_ms, "parts", list), 1);
    return list[0].offset;
}

static void part(int64_t offset, int64_t window_ms)
{
    ft_group_progress_read(progress, 0, offset);
    ft_group_progress_part(progress, offset, window_ms);
}

/* A part says of which window it is. */
START_TEST(parts_of_open_windows_are_read_again)
{
    begin(true);
    ft_group_progress_gain(progress, 0, 10, T0);
    ft_group_progress_begin(progress, T0 + 25000);
    ck_assert(!ft_group_progress_holds(progress, 0, T0 + 20000, T0));
    part(10, T0);
    part(11, T0 + WINDOW_MS);
    part(12, T0);
    part(13, T0 + 2 * WINDOW_MS);
    ck_assert_int_eq(part_committed(T0 + WINDOW_MS), 11);
    ck_assert_int_eq(part_committed(T0 + 2 * WINDOW_MS), 13);
    ck_assert_int_eq(part_committed(T0 + 3 * WINDOW_MS), 14);
    end();
}
END_TEST

FT_UNIT_MAIN("group_progress", who_begins_anew_has_the_windows_of_now,
             windows_are_made_up_for_in_the_order_of_time, a_message_that_waits_is_not_the_end,
             windows_of_long_ago_are_left_out, samples_of_open_windows_are_read_again,
             parts_of_open_windows_are_read_again)
