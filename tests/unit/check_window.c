// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <time.h>

#include "daemon/pipeline/stages.h"
#include "tests/unit/window_rig.h"

/* 16 flows a group as METRICS tables them; leaf0 with 7 5 3 1, leaf1 with 16 0 0 0. */
START_TEST(figures_of_groups_and_their_union)
{
    static const uint32_t loads[2][4] = {{7, 5, 3, 1}, {16, 0, 0, 0}};
    const char *line;
    uint16_t sport = 50000;

    open_pipeline(2, 4, 1);
    for (uint32_t leaf = 0; leaf < 2; leaf++)
        for (uint32_t spine = 0; spine < 4; spine++)
            for (uint32_t i = 0; i < loads[leaf][spine]; i++)
                observe(sport++, leaf, spine, 8000000, 100, START_MS + 10, 0);
    close_window(START_MS);
    line = line_with("imbalance", "\"leaf0/up\"");
    ck_assert_double_eq_tol(number(line, "fim"), 50, 1e-4);
    ck_assert_double_eq_tol(number(line, "max_over_mean"), 1.75, 1e-4);
    ck_assert_double_eq_tol(number(line, "cov"), 0.5590, 1e-4);
    ck_assert_double_eq_tol(number(line, "jain"), 0.7619, 1e-4);
    ck_assert_double_eq_tol(number(line, "effective_links"), 3.3613, 1e-4);
    ck_assert_double_eq_tol(number(line, "fim_expected"), 33.780, 1e-3);
    ck_assert_double_eq_tol(number(line, "fim_bytes"), 50, 1e-4);
    ck_assert_uint_eq((unsigned)number(line, "flows"), 16);
    ck_assert_ptr_nonnull(strstr(line, "\"verdict\":\"even\""));
    line = line_with("imbalance", "\"leaf1/up\"");
    ck_assert_double_eq_tol(number(line, "fim"), 150, 1e-4);
    ck_assert_double_lt(number(line, "p_value"), 1e-6);
    ck_assert_ptr_nonnull(strstr(line, "\"verdict\":\"fault\""));
    /* The other leaf's down group carries the same flows; all groups have links to choose from. */
    line = line_with("imbalance", "\"leaf1/down\"");
    ck_assert_double_eq_tol(number(line, "fim"), 50, 1e-4);
    line = line_with("\"layer\"", "\"leaf/up\"");
    ck_assert_double_eq_tol(number(line, "fim"), 100, 1e-4);
    line = line_with("\"scope\":\"fabric\"", "\"lab\"");
    ck_assert_double_eq_tol(number(line, "fim"), 100, 1e-4);
    ck_assert_uint_eq((unsigned)number(line, "flows"), 32);
    ck_assert_uint_eq((unsigned)number(line, "groups"), 4);
    line = line_with("\"polarization\"", "\"leaf1/up\"");
    ck_assert_ptr_nonnull(line);
    /* Of three idle links of four, none is named: a hash is as likely. */
    ck_assert_ptr_null(strstr(line, "idle_ports"));
    ck_assert_ptr_nonnull(strstr(line, "look for a polarised hash"));
    ck_assert_ptr_null(line_with("\"polarization\"", "\"leaf0/up\""));
    close_pipeline();
}
END_TEST

/* 80 groups of flows that are spread at random: a few have a small p, and none is blamed. */
START_TEST(luck_among_many_groups_is_even)
{
    int lucky = 0, uneven = 0;
    uint16_t sport = 1;

    open_pipeline(40, 4, 1);
    srandom(11);
    for (uint32_t leaf = 0; leaf < 40; leaf++)
        for (int i = 0; i < 40; i++)
            observe(sport++, leaf, (uint32_t)random() % 4, 8000000, 100, START_MS + 10, 0);
    close_window(START_MS);
    ft_write_u8(&out, 0);
    for (char *line = strtok((char *)out.bytes, "\n"); line; line = strtok(NULL, "\n")) {
        if (!strstr(line, "imbalance.v1") || !strstr(line, "\"scope\":\"group\"") ||
            !strstr(line, "p_value"))
            continue;
        lucky += number(line, "p_value") < 0.05;
        uneven += strstr(line, "\"verdict\":\"uneven\"") != NULL;
    }
    ck_assert_int_gt(lucky, 0);
    ck_assert_int_eq(uneven, 0);
    close_pipeline();
}
END_TEST

