// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_RECENT_IMPL_H
#define FT_DAEMON_DIAGNOSIS_RECENT_IMPL_H
/*
 * What the parts of recent.h share: the entries of its tables, which ranks are of one job
 * (recent_jobs.c), and how a rank is forgotten (recent_age.c). Owner: recent.c. Thread: one.
 */
#include <stddef.h>

#include "daemon/diagnosis/functions.h"
#include "daemon/diagnosis/recent.h"
#include "lib/base/table.h"

/* Of a rank that nobody spoke of for so long nothing is known. */
#define FT_RECENT_SILENT_MS 120000

struct ft_recent_rank_key {
    char comm_id[FT_RECENT_ID];
    uint32_t rank;
};

/* A communicator of a job's name: who is in it is of one job. */
struct ft_recent_comm_key {
    char comm_id[FT_RECENT_ID];
    char name[FT_RECENT_NAME];
};

struct ft_recent_comm_entry {
    struct ft_recent_comm_key key;
    uint32_t ranks; /* that it has, as was said first; 0: not yet */
    uint32_t members;
    struct ft_recent_job *job;
};

/* What a process is in is of one job, too; and so is what processes of a host are in that are not
 * known. */
struct ft_recent_link_key {
    char host[FT_RECENT_NAME];
    char name[FT_RECENT_NAME];
    uint32_t pid; /* 0: not known */
};

struct ft_recent_link_entry {
    struct ft_recent_link_key key;
    uint32_t members;
    struct ft_recent_job *job;
};

struct ft_recent_rank_entry {
    struct ft_recent_rank_key key;
    struct ft_recent_job *job;
    struct ft_recent_comm_entry *comm;
    struct ft_recent_link_entry *link;
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

struct ft_recent_job_key {
    char name[FT_RECENT_NAME];
    uint32_t number;
};

struct ft_recent_job_entry {
    struct ft_recent_job_key key;
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
    uint64_t refused, contested, outdated;
    uint32_t jobs_made;
    struct ft_table *ranks, *processes, *jobs, *comms, *links;
    struct ft_functions functions;
    size_t rows, rows_max;
    struct ft_recent_job *left; /* whose last rank left, or went to another; each is named once */
    struct ft_recent_sweep sweep;
};

static inline struct ft_recent_rank_entry *ft_recent_entry(struct ft_recent_rank *rank)
{
    return (struct ft_recent_rank_entry *)(void *)((char *)rank -
                                                   offsetof(struct ft_recent_rank_entry, r));
}

/* Whether two that say how many ranks a communicator has say the same; 0: says nothing. */
static inline bool ft_recent_agree(uint32_t a, uint32_t b)
{
    return a == 0 || b == 0 || a == b;
}

/* Whether its process died. */
static inline bool ft_recent_is_gone(const struct ft_recent_rank *rank)
{
    return rank->progress.process == FABRICTRACE__PROCESS_STATE__PROCESS_STATE_GONE;
}

/* What a record says of a rank. job may be NULL, or empty. */
struct ft_recent_claim {
    const char *job, *comm_id, *host;
    uint32_t pid, rank, ranks;
};

/* Puts a new rank into its job, which may make one of two. -ENOSPC; -EEXIST: its communicator has
 * another number of ranks. Either is counted. */
int ft_recent_join(struct ft_recent *recent, struct ft_recent_rank_entry *e,
                   const struct ft_recent_claim *claim);
/* Takes it out again. */
void ft_recent_part(struct ft_recent *recent, struct ft_recent_rank_entry *e);
/* A job without ranks is over with the next step of ageing. */
void ft_recent_leave_job(struct ft_recent *recent, struct ft_recent_job *job);

/* With all that is known of it. */
void ft_recent_forget(struct ft_recent *recent, struct ft_recent_rank *rank);

#endif
