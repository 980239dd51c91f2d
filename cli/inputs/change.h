// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_INPUTS_CHANGE_H
#define FT_CLI_INPUTS_CHANGE_H
/*
 * A fabric as it would be: with more spines, each wired as one of those there are, or with links
 * between switches, all or some, of another speed, or without those that are down: routing finds
 * the shortest paths of the rest. Ids of what was there stay; ports that are down lead nowhere.
 */
#include <stdint.h>
#include <stdio.h>

#include "lib/fabric/topology.h"

struct ft_fabric_change {
    uint32_t add_spines;
    uint64_t fabric_bps;     /* of links between switches; 0: speeds stay */
    const char *link_speeds; /* LINK=BPS,...: of these alone, whatever fabric_bps is; NULL: none */
    const bool *dead;        /* by port: links and ports of NICs that are down; NULL: none */
};

/* Of command, for complaints: NULL after one to err. */
struct ft_topology *ft_change_fabric(const struct ft_topology *t,
                                     const struct ft_fabric_change *change, const char *command,
                                     FILE *err);

#endif
