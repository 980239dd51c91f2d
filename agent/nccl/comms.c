// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/nccl/trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/nccl/core.h"
#include "agent/nccl/gpu.h"
#include "agent/nccl/link.h"
#include "agent/nccl/trace_entry.h"

static void show_comm(struct ft_segment_comm *to, const struct ft_trace_options *options)
{
    uint32_t sequence = atomic_fetch_add_explicit(&to->sequence, 1, memory_order_relaxed);

    /* What follows must not be seen before the odd number: the store of a read-modify-write orders
     * only what came before it (arm64). */
    atomic_thread_fence(memory_order_release);
    to->open = options != NULL;
    if (options) {
        to->comm_id = options->comm_id;
        to->rank = options->rank;
        to->ranks = options->ranks;
        to->nodes = options->nodes;
        to->abi = options->abi;
        atomic_store_explicit(&to->begun, 0, memory_order_relaxed);
        to->opened_ns = ft_now_ns();
        snprintf(to->name, sizeof(to->name), "%s", options->name ? options->name : "");
        ft_gpu_bus_id(to->gpu);
    }
    atomic_store_explicit(&to->sequence, sequence + 2, memory_order_release);
}

static struct ft_trace_comm *find_free(struct ft_core *core)
{
    static uint32_t next;

    /* A slot just closed is the last to be taken again: late events of it still come. */
    for (uint32_t i = 0; i < FT_SEGMENT_COMMS; i++) {
        struct ft_trace_comm *comm = &core->comms[next++ % FT_SEGMENT_COMMS];

        if (!comm->open)
            return comm;
    }
    return NULL;
}

int ft_trace_open(const struct ft_trace_options *options, struct ft_trace_comm **out)
{
    const char *socket = secure_getenv("FABRICTRACE_SOCKET");
    struct ft_trace_comm *comm;
    struct ft_core *core;
    int rc;

    ft_core_lock();
    rc = ft_core_get(&core);
    if (rc)
        goto out;
    comm = find_free(core);
    if (!comm) {
        atomic_fetch_add(&core->segment->comms_refused, 1);
        rc = -ENOSPC;
        goto out;
    }
    comm->comm_id = options->comm_id;
    comm->rank = options->rank;
    comm->ranks = options->ranks;
    comm->index = (uint32_t)(comm - core->comms);
    comm->ops_before = comm->ops;
    show_comm(&core->segment->comm[comm - core->comms], options);
    comm->open = true;
    /* Without the thread the rings fill up and count: no reason to stop a job. */
    if (core->open++ == 0)
        core->link = ft_link_new(core->memory_fd, socket ? socket : FT_RUNSTATEDIR "/nccl.sock");
    *out = comm;
out:
    ft_core_unlock();
    return rc;
}

static void sweep(struct ft_core *core, const struct ft_trace_comm *comm)
{
    struct ft_core_thread *t = ft_core_reserve(core, (uintptr_t)pthread_self());

    for (uint32_t i = 0; t && i < FT_SEGMENT_RINGS; i++) {
        if (!core->threads[i].owner)
            continue;
        for (uint32_t k = 0; k < FT_CORE_ENTRIES; k++) {
            struct ft_core_entry *e = &core->entries[i][k];
            uint64_t state = e->state;

            if ((state & (FT_ENTRY_USED | FT_ENTRY_BUSY)) != FT_ENTRY_USED ||
                !atomic_compare_exchange_strong(&e->state, &state, state | FT_ENTRY_BUSY))
                continue;
            if (e->comm != comm) {
                ft_entry_release(e);
                continue;
            }
            e->record.flags |= FT_SEGMENT_INCOMPLETE;
            e->record.end_ns = e->touched_ns;
            ft_entry_emit(t, e);
            ft_entry_retire(core, e);
        }
    }
}

void ft_trace_close(struct ft_trace_comm *comm)
{
    struct ft_core *core = ft_core;
    struct ft_link *link = NULL;

    if (!core || !ft_trace_ours(core, comm))
        return;
    ft_core_lock();
    if (comm->open) {
        sweep(core, comm);
        show_comm(&core->segment->comm[comm - core->comms], NULL);
        comm->open = false;
        if (--core->open == 0) {
            link = core->link;
            core->link = NULL;
        }
    }
    ft_core_unlock();
    ft_link_free(link);
}
