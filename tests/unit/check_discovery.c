// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/discovery_rig.h"

START_TEST(reports_alone_give_the_complete_fabric)
{
    begin(true);
    send_all();
    ck_assert(ft_discovery_due(discovery, now_ms, 1000));
    build();
    assert_differs(0);
    ck_assert_uint_eq(ft_topology_groups(found), 2 * LEAVES);
    ck_assert_uint_eq(ft_discovery_findings(discovery)->count, 0);
    /* The same said again is no news; ids and speeds are those of the reports. */
    now_ms += INTERVAL_MS;
    send_all();
    ck_assert(!ft_discovery_due(discovery, now_ms, 1000));
    ck_assert_uint_eq(ft_topology_port(found, port_of("leaf2", "up3"))->ifindex, 103);
    ck_assert_uint_eq(ft_topology_port(found, port_of("leaf2", "up3"))->speed_bps, LINK_BPS);
    end();
}
END_TEST

START_TEST(the_order_of_reports_does_not_matter)
{
    struct ft_topology *first;

    begin(true);
    send_all();
    build();
    first = found;
    found = NULL;
    ft_discovery_free(discovery);
    discovery = ft_discovery_new(&(struct ft_discovery_config){.switches_max = 100});
    for (uint32_t i = SWITCHES; i-- > 0;)
        send(i);
    build();
    ck_assert(ft_topology_same(first, found));
    ft_topology_free(first);
    end();
}
END_TEST

START_TEST(one_side_that_speaks_is_enough)
{
    begin(true);
    for (uint32_t s = 0; s < SPINES; s++)
        for (uint32_t l = 0; l < LEAVES; l++)
            downlink(l, s)->hears = false;
    send_all();
    build();
    assert_differs(0);
    end();
}
END_TEST

/* Port ids of every kind; a local one means something only in its owner's words. */
START_TEST(port_ids_are_resolved_by_their_kind)
{
    static char alias[] = "to leaf0", local[] = "17", wrong[] = "down3";

    begin(true);
    for (uint32_t s = 0; s < SPINES; s++)
        downlink(0, s)->hears = false;
    hear(uplink(0, 0), boxes[LEAVES].chassis, "", FABRICTRACE__ID_KIND__ID_KIND_MAC,
         "02:00:00:00:04:00");
    downlink(0, 1)->info.alias = alias;
    hear(uplink(0, 1), boxes[LEAVES + 1].chassis, "", FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_ALIAS,
         alias);
    downlink(0, 2)->info.has_lldp_id_kind = true;
    downlink(0, 2)->info.lldp_id_kind = FABRICTRACE__ID_KIND__ID_KIND_LOCAL;
    downlink(0, 2)->info.lldp_id = local;
    hear(uplink(0, 2), boxes[LEAVES + 2].chassis, "", FABRICTRACE__ID_KIND__ID_KIND_LOCAL, local);
    /* Reads like an ifIndex, or a name: it is neither. */
    hear(uplink(0, 3), boxes[LEAVES + 3].chassis, "", FABRICTRACE__ID_KIND__ID_KIND_LOCAL, wrong);
    send_all();
    build();
    assert_differs(1);
    ck_assert_uint_eq(findings(FT_FINDING_NOTE, "leaf0", "up3", "port id of that switch"), 1);
    /* An id that two ports have names neither. */
    downlink(1, 2)->info.has_lldp_id_kind = true;
    downlink(1, 2)->info.lldp_id_kind = FABRICTRACE__ID_KIND__ID_KIND_LOCAL;
    downlink(1, 2)->info.lldp_id = local;
    send_all();
    build();
    ck_assert_uint_eq(ft_topology_port(found, port_of("leaf0", "up2"))->peer, FT_NONE);
    end();
}
END_TEST

START_TEST(a_link_whose_port_is_down_leaves_and_comes_back)
{
    begin(true);
    send_all();
    build();
    uplink(1, 2)->info.oper_up = false;
    send(1);
    ck_assert(ft_discovery_due(discovery, now_ms + 1000, 1000));
    build();
    assert_differs(1);
    ck_assert_uint_eq(findings(FT_FINDING_LINK_DOWN, "leaf1", "up2", "spine2 down1"), 1);
    ck_assert_uint_eq(findings(FT_FINDING_LINK_DOWN, NULL, NULL, NULL), 1);
    /* Neighbours vanish soon after: still the same one link. */
    uplink(1, 2)->hears = downlink(1, 2)->hears = false;
    send_all();
    build();
    assert_differs(1);
    ck_assert_uint_eq(findings(FT_FINDING_LINK_DOWN, NULL, NULL, NULL), 1);
    uplink(1, 2)->info.oper_up = true;
    uplink(1, 2)->hears = downlink(1, 2)->hears = true;
    send_all();
    build();
    assert_differs(0);
    ck_assert_uint_eq(findings(FT_FINDING_LINK_DOWN, NULL, NULL, NULL), 0);
    end();
}
END_TEST

