// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_CHOICE_H
#define FT_FABRIC_CHOICE_H
/*
 * What a switch has to choose from: its links that lead to a destination by equally short paths.
 * Pure.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/fabric/hash_model.h"
#include "lib/fabric/topology.h"

struct ft_choice {
    const struct ft_topology *t;
    const struct ft_switch *at;
    uint32_t links[FT_HASH_MEMBERS_MAX]; /* egress ports, in the order of the switch's */
    uint32_t count;
};

/* Links of a switch behind which a NIC is so far away (ft_choice_distance()). False where these are
 * more than FT_HASH_MEMBERS_MAX. */
bool ft_choice_find(struct ft_choice *c, const struct ft_topology *t, uint32_t switch_id,
                    uint32_t dst_nic, uint32_t left);

/* From a switch to the nearest switch of a NIC; FT_NONE. */
uint32_t ft_choice_distance(const struct ft_topology *t, uint32_t switch_id, uint32_t nic);

#endif
