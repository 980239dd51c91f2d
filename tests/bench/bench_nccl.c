// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/nccl/driver.h"
#include "tests/nccl/reader.h"

/*
 * bench_nccl PLUGIN: what one call of NCCL costs, against a plugin that does nothing, with the
 * agent's reading parts at work on another core; and what one costs that reports a state which the
 * step is in already, as NCCL does at each poll of a peer that has no room. --quiet runs the stream
 * alone between two marks for strace(1), which shows the system calls that it makes.
 */

#define CHANNELS    2
#define STEPS       8
#define BATCH       40
#define BATCHES     1500
#define POLLS       100000
#define POLL_ROUNDS 51
#define CALLS       (BATCH * (2 + 2 * CHANNELS * (2 + 4 * STEPS)))

static char socket_path[108];
static uint32_t *times;
static size_t timed;

#if defined(__x86_64__)
static uint64_t ticks(void)
{
    unsigned unused;

    return __builtin_ia32_rdtscp(&unused);
}
#else
static uint64_t ticks(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
#endif

static double ns_per_tick(void)
{
    const struct timespec wait = {0, 50000000};
    struct timespec a, b;
    uint64_t from, to;

    clock_gettime(CLOCK_MONOTONIC, &a);
    from = ticks();
    nanosleep(&wait, NULL);
    to = ticks();
    clock_gettime(CLOCK_MONOTONIC, &b);
    return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) /
           (double)(to - from);
}

static int empty_init(void **context, uint64_t id, int *mask, const char *name, int nodes,
                      int ranks, int rank, ft_nccl_logger logger)
{
    (void)id;
    (void)name;
    (void)nodes;
    (void)ranks;
    (void)rank;
    (void)logger;
    *context = &socket_path;
    *mask = 0;
    return 0;
}

static int empty_start(void *context, void **handle, struct ft_nccl_event_v5 *event)
{
    (void)event;
    *handle = context;
    return 0;
}

static int empty_stop(void *handle)
{
    (void)handle;
    return 0;
}

static int empty_state(void *handle, int state, union ft_nccl_state *args)
{
    (void)handle;
    (void)state;
    (void)args;
    return 0;
}

static const struct ft_nccl_plugin_v5 empty = {"nothing",  empty_init,  empty_start,
                                               empty_stop, empty_state, empty_stop};
static const struct ft_nccl_plugin_v5 *measured;

static void note(uint64_t from)
{
    uint64_t span = ticks() - from;

    times[timed++] = span < UINT32_MAX ? (uint32_t)span : UINT32_MAX;
}

static int timed_start(void *context, void **handle, struct ft_nccl_event_v5 *event)
{
    uint64_t from = ticks();

    measured->start(context, handle, event);
    note(from);
    return 0;
}

static int timed_stop(void *handle)
{
    uint64_t from = ticks();

    measured->stop(handle);
    note(from);
    return 0;
}

static int timed_state(void *handle, int state, union ft_nccl_state *args)
{
    uint64_t from = ticks();

    measured->state(handle, state, args);
    note(from);
    return 0;
}

static const struct ft_nccl_plugin_v5 timing = {"timed",    NULL,        timed_start,
                                                timed_stop, timed_state, NULL};

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void stream(const struct ft_nccl_plugin_v5 *p, void *context, unsigned batches, bool rest)
{
    const struct timespec ms = {0, 1000000};

    for (unsigned b = 0; b < batches; b++) {
        for (unsigned i = 0; i < BATCH; i++)
            driver_ring(p, context, 0, 4, b, CHANNELS, STEPS, 65536);
        if (rest)
            nanosleep(&ms, NULL);
    }
}

