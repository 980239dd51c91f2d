// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "tests/nccl/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pid_t own_pid; /* asked once: the stream itself makes no system call */

void driver_load(struct driver *d, const char *file)
{
    own_pid = getpid();
    d->library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!d->library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    d->v4 = dlsym(d->library, "ncclProfiler_v4");
    d->v5 = dlsym(d->library, "ncclProfiler_v5");
    d->v6 = dlsym(d->library, "ncclProfiler_v6");
    if (!d->v4 || !d->v5 || !d->v6) {
        fprintf(stderr, "%s: lacks a table\n", file);
        exit(1);
    }
}

static uint64_t run_step(const struct ft_nccl_plugin_v5 *p, void *context, void *op, int step,
                         int is_send, uint32_t bytes)
{
    struct ft_nccl_event_v5 e = {.type = FT_NCCL_PROXY_STEP, .parent = op};
    union ft_nccl_state args = {.proxy_step.bytes = bytes};
    void *handle = NULL;

    e.u.proxy_step.step = step;
    p->start(context, &handle, &e);
    if (!handle)
        return 1;
    p->state(handle, is_send ? 8 : FT_NCCL_STEP_RECV_WAIT, &args);
    p->state(handle, is_send ? FT_NCCL_STEP_SEND_WAIT : FT_NCCL_STEP_RECV_FLUSH, &args);
    p->stop(handle);
    return 4;
}

uint64_t driver_proxy(const struct ft_nccl_plugin_v5 *p, void *context, void *parent, int peer,
                      int channel, int is_send, int steps, uint32_t bytes)
{
    struct ft_nccl_event_v5 e = {.type = FT_NCCL_PROXY_OP, .parent = parent};
    void *handle = NULL;
    uint64_t calls = 2;

    e.u.proxy_op.pid = own_pid;
    e.u.proxy_op.channel = (uint8_t)channel;
    e.u.proxy_op.peer = peer;
    e.u.proxy_op.steps = steps;
    e.u.proxy_op.is_send = is_send;
    p->start(context, &handle, &e);
    if (!handle)
        return 1;
    for (int i = 0; i < steps; i++)
        calls += run_step(p, context, handle, i, is_send, bytes);
    p->stop(handle);
    return calls;
}

uint64_t driver_ring(const struct ft_nccl_plugin_v5 *p, void *context, int rank, int ranks,
                     uint64_t sequence, int channels, int steps, uint32_t bytes)
{
    struct ft_nccl_event_v5 e = {.type = FT_NCCL_COLL, .rank = rank};
    void *handle = NULL;
    uint64_t calls = 2;

    e.u.coll.sequence = sequence;
    e.u.coll.func = "AllReduce";
    e.u.coll.count = 1048576;
    e.u.coll.datatype = "ncclFloat32";
    e.u.coll.channels = (uint8_t)channels;
    e.u.coll.warps = 8;
    e.u.coll.algo = "RING";
    e.u.coll.proto = "SIMPLE";
    p->start(context, &handle, &e);
    p->stop(handle);
    for (int c = 0; c < channels; c++) {
        calls += driver_proxy(p, context, handle, (rank + 1) % ranks, c, 1, steps, bytes);
        calls += driver_proxy(p, context, handle, (rank + ranks - 1) % ranks, c, 0, steps, bytes);
    }
    return calls;
}
