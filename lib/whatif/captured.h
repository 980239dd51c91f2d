// SPDX-License-Identifier: Apache-2.0
#ifndef FT_WHATIF_CAPTURED_H
#define FT_WHATIF_CAPTURED_H
/*
 * Traffic as it was captured: the flows of a window with their paths, rates and ranks, the loads of
 * links, imbalance and collectives, from a daemon or from the records that it wrote.
 *
 * A flow counts where its path is resolved, both its NICs are in the topology and it carries at
 * least 0.1 % of its slowest link; the others are counted by why they do not. The demand of a flow
 * is not seen: where a link of its path is full (90 %) its demand is as much as its NIC can send,
 * else what it was measured to have. Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/fabric/paths.h"
#include "lib/whatif/inputs.h"
#include "proto/record.h"

/* Why a flow of the window does not count. */
enum ft_left_out {
    FT_LEFT_UNRESOLVED, /* its path is not resolved, or not of this topology */
    FT_LEFT_SPRAYED,    /* it has several paths at once */
    FT_LEFT_ROUTED,     /* its address bears its path: no routing changes it */
    FT_LEFT_HOST,       /* a NIC of it is not in the topology */
    FT_LEFT_SMALL,      /* under 0.1 % of its slowest link, or acknowledgements */
    FT_LEFT_BEYOND,     /* there are more than are computed with */
    FT_LEFT_OUTS
};

struct ft_captured_flow {
    struct ft_tuple tuple;
    double rate_bps; /* measured */
    uint64_t bytes;  /* in the window; 0: not known */
    bool limited;    /* by a full link */
    const Fabrictrace__Path *record;
};

struct ft_task;

struct ft_captured {
    Fabrictrace__Record **records; /* of the kinds used here */
    uint32_t record_count;
    size_t record_size;
    uint64_t window_start_ms, window_end_ms;
    uint64_t slack_ms;       /* rates of flows are of windows that ended so long before at most */
    uint64_t since_ms;       /* the oldest window that a flow's rate is of */
    struct ft_inputs inputs; /* topology; flows by their demand */
    struct ft_captured_flow *flows;
    struct ft_path *paths;
    uint32_t left_out[FT_LEFT_OUTS];
    uint32_t offered;     /* that ft_captured_counts() let pass */
    double *link_bps;     /* by link: measured, mean since then; below 0: nothing was */
    struct ft_task *task; /* pauses what is done with it; NULL: nobody waits */
};

/* Takes zeroed ones. */
void ft_captured_free(struct ft_captured *c);

/* Whether the flow of a path would count, for who keeps no others; at most so many do. Where it
 * does not, the reason is counted. The topology must be there, and no flow be asked for twice. */
bool ft_captured_counts(struct ft_captured *c, const Fabrictrace__Path *path, uint32_t most);

/* Adds a record that is taken, or freed where it is of no use here. -ENOMEM. */
int ft_captured_add_take(struct ft_captured *c, Fabrictrace__Record *record);

/* Once all records are there, and the topology: the newest window of them. -ENODATA: no flow
 * counts; -ENOMEM. */
int ft_captured_build(struct ft_captured *c);

/* "12 flows do not count: 3 unresolved, ..."; nothing where all do. */
void ft_captured_print_left_out(const struct ft_captured *c, FILE *out);

#endif