static void pin(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

struct cost {
    double median, p99, p999, worst;
};

static struct cost measure(const struct ft_nccl_plugin_v5 *p, void *context, double ns)
{
    struct cost cost;

    measured = p;
    stream(p, context, 10, true);
    timed = 0;
    stream(&timing, context, BATCHES, true);
    qsort(times, timed, sizeof(*times), by_size);
    cost.median = times[timed / 2] * ns;
    cost.p99 = times[(size_t)((double)timed * 0.99)] * ns;
    cost.p999 = times[(size_t)((double)timed * 0.999)] * ns;
    cost.worst = times[timed - 1] * ns;
    return cost;
}

/* Of a step that waits for its peer's room. The median of rounds, each the mean of its calls. */
static double measure_polls(const struct ft_nccl_plugin_v5 *p, void *context)
{
    struct ft_nccl_event_v5 e = {.type = FT_NCCL_PROXY_OP};
    void *proxy = NULL, *step = NULL;
    double rounds[POLL_ROUNDS], ns = ns_per_tick();

    e.u.proxy_op.pid = getpid();
    e.u.proxy_op.is_send = 1;
    p->start(context, &proxy, &e);
    e = (struct ft_nccl_event_v5){.type = FT_NCCL_PROXY_STEP, .parent = proxy};
    p->start(context, &step, &e);
    p->state(step, FT_NCCL_STEP_SEND_GPU_WAIT, NULL);
    for (int i = 0; i < POLL_ROUNDS; i++) {
        uint64_t from = ticks();

        for (int k = 0; k < POLLS; k++)
            p->state(step, FT_NCCL_STEP_SEND_PEER_WAIT, NULL);
        rounds[i] = (double)(ticks() - from) * ns / POLLS;
    }
    p->stop(step);
    p->stop(proxy);
    qsort(rounds, POLL_ROUNDS, sizeof(*rounds), by_time);
    return rounds[POLL_ROUNDS / 2];
}

static void bench(const struct ft_nccl_plugin_v5 *p, void *context)
{
    double ns = ns_per_tick();
    struct cost nothing, ours;
    void *none;
    int mask;

    times = malloc(sizeof(*times) * CALLS * BATCHES);
    if (!times)
        exit(1);
    memset(times, 0, sizeof(*times) * CALLS * BATCHES);
    empty.init(&none, 0, &mask, NULL, 1, 1, 0, NULL);
    nothing = measure(&empty, none, ns);
    ours = measure(p, context, ns);
    printf("nccl: %zu calls each, ns a call   median    p99  p99.9    worst\n", timed);
    printf("  a plugin that does nothing  %11.0f %6.0f %6.0f %8.0f\n", nothing.median, nothing.p99,
           nothing.p999, nothing.worst);
    printf("  fabrictrace                 %11.0f %6.0f %6.0f %8.0f\n", ours.median, ours.p99,
           ours.p999, ours.worst);
    printf("  the difference              %11.0f %6.0f %6.0f\n", ours.median - nothing.median,
           ours.p99 - nothing.p99, ours.p999 - nothing.p999);
    printf("  a state that stays, ns a call: %.1f, of a plugin that does nothing %.1f\n",
           measure_polls(p, context), measure_polls(&empty, none));
}

static void mark(const char *text)
{
    if (write(-1, text, strlen(text)) != -1)
        exit(1);
}

int main(int argc, char **argv)
{
    bool quiet = argc > 2 && strcmp(argv[2], "--quiet") == 0;
    struct reader_totals totals = {0};
    struct reader *reader;
    struct driver d;
    void *context;
    int mask = 0;

    if (argc < 2) {
        fprintf(stderr, "usage: bench_nccl PLUGIN [--quiet]\n");
        return 2;
    }
    snprintf(socket_path, sizeof(socket_path), "/tmp/ft-nccl-bench.%d", (int)getpid());
    setenv("FABRICTRACE_SOCKET", socket_path, 1);
    if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
        pin(1);
    reader = reader_start(socket_path);
    driver_load(&d, argv[1]);
    if (d.v5->init(&context, 1, &mask, "bench", 1, 4, 0, NULL))
        return 1;
    reader_wait_connected(reader);
    if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
        pin(0);
    if (quiet) {
        stream(d.v5, context, 1, false);
        mark("steady begins");
        stream(d.v5, context, 20, false);
        mark("steady ends");
    } else {
        bench(d.v5, context);
    }
    reader_wait_idle(reader);
    d.v5->finalize(context);
    reader_stop(reader, true, &totals);
    if (!quiet)
        printf("  read beside it: %llu of %llu events, %llu dropped for a full ring\n",
               (unsigned long long)totals.reported, (unsigned long long)totals.rings.events,
               (unsigned long long)totals.rings.drops[FT_DROP_RING_FULL]);
    free(times);
    return 0;
}
