// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_REPLAY_H
#define FT_SWITCHPOLL_REPLAY_H
/*
 * Reads sFlow datagrams out of a capture file instead of a socket. The capture's time is the clock,
 * so the same file gives the same records. Thread: one.
 */
#include <stddef.h>
#include <stdint.h>

#include "switchpoll/output/output.h"
#include "switchpoll/sflow/pipeline.h"

struct ft_sflow_replay_stats {
    uint64_t packets; /* in the file */
    uint64_t sflow;   /* of these: UDP datagrams to the port */
    uint64_t cut;     /* of these: not complete in the capture */
};

/* Feeds every UDP datagram to port from the file to the pipeline, and ends it. Returns an exit code
 * of sysexits.h: EX_OK; EX_NOINPUT when the file cannot be opened; EX_DATAERR when it is not a
 * capture or is cut off; EX_IOERR when the output fails. For another than EX_OK the complaint names
 * the file. What was read before a fault has been published. */
int ft_sflow_replay(const char *file, uint16_t port, struct ft_sflow_pipeline *pipeline,
                    const struct ft_output *output, struct ft_sflow_replay_stats *stats,
                    char *error, size_t error_bytes);

#endif
