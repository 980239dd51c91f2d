// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/fabric/topology.h"
#include "tests/unit/unit.h"

static struct ft_diag *diag;
static struct ft_topology_builder *b;

static void begin(void)
{
    diag = ft_diag_new();
    b = ft_topology_builder_new("lab");
    ck_assert(diag && b);
}

static void end(void)
{
    ft_topology_builder_free(b);
    ft_diag_free(diag);
}

static struct ft_ip ip(const char *text)
{
    struct ft_ip address;

    ck_assert_int_eq(ft_ip_parse(text, &address), 0);
    return address;
}

static uint32_t add_nic(const char *host, const char *address, const char *leaf, const char *port)
{
    struct ft_ip a = ip(address);
    uint32_t h = ft_topology_add_host(b, host, diag);
    uint32_t nic = ft_topology_add_nic(b, h, FT_NONE, diag);

    ck_assert_int_eq(ft_topology_add_nic_address(b, nic, &a, diag), 0);
    ck_assert_int_eq(ft_topology_attach(b, nic, leaf, port, diag), 0);
    return nic;
}

static void link_up(const char *a, const char *a_port, const char *z, const char *z_port)
{
    ck_assert_int_eq(ft_topology_add_link(b, a, a_port, z, z_port, diag), 0);
}

/* Two leaves, two spines, two parallel links from leaf1 to spine1; nothing states a tier. */
static void add_small(void)
{
    ft_topology_add_switch(b, "leaf1", FT_TIER_UNKNOWN, diag);
    ft_topology_add_switch(b, "leaf2", FT_TIER_UNKNOWN, diag);
    ft_topology_add_switch(b, "spine1", FT_TIER_UNKNOWN, diag);
    ft_topology_add_switch(b, "spine2", FT_TIER_UNKNOWN, diag);
    link_up("leaf1", "u1", "spine1", "d1");
    link_up("spine1", "d2", "leaf1", "u2");
    link_up("leaf1", "u3", "spine2", "d1");
    link_up("leaf2", "u1", "spine1", "d3");
    link_up("leaf2", "u2", "spine2", "d2");
    add_nic("gpu01", "10.0.1.1", "leaf1", "h1");
    add_nic("gpu02", "10.0.2.1", "leaf2", "h1");
}

static void expect(const char *text)
{
    ck_assert_uint_eq(ft_diag_count(diag), 1);
    ck_assert_str_eq(ft_diag_text(diag, 0), text);
    ft_diag_free(diag);
    diag = ft_diag_new();
}

static void expect_links(const struct ft_topology *t, const char *group, const char *links)
{
    char text[256] = "";

    for (uint32_t i = 0; i < ft_topology_groups(t); i++) {
        const struct ft_group *g = ft_topology_group(t, i);

        if (strcmp(g->name, group) != 0)
            continue;
        for (uint32_t k = 0; k < g->link_count; k++) {
            const struct ft_port *p = ft_topology_port(t, g->links[k]);

            ck_assert_uint_eq(p->group, i);
            sprintf(text + strlen(text), "%s %s;", ft_topology_switch(t, p->switch_id)->name,
                    p->name);
        }
    }
    ck_assert_str_eq(text, links);
}

START_TEST(works_out_tiers_directions_and_groups)
{
    struct ft_topology *t;

    begin();
    add_small();
    t = ft_topology_build(b, diag);
    ck_assert_ptr_nonnull(t);
    ck_assert_str_eq(ft_topology_fabric(t), "lab");
    ck_assert_int_eq(ft_topology_switch(t, 0)->tier, FT_TIER_LEAF);
    ck_assert_int_eq(ft_topology_switch(t, 3)->tier, FT_TIER_SPINE);
    ck_assert_uint_eq(ft_topology_groups(t), 4);
    expect_links(t, "leaf1/up", "leaf1 u1;leaf1 u2;leaf1 u3;");
    expect_links(t, "leaf1/down", "spine1 d1;spine1 d2;spine2 d1;");
    expect_links(t, "leaf2/up", "leaf2 u1;leaf2 u2;");
    expect_links(t, "leaf2/down", "spine1 d3;spine2 d2;");
    for (uint32_t i = 0; i < ft_topology_ports(t); i++) {
        const struct ft_port *p = ft_topology_port(t, i);

        ck_assert((p->peer == FT_NONE) == (p->group == FT_NONE));
        ck_assert((p->peer == FT_NONE) == (p->direction == FT_DIRECTION_HOST));
        ck_assert((p->peer == FT_NONE) == (p->nic != FT_NONE));
    }
    ck_assert_uint_eq(ft_topology_distance(t, 0, 1), 2);
    ck_assert_uint_eq(ft_topology_distance(t, 2, 1), 1);
    ck_assert_uint_eq(ft_topology_distance(t, 1, 2), 1);
    ck_assert_uint_eq(ft_topology_distance(t, 0, 0), 0);
    ck_assert_uint_eq(ft_topology_distance(t, 2, 3), FT_NONE);
    ft_topology_free(t);
    end();
}
END_TEST

