// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdio.h>

#include "daemon/join/join.h"
#include "tests/unit/join_rig.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define WINDOW_MS 10000
#define START_MS  (100 * (int64_t)WINDOW_MS)

static struct ft_topology *t;
static struct ft_join *join;
static unsigned judged, moved;

static void on_judged(void *arg, struct ft_flow *flow)
{
    (void)arg;
    (void)flow;
    judged++;
}

static void on_moved(void *arg, struct ft_flow *flow, const struct ft_path *before, int64_t now_ms)
{
    (void)arg;
    (void)now_ms;
    ck_assert_uint_ne(before->hops[0].out, flow->path.hops[0].out);
    moved++;
}

static void open_join_within(size_t flows_max, size_t beside_max)
{
    struct ft_join_config config = {.flows_max = flows_max,
                                    .beside_max = beside_max,
                                    .window_ms = WINDOW_MS,
                                    .evidence_ms = 30000,
                                    .idle_ms = 60000,
                                    .trust_topology = true,
                                    .policy = {.hold_down_ms = 2000, .tolerance_ms = 2000}};
    struct ft_join_hooks hooks = {.judged = on_judged, .moved = on_moved};

    judged = moved = 0;
    t = leafspine(4, 4, 2);
    join = ft_join_new(&config, t, &hooks);
    ck_assert_ptr_nonnull(join);
}

static void open_join(size_t flows_max)
{
    open_join_within(flows_max, 0);
}

static void close_join(void)
{
    ft_join_free(join);
    ft_topology_free(t);
}

static struct ft_tuple tuple(uint16_t sport)
{
    return (struct ft_tuple){.src = leafspine_host_ip(0, 0),
                             .dst = leafspine_host_ip(2, 1),
                             .sport = sport,
                             .dport = FT_ROCE_PORT,
                             .proto = FT_PROTO_UDP};
}

/* A flow seen at leaf0, leaving for a spine. */
static struct ft_observation at_leaf(uint16_t sport, uint32_t spine, int64_t ms)
{
    return (struct ft_observation){.tuple = tuple(sport),
                                   .agent = leafspine_switch_ip(0),
                                   .in_ifindex = 1,
                                   .out_ifindex = 100 + spine,
                                   .first_ms = ms,
                                   .last_ms = ms,
                                   .samples = 4,
                                   .data_samples = 4,
                                   .bytes = 4000};
}

static struct ft_host_report by_source(uint16_t sport, int64_t end_ms, uint64_t bytes)
{
    return (struct ft_host_report){.tuple = tuple(sport),
                                   .time_ms = end_ms,
                                   .interval_ms = 2000,
                                   .sending = true,
                                   .host = "h0-0",
                                   .bytes = bytes,
                                   .data_packets = 1,
                                   .qp_local = FT_NONE,
                                   .qp_remote = 24,
                                   .tuple_source = 1};
}

static void age_all(uint32_t window, int64_t now_ms)
{
    for (uint32_t i = 0; i < ft_join_limit(join); i++)
        if (ft_join_at(join, i))
            ft_join_age(join, ft_join_at(join, i), window, now_ms);
}

START_TEST(both_sides_meet_on_the_tuple)
{
    struct ft_observation o = at_leaf(50000, 2, START_MS + 100);
    struct ft_host_report r = by_source(50000, START_MS + 4000, 777);
    struct ft_flow *flow;

    open_join(100);
    ck_assert_int_eq(join_observe(join, &o), FT_JOIN_OK);
    ck_assert_int_eq(ft_join_report(join, &r), FT_JOIN_OK);
    ck_assert_uint_eq(ft_join_flows(join), 1);
    flow = ft_join_find(join, &o.tuple);
    ck_assert_int_eq(flow->state, FT_PATH_RESOLVED);
    ck_assert_int_eq(flow->role, FT_ROLE_DATA);
    ck_assert_uint_eq(flow->path.hop_count, 3);
    ck_assert_str_eq(ft_topology_port(t, flow->path.hops[0].out)->name, "up2");
    ck_assert_str_eq(ft_flow_host(flow)->src_host, "h0-0");
    ck_assert_uint_eq(ft_flow_host(flow)->qp_remote, 24);
    ck_assert_uint_eq(judged, 1);
    age_all(100, START_MS + WINDOW_MS);
    ck_assert_uint_eq(flow->bytes, 777);
    ck_assert_int_eq(flow->bytes_by, FT_RATE_HOST);
    close_join();
}
END_TEST

