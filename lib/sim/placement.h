// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SIM_PLACEMENT_H
#define FT_SIM_PLACEMENT_H
/*
 * Flows on paths, one moved for another: the part of the planner that works in any topology.
 *
 * A link has a limit. A flow finds a path with room on every link, or one where a single link has
 * none and a flow of it can go elsewhere, and so on: breadth first, so the fewest flows move. This
 * is the alternating path of edge colouring without its regular fabric, and within a budget of
 * looks, so it may miss what there is. Pure.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/fabric/paths.h"
#include "lib/sim/loads.h"

struct ft_placement;

/* All is borrowed. weight[count]: what a flow counts for on a link. limit[ft_links_of()]: by link;
 * the caller may change it between calls; not looked at where !ft_link_chosen(). paths[count]: the
 * flows' paths, hop_count 0 without one. dead may be NULL. NULL without memory. */
struct ft_placement *ft_placement_new(const struct ft_topology *t, const bool *dead,
                                      const struct ft_demand *demands, const double *weight,
                                      uint32_t count, const double *limit, struct ft_path *paths);
void ft_placement_free(struct ft_placement *p);

/* What a link carries. */
const double *ft_placement_load(const struct ft_placement *p);

/* Whether it is one of the equal-cost paths between the NICs of the flow, and alive. */
bool ft_placement_valid(const struct ft_placement *p, uint32_t flow, const struct ft_path *path);

/* Finds the flow a path within the limits, moving at most `looks` other flows about. false: there
 * was none; everything is as before. */
bool ft_placement_within(struct ft_placement *p, uint32_t flow, uint32_t looks);

/* Looks of all searches so far. */
uint64_t ft_placement_looked(const struct ft_placement *p);

/* Flows for which some look compared a part of their paths alone, for they have more than a look
 * compares. */
uint32_t ft_placement_cut(const struct ft_placement *p);

/* A search comes by a flow once, at the start; more often from here on, by other chains, and may
 * find what one missed. */
void ft_placement_visits(struct ft_placement *p, uint32_t most);

/* Gives the flow the path whose fullest link, for its limit, is the least full; of several the one
 * with the least load. false: it has no path at all. */
bool ft_placement_least(struct ft_placement *p, uint32_t flow);

/* Lists the flows on a link, at most max. Returns how many. */
uint32_t ft_placement_list(const struct ft_placement *p, uint32_t link, uint32_t *flows,
                           uint32_t max);

#endif
