// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/window/lossy_victims.h"

#include <string.h>

#include "tests/unit/join_rig.h"

enum { RESENT = 0x5, TOLD = 0x1f, QP = 77 };

static struct join_rig rig;
static struct ft_lossy_victims victims;
static uint32_t ids[64];
static size_t id_count;

static void setup(void)
{
    join_rig_open(&rig);
    id_count = 0;
}

static void teardown(void)
{
    join_rig_close(&rig);
}

/* Numbered samples of a flow from a host under leaf0 to one under leaf1, some of packets that were
 * sent again. */
static void sample(uint32_t from, uint32_t to, uint16_t sport, uint32_t spine, uint32_t back)
{
    struct ft_observation o = join_rig_seen(sport, spine, 1000000, 20);
    struct ft_numbered numbered = {.qp = QP,
                                   .samples = 20,
                                   .low = 100,
                                   .span = 2000,
                                   .back = back,
                                   .frame_min = 1000,
                                   .frame_max = 1000,
                                   .packets = 2000,
                                   .bytes = 2000000,
                                   .first_ms = o.first_ms,
                                   .last_ms = o.last_ms,
                                   .requests = true};

    o.tuple.src = leafspine_host_ip(0, from);
    o.tuple.dst = leafspine_host_ip(1, to);
    o.in_ifindex = 1 + from;
    o.numbered = &numbered;
    join_rig_take(&rig, &o);
}

/* The receiver's answers, sampled where they leave leaf1. */
static void answer(uint32_t from, uint32_t to, uint16_t sport, uint32_t naks)
{
    struct ft_observation o = join_rig_seen(sport, 0, 10000, 10);
    struct ft_numbered numbered = {.acks = 10, .naks = naks};

    o.tuple.src = leafspine_host_ip(1, to);
    o.tuple.dst = leafspine_host_ip(0, from);
    o.agent = leafspine_switch_ip(1);
    o.in_ifindex = 1 + to;
    o.data_samples = 0;
    o.ack_samples = 10;
    o.numbered = &numbered;
    join_rig_take(&rig, &o);
}

static struct ft_flow *flow_of(uint32_t from, uint32_t to, uint16_t sport)
{
    struct ft_tuple tuple = join_rig_tuple(sport);
    struct ft_flow *flow;

    tuple.src = leafspine_host_ip(0, from);
    tuple.dst = leafspine_host_ip(1, to);
    flow = ft_join_find(rig.join, &tuple);
    ck_assert_ptr_nonnull(flow);
    return flow;
}

/* What the windows up to one showed of a flow; it is one of those that are looked at. */
static void mark(uint32_t from, uint32_t to, uint16_t sport, uint8_t again, uint32_t window)
{
    struct ft_flow *flow = flow_of(from, to, sport);
    struct ft_flow_numbers *n = ft_flow_numbers(flow);

    ck_assert_ptr_nonnull(n);
    n->numbered = TOLD;
    n->again = again;
    n->marked_window = window;
    for (uint32_t i = 0; i < ft_join_limit(rig.join); i++)
        if (ft_join_at(rig.join, i) == flow)
            ids[id_count++] = i;
}

static void look(const char *at, const char *port, uint32_t max)
{
    ft_lossy_victims_fill(&victims, rig.join, join_rig_port(&rig, at, port), ids, id_count,
                          JOIN_RIG_WINDOW, JOIN_RIG_WINDOW_MS, max);
}

START_TEST(those_that_cross_it_and_send_again_are_named)
{
    const Fabrictrace__Victim *v;

    setup();
    sample(0, 0, 50000, 0, 3);
    sample(0, 1, 50001, 0, 0);
    sample(1, 0, 50002, 1, 3);
    answer(0, 0, 50000, 2);
    join_rig_seal(&rig);
    mark(0, 0, 50000, RESENT, JOIN_RIG_WINDOW);
    mark(0, 1, 50001, 0, JOIN_RIG_WINDOW);
    mark(1, 0, 50002, RESENT, JOIN_RIG_WINDOW);
    look("leaf0", "up0", 8);
    ck_assert_uint_eq(victims.count, 1);
    ck_assert_uint_eq(victims.all, 1);
    ck_assert_uint_eq(victims.pairs, 1);
    v = victims.list[0];
    ck_assert_uint_eq(v->flow->sport, 50000);
    ck_assert_str_eq(v->src_host, "h0-0");
    ck_assert_str_eq(v->dst_host, "h1-0");
    ck_assert_ptr_nonnull(v->qp);
    ck_assert(!v->qp->has_local);
    ck_assert_uint_eq(v->qp->remote, QP);
    ck_assert_int_eq(v->link_evidence, FABRICTRACE__HOP_EVIDENCE__HOP_EVIDENCE_SAMPLED);
    ck_assert_uint_eq(v->numbered_windows, 5);
    ck_assert_uint_eq(v->resending_windows, 2);
    ck_assert(v->has_psn_back_samples);
    ck_assert_uint_eq(v->psn_back_samples, 3);
    ck_assert(v->has_nak_samples);
    ck_assert_uint_eq(v->nak_samples, 2);
    teardown();
}
END_TEST

