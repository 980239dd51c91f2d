// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_HINTED_H
#define FT_FABRIC_HINTED_H
/*
 * The path that a flow takes if what others say of it is true: a switch's answer where it would
 * send the flow, a probe's. Such hints are weaker than samples: they add to what samples show and
 * never make a path resolved; where the two do not agree, the hints are dropped. Pure.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/fabric/paths.h"

/* What a hop is known by, the weaker the later. */
enum ft_hop_by {
    FT_BY_SAMPLES, /* of the hop, or of its neighbours */
    FT_BY_PREDICTION,
    FT_BY_ORACLE,
    FT_BY_PROBE,
    FT_BY_INFERENCE,
};

/* Flows leave a switch by this port or aggregate of it. */
struct ft_hint {
    uint32_t switch_id;
    uint32_t out;
    uint8_t by;     /* enum ft_hop_by */
    float accuracy; /* of a prediction: how often it is right; of others 0 */
};

/* What samples show of a path: as in struct ft_judgement. Without hops: nothing. */
struct ft_hinted_from {
    const struct ft_topology *t;
    uint32_t src_nic, dst_nic;
    const struct ft_path *certain;
    const uint32_t *switches; /* by stage; NULL: none */
};

struct ft_hinted {
    struct ft_path path; /* ends on which all paths that are left agree; others are FT_NONE */
    uint32_t switches[FT_PATH_HOPS_MAX]; /* FT_NONE: they differ */
    uint8_t by[FT_PATH_HOPS_MAX];        /* enum ft_hop_by, of hops whose `out` is known */
    float accuracy;                      /* least of the predictions that decided a hop; 0: none */
    /* The first switch that is known, with the port by which the flow comes in, and has a choice:
     * its stage; FT_NONE where there is none. */
    uint32_t ask;
    bool hinted; /* hints decided a hop */
};

/* False when no equal-cost path agrees with what is certain and with the hints. */
bool ft_hinted_path(const struct ft_hinted_from *from, const struct ft_hint *hints, size_t count,
                    struct ft_hinted *out);

#endif
