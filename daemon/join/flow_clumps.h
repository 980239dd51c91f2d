// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOIN_FLOW_CLUMPS_H
#define FT_DAEMON_JOIN_FLOW_CLUMPS_H
/*
 * How samples of a flow that is sprayed keep together within the intervals of those who report them
 * (lib/fabric/dispersion.h): at one group of links, the lowest where it is spread over several, the
 * samples of one sampling point, and where the group's own switch takes them those that came in by
 * one port. Flows that are not sprayed have none of this. Pure. Thread: the join's.
 */
#include "daemon/join/join_impl.h"

/* The link that a sighting is of, as an egress port that leads up: at its own switch, or seen from
 * the other end; in, out: its ports. FT_NONE: it is of none in a group. */
uint32_t ft_flow_link_up(const struct ft_topology *t, uint32_t in, uint32_t out, bool own);

/* Takes samples that the flow's evidence has. due: a second has begun, so that it is time to look
 * whether the flow is sprayed. */
void ft_flow_take_clumps(struct ft_join *j, struct ft_flow *flow, const struct ft_observation *o,
                         uint32_t in, uint32_t out, uint32_t window, bool due);

/* Of a window; NULL: nothing is known of it, also where samples of one link and interval came
 * twice, so that their pairs are not known. *group: where they were taken. */
const struct ft_clumps *ft_flow_clumps_of(const struct ft_flow *flow, uint32_t window,
                                          uint32_t *group);

#endif
