// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOIN_FLOW_TUNNEL_H
#define FT_DAEMON_JOIN_FLOW_TUNNEL_H
/* The tunnel around a flow, from what samples say of it. Thread: the join's. */
#include "daemon/join/join_impl.h"

/* Takes what an observation between two ends of a switch says of it: that the flow is in a tunnel,
 * or, between other switches, in none. Where that is news, what switches answered of the flow is
 * dropped. */
void ft_flow_take_tunnel(struct ft_join *join, struct ft_flow *flow, const struct ft_observation *o,
                         uint32_t in, uint32_t out);

#endif