/* A path that was published without its owner is published again once that is told. */
START_TEST(a_new_owner_is_news)
{
    struct ft_host_report r = by_source(50000, START_MS + 2000, 0);
    struct ft_flow *flow;

    open_join(100);
    ck_assert_int_eq(ft_join_report(join, &r), FT_JOIN_OK);
    flow = ft_join_find(join, &r.tuple);
    flow->published = 1;
    r.pid = 4121;
    r.comm = "train.py";
    ck_assert_int_eq(ft_join_report(join, &r), FT_JOIN_OK);
    ck_assert_uint_eq(flow->published, 0);
    flow->published = 1;
    ck_assert_int_eq(ft_join_report(join, &r), FT_JOIN_OK);
    ck_assert_uint_eq(flow->published, 1);
    close_join();
}
END_TEST

START_TEST(windows_take_what_is_theirs)
{
    struct ft_observation now = at_leaf(1, 0, START_MS + 100);
    struct ft_observation next = at_leaf(1, 0, START_MS + WINDOW_MS + 100);
    struct ft_observation after = at_leaf(1, 0, START_MS + 2 * WINDOW_MS + 100);
    const struct ft_join_stats *stats;
    struct ft_flow *flow;

    open_join(100);
    ck_assert_int_eq(join_observe(join, &now), FT_JOIN_OK);
    ck_assert_int_eq(join_observe(join, &next), FT_JOIN_OK);
    /* Under way for longer: the older window is still open. */
    ck_assert_int_eq(join_observe(join, &now), FT_JOIN_OK);
    ck_assert_int_eq(join_observe(join, &after), FT_JOIN_AHEAD);
    flow = ft_join_find(join, &now.tuple);
    ft_join_seal(join);
    ck_assert_int_eq(join_observe(join, &now), FT_JOIN_LATE);
    ck_assert_int_eq(join_observe(join, &next), FT_JOIN_OK);
    ck_assert_int_eq(join_observe(join, &after), FT_JOIN_AHEAD);
    age_all(100, START_MS + WINDOW_MS);
    ck_assert_uint_eq(flow->bytes, 8000);
    ck_assert_uint_eq(flow->samples, 8);
    ft_join_close(join);
    ck_assert_int_eq(join_observe(join, &after), FT_JOIN_OK);
    ft_join_seal(join);
    age_all(101, START_MS + 2 * WINDOW_MS);
    ck_assert_uint_eq(flow->bytes, 8000);
    ck_assert_uint_eq(flow->bytes_window, 101);
    ft_join_close(join);
    ft_join_seal(join);
    age_all(102, START_MS + 3 * WINDOW_MS);
    ck_assert_uint_eq(flow->bytes, 4000);
    stats = ft_join_stats(join);
    ck_assert_uint_eq(stats->observations[FT_JOIN_OK], 5);
    ck_assert_uint_eq(stats->observations[FT_JOIN_LATE], 1);
    ck_assert_uint_eq(stats->observations[FT_JOIN_AHEAD], 2);
    close_join();
}
END_TEST