/* Low ones lie in an array of their switch, whose length and end no port must miss. */
START_TEST(finds_ports_of_any_ifindex)
{
    static const uint32_t ifindexes[] = {1,    31,   32,   33,      1000,
                                         1023, 1024, 1025, 2000000, UINT32_MAX};
    enum { COUNT = sizeof(ifindexes) / sizeof(ifindexes[0]), SWITCHES = 40 };
    struct ft_topology *t;
    char name[32];

    begin();
    for (uint32_t s = 0; s < SWITCHES; s++) {
        snprintf(name, sizeof(name), "leaf%u", s);
        ft_topology_add_switch(b, name, FT_TIER_LEAF, diag);
    }
    /* The last switch first, and the highest ifIndex. */
    for (uint32_t s = SWITCHES; s-- > 0;)
        for (uint32_t i = COUNT; i-- > s % 2;) {
            snprintf(name, sizeof(name), "port%u", ifindexes[i]);
            ft_topology_add_port(b, s, name, ifindexes[i], 0, diag);
        }
    t = ft_topology_build(b, diag);
    ck_assert_ptr_nonnull(t);
    for (uint32_t s = 0; s < SWITCHES; s++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            uint32_t port = ft_topology_port_at(t, s, ifindexes[i]);

            snprintf(name, sizeof(name), "port%u", ifindexes[i]);
            ck_assert_uint_eq(port, ft_topology_find_port(t, s, name));
            ck_assert((port == FT_NONE) == (i < s % 2));
        }
        ck_assert_uint_eq(ft_topology_port_at(t, s, 34), FT_NONE);
        ck_assert_uint_eq(ft_topology_port_at(t, s, 3000000), FT_NONE);
    }
    ck_assert_uint_eq(ft_topology_port_at(t, SWITCHES, 1), FT_NONE);
    ck_assert_uint_eq(ft_topology_port_at(t, UINT32_MAX, 1), FT_NONE);
    ft_topology_free(t);
    end();
}
END_TEST

START_TEST(finds_by_name_address_and_ifindex)
{
    struct ft_ip s1 = ip("192.0.2.11"), s2 = ip("2001:db8::11"), none = ip("192.0.2.99");
    struct ft_ip nic = ip("10.0.1.1");
    struct ft_topology *t;
    uint32_t port;

    begin();
    ft_topology_add_switch(b, "leaf1", FT_TIER_LEAF, diag);
    ck_assert_int_eq(ft_topology_add_address(b, 0, &s1, diag), 0);
    ck_assert_int_eq(ft_topology_add_address(b, 0, &s2, diag), 0);
    ft_topology_add_port(b, 0, "Ethernet1", 0, 0, diag);
    port = ft_topology_add_port(b, 0, "Ethernet49", 49, 0, diag);
    ck_assert_uint_eq(ft_topology_add_port(b, 0, "Ethernet1", 1, 100, diag), 0);
    add_nic("gpu01", "10.0.1.1", "leaf1", "Ethernet1");
    t = ft_topology_build(b, diag);
    ck_assert_ptr_nonnull(t);
    ck_assert_uint_eq(ft_topology_find_switch(t, "leaf1"), 0);
    ck_assert_uint_eq(ft_topology_find_switch(t, "leaf2"), FT_NONE);
    ck_assert_uint_eq(ft_topology_find_port(t, 0, "Ethernet49"), port);
    ck_assert_uint_eq(ft_topology_find_port(t, 0, "Ethernet4"), FT_NONE);
    ck_assert_uint_eq(ft_topology_port_at(t, 0, 49), port);
    ck_assert_uint_eq(ft_topology_port_at(t, 0, 1), 0);
    ck_assert_uint_eq(ft_topology_port_at(t, 0, 0), FT_NONE);
    ck_assert_uint_eq(ft_topology_port(t, 0)->speed_bps, 100);
    ck_assert_uint_eq(ft_topology_switch_at(t, &s1), 0);
    ck_assert_uint_eq(ft_topology_switch_at(t, &s2), 0);
    ck_assert_uint_eq(ft_topology_switch_at(t, &nic), FT_NONE);
    ck_assert_uint_eq(ft_topology_nic_at(t, &nic), 0);
    ck_assert_uint_eq(ft_topology_nic_at(t, &none), FT_NONE);
    ck_assert_uint_eq(ft_topology_switch(t, 0)->address_count, 2);
    ck_assert(ft_ip_equal(&ft_topology_switch(t, 0)->addresses[1], &s2));
    ck_assert_uint_eq(ft_topology_nic(t, 0)->attach[0], 0);
    ck_assert_str_eq(ft_topology_host(t, ft_topology_nic(t, 0)->host_id)->name, "gpu01");
    ft_topology_free(t);
    end();
}
END_TEST

