// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOIN_FLOW_PATH_H
#define FT_DAEMON_JOIN_FLOW_PATH_H
/*
 * The last resolved path of a flow. The entry has the links by which it leaves switches; by which
 * ports it enters them follows from the topology, but for the first. Of a path that has lost a link
 * since, it does not, so that one is kept completely beside the entry. Pure. Thread: one.
 */
#include "daemon/join/join.h"

/* The topology is the join's. Without a path hop_count is 0. */
struct ft_path ft_flow_path(const struct ft_topology *t, const struct ft_flow *flow);

/* Without memory for one that is kept completely the flow has none. */
void ft_flow_set_path(const struct ft_topology *t, struct ft_flow *flow,
                      const struct ft_path *path);

#endif
