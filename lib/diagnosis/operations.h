// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_OPERATIONS_H
#define FT_DIAGNOSIS_OPERATIONS_H
/*
 * A table of operations: what each rank of a job called in which communicator, from when to when.
 *
 * Filled row by row, then finished once: that resolves peers and finds which rows are of the same
 * process. Where a rank's number is on one host throughout, ranks are numbered over all of the job,
 * and a process is known by its rank; else each communicator numbers its own, and so are they
 * known. Pure. Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ft_task;

#define FT_OPERATIONS_NONE       UINT32_MAX
#define FT_OPERATIONS_NEVER      UINT64_MAX /* end_ns of an operation that did not end */
#define FT_OPERATIONS_NAME_BYTES 128
#define FT_OPERATIONS_MAX        (64U << 20)

enum ft_operation_kind {
    FT_OPERATION_TOGETHER, /* no rank can leave before all have entered: AllReduce, Barrier ... */
    FT_OPERATION_ROOTED,   /* one root: Broadcast, Reduce ... */
    FT_OPERATION_SEND,
    FT_OPERATION_RECV,
};

struct ft_operation {
    uint64_t start_ns, end_ns;
    uint64_t sequence, bytes;
    uint32_t process;  /* of its rank and host; a member until the table is finished */
    uint32_t peer;     /* process at the other end, of Send and Recv; NONE: not known */
    uint32_t comm;     /* index of its communicator's name */
    uint32_t function; /* index of its function's name */
};

struct ft_actor {
    uint32_t rank;
    uint32_t host; /* index of its host's name */
};

/* One row, as it was read; texts are borrowed. */
struct ft_operation_row {
    const char *host, *comm, *function;
    uint32_t rank;
    uint32_t peer; /* NONE: not given */
    uint64_t sequence, bytes, start_ns, end_ns;
};

struct ft_operations;

struct ft_operations *ft_operations_new(void);
void ft_operations_free(struct ft_operations *ops);

/* What is done with the table from here on counts its work for this task, which pauses it
 * (lib/base/task.h); NULL, as at first: it is done in one go. */
void ft_operations_pace(struct ft_operations *ops, struct ft_task *task);
struct ft_task *ft_operations_task(const struct ft_operations *ops);

/* -EINVAL: the rank is on another host in the same communicator; -EOVERFLOW: more rows or names
 * than there is room for; -ENAMETOOLONG; -ENOMEM. */
int ft_operations_add(struct ft_operations *ops, const struct ft_operation_row *row);

/* No row can be added after it. Rows are then in the order of process and start. -ENOMEM. */
int ft_operations_finish(struct ft_operations *ops);

/* Says how many ranks a communicator in the table has, and of how many anything is known, though
 * they may have no row; 0 ranks: nobody knows. Of a name that is in no row nothing is kept. */
void ft_operations_say_members(struct ft_operations *ops, const char *comm, uint32_t ranks,
                               uint32_t known);
/* Ranks of a communicator, 0 where they are not more than those of which anything is known; *known:
 * how many those are. */
uint32_t ft_operations_ranks(const struct ft_operations *ops, uint32_t comm, uint32_t *known);

/* Of a finished table. */
const struct ft_operation *ft_operations_at(const struct ft_operations *ops, size_t *count);
const struct ft_actor *ft_operations_processes(const struct ft_operations *ops, size_t *count);
size_t ft_operations_comms(const struct ft_operations *ops);
size_t ft_operations_functions(const struct ft_operations *ops);

/* Rows of a process are those from first[process] up to first[process + 1]. */
const size_t *ft_operations_first(const struct ft_operations *ops);

/* The newest time of any row, 0 without. */
uint64_t ft_operations_newest_ns(const struct ft_operations *ops);

const char *ft_operations_comm(const struct ft_operations *ops, uint32_t comm);
const char *ft_operations_function(const struct ft_operations *ops, uint32_t function);
const char *ft_operations_host(const struct ft_operations *ops, uint32_t host);
enum ft_operation_kind ft_operations_kind(const struct ft_operations *ops, uint32_t function);

/* Whether ranks may well give different numbers of bytes to one operation of this function. */
bool ft_operations_uneven(const struct ft_operations *ops, uint32_t function);

#endif
