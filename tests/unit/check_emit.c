// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/publish/emit.h"

#include <string.h>

#include "lib/base/writer.h"
#include "proto/record.h"
#include "tests/unit/join_rig.h"

static struct join_rig rig;
static struct ft_writer json;

/* What is read of the newest record. */
static struct {
    unsigned count;
    Fabrictrace__State state;
    size_t hops;
    bool has_rate, has_time, has_candidates, has_since;
    uint64_t rate, lo, hi, time_ms, candidates, samples;
    double share;
    Fabrictrace__RateSource source;
} path;

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    const Fabrictrace__Path *p = record->path;

    (void)arg;
    ck_assert_int_eq(record->kind_case, FABRICTRACE__RECORD__KIND_PATH);
    ft_writer_reset(&json);
    ck_assert_int_eq(ft_record_to_json(record, &json), 0);
    ft_write_u8(&json, 0);
    path.count++;
    path.state = p->state;
    path.hops = p->n_hops;
    path.has_rate = p->has_rate_bps && p->has_rate_lo_bps && p->has_rate_hi_bps;
    path.rate = p->rate_bps;
    path.lo = p->rate_lo_bps;
    path.hi = p->rate_hi_bps;
    path.source = p->rate_source;
    path.has_time = p->has_time_ms;
    path.time_ms = p->time_ms;
    path.has_since = p->has_path_since_ms;
    path.has_candidates = p->has_candidates;
    path.candidates = p->candidates;
    path.samples = p->n_hops ? p->hops[0]->samples : 0;
    path.share = p->n_hops ? p->hops[0]->share : 0;
}

static void setup(void)
{
    memset(&path, 0, sizeof(path));
    ft_writer_init(&json, 1 << 20);
    join_rig_open(&rig);
}

static void teardown(void)
{
    join_rig_close(&rig);
    ft_writer_free(&json);
}

/* The record of a flow for the window that is `later` after the first. */
static void emit(struct ft_flow *flow, int64_t later)
{
    const struct ft_emitter emitter = {on_record, NULL};
    const struct ft_span span = {JOIN_RIG_START_MS + later * JOIN_RIG_WINDOW_MS,
                                 JOIN_RIG_END_MS + later * JOIN_RIG_WINDOW_MS};

    ft_emit_path(&emitter, rig.join, flow, &span);
}

static bool says(const char *text)
{
    return strstr((const char *)json.bytes, text) != NULL;
}

START_TEST(a_rate_by_samples_has_an_interval)
{
    struct ft_flow flow = {.bytes = 1250000, .samples = 400};
    struct ft_rate rate = ft_flow_rate(&flow, 10000);

    /* Quantiles of gamma(400.5): 196 / sqrt(400) = 9.8 percent of 1 Mb/s, and somewhat higher. */
    ck_assert_uint_eq(rate.bps, 1000000);
    ck_assert_double_eq_tol((double)rate.lo_bps, 905570, 100);
    ck_assert_double_eq_tol((double)rate.hi_bps, 1101670, 100);
    /* Of gamma(3.5), for three samples: 0.845 and 8.006. */
    flow.samples = 3;
    rate = ft_flow_rate(&flow, 10000);
    ck_assert_double_eq_tol((double)rate.lo_bps, 0.845e6 / 3, 10000);
    ck_assert_double_eq_tol((double)rate.hi_bps, 8.006e6 / 3, 10000);
    /* Seconds that the exporter held them add to it, and leave it 0 at least. */
    flow.lag_ms = 500;
    ck_assert_uint_lt(ft_flow_rate(&flow, 10000).lo_bps, rate.lo_bps);
    flow.lag_ms = 511;
    ck_assert_uint_eq(ft_flow_rate(&flow, 1000).lo_bps, 0);
    flow.lag_ms = 0;
    /* A host counts. */
    flow.bytes_by = FT_RATE_HOST;
    rate = ft_flow_rate(&flow, 10000);
    ck_assert_uint_eq(rate.lo_bps, 1000000);
    ck_assert_uint_eq(rate.hi_bps, 1000000);
}
END_TEST

/* 10 samples of one packet in 1000, then 100 of one in 100, of frames of 1000 bytes: 20,000
 * packets, whose standard error is sqrt(10 x 1000^2 + 100 x 100^2) = 3317, or 16.6 %. By the number
 * of samples it would be 9.5 %. */
START_TEST(an_interval_is_as_wide_as_both_rates_of_a_window_make_it)
{
    struct ft_observation o;
    struct ft_rate rate;

    join_rig_open(&rig);
    o = join_rig_seen(0xc123, 0, 0, 10);
    o.packets = 10000;
    o.bytes = 10000000;
    join_rig_take(&rig, &o);
    o.samples = o.data_samples = 100;
    o.first_ms += 5000;
    o.last_ms = o.first_ms + 900;
    join_rig_take(&rig, &o);
    join_rig_seal(&rig);
    rate = ft_flow_rate(join_rig_flow(&rig, 0xc123), JOIN_RIG_WINDOW_MS);
    ck_assert_uint_eq(rate.bps, 16000000);
    ck_assert_double_eq_tol((double)(rate.hi_bps - rate.lo_bps) / 16e6, 2 * 1.96 * 0.166, 0.02);
    join_rig_close(&rig);
}
END_TEST

