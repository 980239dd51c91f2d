// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_RECENT_H
#define FT_DAEMON_DIAGNOSIS_RECENT_H
/*
 * What the ranks of each job did recently: the operations that ended, the one that is in progress,
 * and the state of its process.
 *
 * Host and process of a report are its agent's word; names, ranks and numbers are the process's,
 * which may lie. So a job is what is connected: the communicators of one process, and the processes
 * of one communicator, as far as they name the same job. Another job of the same name is another
 * one. A rank belongs to the process that was first to report it until that ends, leaves or is
 * silent, and a communicator has as many ranks as was said first: what others say of them is
 * counted, and ignored.
 *
 * A rank's operations are kept in a ring that grows while there is room for more rows in all, and
 * forgets the oldest when there is none; so does what its network steps take (delays.h). Ranks that
 * nobody spoke of for two minutes are forgotten; one whose process died is not for an hour, as long
 * as the job has others that may wait for it. Times within one process are by one clock, and
 * comparable to the nanosecond; those of different hosts as far as their clocks agree. Owner: the
 * caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/diagnosis/delays.h"
#include "proto/fabrictrace.pb-c.h"

#define FT_RECENT_NAME 64
#define FT_RECENT_ID   17
/* Memory of a row, and of a rank without its rows. */
#define FT_RECENT_ROW_BYTES  64
#define FT_RECENT_RANK_BYTES 1152
#define FT_RECENT_NO_PEER    UINT32_MAX

struct ft_recent_config {
    size_t ranks_max; /* members of communicators */
    size_t rows_max;  /* operations of them all */
    uint64_t seed;
};

/* An operation that ended. */
struct ft_recent_row {
    uint64_t start_ns, end_ns;
    uint64_t number;   /* as its rank began them, over all functions; 0: not reported */
    uint64_t sequence; /* of NCCL; of Send and Recv between these ranks as they were reported */
    uint64_t bytes;
    uint32_t peer;     /* of Send and Recv; NO_PEER */
    uint16_t function; /* ft_recent_function() */
    bool launched;     /* nothing of it was in the network: when it ended is not known */
};

#define FT_RECENT_TRANSFERS 8
struct ft_recent_transfer {
    Fabrictrace__TransferState state;
    uint32_t peer, channel, steps_done, steps;
    uint64_t since_ms;
    bool sends;
    bool current; /* of the operation in progress */
};

/* Where a rank stands, by its last report. Its times, that of the row excepted, are the caller's:
 * so long before it was heard as they are before the report's own, whatever its agent's clock. */
struct ft_recent_progress {
    int64_t heard_ms;                    /* 0: never */
    uint64_t moved_ms, process_since_ms; /* 0: not reported */
    int64_t since_ms;                    /* the operation in progress was begun */
    uint64_t begun, finished;            /* numbers */
    bool standing;
    Fabrictrace__ProcessState process;
    Fabrictrace__OperationState state;
    bool in_flight; /* what follows is of an operation in progress */
    struct ft_recent_row row;
    struct ft_recent_transfer transfers[FT_RECENT_TRANSFERS]; /* in progress, the oldest */
    uint32_t transfer_count;
    bool has_kernels;
    uint32_t kernels_open;
};

/* Operations with a peer, which NCCL does not number. */
#define FT_RECENT_PEERS 8
struct ft_recent_peer {
    uint32_t peer;
    uint64_t sent, received;
    uint64_t seen, unseen; /* numbers of the last with transfers, and without */
};

struct ft_recent_process;
struct ft_recent_job;

/* A rank of a communicator. */
struct ft_recent_rank {
    char comm_id[FT_RECENT_ID];
    uint32_t rank, ranks;
    int64_t heard_ms, folded_ms; /* folded: some operations came in sums; 0: never */
    struct ft_recent_process *process;
    struct ft_recent_row *rows;
    size_t size, count, first; /* of the ring; first: the oldest */
    struct ft_recent_peer peers[FT_RECENT_PEERS];
    uint32_t peer_count;
    uint64_t first_number, last_number, numbers; /* of all that was reported, and how many */
    struct ft_recent_progress progress;
    bool wrapped;                         /* older rows were forgotten */
    struct ft_delays delays;              /* of its steps to its peers */
    struct ft_recent_rank *next, *before; /* of the job, in the order of their coming */
};

