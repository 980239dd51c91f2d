// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_GATHER_H
#define FT_DAEMON_DIAGNOSIS_GATHER_H
/*
 * What is known of the last minutes of a job, as a table of operations for lib/diagnosis: those of
 * the time from which on nothing is missing, up to which every process has reported. An operation
 * of which one rank's record was lost would make that rank look as if it had worked meanwhile.
 *
 * Ranks are numbered as in the communicator that has all processes of the job; where there is none,
 * each communicator numbers its own. Times are by the clock that most of its hosts agree on
 * (apart.h). Pure. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/diagnosis/recent.h"
#include "lib/diagnosis/operations.h"

struct ft_gathered {
    struct ft_operations *ops; /* finished; the caller's to free */
    size_t rows;
    size_t gaps;   /* operations that some rank's record is missing of */
    size_t flying; /* operations that are not over at some rank */
    bool folded;   /* operations came in sums: nothing was gathered */
    bool numbered; /* by one communicator */
    /* Which ranks of several communicators are one process is not known: each is taken by itself,
     * and the table's hosts are named with the communicator. */
    bool apart;
    uint64_t from_ns, until_ns;
};

/* At most rows_max rows, the newest, and two more of each rank. The task, which may be NULL, pauses
 * it, and whatever is done with the table afterwards. -ENOMEM. */
int ft_gather(const struct ft_recent *recent, const struct ft_recent_job *job, size_t rows_max,
              int64_t now_ms, struct ft_task *task, struct ft_gathered *out);

/* The rank of the job that a rank of a communicator in the table is; NULL: none. */
const struct ft_recent_rank *ft_gathered_rank(const struct ft_gathered *g,
                                              const struct ft_recent *recent,
                                              const struct ft_recent_job *job, const char *comm_id,
                                              uint32_t rank);

#endif
