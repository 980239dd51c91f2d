// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pipeline/pipeline.h"
#include "proto/record.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

/* Records through the whole pipeline in virtual time: what goes in as protobuf messages comes out
 * as records, kept here as JSON lines. */
#define WINDOW_MS 10000
#define START_MS  (100 * (int64_t)WINDOW_MS)

static struct ft_pipeline *pipeline;
static struct ft_writer out;

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    ck_assert_int_eq(ft_record_to_json(record, &out), 0);
    ft_write_u8(&out, '\n');
}

static void open_pipeline(uint32_t leaves, uint32_t spines, uint32_t hosts)
{
    struct ft_pipeline_config config = {
        .join = {.flows_max = 10000,
                 .window_ms = WINDOW_MS,
                 .evidence_ms = 30000,
                 .idle_ms = 60000,
                 .trust_topology = true,
                 .policy = {.hold_down_ms = 2000, .tolerance_ms = 2000}},
        .window = {.loads = {.window_ms = WINDOW_MS,
                             .floor_share = 0.001,
                             .elephant_share = 0.1,
                             .elephants_max = 10000},
                   .refresh_ms = 60000,
                   .victims_max = 32},
        .grace_ms = 3000,
        .events_max = 100,
        .sources_max = 100,
        .source_id = "test",
    };
    struct ft_emitter emitter = {on_record, NULL};

    ft_writer_init(&out, 64 << 20);
    pipeline = ft_pipeline_new(&config, leafspine(leaves, spines, hosts), &emitter);
    ck_assert_ptr_nonnull(pipeline);
}

static void close_pipeline(void)
{
    ft_pipeline_free(pipeline);
    ft_writer_free(&out);
}

/* Gives the flow leaf -> other leaf over a spine a rate for one window, sampled at the leaf. */
static void observe(uint16_t sport, uint32_t leaf, uint32_t spine, uint64_t bps, uint32_t samples,
                    int64_t ms, Fabrictrace__Fate fate)
{
    bool dropped = fate == FABRICTRACE__FATE__FATE_DISCARDED;
    struct ft_tuple tuple = {.src = leafspine_host_ip(leaf, 0),
                             .dst = leafspine_host_ip(leaf ? 0 : 1, 0),
                             .sport = sport,
                             .dport = FT_ROCE_PORT,
                             .proto = FT_PROTO_UDP};
    struct ft_ip agent = leafspine_switch_ip(leaf);
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Observation o = FABRICTRACE__OBSERVATION__INIT;
    Fabrictrace__Flow flow = FABRICTRACE__FLOW__INIT;
    size_t len;

    ft_flow_from_tuple(&flow, &tuple);
    o.flow = &flow;
    o.has_agent = true;
    o.agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&agent, &len);
    o.agent.len = len;
    o.has_time_ms = o.has_in_ifindex = o.has_out_ifindex = o.has_samples = o.has_bytes = true;
    o.time_ms = (uint64_t)ms;
    o.in_ifindex = 1;
    o.out_ifindex = 100 + spine;
    o.has_fate = o.has_point = true;
    o.fate = fate;
    o.point = dropped ? FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_DISCARD
                      : FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_INGRESS;
    o.samples = samples;
    o.has_data_samples = true;
    o.data_samples = samples;
    o.bytes = bps / 8 * (WINDOW_MS / 1000);
    record.kind_case = FABRICTRACE__RECORD__KIND_OBSERVATION;
    record.observation = &o;
    ft_pipeline_record(pipeline, &record, ms);
}

/* Closes the window of `ms`, in slices as small as can be. */
static void close_window(int64_t ms)
{
    int64_t due = ms / WINDOW_MS * WINDOW_MS + WINDOW_MS + 3000;

    while (ft_pipeline_advance(pipeline, due, 1))
        ;
}

/* The line that holds all of these texts; NULL when none does. */
static const char *line_with(const char *a, const char *b)
{
    static char line[65536];
    const char *at, *end;

    ft_write_u8(&out, 0);
    out.len--;
    for (at = (const char *)out.bytes; (end = strchr(at, '\n')); at = end + 1) {
        size_t n = (size_t)(end - at);

        ck_assert_uint_lt(n, sizeof(line));
        memcpy(line, at, n);
        line[n] = '\0';
        if (strstr(line, a) && strstr(line, b))
            return line;
    }
    return NULL;
}

