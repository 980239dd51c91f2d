// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/inference/inference.h"

#include <math.h>
#include <string.h>

#include "daemon/publish/findings.h"
#include "lib/fabric/chance.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

/* Flows from leaf0 to leaf1, of which hosts tell their bytes and no samples come; a window after
 * the other is filled and closed. */
enum { SPINES = 4, HOSTS = 80, FIRST = 100 };
#define WINDOW_MS 10000

static struct ft_topology *t;
static struct ft_join *join;
static struct ft_counters *counters;
static struct ft_inference *inference;
static struct ft_random random_;
static uint64_t counted[SPINES];
static uint32_t window;
static int64_t counted_ms;
static uint32_t first_over; /* the spine of flow 0 */

static double uniform(void)
{
    return (double)(ft_random_next(&random_) >> 11) * 0x1p-53;
}

static struct ft_tuple tuple_of(uint32_t leaf, uint32_t i)
{
    return (struct ft_tuple){.src = leafspine_host_ip(leaf, i),
                             .dst = leafspine_host_ip(leaf ? 0 : 1, i),
                             .sport = (uint16_t)(50000 + i),
                             .dport = FT_ROCE_PORT,
                             .proto = FT_PROTO_UDP};
}

static void open_leaves(uint32_t leaves)
{
    const struct ft_join_config config = {.flows_max = 1000,
                                          .window_ms = WINDOW_MS,
                                          .evidence_ms = 30000,
                                          .idle_ms = 60000,
                                          .trust_topology = true,
                                          .policy = {.hold_down_ms = 2000, .tolerance_ms = 2000}};

    t = leafspine(leaves, SPINES, leaves > 2 ? 1 : HOSTS);
    join = ft_join_new(&config, t, &(struct ft_join_hooks){.arg = NULL});
    counters = ft_counters_new(1000, WINDOW_MS, t);
    inference = ft_inference_new(t);
    ck_assert(join && counters && inference);
    window = FIRST;
    ft_join_open(join, window);
    memset(counted, 0, sizeof(counted));
    random_ = (struct ft_random){5};
    counted_ms = 0;
    first_over = 0;
}

static void close_all(void)
{
    ft_inference_free(inference);
    ft_counters_free(counters);
    ft_join_free(join);
    ft_topology_free(t);
}

static void poll(uint32_t spine, int64_t ms)
{
    Fabrictrace__PortCounters c = FABRICTRACE__PORT_COUNTERS__INIT;
    struct ft_ip agent = leafspine_switch_ip(0);
    size_t len;

    c.has_agent = c.has_time_ms = c.has_ifindex = c.has_source = c.has_out_bytes = true;
    c.agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&agent, &len);
    c.agent.len = len;
    c.time_ms = (uint64_t)ms;
    c.ifindex = 100 + spine;
    c.source = FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SNMP;
    c.out_bytes = counted[spine];
    ck_assert_int_eq(ft_counters_take(counters, &c, ms), 0);
}

static void send(uint32_t leaf, uint32_t i, uint64_t bytes)
{
    const struct ft_host_report report = {.tuple = tuple_of(leaf, i),
                                          .time_ms = (int64_t)(window + 1) * WINDOW_MS - 1,
                                          .interval_ms = WINDOW_MS,
                                          .sending = true,
                                          .host = "host",
                                          .bytes = bytes,
                                          .data_packets = bytes / 4096,
                                          .qp_local = FT_NONE,
                                          .qp_remote = FT_NONE};

    ck_assert_int_eq(ft_join_report(join, &report), FT_JOIN_OK);
}

/* Flows of leaf0, but for the first flow i over spine i % SPINES; own: how much the rates vary by
 * themselves. */
static void fill(uint32_t flows, double own)
{
    double common = 0.5 + uniform();

    for (uint32_t i = 0; i < flows; i++) {
        uint64_t bytes = (uint64_t)(1e8 * common * (1 + own * (uniform() - 0.5)));

        counted[i ? i % SPINES : first_over] += bytes;
        send(0, i, bytes);
    }
}

/* The figures of the window before, and its close. */
static void close_window(bool polled, bool partial)
{
    int64_t end_ms = (int64_t)(window + 1) * WINDOW_MS;

    if (counted_ms == 0 && polled)
        for (uint32_t s = 0; s < SPINES; s++) {
            uint64_t now = counted[s];

            counted[s] = 0;
            poll(s, end_ms - WINDOW_MS);
            counted[s] = now;
        }
    for (uint32_t s = 0; polled && s < SPINES; s++)
        poll(s, end_ms);
    counted_ms = end_ms;
    ft_join_seal(join);
    ft_inference_begin(inference, window, end_ms - WINDOW_MS, partial);
    for (uint32_t i = 0; i < ft_join_limit(join); i++) {
        struct ft_flow *flow = ft_join_at(join, i);

        if (flow && ft_join_age(join, flow, window, end_ms) && flow->bytes_window == window)
            ft_inference_flow(inference, join, flow);
    }
    while (ft_inference_step(inference, join, counters))
        ;
    ft_join_close(join);
    window++;
}

