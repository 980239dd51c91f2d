// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_REACH_H
#define FT_FABRIC_REACH_H
/*
 * Which links of a group a flow has to choose from. Where a link is missing somewhere in the
 * fabric, the switch that lost it does not lead everywhere any more, and flows to or from what is
 * behind it take the other links of their groups: rightly so.
 *
 * Links of a group are alike where the switches above, to which they lead or from which they come,
 * are as far from every switch with NICs: what may take one may take the others. Pure.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/fabric/topology.h"

struct ft_reach;

/* Between what a flow chooses. FT_NONE: not known. */
struct ft_reach_ends {
    uint32_t from; /* switch of its source */
    uint32_t to;   /* NIC of its destination */
};

/* Of this topology alone. NULL without memory. */
struct ft_reach *ft_reach_new(const struct ft_topology *t);
void ft_reach_free(struct ft_reach *reach);

/* The ends of a flow, of which the first hop leaves by `first` (FT_NONE: not known). */
struct ft_reach_ends ft_reach_ends(const struct ft_topology *t, uint32_t src_nic, uint32_t dst_nic,
                                   uint32_t first);

/* A number that alike links of a group share: the index of the first of them in the group. */
uint32_t ft_reach_alike(const struct ft_reach *reach, uint32_t link);

/* Whether a flow that takes a link has all others of the link's group to choose from. False where
 * that is not known. */
bool ft_reach_all(const struct ft_reach *reach, const struct ft_topology *t, uint32_t link,
                  const struct ft_reach_ends *ends);

/* Whether a flow that takes a link may take another one of the same group. False where that is not
 * known. */
bool ft_reach_either(const struct ft_reach *reach, const struct ft_topology *t, uint32_t link,
                     uint32_t other, const struct ft_reach_ends *ends);

#endif
