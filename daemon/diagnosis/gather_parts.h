// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_GATHER_PARTS_H
#define FT_DAEMON_DIAGNOSIS_GATHER_PARTS_H
/*
 * What the parts of gather.h share: gather.c chooses operations, gather_rows.c puts them into the
 * table. Private to them. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/diagnosis/apart.h"
#include "daemon/diagnosis/gather.h"

/* A rank of the job, its communicator's index, and which of its rows are looked at. */
struct ft_gather_source {
    const struct ft_recent_rank *rank;
    size_t from;
    uint32_t comm;
};

/* A row, with what it is sorted by. */
struct ft_gather_item {
    const struct ft_recent_row *row;
    const struct ft_gather_source *source;
    uint64_t sequence;
    uint64_t end_ns; /* by its process's clock: of the row, or, where that is not known, when it was
                        over at the earliest */
    uint32_t function; /* NONE: the number alone counts */
    bool flies;        /* is seen not to be over; begun alone may be */
    bool chosen;
};

struct ft_gather_job {
    const struct ft_recent *recent;
    const struct ft_recent_job *job;
    struct ft_gather_source *sources;
    struct ft_gather_item *items;
    size_t *members;              /* of each communicator */
    bool *numbered;               /* of each: by the numbers of its ranks, else by NCCL's */
    bool *repeated;               /* of each: NCCL's say which operation it is no more */
    uint64_t *newest;             /* of each: the last operation, by number or start */
    bool *partly;                 /* of each: launches of the time looked at were forgotten */
    struct ft_recent_row *passed; /* operations that a rank is known to be past, without a record */
    size_t source_count, item_count, comm_count, passed_count;
    struct ft_gathered *out;
    struct ft_task *task;
};

/* By the clock that most hosts of the job agree on. */
static inline uint64_t ft_gather_starts_at(const struct ft_gather_item *item)
{
    return ft_apart_at(item->source->rank->process, item->row->start_ns);
}

/* Gives each process the number that it has in the communicator of them all. */
void ft_gather_number(struct ft_gather_job *g);

/* Puts what was chosen into the table: -ENOMEM. */
int ft_gather_add_rows(struct ft_gather_job *g);

/* Says of each communicator in the finished table how many ranks it has, and of how many anything
 * was heard. */
void ft_gather_say_members(const struct ft_gather_job *g);

#endif
