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
};

/* One job: its rings now and when this agent began with it, and what was made of its records. over:
 * what the process began and did not end is unfinished, else it is pending. */
void ft_tally_job(struct ft_tally *job, const struct ft_rings_stats *now,
                  const struct ft_rings_stats *before, const struct ft_collectives_stats *made,
                  bool over);

/* Adds a job completely or, where a sum would pass 2^60, not at all. */
void ft_tally_add(struct ft_tally *sum, const struct ft_tally *job);

/* Fills in the stage "nccl". */
void ft_tally_account(const struct ft_tally *sum, struct ft_account *account);

#endif
