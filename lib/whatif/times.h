// SPDX-License-Identifier: Apache-2.0
#ifndef FT_WHATIF_TIMES_H
#define FT_WHATIF_TIMES_H
/*
 * How long captured collectives would take on other paths: each as rounds of dependent flows that
 * the fluid model plays (lib/sim/fluid.h).
 *
 * Of each communicator and operation the newest one that the most ranks reported; of transfers of a
 * rank to a peer the newest. What a rank sent a peer goes over the flows that are certain to be of
 * the two, in equal parts. A ring of n ranks has n - 1 rounds (AllReduce twice as many), played as
 * at most 8 longer ones; anything else is one round, as trees and point-to-point transfers are
 * pipelines. One follows another in its communicator after the same pause as was measured;
 * communicators of a job run beside each other. Flows of no collective take what is theirs while
 * all flows send. What runs inside a host is not seen, and costs nothing here. Owner: the caller.
 */
#include <stdint.h>

#include "lib/sim/policies.h"
#include "lib/whatif/captured.h"
#include "lib/whatif/measure.h"

/* What one rank sends another. */
struct ft_edge_bytes {
    uint32_t src, dst;
    double bytes;
    uint32_t first_flow, flow_count; /* of edge_flows */
};

struct ft_played {
    const Fabrictrace__Collective *record; /* of one of its ranks */
    uint64_t start_ms, end_ms;             /* from the first rank's start to the last one's end */
    uint64_t measured_us;                  /* the longest of a rank */
    uint32_t ranks_seen;
    uint32_t rounds;
    struct ft_edge_bytes *edges;
    uint32_t edge_count;
    uint32_t edges_without; /* no flow is known to be of them */
    uint32_t after;         /* the one before in its communicator; UINT32_MAX */
    double pause_s;         /* behind that, or behind the first start of all */
};

struct ft_times {
    struct ft_played *items; /* in the order of their start */
    uint32_t count;
    uint32_t *edge_flows;
    bool *used;    /* by flow: some collective is on it */
    double step_s; /* measured, from the first start to the last end */
};

/* count 0 where no collective was captured, or none has a known flow. -ENOMEM. */
int ft_times_init(struct ft_times *t, const struct ft_captured *c);
void ft_times_free(struct ft_times *t);

/* placed and rate_bps as of ft_measure(). Fills times_s[count]; INFINITY: it never ends.
 * -ENOMEM. */
int ft_times_play(const struct ft_times *t, const struct ft_policy_input *in,
                  const struct ft_placed *placed, const double *rate_bps, double *times_s,
                  double *step_s);

#endif