START_TEST(a_report_over_the_edge_is_divided)
{
    struct ft_host_report r = by_source(1, START_MS + WINDOW_MS - 1000, 100);
    struct ft_host_report over = by_source(1, START_MS + WINDOW_MS + 500, 2000);
    struct ft_flow *flow;

    open_join(100);
    ck_assert_int_eq(ft_join_report(join, &r), FT_JOIN_OK);
    ck_assert_int_eq(ft_join_report(join, &over), FT_JOIN_OK);
    flow = ft_join_find(join, &r.tuple);
    /* 1.5 of its 2 seconds lie in the first window. */
    ck_assert_uint_eq(ft_flow_host(flow)->sent_bytes[0], 1600);
    ck_assert_uint_eq(ft_flow_host(flow)->sent_bytes[1], 500);
    ck_assert_int_eq(flow->state, FT_PATH_UNRESOLVED);
    ck_assert_int_eq(flow->reason, FT_REASON_NO_SAMPLES);
    close_join();
}
END_TEST

/* Half a minute's bytes are not those of the 10 s that its report ends in. */
START_TEST(a_report_of_many_windows_is_no_burst)
{
    struct ft_host_report r = by_source(1, START_MS + WINDOW_MS + 5000, 30000);
    struct ft_host_report opens = by_source(2, START_MS + 1000, 1);
    struct ft_flow *flow;

    open_join(100);
    r.interval_ms = 30000;
    ck_assert_int_eq(ft_join_report(join, &opens), FT_JOIN_OK);
    ck_assert_int_eq(ft_join_report(join, &r), FT_JOIN_OK);
    flow = ft_join_find(join, &r.tuple);
    ck_assert_uint_eq(ft_flow_host(flow)->sent_bytes[0], 10000);
    ck_assert_uint_eq(ft_flow_host(flow)->sent_bytes[1], 5000);
    /* The window before is closed by now, and its part comes late. */
    ft_join_seal(join);
    ft_join_close(join);
    r.tuple.sport = 3;
    ck_assert_int_eq(ft_join_report(join, &r), FT_JOIN_OK);
    flow = ft_join_find(join, &r.tuple);
    ck_assert_uint_eq(ft_flow_host(flow)->sent_bytes[0], 0);
    ck_assert_uint_eq(ft_flow_host(flow)->sent_bytes[1], 5000);
    close_join();
}
END_TEST

/* Refreshed without traffic: its last rate was the host's, and stays that. */
START_TEST(a_quiet_report_does_not_change_whose_rate_it_is)
{
    struct ft_host_report r = by_source(1, START_MS + 4000, 777);
    struct ft_host_report quiet = by_source(1, START_MS + WINDOW_MS + 4000, 0);
    struct ft_flow *flow;

    open_join(100);
    ck_assert_int_eq(ft_join_report(join, &r), FT_JOIN_OK);
    ck_assert_int_eq(ft_join_report(join, &quiet), FT_JOIN_OK);
    flow = ft_join_find(join, &r.tuple);
    age_all(100, START_MS + WINDOW_MS);
    ck_assert_int_eq(flow->bytes_by, FT_RATE_HOST);
    age_all(101, START_MS + 2 * WINDOW_MS);
    ck_assert_uint_eq(flow->bytes, 777);
    ck_assert_uint_eq(flow->bytes_window, 100);
    ck_assert_int_eq(flow->bytes_by, FT_RATE_HOST);
    close_join();
}
END_TEST

/* Who takes a flow over knows its path at once, by samples of windows that are closed. They count
 * in no window, and what another daemon said of the path is not said again. */
