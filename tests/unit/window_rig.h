// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_WINDOW_RIG_H
#define FT_TESTS_WINDOW_RIG_H
/*
 * Records through the whole pipeline in virtual time: what goes in as protobuf messages comes out
 * as records, kept here as JSON lines.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pipeline/pipeline.h"
#include "proto/record.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define WINDOW_MS 10000
#define START_MS  (100 * (int64_t)WINDOW_MS)

static struct ft_pipeline *pipeline;
static uint32_t news_max; /* set it before open_pipeline(), as the next */
static size_t counters_max;
static const struct ft_partial_origin *origin;                 /* of a member of a group */
static struct ft_partials *partials;                           /* of its aggregator */
static uint32_t gap_leaf = UINT32_MAX, gap_spine = UINT32_MAX; /* no link; UINT32_MAX: all */
static struct ft_writer out;
static struct ft_writer kept; /* what the history gets */

static inline void on_record(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    ck_assert_int_eq(ft_record_to_json(record, &out), 0);
    ft_write_u8(&out, '\n');
}

static inline void on_kept(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    ck_assert_int_eq(ft_record_to_json(record, &kept), 0);
    ft_write_u8(&kept, '\n');
}

static inline void open_pipeline(uint32_t leaves, uint32_t spines, uint32_t hosts)
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
                   .victims_max = 32,
                   .keep = {on_kept, NULL},
                   .origin = origin,
                   .partials = partials},
        .news_max = news_max,
        .counters_max = counters_max,
        .grace_ms = 3000,
        .events_max = 100,
        .sources_max = 100,
        .source_id = "test",
    };
    struct ft_emitter emitter = {on_record, NULL};

    ft_writer_init(&out, 64 << 20);
    ft_writer_init(&kept, 64 << 20);
    pipeline = ft_pipeline_new(
        &config, leafspine_without(leaves, spines, hosts, gap_leaf, gap_spine), &emitter);
    ck_assert_ptr_nonnull(pipeline);
}

static inline void close_pipeline(void)
{
    ft_pipeline_free(pipeline);
    ft_writer_free(&out);
    ft_writer_free(&kept);
}

/* Gives the flow leaf -> other leaf over a spine a rate for one window, sampled at the leaf. */
static inline void observe(uint16_t sport, uint32_t leaf, uint32_t spine, uint64_t bps,
                           uint32_t samples, int64_t ms, Fabrictrace__Fate fate)
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

/* The account of a poller: so many samples until now, of which it thinned out so many. */
static inline void account(const char *source, uint64_t received, uint64_t thinned, int64_t ms)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Loss loss = FABRICTRACE__LOSS__INIT;
    Fabrictrace__Stage stage = FABRICTRACE__STAGE__INIT, *stages[] = {&stage};
    Fabrictrace__Drop drop = FABRICTRACE__DROP__INIT, *drops[] = {&drop};

    drop.reason = (char *)(uintptr_t) "thinned";
    drop.has_count = stage.has_received = loss.has_time_ms = true;
    drop.count = thinned;
    stage.name = stage.unit = (char *)(uintptr_t) "samples";
    stage.received = received;
    stage.n_drops = thinned > 0;
    stage.drops = drops;
    loss.program = (char *)(uintptr_t) "fabrictrace-switchpoll";
    loss.source = (char *)(uintptr_t)source;
    loss.time_ms = (uint64_t)ms;
    loss.n_stages = 1;
    loss.stages = stages;
    record.kind_case = FABRICTRACE__RECORD__KIND_LOSS;
    record.loss = &loss;
    ft_pipeline_record(pipeline, &record, ms);
}

/* Closes the window of `ms`, in slices as small as can be. */
static inline void close_window(int64_t ms)
{
    int64_t due = ms / WINDOW_MS * WINDOW_MS + WINDOW_MS + 3000;

    while (ft_pipeline_advance(pipeline, due, 1))
        ;
}

/* The first line that holds both of these texts; NULL when none does. */
static inline const char *line_of(struct ft_writer *from, const char *a, const char *b)
{
    static char line[65536];
    const char *at, *end;

    ft_write_u8(from, 0);
    from->len--;
    for (at = (const char *)from->bytes; (end = strchr(at, '\n')); at = end + 1) {
        size_t n = (size_t)(end - at);

        ck_assert_uint_lt(n, sizeof(line));
        memcpy(line, at, n);
        line[n] = '\0';
        if (strstr(line, a) && strstr(line, b))
            return line;
    }
    return NULL;
}

static inline const char *line_with(const char *a, const char *b)
{
    return line_of(&out, a, b);
}

static inline double number(const char *line, const char *member)
{
    char quoted[64];
    const char *at;

    snprintf(quoted, sizeof(quoted), "\"%s\":", member);
    ck_assert_msg(line != NULL, "no line for %s", member);
    at = strstr(line, quoted);
    ck_assert_msg(at != NULL, "%s is not in %s", member, line);
    return strtod(at + strlen(quoted), NULL);
}

/* As observe(), of a tenth of a window. */
static inline void observe_second(uint16_t sport, uint32_t spine, uint32_t samples, int64_t ms)
{
    observe(sport, 0, spine, samples * 8000, samples, ms, 0);
}

static inline void run_until(int64_t ms)
{
    while (ft_pipeline_advance(pipeline, ms, UINT32_MAX))
        ;
}

#endif
