// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "tests/unit/counters_rig.h"

#include <malloc.h>

static struct ft_counters *counters;
static int64_t heard_ms; /* when a poll comes in */

static void take(int64_t ms, uint64_t in_bytes, uint64_t out_bytes)
{
    struct poll p;

    make_poll(&p, 0, 100, ms, in_bytes, out_bytes);
    ck_assert_int_eq(ft_counters_take(counters, &p.c, heard_ms), 0);
}

static uint32_t uplink(void)
{
    return ft_topology_find_port(topology, 0, "up0");
}

static void begin(void)
{
    topology = leafspine(2, 2, 1);
    counters = ft_counters_new(100, WINDOW_MS, topology);
    ck_assert_ptr_nonnull(counters);
}

static void end(void)
{
    ft_counters_free(counters);
    ft_topology_free(topology);
}

START_TEST(differences_are_laid_on_windows_by_time)
{
    struct ft_counted c;

    begin();
    take(START_MS + 5000, 1000, 500);
    ck_assert(!ft_counters_window(counters, uplink(), WINDOW, &c));
    take(START_MS + 25000, 21000, 2500);
    /* Half of the first window is not covered, the second is whole. */
    ck_assert(!ft_counters_window(counters, uplink(), WINDOW, &c));
    ck_assert(ft_counters_window(counters, uplink(), WINDOW + 1, &c));
    ck_assert_double_eq_tol(c.in_bytes, 10000, 1e-6);
    ck_assert_double_eq_tol(c.out_bytes, 1000, 1e-6);
    ck_assert(!c.has_in_errors && c.snmp);
    ck_assert(!ft_counters_window(counters, uplink(), WINDOW + 2, &c));
    take(START_MS + 35000, 21000, 2500);
    ck_assert(ft_counters_window(counters, uplink(), WINDOW + 2, &c));
    ck_assert_double_eq_tol(c.in_bytes, 5000, 1e-6);
    end();
}
END_TEST

/* A poller whose clock was hours ahead, and is set: its counters count again at once. */
START_TEST(a_clock_that_is_set_back_begins_anew)
{
    const int64_t ahead_ms = 8 * 3600 * 1000;
    struct ft_counted c;

    begin();
    take(START_MS + ahead_ms, 1000, 500);
    take(START_MS + ahead_ms + 10000, 2000, 600);
    /* A little older is late. */
    take(START_MS + ahead_ms + 9000, 1900, 590);
    take(START_MS, 3000, 700);
    ck_assert(!ft_counters_window(counters, uplink(), WINDOW, &c));
    take(START_MS + 10000, 13000, 1700);
    ck_assert(ft_counters_window(counters, uplink(), WINDOW, &c));
    ck_assert_double_eq_tol(c.in_bytes, 10000, 1e-6);
    ck_assert_double_eq_tol(c.out_bytes, 1000, 1e-6);
    end();
}
END_TEST

static void take_at(const struct ft_ip *agent, int64_t ms, uint64_t out_bytes, bool snmp)
{
    struct poll p;
    size_t len;

    make_poll(&p, 0, 100, ms, 0, out_bytes);
    p.c.agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(agent, &len);
    p.c.agent.len = len;
    if (!snmp)
        p.c.source = FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SFLOW;
    ck_assert_int_eq(ft_counters_take(counters, &p.c, ms), 0);
}

/* leaf0 with an address more. */
static void begin_with_address(const struct ft_ip *second)
{
    const struct ft_ip first = leafspine_switch_ip(0);
    struct ft_topology_builder *b = ft_topology_builder_new("lab");
    struct ft_diag *diag = ft_diag_new();
    uint32_t id = ft_topology_add_switch(b, "leaf0", FT_TIER_LEAF, diag);

    ft_topology_add_address(b, id, &first, diag);
    ft_topology_add_address(b, id, second, diag);
    ft_topology_add_port(b, id, "up0", 100, LINK_BPS, diag);
    topology = ft_topology_build(b, diag);
    ck_assert_ptr_nonnull(topology);
    ft_topology_builder_free(b);
    ft_diag_free(diag);
    counters = ft_counters_new(100, WINDOW_MS, topology);
    ck_assert_ptr_nonnull(counters);
}

