// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_INPUTS_CHANGE_H
#define FT_CLI_INPUTS_CHANGE_H
/*
 * A fabric as it would be: with more spines, each wired as one of those there are, or with links
 * between switches of another speed. Ids of what was there stay.
 */
#include <stdint.h>
#include <stdio.h>

#include "lib/fabric/topology.h"

/* fabric_bps 0: speeds stay. NULL after a complaint to err. */
struct ft_topology *ft_change_fabric(const struct ft_topology *t, uint32_t add_spines,
                                     uint64_t fabric_bps, FILE *err);

#endif