START_TEST(what_is_read_back_is_evidence_alone)
{
    struct ft_observation old = at_leaf(1, 2, START_MS + 100);
    struct ft_observation older = at_leaf(2, 2, START_MS - 40000);
    struct ft_observation now = at_leaf(1, 2, START_MS + 3 * WINDOW_MS);
    uint32_t port;
    struct ft_flow *flow;

    open_join(100);
    ft_join_open(join, 102);
    ck_assert_int_eq(join_observe(join, &old), FT_JOIN_LATE);
    ft_join_recall(join, true);
    ck_assert_int_eq(join_observe(join, &old), FT_JOIN_OK);
    ck_assert_int_eq(join_observe(join, &older), FT_JOIN_LATE);
    flow = ft_join_find(join, &old.tuple);
    ck_assert_ptr_nonnull(flow);
    ck_assert_int_eq(flow->state, FT_PATH_RESOLVED);
    ck_assert_uint_eq(judged, 0);
    port = flow->path.hops[0].out;
    ck_assert_uint_eq(ft_join_marks(join, port)->samples[0], 0);
    ft_join_recall(join, false);
    ck_assert_int_eq(join_observe(join, &old), FT_JOIN_LATE);
    ck_assert_int_eq(join_observe(join, &now), FT_JOIN_OK);
    ft_join_seal(join);
    age_all(102, START_MS + 3 * WINDOW_MS);
    ck_assert_uint_eq(flow->bytes, 0);
    ft_join_close(join);
    ft_join_seal(join);
    age_all(103, START_MS + 4 * WINDOW_MS);
    ck_assert_uint_eq(flow->bytes, 4000);
    ck_assert_uint_eq(flow->samples, 4);
    ck_assert_uint_eq(ft_join_marks(join, port)->samples[1], 4);
    close_join();
}
END_TEST

START_TEST(a_move_is_reported_once)
{
    open_join(100);
    for (int64_t ms = 0; ms < 9000; ms += 200) {
        struct ft_observation o = at_leaf(1, ms < 3000 ? 1 : 3, START_MS + ms);

        ck_assert_int_eq(join_observe(join, &o), FT_JOIN_OK);
    }
    ck_assert_uint_eq(moved, 1);
    close_join();
}
END_TEST

START_TEST(full_tables_refuse_and_count)
{
    open_join(10);
    for (uint16_t i = 0; i < 15; i++) {
        struct ft_observation o = at_leaf(i, 0, START_MS);

        ck_assert_int_eq(join_observe(join, &o), i < 10 ? FT_JOIN_OK : FT_JOIN_TABLE_FULL);
    }
    ck_assert_uint_eq(ft_join_stats(join)->observations[FT_JOIN_TABLE_FULL], 5);
    /* Idle flows make room again. */
    age_all(100, START_MS + 60000);
    ck_assert_uint_eq(ft_join_flows(join), 0);
    ck_assert_uint_eq(ft_join_stats(join)->flows_removed, 10);
    close_join();
}
END_TEST

/* A queue pair that sends nothing is there as long as its host lists it, and keeps its age. */
START_TEST(an_idle_queue_pair_stays_while_it_is_listed)
{
    struct ft_host_report r = by_source(1, START_MS + 2000, 0);
    struct ft_flow *flow;

    open_join(10);
    for (int64_t ms = START_MS + 2000; ms < START_MS + 300000; ms += 60000) {
        ft_join_open(join, ft_join_window_of(join, ms - 1));
        r.time_ms = ms;
        ck_assert_int_eq(ft_join_report(join, &r), FT_JOIN_OK);
        age_all(ft_join_window_of(join, ms), ms + 60000);
        ck_assert_uint_eq(ft_join_flows(join), 1);
    }
    flow = ft_join_find(join, &r.tuple);
    ck_assert_int_eq(flow->first_ms, START_MS + 2000);
    age_all(ft_join_window_of(join, START_MS + 400000), START_MS + 400000);
    ck_assert_uint_eq(ft_join_flows(join), 0);
    close_join();
}
END_TEST

START_TEST(strangers_are_kept_and_counted)
{
    struct ft_observation o = at_leaf(1, 0, START_MS);
    struct ft_flow *flow;

    open_join(10);
    o.agent.b[15] = 250;
    ck_assert_int_eq(join_observe(join, &o), FT_JOIN_OK);
    flow = ft_join_find(join, &o.tuple);
    ck_assert_int_eq(flow->reason, FT_REASON_UNKNOWN_SWITCH);
    ck_assert_uint_eq(ft_join_stats(join)->unknown_switch, 1);
    /* A port that the topology lacks. */
    o = at_leaf(2, 0, START_MS);
    o.out_ifindex = 999;
    ck_assert_int_eq(join_observe(join, &o), FT_JOIN_OK);
    ck_assert_uint_eq(ft_join_stats(join)->unknown_port, 1);
    ck_assert_int_eq(ft_join_find(join, &o.tuple)->state, FT_PATH_PARTIAL);
    close_join();
}
END_TEST

