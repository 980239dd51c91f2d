// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/window/loads.h"

#include <errno.h>

#include "tests/unit/join_rig.h"
#include "tests/unit/wide_pods.h"

#define MBPS(n) ((uint64_t)(n)*1000000)

static struct join_rig rig;
static struct ft_loads loads;

/* Links are of 1 Gb/s: below 10 Mb/s is a mouse, from 100 Mb/s on an elephant. */
static const struct ft_loads_config config = {.window_ms = JOIN_RIG_WINDOW_MS,
                                              .floor_share = 0.01,
                                              .elephant_share = 0.1,
                                              .elephants_max = 100};

static void setup(void)
{
    join_rig_open(&rig);
    ck_assert_int_eq(ft_loads_init(&loads, rig.t), 0);
}

static void teardown(void)
{
    ft_loads_free(&loads);
    join_rig_close(&rig);
}

/* Closes the window and adds every flow; the number of those that could not be kept. */
static unsigned add_all(const struct ft_loads_config *c)
{
    unsigned refused = 0;

    join_rig_seal(&rig);
    for (uint32_t i = 0; i < ft_join_limit(rig.join); i++) {
        struct ft_flow *flow = ft_join_at(rig.join, i);

        if (flow && ft_loads_add(&loads, c, rig.join, flow, i))
            refused++;
    }
    return refused;
}

static const struct ft_load *link_of(const char *at, const char *port)
{
    return &loads.link[join_rig_port(&rig, at, port)];
}

static uint64_t unplaced_at(const char *at, const char *port)
{
    return loads.unplaced[ft_topology_port(rig.t, join_rig_port(&rig, at, port))->group];
}

START_TEST(a_resolved_flow_loads_each_link_of_its_path)
{
    const struct ft_load *up, *down;

    setup();
    join_rig_sample(&rig, 50000, 1, MBPS(200), 400);
    ck_assert_uint_eq(add_all(&config), 0);
    up = link_of("leaf0", "up1");
    down = link_of("spine1", "down1");
    ck_assert_double_eq(up->bytes, 250e6);
    /* 400 samples: a standard error of 5 %. */
    ck_assert_double_eq_tol(up->variance, 250e6 * 250e6 / 400, 1);
    ck_assert_double_eq(up->flows, 1);
    ck_assert_uint_eq(up->certain, 1);
    ck_assert_uint_eq(up->elephants, 1);
    ck_assert_double_eq(down->bytes, up->bytes);
    ck_assert_double_eq(link_of("leaf1", "host0")->bytes, up->bytes);
    ck_assert_double_eq(link_of("leaf0", "up0")->bytes, 0);
    ck_assert_double_eq(link_of("leaf0", "up0")->flows, 0);
    ck_assert_double_eq(link_of("leaf1", "up1")->bytes, 0);
    ck_assert_uint_eq(loads.flows, 1);
    ck_assert_uint_eq(loads.placed, 1);
    ck_assert_double_eq(loads.bytes, 250e6);
    ft_loads_reset(&loads, rig.t);
    ck_assert_double_eq(up->bytes, 0);
    ck_assert_uint_eq(loads.flows + loads.placed + loads.elephant_count, 0);
    teardown();
}
END_TEST

/* Its sender chose the links: it is on them for certain, and no trial of chance. */
START_TEST(a_flow_that_bears_its_path_is_none_of_chance)
{
    struct ft_observation o = join_rig_seen(50000, 1, MBPS(200), 400);

    setup();
    o.source_routed = true;
    join_rig_take(&rig, &o);
    ck_assert_uint_eq(add_all(&config), 0);
    ck_assert_double_eq(link_of("leaf0", "up1")->flows, 1);
    ck_assert_double_eq(link_of("leaf0", "up1")->bytes, 250e6);
    ck_assert_uint_eq(link_of("leaf0", "up1")->certain, 0);
    ck_assert_uint_eq(loads.placed, 1);
    teardown();
}
END_TEST

START_TEST(mice_and_acknowledgements_have_bytes_and_no_number)
{
    struct ft_observation ack = join_rig_seen(50001, 0, MBPS(400), 100);

    setup();
    join_rig_sample(&rig, 50000, 0, MBPS(9), 100);
    ack.data_samples = 0;
    ack.ack_samples = ack.samples;
    join_rig_take(&rig, &ack);
    ck_assert_uint_eq(add_all(&config), 0);
    ck_assert_double_eq(link_of("leaf0", "up0")->bytes, 409e6 / 8 * 10);
    ck_assert_double_eq(link_of("leaf0", "up0")->flows, 0);
    ck_assert_uint_eq(link_of("leaf0", "up0")->elephants, 0);
    ck_assert_uint_eq(loads.flows, 0);
    ck_assert_double_eq(loads.bytes, 0);
    teardown();
}
END_TEST

