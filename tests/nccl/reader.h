// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_NCCL_READER_H
#define FT_TESTS_NCCL_READER_H
/*
 * The agent's reading parts in a thread of the test: listens, takes the memory over, folds.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/jobs/collectives.h"
#include "agent/jobs/rings.h"

struct reader_totals {
    uint64_t reported; /* events in reports */
    uint64_t stray, lost, reports, operations, incomplete, foreign, connections;
    uint64_t sent_bytes, received_bytes, qps;
    int64_t median_ns;           /* of the last list of peers */
    struct ft_collective last;   /* without its peers */
    struct ft_rings_stats rings; /* when last looked at */
};

struct reader;

/* Listens at path. */
struct reader *reader_start(const char *path);

/* Ends it: in order, everything reported; or as kill -9 would, nothing of what is pending. Totals
 * are added to *totals. */
void reader_stop(struct reader *reader, bool in_order, struct reader_totals *totals);

/* Waits until a job's memory is there, and until everything in its rings is read. */
void reader_wait_connected(struct reader *reader);
void reader_wait_idle(struct reader *reader);

#endif
