// SPDX-License-Identifier: Apache-2.0
/* Links of which an administrator shut a port down: by SNMP, by sFlow, and by one end before the
 * other has reported. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/discovery_rig.h"

#define DOWN FT_FINDING_LINK_DOWN
#define SHUT FT_FINDING_LINK_SHUT

/* Every switch says what was shut; both ends of a link are up. */
static void begin_shut(void)
{
    begin(true);
    for (uint32_t i = 0; i < SWITCHES; i++)
        for (uint32_t p = 0; p < boxes[i].port_count; p++) {
            boxes[i].ports[p].info.has_admin_up = true;
            boxes[i].ports[p].info.admin_up = true;
        }
    send_all();
    build();
}

static enum ft_link_state state(const char *switch_name, const char *port)
{
    struct ft_link_down down;

    return ft_discovery_state(discovery, switch_name, port, &down);
}

/* The switch reports, and what follows from it is found. */
static void send_and_build(uint32_t box)
{
    now_ms += 10000;
    send(box);
    build();
}

START_TEST(a_link_that_was_shut_is_not_down)
{
    struct ft_link_down down;

    begin_shut();
    uplink(1, 2)->info.oper_up = uplink(1, 2)->info.admin_up = false;
    downlink(1, 2)->info.oper_up = false;
    send_and_build(1);
    /* No path crosses it. */
    assert_differs(1);
    ck_assert_uint_eq(findings(DOWN, NULL, NULL, NULL), 0);
    ck_assert_uint_eq(findings(SHUT, "leaf1", "up2", "an administrator shut down leaf1 up2"), 1);
    /* The far end follows, with its neighbours. */
    uplink(1, 2)->hears = downlink(1, 2)->hears = false;
    send_and_build(LEAVES + 2);
    send_and_build(1);
    ck_assert_uint_eq(findings(DOWN, NULL, NULL, NULL), 0);
    ck_assert_uint_eq(findings(SHUT, "leaf1", "up2", "an administrator shut down leaf1 up2"), 1);
    ck_assert_int_eq(ft_discovery_state(discovery, "leaf1", "up2", &down), FT_LINK_SHUT);
    ck_assert_str_eq(down.peer, "spine2");
    ck_assert_str_eq(down.peer_port, "down1");
    ck_assert_int_ne(down.since_ms, 0);
    ck_assert_int_eq(state("spine2", "down1"), FT_LINK_PEER_SHUT);
    ck_assert_int_eq(state("leaf1", "up1"), FT_LINK_UP);
    /* Enabled again it takes a while to come up, which is no alarm either. */
    uplink(1, 2)->info.admin_up = true;
    send_and_build(1);
    ck_assert_uint_eq(findings(DOWN, NULL, NULL, NULL), 0);
    ck_assert_uint_eq(findings(SHUT, "leaf1", "up2", "enabled again"), 1);
    uplink(1, 2)->info.oper_up = downlink(1, 2)->info.oper_up = true;
    uplink(1, 2)->hears = downlink(1, 2)->hears = true;
    send_and_build(1);
    send_and_build(LEAVES + 2);
    assert_differs(0);
    ck_assert_uint_eq(ft_discovery_findings(discovery)->count, 0);
    ck_assert_int_eq(state("leaf1", "up2"), FT_LINK_UP);
    end();
}
END_TEST

START_TEST(one_that_does_not_come_up_again_is_down)
{
    begin_shut();
    uplink(1, 2)->info.oper_up = uplink(1, 2)->info.admin_up = downlink(1, 2)->info.oper_up = false;
    send_and_build(1);
    send_and_build(LEAVES + 2);
    uplink(1, 2)->info.admin_up = true;
    send_and_build(1);
    ck_assert_uint_eq(findings(SHUT, NULL, NULL, NULL), 1);
    for (int i = 0; i < 6; i++)
        send_and_build(1);
    ck_assert_uint_eq(findings(SHUT, NULL, NULL, NULL), 0);
    ck_assert_uint_eq(findings(DOWN, "leaf1", "up2", "a port of it is down"), 1);
    ck_assert_int_eq(state("leaf1", "up2"), FT_LINK_DOWN);
    end();
}
END_TEST

/* Switches are polled one after the other: the far end may be down before the near one is shut. */
START_TEST(nothing_is_raised_until_the_other_end_has_reported)
{
    begin_shut();
    downlink(1, 2)->info.oper_up = downlink(1, 2)->hears = false;
    send_and_build(LEAVES + 2);
    assert_differs(1);
    ck_assert_uint_eq(findings(DOWN, NULL, NULL, NULL), 0);
    ck_assert_uint_eq(findings(SHUT, NULL, NULL, NULL), 0);
    ck_assert_uint_eq(findings(FT_FINDING_NOTE, "leaf1", "up2", "has not reported since"), 1);
    ck_assert_int_eq(state("leaf1", "up2"), FT_LINK_DOWN);
    /* It is looked at again, also where nothing new comes. */
    ck_assert(ft_discovery_due(discovery, now_ms + 5000, 1000));
    uplink(1, 2)->info.oper_up = uplink(1, 2)->info.admin_up = uplink(1, 2)->hears = false;
    send_and_build(1);
    ck_assert_uint_eq(findings(DOWN, NULL, NULL, NULL), 0);
    ck_assert_uint_eq(findings(SHUT, "leaf1", "up2", "an administrator shut down leaf1 up2"), 1);
    end();
}
END_TEST

START_TEST(a_cable_that_is_cut_is_down_once_both_ends_say_so)
{
    begin_shut();
    downlink(1, 2)->info.oper_up = downlink(1, 2)->hears = false;
    send_and_build(LEAVES + 2);
    ck_assert_uint_eq(findings(DOWN, NULL, NULL, NULL), 0);
    uplink(1, 2)->info.oper_up = uplink(1, 2)->hears = false;
    send_and_build(1);
    ck_assert_uint_eq(findings(DOWN, "leaf1", "up2", "a port of it is down"), 1);
    end();
}
END_TEST