/* Flows that a host counts and no switch samples: nobody knows their path, and their NICs' speed
 * says which of them are mice. */
START_TEST(the_floor_is_of_flows_without_a_path_too)
{
    setup();
    for (uint16_t sport = 50000; sport <= 50001; sport++) {
        const struct ft_host_report r = {.tuple = join_rig_tuple(sport),
                                         .time_ms = JOIN_RIG_END_MS,
                                         .interval_ms = JOIN_RIG_WINDOW_MS,
                                         .sending = true,
                                         .host = "gpu01",
                                         .bytes = MBPS(sport == 50000 ? 9 : 11) / 8 * 10,
                                         .data_packets = 1000,
                                         .qp_local = FT_NONE,
                                         .qp_remote = FT_NONE};

        ck_assert_int_eq(ft_join_report(rig.join, &r), FT_JOIN_OK);
    }
    ck_assert_uint_eq(add_all(&config), 0);
    ck_assert_uint_eq(join_rig_flow(&rig, 50000)->state, FT_PATH_UNRESOLVED);
    ck_assert_uint_eq(loads.flows, 1);
    ck_assert_uint_eq(loads.placed, 0);
    ck_assert_uint_eq(unplaced_at("leaf0", "up0"), 1);
    teardown();
}
END_TEST

/* Samples by turns over both spines: each has half of the rate. */
static void spray(uint16_t sport, uint64_t bps)
{
    for (int64_t ms = 0; ms < 9000; ms += 100) {
        struct ft_observation o = join_rig_seen(sport, (uint32_t)(ms / 100 % 2), 0, 10);

        o.bytes = bps / 8000 * JOIN_RIG_WINDOW_MS / 90;
        o.first_ms = o.last_ms = JOIN_RIG_START_MS + ms;
        join_rig_take(&rig, &o);
    }
}

/* By the rate of all of it, not of what each of its paths has. */
START_TEST(the_floor_is_of_sprayed_flows_too)
{
    setup();
    spray(50000, MBPS(9));
    spray(50001, MBPS(11));
    ck_assert_uint_eq(add_all(&config), 0);
    for (uint16_t sport = 50000; sport <= 50001; sport++)
        ck_assert_uint_eq(join_rig_flow(&rig, sport)->state, FT_PATH_MULTIPATH);
    ck_assert_uint_eq(loads.flows, 1);
    ck_assert_uint_eq(loads.placed, 1);
    for (int i = 0; i < 2; i++) {
        const struct ft_load *up = link_of("leaf0", i ? "up1" : "up0");

        ck_assert_double_eq_tol(up->flows, 0.5, 0.01);
        ck_assert_double_eq_tol(up->bytes, 10e6 / 8 * 10, 1e4);
    }
    teardown();
}
END_TEST

/* Leaf and spines sample a flow that is sprayed over 128 paths: more than are told apart. Its
 * leaf's uplinks have what they carried, and the links down to the other leaf nobody knows. */
START_TEST(very_many_paths_load_the_links_that_are_known)
{
    join_rig_open_over(&rig, wide_pods());
    ck_assert_int_eq(ft_loads_init(&loads, rig.t), 0);
    for (int64_t ms = 0; ms < 9000; ms += 20) {
        uint32_t s = (uint32_t)(ms / 20 % WIDE_SPINES), i = (uint32_t)(ms / 80 % WIDE_SUPERS);
        struct ft_observation o = join_rig_seen(50000, 0, MBPS(200) / 450, 10);

        o.first_ms = o.last_ms = JOIN_RIG_START_MS + ms;
        o.in_ifindex = WIDE_HOST;
        o.out_ifindex = 1 + wide_spine(0, s);
        join_rig_take(&rig, &o);
        o.agent = leafspine_switch_ip(wide_spine(0, s));
        o.in_ifindex = 1 + wide_leaf(0);
        o.out_ifindex = 1 + wide_super(s, i);
        join_rig_take(&rig, &o);
    }
    ck_assert_uint_eq(add_all(&config), 0);
    ck_assert_uint_eq(join_rig_flow(&rig, 50000)->state, FT_PATH_MULTIPATH);
    ck_assert_uint_eq(loads.flows, 1);
    ck_assert_uint_eq(loads.placed, 0);
    for (uint32_t s = 0; s < WIDE_SPINES; s++) {
        uint32_t up = wide_port(rig.t, wide_leaf(0), wide_spine(0, s));
        uint32_t down = wide_port(rig.t, wide_spine(1, s), wide_leaf(1));

        ck_assert_double_eq_tol(loads.link[up].flows, 1.0 / WIDE_SPINES, 0.01);
        ck_assert_double_eq(loads.link[down].flows, 0);
        ck_assert_uint_eq(loads.unplaced[ft_topology_port(rig.t, up)->group], 0);
        ck_assert_uint_eq(loads.unplaced[ft_topology_port(rig.t, down)->group], 1);
    }
    teardown();
}
END_TEST

