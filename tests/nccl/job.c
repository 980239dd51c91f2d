// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "agent/nccl/segment.h"
#include "tests/nccl/driver.h"

/*
 * job PLUGIN RANK RANKS SECONDS PAUSE_US [tree|slow STEP_US|rate CHANNELS STEPS]: one rank of a
 * make-believe training job. AllReduce after AllReduce over a ring, or over a binary tree, until
 * the time is over or SIGTERM. Then the longest call, in ns, and how many were slow: those that
 * waited for something or took more than 10 us of the processor, not those that another process was
 * let in front of. With slow, each step over the ring takes so long. With rate, one operation over
 * a ring begins every PAUSE_US, late ones one behind the other, and no call is timed.
 *
 * job layout: how the memory is laid out that it shares with the agent, as JSON.
 */

#define CHANNELS 2
#define STEPS    4
#define BYTES    65536

static struct timespec started;
static struct timespec step_pause;
static uint64_t slow, calls, longest_ns;
static volatile sig_atomic_t over;
static const struct ft_nccl_plugin_v5 *real;

static uint64_t ns_since(const struct timespec *from)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)(now.tv_sec - from->tv_sec) * 1000000000u + (uint64_t)now.tv_nsec -
           (uint64_t)from->tv_nsec;
}

static void on_term(int number)
{
    (void)number;
    over = 1;
}

struct moment {
    struct timespec wall;
    uint64_t cpu_ns;
    long waits;
};

