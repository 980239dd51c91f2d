// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdint.h>
#include <stdlib.h>

#include "agent/nccl/abi.h"

/*
 * Another profiler plugin, to be loaded behind ours: hands out addresses of its own, checks that
 * every one of them comes back to it as it was, and counts. The harness reads `counting`.
 */

#define EVENTS 100000

struct counting {
    _Atomic uint64_t inits, starts, stops, states, finalizes, wrong;
};

extern struct counting counting;
struct counting counting;

static struct {
    uint64_t type;
    int open;
} events[EVENTS];

static uint64_t used;
static int context_object;

extern const struct ft_nccl_plugin_v5 ncclProfiler_v5;

static int init(void **context, uint64_t comm_id, int *mask, const char *comm_name, int nodes,
                int ranks, int rank, ft_nccl_logger logger)
{
    (void)comm_id;
    (void)comm_name;
    (void)nodes;
    (void)ranks;
    (void)rank;
    (void)logger;
    *context = &context_object;
    *mask = FT_NCCL_GROUP | FT_NCCL_COLL | FT_NCCL_PROXY_OP;
    counting.inits++;
    return 0;
}

static int is_event(const void *handle)
{
    uintptr_t offset = (uintptr_t)handle - (uintptr_t)events;

    return offset < used * sizeof(events[0]) && offset % sizeof(events[0]) == 0;
}

static int start(void *context, void **handle, struct ft_nccl_event_v5 *event)
{
    counting.starts++;
    if (context != &context_object || (event->parent && !is_event(event->parent)))
        counting.wrong++;
    *handle = NULL;
    /* Wants no steps, though ours does: they have no handle of this one. */
    if (event->type == FT_NCCL_PROXY_STEP || used == EVENTS)
        return 0;
    events[used].type = event->type;
    events[used].open = 1;
    *handle = &events[used++];
    return 0;
}

static int stop(void *handle)
{
    size_t i = (size_t)((uintptr_t)handle - (uintptr_t)events) / sizeof(events[0]);

    counting.stops++;
    if (!is_event(handle) || !events[i].open)
        counting.wrong++;
    else
        events[i].open = 0;
    return 0;
}

static int state(void *handle, int number, union ft_nccl_state *args)
{
    (void)number;
    (void)args;
    counting.states++;
    counting.wrong += !is_event(handle);
    return 0;
}

static int finalize(void *context)
{
    counting.finalizes++;
    counting.wrong += context != &context_object;
    return 0;
}

const struct ft_nccl_plugin_v5 ncclProfiler_v5 = {"counting", init, start, stop, state, finalize};
