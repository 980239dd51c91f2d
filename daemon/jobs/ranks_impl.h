// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOBS_RANKS_IMPL_H
#define FT_DAEMON_JOBS_RANKS_IMPL_H
/*
 * What the parts of daemon/jobs/ranks.h share: ranks_reports.c takes what ranks report of their
 * operations, ranks_room.c knows what has ended, finds room and divides it among hosts, ranks_age.c
 * forgets what has ended, ranks.c has the rest. Private to them. Thread: one.
 */
#include <stddef.h>
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
    uint32_t owner; /* index of the host that brought it, of each kind of entry */
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
    uint32_t owner;
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
    uint32_t owner;
    int64_t heard_ms;
    int64_t more_ms; /* when there were more than can be named */
    uint32_t count;
    bool more;
    struct ft_ranks_member_key src[FT_RANKS_CANDIDATES_MAX];
    uint32_t dst[FT_RANKS_CANDIDATES_MAX];
};

/* A local queue pair, where NCCL names it: by its number, which each device of a host counts for
 * itself. Where two pairs of ranks have one number, it is that of the first, and when another one
 * used it is known. */
struct ft_ranks_qp_key {
    char host[FT_RANKS_NAME];
    uint32_t qp;
};

struct ft_ranks_qp {
    struct ft_ranks_qp_key key;
    uint32_t owner;
    int64_t heard_ms;
    struct ft_ranks_member_key src;
    uint32_t dst;
    bool several, others;          /* of its process, and of others */
    int64_t several_ms, others_ms; /* when one of them used it last */
};

/* What a rank sent and received before it was announced: it is added up once that comes, since the
 * two may overtake each other on their way, and a daemon that is started anew waits for it. */
#define FT_RANKS_WAITING_EDGES 16
struct ft_ranks_waiting_key {
    struct ft_ranks_member_key rank;
    char host[FT_RANKS_NAME];
    uint32_t pid;
};

struct ft_ranks_waiting {
    struct ft_ranks_waiting_key key;
    uint32_t owner;
    uint32_t count;
    int64_t since_ms;
    uint64_t records;
    struct ft_rank_edge edges[FT_RANKS_WAITING_EDGES]; /* comm_id is not set */
};

/* How a full table is searched for what may go. */
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
    FT_RANKS_WAITING,
    FT_RANKS_PHASES
};

/* A host that has entries, and how many. */
struct ft_ranks_owner {
    char host[FT_RANKS_NAME];
    uint32_t held[FT_RANKS_PHASES];
};

struct ft_ranks {
    struct ft_table *members, *edges, *hosts, *qps, *waiting, *owners;
    size_t caps[FT_RANKS_PHASES];
    /* For each table: of those that have their share, and of those that have less. */
    struct ft_ranks_search search[FT_RANKS_PHASES][2];
    int64_t now_ms, swept_ms;
    uint64_t contested, unannounced, displaced;
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

static inline struct ft_ranks_hosts_key ft_ranks_hosts_key(const char *src, const char *dst,
                                                           uint32_t src_pid)
{
    struct ft_ranks_hosts_key key;

    memset(&key, 0, sizeof(key));
    ft_ranks_copy(key.src, sizeof(key.src), src);
    ft_ranks_copy(key.dst, sizeof(key.dst), dst);
    key.src_pid = src_pid;
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

/* Whether a member is this process. Names of hosts are cut where they are kept. */
static inline bool ft_ranks_is_process(const struct ft_rank_member *m, const char *host,
                                       uint32_t pid)
{
    return m->pid == pid && strncmp(m->host, host, sizeof(m->host) - 1) == 0;
}

/* Whether the rank is another process than this one: it has not left, and was heard of. */
static inline bool ft_ranks_is_anothers(const struct ft_ranks *r,
                                        const struct ft_ranks_member_entry *m, const char *host,
                                        uint32_t pid)
{
    return m && !m->m.closed && ft_ranks_within(r->now_ms, m->heard_ms, FT_RANKS_SILENT_MS) &&
           !ft_ranks_is_process(&m->m, host, pid);
}

struct ft_table *ft_ranks_table(const struct ft_ranks *ranks, enum ft_ranks_phase of);

/* The entry of a key, made when there is none. A full table first loses one that has ended, or,
 * where this host has less than its share of it, one of a host that has more; it may take several
 * calls to find. NULL: no room. Other entries may go. */
void *ft_ranks_insert(struct ft_ranks *ranks, enum ft_ranks_phase of, const void *key,
                      const char *host);
void ft_ranks_remove(struct ft_ranks *ranks, enum ft_ranks_phase of, void *entry);

/* Whether what an entry is of has ended. */
bool ft_ranks_is_over(const struct ft_ranks *ranks, enum ft_ranks_phase of, const void *entry);

/* Adds what a rank reported before it was announced. */
void ft_ranks_add_waiting(struct ft_ranks *ranks, const struct ft_ranks_member_key *rank,
                          const char *host, uint32_t pid);

#endif
