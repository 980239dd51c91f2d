// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_SHIM_PROTOCOL_H
#define FT_AGENT_SHIM_PROTOCOL_H
/*
 * What the wrap of libibverbs in a job and the agent say to each other: which source port a queue
 * pair is to have.
 *
 * A connection (SOCK_SEQPACKET on a Unix socket) is of one queue pair. Messages have a fixed
 * length; numbers are big endian:
 *   ASK     magic (8), kind (4), queue pair (4), its peer (4), source GID (16), destination GID
 *           (16), job (64, filled up with zeros)
 *   ANSWER  magic (8), kind (4), queue pair (4), source port (4); 0: none
 *   DONE    an ASK of its own kind, then source port (4), outcome (4)
 * The job sends ASK, gets ANSWER, and sends DONE where there was a port. The agent knows who asks
 * from the kernel (SO_PEERCRED). Thread: any.
 */
#include <stdint.h>

#define FT_SHIM_MAGIC  UINT64_C(0x6674706c616e0001) /* "ftplan", version 1 */
#define FT_SHIM_SOCKET "/plan.sock"                 /* in the run-time directory */

enum ft_shim_kind {
    FT_SHIM_ASK = 1,
    FT_SHIM_ANSWER = 2,
    FT_SHIM_DONE = 3,
};

enum ft_shim_outcome {
    FT_SHIM_LABEL = 1,   /* as flow label, when it was made ready to receive */
    FT_SHIM_SPORT = 2,   /* by mlx5dv_modify_qp_udp_sport, when it was made ready to send */
    FT_SHIM_REFUSED = 3, /* by the device: it has the port that it would have had */
};

enum {
    FT_SHIM_JOB = 64,
    FT_SHIM_ASK_BYTES = 8 + 4 + 4 + 4 + 16 + 16 + FT_SHIM_JOB,
    FT_SHIM_DONE_BYTES = FT_SHIM_ASK_BYTES + 8,
    FT_SHIM_ANSWER_BYTES = 20,
};

#endif