START_TEST(complains_of_contradictions)
{
    struct ft_ip a = ip("192.0.2.1"), n = ip("10.0.1.1");
    char longest[140];

    begin();
    ft_topology_at(b, "f", 1, NULL);
    add_small();
    ft_topology_add_address(b, 0, &a, diag);
    ft_topology_at(b, "f", 9, "k");
    ft_topology_add_switch(b, "leaf1", FT_TIER_LEAF, diag);
    expect("f:9: key 'k': switch 'leaf1' is defined twice (line 1)");
    ft_topology_add_address(b, 1, &a, diag);
    expect("f:9: key 'k': address 192.0.2.1 belongs to switch 'leaf1' already (line 1)");
    ft_topology_add_link(b, "leaf1", "u9", "spine9", "d9", diag);
    expect("f:9: key 'k': switch 'spine9' is not known");
    ft_topology_add_link(b, "leaf1", "u8", "leaf1", "u9", diag);
    expect("f:9: key 'k': a link from switch 'leaf1' to itself");
    ft_topology_add_link(b, "spine1", "d1", "leaf1", "u1", diag);
    expect("f:9: key 'k': the link from 'spine1' d1 to 'leaf1' u1 is defined twice (line 1)");
    ft_topology_add_link(b, "leaf1", "u1", "spine2", "d9", diag);
    expect("f:9: key 'k': port 'u1' of switch 'leaf1' is linked to 'd1' of 'spine1' already "
           "(line 1)");
    ft_topology_add_link(b, "leaf1", "h1", "spine2", "d8", diag);
    expect("f:9: key 'k': port 'h1' of switch 'leaf1' has a NIC of host 'gpu01' already (line 1)");
    ft_topology_attach(b, 0, "leaf1", "u1", diag);
    expect("f:9: key 'k': port 'u1' of switch 'leaf1' is linked to 'd1' of 'spine1' already "
           "(line 1)");
    ft_topology_attach(b, 1, "leaf1", "h1", diag);
    expect("f:9: key 'k': port 'h1' of switch 'leaf1' has a NIC of host 'gpu01' already (line 1)");
    ft_topology_add_nic_address(b, 1, &n, diag);
    expect("f:9: key 'k': address 10.0.1.1 belongs to a NIC of host 'gpu01' already (line 1)");
    ft_topology_add_host(b, "gpu02", diag);
    expect("f:9: key 'k': host 'gpu02' is defined twice (line 1)");
    memset(longest, 'x', sizeof(longest));
    longest[128] = '\0';
    ft_topology_add_host(b, longest, diag);
    expect("f:9: key 'k': the name of a host has 1 to 127 bytes");
    longest[127] = '\0';
    ck_assert_uint_ne(ft_topology_add_host(b, longest, diag), FT_NONE);
    end();
}
END_TEST

START_TEST(complains_of_ports_that_do_not_fit)
{
    begin();
    ft_topology_add_switch(b, "leaf1", FT_TIER_LEAF, diag);
    ft_topology_add_switch(b, "spine1", FT_TIER_SPINE, diag);
    ft_topology_at(b, "f", 3, NULL);
    ft_topology_add_port(b, 0, "e1", 1, 0, diag);
    ft_topology_add_port(b, 0, "e2", 1, 0, diag);
    expect("f:3: ifIndex 1 of switch 'leaf1' is port 'e1' already");
    ft_topology_add_port(b, 0, "e1", 2, 0, diag);
    expect("f:3: port 'e1' of switch 'leaf1' has ifIndex 1 already, not 2");
    ft_topology_add_link(b, "leaf1", "e9", "spine1", "d1", diag);
    expect("f:3: switch 'leaf1' has no port 'e9'");
    ft_topology_add_host(b, "h", diag);
    ft_topology_add_nic(b, 0, 0, diag);
    ft_topology_attach(b, 0, "leaf1", "e7", diag);
    expect("f:3: switch 'leaf1' has no port 'e7'");
    end();
}
END_TEST