START_TEST(idle_groups_have_no_figures)
{
    const char *line;

    open_pipeline(2, 4, 1);
    observe(1, 0, 0, 8000000, 100, START_MS + 10, 0);
    close_window(START_MS);
    line = line_with("imbalance", "\"leaf1/up\"");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_null(strstr(line, "\"fim"));
    ck_assert_ptr_null(strstr(line, "p_value"));
    ck_assert_ptr_nonnull(strstr(line, "\"verdict\":\"idle\""));
    line = line_with("\"layer\"", "\"leaf/up\"");
    ck_assert_uint_eq((unsigned)number(line, "idle_groups"), 1);
    close_pipeline();
}
END_TEST

/* Sprayed, nine packets of ten to one spine: no flow chose its link by chance, in the layer as in
 * the group. */
START_TEST(without_a_choice_by_chance_there_is_no_verdict)
{
    static const char *const names[] = {"leaf0/up", "leaf/up", "lab"};

    open_pipeline(2, 2, 1);
    for (int64_t ms = 0; ms < WINDOW_MS; ms += 100)
        observe_second(50000, ms / 100 % 2, ms / 100 % 2 ? 10 : 90, START_MS + ms);
    close_window(START_MS);
    ck_assert_ptr_nonnull(line_with("path.v1", "multipath"));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char name[32];
        const char *line;

        snprintf(name, sizeof(name), "\"name\":\"%s\"", names[i]);
        line = line_with("imbalance.v1", name);
        ck_assert_double_eq_tol(number(line, "fim"), 80, 0.1);
        ck_assert_msg(strstr(line, "\"verdict\":\"idle\"") != NULL, "%s", line);
        ck_assert_ptr_null(strstr(line, "p_value"));
        ck_assert_ptr_null(strstr(line, "fim_expected"));
    }
    close_pipeline();
}
END_TEST

START_TEST(mice_and_the_discarded_do_not_count)
{
    const char *line;

    open_pipeline(2, 4, 1);
    observe(1, 0, 0, 8000000, 100, START_MS + 10, 0);
    observe(2, 0, 1, LINK_BPS / 1000 / 2, 100, START_MS + 10, 0);
    /* Dropped packets are no rate, neither of a flow of theirs nor of one that goes on. */
    observe(3, 0, 2, 80000000, 100, START_MS + 10, FABRICTRACE__FATE__FATE_DISCARDED);
    observe(1, 0, 0, 80000000, 1000, START_MS + 10, FABRICTRACE__FATE__FATE_DISCARDED);
    close_window(START_MS);
    line = line_with("imbalance", "\"leaf0/up\"");
    ck_assert_uint_eq((unsigned)number(line, "flows"), 1);
    ck_assert_uint_eq((unsigned)number(line, "flows_unplaced"), 0);
    line = line_with("fabrictrace.path.v1", "\"rate_bps\":8000000");
    ck_assert_ptr_nonnull(line);
    close_pipeline();
}
END_TEST