/* Its switch answers that the port is up, or does not answer at all. */
START_TEST(nobody_waits_for_an_end_that_has_nothing_to_say)
{
    begin_shut();
    downlink(1, 2)->info.oper_up = false;
    send_and_build(LEAVES + 2);
    send_and_build(1);
    ck_assert_uint_eq(findings(DOWN, "leaf1", "up2", "a port of it is down"), 1);
    downlink(2, 2)->info.oper_up = false;
    send_and_build(LEAVES + 2);
    ck_assert_uint_eq(findings(DOWN, "leaf2", "up2", NULL), 0);
    now_ms += INTERVAL_MS + 10000;
    ck_assert(ft_discovery_due(discovery, now_ms, 1000));
    build();
    ck_assert_uint_eq(findings(DOWN, "leaf2", "up2", NULL), 1);
    uplink(3, 2)->info.has_admin_up = false;
    send_and_build(3);
    downlink(3, 2)->info.oper_up = false;
    send_and_build(LEAVES + 2);
    ck_assert_uint_eq(findings(DOWN, "leaf3", "up2", NULL), 1);
    end();
}
END_TEST

START_TEST(the_port_of_a_host_that_was_shut)
{
    begin_shut();
    host_port(1, 1)->info.oper_up = host_port(1, 1)->info.admin_up = false;
    send_and_build(1);
    ck_assert_uint_eq(findings(DOWN, NULL, NULL, NULL), 0);
    ck_assert_uint_eq(findings(SHUT, "leaf1", "host1", "an administrator shut it down"), 1);
    ck_assert_int_eq(state("leaf1", "host1"), FT_LINK_SHUT);
    host_port(1, 1)->info.admin_up = true;
    send_and_build(1);
    ck_assert_uint_eq(findings(DOWN, "leaf1", "host1", NULL), 1);
    ck_assert_int_eq(state("leaf1", "host1"), FT_LINK_DOWN);
    end();
}
END_TEST

/* sFlow's counters of an uplink of leaf0. */
static void say(uint32_t spine, bool admin_up, bool oper_up)
{
    Fabrictrace__PortCounters poll = FABRICTRACE__PORT_COUNTERS__INIT;

    poll.has_agent = poll.has_ifindex = poll.has_time_ms = true;
    poll.has_oper_up = poll.has_admin_up = true;
    poll.agent = boxes[0].address;
    poll.ifindex = 100 + spine;
    poll.time_ms = (uint64_t)now_ms;
    poll.source = FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SFLOW;
    poll.admin_up = admin_up;
    poll.oper_up = oper_up;
    ck_assert_int_eq(ft_discovery_counters(discovery, &poll, now_ms), 0);
}

static void by_sflow_alone(void)
{
    begin(true);
    ft_topology_free(base);
    base = leafspine(LEAVES, SPINES, HOSTS);
    for (uint32_t s = 0; s < SPINES; s++)
        say(s, true, true);
    now_ms += 20000;
}

START_TEST(a_link_of_the_file_is_shut_by_sflow)
{
    by_sflow_alone();
    /* Its agent has not shown yet that it tells the one from the other. */
    say(0, false, false);
    build();
    ck_assert_uint_eq(findings(DOWN, "leaf0", "up0", NULL), 1);
    now_ms += 20000;
    say(1, true, false);
    say(0, false, false);
    ck_assert(ft_discovery_due(discovery, now_ms, 1000));
    build();
    assert_differs(2);
    ck_assert_uint_eq(findings(SHUT, "leaf0", "up0", "an administrator shut down leaf0 up0"), 1);
    ck_assert_uint_eq(findings(DOWN, "leaf0", "up1", NULL), 1);
    ck_assert_uint_eq(ft_discovery_findings(discovery)->count, 2);
    end();
}
END_TEST

/* Both tell: whoever said it later is right, but an SNMP agent may answer what was. */
START_TEST(the_later_word_counts)
{
    begin_shut();
    now_ms += 20000;
    for (uint32_t s = 0; s < SPINES; s++)
        say(s, true, true);
    now_ms += 20000;
    say(1, true, false);
    now_ms += 20000;
    say(1, true, true);
    uplink(0, 0)->info.oper_up = false;
    say(0, false, false);
    now_ms += 1000;
    send(0);
    build();
    ck_assert_uint_eq(findings(SHUT, "leaf0", "up0", NULL), 1);
    /* Enabled since. */
    now_ms += 20000;
    send(0);
    send(LEAVES);
    build();
    ck_assert_uint_eq(findings(SHUT, "leaf0", "up0", "enabled again"), 1);
    uplink(0, 0)->info.admin_up = false;
    send_and_build(0);
    ck_assert_uint_eq(findings(SHUT, "leaf0", "up0", "an administrator shut down leaf0 up0"), 1);
    now_ms += 20000;
    say(0, true, false);
    build();
    ck_assert_uint_eq(findings(SHUT, "leaf0", "up0", "enabled again"), 1);
    end();
}
END_TEST

FT_UNIT_MAIN("discovery_shut", a_link_that_was_shut_is_not_down,
             one_that_does_not_come_up_again_is_down,
             nothing_is_raised_until_the_other_end_has_reported,
             a_cable_that_is_cut_is_down_once_both_ends_say_so,
             nobody_waits_for_an_end_that_has_nothing_to_say, the_port_of_a_host_that_was_shut,
             a_link_of_the_file_is_shut_by_sflow, the_later_word_counts)
