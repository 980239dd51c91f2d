// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOBS_RANKS_IMPL_H
#define FT_DAEMON_JOBS_RANKS_IMPL_H
/*
 * What the parts of daemon/jobs/ranks.h share: ranks_age.c forgets what has ended, ranks.c has the
 * rest. Private to them. Thread: one.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/jobs/ranks.h"
#include "lib/base/table.h"

/* A member that was not announced for this time is none any more: its host may be gone. */
#define FT_RANKS_SILENT_MS 120000

struct ft_ranks_member_key {
    char comm_id[FT_RANKS_ID];
    uint32_t rank;
};

struct ft_ranks_member_entry {
    struct ft_ranks_member_key key;
    int64_t heard_ms;
    struct ft_rank_member m;
};

struct ft_ranks_edge_key {
    char comm_id[FT_RANKS_ID];
    char op[FT_RANKS_ID];
    uint32_t src, dst;
};

struct ft_ranks_edge_entry {
    struct ft_ranks_edge_key key;
    int64_t heard_ms;
    struct ft_rank_edge e;
};

/* The pairs of ranks between two hosts, those of one process at the first or all. */
struct ft_ranks_hosts_key {
    char src[FT_RANKS_NAME];
    char dst[FT_RANKS_NAME];
    uint32_t src_pid; /* 0: all */
};

struct ft_ranks_hosts {
    struct ft_ranks_hosts_key key;
    int64_t heard_ms;
    int64_t more_ms; /* when there were more than can be named */
    uint32_t count;
    bool more;
    struct ft_ranks_member_key src[FT_RANKS_CANDIDATES_MAX];
    uint32_t dst[FT_RANKS_CANDIDATES_MAX];
};

/* A local queue pair, where NCCL names it. */
struct ft_ranks_qp_key {
    char host[FT_RANKS_NAME];
    uint32_t qp;
};

struct ft_ranks_qp {
    struct ft_ranks_qp_key key;
    int64_t heard_ms;
    struct ft_ranks_member_key src;
    uint32_t dst;
};

/* How a full table is searched for what has ended. */
struct ft_ranks_search {
    uint32_t hand, vain;
    int64_t rests_ms;
    bool rests;
};

/* What a sweep goes through, in this order. */
enum ft_ranks_phase {
    FT_RANKS_SILENT,
    FT_RANKS_EDGES,
    FT_RANKS_HOSTS,
    FT_RANKS_QPS,
    FT_RANKS_MEMBERS,
    FT_RANKS_PHASES
};

struct ft_ranks {
    struct ft_table *members, *edges, *hosts, *qps;
    struct ft_ranks_search search[FT_RANKS_PHASES]; /* for each table */
    int64_t now_ms, swept_ms;
    uint64_t contested;
    enum ft_ranks_phase phase;
    uint32_t index;
    bool sweeping;
};

static inline void ft_ranks_copy(char *to, size_t to_bytes, const char *from)
{
    snprintf(to, to_bytes, "%s", from ? from : "");
}

static inline struct ft_ranks_member_key ft_ranks_member_key(const char *comm_id, uint32_t rank)
{
    struct ft_ranks_member_key key;

    memset(&key, 0, sizeof(key));
    ft_ranks_copy(key.comm_id, sizeof(key.comm_id), comm_id);
    key.rank = rank;
    return key;
}

static inline const struct ft_rank_member *ft_ranks_find(const struct ft_ranks *r,
                                                         const struct ft_ranks_member_key *key)
{
    const struct ft_ranks_member_entry *m = ft_table_find(r->members, key);

    return m ? &m->m : NULL;
}

static inline bool ft_ranks_within(int64_t now_ms, int64_t then_ms, int64_t ms)
{
    return now_ms >= then_ms && now_ms - then_ms < ms;
}

/* As ft_table_insert(), but a full table first loses one that has ended, which it may take several
 * calls to find. Other entries may go. */
void *ft_ranks_insert(struct ft_ranks *ranks, enum ft_ranks_phase of, const void *key);

#endif
