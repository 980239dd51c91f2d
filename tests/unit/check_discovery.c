// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/discovery_rig.h"

START_TEST(reports_alone_give_the_whole_fabric)
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

/* The members of an aggregate, each followed by a blank. */
static const char *members(const char *switch_name, const char *name)
{
    static char text[200];
    uint32_t id = ft_topology_find_lag(found, ft_topology_find_switch(found, switch_name), name);

    *text = '\0';
    for (uint32_t i = 0; id != FT_NONE && i < ft_topology_lag(found, id)->member_count; i++)
        sprintf(text + strlen(text), "%s ",
                ft_topology_port(found, ft_topology_lag(found, id)->members[i])->name);
    return text;
}

START_TEST(aggregates_leave_their_members_the_links)
{
    struct port *lag;

    begin(true);
    lag = add_port(&boxes[0], 900, "bond", 0);
    strcpy(lag->mac, uplink(0, 0)->mac);
    for (uint32_t s = 0; s < 2; s++) {
        uplink(0, s)->info.has_lag_ifindex = true;
        uplink(0, s)->info.lag_ifindex = 900;
    }
    for (uint32_t s = 0; s < SPINES; s++)
        uplink(0, s)->hears = false;
    hear(downlink(0, 0), boxes[0].chassis, "leaf0", FABRICTRACE__ID_KIND__ID_KIND_MAC,
         uplink(0, 0)->mac);
    send_all();
    build();
    assert_differs(0);
    /* Samples that name the aggregate do not say which member; it is one of them. */
    ck_assert_uint_eq(ft_topology_port_at(found, ft_topology_find_switch(found, "leaf0"), 900),
                      FT_NONE);
    ck_assert_str_eq(members("leaf0", "bond0"), "up0 up1 ");
    ck_assert(ft_is_lag(ft_topology_end_at(found, ft_topology_find_switch(found, "leaf0"), 900)));
    end();
}
END_TEST

static uint32_t port_at(const char *switch_name, uint32_t ifindex)
{
    return ft_topology_port_at(found, ft_topology_find_switch(found, switch_name), ifindex);
}

/* Of two members one goes down: samples of the aggregate then mean the other, until it is back or
 * the switch does not answer. */
START_TEST(an_aggregate_with_one_member_up_is_that_member)
{
    struct ft_topology *before;

    begin(true);
    add_port(&boxes[0], 900, "bond", 0);
    for (uint32_t s = 0; s < 2; s++) {
        uplink(0, s)->info.has_lag_ifindex = true;
        uplink(0, s)->info.lag_ifindex = 900;
    }
    send_all();
    build();
    ck_assert_uint_eq(port_at("leaf0", 900), FT_NONE);
    uplink(0, 0)->info.oper_up = false;
    send_all();
    build();
    ck_assert_uint_eq(port_at("leaf0", 900), port_of("leaf0", "up1"));
    ck_assert_uint_eq(ft_topology_port(found, port_at("leaf0", 900))->ifindex, 101);
    before = found;
    found = NULL;
    /* The state of the other is not told: it may be up. The topology is another one by that. */
    uplink(0, 0)->info.has_oper_up = false;
    send_all();
    build();
    ck_assert_uint_eq(port_at("leaf0", 900), FT_NONE);
    ck_assert(!ft_topology_same(before, found));
    ft_topology_free(before);
    uplink(0, 0)->info.has_oper_up = true;
    boxes[0].report.reachable = false;
    send_all();
    build();
    ck_assert_uint_eq(port_at("leaf0", 900), FT_NONE);
    end();
}
END_TEST

/* The flow may have gone by a member whose link nobody knows. */
START_TEST(an_aggregate_with_a_member_of_unknown_link)
{
    begin(true);
    add_port(&boxes[0], 900, "bond", 0);
    add_port(&boxes[0], 55, "spare", 0)->info.has_lag_ifindex = true;
    boxes[0].ports[boxes[0].port_count - 1].info.lag_ifindex = 900;
    uplink(0, 0)->info.has_lag_ifindex = true;
    uplink(0, 0)->info.lag_ifindex = 900;
    send_all();
    build();
    ck_assert_str_eq(members("leaf0", "bond0"), "up0 spare0 ");
    ck_assert_uint_eq(ft_topology_end_at(found, ft_topology_find_switch(found, "leaf0"), 900),
                      FT_NONE);
    ck_assert_uint_eq(findings(FT_FINDING_NOTE, "leaf0", "bond0", "member spare0"), 1);
    /* Down it carries nothing. */
    boxes[0].ports[boxes[0].port_count - 1].info.oper_up = false;
    send_all();
    build();
    ck_assert_uint_eq(port_at("leaf0", 900), port_of("leaf0", "up0"));
    ck_assert_uint_eq(findings(FT_FINDING_NOTE, "leaf0", "bond0", NULL), 0);
    end();
}
END_TEST

