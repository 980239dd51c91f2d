// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/nccl/abi.h"
#include "agent/nccl/chain.h"
#include "agent/nccl/core.h"
#include "agent/nccl/trace.h"

/*
 * The tables that NCCL looks up. Nothing here may fail a job: all but an init return success.
 */

#define LOG_WARN      2 /* of NCCL's logger */
#define LOG_INIT      1ul
#define EVENTS_ALWAYS (FT_NCCL_COLL | FT_NCCL_P2P | FT_NCCL_PROXY_OP | FT_NCCL_NET_PLUGIN)

extern const struct ft_nccl_plugin_v4 ncclProfiler_v4;
extern const struct ft_nccl_plugin_v5 ncclProfiler_v5, ncclProfiler_v6;

static _Atomic int event_kinds; /* kinds of events */
/* The plugin behind this one, NULL: none. */
static struct ft_nccl_plugin_v4 *_Atomic chain_v4;
static struct ft_nccl_plugin_v5 *_Atomic chain_v5;

static bool is_set(const char *name, bool standard)
{
    const char *value = secure_getenv(name);

    if (!value || !*value)
        return standard;
    return strcmp(value, "0") != 0 && strcmp(value, "off") != 0;
}

static int choose_events(void)
{
    int events = 0;

    if (is_set("FABRICTRACE_NCCL", true))
        events = EVENTS_ALWAYS;
    if (events && is_set("FABRICTRACE_NCCL_STEPS", true))
        events |= FT_NCCL_PROXY_STEP;
    if (events && is_set("FABRICTRACE_NCCL_KERNEL", false))
        events |= FT_NCCL_KERNEL_CH;
    return events;
}

static void *load_chain(const char *symbol, const void *ours, ft_nccl_logger logger)
{
    const char *file = secure_getenv("FABRICTRACE_NCCL_CHAIN");
    char error[256];
    void *table;

    if (!file || !*file)
        return NULL;
    table = ft_chain_load(file, symbol, ours, error, sizeof(error));
    if (error[0] && logger)
        logger(LOG_WARN, LOG_INIT, "fabrictrace", 0, "FABRICTRACE_NCCL_CHAIN: %s", error);
    return table;
}

static int open_comm(const struct ft_trace_options *options, void **context, int *mask)
{
    struct ft_trace_comm *comm;

    if (!context || !mask)
        return FT_NCCL_INTERNAL;
    event_kinds = choose_events();
    if (ft_trace_open(options, &comm))
        return FT_NCCL_INTERNAL;
    comm->chained = NULL;
    *context = comm;
    *mask = event_kinds;
    return FT_NCCL_SUCCESS;
}

static int init_v4(void **context, int *mask, const char *comm_name, uint64_t comm_id, int nodes,
                   int ranks, int rank, ft_nccl_logger logger)
{
    const struct ft_trace_options options = {comm_id, nodes, ranks, rank, 4, comm_name};
    struct ft_trace_comm *comm;
    int theirs = 0;

    if (open_comm(&options, context, mask))
        return FT_NCCL_INTERNAL;
    comm = *context;
    chain_v4 = load_chain("ncclProfiler_v4", &ncclProfiler_v4, logger);
    if (chain_v4 && chain_v4->init(&comm->chained, &theirs, comm_name, comm_id, nodes, ranks, rank,
                                   logger) == FT_NCCL_SUCCESS)
        *mask |= theirs;
    return FT_NCCL_SUCCESS;
}

static int open_v5(const struct ft_trace_options *options, const char *symbol, const void *ours,
                   void **context, int *mask, ft_nccl_logger logger)
{
    struct ft_trace_comm *comm;
    int theirs = 0;

    if (open_comm(options, context, mask))
        return FT_NCCL_INTERNAL;
    comm = *context;
    chain_v5 = load_chain(symbol, ours, logger);
    if (chain_v5 &&
        chain_v5->init(&comm->chained, options->comm_id, &theirs, options->name, options->nodes,
                       options->ranks, options->rank, logger) == FT_NCCL_SUCCESS)
        *mask |= theirs;
    return FT_NCCL_SUCCESS;
}

static int init_v5(void **context, uint64_t comm_id, int *mask, const char *comm_name, int nodes,
                   int ranks, int rank, ft_nccl_logger logger)
{
    const struct ft_trace_options options = {comm_id, nodes, ranks, rank, 5, comm_name};

    return open_v5(&options, "ncclProfiler_v5", &ncclProfiler_v5, context, mask, logger);
}