/* Only leaf0 sampled it: that it leaves the spine by this port follows from that. */
START_TEST(what_follows_from_other_switches_is_marked)
{
    setup();
    sample(0, 0, 50000, 0, 3);
    join_rig_seal(&rig);
    mark(0, 0, 50000, RESENT, JOIN_RIG_WINDOW);
    look("spine0", "down1", 8);
    ck_assert_uint_eq(victims.count, 1);
    ck_assert_int_eq(victims.list[0]->link_evidence,
                     FABRICTRACE__HOP_EVIDENCE__HOP_EVIDENCE_NEIGHBOUR);
    ck_assert(!victims.list[0]->has_nak_samples);
    teardown();
}
END_TEST

START_TEST(what_other_windows_showed_names_nobody)
{
    setup();
    sample(0, 0, 50000, 0, 3);
    sample(0, 0, 50001, 0, 3);
    join_rig_seal(&rig);
    mark(0, 0, 50000, RESENT, JOIN_RIG_WINDOW - 1);
    ids[id_count++] = 900; /* nobody has this place any more */
    look("leaf0", "up0", 8);
    ck_assert_uint_eq(victims.count + victims.all + victims.pairs, 0);
    mark(0, 0, 50001, RESENT, JOIN_RIG_WINDOW);
    look("leaf0", "up0", 8);
    ck_assert_uint_eq(victims.all, 1);
    teardown();
}
END_TEST

static void two_pairs(void)
{
    for (uint16_t i = 0; i < 5; i++)
        sample(0, 0, 50000 + i, 0, i);
    sample(1, 1, 50010, 0, 1);
    join_rig_seal(&rig);
    for (uint16_t i = 0; i < 5; i++)
        mark(0, 0, 50000 + i, i == 2 ? 0x3f : RESENT, JOIN_RIG_WINDOW);
    mark(1, 1, 50010, 1, JOIN_RIG_WINDOW);
}

/* And the count is of all, however few are named. */
START_TEST(one_of_each_pair_comes_first)
{
    static const uint16_t order[] = {50002, 50010, 50004, 50003, 50001, 50000};
    char text[200];

    setup();
    two_pairs();
    look("leaf0", "up0", 64);
    ck_assert_uint_eq(victims.count, 6);
    for (size_t i = 0; i < 6; i++)
        ck_assert_uint_eq(victims.list[i]->flow->sport, order[i]);
    look("leaf0", "up0", 3);
    ck_assert_uint_eq(victims.count, 3);
    ck_assert_uint_eq(victims.all, 6);
    ck_assert_uint_eq(victims.pairs, 2);
    ck_assert_uint_eq(victims.list[2]->flow->sport, 50004);
    ft_lossy_victims_text(&victims, text, sizeof(text));
    ck_assert_str_eq(text, "from h0-0 to h1-0, h0-1 to h1-1");
    look("leaf0", "up0", 1);
    ft_lossy_victims_text(&victims, text, sizeof(text));
    ck_assert_str_eq(text, "from h0-0 to h1-0 and 1 other pair of hosts");
    ft_lossy_victims_text(&victims, text, 12);
    ck_assert_str_eq(text, "from h0-0 t");
    teardown();
}
END_TEST

FT_UNIT_MAIN("lossy_victims", those_that_cross_it_and_send_again_are_named,
             what_follows_from_other_switches_is_marked, what_other_windows_showed_names_nobody,
             one_of_each_pair_comes_first)
