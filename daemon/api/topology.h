// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_TOPOLOGY_H
#define FT_DAEMON_API_TOPOLOGY_H
/* The topology as the JSON object that daemon/api/api.h describes. */
#include "lib/base/writer.h"
#include "lib/fabric/topology.h"

/* source says where a port's link or NIC is known from ("static"); NULL: it is not told. */
void ft_api_write_topology(struct ft_writer *w, const struct ft_topology *t,
                           const char *(*source)(const void *arg, uint32_t port), const void *arg);

#endif
