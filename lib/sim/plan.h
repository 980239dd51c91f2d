// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SIM_PLAN_H
#define FT_SIM_PLAN_H
/*
 * The planner: a path for each flow, such that the fullest link carries as little as possible.
 *
 * Equal flows in a regular fabric of two tiers: edge colouring (colour.h); each link of a leaf
 * carries at most ceil(flows / links), which nothing can improve on. In three tiers the leaves'
 * flows are coloured first, then those between the spines of each colour; that is as good for
 * uplinks and downlinks of leaves, and for superspines where every leaf is busy. NICs on several
 * leaves: which attachment is chosen first (ends.h). Unequal rates: colouring in falling order of
 * rate, so that no link of a leaf carries more than an even share and the largest flow, at most
 * twice the least possible; then the fullest link is relieved as long as a chain of moves does.
 * Where links are missing or the fabric is irregular: flows without a path get one by chains of
 * moves, within each leaf's ceil(flows / links) where that is found, else beyond it; and what that
 * puts on one port of a NIC that has several goes to the others, where links between switches do
 * not get more by it and a chain is found.
 *
 * With a previous plan only flows without a living path get a new one, and those that chains move
 * for them: breadth first, so the fewest. Deterministic. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/fabric/paths.h"
#include "lib/sim/demand.h"

struct ft_task;

struct ft_plan_input {
    const struct ft_topology *topology;
    const struct ft_demand *demands;
    uint32_t count;
    const bool *dead;               /* by port: the link that leaves there; NULL: none */
    const struct ft_path *previous; /* hop_count 0: the flow is new; NULL: no plan before */
    struct ft_task *task;           /* pauses when a step's work is done; NULL: nobody waits */
    void (*progress)(void *arg, uint32_t done, uint32_t of); /* may be NULL */
    void *arg;
};

struct ft_plan {
    struct ft_path *paths;
    bool equal;        /* flows of one rate over links of one speed: what counts is their number */
    uint32_t coloured; /* flows that edge colouring placed */
    uint32_t flows_most;  /* on a link between switches */
    uint32_t flows_bound; /* and at least, however they are placed: those alone that have no choice
                             of leaves; what these choose is a heuristic */
    uint32_t crowded;     /* links with more flows than the bound of their leaf or pod */
    double share_most;    /* of a link's speed; without speeds in bits per second */
    double share_bound;
    uint32_t lost;        /* flows whose previous path is dead, or that are new */
    uint32_t moved;       /* flows with another path than before, those among them */
    uint32_t cut;         /* flows with more paths than one look compares, where it compared some */
    uint32_t unreachable; /* the flow, with -EHOSTUNREACH */
};

/* -EHOSTUNREACH: a flow has no living path; -ENOMEM. */
int ft_plan_make(const struct ft_plan_input *in, struct ft_plan *plan);
void ft_plan_free(struct ft_plan *plan);

#endif
