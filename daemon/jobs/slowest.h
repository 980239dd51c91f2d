// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOBS_SLOWEST_H
#define FT_DAEMON_JOBS_SLOWEST_H
/*
 * For each collective the peer that its rank sends to slowest, and the link under that pair.
 *
 * Compared are the step times, for as many bytes, of pairs of ranks that ran the same operation
 * (same communicator, function, algorithm, protocol, and a size between the same powers of two)
 * within the last seconds: a rank in a ring
 * sends to one peer, so that only other ranks show what is usual. Steps of receiving count in no
 * pair: they wait for the sender. Medians are those of the agents, to within a fifth; a pair is
 * named when it takes twice the middle of at least two others, and half as much again as any of
 * them. Pure; time is that of the records. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/jobs/pair_links.h"
#include "daemon/jobs/ranks.h"

struct ft_slowest_config {
    size_t ranks_max;      /* when full, those before are forgotten */
    size_t operations_max; /* kinds of operation; when full, all are forgotten */
    uint64_t seed;         /* fixed in a replay */
};

/* A rank's last operation. */
struct ft_slowest_last {
    char op[FT_RANKS_ID]; /* "": not known */
    uint64_t time_ms;
    bool named; /* the rest is known */
    uint32_t peer;
    uint64_t step_median_ns;   /* of the steps to the peer, mean over its channels */
    uint64_t others_median_ns; /* the middle of the other pairs, for steps of as many bytes */
    bool has_link;
    struct ft_pair_link link;
};

struct ft_slowest;

/* NULL without memory. */
struct ft_slowest *ft_slowest_new(const struct ft_slowest_config *config);
void ft_slowest_free(struct ft_slowest *slowest);

/* Takes a collective that ft_ranks_collective() took, and judges it. NULL where there is no room to
 * remember its rank, and of a rest without an operation's name, which came after its operation was
 * reported: that stays the rank's last. Good until the next call. */
const struct ft_slowest_last *ft_slowest_take(struct ft_slowest *slowest,
                                              const Fabrictrace__Collective *c,
                                              const struct ft_pair_links *links);

/* NULL before a rank's first collective. */
const struct ft_slowest_last *ft_slowest_of(const struct ft_slowest *slowest, const char *comm_id,
                                            uint32_t rank);

/* How often all kinds of operation were forgotten. */
uint64_t ft_slowest_forgotten(const struct ft_slowest *slowest);

#endif