/* Only the last switch saw it, and not by which port it came: either spine may have passed it. */
START_TEST(what_may_have_taken_two_paths_is_unplaced)
{
    struct ft_observation o = join_rig_seen(50000, 0, MBPS(200), 400);

    setup();
    o.agent = leafspine_switch_ip(1);
    o.in_ifindex = 0;
    o.out_ifindex = 1;
    join_rig_take(&rig, &o);
    join_rig_sample(&rig, 50001, 0, MBPS(50), 400);
    ck_assert_uint_eq(add_all(&config), 0);
    ck_assert_uint_eq(join_rig_flow(&rig, 50000)->state, FT_PATH_PARTIAL);
    ck_assert_uint_eq(loads.flows, 2);
    ck_assert_uint_eq(loads.placed, 1);
    ck_assert_uint_eq(unplaced_at("leaf0", "up0"), 1);
    ck_assert_uint_eq(unplaced_at("leaf1", "up0"), 0);
    ck_assert_double_eq(link_of("leaf0", "up0")->flows, 1);
    ck_assert_double_eq(link_of("leaf0", "up1")->flows, 0);
    /* The link to the host is certain. */
    ck_assert_double_eq(link_of("leaf1", "host0")->flows, 2);
    teardown();
}
END_TEST

/* By the lower end of its rate: few samples make no elephant. */
START_TEST(elephants_are_certain_ones)
{
    setup();
    join_rig_sample(&rig, 50000, 0, MBPS(110), 10000);
    join_rig_sample(&rig, 50001, 0, MBPS(110), 100);
    ck_assert_uint_eq(add_all(&config), 0);
    ck_assert_uint_eq(link_of("leaf0", "up0")->elephants, 1);
    ck_assert_double_eq(link_of("leaf0", "up0")->flows, 2);
    ck_assert_uint_ge(loads.elephant_count, 1);
    for (size_t i = 0; i < loads.elephant_count; i++)
        ck_assert_ptr_eq(ft_join_at(rig.join, loads.elephants[i].flow), join_rig_flow(&rig, 50000));
    teardown();
}
END_TEST

START_TEST(elephants_over_the_cap_are_counted_and_the_loads_right)
{
    struct ft_loads_config few = config;

    few.elephants_max = 1;
    setup();
    for (uint16_t i = 0; i < 3; i++)
        join_rig_sample(&rig, 50000 + i, 0, MBPS(200), 10000);
    ck_assert_uint_ge(add_all(&few), 2);
    ck_assert_uint_eq(loads.elephant_count, 1);
    ck_assert_uint_ge(loads.elephants_dropped, 2);
    ck_assert_uint_eq(link_of("leaf0", "up0")->elephants, 3);
    ck_assert_double_eq(link_of("leaf0", "up0")->bytes, 750e6);
    teardown();
}
END_TEST

/* Both hosts hang on leaf0, and a spine sampled it. */
START_TEST(a_detour_over_a_spine_is_avoidable)
{
    struct ft_observation o = join_rig_seen(50000, 0, MBPS(200), 400);

    setup();
    o.tuple.dst = leafspine_host_ip(0, 1);
    o.agent = leafspine_switch_ip(2);
    o.in_ifindex = o.out_ifindex = 1;
    join_rig_take(&rig, &o);
    join_rig_sample(&rig, 50001, 0, MBPS(200), 400);
    ck_assert_uint_eq(add_all(&config), 0);
    ck_assert_uint_eq(loads.spine.flows, 1);
    ck_assert_double_eq(loads.spine.bytes, 250e6);
    teardown();
}
END_TEST

FT_UNIT_MAIN("loads", a_resolved_flow_loads_each_link_of_its_path,
             a_flow_that_bears_its_path_is_none_of_chance,
             mice_and_acknowledgements_have_bytes_and_no_number, the_floor_is_of_sprayed_flows_too,
             the_floor_is_of_flows_without_a_path_too,
             very_many_paths_load_the_links_that_are_known,
             what_may_have_taken_two_paths_is_unplaced, elephants_are_certain_ones,
             elephants_over_the_cap_are_counted_and_the_loads_right,
             a_detour_over_a_spine_is_avoidable)