START_TEST(complains_of_tiers_that_make_no_direction)
{
    begin();
    add_small();
    ft_topology_at(b, "f", 7, "links[5]");
    link_up("leaf1", "x", "leaf2", "x");
    ck_assert_ptr_null(ft_topology_build(b, diag));
    expect("f:7: the link from 'leaf1' x to 'leaf2' x is inside the tier leaf: it is neither up "
           "nor down");
    ft_topology_builder_free(b);
    b = ft_topology_builder_new("lab");
    ft_topology_at(b, "f", 2, NULL);
    ft_topology_add_switch(b, "s1", FT_TIER_UNKNOWN, diag);
    ft_topology_add_switch(b, "s2", FT_TIER_SPINE, diag);
    link_up("s1", "a", "s2", "a");
    /* Above a spine that is known is a superspine. */
    ft_topology_add_switch(b, "s3", FT_TIER_UNKNOWN, diag);
    link_up("s1", "b", "s3", "b");
    ck_assert_ptr_null(ft_topology_build(b, diag));
    expect("f:2: switch 's3': its tier cannot be derived from the hosts: state it");
    end();
}
END_TEST

START_TEST(keeps_a_dual_attached_nic)
{
    struct ft_topology *t;
    uint32_t nic;

    begin();
    add_small();
    nic = add_nic("gpu03", "10.0.3.1", "leaf1", "h3");
    ck_assert_int_eq(ft_topology_attach(b, nic, "leaf2", "h3", diag), 0);
    t = ft_topology_build(b, diag);
    ck_assert_ptr_nonnull(t);
    ck_assert_uint_eq(ft_topology_nic(t, nic)->attach_count, 2);
    ck_assert_uint_eq(ft_topology_port(t, ft_topology_nic(t, nic)->attach[1])->switch_id, 1);
    ft_topology_free(t);
    end();
}
END_TEST

START_TEST(stays_as_long_as_somebody_keeps_it)
{
    struct ft_topology *t, *kept;

    begin();
    add_small();
    t = ft_topology_build(b, diag);
    kept = ft_topology_keep(t);
    ck_assert_ptr_eq(kept, t);
    ft_topology_free(t);
    ck_assert_uint_gt(ft_topology_switches(kept), 0);
    ck_assert_uint_ne(ft_topology_find_switch(kept, "leaf1"), FT_NONE);
    ft_topology_free(kept);
    end();
}
END_TEST

START_TEST(builds_an_empty_fabric)
{
    struct ft_topology *t;

    begin();
    t = ft_topology_build(b, diag);
    ck_assert_ptr_nonnull(t);
    ck_assert_uint_eq(ft_topology_switches(t) + ft_topology_groups(t), 0);
    ck_assert_uint_eq(ft_topology_find_switch(t, ""), FT_NONE);
    ft_topology_free(t);
    end();
}
END_TEST

START_TEST(builds_512_leaves_by_32_spines_fast)
{
    enum { LEAVES = 512, SPINES = 32, HOSTS = 16 };
    clock_t start = clock();
    struct ft_topology *t;
    double seconds;

    begin();
    for (int i = 0; i < LEAVES + SPINES; i++) {
        char name[32];

        sprintf(name, "%s%d", i < LEAVES ? "leaf" : "spine", i < LEAVES ? i : i - LEAVES);
        ft_topology_add_switch(b, name, FT_TIER_UNKNOWN, diag);
    }
    for (int i = 0; i < LEAVES; i++) {
        for (int k = 0; k < SPINES; k++) {
            char a[32], ap[32], z[32], zp[32];

            sprintf(a, "leaf%d", i);
            sprintf(ap, "Ethernet%d", HOSTS + k);
            sprintf(z, "spine%d", k);
            sprintf(zp, "Ethernet%d", i);
            link_up(a, ap, z, zp);
        }
        for (int k = 0; k < HOSTS; k++) {
            char host[32], address[32], leaf[32], port[32];

            sprintf(host, "gpu%d-%d", i, k);
            sprintf(address, "10.%d.%d.%d", i / 256, i % 256, k + 1);
            sprintf(leaf, "leaf%d", i);
            sprintf(port, "Ethernet%d", k);
            add_nic(host, address, leaf, port);
        }
    }
    t = ft_topology_build(b, diag);
    seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    ck_assert_ptr_nonnull(t);
    printf("512 leaves x 32 spines, 8192 hosts: %.3f s of a processor\n", seconds);
    ck_assert_uint_eq(ft_topology_groups(t), 2 * LEAVES);
    ck_assert_uint_eq(ft_topology_group(t, 1023)->link_count, SPINES);
    ck_assert_uint_eq(ft_topology_distance(t, 0, 511), 2);
    /* Of processor time, which a loaded machine takes no more of; sanitizers included. */
    ck_assert_double_lt(seconds, 5);
    ft_topology_free(t);
    end();
}
END_TEST

FT_UNIT_MAIN("topology", works_out_tiers_directions_and_groups, finds_by_name_address_and_ifindex,
             finds_ports_of_any_ifindex, complains_of_contradictions,
             complains_of_ports_that_do_not_fit, complains_of_tiers_that_make_no_direction,
             keeps_a_dual_attached_nic, stays_as_long_as_somebody_keeps_it, builds_an_empty_fabric,
             builds_512_leaves_by_32_spines_fast)
