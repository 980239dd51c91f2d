// SPDX-License-Identifier: Apache-2.0
/*
 * Bytes of flows that change their path in a window, and of others near them.
 */
#include "config.h"

#include "daemon/pipeline/stages.h"
#include "tests/unit/window_rig.h"

/* Of samples that do not say where the packets went. */
#define NO_SPINE ((uint32_t)-100)

/* A flow takes another path in the middle of a window: what it sent goes to the one that it had. */
START_TEST(a_window_with_a_move_is_split)
{
    const int64_t moved = START_MS + WINDOW_MS + 6000;
    const char *line;

    open_pipeline(2, 4, 1);
    for (int64_t ms = START_MS + 50; ms < START_MS + 3 * WINDOW_MS; ms += 500) {
        run_until(ms);
        observe_second(1, ms < moved ? 1 : 3, 10, ms);
        if (ms < moved)
            ft_writer_reset(&out);
    }
    line = line_with("path_change", "\"since_ms\":1016050");
    ck_assert_ptr_nonnull(line);
    /* The new path is published for the window in which it began, which is open still. */
    line = line_with("fabrictrace.path.v1", "\"path_since_ms\":1016050");
    ck_assert_int_eq((int64_t)number(line, "window_start_ms"), START_MS + WINDOW_MS);
    ck_assert_int_le((int64_t)number(line, "time_ms"), START_MS + 2 * WINDOW_MS);
    ck_assert_ptr_nonnull(strstr(line, "\"up3\""));
    line = line_with("\"window_start_ms\":1010000", "\"port\":\"up1\",\"peer\"");
    ck_assert_double_eq_tol(number(line, "bytes"), 12 * 100000, 1);
    line = line_with("\"window_start_ms\":1010000", "\"port\":\"up3\",\"peer\"");
    ck_assert_double_eq_tol(number(line, "bytes"), 8 * 100000, 1);
    close_pipeline();
}
END_TEST

/* Two elephants change places in the middle of a window: each link had one at a time. */
START_TEST(elephants_that_change_places_do_not_collide)
{
    const int64_t moved = START_MS + WINDOW_MS + 6000;

    open_pipeline(2, 4, 1);
    for (int64_t ms = START_MS + 50; ms < START_MS + 4 * WINDOW_MS; ms += 500) {
        run_until(ms);
        observe(1, 0, ms < moved ? 1 : 3, LINK_BPS / 2 / 20, 100, ms, 0);
        observe(2, 0, ms < moved ? 3 : 1, LINK_BPS / 2 / 20, 100, ms, 0);
    }
    ck_assert_ptr_nonnull(line_with("path_change", "\"since_ms\":1016050"));
    ck_assert_ptr_null(line_with("\"collision\"", ""));
    close_pipeline();
}
END_TEST

/* It moves after the window's end and before its close: the window's bytes are not moved. */
START_TEST(a_move_after_the_window_does_not_reach_back)
{
    const int64_t moved = START_MS + WINDOW_MS + 200;
    const char *line;

    open_pipeline(2, 4, 1);
    for (int64_t ms = START_MS + 50; ms < START_MS + 2 * WINDOW_MS; ms += 100) {
        run_until(ms);
        observe_second(1, ms < moved ? 1 : 3, 10, ms);
    }
    line = line_with("fabrictrace.link.v1", "\"port\":\"up1\"");
    ck_assert_int_eq((int64_t)number(line, "window_start_ms"), START_MS);
    ck_assert_double_eq_tol(number(line, "bytes"), 100 * 100000, 1);
    line = line_with("fabrictrace.link.v1", "\"port\":\"up3\"");
    ck_assert_double_eq_tol(number(line, "bytes"), 0, 1e-9);
    close_pipeline();
}
END_TEST

/* A flow moves after the window, before that closes: the history has no path of it there, and the
 * new one in the next window. */
START_TEST(the_history_has_no_path_of_a_later_window)
{
    const int64_t moved = START_MS + WINDOW_MS + 200;
    const char *line;

    open_pipeline(2, 4, 1);
    for (int64_t ms = START_MS + 50; ms < START_MS + 2 * WINDOW_MS; ms += 100) {
        run_until(ms);
        observe(1, 0, ms < moved ? 1 : 3, 4000000, 10, ms, FABRICTRACE__FATE__FATE_FORWARDED);
    }
    close_window(START_MS + WINDOW_MS);
    line = line_of(&kept, "\"window_start_ms\":1000000,", "fabrictrace.path.v1");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_nonnull(strstr(line, "\"state\":\"unresolved\""));
    ck_assert_ptr_null(strstr(line, "\"switch\""));
    line = line_of(&kept, "\"window_start_ms\":1010000,", "fabrictrace.path.v1");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_nonnull(strstr(line, "\"state\":\"resolved\""));
    ck_assert_ptr_nonnull(strstr(line, "\"out\":\"up3\""));
    close_pipeline();
}
END_TEST

