// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PIPELINE_REPLAY_H
#define FT_DAEMON_PIPELINE_REPLAY_H
/*
 * Offline: records from an NDJSON file through the pipeline in virtual time, whose clock is the
 * newest moment that any record has spoken of. A line that is not a record is logged and counted,
 * and costs only itself.
 */
#include <stddef.h>
#include <stdint.h>

#include "daemon/pipeline/pipeline.h"

struct ft_replay_stats {
    uint64_t lines; /* = records + broken; blank ones do not count */
    uint64_t records;
    uint64_t broken;
};

/* Reads a file ("-": standard input) to its end and closes every window. complain is called with
 * "FILE:LINE: what is wrong". -errno when the file cannot be read. */
int ft_replay(struct ft_pipeline *pipeline, const char *file,
              void (*complain)(void *arg, const char *text), void *arg,
              struct ft_replay_stats *stats);

#endif
