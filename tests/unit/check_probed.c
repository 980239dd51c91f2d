// SPDX-License-Identifier: Apache-2.0
/* What follows from answers to probes: which switches count, and what is said of the path. */
#include "config.h"

#include "daemon/probe/probed.h"

#include <errno.h>
#include <string.h>

#include "daemon/join/hints.h"
#include "daemon/join/likely.h"
#include "daemon/probe/probe_list.h"
#include "lib/files/topology_file.h"
#include "proto/record.h"
#include "tests/unit/join_rig.h"

#define NOW_MS JOIN_RIG_END_MS
#define SPORT  77

static struct join_rig rig;
static struct ft_hints *hints;
static struct ft_probed probed;
static char published[2][3][32]; /* switch, port and aggregate by TTL - 1 */
static Fabrictrace__ProbeGap gaps[2];
static Fabrictrace__ProbeOutcome outcome;
static unsigned records;

static void keep(void *arg, const Fabrictrace__Record *record)
{
    const Fabrictrace__Probe *p = record->probe;

    (void)arg;
    ck_assert_int_eq(record->kind_case, FABRICTRACE__RECORD__KIND_PROBE);
    records++;
    outcome = p->outcome;
    for (size_t i = 0; i < p->n_answers && i < 2; i++) {
        const Fabrictrace__ProbeAnswer *a = p->answers[i];

        gaps[i] = a->gap;
        snprintf(published[i][0], 32, "%s", a->switch_ ? a->switch_ : "");
        snprintf(published[i][1], 32, "%s", a->out ? a->out : "");
        snprintf(published[i][2], 32, "%s", a->out_lag ? a->out_lag : "");
    }
}

static void begin(void)
{
    const struct ft_host_report r = {.tuple = join_rig_tuple(SPORT),
                                     .time_ms = JOIN_RIG_START_MS + 9000,
                                     .interval_ms = 8000,
                                     .sending = true,
                                     .host = "h0-0",
                                     .bytes = 1000000,
                                     .data_packets = 250,
                                     .qp_local = FT_NONE,
                                     .qp_remote = FT_NONE};

    join_rig_open(&rig);
    hints = ft_hints_new(600000, 1);
    ck_assert_ptr_nonnull(hints);
    ft_join_set_hints(rig.join, hints);
    ck_assert_int_eq(ft_join_report(rig.join, &r), FT_JOIN_OK);
    probed = (struct ft_probed){.list = ft_probe_list_new(1)};
    ck_assert_ptr_nonnull(probed.list);
    records = 0;
    memset(published, 0, sizeof(published));
}

static void end(void)
{
    ft_probe_list_free(probed.list);
    ft_join_set_hints(rig.join, NULL);
    ft_hints_free(hints);
    join_rig_close(&rig);
}

/* Answers of these two addresses, NULL: none. */
static int take(const struct ft_ip *first, const struct ft_ip *second, uint32_t second_ttl)
{
    const struct ft_emitter emitter = {.record = keep};
    const struct ft_tuple tuple = join_rig_tuple(SPORT);
    const struct ft_ip *from[2] = {first, second};
    Fabrictrace__ProbeAnswer answers[2], *list[2];
    Fabrictrace__Probe probe = FABRICTRACE__PROBE__INIT;
    Fabrictrace__Flow flow = FABRICTRACE__FLOW__INIT;

    ft_flow_from_tuple(&flow, &tuple);
    for (uint32_t i = 0; i < 2; i++) {
        fabrictrace__probe_answer__init(&answers[i]);
        answers[i].has_ttl = true;
        answers[i].ttl = i ? second_ttl : 1;
        answers[i].has_address = from[i] != NULL;
        if (from[i])
            answers[i].address.data =
                (uint8_t *)(uintptr_t)ft_ip_bytes(from[i], &answers[i].address.len);
        list[i] = &answers[i];
    }
    probe.has_time_ms = probe.has_switches = true;
    probe.time_ms = NOW_MS;
    probe.switches = 3;
    probe.flow = &flow;
    probe.n_answers = 2;
    probe.answers = list;
    return ft_probed_take(&probed, rig.join, &probe, NOW_MS, &emitter);
}

