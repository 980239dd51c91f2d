// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_TOPOLOGY_H
#define FT_DAEMON_API_TOPOLOGY_H
/* The topology as the JSON object that daemon/api/api.h describes. */
#include "daemon/publish/findings.h"
#include "lib/base/writer.h"
#include "lib/fabric/topology.h"

/* What is known of a port with a link or NIC beside where it leads. */
struct ft_api_origin {
    const char *source; /* where it is known from ("static") */
    bool confirmed;     /* a link: both its ends agree, by samples or LLDP */
    uint64_t samples;   /* that agree of late; 0: none */
    uint32_t flows;
};

/* Who knows it, and what else stands under "open": ports that flows cross to other switches, though
 * it is not known which. */
struct ft_api_origins {
    struct ft_api_origin (*of)(const void *arg, uint32_t port);
    const void *arg;
    const struct ft_findings *open;
};

/* origins NULL: they are not reported. */
void ft_api_write_topology(struct ft_writer *w, const struct ft_topology *t,
                           const struct ft_api_origins *origins);

#endif
