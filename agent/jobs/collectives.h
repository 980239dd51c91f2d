// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_JOBS_COLLECTIVES_H
#define FT_AGENT_JOBS_COLLECTIVES_H
/*
 * Records of a process's rings in, one report for each collective or point-to-point operation out.
 *
 * An operation ends when nothing was heard of it for the hold time and nothing of it is in flight,
 * since NCCL says when it was enqueued, not when its last byte has gone. Above the limit of reports
 * a second, operations that differ only in their time go out as one. Every event of a record is in
 * exactly one report, or counted as stray; every transfer of an operation is in the list of its
 * report, or counted as left out. Pure: `now` is handed in. Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/nccl/segment.h"
#include "lib/base/clock.h"

struct ft_collectives_config {
    size_t ops_max;   /* in progress at a time */
    size_t peers_max; /* their (peer, channel) pairs, all together */
    uint64_t seed;
    int64_t hold_ns;
    uint32_t reports_per_s; /* one by one; beyond it like goes with like */
    /* Whether an operation has transfers in flight, by its communicator's index and its number;
     * called with the arg of emit. NULL: nothing is known of that. */
    bool (*in_flight)(void *arg, uint32_t comm, uint64_t number);
};

struct ft_collective_steps {
    uint64_t count, min_ns, max_ns;
    uint32_t buckets[FT_RECORD_BUCKETS];
};

struct ft_collective_peer {
    int32_t peer; /* rank */
    uint32_t channel;
    uint64_t transfers; /* that are added up here */
    uint64_t sent_bytes, received_bytes;
    uint64_t sent_messages, received_messages;
    struct ft_collective_steps steps;
    uint32_t qps[FT_RECORD_QPS]; /* local queue pairs, 0 ends the list */
};

/* Transfers that found no room in a list of peers. */
struct ft_collective_left_out {
    uint64_t transfers, sent_bytes, received_bytes;
};

struct ft_collective {
    uint32_t source; /* as given with its records */
    uint64_t comm_id;
    int32_t rank, ranks;
    bool has_op; /* false: its first record was lost; only the transfers are known */
    bool p2p, foreign, incomplete;
    struct ft_segment_op op;
    uint32_t comm;   /* index of its communicator */
    uint64_t number; /* of the operation in its communicator, of several the first; 0: not known */
    int64_t start_ns, end_ns;
    uint64_t operations, events;
    struct ft_collective_left_out left_out;
    struct ft_collective_peer *peers;
    size_t peer_count;
};

struct ft_collectives_stats {
    uint64_t records, reports, operations;
    uint64_t events_in, events_out, events_stray, events_pending;
    uint64_t events_capped; /* of operations beyond every cap: not reported */
    /* of operations that are known; no_room, capped: not reported */
    uint64_t transfers_in, transfers_out, transfers_pending, transfers_no_room, transfers_capped;
    uint64_t early; /* reported before their hold time: no room */
    uint64_t unknown;
};

struct ft_collectives;

/* emit is called from the functions below; the report lives until it returns. NULL without memory.
 */
struct ft_collectives *ft_collectives_new(const struct ft_collectives_config *config,
                                          void (*emit)(void *arg, const struct ft_collective *c),
                                          void *arg);
void ft_collectives_free(struct ft_collectives *c);

/* Takes a record of a source. Returns the events of it that no report will carry. */
uint64_t ft_collectives_record(struct ft_collectives *c, uint32_t source,
                               const struct ft_segment_record *record, struct ft_mono now);

/* Reports what has ended. */
void ft_collectives_tick(struct ft_collectives *c, struct ft_mono now);

/* Reports everything now. */
void ft_collectives_flush(struct ft_collectives *c, struct ft_mono now);

void ft_collectives_stats(const struct ft_collectives *c, struct ft_collectives_stats *stats);

/* Middle step time, to within a fifth; 0 without steps. */
int64_t ft_collective_median_ns(const struct ft_collective_steps *steps);

/* Bytes that one operation moves by NCCL's reckoning: count times the type's size, for AllGather,
 * ReduceScatter and AllToAll times the ranks. 0 when the type is not known. */
uint64_t ft_collective_bytes(const struct ft_collective *c);

#endif
