// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_RECENT_IMPL_H
#define FT_DAEMON_DIAGNOSIS_RECENT_IMPL_H
/*
 * What the parts of recent.h share: the entries of its tables, and how a rank is forgotten. Owner:
 * recent.c. Thread: one.
 */
#include <stddef.h>

#include "daemon/diagnosis/functions.h"
#include "daemon/diagnosis/recent.h"
#include "lib/base/table.h"

struct ft_recent_rank_key {
    char comm_id[FT_RECENT_ID];
    uint32_t rank;
};

struct ft_recent_rank_entry {
    struct ft_recent_rank_key key;
    struct ft_recent_job *job;
    struct ft_recent_rank r;
};

struct ft_recent_process_key {
    char host[FT_RECENT_NAME];
    uint32_t pid;                   /* 0: not known */
    struct ft_recent_rank_key rank; /* of one that is not known */
};

struct ft_recent_process_entry {
    struct ft_recent_process_key key;
    struct ft_recent_process p;
};

struct ft_recent_job_entry {
    char name[FT_RECENT_NAME];
    struct ft_recent_job j;
};

/* Ageing, a job and a rank after the other. */
struct ft_recent_sweep {
    int64_t begun_ms, now_ms;
    bool on;
    uint32_t index;              /* of the job that follows */
    struct ft_recent_job *job;   /* NULL: none is begun */
    bool weighed;                /* gone_ms is known */
    int64_t gone_ms;             /* so long those that died are remembered */
    struct ft_recent_rank *at;   /* the next to look at; NULL: all were */
    bool kept[FT_FUNCTIONS_MAX]; /* functions that are in progress */
};

struct ft_recent {
    uint64_t delays_refused;
    struct ft_table *ranks, *processes, *jobs;
    struct ft_functions functions;
    size_t rows, rows_max;
    struct ft_recent_job *left; /* whose last rank left in order; each is named once */
    struct ft_recent_sweep sweep;
};

static inline struct ft_recent_rank_entry *ft_recent_entry(struct ft_recent_rank *rank)
{
    return (struct ft_recent_rank_entry *)(void *)((char *)rank -
                                                   offsetof(struct ft_recent_rank_entry, r));
}

/* Whether its process died. */
static inline bool ft_recent_is_gone(const struct ft_recent_rank *rank)
{
    return rank->progress.process == FABRICTRACE__PROCESS_STATE__PROCESS_STATE_GONE;
}

/* With all that is known of it. */
void ft_recent_forget(struct ft_recent *recent, struct ft_recent_rank *rank);

#endif