/* In a whole window samples are of hops alone that the path before has as the one after: whether it
 * had moved by then, nobody knows. */
START_TEST(bytes_that_no_sample_tells_the_path_of_are_placed_nowhere)
{
    const int64_t untold = START_MS + WINDOW_MS;
    const int64_t moved = START_MS + 2 * WINDOW_MS + 50;
    const char *line;
    char window[32];

    snprintf(window, sizeof(window), "\"window_start_ms\":%lld", (long long)untold);
    open_pipeline(2, 4, 1);
    for (int64_t ms = START_MS + 50; ms < START_MS + 3 * WINDOW_MS; ms += 100) {
        run_until(ms);
        if (ms < untold)
            observe_second(1, 1, 10, ms);
        else if (ms >= moved)
            observe_second(1, 3, 10, ms);
        else if (ms < untold + 1000)
            observe_second(1, NO_SPINE, 300, ms);
        if (ms < moved)
            ft_writer_reset(&out);
    }
    ck_assert_ptr_nonnull(line_with("path_change", "\"since_ms\":1020050"));
    ck_assert_double_eq_tol(number(line_with(window, "\"port\":\"up1\",\"peer\""), "bytes"), 0,
                            1e-9);
    ck_assert_double_eq_tol(number(line_with(window, "\"port\":\"up3\",\"peer\""), "bytes"), 0,
                            1e-9);
    line = line_with("imbalance", "\"leaf0/up\"");
    ck_assert_ptr_nonnull(strstr(line, window));
    ck_assert_uint_eq((unsigned)number(line, "flows"), 0);
    ck_assert_uint_eq((unsigned)number(line, "flows_unplaced"), 1);
    close_pipeline();
}
END_TEST

/* The same while it is not certain yet that the flow moved: what is known is the path before. */
START_TEST(bytes_while_a_move_has_not_settled_are_placed_nowhere)
{
    const int64_t untold = START_MS + WINDOW_MS;
    char window[32];

    snprintf(window, sizeof(window), "\"window_start_ms\":%lld", (long long)untold);
    open_pipeline(2, 4, 1);
    observe_second(1, 1, 10, untold - 500);
    observe_second(1, NO_SPINE, 300, untold + 500);
    run_until(untold + WINDOW_MS - 1000);
    /* One sample: it may be sprayed as well. */
    observe_second(1, 3, 1, untold + WINDOW_MS + 1000);
    close_window(untold);
    ck_assert_ptr_nonnull(line_with("path.v1", "\"up1\""));
    ck_assert_ptr_null(line_with("path.v1", "\"up3\""));
    ck_assert_double_eq_tol(number(line_with(window, "\"port\":\"up1\",\"peer\""), "bytes"), 0,
                            1e-9);
    close_pipeline();
}
END_TEST

/* A flow was on a spine, and in the window is seen where its path is not to be told. Elsewhere in
 * the fabric another one moves, or none does. Returns the bytes on the mouse's link. */
static double bytes_of_mouse(bool others_move)
{
    const int64_t untold = START_MS + WINDOW_MS;
    const int64_t moved = untold + 4000;
    char window[32];
    double bytes;

    snprintf(window, sizeof(window), "\"window_start_ms\":%lld", (long long)untold);
    open_pipeline(2, 4, 1);
    for (int64_t ms = START_MS + 50; ms < untold + WINDOW_MS; ms += 100) {
        run_until(ms);
        observe(9, 1, others_move && ms >= moved ? 2 : 0, 80000, 10, ms, 0);
        if (ms < untold || ms == untold + 3050)
            observe_second(1, ms < untold ? 1 : NO_SPINE, ms < untold ? 10 : 300, ms);
    }
    close_window(untold);
    bytes = number(
        line_with(window, "\"port\":\"up1\",\"peer\":\"spine1\",\"peer_port\":\"down0\""), "bytes");
    close_pipeline();
    return bytes;
}

START_TEST(where_others_move_a_window_needs_samples_that_tell)
{
    ck_assert_double_eq_tol(bytes_of_mouse(false), 3000000, 1);
    ck_assert_double_eq_tol(bytes_of_mouse(true), 0, 1e-9);
}
END_TEST