START_TEST(the_port_of_a_host_that_is_down_is_reported)
{
    begin(true);
    host_port(1, 1)->info.oper_up = false;
    send_all();
    build();
    assert_differs(0);
    ck_assert_uint_eq(findings(FT_FINDING_LINK_DOWN, "leaf1", "host1", "h1-1"), 1);
    ck_assert_uint_eq(findings(FT_FINDING_LINK_DOWN, NULL, NULL, NULL), 1);
    end();
}
END_TEST

START_TEST(a_link_that_neither_side_hears_is_down)
{
    begin(true);
    send_all();
    build();
    uplink(1, 2)->hears = false;
    send_all();
    build();
    assert_differs(0);
    downlink(1, 2)->hears = false;
    send_all();
    build();
    assert_differs(1);
    ck_assert_uint_eq(findings(FT_FINDING_LINK_DOWN, NULL, NULL, "neither side"), 1);
    /* Nobody learns a host where a link was. */
    enter(1, 102, ft_ip4((uint8_t[4]){10, 9, 9, 9}), now_ms, 10);
    build();
    ck_assert_str_eq(attached(ft_ip4((uint8_t[4]){10, 9, 9, 9})), "");
    end();
}
END_TEST

START_TEST(a_recabled_port_takes_its_new_link)
{
    begin(true);
    send_all();
    build();
    /* leaf0 up0 and leaf1 up0 change places at spine0. */
    hear(uplink(0, 0), boxes[LEAVES].chassis, "spine0",
         FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_NAME, "down1");
    hear(uplink(1, 0), boxes[LEAVES].chassis, "spine0",
         FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_NAME, "down0");
    hear(downlink(0, 0), boxes[1].chassis, "leaf1", FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_NAME,
         "up0");
    hear(downlink(1, 0), boxes[0].chassis, "leaf0", FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_NAME,
         "up0");
    send_all();
    build();
    assert_differs(4);
    ck_assert_uint_eq(ft_discovery_findings(discovery)->count, 0);
    end();
}
END_TEST

START_TEST(silence_of_lldp_changes_nothing)
{
    begin(true);
    send_all();
    build();
    boxes[0].report.has_lldp = false;
    for (uint32_t i = 0; i < boxes[0].port_count; i++)
        boxes[0].ports[i].hears = false;
    for (uint32_t s = 0; s < SPINES; s++)
        downlink(0, s)->hears = false;
    for (size_t polls = 1; polls <= 3; polls++) {
        now_ms += INTERVAL_MS;
        send_all();
        build();
        assert_differs(0);
        ck_assert_uint_eq(findings(FT_FINDING_NOTE, "leaf0", "", "no LLDP any more"), polls > 1);
    }
    end();
}
END_TEST

/* A switch that has just started answers SNMP first: only when it has been asked twice. */
START_TEST(lldp_that_comes_a_poll_later_is_not_missed)
{
    begin(true);
    for (int i = 0; i < 4; i++) {
        static char problem[] = "LLDP-MIB is not answered";
        bool silent = i == 1;

        boxes[0].report.reachable = !silent;
        boxes[0].report.has_lldp = i == 3;
        boxes[0].report.problem = i == 3 ? NULL : problem;
        for (uint32_t s = 0; s < SPINES; s++)
            uplink(0, s)->hears = i == 3;
        now_ms += INTERVAL_MS;
        send_all();
        build();
        ck_assert_uint_eq(findings(FT_FINDING_NOTE, "leaf0", "", "LLDP"), silent);
    }
    end();
}
END_TEST

/* LLDP that was off for long starts again: nobody hears anybody at first. The links stay, and a
 * cable that was moved in the meantime is followed. */
START_TEST(lldp_that_begins_anew_changes_nothing)
{
    begin(true);
    send_all();
    build();
    boxes[0].report.has_lldp = false;
    for (uint32_t s = 0; s < SPINES; s++)
        uplink(0, s)->hears = downlink(0, s)->hears = false;
    host_port(0, 0)->hears = host_port(0, 1)->hears = false;
    now_ms += INTERVAL_MS;
    send_all();
    build();
    assert_differs(0);
    boxes[0].report.has_lldp = true;
    for (int i = 0; i < 3; i++) {
        now_ms += INTERVAL_MS;
        uplink(0, 1)->hears = i > 0;
        send_all();
        build();
        assert_differs(0);
        ck_assert_uint_eq(findings(FT_FINDING_LINK_DOWN, NULL, NULL, NULL), 0);
    }
    /* A port that is down has nobody behind it. */
    uplink(0, 2)->info.oper_up = false;
    send_all();
    build();
    assert_differs(1);
    uplink(0, 2)->info.oper_up = true;
    /* What has not come back after LLDP's time to live is gone. */
    now_ms += 150000;
    send_all();
    build();
    ck_assert_uint_eq(findings(FT_FINDING_LINK_DOWN, NULL, NULL, "neither side receives LLDP"),
                      SPINES - 1);
    end();
}
END_TEST