/* A process: what all of its ranks share. One that is not known has one of them: whether another
 * rank is the same process, nobody knows. */
struct ft_recent_process {
    char host[FT_RECENT_NAME];
    uint32_t pid;   /* 0: not known */
    uint32_t ranks; /* that refer to it */
    bool offset_known;
    int64_t offset_ns;  /* Unix time less the host's monotonic clock */
    int64_t set_ns;     /* by so much the host's clock was set since then */
    uint64_t newest_ns; /* up to which it has reported its operations */
    uint64_t sent_ns;   /* end of the newest one with transfers */
    int64_t heard_ms;
    bool lag_known;
    int64_t lag_ms;         /* the caller's time less its own, when it last said how far it is */
    uint32_t number, index; /* the callers' */
    int64_t ahead_ns;       /* its host's clock; apart.h */
    /* Steps to, or from, some of its peers are as fast as others' (delays.h). */
    bool sends_well, receives_well;
};

struct ft_recent_job {
    char name[FT_RECENT_NAME]; /* or a communicator's id, where no job is known */
    bool named;
    uint32_t number; /* of all that ever were: several may have one name */
    struct ft_recent_rank *first, *last;
    size_t ranks, rows;
    uint64_t fresh;            /* rows that came since the caller set it to 0 */
    int64_t due_ms, looked_ms; /* the caller's */
    bool has_left;             /* its last rank left in order, or is of another job */
    struct ft_recent_job *next_left;
    /* The pair that was named last for a link that makes it stall (stalled.h). */
    struct {
        char comm_id[FT_RECENT_ID];
        uint32_t from, to;
    } stalled;
};

struct ft_recent;

/* NULL without memory. */
struct ft_recent *ft_recent_new(const struct ft_recent_config *config);
void ft_recent_free(struct ft_recent *recent);

/* Takes an operation that ended. -EINVAL: not one of a rank; -ENOSPC: no room for the rank;
 * -EEXIST: the rank is another process's, or its communicator has not so many. */
int ft_recent_collective(struct ft_recent *recent, const Fabrictrace__Collective *c,
                         int64_t now_ms);

/* The same of how far a rank is. */
int ft_recent_progress(struct ft_recent *recent, const Fabrictrace__Progress *p, int64_t now_ms);

/* A process left a communicator in order: it has left from now on. One that is gone without
 * that stays: others may wait for it. */
void ft_recent_leave(struct ft_recent *recent, const char *comm_id, uint32_t rank, const char *host,
                     uint32_t pid);

/* Forgets what nobody spoke of for long; over() is called for a job that has no ranks left. Looks
 * at so many ranks, and at none unless it is time to; true: there is more. */
bool ft_recent_age(struct ft_recent *recent, int64_t now_ms, uint64_t work,
                   void (*over)(void *arg, const struct ft_recent_job *job), void *arg);

/* An agent repeats where a rank stands every few seconds, and says when it continues. Of a rank of
 * which it did neither, though its process was heard since then, nothing is known: what was said
 * was lost. */
void ft_recent_doubt(struct ft_recent *recent, const struct ft_recent_job *job);

/* Iterates from *index 0 on; NULL at the end. */
struct ft_recent_job *ft_recent_next(const struct ft_recent *recent, uint32_t *index);

/* NULL: not known. */
struct ft_recent_rank *ft_recent_find(const struct ft_recent *recent, const char *comm_id,
                                      uint32_t rank);

/* The i-th row of a rank, from the oldest on. */
static inline const struct ft_recent_row *ft_recent_row(const struct ft_recent_rank *rank, size_t i)
{
    return &rank->rows[(rank->first + i) % rank->size];
}

const char *ft_recent_function(const struct ft_recent *recent, uint16_t function);

size_t ft_recent_ranks(const struct ft_recent *recent);
/* Delays per byte of a pair in an operation that found no room, so that the pair is not compared.
 */
uint64_t ft_recent_delays_refused(const struct ft_recent *recent);
/* Records of which the rank, or the name of the function, found no room. */
uint64_t ft_recent_refused(const struct ft_recent *recent);
/* Reports of where ranks stand that were neither repeated nor followed by another. */
uint64_t ft_recent_outdated(const struct ft_recent *recent);
/* Records of ranks that other processes are, or that their communicators do not have. */
uint64_t ft_recent_contested(const struct ft_recent *recent);

#endif