START_TEST(collisions_stand_and_clear)
{
    int64_t later = START_MS + WINDOW_MS;
    const char *line;

    open_pipeline(2, 4, 1);
    for (uint16_t i = 0; i < 3; i++)
        observe(1 + i, 0, 1, LINK_BPS / 4, 10000, START_MS + 10, 0);
    /* As fast by estimate, yet with 4 samples it may as well be a mouse. */
    observe(9, 0, 1, LINK_BPS / 8, 4, START_MS + 10, 0);
    close_window(START_MS);
    line = line_with("\"collision\"", "\"leaf0/up1\"");
    ck_assert_uint_eq((unsigned)number(line, "elephants"), 3);
    ck_assert_uint_eq((unsigned)number(line, "elephants_least"), 0);
    ck_assert_double_eq_tol(number(line, "elephants_even"), 0.75, 1e-9);
    ck_assert_ptr_nonnull(strstr(line, "\"src_host\":\"h0-0\""));
    ck_assert_ptr_null(strstr(line, "cleared"));
    /* Two of them pause, then all do, and go on: one event. */
    ft_writer_reset(&out);
    observe(1, 0, 1, LINK_BPS / 4, 10000, later + 10, 0);
    close_window(later);
    close_window(later += WINDOW_MS);
    later += WINDOW_MS;
    for (uint16_t i = 0; i < 3; i++)
        observe(1 + i, 0, 1, LINK_BPS / 4, 10000, later + 10, 0);
    close_window(later);
    ck_assert_ptr_null(line_with("\"collision\"", "\"leaf0/up1\""));
    /* Two take another link, the third pauses. */
    later += WINDOW_MS;
    for (uint16_t i = 0; i < 2; i++)
        for (uint32_t at = 1000; at <= 9000; at += 4000)
            observe(1 + i, 0, 2, LINK_BPS / 4, 10000, later + at, 0);
    close_window(later);
    line = line_with("\"collision\"", "\"leaf0/up1\"");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_nonnull(strstr(line, "\"cleared\":true"));
    ck_assert_uint_eq((unsigned)number(line, "since_ms"), (unsigned)START_MS);
    close_pipeline();
}
END_TEST

/* All flows of a group on one link, in a window of which only the end was seen, then in a whole
 * one.
 */
START_TEST(a_window_that_was_not_seen_completely_is_marked)
{
    int64_t later = START_MS + WINDOW_MS;
    const char *line;

    open_pipeline(2, 4, 1);
    ft_pipeline_begin(pipeline, START_MS + 4000);
    for (uint16_t i = 0; i < 40; i++)
        observe(1 + i, 0, 1, LINK_BPS / 4, 10000, START_MS + 5000, 0);
    close_window(START_MS);
    line = line_with("fabrictrace.link.v1", "\"port\":\"up1\"");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_nonnull(strstr(line, "\"partial\":true"));
    line = line_with("fabrictrace.imbalance.v1", "\"leaf0/up\"");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_nonnull(strstr(line, "\"verdict\":\"fault\""));
    ck_assert_ptr_nonnull(strstr(line, "\"partial\":true"));
    line = line_with("\"scope\":\"fabric\"", "");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_nonnull(strstr(line, "\"partial\":true"));
    ck_assert_ptr_null(line_with("\"collision\"", ""));
    ck_assert_ptr_null(line_with("\"polarization\"", ""));
    ft_writer_reset(&out);
    for (uint16_t i = 0; i < 40; i++)
        observe(1 + i, 0, 1, LINK_BPS / 4, 10000, later + 10, 0);
    close_window(later);
    ck_assert_ptr_null(line_with("\"partial\":", "window_start_ms"));
    ck_assert_ptr_nonnull(line_with("\"collision\"", ""));
    ck_assert_ptr_nonnull(line_with("\"polarization\"", ""));
    close_pipeline();
}
END_TEST

/* Three that come after their window was closed, beside one of the next. */
START_TEST(figures_say_how_much_was_taken_in)
{
    int64_t later = START_MS + WINDOW_MS;
    const char *line;

    open_pipeline(2, 4, 1);
    observe(1, 0, 1, 8000000, 100, START_MS + 10, 0);
    close_window(START_MS);
    ck_assert_ptr_null(line_with("seen_share", ""));
    ft_writer_reset(&out);
    for (uint16_t i = 0; i < 3; i++)
        observe(1 + i, 0, 1, 8000000, 100, START_MS + 20, 0);
    observe(1, 0, 1, 8000000, 100, later + 10, 0);
    close_window(later);
    line = line_with("fabrictrace.imbalance.v1", "\"leaf0/up\"");
    ck_assert_ptr_nonnull(line);
    ck_assert_double_eq_tol(number(line, "seen_share"), 0.25, 1e-9);
    line = line_with("\"scope\":\"fabric\"", "seen_share");
    ck_assert_ptr_nonnull(line);
    ft_writer_reset(&out);
    observe(1, 0, 1, 8000000, 100, later + WINDOW_MS + 10, 0);
    close_window(later + WINDOW_MS);
    ck_assert_ptr_null(line_with("seen_share", ""));
    close_pipeline();
}
END_TEST

