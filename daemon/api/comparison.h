// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_COMPARISON_H
#define FT_DAEMON_API_COMPARISON_H
/*
 * What other policies of routing would do to the traffic of the last window (lib/whatif/), worked
 * out in steps of some milliseconds: first the window is copied, flow by flow, then each policy is
 * tried. The topology is kept as it was at the start.
 *
 * One at a time. Who no longer needs it abandons it: it ends by itself after the draw in hand,
 * stepped by a timer of the loop. Capped: flows, collectives, queue pairs of a flow, and memory,
 * which may mean fewer flows, and fewer paths of a sprayed one. Thread: the loop's.
 */
#include <stdbool.h>
#include <stdint.h>

#include "daemon/api/view.h"
#include "lib/whatif/record.h"

#define FT_COMPARISON_FLOWS       16384u
#define FT_COMPARISON_COLLECTIVES 16384u
#define FT_COMPARISON_SEEDS       100u
#define FT_COMPARISON_PAIRS       8u
#define FT_COMPARISON_SPRAY       64u

struct ft_comparisons;

/* What is compared. */
struct ft_compared {
    uint32_t policies; /* a bit each; 0: all but hashes that are named */
    uint32_t seeds;    /* draws of policies by chance */
    uint32_t pairs;    /* queue pairs of a flow */
    uint32_t spray;    /* paths of a sprayed flow at most */
};

/* bytes_max: that one may take, about. NULL without memory. */
struct ft_comparisons *ft_comparisons_new(struct ft_loop *loop, size_t bytes_max);

/* Brings one that is in progress to its end first. Takes NULL. */
void ft_comparisons_free(struct ft_comparisons *c);

/* Begins one, whose records go to out during its steps. -EBUSY: one is in progress; -ENOMEM. */
int ft_comparison_begin(struct ft_comparisons *c, const struct ft_view *view,
                        const struct ft_compared *compared, const struct ft_whatif_out *out);

/* Memory that it takes at most, about. */
size_t ft_comparison_bytes(const struct ft_comparisons *c, const struct ft_view *view,
                           const struct ft_compared *compared);

/* 1: there is more; 0: that was all, and another one may begin; -errno likewise: a flow has no
 * path (-EHOSTUNREACH), -ENOMEM. */
int ft_comparison_step(struct ft_comparisons *c);

/* Nobody needs the rest. */
void ft_comparison_abandon(struct ft_comparisons *c);

#endif