static double number(const char *line, const char *member)
{
    char quoted[64];
    const char *at;

    snprintf(quoted, sizeof(quoted), "\"%s\":", member);
    ck_assert_msg(line != NULL, "no line for %s", member);
    at = strstr(line, quoted);
    ck_assert_msg(at != NULL, "%s is not in %s", member, line);
    return strtod(at + strlen(quoted), NULL);
}

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
    ck_assert_ptr_nonnull(line_with("\"polarization\"", "\"leaf1/up\""));
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
    ft_writer_reset(&out);
    observe(1, 0, 1, LINK_BPS / 4, 10000, later + 10, 0);
    close_window(later);
    line = line_with("\"collision\"", "\"leaf0/up1\"");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_nonnull(strstr(line, "\"cleared\":true"));
    close_pipeline();
}
END_TEST

/* All flows of a group on one link, in a window of which only the end was seen, then in a whole
 * one.
 */
START_TEST(a_window_that_was_not_seen_whole_is_marked)
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

START_TEST(paths_are_published_when_known_changed_and_refreshed)
{
    unsigned paths = 0;

    open_pipeline(2, 4, 1);
    for (int64_t ms = START_MS; ms < START_MS + 100000; ms += 1000) {
        while (ft_pipeline_advance(pipeline, ms, UINT32_MAX))
            ;
        observe(1, 0, 2, 800000, 10, ms, 0);
    }
    for (const uint8_t *at = out.bytes;
         (at = memmem(at, out.len - (size_t)(at - out.bytes), "fabrictrace.path.v1", 19)); at++)
        paths++;
    /* When first seen, with the first rate, and after a minute. */
    ck_assert_uint_eq(paths, 3);
    close_pipeline();
}
END_TEST

/* Of samples that do not say where the packets went. */
#define NO_SPINE ((uint32_t)-100)

/* As observe(), of a tenth of a window. */
static void observe_second(uint16_t sport, uint32_t spine, uint32_t samples, int64_t ms)
{
    observe(sport, 0, spine, samples * 8000, samples, ms, 0);
}

static void run_until(int64_t ms)
{
    while (ft_pipeline_advance(pipeline, ms, UINT32_MAX))
        ;
}

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
static bool is_told_of_the_end(bool others_move)
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
    ck_assert(is_told_of_the_end(false));
    ck_assert(!is_told_of_the_end(true));
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
    ck_assert(!ft_pipeline_advance(pipeline, START_MS, UINT32_MAX));
    ck_assert_uint_eq(stats->restarts, 1);
    ck_assert_ptr_nonnull(strstr(line_with("\"collision\"", "leaf0"), "\"cleared\":true"));
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

FT_UNIT_MAIN("window", a_window_that_was_not_seen_whole_is_marked, luck_among_many_groups_is_even,
             accounts_of_who_is_gone_make_room, time_that_jumps_ahead_leaves_no_trail,
             a_pause_is_published, a_clock_that_is_set_back_learns_anew,
             figures_of_groups_and_their_union, idle_groups_have_no_figures,
             mice_and_the_discarded_do_not_count, collisions_stand_and_clear,
             one_elephant_each_is_no_collision,
             paths_are_published_when_known_changed_and_refreshed, a_window_with_a_move_is_split,
             a_move_after_the_window_does_not_reach_back, elephants_protect_the_mice,
             bytes_that_no_sample_tells_the_path_of_are_placed_nowhere,
             bytes_while_a_move_has_not_settled_are_placed_nowhere,
             where_others_move_a_window_needs_samples_that_tell,
             shares_of_a_window_are_of_its_samples, samples_between_two_moves_are_of_no_known_path,
             where_others_move_a_pause_tells_nothing,
             what_is_seen_after_a_path_was_left_is_not_laid_on_it, every_record_is_accounted_for)
