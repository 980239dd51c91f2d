// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_MATCHED_H
#define FT_DIAGNOSIS_MATCHED_H
/*
 * Which rows of a table of operations are of the same operation: a group for each collective, a
 * pair for each send and its receive; and how long a rank was in no operation at all.
 *
 * Collectives are matched by their sequence number: of the communicator, or of the function where a
 * rank uses a number for two functions; where most numbers have no counterpart at other ranks, by
 * their order. Sends and receives are matched by number where both sides have the same ones, else
 * by their order; where one side's rows begin earlier than the other's, as when they end together.
 * Pure. Owner: the caller; the operations must outlive it. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/diagnosis/operations.h"

/* Rows of one collective: order[first] up to order[first + count], by process, each once. */
struct ft_gathering {
    uint64_t start_ns; /* of the first that entered */
    uint64_t sequence;
    size_t first, count;
    size_t unfinished;
    uint32_t comm;
};

/* A send and its receive; NONE for the one that has no row. */
struct ft_pair {
    uint32_t send, recv; /* rows */
    uint32_t from, to;   /* processes */
    uint32_t comm;
};

/* A process in the collectives of a communicator. */
struct ft_member {
    uint32_t comm, process;
    size_t groups;
};

struct ft_matched {
    struct ft_task *task; /* of the operations */
    const struct ft_operations *ops;
    const struct ft_operation *op;
    const struct ft_actor *process;
    const size_t *first; /* rows of each process */
    size_t op_count, process_count, comm_count;
    struct ft_gathering *groups; /* by communicator and time */
    size_t group_count;
    size_t *comm_groups; /* groups of a communicator: from [comm] up to [comm + 1] */
    uint32_t *order;
    struct ft_pair *pairs; /* by communicator, from, to and order */
    size_t pair_count;
    struct ft_member *members; /* by communicator and process */
    size_t *comm_members;      /* from [comm] up to [comm + 1] */
    uint32_t *group_of;        /* of a row, NONE */
    uint32_t *pair_of;         /* of a row, NONE */
    uint64_t *own_ns; /* of a row: time in no operation until it started, from the first on */
    uint8_t *kinds;   /* enum ft_operation_kind of each function */
};

/* NULL without memory. */
struct ft_matched *ft_matched_new(const struct ft_operations *ops);
void ft_matched_free(struct ft_matched *m);

static inline size_t ft_matched_size(const struct ft_matched *m, uint32_t comm)
{
    return m->comm_members[comm + 1] - m->comm_members[comm];
}

/* Whether two sends are of the same ranks in the same communicator. */
static inline bool ft_pair_same(const struct ft_pair *a, const struct ft_pair *b)
{
    return a->comm == b->comm && a->from == b->from && a->to == b->to;
}

/* The row of a process in a group, NONE without. */
uint32_t ft_matched_row(const struct ft_matched *m, const struct ft_gathering *group,
                        uint32_t process);

/* The index of a process among a communicator's members, from 0; NONE: not a member. */
uint32_t ft_matched_position(const struct ft_matched *m, uint32_t comm, uint32_t process);

#endif