/* Two pollers read a switch, each by another address of it, and one of them stops. */
START_TEST(a_switch_of_two_addresses_is_counted_by_who_polls_it)
{
    const struct ft_ip first = leafspine_switch_ip(0), second = ft_ip4((uint8_t[4]){192, 0, 2, 99});
    const int64_t stop_ms = START_MS + 30000, end_ms = stop_ms + 700000;
    struct ft_counted c;

    begin_with_address(&second);
    for (int64_t ms = START_MS; ms <= end_ms; ms += WINDOW_MS) {
        take_at(&first, ms, (uint64_t)ms, true);
        if (ms <= stop_ms)
            take_at(&second, ms, (uint64_t)ms, true);
    }
    ck_assert(ft_counters_window(counters, uplink(), (uint32_t)(end_ms / WINDOW_MS) - 1, &c));
    ck_assert_double_eq_tol(c.out_bytes, WINDOW_MS, 1e-6);
    /* Whatever their order, the later one is read after a change of the topology. */
    take_at(&second, end_ms + WINDOW_MS, (uint64_t)end_ms, true);
    take_at(&first, end_ms + WINDOW_MS, (uint64_t)(end_ms + WINDOW_MS), true);
    ck_assert_int_eq(ft_counters_follow(counters, topology), 0);
    take_at(&first, end_ms + 2 * WINDOW_MS, (uint64_t)(end_ms + 2 * WINDOW_MS), true);
    ck_assert_int_eq(ft_counters_follow(counters, topology), 0);
    ck_assert(ft_counters_window(counters, uplink(), (uint32_t)(end_ms / WINDOW_MS) + 1, &c));
    ck_assert_double_eq_tol(c.out_bytes, WINDOW_MS, 1e-6);
    end();
}
END_TEST

START_TEST(sflow_counts_where_snmp_stops)
{
    const struct ft_ip agent = leafspine_switch_ip(0);
    const int64_t stop_ms = START_MS + 30000, end_ms = stop_ms + 700000;
    struct ft_counted c;

    begin();
    for (int64_t ms = START_MS; ms <= end_ms; ms += WINDOW_MS) {
        if (ms <= stop_ms)
            take_at(&agent, ms, (uint64_t)ms, true);
        take_at(&agent, ms, (uint64_t)ms, false);
        if (ms == stop_ms + WINDOW_MS)
            ck_assert(!ft_counters_window(counters, uplink(), (uint32_t)(ms / WINDOW_MS) - 1, &c));
    }
    ck_assert(ft_counters_window(counters, uplink(), (uint32_t)(end_ms / WINDOW_MS) - 1, &c));
    ck_assert(!c.snmp);
    ck_assert_double_eq_tol(c.out_bytes, WINDOW_MS, 1e-6);
    end();
}
END_TEST

START_TEST(a_reset_gives_no_figure_a_wrap_does)
{
    struct ft_counted c;

    begin();
    take(START_MS, UINT64_MAX - 999, 5000);
    take(START_MS + 10000, 1000, 6000);
    ck_assert(ft_counters_window(counters, uplink(), WINDOW, &c));
    ck_assert_double_eq_tol(c.in_bytes, 2000, 1e-6);
    take(START_MS + 20000, 500, 7000);
    ck_assert(!ft_counters_window(counters, uplink(), WINDOW + 1, &c));
    /* From there on it counts again. */
    take(START_MS + 30000, 700, 8000);
    ck_assert(ft_counters_window(counters, uplink(), WINDOW + 2, &c));
    ck_assert_double_eq_tol(c.in_bytes, 200, 1e-6);
    end();
}
END_TEST

/* A poll at an uptime; discontinuity_s: of the port's counters, likewise. */
static void take_uptime(int64_t ms, uint64_t bytes, uint64_t uptime_s, uint64_t discontinuity_s)
{
    struct poll p;

    make_poll(&p, 0, 100, ms, bytes, bytes);
    p.c.has_uptime_ms = p.c.has_discontinuity_ms = true;
    p.c.uptime_ms = uptime_s * 1000;
    p.c.discontinuity_ms = discontinuity_s * 1000;
    ck_assert_int_eq(ft_counters_take(counters, &p.c, heard_ms), 0);
}

/* A switch that restarted counted little before, or comes back with what it had kept: what it
 * counts then may be more. */
