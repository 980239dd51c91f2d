// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/nccl/driver.h"

/*
 * together PLUGIN RANK RANKS FILE COMM PAUSE_MS [other|never N]: one rank of a job whose ranks wait
 * for each other. AllReduce after AllReduce over a ring; none ends before all have entered it,
 * which they say in FILE, shared and full of zeros at the start; then so long a pause. With other,
 * the N-th operation is an AllGather, so that it never ends; with never, it is not begun. SIGTERM
 * ends it in order.
 */

#define RANKS_MAX 64
#define STEPS     4
#define BYTES     65536

/* For each rank the operations that it has entered, and the last function in the lowest bit. */
struct shared {
    _Atomic uint64_t entered[RANKS_MAX];
};

static const struct ft_nccl_plugin_v5 *p;
static struct shared *shared;
static volatile sig_atomic_t over;

static void on_term(int number)
{
    (void)number;
    over = 1;
}

static void rest(long ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&t, NULL);
}

/* Whether all ranks are in this operation or past it, and called the same. */
static bool all_there(int ranks, uint64_t mark)
{
    for (int r = 0; r < ranks; r++) {
        uint64_t its = atomic_load(&shared->entered[r]);

        if (its / 2 < mark / 2 || (its / 2 == mark / 2 && its != mark))
            return false;
    }
    return true;
}

static void *transfer(void *context, void *parent, int peer, bool send)
{
    struct ft_nccl_event_v5 e = {.type = FT_NCCL_PROXY_OP, .parent = parent};
    void *handle = NULL;

    e.u.proxy_op.pid = getpid();
    e.u.proxy_op.peer = peer;
    e.u.proxy_op.steps = STEPS;
    e.u.proxy_op.is_send = send;
    p->start(context, &handle, &e);
    p->state(handle, FT_NCCL_PROXY_IN_PROGRESS, NULL);
    return handle;
}

/* A step as far as it comes before the others are there. */
static void *begin_step(void *context, void *op, int number, bool send)
{
    struct ft_nccl_event_v5 e = {.type = FT_NCCL_PROXY_STEP, .parent = op};
    void *handle = NULL;

    e.u.proxy_step.step = number;
    p->start(context, &handle, &e);
    p->state(handle, send ? FT_NCCL_STEP_SEND_GPU_WAIT : FT_NCCL_STEP_RECV_WAIT, NULL);
    return handle;
}

static void end_step(void *handle, bool send)
{
    union ft_nccl_state args = {.proxy_step.bytes = BYTES};

    p->state(handle, send ? FT_NCCL_STEP_SEND_WAIT : FT_NCCL_STEP_RECV_FLUSH, &args);
    p->stop(handle);
}

static void operation(void *context, int rank, int ranks, uint64_t number, bool other)
{
    struct ft_nccl_event_v5 e = {.type = FT_NCCL_COLL, .rank = rank};
    uint64_t mark = 2 * number + other;
    void *op = NULL, *ways[2], *steps[2];

    e.u.coll.sequence = number;
    e.u.coll.func = other ? "AllGather" : "AllReduce";
    e.u.coll.count = STEPS * BYTES / 4;
    e.u.coll.datatype = "ncclFloat32";
    e.u.coll.channels = 1;
    e.u.coll.algo = "RING";
    e.u.coll.proto = "SIMPLE";
    p->start(context, &op, &e);
    p->stop(op);
    for (int send = 0; send < 2; send++) {
        ways[send] =
            transfer(context, op, send ? (rank + 1) % ranks : (rank + ranks - 1) % ranks, send);
        steps[send] = begin_step(context, ways[send], 0, send);
    }
    atomic_store(&shared->entered[rank], mark);
    while (!over && !all_there(ranks, mark))
        rest(1);
    if (over)
        return;
    for (int i = 0; i < STEPS; i++) {
        for (int send = 0; send < 2; send++)
            end_step(steps[send], send);
        for (int send = 0; send < 2 && i + 1 < STEPS; send++)
            steps[send] = begin_step(context, ways[send], i + 1, send);
    }
    p->stop(ways[0]);
    p->stop(ways[1]);
}

int main(int argc, char **argv)
{
    struct sigaction on = {.sa_handler = on_term};
    uint64_t number = 1, odd = 0;
    void *context = NULL;
    int rank, ranks, fd, mask = 0;
    struct driver d;
    bool never;

    if (argc < 7 || (argc != 7 && argc != 9)) {
        fprintf(stderr, "usage: together PLUGIN RANK RANKS FILE COMM PAUSE_MS [other|never N]\n");
        return 2;
    }
    rank = atoi(argv[2]);
    ranks = atoi(argv[3]);
    fd = open(argv[4], O_RDWR | O_CLOEXEC);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (rank < 0 || ranks < 1 || ranks > RANKS_MAX || rank >= ranks || shared == MAP_FAILED)
        return 2;
    never = argc == 9 && strcmp(argv[7], "never") == 0;
    odd = argc == 9 ? strtoull(argv[8], NULL, 10) : 0;
    sigaction(SIGTERM, &on, NULL);
    driver_load(&d, argv[1]);
    p = d.v5;
    if (p->init(&context, strtoull(argv[5], NULL, 16), &mask, "world", 2, ranks, rank, NULL))
        return 1;
    for (; !over; number++) {
        while (never && number == odd && !over)
            rest(50);
        if (!over)
            operation(context, rank, ranks, number, number == odd);
        if (!over)
            rest(atol(argv[6]));
    }
    p->finalize(context);
    return 0;
}
