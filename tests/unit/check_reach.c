// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/reach.h"

#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

static struct ft_topology *t;
static struct ft_reach *reach;

static void begin(struct ft_topology *topology)
{
    t = topology;
    ck_assert_ptr_nonnull(t);
    reach = ft_reach_new(t);
    ck_assert_ptr_nonnull(reach);
}

static void end(void)
{
    ft_reach_free(reach);
    ft_topology_free(t);
}

static uint32_t port(const char *at, const char *name)
{
    uint32_t id = ft_topology_find_port(t, ft_topology_find_switch(t, at), name);

    ck_assert_uint_ne(id, FT_NONE);
    return id;
}

static uint32_t nic(const char *host)
{
    return ft_topology_host(t, ft_topology_find_host(t, host))->nics[0];
}

static bool takes_any(const char *at, const char *name, const char *src, const char *dst)
{
    struct ft_reach_ends ends = ft_reach_ends(t, nic(src), nic(dst), FT_NONE);

    return ft_reach_all(reach, t, port(at, name), &ends);
}

static bool takes_either(const char *at, const char *a, const char *b_at, const char *b,
                         const char *src, const char *dst)
{
    struct ft_reach_ends ends = ft_reach_ends(t, nic(src), nic(dst), FT_NONE);

    return ft_reach_either(reach, t, port(at, a), port(b_at, b), &ends);
}

START_TEST(a_fabric_without_gaps_leaves_all_choices)
{
    begin(leafspine(4, 4, 1));
    for (uint32_t i = 0; i < ft_topology_ports(t); i++) {
        const struct ft_reach_ends unknown = {FT_NONE, FT_NONE};

        ck_assert_uint_eq(ft_reach_alike(reach, i), 0);
        ck_assert(ft_reach_all(reach, t, i, &unknown));
    }
    end();
}
END_TEST

/* leaf2 has no link to spine1. */
START_TEST(what_lost_a_link_is_no_choice_of_those_behind_it)
{
    begin(leafspine_without(4, 4, 1, 2, 1));
    ck_assert_uint_eq(ft_reach_alike(reach, port("leaf0", "up0")), 0);
    ck_assert_uint_eq(ft_reach_alike(reach, port("leaf0", "up1")), 1);
    ck_assert_uint_eq(ft_reach_alike(reach, port("leaf0", "up3")), 0);
    ck_assert(takes_any("leaf0", "up0", "h0-0", "h1-0"));
    ck_assert(!takes_any("leaf0", "up0", "h0-0", "h2-0"));
    ck_assert(!takes_either("leaf0", "up0", "leaf0", "up1", "h0-0", "h2-0"));
    ck_assert(takes_either("leaf0", "up0", "leaf0", "up3", "h0-0", "h2-0"));
    /* What is left of leaf2's own links leads everywhere. */
    ck_assert(takes_any("leaf2", "up0", "h2-0", "h0-0"));
    /* Down to leaf0 flows of leaf2 come by three spines, those of others by four. */
    ck_assert(takes_any("spine0", "down0", "h1-0", "h0-0"));
    ck_assert(!takes_any("spine0", "down0", "h2-0", "h0-0"));
    ck_assert(takes_either("spine0", "down0", "spine2", "down0", "h2-0", "h0-0"));
    ck_assert(!takes_either("spine0", "down0", "spine1", "down0", "h2-0", "h0-0"));
    ck_assert(takes_any("spine0", "down2", "h1-0", "h2-0"));
    end();
}
END_TEST

START_TEST(of_ends_that_are_not_known_no_choice_is)
{
    struct ft_reach_ends ends = {FT_NONE, FT_NONE};

    begin(leafspine_without(4, 4, 1, 2, 1));
    ck_assert(!ft_reach_all(reach, t, port("leaf0", "up0"), &ends));
    ck_assert(ft_reach_all(reach, t, port("leaf2", "up0"), &ends));
    ck_assert(ft_reach_either(reach, t, port("leaf0", "up0"), port("leaf0", "up3"), &ends));
    ends.to = nic("h1-0");
    ck_assert(ft_reach_all(reach, t, port("leaf0", "up0"), &ends));
    ck_assert(!ft_reach_all(reach, t, port("spine0", "down1"), &ends));
    ends = ft_reach_ends(t, FT_NONE, nic("h1-0"), port("leaf3", "up0"));
    ck_assert(ft_reach_all(reach, t, port("spine0", "down1"), &ends));
    end();
}
END_TEST

static void link_up(struct ft_topology_builder *b, const char *low, const char *high,
                    struct ft_diag *diag)
{
    ck_assert_int_eq(ft_topology_add_link(b, low, high, high, low, diag), 0);
}

/* Two pods of two leaves and two spines; each spine has two superspines of its own, but one link
 * of the second pod is missing: p1s0 to ss1. */