/* 60 flows a link, and in the next window none on one of four: p = 6e-13; the others are even. */
START_TEST(a_member_that_no_flow_takes_is_named)
{
    const int64_t later = START_MS + WINDOW_MS;
    const int64_t newest = START_MS + 5000;
    struct tm tm;
    char since[64];
    const char *line;

    open_pipeline(2, 4, 1);
    for (uint16_t i = 0; i < 240; i++)
        observe(1 + i, 0, i % 4, 8000000, 100, newest, 0);
    close_window(START_MS);
    ck_assert_ptr_null(line_with("\"polarization\"", "\"leaf0/up\""));
    for (uint16_t i = 0; i < 240; i++)
        if (i % 4 != 2)
            observe(1 + i, 0, i % 4, 8000000, 100, later + 5000, 0);
    close_window(later);
    line = line_with("\"polarization\"", "\"leaf0/up\"");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_nonnull(strstr(line, "\"idle_ports\":[\"up2\"]"));
    ck_assert_double_eq(number(line, "idle_since_ms"), (double)newest);
    /* It may be days ago. */
    ck_assert_ptr_nonnull(gmtime_r(&(time_t){newest / 1000}, &tm));
    strftime(since, sizeof(since), "no flow on up2 since %F %T UTC: link down", &tm);
    ck_assert_msg(strstr(line, since) != NULL, "%s is not in %s", since, line);
    close_pipeline();
}
END_TEST

START_TEST(one_elephant_each_is_no_collision)
{
    open_pipeline(2, 4, 1);
    for (uint16_t i = 0; i < 4; i++)
        observe(1 + i, 0, i, LINK_BPS / 4, 10000, START_MS + 10, 0);
    close_window(START_MS);
    ck_assert_ptr_null(line_with("\"collision\"", "leaf0"));
    close_pipeline();
}
END_TEST

static unsigned path_records(void)
{
    unsigned paths = 0;

    for (const uint8_t *at = out.bytes;
         (at = memmem(at, out.len - (size_t)(at - out.bytes), "fabrictrace.path.v1", 19)); at++)
        paths++;
    return paths;
}

START_TEST(paths_are_published_when_known_changed_and_refreshed)
{
    open_pipeline(2, 4, 1);
    for (int64_t ms = START_MS; ms < START_MS + 100000; ms += 1000) {
        while (ft_pipeline_advance(pipeline, ms, UINT32_MAX))
            ;
        observe(1, 0, 2, 800000, 10, ms, 0);
    }
    /* When first seen, with the first rate, and after a minute. */
    ck_assert_uint_eq(path_records(), 3);
    close_pipeline();
}
END_TEST

/* The closes that a minute lies between are 59.82 s apart. */
START_TEST(a_close_that_comes_early_refreshes)
{
    open_pipeline(2, 4, 1);
    for (int64_t ms = START_MS; ms < START_MS + 80000; ms += 997) {
        while (ft_pipeline_advance(pipeline, ms, UINT32_MAX))
            ;
        observe(1, 0, 2, 800000, 10, ms, 0);
    }
    ck_assert_uint_eq(path_records(), 3);
    close_pipeline();
}
END_TEST

/* Beyond the rate a path waits for the close, which publishes it with its rate as it does the
 * others; the next second has room again. */
