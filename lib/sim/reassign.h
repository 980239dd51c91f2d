// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SIM_REASSIGN_H
#define FT_SIM_REASSIGN_H
/*
 * Other paths for some flows, each among candidates that it can be given, so that the fullest link
 * carries less; all other flows stay where they are.
 *
 * A heuristic: flows without a living path first get the candidate that fills links the least; then
 * single flows, and pairs of them, are moved as long as the sum of the sixth powers of the links'
 * loads falls, which the fullest links decide. Where that stays above an even share and a plan by
 * edge colouring (plan.h) can be had by candidates, the better of the two counts. At last each
 * flow goes back where that costs the fullest link nothing, so that few move. The fullest link of
 * those that the flows can take never carries more than before, else nothing moves (where a path is
 * dead its flows have to go somewhere). Bound: what the
 * heuristic leaves is at most what was; it is the least possible where the colouring was taken.
 * The lower bound of the fullest link is that of each leaf's and pod's links; leaves that flows
 * choose between, as NICs with several ports let them, are one in it.
 * Pure.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/fabric/paths.h"
#include "lib/sim/demand.h"

struct ft_reassign_input {
    const struct ft_topology *topology;
    const bool *dead; /* by port; NULL: none */
    const struct ft_demand *demands;
    const struct ft_path *now; /* paths of all flows */
    uint32_t count;
    const uint32_t *first; /* candidates of flow f: first[f] up to first[f + 1]; none: it stays */
    const struct ft_path *candidates;
};

struct ft_reassign {
    uint32_t *choice;     /* by flow: the candidate's number in the list; FT_NONE: it stays */
    double before, after; /* share of the fullest link that candidates can take; before: of those
                             alive */
    double bound;         /* what `after` is at least, whatever flows take; 0: not known */
    uint32_t worst_before, worst_after; /* that link; FT_NONE */
    uint32_t moved, lost;               /* flows that move; of these those whose path is dead */
    uint32_t stuck;                     /* flows whose path is dead and that stay without one */
};

/* -ENOMEM. */
int ft_reassign(const struct ft_reassign_input *in, struct ft_reassign *out);
void ft_reassign_free(struct ft_reassign *r);

#endif
