// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_JOBS_TALLY_H
#define FT_AGENT_JOBS_TALLY_H
/*
 * What became of the events of jobs, for the account.
 *
 * Half of the counts are the jobs' own, in memory that they may write: whatever they say, the sums
 * neither wrap nor contradict each other. Plain values. Thread: one.
 */
#include <stdint.h>

#include "agent/jobs/collectives.h"
#include "agent/jobs/rings.h"
#include "lib/base/account.h"

struct ft_tally {
    uint64_t events, published, stray, lost, outside, pending, unfinished, capped;
    uint64_t drops[FT_DROPS];
    /* Transfers of operations: counted by the agent itself. */
    uint64_t transfers, listed, unlisted, no_room, over_limit;
};

/* What a job's own counters say since this agent began with it, as far as that can be. */
struct ft_tally_counts {
    uint64_t events, lost, outside;
    uint64_t drops[FT_DROPS];
    uint32_t odd; /* a bit for each counter that once said what cannot be */
};

/* Takes what the counters say that a process of this age can have counted; of the others what they
 * said before stays. Returns how many are odd for the first time. */
uint32_t ft_tally_believe(struct ft_tally_counts *counts, const struct ft_rings_stats *now,
                          const struct ft_rings_stats *before, uint64_t age_s);

/* One job: its counters, what else its rings say, and what was made of its records. over: what the
 * process began and did not end is unfinished, else it is pending. */
void ft_tally_job(struct ft_tally *job, const struct ft_tally_counts *counts,
                  const struct ft_rings_stats *now, const struct ft_collectives_stats *made,
                  bool over);

/* Adds a job completely or, where a sum would pass 2^60, not at all. */
void ft_tally_add(struct ft_tally *sum, const struct ft_tally *job);

/* Fills in the stages "nccl" and "nccl_transfers". */
void ft_tally_account(const struct ft_tally *sum, struct ft_account *account);

#endif