static void run(uint32_t windows, uint32_t flows, double own, bool polled)
{
    for (uint32_t i = 0; i < windows; i++) {
        fill(flows, own);
        close_window(polled, false);
    }
}

static struct ft_inference_stats stats(void)
{
    struct ft_inference_stats s;

    ft_inference_stats(inference, &s);
    return s;
}

/* Each window of a leaf ended in one way, or is pending. */
static void check_windows(uint64_t windows)
{
    struct ft_inference_stats s = stats();
    uint64_t sum = s.pending;

    for (int i = 0; i < FT_INFERENCE_OUTCOMES; i++)
        sum += s.windows[i];
    ck_assert_uint_eq(sum, windows);
}

static bool says(uint32_t i, struct ft_hint *hint)
{
    struct ft_tuple tuple = tuple_of(0, i);
    const struct ft_flow *flow = ft_join_find(join, &tuple);
    uint32_t in = ft_topology_port_at(t, 0, 1 + i);

    ck_assert_ptr_nonnull(flow);
    return ft_inference_predict(inference, t, flow, in, hint);
}

START_TEST(flows_that_vary_are_inferred)
{
    struct ft_hint hint;

    open_leaves(2);
    run(20, 8, 0.2, true);
    ck_assert(!ft_inference_is_ready(inference));
    ck_assert(!says(0, &hint));
    run(20, 8, 0.2, true);
    ck_assert(ft_inference_is_ready(inference));
    for (uint32_t i = 0; i < 8; i++) {
        ck_assert(says(i, &hint));
        ck_assert_uint_eq(hint.out, ft_topology_port_at(t, 0, 100 + i % SPINES));
        ck_assert_uint_eq(hint.switch_id, 0);
        ck_assert_int_eq(hint.by, FT_BY_INFERENCE);
    }
    ck_assert_uint_eq(stats().flows[FT_TOMOGRAPHY_ANSWERED], 8);
    ck_assert_uint_eq(stats().windows[FT_INFERENCE_USED], 36);
    check_windows(40);
    /* Of another topology nothing is known. */
    ck_assert_int_eq(ft_inference_follow(inference, t), 0);
    ck_assert(!ft_inference_is_ready(inference) && !says(0, &hint));
    ck_assert_uint_eq(stats().windows[FT_INFERENCE_FORGOTTEN], 4);
    check_windows(40);
    close_all();
}
END_TEST

START_TEST(flows_that_send_alike_are_not_and_the_doctor_says_why)
{
    struct ft_findings findings = {.count = 0};

    open_leaves(2);
    run(40, 8, 0, true);
    ck_assert_uint_eq(stats().flows[FT_TOMOGRAPHY_ALIKE], 8);
    ck_assert(!ft_inference_is_ready(inference));
    ft_inference_find(inference, &findings);
    ck_assert_uint_eq(findings.count, 1);
    ck_assert_str_eq(findings.items[0].switch_name, "leaf0/up");
    ck_assert_ptr_nonnull(strstr(findings.items[0].text, "cannot distinguish 8 flows"));
    ft_findings_free(&findings);
    close_all();
}
END_TEST

START_TEST(traffic_that_nobody_reports_is_told)
{
    struct ft_findings findings = {.count = 0};

    open_leaves(2);
    for (uint32_t i = 0; i < 40; i++) {
        fill(8, 0.2);
        counted[1] += 60000000;
        close_window(true, false);
    }
    ck_assert_uint_eq(stats().flows[FT_TOMOGRAPHY_ANSWERED], 0);
    ft_inference_find(inference, &findings);
    ck_assert_uint_eq(findings.count, 1);
    ck_assert_ptr_nonnull(strstr(findings.items[0].text, "do not explain"));
    ft_findings_free(&findings);
    close_all();
}
END_TEST

START_TEST(windows_without_counters_or_with_too_many_flows_are_counted)
{
    open_leaves(2);
    run(12, 8, 0.2, false);
    ck_assert_uint_eq(stats().windows[FT_INFERENCE_UNCOUNTED], 8);
    run(5, FT_INFERENCE_FLOWS + 1, 0.2, true);
    ck_assert_uint_eq(stats().windows[FT_INFERENCE_CROWDED], 5);
    fill(8, 0.2);
    close_window(true, true);
    ck_assert_uint_eq(stats().windows[FT_INFERENCE_PARTIAL], 1);
    check_windows(18);
    close_all();
}
END_TEST

static void sample(uint32_t i, uint32_t spine)
{
    const struct ft_observation o = {.tuple = tuple_of(0, i),
                                     .agent = leafspine_switch_ip(0),
                                     .in_ifindex = 1 + i,
                                     .out_ifindex = 100 + spine,
                                     .first_ms = (int64_t)window * WINDOW_MS + 1000,
                                     .last_ms = (int64_t)window * WINDOW_MS + 6000,
                                     .samples = 9,
                                     .data_samples = 9,
                                     .bytes = 100000000};
    uint64_t results[FT_JOIN_RESULTS] = {0};

    ft_join_observe_batch(join, &o, 1, results);
    ck_assert_uint_eq(results[FT_JOIN_OK], 1);
}