START_TEST(an_unreachable_switch_stays_listed)
{
    static char problem[] = "timeout";

    begin(true);
    send_all();
    build();
    boxes[0].report.reachable = false;
    boxes[0].report.problem = problem;
    boxes[0].port_count = 0;
    boxes[0].report.n_addresses = 0;
    send_all();
    build();
    assert_differs(0);
    ck_assert_uint_eq(findings(FT_FINDING_NOTE, "leaf0", "", "timeout"), 1);
    end();
}
END_TEST

/* An address of which nothing is known is a finding; once it answers it is a switch, and stays one
 * when it does not any more. */
START_TEST(an_address_that_never_answered_is_no_switch)
{
    static char problem[] = "no answer";
    struct box *nobody = &boxes[SWITCHES - 1];
    uint32_t ports;

    begin(true);
    ports = nobody->port_count;
    nobody->report.reachable = nobody->report.has_lldp = false;
    nobody->report.problem = problem;
    nobody->report.name = nobody->report.chassis_id = NULL;
    nobody->port_count = 0;
    for (uint32_t l = 0; l < LEAVES; l++)
        uplink(l, SPINES - 1)->row.has_forwards = uplink(l, SPINES - 1)->row.forwards = true;
    send_all();
    build();
    ck_assert_uint_eq(ft_topology_switches(found), SWITCHES - 1);
    /* The switch, and the four links to it. */
    assert_differs(1 + LEAVES);
    ck_assert_uint_eq(findings(FT_FINDING_NOTE, NULL, "", "no SNMP answer from this address"), 1);
    ck_assert_uint_eq(findings(FT_FINDING_NOTE, NULL, "", "no answer"), 1);
    nobody->report.reachable = nobody->report.has_lldp = true;
    nobody->report.problem = NULL;
    nobody->report.name = nobody->name;
    nobody->report.chassis_id = nobody->chassis;
    nobody->port_count = ports;
    send_all();
    build();
    assert_differs(0);
    nobody->report.reachable = false;
    nobody->report.name = nobody->report.chassis_id = NULL;
    nobody->port_count = 0;
    send_all();
    build();
    assert_differs(0);
    ck_assert_uint_eq(findings(FT_FINDING_NOTE, NULL, "", "no SNMP answer from this address"), 0);
    end();
}
END_TEST

/* One switch that is no longer reported is told; a poller that is gone leaves all as it was. */
START_TEST(silence_is_measured_against_the_others)
{
    begin(true);
    send_all();
    build();
    for (int i = 0; i < 4; i++) {
        now_ms += INTERVAL_MS;
        for (uint32_t s = 1; s < SWITCHES; s++)
            send(s);
    }
    ck_assert(ft_discovery_due(discovery, now_ms + 1000, 1000));
    build();
    ck_assert_uint_eq(findings(FT_FINDING_NOTE, "leaf0", "", "no report"), 1);
    /* The spines still hear it; its hosts nobody else does. */
    ck_assert_uint_ne(ft_topology_port(found, port_of("leaf0", "up0"))->peer, FT_NONE);
    now_ms += 100 * INTERVAL_MS;
    ck_assert(!ft_discovery_due(discovery, now_ms, 1000));
    end();
}
END_TEST

/* Two pollers whose clocks differ: neither makes the other's switches silent. */
START_TEST(clocks_of_pollers_may_differ)
{
    begin(true);
    for (uint32_t s = 0; s < SWITCHES; s += 2)
        boxes[s].ahead_ms = 8 * 3600 * 1000;
    for (int i = 0; i < 5; i++) {
        send_all();
        build();
        ck_assert_uint_eq(findings(FT_FINDING_NOTE, NULL, NULL, "no report"), 0);
        now_ms += INTERVAL_MS;
    }
    assert_differs(0);
    end();
}
END_TEST

