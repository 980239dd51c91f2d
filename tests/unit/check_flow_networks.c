// SPDX-License-Identifier: Apache-2.0
/*
 * Flows of several networks (VNI) with one 5-tuple: no path, volume or number of the one is taken
 * for one of the other, and a network alone is a flow as any.
 */
#include "config.h"

#include "daemon/join/flow_networks.h"

#include "daemon/window/loads.h"
#include "tests/unit/join_rig.h"

#define SPORT 0xc123
#define LEAF  0
#define SPINE 2     /* of leafspine(2, 2, 2): the first */
#define RED   5002u /* a network, and 1 */
#define BLUE  5003u
#define BPS   UINT64_C(80000000)

static struct join_rig rig;
static uint32_t window; /* the lowest that is open */

static void open_rig(void)
{
    join_rig_open(&rig);
    window = JOIN_RIG_WINDOW;
}

static struct ft_flow *flow(void)
{
    return join_rig_flow(&rig, SPORT);
}

/* Closes windows until the one with that moment is open. */
static void go_to(int64_t ms)
{
    while (JOIN_RIG_START_MS + ms >= (int64_t)(window + 1) * JOIN_RIG_WINDOW_MS) {
        int64_t end_ms = (int64_t)(window + 1) * JOIN_RIG_WINDOW_MS;

        ft_join_seal(rig.join);
        ck_assert(ft_join_age(rig.join, flow(), window, end_ms));
        ft_join_close(rig.join);
        window++;
    }
}

/* A sample at a switch, so many milliseconds after the start. network: as in ft_observation. */
static enum ft_join_result sample(uint32_t at, uint32_t in, uint32_t out, int64_t ms,
                                  uint32_t network)
{
    struct ft_observation o = join_rig_seen(SPORT, 0, BPS, 10);

    go_to(ms);
    o.agent = leafspine_switch_ip(at);
    o.in_ifindex = in;
    o.out_ifindex = out;
    o.network = network;
    o.first_ms = o.last_ms = JOIN_RIG_START_MS + ms;
    return join_observe(rig.join, &o);
}

/* By a spine; at its first leaf no tunnel is around it yet. */
static void by_spine(uint32_t spine, int64_t ms, uint32_t network)
{
    ck_assert_int_eq(sample(LEAF, 1, 100 + spine, ms, 0), FT_JOIN_OK);
    ck_assert_int_eq(sample(SPINE + spine, 1, 2, ms, network), FT_JOIN_OK);
}

static bool is_several(void)
{
    bool several = flow()->reason == FT_REASON_SEVERAL_NETWORKS;

    ck_assert(several == ft_flow_is_several(flow()));
    ck_assert(!several || flow()->state == FT_PATH_UNRESOLVED);
    return several;
}

START_TEST(one_network_is_a_flow_as_any)
{
    open_rig();
    for (int64_t ms = 1000; ms < 25000; ms += 1000) {
        by_spine(0, ms, RED);
        ck_assert_int_eq(flow()->state, FT_PATH_RESOLVED);
    }
    ck_assert_uint_eq(ft_flow_networks(flow())->network, RED);
    ck_assert_uint_eq(ft_join_stats(rig.join)->several_networks, 0);
    join_rig_close(&rig);
}
END_TEST

/* On one path the two are one flow of twice the rate, on two they look like one that moves or is
 * sprayed. */
START_TEST(two_networks_have_no_path)
{
    for (uint32_t other = 0; other < 2; other++) {
        open_rig();
        by_spine(0, 1000, RED);
        ck_assert_int_eq(flow()->state, FT_PATH_RESOLVED);
        for (int64_t ms = 1500; ms < 40000; ms += 500) {
            by_spine(ms % 1000 ? other : 0, ms, ms % 1000 ? BLUE : RED);
            ck_assert(is_several());
            ck_assert_uint_eq(flow()->path.hop_count, 0);
        }
        ck_assert_uint_eq(ft_join_stats(rig.join)->several_networks, 1);
        join_rig_close(&rig);
    }
}
END_TEST

/* One that was seen in another network long ago is in this one now. */
START_TEST(another_network_later_is_no_second_one)
{
    open_rig();
    by_spine(0, 1000, RED);
    for (int64_t ms = 2000; ms < 60000; ms += 1000)
        ck_assert_int_eq(sample(LEAF, 1, 100, ms, 0), FT_JOIN_OK);
    by_spine(0, 61000, BLUE);
    ck_assert(!is_several());
    ck_assert_uint_eq(ft_flow_networks(flow())->network, BLUE);
    ck_assert_uint_eq(ft_join_stats(rig.join)->several_networks, 0);
    join_rig_close(&rig);
}
END_TEST

/* Samples come in any order, by several pollers. */
START_TEST(a_late_sample_of_another_network_counts)
{
    open_rig();
    by_spine(0, 5000, RED);
    by_spine(0, 6000, RED);
    ck_assert_int_eq(sample(SPINE, 1, 2, 4000, BLUE), FT_JOIN_OK);
    ck_assert(is_several());
    ck_assert_uint_eq(ft_flow_networks(flow())->network, RED);
    ck_assert_uint_eq(ft_flow_networks(flow())->other, BLUE);
    join_rig_close(&rig);
}
END_TEST

/* When the one is gone for as long as evidence counts, what is left is begun anew: nothing of the
 * other one is in it. */