START_TEST(a_resolved_flow_has_all_hops)
{
    setup();
    join_rig_sample(&rig, 50000, 1, 200000000, 400);
    join_rig_seal(&rig);
    emit(join_rig_flow(&rig, 50000), 0);
    ck_assert_int_eq(path.state, FABRICTRACE__STATE__STATE_RESOLVED);
    ck_assert_uint_eq(path.hops, 3);
    ck_assert(says("{\"switch\":\"leaf0\",\"in\":\"host0\",\"out\":\"up1\",\"samples\":400,"
                   "\"share\":1"));
    ck_assert(says("{\"switch\":\"spine1\",\"in\":\"down0\",\"out\":\"down1\",\"samples\":0,"
                   "\"evidence\":\"neighbour\"}"));
    ck_assert(says("\"src_host\":\"h0-0\",\"dst_host\":\"h1-0\""));
    ck_assert(says("\"role\":\"data\""));
    ck_assert(says("\"sport\":50000,\"dport\":4791"));
    ck_assert(path.has_since && path.has_time && path.has_rate);
    ck_assert_uint_eq(path.time_ms, JOIN_RIG_START_MS + 6000);
    ck_assert_uint_eq(path.rate, 200000000);
    ck_assert_int_eq(path.source, FABRICTRACE__RATE_SOURCE__RATE_SOURCE_SFLOW);
    /* A later window has no rate of this one. */
    emit(join_rig_flow(&rig, 50000), 1);
    ck_assert(!path.has_rate);
    ck_assert_uint_eq(path.time_ms, JOIN_RIG_START_MS + 6000);
    teardown();
}
END_TEST

START_TEST(a_partial_one_has_the_certain_hops_and_a_reason)
{
    struct ft_observation o = join_rig_seen(50000, 0, 200000000, 400);

    setup();
    o.agent = leafspine_switch_ip(1);
    o.in_ifindex = 0;
    o.out_ifindex = 1;
    join_rig_take(&rig, &o);
    emit(join_rig_flow(&rig, 50000), 0);
    ck_assert_int_eq(path.state, FABRICTRACE__STATE__STATE_PARTIAL);
    ck_assert(says("\"reason\":\"ambiguous\""));
    ck_assert(path.has_candidates);
    ck_assert_uint_eq(path.candidates, 2);
    ck_assert(!path.has_since);
    ck_assert(!says("spine"));
    ck_assert(says("\"switch\":\"leaf1\",\"out\":\"host0\""));
    teardown();
}
END_TEST

/* A later sample of a switch that nobody knew goes with the topology of then: what is left to speak
 * of is older. */
START_TEST(what_is_forgotten_dates_no_record)
{
    struct ft_observation o = join_rig_seen(50000, 0, 200000000, 400);
    struct ft_topology *next = leafspine(2, 2, 2);

    setup();
    o.agent = leafspine_switch_ip(1);
    o.in_ifindex = 0;
    o.out_ifindex = 1;
    join_rig_take(&rig, &o);
    o.agent = leafspine_switch_ip(200);
    o.first_ms = o.last_ms += 3000;
    join_rig_take(&rig, &o);
    ck_assert_int_eq(ft_join_set_topology(rig.join, next, 0), 0);
    ck_assert(!ft_join_judge_step(rig.join, UINT32_MAX));
    ft_topology_free(rig.t);
    rig.t = next;
    emit(join_rig_flow(&rig, 50000), 0);
    ck_assert_int_eq(path.state, FABRICTRACE__STATE__STATE_PARTIAL);
    ck_assert(says("\"switch\":\"leaf1\",\"out\":\"host0\""));
    ck_assert_uint_eq(path.time_ms, JOIN_RIG_START_MS + 6000);
    teardown();
}
END_TEST

/* A flow of hosts that no topology has goes by the names that its agent gives. */
START_TEST(strangers_have_the_names_of_their_agents)
{
    struct ft_host_report r = {.tuple = join_rig_tuple(50000),
                               .time_ms = JOIN_RIG_START_MS + 5000,
                               .interval_ms = 1000,
                               .sending = true,
                               .host = "gpu99",
                               .bytes = 1250000,
                               .data_packets = 1,
                               .qp_local = 17,
                               .qp_remote = FT_NONE,
                               .pid = 4242,
                               .comm = "train",
                               .job = "88",
                               .tuple_source = FABRICTRACE__TUPLE_SOURCE__TUPLE_SOURCE_COMPUTED};
    struct ft_flow *flow;

    setup();
    r.tuple.src = leafspine_host_ip(99, 0);
    ck_assert_int_eq(ft_join_report(rig.join, &r), FT_JOIN_OK);
    join_rig_seal(&rig);
    flow = ft_join_find(rig.join, &r.tuple);
    ck_assert_ptr_nonnull(flow);
    emit(flow, 0);
    ck_assert_int_eq(path.state, FABRICTRACE__STATE__STATE_UNRESOLVED);
    ck_assert(says("\"reason\":"));
    ck_assert(says("\"src_host\":\"gpu99\",\"dst_host\":\"h1-0\""));
    ck_assert(says("\"tuple_source\":\"computed\",\"qp\":{\"local\":17}"));
    ck_assert(says("\"pid\":4242,\"comm\":\"train\",\"job\":\"88\""));
    ck_assert(!path.has_time);
    ck_assert_int_eq(path.source, FABRICTRACE__RATE_SOURCE__RATE_SOURCE_HOST);
    ck_assert_uint_eq(path.rate, 1000000);
    ck_assert_uint_eq(path.lo, path.hi);
    teardown();
}
END_TEST

FT_UNIT_MAIN("emit", a_rate_by_samples_has_an_interval,
             an_interval_is_as_wide_as_both_rates_of_a_window_make_it, a_resolved_flow_has_all_hops,
             a_partial_one_has_the_certain_hops_and_a_reason, what_is_forgotten_dates_no_record,
             strangers_have_the_names_of_their_agents)
