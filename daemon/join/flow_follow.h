// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOIN_FLOW_FOLLOW_H
#define FT_DAEMON_JOIN_FLOW_FOLLOW_H
/*
 * What is known of a flow, carried over from one topology to another: sightings and the path follow
 * by the names of switch and port. Pure. Thread: one.
 */
#include "daemon/join/join.h"

/* A sighting whose switch is gone is forgotten, and so is a path of which a port is. Of a flow that
 * was on a link that is no more nothing is known but its volume: it goes elsewhere now. The flow's
 * ends and judgement are the caller's to renew. */
void ft_flow_follow(struct ft_flow *flow, const struct ft_topology *from,
                    const struct ft_topology *to);

#endif
