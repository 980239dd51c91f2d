// SPDX-License-Identifier: Apache-2.0
/*
 * Aggregates (LACP, bonds) in what switches report, and their members.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/discovery_rig.h"

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

FT_UNIT_MAIN("discovery, aggregates", aggregates_leave_their_members_the_links,
             an_aggregate_with_one_member_up_is_that_member,
             an_aggregate_with_a_member_of_unknown_link, aggregates_of_the_file_win,
             neighbours_that_name_an_aggregate)
