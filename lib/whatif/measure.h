// SPDX-License-Identifier: Apache-2.0
#ifndef FT_WHATIF_MEASURE_H
#define FT_WHATIF_MEASURE_H
/*
 * Figures of flows on given paths: imbalance of each layer, collisions, and rates when links are
 * shared max-min fairly (lib/sim/fluid.h), no flow having more than its own rate.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/fabric/metrics.h"
#include "lib/sim/policies.h"

/* Leaves, spines and superspines, up and down. */
#define FT_LAYERS 6

struct ft_layer {
    const char *tier, *direction;
    uint32_t links; /* in groups of more than one; 0: there is no such layer */
    double fim;
    double most; /* flows on its fullest link */
};

struct ft_measured {
    struct ft_layer layers[FT_LAYERS];
    double most;
    double collisions;
    double slowest_share; /* 1 without flows with a demand */
    uint32_t slowest;     /* flow; FT_NONE */
    double slowest_bps;
    uint32_t hottest; /* link; FT_NONE */
    double hottest_load;
};

/* The paths of each flow, of which each has its share: paths[first[f]] up to
 * paths[first[f + 1]]. */
struct ft_placed {
    const struct ft_path *paths;
    const uint32_t *first;
    const double *part; /* by path: of its flow; NULL: those of a flow have the same */
    /* as spraying does: on all of its paths at each moment, so that the fullest one limits it, and
     * that it is one flow to its NIC. Else each path has a flow of its own. */
    bool sprayed;
};

/* The part of a flow that a path of it has. */
double ft_placed_part(const struct ft_placed *placed, uint32_t flow, uint32_t path);

/* Fills rate_bps, by path, where it is not NULL. -ENOMEM. */
int ft_measure(const struct ft_policy_input *in, const struct ft_placed *placed, double *rate_bps,
               struct ft_measured *out);

#endif