static void take_over(struct ft_topology *other)
{
    ck_assert_int_eq(ft_join_set_topology(join, other, 0), 0);
    while (ft_join_judge_step(join, 1))
        ck_assert(ft_join_judging_all(join));
    ck_assert(!ft_join_judging_all(join));
    ft_topology_free(t);
    t = other;
}

/* The link that it had before goes later: it is where it moved to. */
START_TEST(who_moved_before_stays)
{
    struct ft_observation o;

    open_join(10);
    for (int64_t ms = START_MS; ms < START_MS + 9000; ms += 500) {
        o = at_leaf(1, ms < START_MS + 3000, ms);
        ck_assert_int_eq(join_observe(join, &o), FT_JOIN_OK);
    }
    take_over(leafspine_without(4, 4, 2, 0, 1));
    ck_assert_int_eq(ft_join_find(join, &o.tuple)->state, FT_PATH_RESOLVED);
    close_join();
}
END_TEST

START_TEST(another_topology_takes_over)
{
    struct ft_observation o = at_leaf(1, 2, START_MS);
    struct ft_topology *wider = leafspine(4, 8, 2);
    struct ft_flow *flow;

    open_join(10);
    ck_assert_int_eq(join_observe(join, &o), FT_JOIN_OK);
    take_over(wider);
    flow = ft_join_find(join, &o.tuple);
    ck_assert_int_eq(flow->state, FT_PATH_RESOLVED);
    ck_assert_str_eq(ft_topology_port(wider, flow->path.hops[0].out)->name, "up2");
    ck_assert_uint_eq(moved, 0);
    close_join();
}
END_TEST

/* Flows are judged one by one; whoever looks meanwhile finds no path over what is gone. */
START_TEST(no_flow_keeps_a_path_that_is_gone)
{
    struct ft_observation here = at_leaf(1, 1, START_MS), there = at_leaf(2, 3, START_MS);
    struct ft_topology *narrower = leafspine(4, 2, 2);
    struct ft_flow *stays, *goes;

    open_join(10);
    ck_assert_int_eq(join_observe(join, &here), FT_JOIN_OK);
    ck_assert_int_eq(join_observe(join, &there), FT_JOIN_OK);
    stays = ft_join_find(join, &here.tuple);
    goes = ft_join_find(join, &there.tuple);
    ck_assert_int_eq(stays->state, FT_PATH_RESOLVED);
    ck_assert_int_eq(goes->state, FT_PATH_RESOLVED);
    ck_assert_int_eq(ft_join_set_topology(join, narrower, 0), 0);
    ck_assert(ft_join_judging_all(join));
    ck_assert_int_eq(stays->state, FT_PATH_RESOLVED);
    ck_assert_str_eq(ft_topology_port(narrower, stays->path.hops[0].out)->name, "up1");
    ck_assert_int_eq(goes->state, FT_PATH_UNRESOLVED);
    ck_assert_uint_eq(goes->path.hop_count, 0);
    ck_assert(ft_join_judge_step(join, 1));
    ck_assert(!ft_join_judge_step(join, UINT32_MAX));
    ck_assert_int_eq(stays->state, FT_PATH_RESOLVED);
    ck_assert_int_eq(goes->state, FT_PATH_UNRESOLVED);
    ft_topology_free(t);
    t = narrower;
    close_join();
}
END_TEST

/* Closes the lowest window as the daemon does. */
static void close_window(void)
{
    uint32_t window = ft_join_window(join);

    ft_join_seal(join);
    age_all(window, ((int64_t)window + 1) * WINDOW_MS);
    ft_join_close(join);
}

