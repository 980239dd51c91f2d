// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOIN_FLOW_NETWORKS_H
#define FT_DAEMON_JOIN_FLOW_NETWORKS_H
/*
 * Flows of one 5-tuple in several networks (VNI): tenants may use the same addresses.
 *
 * Hosts, and switches where no tunnel is yet or any more, do not say which of them they mean. So a
 * flow whose samples name two networks has no path, rate or owner: it is unresolved until the older
 * one was not sampled for as long as evidence counts, and is then begun anew. A gateway that takes
 * a flow from one network to another looks the same. Thread: the join's.
 */
#include "daemon/join/join_impl.h"

/* Takes the network that samples name (as in struct ft_observation). False: it cannot be
 * remembered, and so nothing of the samples may be taken. */
bool ft_flow_take_network(struct ft_join *join, struct ft_flow *flow, uint32_t network,
                          int64_t last_ms);

/* Whether its samples are of several; sure until the next ft_flow_age_networks(). */
bool ft_flow_is_several(const struct ft_flow *flow);

/* At the close of a window, after its volume is known: begins the flow anew where one network alone
 * is left. Whether it did. */
bool ft_flow_age_networks(struct ft_join *join, struct ft_flow *flow, uint32_t window,
                          int64_t now_ms);

#endif
