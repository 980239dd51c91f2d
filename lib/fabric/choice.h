// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_CHOICE_H
#define FT_FABRIC_CHOICE_H
/*
 * What a switch has to choose from: its links that lead to a destination by equally short paths;
 * and what a NIC has that hangs on several leaves: the leaf that it sends to. Pure.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/fabric/hash_model.h"
#include "lib/fabric/topology.h"

struct ft_choice {
    const struct ft_topology *t;
    const struct ft_switch *at;          /* NULL: a NIC chooses */
    uint32_t nic;                        /* which one it is then; else FT_NONE */
    uint32_t links[FT_HASH_MEMBERS_MAX]; /* egress ports, in the order of the switch's; of a NIC the
                                            ports that it hangs on, by the names of the leaves */
    uint32_t count;
};

/* Links of a switch behind which a NIC is so far away (ft_choice_distance()). False where these are
 * more than FT_HASH_MEMBERS_MAX. */
bool ft_choice_find(struct ft_choice *c, const struct ft_topology *t, uint32_t switch_id,
                    uint32_t dst_nic, uint32_t left);

/* What a NIC chooses from: hosts of a dual-plane fabric bond their ports and choose by a hash of
 * their own. False where it hangs on one leaf alone, or twice on the same. */
bool ft_choice_of_nic(struct ft_choice *c, const struct ft_topology *t, uint32_t nic);

/* Name of a link that is chosen from: its port's; of a NIC's the leaf's. */
const char *ft_choice_member(const struct ft_choice *c, uint32_t i);

#define FT_CHOICE_GROUP 128

/* "leaf1+leaf2/nics": all NICs that choose between the same leaves. -ENOSPC. */
int ft_choice_nics_group(const struct ft_choice *c, char group[FT_CHOICE_GROUP]);

/* Distinguishes a NIC from others of its group. */
uint64_t ft_choice_nic_digest(const struct ft_choice *c);

/* From a switch to the nearest switch of a NIC; FT_NONE. */
uint32_t ft_choice_distance(const struct ft_topology *t, uint32_t switch_id, uint32_t nic);

#endif
