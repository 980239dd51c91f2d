// SPDX-License-Identifier: Apache-2.0
/* What a switch of a leaf–spine has to choose from: links that lead to a NIC by equally short
 * paths. */
#include "config.h"

#include "lib/fabric/choice.h"

#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define LEAVES 4
#define SPINES 3

static struct ft_topology *t;

static uint32_t nic_of(uint32_t leaf, uint32_t host)
{
    const struct ft_ip ip = leafspine_host_ip(leaf, host);
    uint32_t nic = ft_topology_nic_at(t, &ip);

    ck_assert_uint_ne(nic, FT_NONE);
    return nic;
}

static uint32_t switch_of(const char *name)
{
    uint32_t id = ft_topology_find_switch(t, name);

    ck_assert_uint_ne(id, FT_NONE);
    return id;
}

START_TEST(distances)
{
    t = leafspine(LEAVES, SPINES, 2);
    ck_assert_uint_eq(ft_choice_distance(t, switch_of("leaf0"), nic_of(0, 0)), 0);
    ck_assert_uint_eq(ft_choice_distance(t, switch_of("spine0"), nic_of(0, 0)), 1);
    ck_assert_uint_eq(ft_choice_distance(t, switch_of("leaf1"), nic_of(0, 1)), 2);
    ft_topology_free(t);
}
END_TEST

/* A NIC with two ports at different leaves is as near as the nearer of them. */
START_TEST(a_nic_at_two_leaves)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_topology_builder *b = ft_topology_builder_new("lab");
    struct ft_ip ip = leafspine_host_ip(0, 0);
    uint32_t nic;

    for (uint32_t i = 0; i < 2; i++)
        leafspine_switch(b, "leaf", i, i, diag);
    leafspine_switch(b, "spine", 0, 2, diag);
    ck_assert_int_eq(ft_topology_add_link(b, "leaf0", "up", "spine0", "down0", diag), 0);
    ck_assert_int_eq(ft_topology_add_link(b, "leaf1", "up", "spine0", "down1", diag), 0);
    nic = ft_topology_add_nic(b, ft_topology_add_host(b, "gpu0", diag), 0, diag);
    ck_assert_int_eq(ft_topology_add_nic_address(b, nic, &ip, diag), 0);
    ck_assert_int_eq(ft_topology_attach(b, nic, "leaf0", "host0", diag), 0);
    ck_assert_int_eq(ft_topology_attach(b, nic, "leaf1", "host0", diag), 0);
    t = ft_topology_build(b, diag);
    ck_assert_ptr_nonnull(t);
    ck_assert_uint_eq(ft_choice_distance(t, switch_of("leaf0"), nic_of(0, 0)), 0);
    ck_assert_uint_eq(ft_choice_distance(t, switch_of("leaf1"), nic_of(0, 0)), 0);
    ck_assert_uint_eq(ft_choice_distance(t, switch_of("spine0"), nic_of(0, 0)), 1);
    ft_topology_free(t);
    ft_topology_builder_free(b);
    ft_diag_free(diag);
}
END_TEST

