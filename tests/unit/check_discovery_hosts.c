// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/discovery/discovery.h"

#include "tests/unit/discovery_rig.h"

/* Hosts that nobody names: learnt from the ports by which their packets enter. */
START_TEST(hosts_are_learnt_from_samples)
{
    begin(false);
    send_all();
    build();
    /* Without hosts there are no tiers, hence no links. */
    ck_assert_uint_eq(ft_topology_switches(found), SWITCHES);
    ck_assert_uint_eq(findings(FT_FINDING_NOTE, NULL, NULL, "no host"), SWITCHES);
    for (uint32_t l = 0; l < LEAVES; l++)
        for (uint32_t h = 0; h < HOSTS; h++) {
            struct ft_ip ip = leafspine_host_ip(l, h);
            char name[32];

            enter(l, 1 + h, ip, now_ms, 3);
            snprintf(name, sizeof(name), "h%u-%u", l, h);
            ft_discovery_named(discovery, &ip, name, now_ms);
        }
    ck_assert(ft_discovery_due(discovery, now_ms + 3000, 1000));
    build();
    assert_differs(0);
    end();
}
END_TEST

/* Enters by a port, and says whether it is worth to look at the fabric anew. */
static bool is_news(uint32_t leaf, uint32_t ifindex, struct ft_ip ip)
{
    now_ms += 5000;
    enter(leaf, ifindex, ip, now_ms, 3);
    now_ms += 5000;
    return ft_discovery_due(discovery, now_ms, 1000);
}

/* Where the file alone is known, and says so. */
START_TEST(hosts_where_the_file_has_them_are_no_news)
{
    begin(false);
    ft_topology_free(base);
    base = leafspine(LEAVES, SPINES, HOSTS);
    ft_discovery_see(discovery, NULL, base, base);
    ck_assert(!is_news(0, 1, leafspine_host_ip(0, 0)));
    /* What is known of it counts when the file is another one. */
    ck_assert(ft_discovery_some(discovery));
    ck_assert(is_news(2, 1, leafspine_host_ip(1, 0)));
    build();
    ck_assert_uint_eq(findings(FT_FINDING_CONTRADICTION, "leaf2", "host0", "elsewhere"), 1);
    ck_assert(!is_news(0, 2, leafspine_host_ip(0, 1)));
    ck_assert(is_news(0, 1, ft_ip4((uint8_t[4]){10, 9, 9, 9})));
    build();
    /* A switch that reports: who is behind it may be told by any host. */
    send_all();
    ft_discovery_see(discovery, NULL, base, base);
    build();
    ck_assert(is_news(1, 2, leafspine_host_ip(1, 1)));
    end();
}
END_TEST

START_TEST(a_host_that_said_its_name_first_never_has_another)
{
    struct ft_ip ip = leafspine_host_ip(0, 0);

    begin(false);
    send_all();
    ft_discovery_named(discovery, &ip, "h0-0", now_ms);
    enter(0, 1, ip, now_ms, 3);
    build();
    ck_assert_str_eq(attached(ip), "leaf0/host0");
    ck_assert_uint_eq(ft_topology_hosts(found), 1);
    ck_assert_str_eq(ft_topology_host(found, 0)->name, "h0-0");
    end();
}
END_TEST

START_TEST(what_was_seen_once_is_not_learnt)
{
    struct ft_ip ip = leafspine_host_ip(0, 0), spine = leafspine_switch_ip(LEAVES);

    begin(false);
    send_all();
    enter(0, 1, ip, now_ms, 2);
    build();
    ck_assert_str_eq(attached(ip), "");
    enter(0, 1, ip, now_ms + 2000, 1);
    build();
    ck_assert_str_eq(attached(ip), "leaf0/host0");
    ck_assert(ft_discovery_learnt(discovery, "leaf0", "host0"));
    hear_host(0, 0);
    send_all();
    build();
    ck_assert_str_eq(attached(ip), "leaf0/host0");
    ck_assert(!ft_discovery_learnt(discovery, "leaf0", "host0"));
    /* A switch's own packets make it no host; fabric ports have none. */
    enter(0, 2, spine, now_ms, 5);
    enter(0, 100, ft_ip4((uint8_t[4]){10, 9, 9, 9}), now_ms, 5);
    build();
    ck_assert_str_eq(attached(spine), "");
    ck_assert_str_eq(attached(ft_ip4((uint8_t[4]){10, 9, 9, 9})), "");
    end();
}
END_TEST