/* A flow is sampled shortly before the end of a window and shortly after it. Where others move in
 * between, what it did at the end is not known. Returns whether it is said. */
static bool is_reported_of_the_end(bool others_move)
{
    const int64_t end = START_MS + 2 * WINDOW_MS;
    bool told;

    open_pipeline(2, 4, 1);
    for (int64_t ms = START_MS + 50; ms < end + 2000; ms += 100) {
        run_until(ms);
        observe(9, 1, others_move && ms >= end - 1000 ? 2 : 0, 80000, 10, ms, 0);
        if (ms == end - 4950 || ms == end - 1450 || ms == end + 1550)
            observe_second(1, 1, 1, ms);
    }
    close_window(end - 1);
    told = line_with("\"sport\":1,", "\"time_ms\":1019999");
    close_pipeline();
    return told;
}

START_TEST(where_others_move_a_pause_tells_nothing)
{
    ck_assert(is_reported_of_the_end(false));
    ck_assert(!is_reported_of_the_end(true));
}
END_TEST

/* Two moves, the second so soon that where it went in between was never known. */
START_TEST(samples_between_two_moves_are_of_no_known_path)
{
    const int64_t moved = START_MS + WINDOW_MS;
    char window[32];

    snprintf(window, sizeof(window), "\"window_start_ms\":%lld", (long long)moved);
    open_pipeline(2, 4, 1);
    for (int64_t ms = START_MS + 50; ms < moved + WINDOW_MS; ms += 100) {
        run_until(ms);
        observe_second(1, ms < moved ? 1 : ms < moved + 300 ? 2 : 3, 10, ms);
    }
    close_window(moved);
    ck_assert_double_eq_tol(number(line_with(window, "\"port\":\"up1\",\"peer\""), "bytes"), 0,
                            1e-9);
    ck_assert_double_eq_tol(number(line_with(window, "\"port\":\"up3\",\"peer\""), "bytes"),
                            9700000, 1);
    close_pipeline();
}
END_TEST

/* The same, and in between it was seen where the path before goes too: whether it was still on that
 * is not known, so its link has nothing. */
START_TEST(what_is_seen_after_a_path_was_left_is_not_laid_on_it)
{
    const int64_t moved = START_MS + WINDOW_MS;
    char window[32];

    snprintf(window, sizeof(window), "\"window_start_ms\":%lld", (long long)moved);
    open_pipeline(2, 4, 1);
    for (int64_t ms = START_MS + 50; ms < moved + WINDOW_MS; ms += 100) {
        run_until(ms);
        if (ms < moved || ms > moved + 1000)
            observe_second(1, ms < moved ? 1 : 3, 10, ms);
        if (ms < moved || ms < moved + 1000)
            observe_second(1, NO_SPINE, 30, ms);
    }
    close_window(moved);
    ck_assert_double_eq_tol(number(line_with(window, "\"port\":\"up1\",\"peer\""), "bytes"), 0,
                            1e-9);
    ck_assert_double_gt(number(line_with(window, "\"port\":\"up3\",\"peer\""), "bytes"), 1e6);
    close_pipeline();
}
END_TEST

/* A sprayed flow leaves two spines for two others at the turn of a window. */
START_TEST(shares_of_a_window_are_of_its_samples)
{
    static const char *const spines[] = {"up0", "up1", "up2", "up3"};
    const int64_t moved = START_MS + 3 * WINDOW_MS;
    char window[32];

    snprintf(window, sizeof(window), "\"window_start_ms\":%lld", (long long)moved);
    open_pipeline(2, 4, 1);
    for (int64_t ms = START_MS + 50; ms < moved + WINDOW_MS; ms += 100) {
        run_until(ms);
        observe_second(1, (uint32_t)(ms / 100 % 2) + (ms < moved ? 0 : 2), 10, ms);
    }
    close_window(moved);
    for (int i = 0; i < 4; i++) {
        char port[32];

        snprintf(port, sizeof(port), "\"leaf0\",\"port\":\"%s\"", spines[i]);
        ck_assert_double_eq_tol(number(line_with(window, port), "bytes"), i < 2 ? 0 : 5000000, 1);
    }
    close_pipeline();
}
END_TEST

/* A close that is still in progress when the window after the next begins: batches wait for it, or
 * in a hurry end it, and are not taken for those of a clock that is ahead. */