/* In the order of the leaves' names, whatever that of the ports is. */
START_TEST(a_nic_chooses_between_leaves)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_topology_builder *b = ft_topology_builder_new("lab");
    const struct ft_ip ip[] = {leafspine_host_ip(0, 0), leafspine_host_ip(0, 1),
                               leafspine_host_ip(0, 2)};
    static const char *const at[3][2] = {{"leaf1", "leaf0"}, {"leaf0", NULL}, {"leaf1", "leaf1"}};
    char group[FT_CHOICE_GROUP], port[16], host[16];
    struct ft_choice c;

    for (uint32_t i = 0; i < 2; i++)
        leafspine_switch(b, "leaf", i, i, diag);
    for (uint32_t h = 0; h < 3; h++) {
        uint32_t nic;

        snprintf(host, sizeof(host), "gpu%u", h);
        nic = ft_topology_add_nic(b, ft_topology_add_host(b, host, diag), 0, diag);
        ck_assert_int_eq(ft_topology_add_nic_address(b, nic, &ip[h], diag), 0);
        for (uint32_t i = 0; i < 2 && at[h][i]; i++) {
            snprintf(port, sizeof(port), "host%u-%u", h, i);
            ck_assert_int_eq(ft_topology_attach(b, nic, at[h][i], port, diag), 0);
        }
    }
    t = ft_topology_build(b, diag);
    ck_assert_ptr_nonnull(t);
    ck_assert(ft_choice_of_nic(&c, t, nic_of(0, 0)));
    ck_assert_ptr_null(c.at);
    ck_assert_uint_eq(c.nic, nic_of(0, 0));
    ck_assert_uint_eq(c.count, 2);
    ck_assert_str_eq(ft_choice_member(&c, 0), "leaf0");
    ck_assert_str_eq(ft_topology_port(t, c.links[0])->name, "host0-1");
    ck_assert_str_eq(ft_choice_member(&c, 1), "leaf1");
    ck_assert_int_eq(ft_choice_nics_group(&c, group), 0);
    ck_assert_str_eq(group, "leaf0+leaf1/nics");
    /* On one leaf alone; with both ports on the same. */
    ck_assert(!ft_choice_of_nic(&c, t, nic_of(0, 1)));
    ck_assert(!ft_choice_of_nic(&c, t, nic_of(0, 2)));
    ft_topology_free(t);
    ft_topology_builder_free(b);
    ft_diag_free(diag);
}
END_TEST

START_TEST(links_of_a_choice)
{
    struct ft_choice up, down, none;
    uint32_t leaf, spine;

    t = leafspine(LEAVES, SPINES, 2);
    leaf = switch_of("leaf0");
    spine = switch_of("spine1");
    /* From a leaf to another: each of the spines, in the order of the ports. */
    ck_assert(ft_choice_find(&up, t, leaf, nic_of(2, 0), 1));
    ck_assert_uint_eq(up.count, SPINES);
    ck_assert_ptr_eq(up.at, ft_topology_switch(t, leaf));
    for (uint32_t i = 0; i < SPINES; i++) {
        uint32_t peer = ft_topology_port(t, up.links[i])->peer;

        ck_assert_uint_eq(ft_topology_port(t, up.links[i])->switch_id, leaf);
        ck_assert_uint_ne(peer, FT_NONE);
        ck_assert(i == 0 || up.links[i] > up.links[i - 1]);
    }
    /* From a spine there is one link down; and none further away, or to where it is. */
    ck_assert(ft_choice_find(&down, t, spine, nic_of(2, 0), 0));
    ck_assert_uint_eq(down.count, 1);
    ck_assert_uint_eq(ft_topology_port(t, ft_topology_port(t, down.links[0])->peer)->switch_id,
                      switch_of("leaf2"));
    ck_assert(ft_choice_find(&none, t, leaf, nic_of(2, 0), 0));
    ck_assert_uint_eq(none.count, 0);
    /* The spines are as far from the leaf's own host as from any other's. */
    ck_assert(ft_choice_find(&none, t, leaf, nic_of(0, 0), 1));
    ck_assert_uint_eq(none.count, SPINES);
    ft_topology_free(t);
}
END_TEST

START_TEST(more_links_than_a_model_takes)
{
    struct ft_choice all;

    t = leafspine(2, FT_HASH_MEMBERS_MAX, 1);
    ck_assert(ft_choice_find(&all, t, switch_of("leaf0"), nic_of(1, 0), 1));
    ck_assert_uint_eq(all.count, FT_HASH_MEMBERS_MAX);
    ft_topology_free(t);
    t = leafspine(2, FT_HASH_MEMBERS_MAX + 1, 1);
    ck_assert(!ft_choice_find(&all, t, switch_of("leaf0"), nic_of(1, 0), 1));
    ft_topology_free(t);
}
END_TEST

FT_UNIT_MAIN("choice", distances, a_nic_at_two_leaves, a_nic_chooses_between_leaves,
             links_of_a_choice, more_links_than_a_model_takes)
