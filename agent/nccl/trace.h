// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_NCCL_TRACE_H
#define FT_AGENT_NCCL_TRACE_H
/*
 * NCCL's calls in, records in shared memory out; the same for every version of the interface.
 *
 * ft_trace_open() and ft_trace_close() may take their time; the other three neither lock, allocate,
 * wait nor enter the kernel, but for the first call of a thread. What finds no room is dropped and
 * counted. A handle is a number, never an address: whatever comes back instead is checked, not
 * followed. Thread: any, at once.
 */
#include <stdint.h>

#include "agent/nccl/abi.h"
#include "agent/nccl/segment.h"

struct ft_trace_comm;

struct ft_trace_options {
    uint64_t comm_id;
    int nodes, ranks, rank, abi;
    const char *name; /* may be NULL */
};

/* Opens a communicator, the first one with the shared memory and the link to the agent. 0, -ENOMEM,
 * -ENOSPC when too many are open, or -errno of memfd_create(2). */
int ft_trace_open(const struct ft_trace_options *options, struct ft_trace_comm **comm);

/* Closes it: what it left open goes out as incomplete. With the last one the link ends. Takes a
 * communicator that is not ours. */
void ft_trace_close(struct ft_trace_comm *comm);

/* The handle, NULL where the event was dropped or is not ours. */
void *ft_trace_start(struct ft_trace_comm *comm, uint64_t type, void *parent, int rank,
                     const union ft_nccl_subject *subject);
void ft_trace_stop(void *handle);
void ft_trace_state(void *handle, int state, const union ft_nccl_state *args);

/* The memory of this process, NULL when there is none: for tests. */
const struct ft_segment *ft_trace_segment(void);

#endif