START_TEST(two_leaves_are_dual_tor_and_three_are_none)
{
    struct ft_ip ip = leafspine_host_ip(0, 0), ip6 = ft_ip6((uint8_t[16]){0xfd, 1, [15] = 1});

    begin(false);
    send_all();
    enter(0, 1, ip, now_ms, 3);
    enter(1, 1, ip, now_ms, 3);
    /* The other family has been seen at one of them only: the same NIC all the same. */
    enter(1, 1, ip6, now_ms, 3);
    build();
    ck_assert_str_eq(attached(ip), "leaf0/host0 leaf1/host0");
    ck_assert_uint_eq(ft_topology_nic_at(found, &ip), ft_topology_nic_at(found, &ip6));
    enter(2, 1, ip, now_ms, 3);
    build();
    ck_assert_str_eq(attached(ip), "");
    end();
}
END_TEST

START_TEST(a_host_that_moves_is_followed)
{
    struct ft_ip ip = leafspine_host_ip(0, 0);

    begin(false);
    send_all();
    enter(0, 1, ip, now_ms, 10);
    build();
    ck_assert_str_eq(attached(ip), "leaf0/host0");
    /* Within a switch at once, */
    enter(0, 2, ip, now_ms + 10000, 5);
    build();
    ck_assert_str_eq(attached(ip), "leaf0/host1");
    /* to another one as soon as it has been silent at the old one. */
    enter(3, 1, ip, now_ms + 20000, 70);
    build();
    ck_assert_str_eq(attached(ip), "leaf3/host0");
    end();
}
END_TEST

/* What was seen before this host's clock was set back is not of an hour to come. */
START_TEST(a_host_that_moves_is_followed_by_a_clock_that_was_set_back)
{
    struct ft_ip ip = leafspine_host_ip(0, 0), other = leafspine_host_ip(0, 1);
    struct ft_ip leaf = leafspine_switch_ip(0), spine = leafspine_switch_ip(LEAVES);

    begin(false);
    send_all();
    enter(0, 1, ip, now_ms, 10);
    ft_discovery_entered(discovery, &other, &spine, 1, now_ms + 10000, true);
    build();
    ck_assert_str_eq(attached(ip), "leaf0/host0");
    now_ms -= 3600000;
    ft_discovery_set_back_step(discovery, now_ms, &(uint32_t){0}, UINT32_MAX);
    ft_discovery_set_back(discovery, now_ms);
    send_all();
    build();
    ck_assert_str_eq(attached(ip), "leaf0/host0");
    enter(0, 2, ip, now_ms + 10000, 5);
    build();
    ck_assert_str_eq(attached(ip), "leaf0/host1");
    /* One that was seen to enter twice is believed again after a while. */
    for (int i = 0; i < 70; i++)
        ft_discovery_entered(discovery, &other, &leaf, 1, now_ms + 1000 * i, false);
    build();
    ck_assert_str_eq(attached(other), "leaf0/host0");
    end();
}
END_TEST

/* The same flow enters twice: a link that LLDP does not name is no host's port. */
START_TEST(packets_that_enter_twice_teach_nothing)
{
    struct ft_ip ip = leafspine_host_ip(0, 0), leaf = leafspine_switch_ip(0),
                 spine = leafspine_switch_ip(LEAVES);

    begin(false);
    downlink(0, 0)->hears = uplink(0, 0)->hears = false;
    send_all();
    for (int i = 0; i < 5; i++) {
        ft_discovery_entered(discovery, &ip, &leaf, 1, now_ms + 1000 * i, false);
        ft_discovery_entered(discovery, &ip, &spine, 1, now_ms + 1000 * i, true);
    }
    build();
    ck_assert_str_eq(attached(ip), "");
    end();
}
END_TEST

