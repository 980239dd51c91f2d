// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DISCOVERY_TOPOLOGY_DIFF_H
#define FT_DAEMON_DISCOVERY_TOPOLOGY_DIFF_H
/* What differs between two topologies, by names. Pure. Thread: one. */
#include <stdbool.h>
#include <stddef.h>

#include "lib/fabric/topology.h"

enum ft_change_what {
    FT_CHANGE_SWITCH,
    FT_CHANGE_LINK, /* peer and peer_port are the other end */
    FT_CHANGE_HOST, /* peer is the host that hangs on the port */
};

struct ft_change {
    enum ft_change_what what;
    bool came; /* else it went */
    const char *switch_name;
    const char *port;
    const char *peer;
    const char *peer_port;
};

/* Calls each for every switch, link and attachment that only one of them has. Returns how many. */
size_t ft_topology_diff(const struct ft_topology *before, const struct ft_topology *after,
                        void (*each)(void *arg, const struct ft_change *change), void *arg);

/* Whether they are the same in everything, listed in the same order. */
bool ft_topology_same(const struct ft_topology *a, const struct ft_topology *b);

#endif