static int init_v6(void **context, uint64_t comm_id, int *mask, const char *comm_name, int nodes,
                   int ranks, int rank, ft_nccl_logger logger)
{
    const struct ft_trace_options options = {comm_id, nodes, ranks, rank, 6, comm_name};

    return open_v5(&options, "ncclProfiler_v6", &ncclProfiler_v6, context, mask, logger);
}

static void *chained(const struct ft_trace_comm *comm)
{
    return comm ? comm->chained : NULL;
}

/* NCCL also reports what the events that are asked for hang on: groups, calls of its interface,
 * launches of kernels. Nothing is lost with them. */
static bool is_above(uint64_t type)
{
    return (type & FT_NCCL_KINDS) != 0 && (type & (uint64_t)event_kinds) == 0;
}

static int start_v4(void *context, void **handle, struct ft_nccl_event_v4 *event)
{
    struct ft_nccl_event_v4 copy;
    struct ft_chain_pair parent;
    void *ours = NULL, *theirs = NULL;

    if (!handle || !event)
        return FT_NCCL_SUCCESS;
    *handle = NULL;
    if (!chain_v4) {
        if (!is_above(event->type))
            *handle = ft_trace_start(context, event->type, event->parent, event->rank, &event->u);
        return FT_NCCL_SUCCESS;
    }
    parent = ft_chain_split(event->parent);
    if (event->type & (unsigned)event_kinds)
        ours = ft_trace_start(context, event->type, parent.ours, event->rank, &event->u);
    copy = *event;
    copy.parent = parent.theirs;
    if (chained(context))
        chain_v4->start(chained(context), &theirs, &copy);
    *handle = ft_chain_join(ours, theirs);
    return FT_NCCL_SUCCESS;
}

static int start_v5(void *context, void **handle, struct ft_nccl_event_v5 *event)
{
    struct ft_nccl_event_v5 copy;
    struct ft_chain_pair parent;
    void *ours = NULL, *theirs = NULL;

    if (!handle || !event)
        return FT_NCCL_SUCCESS;
    *handle = NULL;
    if (!chain_v5) {
        if (!is_above(event->type))
            *handle = ft_trace_start(context, event->type, event->parent, event->rank, &event->u);
        return FT_NCCL_SUCCESS;
    }
    parent = ft_chain_split(event->parent);
    if (event->type & (uint64_t)event_kinds)
        ours = ft_trace_start(context, event->type, parent.ours, event->rank, &event->u);
    copy = *event;
    copy.parent = parent.theirs;
    if (chained(context))
        chain_v5->start(chained(context), &theirs, &copy);
    *handle = ft_chain_join(ours, theirs);
    return FT_NCCL_SUCCESS;
}

static int stop(void *handle)
{
    struct ft_chain_pair pair;

    if (!chain_v4 && !chain_v5) {
        ft_trace_stop(handle);
        return FT_NCCL_SUCCESS;
    }
    pair = ft_chain_split(handle);
    if (pair.ours)
        ft_trace_stop(pair.ours);
    if (pair.theirs && pair.theirs != handle)
        (chain_v5 ? chain_v5->stop : chain_v4->stop)(pair.theirs);
    return FT_NCCL_SUCCESS;
}

static int record_state(void *handle, int state, union ft_nccl_state *args)
{
    struct ft_chain_pair pair;

    if (!chain_v4 && !chain_v5) {
        ft_trace_state(handle, state, args);
        return FT_NCCL_SUCCESS;
    }
    pair = ft_chain_split(handle);
    if (pair.ours)
        ft_trace_state(pair.ours, state, args);
    if (pair.theirs && pair.theirs != handle)
        (chain_v5 ? chain_v5->state : chain_v4->state)(pair.theirs, state, args);
    return FT_NCCL_SUCCESS;
}

static int finalize(void *context)
{
    if ((chain_v4 || chain_v5) && chained(context))
        (chain_v5 ? chain_v5->finalize : chain_v4->finalize)(chained(context));
    ft_trace_close(context);
    return FT_NCCL_SUCCESS;
}

#define EXPORT __attribute__((visibility("default")))

EXPORT const struct ft_nccl_plugin_v4 ncclProfiler_v4 = {"fabrictrace", init_v4,      start_v4,
                                                         stop,          record_state, finalize};
EXPORT const struct ft_nccl_plugin_v5 ncclProfiler_v5 = {"fabrictrace", init_v5,      start_v5,
                                                         stop,          record_state, finalize};
EXPORT const struct ft_nccl_plugin_v5 ncclProfiler_v6 = {"fabrictrace", init_v6,      start_v5,
                                                         stop,          record_state, finalize};
