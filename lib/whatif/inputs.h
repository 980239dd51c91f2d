// SPDX-License-Identifier: Apache-2.0
#ifndef FT_WHATIF_INPUTS_H
#define FT_WHATIF_INPUTS_H
/*
 * Traffic over a fabric: a topology, flows between its NICs, and what of it is down. Owner: the
 * caller. Thread: one.
 */
#include <stdbool.h>

#include "lib/files/flows_file.h"

struct ft_inputs {
    struct ft_topology *topology;
    struct ft_flow_list flows;
    bool *dead; /* by port; NULL: none */
};

/* Takes zeroed ones. */
void ft_inputs_free(struct ft_inputs *inputs);

#endif