/* What it says is old only by its own clock: after a while it is believed again. */
START_TEST(a_poller_whose_clock_was_set_back_is_heard)
{
    begin(true);
    for (uint32_t s = 0; s < SWITCHES; s++)
        boxes[s].ahead_ms = 8 * 3600 * 1000;
    send_all();
    build();
    assert_differs(0);
    for (uint32_t s = 0; s < SWITCHES; s++)
        boxes[s].ahead_ms = 0;
    boxes[0].report.name = (char *)"renamed";
    for (int i = 0; i < 5; i++) {
        now_ms += INTERVAL_MS;
        send_all();
    }
    build();
    ck_assert_uint_ne(ft_topology_find_switch(found, "renamed"), FT_NONE);
    end();
}
END_TEST

START_TEST(the_file_wins_and_the_contradiction_is_reported)
{
    begin(true);
    ft_topology_free(base);
    base = leafspine(LEAVES, SPINES, HOSTS);
    hear(uplink(0, 0), boxes[LEAVES + 1].chassis, "spine1",
         FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_NAME, "down0");
    send_all();
    enter(3, 2, leafspine_host_ip(0, 0), now_ms, 3);
    build();
    assert_differs(0);
    ck_assert_uint_eq(
        findings(FT_FINDING_CONTRADICTION, "leaf0", "up0", "the file links it to spine0"), 1);
    ck_assert_uint_eq(findings(FT_FINDING_CONTRADICTION, "leaf3", "host1", "10.0.0.1"), 1);
    /* A link of the file whose port is down is down. */
    downlink(2, 3)->info.oper_up = false;
    send_all();
    build();
    assert_differs(1);
    ck_assert_uint_eq(findings(FT_FINDING_LINK_DOWN, "leaf2", "up3", NULL), 1);
    end();
}
END_TEST

/* A changed agent address that belongs to the switch's set is the same switch; one that two
 * switches have belongs to neither. */
START_TEST(a_switch_is_a_set_of_addresses)
{
    static uint8_t second[4] = {192, 0, 2, 200}, shared[4] = {10, 255, 0, 1};
    ProtobufCBinaryData lists[2][3] = {
        {boxes[0].address, {4, second}, {4, shared}},
        {boxes[1].address, {4, shared}},
    };
    struct ft_ip ip;
    uint32_t leaf0;

    begin(true);
    lists[0][0] = boxes[0].address;
    lists[1][0] = boxes[1].address;
    boxes[0].report.addresses = lists[0];
    boxes[0].report.n_addresses = 3;
    boxes[1].report.addresses = lists[1];
    boxes[1].report.n_addresses = 2;
    send_all();
    build();
    assert_differs(0);
    leaf0 = ft_topology_find_switch(found, "leaf0");
    ip = ft_ip4(second);
    ck_assert_uint_eq(ft_topology_switch_at(found, &ip), leaf0);
    ip = ft_ip4(shared);
    ck_assert_uint_eq(ft_topology_switch_at(found, &ip), FT_NONE);
    /* Polled by its second address too: still one switch. */
    boxes[0].report.agent = lists[0][1];
    send_all();
    build();
    assert_differs(0);
    end();
}
END_TEST

START_TEST(doubled_names_stay_two_switches)
{
    begin(true);
    strcpy(boxes[1].name, "leaf0");
    send_all();
    build();
    ck_assert_uint_eq(ft_topology_switches(found), SWITCHES);
    ck_assert_uint_ne(ft_topology_find_switch(found, "leaf0@192.0.2.1"), FT_NONE);
    ck_assert_uint_ne(ft_topology_find_switch(found, "leaf0@192.0.2.2"), FT_NONE);
    end();
}
END_TEST

START_TEST(reports_that_cannot_be_are_refused)
{
    Fabrictrace__SwitchReport empty = FABRICTRACE__SWITCH_REPORT__INIT;

    begin(true);
    ck_assert_int_eq(ft_discovery_report(discovery, &empty, now_ms), -EINVAL);
    ck_assert(!ft_discovery_some(discovery));
    end();
}
END_TEST

FT_UNIT_MAIN("discovery", reports_alone_give_the_complete_fabric,
             the_order_of_reports_does_not_matter, one_side_that_speaks_is_enough,
             port_ids_are_resolved_by_their_kind, a_link_whose_port_is_down_leaves_and_comes_back,
             the_port_of_a_host_that_is_down_is_reported, a_link_that_neither_side_hears_is_down,
             a_recabled_port_takes_its_new_link, silence_of_lldp_changes_nothing,
             lldp_that_comes_a_poll_later_is_not_missed, lldp_that_begins_anew_changes_nothing,
             an_unreachable_switch_stays_listed, an_address_that_never_answered_is_no_switch,
             silence_is_measured_against_the_others, clocks_of_pollers_may_differ,
             a_poller_whose_clock_was_set_back_is_heard,
             the_file_wins_and_the_contradiction_is_reported, a_switch_is_a_set_of_addresses,
             doubled_names_stay_two_switches, reports_that_cannot_be_are_refused)
