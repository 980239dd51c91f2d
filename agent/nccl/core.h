// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_NCCL_CORE_H
#define FT_AGENT_NCCL_CORE_H
/*
 * What the plugin keeps in a process: made at the first communicator, never freed, since NCCL may
 * call from its threads after everything was closed. Inside agent/nccl/ alone.
 *
 * A thread is known by pthread_self(), which no two living threads share: so it finds its ring
 * without thread-local storage, and one that replaces a dead thread takes its ring over.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/nccl/segment.h"

#define FT_CORE_ENTRIES FT_SEGMENT_OPEN
#define FT_CORE_STEPS   FT_SEGMENT_STEPS

struct ft_link;

struct ft_trace_comm {
    atomic_bool open;
    uint64_t comm_id;
    int32_t rank, ranks;
    uint32_t index;       /* in the segment's table */
    _Atomic uint64_t ops; /* begun in this slot, by all communicators that it ever was */
    uint64_t ops_before;  /* by those before this one */
    void *chained;        /* the context of the plugin behind this one */
};

/* Times in ns of CLOCK_MONOTONIC. wait_ns: since when the network has it; 0: not said. */
struct ft_core_step {
    int64_t start_ns, wait_ns, arrived_ns;
    uint32_t bytes;
};

enum {
    FT_ENTRY_USED = 1,
    FT_ENTRY_BUSY = 2, /* a thread is at it */
};

/* An event that stays open: generation << 2, and the two bits. */
struct ft_core_entry {
    _Atomic uint64_t state;
    struct ft_trace_comm *comm;
    int64_t touched_ns;
    uint32_t used; /* a bit for each step in progress */
    struct ft_core_step steps[FT_CORE_STEPS];
    struct ft_segment_record record;
};

struct ft_core_thread {
    _Alignas(64) _Atomic uintptr_t owner; /* 0: free */
    uint32_t index, cursor;
    uint64_t head, tail_seen;
    struct ft_segment_ring *ring;
    struct ft_segment_record *records;
    struct ft_segment_flight *flights;
    struct ft_core_entry *entries;
};

struct ft_core {
    pid_t pid;
    int memory_fd;
    unsigned open;
    struct ft_segment *segment;
    struct ft_link *link;
    struct ft_trace_comm comms[FT_SEGMENT_COMMS];
    struct ft_core_thread threads[FT_SEGMENT_RINGS];
    struct ft_core_entry entries[FT_SEGMENT_RINGS][FT_CORE_ENTRIES];
};

/* This process's, NULL before the first communicator and in the child of a fork. */
extern struct ft_core *_Atomic ft_core;

/* Whether it is a communicator of this process's. */
static inline bool ft_trace_ours(const struct ft_core *core, const struct ft_trace_comm *comm)
{
    uintptr_t offset = (uintptr_t)comm - (uintptr_t)core->comms;

    return offset < sizeof(core->comms) && offset % sizeof(*comm) == 0;
}

/* Held while communicators are opened and closed, and across a fork. */
void ft_core_lock(void);
void ft_core_unlock(void);

/* The core, made when there is none. Thread: under the lock. -errno. */
int ft_core_get(struct ft_core **core);

/* The calling thread's part; the first call reserves one. NULL when all are taken. */
struct ft_core_thread *ft_core_reserve(struct ft_core *core, uintptr_t self);

#endif
