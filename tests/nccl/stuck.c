// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/nccl/driver.h"

/*
 * stuck PLUGIN RANK RANKS HOW: one rank of a job that stands. After three collectives, the last of
 * which is the launch of a CUDA graph, the fourth hangs: what it sends waits for the network
 * (send), for the peer's room (peer) or for the GPU (gpu), what it receives to be flushed (flush)
 * or for the GPU (take), or the proxy never begins with it (queued); or this rank never begins it
 * (never); or it has nothing in the network (local); or two channels of its kernel run, and one has
 * ended (kernel). A second communicator has sent once and is idle, a third one has only proxy
 * operations of another process. "ready" is printed when it stands; SIGTERM ends it in order.
 */

#define BYTES 65536

static const struct ft_nccl_plugin_v5 *p;
static bool with_kernels;
static volatile sig_atomic_t over;

static void on_term(int number)
{
    (void)number;
    over = 1;
}

static void *open_comm(uint64_t id, const char *name, int ranks, int rank)
{
    void *context = NULL;
    int mask = 0;

    if (p->init(&context, id, &mask, name, 2, ranks, rank, NULL))
        exit(1);
    /* NCCL tells of kernels where a plugin asks for it. */
    if (with_kernels && !(mask & FT_NCCL_KERNEL_CH))
        exit(1);
    return context;
}

static void *begin(void *context, uint64_t sequence)
{
    struct ft_nccl_event_v5 e = {.type = FT_NCCL_COLL};
    void *handle = NULL;

    e.u.coll.sequence = sequence;
    e.u.coll.func = "AllReduce";
    e.u.coll.count = 1048576;
    e.u.coll.datatype = "ncclFloat32";
    e.u.coll.channels = 1;
    e.u.coll.algo = "RING";
    e.u.coll.proto = "SIMPLE";
    p->start(context, &handle, &e);
    p->stop(handle);
    return handle;
}

static void *proxy(void *context, void *parent, int peer, bool send, pid_t pid)
{
    struct ft_nccl_event_v5 e = {.type = FT_NCCL_PROXY_OP, .parent = parent};
    void *handle = NULL;

    e.u.proxy_op.pid = pid;
    e.u.proxy_op.peer = peer;
    e.u.proxy_op.steps = 8;
    e.u.proxy_op.is_send = send;
    p->start(context, &handle, &e);
    return handle;
}

static void *step(void *context, void *op, int number)
{
    struct ft_nccl_event_v5 e = {.type = FT_NCCL_PROXY_STEP, .parent = op};
    void *handle = NULL;

    e.u.proxy_step.step = number;
    p->start(context, &handle, &e);
    return handle;
}

/* Two steps that end, and one that goes on to the last of the states. */
static void *stand(void *context, void *op, bool send, const int *states)
{
    const int whole[2][2] = {{FT_NCCL_STEP_RECV_WAIT, FT_NCCL_STEP_RECV_FLUSH},
                             {FT_NCCL_STEP_SEND_GPU_WAIT, FT_NCCL_STEP_SEND_WAIT}};
    union ft_nccl_state args = {.proxy_step.bytes = BYTES};
    void *last;

    p->state(op, FT_NCCL_PROXY_IN_PROGRESS, NULL);
    for (int i = 0; i < 2; i++) {
        void *handle = step(context, op, i);

        for (int s = 0; s < 2; s++)
            p->state(handle, whole[send][s], &args);
        p->stop(handle);
    }
    last = step(context, op, 2);
    for (; *states; states++)
        p->state(last, *states, &args);
    return last;
}

/* The channels of an operation's kernel, of which the first so many end. */
static void kernels(void *context, void *parent, int channels, int ended)
{
    union ft_nccl_state args = {.kernel_ch.gpu_time_ns = 2000};

    for (int c = 0; c < channels; c++) {
        struct ft_nccl_event_v5 e = {.type = FT_NCCL_KERNEL_CH, .parent = parent};
        void *handle = NULL;

        e.u.kernel_ch.channel = (uint8_t)c;
        e.u.kernel_ch.gpu_time_ns = 1000;
        p->start(context, &handle, &e);
        if (c >= ended)
            continue;
        p->state(handle, FT_NCCL_KERNEL_CH_STOP, &args);
        p->stop(handle);
    }
}

