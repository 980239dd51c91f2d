// SPDX-License-Identifier: Apache-2.0
/* Ports that are down by sFlow's counters, beside what SNMP says of them and without it. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/discovery_rig.h"

/* sFlow's counters of an uplink of leaf0. */
static void say(uint32_t spine, bool up)
{
    Fabrictrace__PortCounters poll = FABRICTRACE__PORT_COUNTERS__INIT;

    poll.has_agent = poll.has_ifindex = poll.has_time_ms = poll.has_oper_up = true;
    poll.agent = boxes[0].address;
    poll.ifindex = 100 + spine;
    poll.time_ms = (uint64_t)now_ms;
    poll.source = FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SFLOW;
    poll.oper_up = up;
    ck_assert_int_eq(ft_discovery_counters(discovery, &poll, now_ms), 0);
}

/* No SNMP at all: the topology is the file's, and sFlow says what is down. */
START_TEST(a_link_of_the_file_is_down_by_sflow)
{
    begin(true);
    ft_topology_free(base);
    base = leafspine(LEAVES, SPINES, HOSTS);
    say(0, true);
    ck_assert(!ft_discovery_some(discovery));
    now_ms += 20000;
    say(0, false);
    ck_assert(ft_discovery_due(discovery, now_ms, 1000));
    build();
    assert_differs(1);
    ck_assert_uint_eq(findings(FT_FINDING_LINK_DOWN, "leaf0", "up0", "a port of it is down"), 1);
    ck_assert_uint_eq(ft_discovery_findings(discovery)->count, 1);
    now_ms += 20000;
    say(0, true);
    ck_assert(ft_discovery_due(discovery, now_ms, 1000));
    build();
    assert_differs(0);
    ck_assert_uint_eq(ft_discovery_findings(discovery)->count, 0);
    /* The switch stops to say anything: the last word is forgotten. */
    now_ms += 20000;
    say(0, false);
    build();
    assert_differs(1);
    now_ms += 11 * 60000;
    ck_assert(ft_discovery_due(discovery, now_ms, 1000));
    build();
    assert_differs(0);
    end();
}
END_TEST

/* Both tell: one link is down, and up again when the later of them says so. */
START_TEST(a_link_is_down_once_whoever_says_so)
{
    begin(true);
    send_all();
    say(0, true);
    build();
    now_ms += 20000;
    say(0, false);
    build();
    assert_differs(1);
    now_ms += 1000;
    uplink(0, 0)->info.oper_up = downlink(0, 0)->info.oper_up = false;
    send_all();
    build();
    assert_differs(1);
    ck_assert_uint_eq(ft_discovery_findings(discovery)->count, 1);
    /* SNMP may have answered from before: it is asked again. */
    uplink(0, 0)->info.oper_up = downlink(0, 0)->info.oper_up = true;
    say(0, false);
    now_ms += 1000;
    send_all();
    build();
    assert_differs(1);
    now_ms += 10000;
    send_all();
    ck_assert(ft_discovery_due(discovery, now_ms, 1000));
    build();
    assert_differs(0);
    ck_assert_uint_eq(ft_discovery_findings(discovery)->count, 0);
    ck_assert(!ft_discovery_due(discovery, now_ms + 10000, 1000));
    end();
}
END_TEST

/* One switch is silent for a minute when this host's clock is set back by an hour. */
START_TEST(a_switch_goes_stale_by_a_clock_that_was_set_back)
{
    static const char stale[] = "no report for three intervals";

    begin(true);
    send_all();
    now_ms += 2 * INTERVAL_MS;
    for (uint32_t i = 1; i < SWITCHES; i++)
        send(i);
    build();
    ck_assert_uint_eq(findings(FT_FINDING_NOTE, NULL, "", stale), 0);
    now_ms -= 3600000;
    ft_discovery_set_back_step(discovery, now_ms, &(uint32_t){0}, UINT32_MAX);
    ft_discovery_set_back(discovery, now_ms);
    now_ms += INTERVAL_MS / 2;
    /* The poller, of the same clock, is heard at once. */
    downlink(1, 0)->info.oper_up = false;
    for (uint32_t i = 1; i < SWITCHES; i++)
        send(i);
    build();
    ck_assert_uint_eq(findings(FT_FINDING_LINK_DOWN, "leaf1", "up0", NULL), 1);
    ck_assert_uint_eq(findings(FT_FINDING_NOTE, NULL, "", stale), 0);
    now_ms += INTERVAL_MS;
    for (uint32_t i = 1; i < SWITCHES; i++)
        send(i);
    build();
    ck_assert_uint_eq(findings(FT_FINDING_NOTE, NULL, "", stale), 1);
    ck_assert_uint_eq(findings(FT_FINDING_NOTE, "leaf0", "", stale), 1);
    end();
}
END_TEST

FT_UNIT_MAIN("discovery_ports", a_link_of_the_file_is_down_by_sflow,
             a_link_is_down_once_whoever_says_so, a_switch_goes_stale_by_a_clock_that_was_set_back)