START_TEST(paths_beyond_the_rate_wait_for_the_close)
{
    news_max = 3;
    open_pipeline(2, 4, 1);
    for (uint16_t sport = 1; sport <= 10; sport++)
        observe(sport, 0, sport % 4, 8000000, 100, START_MS + 10, 0);
    run_until(START_MS + 20);
    ck_assert_uint_eq(path_records(), 3);
    ck_assert_ptr_nonnull(line_with("path.v1", "\"sport\":3,"));
    ck_assert_ptr_null(line_with("path.v1", "\"sport\":4,"));
    ck_assert_uint_eq(ft_pipeline_stats(pipeline)->deferred_paths, 7);
    observe(11, 0, 0, 8000000, 100, START_MS + 1500, 0);
    run_until(START_MS + 1600);
    ck_assert_uint_eq(path_records(), 4);
    close_window(START_MS);
    ck_assert_uint_eq(path_records(), 4 + 11);
    for (uint16_t sport = 1; sport <= 11; sport++) {
        char text[24];

        snprintf(text, sizeof(text), "\"sport\":%u,", sport);
        ck_assert_double_gt(number(line_with("\"rate_bps\"", text), "rate_bps"), 0);
    }
    close_pipeline();
}
END_TEST

/* An elephant leaves a spine. A mouse on the same spine was seen last before that: nobody knows
 * where it goes now, until it is seen again. */
START_TEST(elephants_protect_the_mice)
{
    const int64_t moved = START_MS + 4000;

    open_pipeline(2, 4, 1);
    for (int64_t ms = START_MS + 50; ms < START_MS + WINDOW_MS; ms += 500) {
        run_until(ms);
        observe_second(1, ms < moved ? 1 : 3, 10, ms);
        if (ms == START_MS + 2050) {
            observe_second(2, 1, 1, ms);
            observe_second(3, 1, 1, ms);
        }
        if (ms == START_MS + 8050)
            observe_second(3, 1, 1, ms);
    }
    ft_writer_reset(&out);
    close_window(START_MS);
    ck_assert_ptr_nonnull(strstr(line_with("path.v1", "\"sport\":2,"), "\"changing\""));
    ck_assert_ptr_nonnull(strstr(line_with("path.v1", "\"sport\":3,"), "\"resolved\""));
    close_pipeline();
}
END_TEST

START_TEST(every_record_is_accounted_for)
{
    const struct ft_pipeline_stats *stats;
    Fabrictrace__Record empty = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Observation o = FABRICTRACE__OBSERVATION__INIT;
    uint64_t sum = 0;

    open_pipeline(2, 4, 1);
    observe(1, 0, 2, 800000, 10, START_MS, 0);
    observe(1, 0, 2, 800000, 10, START_MS - WINDOW_MS, 0);
    observe(1, 0, 2, 800000, 10, START_MS + 5 * WINDOW_MS, 0);
    /* Its window's number, cut to 32 bits, would be this one's. */
    observe(1, 0, 2, 800000, 10, START_MS + ((int64_t)WINDOW_MS << 32), 0);
    ft_pipeline_record(pipeline, &empty, START_MS);
    empty.kind_case = FABRICTRACE__RECORD__KIND_OBSERVATION;
    empty.observation = &o;
    ft_pipeline_record(pipeline, &empty, START_MS);
    ft_pipeline_flush(pipeline);
    stats = ft_pipeline_stats(pipeline);
    for (int f = 0; f < FT_RECORD_FATES; f++)
        sum += stats->fates[f];
    ck_assert_uint_eq(stats->records, 6);
    ck_assert_uint_eq(sum, 6);
    ck_assert_uint_eq(stats->fates[FT_RECORD_JOINED], 1);
    ck_assert_uint_eq(stats->fates[FT_RECORD_LATE], 1);
    ck_assert_uint_eq(stats->fates[FT_RECORD_AHEAD], 1);
    ck_assert_uint_eq(stats->fates[FT_RECORD_UNUSED], 1);
    ck_assert_uint_eq(stats->fates[FT_RECORD_INVALID], 2);
    close_pipeline();
}
END_TEST

static unsigned count_of(const char *text)
{
    size_t len = strlen(text);
    unsigned n = 0;

    for (const uint8_t *at = out.bytes;
         (at = memmem(at, out.len - (size_t)(at - out.bytes), text, len)); at++)
        n++;
    return n;
}