static void *hang(void *context, const char *how, int rank, int ranks)
{
    const int sent[] = {FT_NCCL_STEP_SEND_GPU_WAIT, FT_NCCL_STEP_SEND_WAIT, 0};
    const int no_room[] = {FT_NCCL_STEP_SEND_GPU_WAIT, FT_NCCL_STEP_SEND_PEER_WAIT, 0};
    const int empty[] = {FT_NCCL_STEP_SEND_GPU_WAIT, 0};
    const int posted[] = {FT_NCCL_STEP_RECV_WAIT, 0};
    const int flushed[] = {FT_NCCL_STEP_RECV_WAIT, FT_NCCL_STEP_RECV_FLUSH, 0};
    const int there[] = {FT_NCCL_STEP_RECV_WAIT, FT_NCCL_STEP_RECV_FLUSH,
                         FT_NCCL_STEP_RECV_GPU_WAIT, 0};
    void *op = begin(context, 2), *out, *in;

    if (with_kernels)
        kernels(context, op, 3, 1);
    if (with_kernels || strcmp(how, "local") == 0)
        return NULL;
    out = proxy(context, op, (rank + 1) % ranks, true, getpid());
    in = proxy(context, op, (rank + ranks - 1) % ranks, false, getpid());
    if (strcmp(how, "queued") == 0)
        return NULL;
    stand(context, in, false,
          strcmp(how, "flush") == 0  ? flushed
          : strcmp(how, "take") == 0 ? there
                                     : posted);
    return stand(context, out, true,
                 strcmp(how, "send") == 0   ? sent
                 : strcmp(how, "peer") == 0 ? no_room
                                            : empty);
}

int main(int argc, char **argv)
{
    const struct timespec ms = {0, 1000000};
    struct sigaction on = {.sa_handler = on_term};
    void *world, *pair, *pxn, *standing = NULL;
    int rank, ranks;
    struct driver d;

    if (argc < 5) {
        fprintf(
            stderr,
            "usage: stuck PLUGIN RANK RANKS send|peer|gpu|flush|take|queued|never|local|kernel\n");
        return 2;
    }
    rank = atoi(argv[2]);
    ranks = atoi(argv[3]);
    sigaction(SIGTERM, &on, NULL);
    with_kernels = strcmp(argv[4], "kernel") == 0;
    driver_load(&d, argv[1]);
    p = d.v5;
    world = open_comm(0xfab, "world", ranks, rank);
    pair = open_comm(0xfac, "pair", 2, rank % 2);
    pxn = open_comm(0xfad, "pxn", ranks, rank);
    if (strcmp(argv[4], "local") == 0) {
        for (uint64_t i = 0; i < 3; i++)
            begin(world, i);
    } else if (with_kernels) {
        for (uint64_t i = 0; i < 3; i++)
            kernels(world, begin(world, i), 3, 3);
    } else {
        driver_ring(p, world, rank, ranks, 0, 1, 8, BYTES);
        driver_ring(p, world, rank, ranks, 1, 1, 8, BYTES);
        driver_ring(p, world, rank, ranks, 1, 1, 8, BYTES);
    }
    driver_ring(p, pair, rank % 2, 2, 0, 1, 8, BYTES);
    stand(pxn, proxy(pxn, (void *)16, 3, true, getpid() + 1), true,
          (const int[]){FT_NCCL_STEP_SEND_GPU_WAIT, FT_NCCL_STEP_SEND_WAIT, 0});
    if (strcmp(argv[4], "never") != 0)
        standing = hang(world, argv[4], rank, ranks);
    puts("ready");
    fflush(stdout);
    /* NCCL's proxy reports a peer that has no room at every poll. */
    while (!over) {
        if (strcmp(argv[4], "peer") == 0)
            p->state(standing, FT_NCCL_STEP_SEND_PEER_WAIT, NULL);
        nanosleep(&ms, NULL);
    }
    p->finalize(pxn);
    p->finalize(pair);
    p->finalize(world);
    return 0;
}