START_TEST(records_wait_for_a_close_that_is_late)
{
    const struct ft_pipeline_stats *stats;
    int64_t late_ms = START_MS + 2 * WINDOW_MS + 1;

    open_pipeline(2, 4, 2);
    for (int hurry = 0; hurry < 2; hurry++, late_ms += 2 * WINDOW_MS) {
        int64_t first_ms = late_ms - 2 * WINDOW_MS;

        for (uint16_t i = 0; i < 20; i++)
            observe(i, 0, i % 4, 8000000, 100, first_ms, 0);
        run_until(first_ms + WINDOW_MS + 2000);
        ck_assert(ft_pipeline_advance(pipeline, first_ms + WINDOW_MS + 3000, 1));
        ck_assert(!ft_pipeline_waits(pipeline));
        ck_assert(ft_pipeline_advance(pipeline, late_ms, 1));
        ck_assert(ft_pipeline_waits(pipeline));
        if (hurry) {
            ft_pipeline_hurry(pipeline, true);
            ck_assert(!ft_pipeline_waits(pipeline));
            ft_pipeline_hurry(pipeline, false);
        } else {
            while (ft_pipeline_waits(pipeline))
                ft_pipeline_advance(pipeline, late_ms, 1);
        }
        observe(1, 0, 1, 8000000, 100, late_ms, 0);
        ft_pipeline_flush(pipeline);
    }
    stats = ft_pipeline_stats(pipeline);
    ck_assert_uint_eq(stats->fates[FT_RECORD_AHEAD], 0);
    ck_assert_uint_eq(stats->fates[FT_RECORD_LATE], 0);
    ck_assert_uint_eq(stats->fates[FT_RECORD_JOINED], 42);
    close_pipeline();
}
END_TEST

/* Windows that are made up for are of long ago by the time that their records come; they are closed
 * when all of these have. */
START_TEST(what_is_made_up_for_is_not_late)
{
    const struct ft_join *join;
    uint32_t window;

    open_pipeline(2, 4, 2);
    join = ft_pipeline_stages(pipeline)->join;
    observe(1, 0, 1, 8000000, 100, START_MS, 0);
    run_until(START_MS + 1000);
    window = ft_join_window(join);
    account("poller", 100, 0, START_MS + 5 * WINDOW_MS);
    ft_pipeline_hurry(pipeline, true);
    ck_assert(!ft_pipeline_waits(pipeline));
    ft_pipeline_hurry(pipeline, false);
    ck_assert_uint_eq(ft_join_window(join), window);
    close_pipeline();
}
END_TEST

/* Before it is known that they are made up for, the time is that of now. */
START_TEST(what_is_made_up_for_is_not_closed_by_the_time_of_before)
{
    const struct ft_join *join;
    uint32_t window;

    open_pipeline(2, 4, 2);
    join = ft_pipeline_stages(pipeline)->join;
    ft_pipeline_begin(pipeline, START_MS + 2 * WINDOW_MS + 1000);
    ft_pipeline_advance(pipeline, START_MS + 2 * WINDOW_MS + 1000, 1);
    ft_pipeline_begin(pipeline, START_MS);
    window = ft_join_window(join);
    ft_pipeline_hurry(pipeline, true);
    ck_assert(!ft_pipeline_waits(pipeline));
    observe(1, 0, 1, 8000000, 100, START_MS, 0);
    ft_pipeline_hurry(pipeline, false);
    ft_pipeline_flush(pipeline);
    ck_assert_uint_eq(ft_join_window(join), window);
    ck_assert_uint_eq(ft_pipeline_stats(pipeline)->fates[FT_RECORD_JOINED], 1);
    close_pipeline();
}
END_TEST

FT_UNIT_MAIN("window, moves", what_is_made_up_for_is_not_closed_by_the_time_of_before,
             records_wait_for_a_close_that_is_late, what_is_made_up_for_is_not_late,
             a_window_with_a_move_is_split, elephants_that_change_places_do_not_collide,
             a_move_after_the_window_does_not_reach_back, the_history_has_no_path_of_a_later_window,
             bytes_that_no_sample_tells_the_path_of_are_placed_nowhere,
             bytes_while_a_move_has_not_settled_are_placed_nowhere,
             where_others_move_a_window_needs_samples_that_tell,
             shares_of_a_window_are_of_its_samples, samples_between_two_moves_are_of_no_known_path,
             where_others_move_a_pause_tells_nothing,
             what_is_seen_after_a_path_was_left_is_not_laid_on_it)