START_TEST(what_is_left_is_a_new_flow)
{
    open_rig();
    for (int64_t ms = 1000; ms < 10000; ms += 1000)
        by_spine(0, ms, RED);
    for (int64_t ms = 10000; ms < 50000; ms += 1000) {
        by_spine(1, ms, BLUE);
        /* The last of the other is at 9000, evidence counts for 30 s, windows close each 10 s. */
        ck_assert(is_several() == (ms < 40000));
        if (ms < 41000)
            continue;
        ck_assert_int_eq(flow()->state, FT_PATH_RESOLVED);
        ck_assert_uint_eq(flow()->path.hops[0].out, join_rig_port(&rig, "leaf0", "up1"));
        ck_assert_int_ge(flow()->path_since_ms, JOIN_RIG_START_MS + 10000);
        ck_assert_int_ge(flow()->first_ms, JOIN_RIG_START_MS + 10000);
    }
    ck_assert(!flow()->moved);
    join_rig_close(&rig);
}
END_TEST

/* The sum of both is in the window, on no link, and the group is not complete. */
START_TEST(it_is_unplaced)
{
    const struct ft_loads_config config = {
        .window_ms = JOIN_RIG_WINDOW_MS, .elephant_share = 0.001, .elephants_max = 100};
    struct ft_loads loads = {.link = NULL};
    uint32_t group;

    open_rig();
    for (int64_t ms = 1000; ms < 9000; ms += 1000)
        by_spine(0, ms, ms % 2000 ? RED : BLUE);
    join_rig_sample(&rig, SPORT + 1, 0, BPS, 10);
    join_rig_seal(&rig);
    ck_assert_int_eq(ft_loads_init(&loads, rig.t), 0);
    ft_loads_reset(&loads, rig.t);
    for (uint32_t i = 0; i < ft_join_limit(rig.join); i++)
        if (ft_join_at(rig.join, i))
            ck_assert_int_eq(ft_loads_add(&loads, &config, rig.join, ft_join_at(rig.join, i), i),
                             0);
    group = ft_topology_port(rig.t, join_rig_port(&rig, "leaf0", "up0"))->group;
    ck_assert_uint_eq(loads.flows, 2);
    ck_assert_uint_eq(loads.placed, 1);
    ck_assert_uint_eq(loads.unplaced[group], 1);
    ck_assert_double_eq(loads.link[join_rig_port(&rig, "leaf0", "up0")].flows, 1);
    ft_loads_free(&loads);
    join_rig_close(&rig);
}
END_TEST

/* Numbers of two queue pairs are no row, and say of nothing that it was sent again. */
START_TEST(its_packet_numbers_say_nothing)
{
    struct ft_numbered numbered = {.qp = 17,
                                   .samples = 10,
                                   .span = 1000,
                                   .frame_min = 1086,
                                   .frame_max = 1086,
                                   .packets = 10000,
                                   .bytes = 10860000,
                                   .interval_ms = 1000,
                                   .requests = true};

    open_rig();
    for (int64_t ms = 1000; ms < 9000; ms += 1000) {
        struct ft_observation o = join_rig_seen(SPORT, 0, BPS, 10);

        o.network = ms < 5000 ? RED : BLUE;
        o.numbered = &numbered;
        o.first_ms = numbered.first_ms = numbered.start_ms = JOIN_RIG_START_MS + ms;
        o.last_ms = numbered.last_ms = o.first_ms + 999;
        numbered.low += 1000;
        join_rig_take(&rig, &o);
        ck_assert((ft_flow_numbers(flow()) != NULL) == (ms < 5000));
    }
    ck_assert(is_several());
    join_rig_seal(&rig);
    ck_assert_int_eq(flow()->bytes_by, FT_RATE_SAMPLES);
    join_rig_close(&rig);
}
END_TEST

/* Without room for the network the samples are refused: they may be of another flow. */
START_TEST(without_room_the_samples_are_refused)
{
    const struct ft_join_config config = {.flows_max = 10,
                                          .beside_max = 1,
                                          .window_ms = JOIN_RIG_WINDOW_MS,
                                          .evidence_ms = 30000,
                                          .idle_ms = 60000,
                                          .trust_topology = true,
                                          .policy = {.hold_down_ms = 2000, .tolerance_ms = 2000}};

    open_rig();
    ft_join_free(rig.join);
    rig.join = ft_join_new(&config, rig.t, &(struct ft_join_hooks){.arg = NULL});
    ft_join_open(rig.join, JOIN_RIG_WINDOW);
    ck_assert_int_eq(sample(SPINE, 1, 2, 1000, RED), FT_JOIN_OK);
    ck_assert_int_eq(sample(SPINE, 1, 2, 2000, BLUE), FT_JOIN_OK);
    ck_assert(is_several());
    /* Now there is none: another flow. */
    {
        struct ft_observation o = join_rig_seen(SPORT + 1, 0, BPS, 10);

        o.network = RED;
        ck_assert_int_eq(join_observe(rig.join, &o), FT_JOIN_TABLE_FULL);
        o.network = 0;
        ck_assert_int_eq(join_observe(rig.join, &o), FT_JOIN_OK);
    }
    join_rig_close(&rig);
}
END_TEST

FT_UNIT_MAIN("flow_networks", another_network_later_is_no_second_one, one_network_is_a_flow_as_any,
             two_networks_have_no_path, a_late_sample_of_another_network_counts,
             what_is_left_is_a_new_flow, it_is_unplaced, its_packet_numbers_say_nothing,
             without_room_the_samples_are_refused)