/* The file's aggregates are taken up, and stay where the switch says otherwise. */
START_TEST(aggregates_of_the_file_win)
{
    static const char text[] =
        "fabric: lab\nswitches:\n"
        "  - {name: leaf0, ports: [{name: up0}, {name: up1}, {name: up2}],\n"
        "     lags: [{name: bond0, members: [up0, up1]}, {name: other, ifindex: 777,\n"
        "                                                 members: [up2]}]}\n";
    struct ft_diag *diag = ft_diag_new();
    struct ft_yaml *root = ft_yaml_parse(text, strlen(text), "t.yaml", diag);

    begin(true);
    ft_topology_free(base);
    base = ft_topology_file_read(root, diag);
    ck_assert_ptr_nonnull(base);
    ft_yaml_free(root);
    ft_diag_free(diag);
    add_port(&boxes[0], 900, "bond", 0);
    for (uint32_t s = 1; s < 3; s++) {
        uplink(0, s)->info.has_lag_ifindex = true;
        uplink(0, s)->info.lag_ifindex = 900;
    }
    send_all();
    build();
    /* Its ifIndex comes from the switch. */
    ck_assert_str_eq(members("leaf0", "bond0"), "up0 up1 ");
    ck_assert(ft_is_lag(ft_topology_end_at(found, ft_topology_find_switch(found, "leaf0"), 900)));
    ck_assert_uint_eq(port_at("leaf0", 777), port_of("leaf0", "up2"));
    ck_assert_uint_eq(findings(FT_FINDING_CONTRADICTION, "leaf0", "up2", "aggregate other"), 1);
    ck_assert_uint_eq(findings(FT_FINDING_CONTRADICTION, NULL, NULL, NULL), 1);
    end();
}
END_TEST

/* LLDP that speaks of an aggregate on both sides: of its member where there is one. */
START_TEST(neighbours_that_name_an_aggregate)
{
    struct port *leaf_lag, *spine_lag;

    begin(true);
    leaf_lag = add_port(&boxes[0], 900, "bond", 0);
    spine_lag = add_port(&boxes[LEAVES], 900, "bond", 0);
    uplink(0, 0)->info.has_lag_ifindex = downlink(0, 0)->info.has_lag_ifindex = true;
    uplink(0, 0)->info.lag_ifindex = downlink(0, 0)->info.lag_ifindex = 900;
    uplink(0, 0)->hears = downlink(0, 0)->hears = false;
    hear(leaf_lag, boxes[LEAVES].chassis, "spine0", FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_NAME,
         "bond0");
    hear(spine_lag, boxes[0].chassis, "leaf0", FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_NAME,
         "bond0");
    send_all();
    build();
    assert_differs(0);
    ck_assert_uint_eq(port_at("leaf0", 900), port_of("leaf0", "up0"));
    /* A second member: which of them a row means cannot be told, so neither is linked by it, and
     * nobody is learnt there. */
    add_port(&boxes[0], 901, "more", 0)->info.has_lag_ifindex = true;
    boxes[0].ports[boxes[0].port_count - 1].info.lag_ifindex = 900;
    send_all();
    enter(0, 901, ft_ip4((uint8_t[4]){10, 88, 0, 1}), now_ms, 5);
    build();
    ck_assert_uint_eq(ft_topology_port(found, port_of("leaf0", "up0"))->peer, FT_NONE);
    ck_assert_uint_eq(ft_topology_port(found, port_of("leaf0", "more0"))->peer, FT_NONE);
    ck_assert_str_eq(attached(ft_ip4((uint8_t[4]){10, 88, 0, 1})), "");
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

START_TEST(the_port_of_a_host_that_is_down_is_told)
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
    send_all();
    build();
    assert_differs(0);
    ck_assert_uint_eq(findings(FT_FINDING_NOTE, "leaf0", "", "no LLDP any more"), 1);
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

START_TEST(an_unreachable_switch_keeps_its_place)
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

START_TEST(the_file_wins_and_the_contradiction_is_told)
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

FT_UNIT_MAIN("discovery", reports_alone_give_the_whole_fabric, the_order_of_reports_does_not_matter,
             one_side_that_speaks_is_enough, port_ids_are_resolved_by_their_kind,
             aggregates_leave_their_members_the_links,
             an_aggregate_with_one_member_up_is_that_member,
             an_aggregate_with_a_member_of_unknown_link, aggregates_of_the_file_win,
             neighbours_that_name_an_aggregate, a_link_whose_port_is_down_leaves_and_comes_back,
             the_port_of_a_host_that_is_down_is_told, a_link_that_neither_side_hears_is_down,
             a_recabled_port_takes_its_new_link, silence_of_lldp_changes_nothing,
             lldp_that_begins_anew_changes_nothing, an_unreachable_switch_keeps_its_place,
             an_address_that_never_answered_is_no_switch, silence_is_measured_against_the_others,
             clocks_of_pollers_may_differ, a_poller_whose_clock_was_set_back_is_heard,
             the_file_wins_and_the_contradiction_is_told, a_switch_is_a_set_of_addresses,
             doubled_names_stay_two_switches, reports_that_cannot_be_are_refused)
