// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SIM_LOADS_H
#define FT_SIM_LOADS_H
/*
 * Which directed links a path takes, numbered densely: a link is its egress port; the link by which
 * a NIC sends into a port has the number ports + that port. Only links that a plan can choose count
 * as `chosen`: those between switches, and those of NICs with several attachments. Pure.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/fabric/paths.h"
#include "lib/sim/demand.h"

/* One link into the fabric, and one out of each switch. */
#define FT_PATH_LINKS_MAX (FT_PATH_HOPS_MAX + 1)

static inline uint32_t ft_links_of(const struct ft_topology *t)
{
    return 2 * ft_topology_ports(t);
}

/* The links of a path in its order. Returns how many: hop_count + 1, or 0 without a path. */
uint32_t ft_path_links(const struct ft_topology *t, const struct ft_path *path,
                       uint32_t links[FT_PATH_LINKS_MAX]);

/* Whether a plan can choose it. */
bool ft_link_chosen(const struct ft_topology *t, uint32_t link);

/* Speed of a link; 0 where it is not known. */
uint64_t ft_link_speed(const struct ft_topology *t, uint32_t link);

/* Adds up flows and their rates by link; both arrays have ft_links_of() items, bps may be NULL. */
void ft_loads_count(const struct ft_topology *t, const struct ft_demand *demands,
                    const struct ft_path *paths, uint32_t count, uint32_t *flows, double *bps);

/* The least that the fullest link of each set of links carries, however flows are placed: sets are
 * the uplinks of a leaf, the links into a leaf, those of a pod's spines to the superspines and
 * back. The set of a link gives its bound: ends[count] say between which ports the flows go. */
struct ft_bounds {
    uint32_t *set;    /* by link; FT_NONE: none */
    uint32_t *flows;  /* by set: flows that have to take one of its links */
    double *bps;      /* by set: their rates */
    double *most_bps; /* by set: the largest of them */
    uint32_t *links;  /* by set: links that are not dead */
    double *speed;    /* by set: sum of their speeds; 0 where one is not known */
    double *fastest;  /* by set: the largest of these speeds */
    uint32_t sets;
};

/* -ENOMEM. */
int ft_bounds_init(struct ft_bounds *b, const struct ft_topology *t, const bool *dead,
                   const struct ft_demand *demands, const struct ft_hop *ends, uint32_t count);
void ft_bounds_free(struct ft_bounds *b);

/* Flows on the fullest link of a set, at least: ceil(flows / links). */
uint32_t ft_bound_flows(const struct ft_bounds *b, uint32_t set);

#endif