static struct moment now(void)
{
    struct moment m;
    struct timespec cpu;
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    m.waits = usage.ru_nvcsw;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    m.cpu_ns = (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec;
    clock_gettime(CLOCK_MONOTONIC, &m.wall);
    return m;
}

static void note(const struct moment *from)
{
    uint64_t ns = ns_since(&from->wall);
    struct moment to = now();

    calls++;
    slow += to.cpu_ns - from->cpu_ns > 10000 || to.waits > from->waits;
    if (ns > longest_ns)
        longest_ns = ns;
}

static int timed_start(void *context, void **handle, struct ft_nccl_event_v5 *event)
{
    struct moment from = now();

    real->start(context, handle, event);
    note(&from);
    return 0;
}

static int timed_stop(void *handle)
{
    struct moment from = now();

    real->stop(handle);
    note(&from);
    return 0;
}

static int timed_state(void *handle, int state, union ft_nccl_state *args)
{
    struct moment from = now();

    real->state(handle, state, args);
    note(&from);
    if (step_pause.tv_nsec)
        nanosleep(&step_pause, NULL);
    return 0;
}

static const struct ft_nccl_plugin_v5 timed = {"timed",    NULL,        timed_start,
                                               timed_stop, timed_state, NULL};

/* Each channel has half the data: up to the parent, down to the children. */
static void tree(void *context, int rank, int ranks, uint64_t sequence)
{
    struct ft_nccl_event_v5 e = {.type = FT_NCCL_COLL, .rank = rank};
    int peers[3] = {rank ? (rank - 1) / 2 : -1, 2 * rank + 1, 2 * rank + 2};
    void *handle = NULL;

    e.u.coll.sequence = sequence;
    e.u.coll.func = "AllReduce";
    e.u.coll.count = CHANNELS * STEPS * BYTES / 4;
    e.u.coll.datatype = "ncclFloat32";
    e.u.coll.channels = CHANNELS;
    e.u.coll.algo = "TREE";
    e.u.coll.proto = "SIMPLE";
    timed.start(context, &handle, &e);
    timed.stop(handle);
    for (int c = 0; c < CHANNELS; c++)
        for (int p = 0; p < 3; p++)
            for (int send = 0; send < 2 && peers[p] >= 0 && peers[p] < ranks; send++)
                driver_proxy(&timed, context, handle, peers[p], c, send, STEPS, BYTES);
}

/* So many operations a second, however long each takes: as many as the time has room for. */
static uint64_t run_at_rate(void *context, int rank, int ranks, const struct timespec *pause,
                            int channels, int steps, double seconds)
{
    uint64_t sequence = 1;
    struct timespec next;

    clock_gettime(CLOCK_MONOTONIC, &next);
    while (!over && (double)ns_since(&started) < seconds * 1e9) {
        calls += driver_ring(real, context, rank, ranks, sequence++, channels, steps, BYTES);
        next.tv_nsec += pause->tv_nsec;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    return sequence;
}

/* For whoever makes such memory by hand. */
static int print_layout(void)
{
    printf("{\"magic\":%llu,\"version\":%d,\"rings\":%d,\"slots\":%d,\"comms\":%d,\"open\":%d,",
           (unsigned long long)FT_SEGMENT_MAGIC, FT_SEGMENT_VERSION, FT_SEGMENT_RINGS,
           FT_SEGMENT_SLOTS, FT_SEGMENT_COMMS, FT_SEGMENT_OPEN);
    printf("\"bytes\":%zu,\"counters_at\":%zu,\"ring_at\":%zu,\"ring_bytes\":%zu,"
           "\"open_at\":%zu,\"flight_at\":%zu,\"flight_bytes\":%zu,\"record_at\":%zu,"
           "\"record_bytes\":%zu}\n",
           sizeof(struct ft_segment), offsetof(struct ft_segment, outside_events),
           offsetof(struct ft_segment, ring), sizeof(struct ft_segment_ring),
           offsetof(struct ft_segment_ring, open), offsetof(struct ft_segment, flight),
           sizeof(struct ft_segment_flight), offsetof(struct ft_segment, record),
           sizeof(struct ft_segment_record));
    return 0;
}

int main(int argc, char **argv)
{
    struct timespec pause = {0};
    int rank, ranks, mask = 0;
    uint64_t sequence = 0;
    struct driver d;
    double seconds;
    void *context;
    bool trees;

    if (argc == 2 && strcmp(argv[1], "layout") == 0)
        return print_layout();
    if (argc < 6) {
        fprintf(stderr, "usage: job PLUGIN RANK RANKS SECONDS PAUSE_US [tree|slow STEP_US|rate "
                        "CHANNELS STEPS]\n");
        return 2;
    }
    rank = atoi(argv[2]);
    ranks = atoi(argv[3]);
    seconds = atof(argv[4]);
    pause.tv_nsec = atol(argv[5]) * 1000;
    trees = argc > 6 && strcmp(argv[6], "tree") == 0;
    step_pause.tv_nsec = argc > 7 && strcmp(argv[6], "slow") == 0 ? atol(argv[7]) * 1000 : 0;
    signal(SIGTERM, on_term);
    driver_load(&d, argv[1]);
    real = d.v5;
    if (real->init(&context, 0xfab, &mask, "world", ranks, ranks, rank, NULL))
        return 1;
    /* A thread's first call claims its ring: not measured. */
    calls = driver_ring(real, context, rank, ranks, sequence++, 1, 1, 0);
    clock_gettime(CLOCK_MONOTONIC, &started);
    if (argc > 8 && strcmp(argv[6], "rate") == 0)
        sequence = run_at_rate(context, rank, ranks, &pause, atoi(argv[7]), atoi(argv[8]), seconds);
    while (!over && (double)ns_since(&started) < seconds * 1e9) {
        if (trees)
            tree(context, rank, ranks, sequence++);
        else
            driver_ring(&timed, context, rank, ranks, sequence++, CHANNELS, 2 * (ranks - 1) * STEPS,
                        1048576 * 4 / ranks / CHANNELS / STEPS);
        if (pause.tv_nsec)
            nanosleep(&pause, NULL);
    }
    real->finalize(context);
    printf("{\"rank\":%d,\"operations\":%llu,\"calls\":%llu,\"slow\":%llu,\"longest_ns\":%llu}\n",
           rank, (unsigned long long)sequence, (unsigned long long)calls, (unsigned long long)slow,
           (unsigned long long)longest_ns);
    return 0;
}
