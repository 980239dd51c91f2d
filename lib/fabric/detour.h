// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_DETOUR_H
#define FT_FABRIC_DETOUR_H
/*
 * A way through the fabric that is longer than the equal-cost paths, as samples show it.
 *
 * Nothing is filled in: every hop was sampled, each link leads from the port that one sample names
 * to the port that the next one names, from the source's port to the destination's, and all were
 * seen within one stretch of time. Pure.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/fabric/evidence.h"
#include "lib/fabric/paths.h"
#include "lib/fabric/topology.h"

#define FT_DETOUR_HOPS_MAX 12

struct ft_detour {
    uint32_t hop_count;
    uint32_t shortest; /* hops of the equal-cost paths */
    uint32_t at;       /* the hop that sends the flow no nearer to where it goes */
    struct ft_hop hops[FT_DETOUR_HOPS_MAX];
};

/* Whether the sightings of a flow show one; the shortest of them. Sightings that are older than the
 * newest by more than within_ms do not count. False as well when they show an equal-cost path. */
bool ft_detour_find(const struct ft_sighting *list, uint32_t count, const struct ft_topology *t,
                    uint32_t src_nic, uint32_t dst_nic, int64_t within_ms, struct ft_detour *out);

#endif
