// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_WIDE_PODS_H
#define FT_TESTS_WIDE_PODS_H
/*
 * Three tiers as wide as large fabrics are: leaf a and leaf z with a host each, NIC 0 and NIC 1,
 * in two pods of WIDE_SPINES spines. Spine s of either pod is below the WIDE_SUPERS superspines of
 * its plane, so there are WIDE_SPINES x WIDE_SUPERS paths. Switches in this order: leaf a, leaf z,
 * spines of a, spines of z, superspines plane by plane; the address of each is
 * leafspine_switch_ip() of its number. ifIndex of a port: 1000 to a host, else 1 + the number of
 * the switch that it leads to.
 */
#include <stdio.h>

#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define WIDE_SPINES 4
#define WIDE_SUPERS 32
#define WIDE_PATHS  (WIDE_SPINES * WIDE_SUPERS)
#define WIDE_HOST   1000

static inline uint32_t wide_leaf(uint32_t pod)
{
    return pod;
}

static inline uint32_t wide_spine(uint32_t pod, uint32_t s)
{
    return 2 + pod * WIDE_SPINES + s;
}

static inline uint32_t wide_super(uint32_t s, uint32_t i)
{
    return 2 + 2 * WIDE_SPINES + s * WIDE_SUPERS + i;
}

static inline void wide_switch(struct ft_topology_builder *b, uint32_t id, enum ft_tier tier,
                               struct ft_diag *diag)
{
    struct ft_ip ip = leafspine_switch_ip(id);
    char name[16];

    snprintf(name, sizeof(name), "s%u", id);
    ck_assert_uint_eq(ft_topology_add_switch(b, name, tier, diag), id);
    ck_assert_int_eq(ft_topology_add_address(b, id, &ip, diag), 0);
}

static inline void wide_link(struct ft_topology_builder *b, uint32_t low, uint32_t high,
                             struct ft_diag *diag)
{
    char a[16], z[16], a_port[16], z_port[16];

    snprintf(a, sizeof(a), "s%u", low);
    snprintf(z, sizeof(z), "s%u", high);
    snprintf(a_port, sizeof(a_port), "to%u", high);
    snprintf(z_port, sizeof(z_port), "to%u", low);
    ft_topology_add_port(b, low, a_port, 1 + high, LINK_BPS, diag);
    ft_topology_add_port(b, high, z_port, 1 + low, LINK_BPS, diag);
    ck_assert_int_eq(ft_topology_add_link(b, a, a_port, z, z_port, diag), 0);
}

static inline struct ft_topology *wide_pods(void)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_topology_builder *b = ft_topology_builder_new("wide");
    struct ft_topology *t;

    for (uint32_t pod = 0; pod < 2; pod++)
        wide_switch(b, wide_leaf(pod), FT_TIER_LEAF, diag);
    for (uint32_t i = 0; i < 2 * WIDE_SPINES; i++)
        wide_switch(b, wide_spine(0, i), FT_TIER_SPINE, diag);
    for (uint32_t i = 0; i < WIDE_PATHS; i++)
        wide_switch(b, wide_super(0, i), FT_TIER_SUPERSPINE, diag);
    for (uint32_t pod = 0; pod < 2; pod++) {
        struct ft_ip ip = leafspine_host_ip(pod, 0);
        char name[16], leaf[16];
        uint32_t nic;

        for (uint32_t s = 0; s < WIDE_SPINES; s++) {
            wide_link(b, wide_leaf(pod), wide_spine(pod, s), diag);
            for (uint32_t i = 0; i < WIDE_SUPERS; i++)
                wide_link(b, wide_spine(pod, s), wide_super(s, i), diag);
        }
        snprintf(name, sizeof(name), "h%u", pod);
        snprintf(leaf, sizeof(leaf), "s%u", wide_leaf(pod));
        ft_topology_add_port(b, wide_leaf(pod), "host", WIDE_HOST, LINK_BPS, diag);
        nic = ft_topology_add_nic(b, ft_topology_add_host(b, name, diag), FT_NONE, diag);
        ft_topology_add_nic_address(b, nic, &ip, diag);
        ck_assert_int_eq(ft_topology_attach(b, nic, leaf, "host", diag), 0);
    }
    t = ft_topology_build(b, diag);
    ck_assert_msg(t != NULL, "%s", ft_diag_text(diag, 0));
    ft_topology_builder_free(b);
    ft_diag_free(diag);
    return t;
}

/* The port of a switch that leads to another, or to its host (WIDE_HOST - 1). */
static inline uint32_t wide_port(const struct ft_topology *t, uint32_t at, uint32_t to)
{
    uint32_t port = ft_topology_port_at(t, at, 1 + to);

    ck_assert_uint_ne(port, FT_NONE);
    return port;
}

#endif
