// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOIN_FLOW_FOLLOW_H
#define FT_DAEMON_JOIN_FLOW_FOLLOW_H
/*
 * What is known of a flow, carried over from one topology to another: sightings and the path follow
 * by the names of switch and port. Pure. Thread: one.
 */
#include "daemon/join/join.h"

/* Where switches, ports and aggregates of one topology are in another: looked up once, for flows
 * are many. */
struct ft_follow;

/* Both must live as long as it does. NULL without memory. */
struct ft_follow *ft_follow_new(const struct ft_topology *from, const struct ft_topology *to);
void ft_follow_free(struct ft_follow *follow);

/* A sighting whose switch is gone is forgotten, and so is a path of which a port is. Of a flow that
 * was on a link that is no more nothing is known but its volume: it goes elsewhere now. Its ends
 * are those of the NICs it had; to find them and the judgement anew is the caller's. */
void ft_flow_follow(struct ft_flow *flow, const struct ft_follow *follow);

#endif
