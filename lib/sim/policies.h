// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SIM_POLICIES_H
#define FT_SIM_POLICIES_H
/*
 * Other policies of routing than a plan, to compare with: what switches do by hashing, by static
 * routes, what a controller does that takes flows one by one, and spraying. Pure.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/fabric/paths.h"
#include "lib/sim/demand.h"

struct ft_task;

struct ft_policy_input {
    const struct ft_topology *topology;
    const struct ft_demand *demands;
    uint32_t count;
    const bool *dead; /* by port; NULL: none */
    /* with NICs where they hang when nothing is down, by the same ids; NULL: topology */
    const struct ft_topology *cabled;
    struct ft_task *task; /* pauses when the work of a step is done; NULL: nobody waits */
};

/* All fill paths[count]; -EHOSTUNREACH where a flow has no living path, -ENOMEM. */

/* Each switch one of the links that lead on at random, and a NIC one of its ports: ECMP with a hash
 * that is worth its name. Where switches lead on by more links than others, paths are not taken
 * alike. The same seed gives the same paths. */
int ft_policy_ecmp(const struct ft_policy_input *in, uint64_t seed, struct ft_path *paths);

/* The path follows from the destination alone: its number modulo the number of paths. */
int ft_policy_static(const struct ft_policy_input *in, struct ft_path *paths);

/* The path follows from the position of the destination's NIC at its leaf, whose NICs are counted
 * by rail and then in order: that modulo the number of paths. What a leaf receives on one rail
 * comes over the same paths wherever it is from, and with no more NICs at a leaf than paths no two
 * of its NICs share a way down (rail-aligned routes; as path pinning in Gangidi et al., "RDMA over
 * Ethernet for Distributed AI Training at Meta Scale", SIGCOMM 2024). Of a NIC at two leaves the
 * position at the first counts. */
int ft_policy_rail(const struct ft_policy_input *in, struct ft_path *paths);

/* In the order given, each flow the path whose fullest link carries the fewest flows. */
int ft_policy_greedy(const struct ft_policy_input *in, struct ft_path *paths);

/* Whether a hop and the link behind it are not down. */
bool ft_policy_lives(const struct ft_policy_input *in, const struct ft_hop *hop);

/* The paths of one flow, at most max; returns how many. */
uint32_t ft_policy_paths(const struct ft_policy_input *in, uint32_t flow, struct ft_path *paths,
                         uint32_t max);

/* What spraying sends over each of a flow's paths, of 1: a NIC and each switch take the links that
 * lead on alike, however many paths there are behind each. -ENOMEM. */
int ft_policy_parts(const struct ft_path *paths, uint32_t n, double *part);

#endif