/* leaf0, leaf1, spine0, spine1 have the numbers 0 to 3. */
START_TEST(two_neighbours_show_the_path)
{
    const struct ft_ip leaf = leafspine_switch_ip(0), spine = leafspine_switch_ip(3);
    struct ft_flow *flow;
    struct ft_hinted hinted;

    begin();
    ck_assert_int_eq(take(&leaf, &spine, 2), 0);
    flow = join_rig_flow(&rig, SPORT);
    ck_assert(ft_flow_likely(rig.join, flow, &hinted));
    ck_assert_uint_eq(hinted.path.hops[0].out, join_rig_port(&rig, "leaf0", "up1"));
    ck_assert_uint_eq(hinted.path.hops[1].out, join_rig_port(&rig, "spine1", "down1"));
    ck_assert_uint_eq(hinted.by[0], FT_BY_PROBE);
    ck_assert_int_eq(flow->state, FT_PATH_UNRESOLVED);
    ck_assert_uint_eq(probed.used, 2);
    ck_assert_uint_eq(records, 1);
    ck_assert_str_eq(published[0][0], "leaf0");
    ck_assert_str_eq(published[0][1], "up1");
    ck_assert_str_eq(published[1][0], "spine1");
    ck_assert_str_eq(published[1][1], "");
    ck_assert_int_eq(gaps[0], FABRICTRACE__PROBE_GAP__PROBE_GAP_NONE);
    ck_assert_int_eq(gaps[1], FABRICTRACE__PROBE_GAP__PROBE_GAP_LAST);
    ck_assert_int_eq(outcome, FABRICTRACE__PROBE_OUTCOME__PROBE_OUTCOME_ANSWERED);
    /* One sample elsewhere, and nothing is left of it. */
    join_rig_sample(&rig, SPORT, 0, 500000000, 5);
    ck_assert_int_eq(flow->state, FT_PATH_RESOLVED);
    ck_assert(!ft_flow_likely(rig.join, flow, &hinted));
    end();
}
END_TEST

START_TEST(other_answers_show_nothing)
{
    const struct ft_ip leaf = leafspine_switch_ip(0), far = leafspine_switch_ip(1);
    const struct ft_ip spine = leafspine_switch_ip(3), nobody = leafspine_host_ip(7, 7);
    struct ft_hinted hinted;

    begin();
    /* A gap; an address of nobody; the far leaf in the place of a spine, a spine in that of the
     * leaf, the leaf of other hosts. */
    ck_assert_int_eq(take(NULL, NULL, 2), 0);
    ck_assert_int_eq(outcome, FABRICTRACE__PROBE_OUTCOME__PROBE_OUTCOME_SILENT);
    probed.flows = probed.silent = 0;
    records = 0;
    ck_assert_int_eq(take(&leaf, NULL, 2), 0);
    ck_assert_int_eq(gaps[0], FABRICTRACE__PROBE_GAP__PROBE_GAP_NEXT);
    ck_assert_int_eq(gaps[1], FABRICTRACE__PROBE_GAP__PROBE_GAP_SILENT);
    ck_assert_int_eq(outcome, FABRICTRACE__PROBE_OUTCOME__PROBE_OUTCOME_GAPS);
    ck_assert_int_eq(take(&leaf, &nobody, 2), 0);
    ck_assert_int_eq(gaps[1], FABRICTRACE__PROBE_GAP__PROBE_GAP_ADDRESS);
    ck_assert_int_eq(take(&leaf, &far, 2), 0);
    ck_assert_int_eq(gaps[1], FABRICTRACE__PROBE_GAP__PROBE_GAP_STRANGE);
    ck_assert_int_eq(take(&spine, &spine, 2), 0);
    ck_assert_int_eq(take(&far, &spine, 2), 0);
    ck_assert(!ft_flow_likely(rig.join, join_rig_flow(&rig, SPORT), &hinted));
    ck_assert_uint_eq(probed.silent, 1);
    ck_assert_uint_eq(probed.unknown, 1);
    ck_assert_uint_eq(probed.strange, 3);
    ck_assert_uint_eq(probed.used, 5);
    ck_assert_uint_eq(probed.flows, 5);
    /* Not in the order of the TTL, or beyond any path. */
    ck_assert_int_eq(take(&leaf, &spine, 1), -EINVAL);
    ck_assert_int_eq(take(&leaf, &spine, 0), -EINVAL);
    ck_assert_int_eq(take(&leaf, &spine, FT_PROBED_SWITCHES + 1), -EINVAL);
    ck_assert_uint_eq(records, 5);
    end();
}
END_TEST

