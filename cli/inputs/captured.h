// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_INPUTS_CAPTURED_H
#define FT_CLI_INPUTS_CAPTURED_H
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

#include "cli/args/args.h"
#include "cli/inputs/inputs.h"
#include "lib/fabric/paths.h"
#include "proto/record.h"

/* Why a flow of the window does not count. */
enum ft_left_out {
    FT_LEFT_UNRESOLVED, /* its path is not resolved, or not of this topology */
    FT_LEFT_SPRAYED,    /* it has several paths at once */
    FT_LEFT_HOST,       /* a NIC of it is not in the topology */
    FT_LEFT_SMALL,      /* under 0.1 % of its slowest link, or acknowledgements */
    FT_LEFT_OUTS
};

struct ft_captured_flow {
    struct ft_tuple tuple;
    double rate_bps; /* measured */
    uint64_t bytes;  /* in the window; 0: not known */
    bool limited;    /* by a full link */
    const Fabrictrace__Path *record;
};

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
    double *link_bps; /* by link: measured, mean since then; below 0: nothing was */
};

/* The records and the topology alone: what a window is of is not looked at. */
int ft_captured_read(const struct ft_args *args, const char *command, struct ft_captured *c);

/* From the daemon, or with --records from a file and --topology. The exit status: 0, or another
 * after complaints to standard error. free takes zeroed ones. */
int ft_captured_load(const struct ft_args *args, const char *command, struct ft_captured *c);
void ft_captured_free(struct ft_captured *c);

/* Adds a record that is taken, or freed where it is of no use here. -ENOMEM. */
int ft_captured_add_take(struct ft_captured *c, Fabrictrace__Record *record);

/* Once all records are there, and the topology: the newest window of them. -ENODATA: no flow
 * counts; -ENOMEM. */
int ft_captured_build(struct ft_captured *c);

/* "12 flows do not count: 3 unresolved, ..."; nothing where all do. */
void ft_captured_print_left_out(const struct ft_captured *c, FILE *out);

#endif
