// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SIM_CLOS_H
#define FT_SIM_CLOS_H
/*
 * Paths by edge colouring in a Clos fabric of two or three tiers.
 *
 * A slot of a leaf is one of its uplinks, named by where it leads: which spine of its pod, and
 * which of the parallel links. A colour names a slot of every leaf at once, so a flow of that
 * colour has one uplink and one downlink, and the colouring of the flows between leaves is a plan
 * of both. In three tiers each flow between pods then is an edge between the two spines of its
 * colour, and is coloured once more by the links to the superspines. Where a leaf or spine has not
 * a slot that others have, flows of that colour get no path here; so do flows whose ends are no
 * leaves. Pure.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/fabric/paths.h"
#include "lib/sim/demand.h"

struct ft_clos;

/* dead: by port, the link that leaves there is not used; may be NULL. NULL without memory. */
struct ft_clos *ft_clos_new(const struct ft_topology *t, const bool *dead);
void ft_clos_free(struct ft_clos *s);

/* ends[count]: the attached ports at both ends of each flow (in of the first hop, out of the last).
 * order[count]: the flows in falling order of rate. Fills paths; hop_count 0 where there is none.
 * -ENOMEM. */
int ft_clos_colour(const struct ft_clos *s, const struct ft_hop *ends, const uint32_t *order,
                   uint32_t count, struct ft_path *paths);

#endif
