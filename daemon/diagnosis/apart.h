// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_APART_H
#define FT_DAEMON_DIAGNOSIS_APART_H
/*
 * By how much the clocks of a job's hosts are apart, as far as that matters to what is known up to
 * a moment: ranks leave a collective, and both ends a transfer, at about the same time. Of each two
 * ranks those of their newest operations count that they left closest to each other. Clocks that
 * differ by less than FT_APART_NS are taken to agree, as are those of which nothing is known. Pure.
 * Thread: one.
 */
#include "daemon/diagnosis/recent.h"

struct ft_task;

#define FT_APART_NS 100000000

/* Sets ahead_ns of the job's processes. Without memory all agree. The task may be NULL. */
void ft_apart_find(const struct ft_recent *recent, const struct ft_recent_job *job,
                   struct ft_task *task);

/* By how much the caller's clock is ahead of that which most hosts of the job agree on, where it is
 * by more than FT_LAG_MS: as their reports came in, so with what these take. 0 where nobody
 * reported how far it is, or without memory. After ft_apart_find. */
#define FT_LAG_MS 1000
int64_t ft_apart_lag_ms(const struct ft_recent_job *job, struct ft_task *task);

/* A time of a process by the clock that most of those connected with it agree on. */
static inline uint64_t ft_apart_at(const struct ft_recent_process *process, uint64_t ns)
{
    return ns == UINT64_MAX ? ns : ns - (uint64_t)process->ahead_ns;
}

/* Until when, by it, a process has reported its operations. */
static inline uint64_t ft_apart_reported(const struct ft_recent_process *process)
{
    return ft_apart_at(process, process->newest_ns);
}

#endif