/* A host that starts with the time of its clock's battery, and hears of the right one. */
START_TEST(time_that_jumps_ahead_leaves_no_trail)
{
    const int64_t later = START_MS + INT64_C(10) * 365 * 86400 * 1000 + 5000;
    unsigned steps = 0;

    open_pipeline(2, 4, 1);
    observe(1, 0, 2, 8000000, 10, START_MS, 0);
    while (ft_pipeline_advance(pipeline, later, UINT32_MAX))
        ck_assert_uint_lt(++steps, 10);
    ck_assert_uint_le(count_of("\"scope\":\"fabric\""), 2);
    ck_assert_uint_gt(ft_pipeline_stats(pipeline)->windows_skipped, 10 * 365 * 8640 - 10);
    ft_writer_reset(&out);
    observe(1, 0, 2, 8000000, 10, later, 0);
    close_window(later);
    ck_assert_uint_eq((unsigned)number(line_with("imbalance", "\"leaf0/up\""), "flows"), 1);
    close_pipeline();
}
END_TEST

/* A few windows without a record are windows all the same. */
START_TEST(a_pause_is_published)
{
    open_pipeline(2, 4, 1);
    observe(1, 0, 2, 8000000, 10, START_MS, 0);
    close_window(START_MS + 30 * WINDOW_MS);
    ck_assert_uint_eq(count_of("\"scope\":\"fabric\""), 31);
    ck_assert_uint_eq(ft_pipeline_stats(pipeline)->windows_skipped, 0);
    close_pipeline();
}
END_TEST

START_TEST(a_clock_that_is_set_back_learns_anew)
{
    const int64_t ahead = START_MS + INT64_C(8) * 3600 * 1000;
    const struct ft_pipeline_stats *stats;
    const char *cleared;

    open_pipeline(2, 4, 1);
    for (uint16_t i = 0; i < 3; i++)
        observe(1 + i, 0, 1, LINK_BPS / 4, 10000, ahead + 10, 0);
    close_window(ahead);
    ck_assert_ptr_nonnull(line_with("\"collision\"", "\"leaf0/up1\""));
    ft_writer_reset(&out);
    /* A moment back is no matter. */
    ck_assert(!ft_pipeline_advance(pipeline, ahead, UINT32_MAX));
    stats = ft_pipeline_stats(pipeline);
    ck_assert_uint_eq(stats->restarts, 0);
    /* Flows are forgotten one at a time; batches wait meanwhile. */
    for (size_t left = 3; left > 0; left--) {
        ck_assert_uint_eq(ft_join_flows(ft_pipeline_stages(pipeline)->join), left);
        ck_assert(ft_pipeline_advance(pipeline, START_MS, 1));
        ck_assert(ft_pipeline_waits(pipeline));
        ck_assert_uint_eq(stats->restarts, 0);
    }
    /* Then events are cleared, by themselves. */
    while (!(cleared = line_with("\"collision\"", "leaf0"))) {
        ck_assert(ft_pipeline_advance(pipeline, START_MS, 1));
        ck_assert(ft_pipeline_waits(pipeline));
    }
    ck_assert_ptr_nonnull(strstr(cleared, "\"cleared\":true"));
    ck_assert_uint_eq(stats->restarts, 0);
    while (ft_pipeline_advance(pipeline, START_MS, 1))
        ck_assert(ft_pipeline_waits(pipeline));
    ck_assert(!ft_pipeline_waits(pipeline));
    ck_assert_uint_eq(stats->restarts, 1);
    observe(1, 0, 2, 8000000, 10, START_MS + 10, 0);
    close_window(START_MS);
    ck_assert_uint_eq(stats->restarts, 1);
    ck_assert_uint_eq(stats->fates[FT_RECORD_LATE], 0);
    ck_assert_uint_eq((unsigned)number(line_with("imbalance", "\"leaf0/up\""), "flows"), 1);
    ck_assert_ptr_nonnull(line_with("fabrictrace.path.v1", "\"state\":\"resolved\""));
    ck_assert_ptr_nonnull(line_with("fabrictrace.link.v1", "\"bytes\":10000000"));
    close_pipeline();
}
END_TEST

static unsigned losses_told;

