// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_LEAFSPINE_H
#define FT_TESTS_LEAFSPINE_H
/*
 * A leaf-spine for unit tests: switches leaf0.. and spine0.., one host per NIC. Leaf l reaches
 * spine s by its port of ifIndex 100 + s, spine s reaches leaf l by ifIndex 1 + l, host h hangs on
 * ifIndex 1 + h. NIC l * hosts + h has the address 10.0.l.(h + 1). Switch addresses: 192.0.2.(1 +
 * id), leaves first.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/fabric/paths.h"
#include "lib/fabric/topology.h"

#define LINK_BPS 1000000000u

/* Of the link between a leaf and a spine; NULL: LINK_BPS of each. Set it before leafspine(). */
static uint64_t (*leafspine_bps)(uint32_t leaf, uint32_t spine);

/* Benchmarks use this too, so it does without Check. */
static inline void leafspine_must(bool fine, const char *what)
{
    if (fine)
        return;
    fprintf(stderr, "leafspine: %s\n", what);
    abort();
}

static inline struct ft_ip leafspine_switch_ip(uint32_t id)
{
    return ft_ip4((uint8_t[4]){192, 0, (uint8_t)(2 + id / 250), (uint8_t)(1 + id % 250)});
}

static inline struct ft_ip leafspine_host_ip(uint32_t leaf, uint32_t host)
{
    return ft_ip4(
        (uint8_t[4]){10, (uint8_t)(leaf / 250), (uint8_t)(leaf % 250), (uint8_t)(host + 1)});
}

static inline void leafspine_switch(struct ft_topology_builder *b, const char *kind, uint32_t i,
                                    uint32_t id, struct ft_diag *diag)
{
    char name[32];
    struct ft_ip ip = leafspine_switch_ip(id);

    snprintf(name, sizeof(name), "%s%u", kind, i);
    leafspine_must(ft_topology_add_switch(b, name, FT_TIER_UNKNOWN, diag) == id, name);
    leafspine_must(ft_topology_add_address(b, id, &ip, diag) == 0, "the builder refused");
}

/* All ports are there, and one link is not. */
static inline struct ft_topology *leafspine_without(uint32_t leaves, uint32_t spines,
                                                    uint32_t hosts, uint32_t leaf, uint32_t spine)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_topology_builder *b = ft_topology_builder_new("lab");
    struct ft_topology *t;
    char a[32], z[32], a_port[32], z_port[32];

    for (uint32_t l = 0; l < leaves; l++)
        leafspine_switch(b, "leaf", l, l, diag);
    for (uint32_t s = 0; s < spines; s++)
        leafspine_switch(b, "spine", s, leaves + s, diag);
    for (uint32_t l = 0; l < leaves; l++) {
        snprintf(a, sizeof(a), "leaf%u", l);
        for (uint32_t s = 0; s < spines; s++) {
            snprintf(z, sizeof(z), "spine%u", s);
            snprintf(a_port, sizeof(a_port), "up%u", s);
            snprintf(z_port, sizeof(z_port), "down%u", l);
            ft_topology_add_port(b, l, a_port, 100 + s,
                                 leafspine_bps ? leafspine_bps(l, s) : LINK_BPS, diag);
            ft_topology_add_port(b, leaves + s, z_port, 1 + l,
                                 leafspine_bps ? leafspine_bps(l, s) : LINK_BPS, diag);
            if (l == leaf && s == spine)
                continue;
            leafspine_must(ft_topology_add_link(b, a, a_port, z, z_port, diag) == 0,
                           "the builder refused");
        }
        for (uint32_t h = 0; h < hosts; h++) {
            struct ft_ip ip = leafspine_host_ip(l, h);
            uint32_t nic;

            snprintf(a_port, sizeof(a_port), "host%u", h);
            snprintf(z, sizeof(z), "h%u-%u", l, h);
            ft_topology_add_port(b, l, a_port, 1 + h, LINK_BPS, diag);
            nic = ft_topology_add_nic(b, ft_topology_add_host(b, z, diag), FT_NONE, diag);
            ft_topology_add_nic_address(b, nic, &ip, diag);
            leafspine_must(ft_topology_attach(b, nic, a, a_port, diag) == 0, "the builder refused");
        }
    }
    t = ft_topology_build(b, diag);
    leafspine_must(t, ft_diag_text(diag, 0));
    ft_topology_builder_free(b);
    ft_diag_free(diag);
    return t;
}

static inline struct ft_topology *leafspine(uint32_t leaves, uint32_t spines, uint32_t hosts)
{
    return leafspine_without(leaves, spines, hosts, UINT32_MAX, UINT32_MAX);
}

#endif