/* Of a window in which its host gave a flow to another job it is of neither. */
START_TEST(another_job_is_noted)
{
    struct ft_host_report r = by_source(1, START_MS + 1000, 100);
    const struct ft_flow_host *host;

    open_join(10);
    r.job = "one";
    ck_assert_int_eq(ft_join_report(join, &r), FT_JOIN_OK);
    host = ft_flow_host(ft_join_find(join, &r.tuple));
    r.time_ms += 1000;
    ck_assert_int_eq(ft_join_report(join, &r), FT_JOIN_OK);
    ck_assert_int_eq(host->other_job_ms, 0);
    r.time_ms += 1000;
    r.job = "two";
    r.paired_by = 1;
    ck_assert_int_eq(ft_join_report(join, &r), FT_JOIN_OK);
    ck_assert_int_eq(host->other_job_ms, START_MS + 3000);
    ck_assert_ptr_nonnull(ft_join_withdraw(join, &r.tuple));
    ck_assert_int_eq(host->other_job_ms, START_MS + 3000);
    r.time_ms += 1000;
    ck_assert_int_eq(ft_join_report(join, &r), FT_JOIN_OK);
    ck_assert_int_eq(host->other_job_ms, START_MS + 4000);
    close_join();
}
END_TEST

/* Each job has a name of its own, and there is no end of jobs. */
START_TEST(names_of_jobs_that_are_over_make_room)
{
    struct ft_host_report r = by_source(1, START_MS + 2000, 100), steady = by_source(2, 0, 100);
    struct ft_flow *flow = NULL, *stays = NULL;
    char job[32];

    open_join(10);
    r.job = job;
    steady.host = "h0-1";
    steady.job = "always";
    for (uint32_t window = 0; window < 20; window++) {
        r.time_ms = steady.time_ms = START_MS + window * WINDOW_MS + 2000;
        ck_assert_int_eq(ft_join_report(join, &steady), FT_JOIN_OK);
        for (uint32_t i = 0; i < 10000; i++) {
            snprintf(job, sizeof(job), "job %u of %u", i, window);
            ck_assert_int_eq(ft_join_report(join, &r), FT_JOIN_OK);
            flow = ft_join_find(join, &r.tuple);
            ck_assert_ptr_nonnull(ft_flow_host(flow)->job);
            ck_assert_str_eq(ft_flow_host(flow)->job, job);
        }
        close_window();
        ck_assert_str_eq(ft_flow_host(flow)->job, job);
        stays = ft_join_find(join, &steady.tuple);
        ck_assert_str_eq(ft_flow_host(stays)->job, "always");
        ck_assert_str_eq(ft_flow_host(stays)->src_host, "h0-1");
        ck_assert_str_eq(ft_flow_host(flow)->src_host, "h0-0");
    }
    close_join();
}
END_TEST

/* Congestion notifications alone are a role of their own, which any acknowledgement ends, and data
 * for good. */
START_TEST(notifications_alone_are_a_role)
{
    static const struct {
        uint32_t data, ack, cnp;
        enum ft_role role;
    } steps[] = {{0, 0, 0, FT_ROLE_UNKNOWN}, {0, 2, 2, FT_ROLE_CNP}, {0, 1, 1, FT_ROLE_CNP},
                 {0, 3, 2, FT_ROLE_ACK},     {0, 2, 2, FT_ROLE_ACK}, {1, 2, 2, FT_ROLE_DATA},
                 {0, 2, 2, FT_ROLE_DATA},    {0, 2, 0, FT_ROLE_DATA}};

    open_join(100);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct ft_observation o = at_leaf(1, 0, START_MS + (int64_t)i);
        struct ft_tuple key = tuple(1);

        o.data_samples = steps[i].data;
        o.ack_samples = steps[i].ack;
        o.cnp_samples = steps[i].cnp;
        ck_assert_int_eq(join_observe(join, &o), FT_JOIN_OK);
        ck_assert_int_eq(ft_join_find(join, &key)->role, steps[i].role);
    }
    ck_assert(ft_role_answers(FT_ROLE_CNP) && ft_role_answers(FT_ROLE_ACK));
    ck_assert(!ft_role_answers(FT_ROLE_DATA) && !ft_role_answers(FT_ROLE_UNKNOWN));
    close_join();
}
END_TEST

