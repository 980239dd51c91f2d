// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_PATHS_H
#define FT_FABRIC_PATHS_H
/*
 * Equal-cost paths between two NICs: the shortest paths of the directed graph, found by walking
 * from the source's leaf always one hop nearer to the destination's. Pure.
 *
 * Up-down only: a path never goes down and up again (shortest paths in a leaf-spine do not). Of a
 * source on two leaves (dual ToR) each leaf has its own shortest paths, which may differ in length:
 * the host chooses the leaf, and that leaf the shortest path. A destination on two leaves is
 * reached by whichever of them is nearer, by both when they are equally near.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/fabric/topology.h"

/* Three tiers with pods need 5 switches. */
#define FT_PATH_HOPS_MAX 5

/* One switch on a path; in and out are port ids. */
struct ft_hop {
    uint32_t in;
    uint32_t out;
};

struct ft_path {
    uint32_t hop_count;
    struct ft_hop hops[FT_PATH_HOPS_MAX];
};

/* Decides whether the walk may take a hop; stage counts from 0 at the source's leaf. NULL accepts
 * everything. Pruning here is what keeps the walk cheap in a wide fabric. */
typedef bool (*ft_path_accept)(void *arg, uint32_t stage, const struct ft_hop *hop);

/* Counts the equal-cost paths from src_nic to dst_nic that accept lets pass, up to limit, and
 * stores the first ones (at most max) in paths, in a fixed order. 0 when there is no path. A NIC to
 * itself has no path. */
uint64_t ft_paths_walk(const struct ft_topology *t, uint32_t src_nic, uint32_t dst_nic,
                       ft_path_accept accept, void *arg, struct ft_path *paths, size_t max,
                       uint64_t limit);

/* The same of the paths whose switch at each stage is via's, where that is not FT_NONE: what accept
 * would refuse is not even looked at. */
uint64_t ft_paths_walk_via(const struct ft_topology *t, uint32_t src_nic, uint32_t dst_nic,
                           const uint32_t via[FT_PATH_HOPS_MAX], ft_path_accept accept, void *arg,
                           struct ft_path *paths, size_t max, uint64_t limit);

/* The number of hops (switches) of the equal-cost paths, of the longest where the leaves of a
 * source differ; 0 when there is no path. */
uint32_t ft_paths_length(const struct ft_topology *t, uint32_t src_nic, uint32_t dst_nic);

/* The stage at which a switch lies on equal-cost paths from src_nic to dst_nic, FT_NONE when it
 * lies on none. From a source with several leaves it may be the first or the last, or further on
 * from one leaf than from another: of those that agree with the ends through it (FT_NONE: not
 * known), that of the source's first attachment. */
uint32_t ft_paths_stage(const struct ft_topology *t, uint32_t src_nic, uint32_t dst_nic,
                        uint32_t switch_id, struct ft_hop ends);

/* The same from one attachment of the source; FT_NONE as well where the ends do not agree. */
uint32_t ft_paths_stage_from(const struct ft_topology *t, uint32_t src_nic, uint32_t attach,
                             uint32_t dst_nic, uint32_t switch_id, struct ft_hop ends);

#endif