START_TEST(a_crowd_behind_a_port_is_no_host)
{
    begin(true);
    host_port(0, 0)->hears = false;
    send_all();
    for (uint8_t i = 1; i < 40; i++)
        enter(0, 1, ft_ip4((uint8_t[4]){10, 77, 0, i}), now_ms, 3);
    build();
    ck_assert_str_eq(attached(ft_ip4((uint8_t[4]){10, 77, 0, 1})), "");
    ck_assert_uint_eq(findings(FT_FINDING_NOTE, "leaf0", "host0", "39 addresses"), 1);
    end();
}
END_TEST

/* A switch that nobody polls is no host, and does not make a leaf of a spine. */
START_TEST(a_forwarding_neighbour_is_no_host)
{
    begin(true);
    hear(add_port(&boxes[LEAVES], 77, "down", 77), "02:bb:00:00:00:01", "leaf9",
         FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_NAME, "up0");
    boxes[LEAVES].ports[boxes[LEAVES].port_count - 1].row.has_forwards = true;
    boxes[LEAVES].ports[boxes[LEAVES].port_count - 1].row.forwards = true;
    send_all();
    enter(LEAVES, 77, ft_ip4((uint8_t[4]){10, 88, 0, 1}), now_ms, 3);
    build();
    assert_differs(0);
    /* Nor does one that says nothing of itself. */
    boxes[LEAVES].ports[boxes[LEAVES].port_count - 1].row.has_forwards = false;
    boxes[LEAVES].ports[boxes[LEAVES].port_count - 1].row.forwards = false;
    send_all();
    build();
    assert_differs(0);
    ck_assert_uint_eq(findings(FT_FINDING_NOTE, "spine0", "", "that is not polled"), 1);
    end();
}
END_TEST

START_TEST(a_leaf_without_hosts_is_a_leaf)
{
    begin(true);
    for (uint32_t h = 0; h < HOSTS; h++)
        host_port(3, h)->hears = false;
    send_all();
    build();
    assert_differs(HOSTS);
    ck_assert_int_eq(ft_topology_switch(found, ft_topology_find_switch(found, "leaf3"))->tier,
                     FT_TIER_LEAF);
    end();
}
END_TEST

/* Addresses of the world outside come in by a border port, more than there is room for. */
START_TEST(passers_by_make_room_for_hosts)
{
    begin(false);
    send_all();
    build();
    for (uint32_t i = 0; i < 1200; i++)
        enter(0, 9, ft_ip4((uint8_t[4]){198, 51, (uint8_t)(i >> 8), (uint8_t)i}), now_ms, 1);
    enter(1, 1, leafspine_host_ip(1, 0), now_ms, 3);
    build();
    ck_assert_str_eq(attached(leafspine_host_ip(1, 0)), "");
    now_ms += 2 * 3600 * 1000;
    send_all();
    enter(1, 1, leafspine_host_ip(1, 0), now_ms, 3);
    enter(1, 2, leafspine_host_ip(1, 1), now_ms, 3);
    now_ms += 3000;
    build();
    ck_assert_str_eq(attached(leafspine_host_ip(1, 0)), "leaf1/host0");
    ck_assert_str_eq(attached(leafspine_host_ip(1, 1)), "leaf1/host1");
    end();
}
END_TEST

FT_UNIT_MAIN("discovery_hosts", hosts_are_learnt_from_samples, what_was_seen_once_is_not_learnt,
             hosts_where_the_file_has_them_are_no_news,
             a_host_that_said_its_name_first_never_has_another,
             two_leaves_are_dual_tor_and_three_are_none, a_host_that_moves_is_followed,
             a_host_that_moves_is_followed_by_a_clock_that_was_set_back,
             packets_that_enter_twice_teach_nothing, a_crowd_behind_a_port_is_no_host,
             a_forwarding_neighbour_is_no_host, passers_by_make_room_for_hosts,
             a_leaf_without_hosts_is_a_leaf)
