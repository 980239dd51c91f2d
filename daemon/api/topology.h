// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_TOPOLOGY_H
#define FT_DAEMON_API_TOPOLOGY_H
/*
 * /api/v1/topology: one message fabrictrace.topology.v1, made in slices; arg is the view. A client
 * whose topology was replaced meanwhile is cut off: half of each would be none.
 */
struct ft_http_request;
struct ft_writer;

int ft_api_topology(void *view, const struct ft_http_request *request, struct ft_writer *body);

#endif