/* leaf0 has an aggregate to spine0, and two links that are none to spine1. */
static const char several[] =
    "fabric: lab\n"
    "switches:\n"
    "  - {name: leaf0, addresses: [192.0.2.1], ports: [{name: h}, {name: a1}, {name: a2},\n"
    "     {name: b1}, {name: b2}], lags: [{name: A, members: [a1, a2]}]}\n"
    "  - {name: leaf1, addresses: [192.0.2.2], ports: [{name: h}, {name: u0}, {name: u1}]}\n"
    "  - {name: spine0, addresses: [192.0.2.3], ports: [{name: a1}, {name: a2}, {name: d}],\n"
    "     lags: [{name: A, members: [a1, a2]}]}\n"
    "  - {name: spine1, addresses: [192.0.2.4], ports: [{name: b1}, {name: b2}, {name: d}]}\n"
    "links:\n"
    "  - {a: leaf0, a_port: a1, b: spine0, b_port: a1}\n"
    "  - {a: leaf0, a_port: a2, b: spine0, b_port: a2}\n"
    "  - {a: leaf0, a_port: b1, b: spine1, b_port: b1}\n"
    "  - {a: leaf0, a_port: b2, b: spine1, b_port: b2}\n"
    "  - {a: leaf1, a_port: u0, b: spine0, b_port: d}\n"
    "  - {a: leaf1, a_port: u1, b: spine1, b_port: d}\n"
    "hosts:\n"
    "  - {name: h0, nics: [{addresses: [10.0.0.1], attach: [{switch: leaf0, port: h}]}]}\n"
    "  - {name: h1, nics: [{addresses: [10.0.1.1], attach: [{switch: leaf1, port: h}]}]}\n";

static void rewire(const char *text)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_yaml *root = ft_yaml_parse(text, strlen(text), "t.yaml", diag);
    struct ft_topology *t = ft_topology_file_read(root, diag);

    ck_assert_msg(t != NULL, "%s", ft_diag_text(diag, 0));
    ck_assert_int_eq(ft_join_set_topology(rig.join, t, NOW_MS), 0);
    while (ft_join_judge_step(rig.join, UINT32_MAX))
        ;
    ft_topology_free(rig.t);
    rig.t = t;
    ft_yaml_free(root);
    ft_diag_free(diag);
}

/* Who answers is the same whichever of several links a probe came by. */
START_TEST(one_of_several_links_is_a_gap)
{
    const struct ft_ip leaf = leafspine_switch_ip(0), spine0 = leafspine_switch_ip(2),
                       spine1 = leafspine_switch_ip(3);
    struct ft_hinted hinted;

    begin();
    rewire(several);
    ck_assert_int_eq(take(&leaf, &spine1, 2), 0);
    ck_assert_int_eq(gaps[0], FABRICTRACE__PROBE_GAP__PROBE_GAP_PARALLEL);
    ck_assert_str_eq(published[0][1], "");
    ck_assert_str_eq(published[0][2], "");
    ck_assert_str_eq(published[1][0], "spine1");
    ck_assert_uint_eq(probed.parallel, 1);
    ck_assert(!ft_flow_likely(rig.join, join_rig_flow(&rig, SPORT), &hinted));
    /* The aggregate is known, and no more than that. */
    ck_assert_int_eq(take(&leaf, &spine0, 2), 0);
    ck_assert_int_eq(gaps[0], FABRICTRACE__PROBE_GAP__PROBE_GAP_LAG_MEMBER);
    ck_assert_str_eq(published[0][1], "");
    ck_assert_str_eq(published[0][2], "A");
    ck_assert_uint_eq(probed.parallel, 1);
    ck_assert(ft_flow_likely(rig.join, join_rig_flow(&rig, SPORT), &hinted));
    ck_assert(ft_is_lag(hinted.path.hops[0].out));
    ck_assert_str_eq(ft_topology_end_name(rig.t, hinted.path.hops[0].out), "A");
    ck_assert_uint_eq(hinted.by[0], FT_BY_PROBE);
    end();
}
END_TEST

FT_UNIT_MAIN("probed", two_neighbours_show_the_path, other_answers_show_nothing,
             one_of_several_links_is_a_gap)
