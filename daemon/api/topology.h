// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_TOPOLOGY_H
#define FT_DAEMON_API_TOPOLOGY_H
/*
 * /api/v1/topology: one message fabrictrace.topology.v1, made in slices; arg is the view. Where
 * the topology is replaced meanwhile, all of the answer is of the one before or of the new one.
 */
struct ft_http_request;
struct ft_writer;

int ft_api_topology(void *view, const struct ft_http_request *request, struct ft_writer *body);

#endif