START_TEST(samples_confirm_an_answer_or_make_all_of_its_leaf_forgotten)
{
    struct ft_hint hint;

    open_leaves(2);
    run(40, 8, 0.2, true);
    sample(2, 2);
    fill(8, 0.2);
    close_window(true, false);
    ck_assert_uint_eq(stats().confirmed, 1);
    ck_assert_uint_eq(stats().contradicted, 0);
    ck_assert(says(3, &hint));
    sample(3, 0);
    fill(8, 0.2);
    close_window(true, false);
    ck_assert_uint_eq(stats().contradicted, 1);
    ck_assert(!says(0, &hint) && !says(3, &hint));
    ck_assert(!ft_inference_is_ready(inference));
    check_windows(42);
    close_all();
}
END_TEST

START_TEST(a_flow_that_moves_is_noticed_by_counters)
{
    struct ft_hint hint;

    open_leaves(2);
    run(40, 8, 0.2, true);
    ck_assert(says(0, &hint));
    first_over = 1;
    run(4, 8, 0.2, true);
    ck_assert(says(0, &hint)); /* its counters are not there yet */
    run(1, 8, 0.2, true);
    ck_assert(!says(0, &hint) && !ft_inference_is_ready(inference));
    close_all();
}
END_TEST

/* Without counters of the newest windows answers are not given, and the doctor says so. */
START_TEST(answers_that_are_not_given_are_told)
{
    struct ft_findings findings = {.count = 0};
    struct ft_hint hint;

    open_leaves(2);
    run(40, 8, 0.2, true);
    ft_inference_find(inference, &findings);
    ck_assert_uint_eq(findings.count, 0);
    run(5, 8, 0.2, false);
    ck_assert(!says(0, &hint));
    ck_assert_uint_eq(stats().flows[FT_TOMOGRAPHY_UNVERIFIED], 8);
    ft_inference_find(inference, &findings);
    ck_assert_uint_eq(findings.count, 1);
    ck_assert_str_eq(findings.items[0].switch_name, "leaf0/up");
    ck_assert_ptr_nonnull(strstr(findings.items[0].text, "paths of 8 flows are not given"));
    ft_findings_free(&findings);
    close_all();
}
END_TEST

START_TEST(only_so_many_leaves_have_room)
{
    enum { LEAVES = FT_INFERENCE_LEAVES + 3 };

    open_leaves(LEAVES);
    for (uint32_t l = 0; l < LEAVES; l++)
        send(l, 0, 1000000);
    close_window(false, false);
    ck_assert_uint_eq(stats().leaves, FT_INFERENCE_LEAVES);
    ck_assert_uint_eq(stats().refused, 3);
    close_all();
}
END_TEST

/* Without counters of the newest windows nobody knows whether routes changed. */
START_TEST(answers_are_given_while_counters_come)
{
    struct ft_hint hint;

    open_leaves(2);
    run(40, 8, 0.2, true);
    ck_assert(says(0, &hint));
    ck_assert_uint_eq(stats().flows[FT_TOMOGRAPHY_ANSWERED], 8);
    run(12, 8, 0.2, false);
    ck_assert(!says(0, &hint));
    ck_assert_uint_eq(stats().flows[FT_TOMOGRAPHY_ANSWERED], 0);
    ck_assert_uint_eq(stats().flows[FT_TOMOGRAPHY_UNVERIFIED], 8);
    close_all();
}
END_TEST

/* A flow that is over makes room when its windows are. */
START_TEST(windows_and_flows_that_are_old_make_room)
{
    struct ft_hint hint;

    open_leaves(2);
    run(1, FT_INFERENCE_FLOWS, 0.2, true);
    run(FT_INFERENCE_WINDOWS + 60, 8, 0.2, true);
    ck_assert_uint_eq(stats().flows[FT_TOMOGRAPHY_ANSWERED], 8);
    ck_assert_uint_eq(stats().flows[FT_TOMOGRAPHY_FEW], 0);
    ck_assert(says(7, &hint));
    check_windows(FT_INFERENCE_WINDOWS + 61);
    close_all();
}
END_TEST

FT_UNIT_MAIN("inference", flows_that_vary_are_inferred,
             flows_that_send_alike_are_not_and_the_doctor_says_why,
             traffic_that_nobody_reports_is_told,
             windows_without_counters_or_with_too_many_flows_are_counted,
             samples_confirm_an_answer_or_make_all_of_its_leaf_forgotten,
             a_flow_that_moves_is_noticed_by_counters, answers_that_are_not_given_are_told,
             answers_are_given_while_counters_come, only_so_many_leaves_have_room,
             windows_and_flows_that_are_old_make_room)
