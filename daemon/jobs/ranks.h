// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOBS_RANKS_H
#define FT_DAEMON_JOBS_RANKS_H
/*
 * Who is who in the training jobs: communicators, their ranks and where they run, and what each
 * rank sent each other.
 *
 * A flow knows hosts, a collective knows ranks; the process and its host join them. NCCL names no
 * remote queue pair, so a flow between two hosts may serve several pairs of ranks: then all of them
 * are candidates, and none is said to be it.
 *
 * A rank is the process that was the first to say so, until it left or was silent: what another
 * one says of it, or reports as it, is counted and not taken, as in a diagnosis
 * (daemon/diagnosis/recent.h). What is reported of a rank before that process announced it waits
 * for a minute, in a table of its own, and is not taken where nobody does. In a full table a host
 * that has less than its share takes room from one that has more.
 *
 * Communicators come and go for ever: a member that closed, or was not announced for two minutes,
 * serves no flow, is shown for another hour, and is replaced by others where the tables are
 * full. Times are the caller's Unix milliseconds. Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/fabrictrace.pb-c.h"

#define FT_RANKS_CANDIDATES_MAX 8
#define FT_RANKS_NAME           64
#define FT_RANKS_ID             17 /* a communicator's id as text */

struct ft_ranks_config {
    size_t members_max;
    size_t edges_max; /* (communicator, operation, rank, rank) */
    uint64_t seed;    /* fixed in a replay */
};

/* What a progress record said last of a rank. */
struct ft_rank_progress {
    int64_t time_ms; /* 0: there was none */
    Fabrictrace__ProcessState process;
    Fabrictrace__OperationState state;
    Fabrictrace__TransferState transfer; /* of the one that waits longest */
    bool standing, has_transfer, transfer_send;
    uint32_t transfer_peer;
    uint64_t begun, finished, number; /* 0: not known */
    int64_t start_ms, transfer_since_ms;
    char op[FT_RANKS_ID];
};

struct ft_rank_member {
    char comm_id[FT_RANKS_ID];
    uint32_t rank;
    uint32_t ranks;
    uint32_t pid; /* 0: not known */
    bool closed;
    /* Of its operations: what its agent's reports had no room for, and no edge has. */
    uint64_t transfers_dropped, bytes_dropped;
    char host[FT_RANKS_NAME], job[FT_RANKS_NAME], gpu[FT_RANKS_ID], name[FT_RANKS_NAME];
    struct ft_rank_progress progress;
};

/* expected_bytes: by the algorithm's formula, see ft_ranks_expected(). */
struct ft_rank_edge {
    char comm_id[FT_RANKS_ID];
    char op[FT_RANKS_ID];
    uint32_t src, dst;
    uint64_t sent_bytes, received_bytes;
    uint64_t sent_messages, received_messages;
    double expected_bytes;
    uint64_t step_median_ns, step_max_ns; /* the sender's, of its last report */
    int64_t last_ms;
};

struct ft_rank_pair {
    const char *comm_id; /* until the next record */
    const char *job;     /* NULL: not known */
    uint32_t src, dst;
};

/* What is known of a flow's ends; texts may be NULL. */
struct ft_rank_query {
    const char *src_host, *dst_host;
    uint32_t src_pid; /* 0: not known */
    uint32_t src_qp;  /* UINT32_MAX: not known */
};

struct ft_ranks;

/* NULL without memory. */
struct ft_ranks *ft_ranks_new(const struct ft_ranks_config *config);
void ft_ranks_free(struct ft_ranks *ranks);

/* Both take a record. -EEXIST when another process is that rank, or its communicator has no such;
 * -ENOENT when nobody announced it yet; -EINVAL when a needed field is missing or cannot be, or
 * there are more peers than agents list, -ENOSPC when a table is full: what found room is kept. */
int ft_ranks_communicator(struct ft_ranks *ranks, const Fabrictrace__Communicator *c);
int ft_ranks_collective(struct ft_ranks *ranks, const Fabrictrace__Collective *c);

/* Keeps how far a member is; of one that is not known, or of another process, nothing. */
void ft_ranks_progress(struct ft_ranks *ranks, const Fabrictrace__Progress *progress);

/* Says the time of the records that come now. */
void ft_ranks_at(struct ft_ranks *ranks, int64_t now_ms);

/* Says the time, and forgets what has ended when it is time to, at most `items` of work: true,
 * there is more. Whatever an iteration or a match gave may be gone then. */
bool ft_ranks_age(struct ft_ranks *ranks, int64_t now_ms, uint32_t items);

/* The pairs of ranks that a flow may serve, at most FT_RANKS_CANDIDATES_MAX of them; *more when
 * there may be others: those of a process that is not known, be it the flow's or the rank's, are
 * not all of it, since it may have no plugin. Exactly one and not *more: it is certain. */
size_t ft_ranks_match(const struct ft_ranks *ranks, const struct ft_rank_query *query,
                      struct ft_rank_pair pairs[FT_RANKS_CANDIDATES_MAX], bool *more);

/* Bytes that a rank sends to one peer over one of its channels, by the algorithm; -1 when there is
 * no formula. With N bytes of the operation (for AllGather and ReduceScatter over all ranks) and n
 * ranks: AllReduce ring 2N(n-1)/n, tree N; AllGather and ReduceScatter ring N(n-1)/n; Broadcast and
 * Reduce ring N; each divided by the channels. AlltoAll N/n and Send N, over the channels in use.
 */
double ft_ranks_expected(const char *op, const char *algo, double bytes, double ranks,
                         double channels, double channels_used);

/* NULL: not known. */
const struct ft_rank_member *ft_ranks_member(const struct ft_ranks *ranks, const char *comm_id,
                                             uint32_t rank);

/* Iterate from *index (start at 0); NULL at the end. */
const struct ft_rank_member *ft_ranks_next_member(const struct ft_ranks *ranks, uint32_t *index);
const struct ft_rank_edge *ft_ranks_next_edge(const struct ft_ranks *ranks, uint32_t *index);

/* That at an index, which is one less than what a step of the iteration left; NULL: none. */
const struct ft_rank_member *ft_ranks_member_at(const struct ft_ranks *ranks, uint32_t index);
const struct ft_rank_edge *ft_ranks_edge_at(const struct ft_ranks *ranks, uint32_t index);
size_t ft_ranks_members(const struct ft_ranks *ranks);
size_t ft_ranks_edges(const struct ft_ranks *ranks);

/* Records of ranks that other processes are, or that their communicators do not have. */
uint64_t ft_ranks_contested(const struct ft_ranks *ranks);
/* Records of operations of ranks that nobody announced, or which found no room until then. */
uint64_t ft_ranks_unannounced(const struct ft_ranks *ranks);
/* Entries of hosts that had more than their share of a full table. */
uint64_t ft_ranks_displaced(const struct ft_ranks *ranks);

#endif
