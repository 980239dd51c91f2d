// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_SKEWED_H
#define FT_FABRIC_SKEWED_H
/*
 * The groups of a topology whose links a switch may weigh otherwise than alike (weights.h), and
 * what follows for the groups behind them: by which link of a group that leads down a flow comes is
 * what a switch before it chose on the way up. Where that one weighs its links by speed, and those
 * down are of other speeds, they are used unevenly, and rightly so. Pure. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/fabric/paths.h"
#include "lib/fabric/topology.h"

struct ft_skewed;

/* Of this topology alone. NULL without memory. */
struct ft_skewed *ft_skewed_new(const struct ft_topology *t);
void ft_skewed_free(struct ft_skewed *skewed);

/* What is chosen alike, whatever links are left of it: of a group up an aggregate, or a link by
 * itself; of a group down the switch above. */
uint32_t ft_skewed_bundle(const struct ft_topology *t, uint32_t link);

/* Whether links of a group differ in speed, or aggregates of it in the number of their members. */
bool ft_skewed_group(const struct ft_skewed *skewed, uint32_t group);

/* Whether the link by which a hop of a path leads down was chosen before, among links whose weights
 * may lead to other shares of its group than any weights of the group itself. */
bool ft_skewed_before(const struct ft_skewed *skewed, const struct ft_topology *t,
                      const struct ft_path *path, uint32_t hop);

#endif
