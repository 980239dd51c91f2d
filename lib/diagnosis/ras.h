// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_RAS_H
#define FT_DIAGNOSIS_RAS_H
/*
 * What NCCL's RAS subsystem answers to "VERBOSE STATUS" in its JSON format (NCCL 2.28.7 and later):
 * the communicators of a job, how many operations of each function their ranks have launched, and
 * who does not answer. Text that a job's process wrote: nothing of it is believed to be in order.
 * Pure. Owner: the caller. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ft_task;

#define FT_RAS_ERROR_BYTES   128
#define FT_RAS_FUNCTIONS     16 /* NCCL 2.30 counts five */
#define FT_RAS_NAME_BYTES    32
#define FT_RAS_ADDRESS_BYTES 48

struct ft_ras_rank {
    uint64_t launched[FT_RAS_FUNCTIONS]; /* operations, by the answer's list of functions */
    uint32_t rank;
    uint32_t pid;                       /* 0: not known */
    int32_t async_error;                /* ncclResult_t */
    char address[FT_RAS_ADDRESS_BYTES]; /* of its host; empty: not known */
    bool missing;                       /* it did not answer; what follows */
    bool unresponsive, dead;            /* its process did not, or was given up */
    bool aborted;                       /* its communicator is being aborted */
};

struct ft_ras_comm {
    uint64_t hash;       /* NCCL's, which profiler plugins know it by */
    uint32_t ranks;      /* in the communicator */
    size_t first, count; /* its ranks in the list of all */
};

struct ft_ras {
    char version[FT_RAS_NAME_BYTES]; /* of NCCL */
    char functions[FT_RAS_FUNCTIONS][FT_RAS_NAME_BYTES];
    size_t function_count;
    struct ft_ras_comm *comms;
    size_t comm_count, comm_size;
    struct ft_ras_rank *ranks; /* by communicator; of each, those that answered first */
    size_t rank_count, rank_size;
    uint64_t left_out; /* communicators, ranks and counts that made no sense */
    uint32_t timeouts; /* processes that RAS did not hear from in time */
};

/* Takes an answer, and changes its bytes. nodes_max bounds it (tree.h), 0: as there; task may be
 * NULL. -EINVAL with what is wrong in error, -E2BIG, -ENOMEM: then there is nothing to free. */
int ft_ras_read(struct ft_ras *out, char *text, size_t len, uint32_t nodes_max,
                struct ft_task *task, char error[FT_RAS_ERROR_BYTES]);
void ft_ras_free(struct ft_ras *ras);

#endif