static struct ft_topology *three_tiers(void)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_topology_builder *b = ft_topology_builder_new("lab");
    struct ft_topology *topology;
    char leaf[16], spine[16], super[16], host[16];

    for (int i = 0; i < 4; i++) {
        snprintf(super, sizeof(super), "ss%d", i);
        ft_topology_add_switch(b, super, FT_TIER_SUPERSPINE, diag);
    }
    for (int p = 0; p < 2; p++) {
        for (int s = 0; s < 2; s++) {
            snprintf(spine, sizeof(spine), "p%ds%d", p, s);
            ft_topology_add_switch(b, spine, FT_TIER_SPINE, diag);
            for (int k = 0; k < 2; k++) {
                snprintf(super, sizeof(super), "ss%d", 2 * s + k);
                if (p != 1 || s != 0 || k != 1)
                    link_up(b, spine, super, diag);
            }
        }
        for (int l = 0; l < 2; l++) {
            uint32_t at;

            snprintf(leaf, sizeof(leaf), "p%dl%d", p, l);
            snprintf(host, sizeof(host), "h%d%d", p, l);
            ft_topology_add_switch(b, leaf, FT_TIER_LEAF, diag);
            for (int s = 0; s < 2; s++) {
                snprintf(spine, sizeof(spine), "p%ds%d", p, s);
                link_up(b, leaf, spine, diag);
            }
            at = ft_topology_add_nic(b, ft_topology_add_host(b, host, diag), FT_NONE, diag);
            ck_assert_int_eq(ft_topology_attach(b, at, leaf, "host", diag), 0);
        }
    }
    topology = ft_topology_build(b, diag);
    ck_assert_msg(topology != NULL, "%s", ft_diag_count(diag) ? ft_diag_text(diag, 0) : "");
    ft_topology_builder_free(b);
    ft_diag_free(diag);
    return topology;
}

START_TEST(pods_that_share_superspines)
{
    begin(three_tiers());
    /* Leaves choose among their spines as before: each still leads to all. */
    ck_assert(takes_any("p0l0", "p0s0", "h00", "h01"));
    ck_assert(takes_any("p0l0", "p0s0", "h00", "h10"));
    /* From p0s0 only one superspine leads to the second pod. */
    ck_assert(!takes_any("p0s0", "ss0", "h00", "h10"));
    ck_assert(!takes_either("p0s0", "ss0", "p0s0", "ss1", "h00", "h10"));
    ck_assert(takes_any("p0s1", "ss2", "h00", "h10"));
    /* Nor do flows from there come to it by the other one. */
    ck_assert(!takes_any("ss0", "p0s0", "h10", "h00"));
    ck_assert(takes_any("ss2", "p0s1", "h10", "h00"));
    end();
}
END_TEST

/* A host at leaf0 and leaf1, and spine1 without a link to leaf1: what comes by spine1 all goes to
 * leaf0, which makes more of it than of what comes by the others. */
START_TEST(a_host_at_two_leaves)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_topology_builder *b = ft_topology_builder_new("lab");
    struct ft_topology *topology;
    char leaf[16], spine[16];
    uint32_t at;

    for (int s = 0; s < 3; s++) {
        snprintf(spine, sizeof(spine), "spine%d", s);
        ft_topology_add_switch(b, spine, FT_TIER_SPINE, diag);
    }
    for (int l = 0; l < 3; l++) {
        snprintf(leaf, sizeof(leaf), "leaf%d", l);
        ft_topology_add_switch(b, leaf, FT_TIER_LEAF, diag);
        for (int s = 0; s < 3; s++) {
            snprintf(spine, sizeof(spine), "spine%d", s);
            if (l != 1 || s != 1)
                link_up(b, leaf, spine, diag);
        }
    }
    at = ft_topology_add_nic(b, ft_topology_add_host(b, "two", diag), FT_NONE, diag);
    ck_assert_int_eq(ft_topology_attach(b, at, "leaf0", "host", diag), 0);
    ck_assert_int_eq(ft_topology_attach(b, at, "leaf1", "host", diag), 0);
    at = ft_topology_add_nic(b, ft_topology_add_host(b, "one", diag), FT_NONE, diag);
    ck_assert_int_eq(ft_topology_attach(b, at, "leaf2", "host", diag), 0);
    topology = ft_topology_build(b, diag);
    ck_assert_msg(topology != NULL, "%s", ft_diag_count(diag) ? ft_diag_text(diag, 0) : "");
    begin(topology);
    /* leaf2 still has three ways to it. */
    ck_assert(takes_any("leaf2", "spine0", "one", "two"));
    ck_assert(!takes_any("spine0", "leaf0", "one", "two"));
    ck_assert(takes_either("spine0", "leaf0", "spine2", "leaf0", "one", "two"));
    ck_assert(!takes_either("spine0", "leaf0", "spine1", "leaf0", "one", "two"));
    end();
    ft_topology_builder_free(b);
    ft_diag_free(diag);
}
END_TEST

FT_UNIT_MAIN("reach", a_fabric_without_gaps_leaves_all_choices,
             what_lost_a_link_is_no_choice_of_those_behind_it,
             of_ends_that_are_not_known_no_choice_is, pods_that_share_superspines,
             a_host_at_two_leaves)