START_TEST(nothing_is_growth_over_a_restart)
{
    static const struct {
        uint64_t before_s, uptime_s, discontinuity_s;
        bool counts;
    } cases[] = {
        {1000, 1010, 0, true},          {1000, 4, 0, false},       {3, 5, 0, false},
        {1000, 1010, 1005, false},      {1000, 1009, 0, true},     {42949672, 9, 0, true},
        {42949672, 42949660, 0, false}, {42949000, 100, 0, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ft_counted c;

        begin();
        take_uptime(START_MS, 1000, cases[i].before_s, 0);
        take_uptime(START_MS + 10000, 21000, cases[i].uptime_s, cases[i].discontinuity_s);
        ck_assert_msg(ft_counters_window(counters, uplink(), WINDOW, &c) == cases[i].counts,
                      "case %zu", i);
        /* From there on it counts. */
        take_uptime(START_MS + 20000, 31000, cases[i].uptime_s + 10, cases[i].discontinuity_s);
        ck_assert(ft_counters_window(counters, uplink(), WINDOW + 1, &c));
        ck_assert_double_eq_tol(c.in_bytes, 10000, 1e-6);
        end();
    }
}
END_TEST

START_TEST(more_than_the_port_carries_is_no_figure)
{
    struct ft_counted c;

    begin();
    take(START_MS, 0, 0);
    take(START_MS + 10000, UINT64_C(1) << 50, 1000);
    ck_assert(!ft_counters_window(counters, uplink(), WINDOW, &c));
    end();
}
END_TEST

static void take_state(int64_t ms, bool up, bool snmp)
{
    struct poll p;

    make_poll(&p, 0, 100, ms, (uint64_t)ms, 0);
    if (!snmp)
        p.c.source = FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SFLOW;
    p.c.has_oper_up = true;
    p.c.oper_up = up;
    ck_assert_int_eq(ft_counters_take(counters, &p.c, ms), 0);
}

START_TEST(the_newest_report_says_whether_a_port_is_up)
{
    const int64_t now_ms = START_MS + 60000;
    struct ft_port_report s;

    begin();
    ck_assert(!ft_counters_state(counters, uplink(), now_ms, &s));
    /* Down from the beginning: some switches always say so. */
    take_state(START_MS, false, true);
    ck_assert(ft_counters_state(counters, uplink(), now_ms, &s) && !s.up && !s.went_down);
    take_state(START_MS + 10000, true, true);
    ck_assert(ft_counters_state(counters, uplink(), now_ms, &s) && s.up && !s.went_down);
    take_state(START_MS + 20000, false, true);
    take_state(START_MS + 30000, false, true);
    ck_assert(ft_counters_state(counters, uplink(), now_ms, &s) && !s.up && s.went_down);
    ck_assert_int_eq(s.up_ms, START_MS + 10000);
    ck_assert_int_eq(s.down_ms, START_MS + 20000);
    /* By whichever source is newer. */
    take_state(START_MS + 35000, true, false);
    ck_assert(ft_counters_state(counters, uplink(), now_ms, &s) && s.up && !s.went_down);
    take_state(START_MS + 40000, false, true);
    ck_assert(ft_counters_state(counters, uplink(), now_ms, &s) && s.went_down);
    /* Nobody has said so for long. */
    ck_assert(!ft_counters_state(counters, uplink(), now_ms + 600000, &s));
    end();
}
END_TEST

static void take_shut(uint32_t switch_id, uint32_t ifindex, int64_t ms, bool admin_up, bool up)
{
    struct poll p;

    make_poll(&p, switch_id, ifindex, ms, (uint64_t)ms, 0);
    p.c.has_oper_up = p.c.has_admin_up = true;
    p.c.oper_up = up;
    p.c.admin_up = admin_up;
    ck_assert_int_eq(ft_counters_take(counters, &p.c, ms), 0);
}

/* Neither of the port that was shut, nor of the other end that goes down with it. */
START_TEST(what_an_administrator_shuts_is_no_flap)
{
    uint32_t peer, downs;
    struct ft_port_report s;
    int64_t ms = START_MS;

    begin();
    peer = ft_topology_port(topology, uplink())->peer;
    for (int i = 0; i < 20; i++, ms += 20000) {
        take_shut(0, 100, ms, i % 2 == 0, i % 2 == 0);
        take_shut(ft_topology_port(topology, peer)->switch_id,
                  ft_topology_port(topology, peer)->ifindex, ms + 5000, true, i % 2 == 0);
    }
    ck_assert(ft_counters_downs(counters, uplink(), peer, START_MS, ms, &downs));
    ck_assert_uint_eq(downs, 0);
    ck_assert(ft_counters_downs(counters, peer, uplink(), START_MS, ms, &downs));
    ck_assert_uint_eq(downs, 0);
    ck_assert(ft_counters_state(counters, uplink(), ms, &s) && !s.up && s.went_down && s.shut);
    ck_assert(ft_counters_state(counters, peer, ms, &s) && !s.up && s.went_down && !s.shut);
    /* One fault is one, at each end. */
    take_shut(0, 100, ms, true, true);
    take_shut(0, 100, ms + 20000, true, false);
    ck_assert(ft_counters_downs(counters, uplink(), peer, START_MS, ms + 30000, &downs));
    ck_assert_uint_eq(downs, 1);
    /* The oldest were forgotten: which of them were shut moved along. */
    for (int i = 0; i < 14; i++, ms += 20000) {
        take_shut(0, 100, ms + 30000, true, true);
        take_shut(0, 100, ms + 40000, true, false);
    }
    ck_assert(ft_counters_downs(counters, uplink(), FT_NONE, START_MS, ms + 60000, &downs));
    ck_assert_uint_eq(downs, 15);
    end();
}
END_TEST

static void take_pause(int64_t ms, bool has, uint64_t in_pause, uint64_t out_pfc)
{
    struct poll p;

    make_poll(&p, 0, 100, ms, (uint64_t)ms, 0);
    p.c.has_in_pause = p.c.has_out_pfc = has;
    p.c.in_pause = in_pause;
    p.c.out_pfc = out_pfc;
    ck_assert_int_eq(ft_counters_take(counters, &p.c, heard_ms), 0);
}

/* A poll that lacks a counter leaves the windows around it without a figure, not with a low one. */
START_TEST(pause_frames_are_differences_between_polls_that_had_them)
{
    struct ft_counted c;

    begin();
    take_pause(START_MS, true, 1000, 10);
    take_pause(START_MS + 10000, true, 1500, 10);
    take_pause(START_MS + 20000, false, 0, 0);
    take_pause(START_MS + 30000, true, 1600, 40);
    take_pause(START_MS + 40000, true, 1700, 50);
    ck_assert(ft_counters_window(counters, uplink(), WINDOW, &c));
    ck_assert(c.has_in_pause && c.has_out_pfc && !c.has_out_pause && !c.has_in_pfc);
    ck_assert_double_eq_tol(c.in_pause, 500, 1e-6);
    ck_assert_double_eq_tol(c.out_pfc, 0, 1e-6);
    for (uint32_t w = 1; w <= 2; w++) {
        ck_assert(ft_counters_window(counters, uplink(), WINDOW + w, &c));
        ck_assert(c.has_in_bytes && !c.has_in_pause && !c.has_out_pfc);
    }
    ck_assert(ft_counters_window(counters, uplink(), WINDOW + 3, &c));
    ck_assert_double_eq_tol(c.in_pause, 100, 1e-6);
    ck_assert_double_eq_tol(c.out_pfc, 10, 1e-6);
    end();
}
END_TEST

START_TEST(snmp_goes_before_sflow)
{
    struct ft_counted c;
    struct poll p;

    begin();
    for (int i = 0; i < 2; i++) {
        make_poll(&p, 0, 100, START_MS + i * WINDOW_MS, 0, (uint64_t)i * 111);
        p.c.source = FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SFLOW;
        ck_assert_int_eq(ft_counters_take(counters, &p.c, heard_ms), 0);
    }
    ck_assert(ft_counters_window(counters, uplink(), WINDOW, &c));
    ck_assert_double_eq_tol(c.out_bytes, 111, 1e-6);
    ck_assert(!c.snmp && !ft_counters_known(counters, uplink(), true));
    take(START_MS, 0, 0);
    take(START_MS + WINDOW_MS, 0, 222);
    ck_assert(ft_counters_window(counters, uplink(), WINDOW, &c));
    ck_assert_double_eq_tol(c.out_bytes, 222, 1e-6);
    end();
}
END_TEST

START_TEST(polls_that_cannot_be_are_refused)
{
    struct poll p;

    begin();
    make_poll(&p, 0, 0, START_MS, 0, 0);
    ck_assert_int_eq(ft_counters_take(counters, &p.c, heard_ms), -EINVAL);
    make_poll(&p, 0, 100, 0, 0, 0);
    ck_assert_int_eq(ft_counters_take(counters, &p.c, heard_ms), -EINVAL);
    end();
}
END_TEST

static int take_of(uint32_t switch_id, uint32_t ifindex)
{
    struct poll p;

    make_poll(&p, switch_id, ifindex, START_MS, 0, 0);
    return ft_counters_take(counters, &p.c, heard_ms);
}

/* Whoever sends polls of ports that do not exist shuts others out for ten minutes at most. */
START_TEST(ports_that_nobody_reports_make_room)
{
    begin();
    heard_ms = START_MS;
    for (uint32_t i = 0; i < 100; i++)
        ck_assert_int_eq(take_of(1, 1000 + i), 0);
    ck_assert_int_eq(take_of(0, 100), -ENOSPC);
    heard_ms += 300000;
    ck_assert_int_eq(take_of(1, 1007), 0);
    heard_ms += 299999;
    ck_assert_int_eq(take_of(0, 100), -ENOSPC);
    ck_assert(!ft_counters_known(counters, uplink(), true));
    heard_ms++;
    ck_assert_int_eq(take_of(0, 100), 0);
    ck_assert(ft_counters_known(counters, uplink(), true));
    for (uint32_t i = 1; i < 99; i++)
        ck_assert_int_eq(take_of(1, 2000 + i), 0);
    /* Who was told of meanwhile stays. */
    ck_assert_int_eq(take_of(1, 2099), -ENOSPC);
    ck_assert_int_eq(take_of(1, 1007), 0);
    /* What had a port of the topology has it no more once it is forgotten. */
    heard_ms += 600000;
    for (uint32_t i = 0; i < 100; i++)
        ck_assert_int_eq(take_of(1, 3000 + i), 0);
    ck_assert(!ft_counters_known(counters, uplink(), true));
    /* This host's clock is set back: they are as old as that from here on. */
    heard_ms -= 86400000;
    ck_assert_int_eq(take_of(0, 100), -ENOSPC);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(take_of(0, 100), -ENOSPC);
    heard_ms += 600000;
    ck_assert_int_eq(take_of(0, 100), 0);
    end();
}
END_TEST

static size_t memory_taken(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* By the allocator's own count, at several sizes of the table: just before it doubles its slots,
 * just after it, and full. */
START_TEST(a_port_takes_what_the_budget_gives_it)
{
    static const uint32_t counts[] = {24576, 24577, 60000, 98304, 98305};

    topology = leafspine(2, 2, 1);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        size_t before = memory_taken(), after;

        counters = ft_counters_new(counts[i], WINDOW_MS, topology);
        heard_ms = START_MS;
        for (uint32_t port = 0; port < counts[i]; port++)
            ck_assert_int_eq(take_of(port & 1, 1000 + port / 2), 0);
        ck_assert_int_eq(take_of(0, 1), -ENOSPC);
        after = memory_taken();
        /* A sanitizer's allocator does not count. */
        ck_assert_uint_ge(after - before, before ? 1000 * (size_t)counts[i] : 0);
        ck_assert_uint_le(after - before, FT_COUNTERS_PORT_BYTES * (size_t)counts[i]);
        ft_counters_free(counters);
    }
    ft_topology_free(topology);
}
END_TEST

FT_UNIT_MAIN("counters", ports_that_nobody_reports_make_room,
             differences_are_laid_on_windows_by_time, a_clock_that_is_set_back_begins_anew,
             a_switch_of_two_addresses_is_counted_by_who_polls_it, sflow_counts_where_snmp_stops,
             a_reset_gives_no_figure_a_wrap_does, nothing_is_growth_over_a_restart,
             more_than_the_port_carries_is_no_figure,
             pause_frames_are_differences_between_polls_that_had_them, snmp_goes_before_sflow,
             polls_that_cannot_be_are_refused, a_port_takes_what_the_budget_gives_it,
             the_newest_report_says_whether_a_port_is_up, what_an_administrator_shuts_is_no_flap)