static void on_loss(void *arg, const Fabrictrace__Record *record)
{
    losses_told += strcmp(record->loss->source, arg) == 0;
}

static void count_losses(const struct ft_emitter *emitter)
{
    uint32_t index = 0;

    losses_told = 0;
    while (ft_pipeline_next_loss(pipeline, &index, emitter))
        ;
}

/* Hosts come and go: the accounts of those that are gone give their place. */
START_TEST(accounts_of_who_is_gone_make_room)
{
    const struct ft_emitter emitter = {on_loss, (void *)(uintptr_t) "new"};
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Loss loss = FABRICTRACE__LOSS__INIT;
    char source[16];

    open_pipeline(2, 4, 1);
    record.kind_case = FABRICTRACE__RECORD__KIND_LOSS;
    record.loss = &loss;
    loss.program = (char *)(uintptr_t) "fabrictrace-agent";
    loss.source = source;
    for (int i = 0; i < 100; i++) {
        snprintf(source, sizeof(source), "old%d", i);
        ft_pipeline_record(pipeline, &record, START_MS);
    }
    snprintf(source, sizeof(source), "new");
    ft_pipeline_record(pipeline, &record, START_MS + 60000);
    count_losses(&emitter);
    ck_assert_uint_eq(losses_told, 0);
    ft_pipeline_record(pipeline, &record, START_MS + 2 * 3600000);
    count_losses(&emitter);
    ck_assert_uint_eq(losses_told, 1);
    close_pipeline();
}
END_TEST

static double seen_share(int64_t window_ms)
{
    const char *line;

    ft_writer_reset(&out);
    observe(1, 0, 1, 8000000, 100, window_ms + 10, 0);
    close_window(window_ms);
    line = line_with("\"scope\":\"fabric\"", "seen_share");
    return line ? number(line, "seen_share") : 1;
}

/* One of two pollers thins out, begins anew, and does so no more. */
START_TEST(what_was_thinned_was_not_seen)
{
    int64_t ms = START_MS;

    open_pipeline(2, 4, 1);
    account("a", 1000000, 900000, ms); /* of before our time */
    account("b", 5000, 0, ms);
    ck_assert_double_eq_tol(seen_share(ms), 1, 1e-9);
    ms += WINDOW_MS;
    account("a", 1001000, 900600, ms);
    account("b", 6000, 0, ms);
    ck_assert_double_eq_tol(seen_share(ms), 0.7, 1e-9);
    /* Half of the rest comes too late. */
    account("a", 1002000, 901200, ms + 1);
    account("b", 7000, 0, ms + 1);
    observe(2, 0, 1, 8000000, 100, ms + 20, 0);
    ms += WINDOW_MS;
    ck_assert_double_eq_tol(seen_share(ms), 0.35, 1e-9);
    ms += WINDOW_MS;
    account("a", 500, 100, ms);
    account("b", 7500, 0, ms);
    ck_assert_double_eq_tol(seen_share(ms), 0.9, 1e-9);
    ms += WINDOW_MS;
    account("a", 1500, 100, ms);
    ck_assert_double_eq_tol(seen_share(ms), 1, 1e-9);
    close_pipeline();
}
END_TEST

FT_UNIT_MAIN("window", what_was_thinned_was_not_seen,
             a_window_that_was_not_seen_completely_is_marked, figures_say_how_much_was_taken_in,
             luck_among_many_groups_is_even, accounts_of_who_is_gone_make_room,
             time_that_jumps_ahead_leaves_no_trail, a_pause_is_published,
             a_clock_that_is_set_back_learns_anew, figures_of_groups_and_their_union,
             idle_groups_have_no_figures, without_a_choice_by_chance_there_is_no_verdict,
             mice_and_the_discarded_do_not_count, collisions_stand_and_clear,
             a_member_that_no_flow_takes_is_named, one_elephant_each_is_no_collision,
             paths_are_published_when_known_changed_and_refreshed,
             a_close_that_comes_early_refreshes, paths_beyond_the_rate_wait_for_the_close,
             elephants_protect_the_mice, every_record_is_accounted_for)