/* Flows that are seen in ever more places, by ever more hosts: their lists have a bound all
 * together, and places that are known go on counting. */
START_TEST(what_hangs_on_flows_has_a_bound)
{
    enum { FLOWS = 50, BESIDE = 8192 };
    size_t before, refused = 0;

    open_join_within(FLOWS, BESIDE);
    before = ft_join_bytes(join);
    for (uint32_t place = 0; place < 100; place++)
        for (uint16_t i = 0; i < FLOWS; i++) {
            struct ft_observation o = at_leaf(i, 0, START_MS + 100);

            o.source = place;
            refused += join_observe(join, &o) == FT_JOIN_TABLE_FULL;
        }
    ck_assert_uint_gt(refused, 0);
    ck_assert_uint_eq(refused, ft_join_stats(join)->observations[FT_JOIN_TABLE_FULL]);
    for (uint16_t i = 0; i < FLOWS; i++) {
        struct ft_observation o = at_leaf(i, 0, START_MS + 200);
        struct ft_host_report r = by_source(i, START_MS + 4000, 777);

        ck_assert_int_eq(join_observe(join, &o), FT_JOIN_OK);
        ck_assert_int_eq(ft_join_report(join, &r), FT_JOIN_TABLE_FULL);
    }
    /* The table has a slab of flows; a list that was let in may be the last. */
    ck_assert_uint_le(ft_join_bytes(join) - before, 1024 * 408 + BESIDE + 128 * 56 + 64);
    /* What goes makes room. */
    age_all(101, START_MS + 200000);
    ck_assert_uint_eq(ft_join_flows(join), 0);
    ck_assert_uint_le(ft_join_bytes(join) - before, 1024 * 408 + 64);
    close_join();
}
END_TEST

/* Where samples say that a cable is another one, what its stated other end counts is not of it. */
START_TEST(a_contradicted_link_has_no_other_end)
{
    struct join_rig rig;
    uint32_t up, down;

    join_rig_open(&rig);
    up = join_rig_port(&rig, "leaf0", "up0");
    down = join_rig_port(&rig, "spine0", "down0");
    ck_assert_uint_eq(ft_join_other_end(rig.join, up), down);
    ck_assert_uint_eq(ft_join_other_end(rig.join, join_rig_port(&rig, "leaf0", "host0")), FT_NONE);
    ft_join_contradict_link(rig.join, up, true);
    ck_assert_uint_eq(ft_join_other_end(rig.join, up), FT_NONE);
    ck_assert_uint_eq(ft_join_other_end(rig.join, down), FT_NONE);
    ft_join_contradict_link(rig.join, up, false);
    ck_assert_uint_eq(ft_join_other_end(rig.join, down), up);
    join_rig_close(&rig);
}
END_TEST

FT_UNIT_MAIN("join", a_quiet_report_does_not_change_whose_rate_it_is, both_sides_meet_on_the_tuple,
             an_idle_queue_pair_stays_while_it_is_listed, names_of_jobs_that_are_over_make_room,
             a_contradicted_link_has_no_other_end, a_report_of_many_windows_is_no_burst,
             what_is_read_back_is_evidence_alone, a_report_over_the_edge_is_divided,
             no_flow_keeps_a_path_that_is_gone, what_hangs_on_flows_has_a_bound,
             notifications_alone_are_a_role, strangers_are_kept_and_counted, another_job_is_noted,
             full_tables_refuse_and_count, windows_take_what_is_theirs, a_move_is_reported_once,
             another_topology_takes_over, who_moved_before_stays, a_new_owner_is_news)
