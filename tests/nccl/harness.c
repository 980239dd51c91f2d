// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/nccl/driver.h"
#include "tests/nccl/reader.h"

/*
 * harness PLUGIN [ROUNDS | chain PLUGIN]: drives the plugin as NCCL does, also as it should not,
 * with the agent's reading parts at the other end, and holds the books: calls in = events reported
 * + drops counted.
 */

#define COMM    UINT64_C(0xc0ffee)
#define THREADS 8

static char socket_path[108];
static int failures, checks;

#define EXPECT(what, cond, ...)                                                                    \
    do {                                                                                           \
        checks++;                                                                                  \
        if (!(cond)) {                                                                             \
            failures++;                                                                            \
            printf("FAIL %s: %s: ", what, #cond);                                                  \
            printf(__VA_ARGS__);                                                                   \
            printf("\n");                                                                          \
        }                                                                                          \
    } while (0)

#define EQUAL(what, a, b)                                                                          \
    EXPECT(what, (uint64_t)(a) == (uint64_t)(b), "%llu != %llu", (unsigned long long)(a),          \
           (unsigned long long)(b))

static uint64_t dropped(const struct ft_rings_stats *s)
{
    uint64_t sum = s->outside;

    for (int d = 0; d < FT_DROPS; d++)
        sum += s->drops[d];
    return sum;
}

/* The books of a process: the plugin's counters run on from test to test, so differences count. */
struct books {
    struct ft_rings_stats before;
};

static void balance(const char *what, struct books *books, const struct reader_totals *t,
                    uint64_t calls)
{
    const struct ft_rings_stats *now = &t->rings;
    uint64_t events = now->events - books->before.events;
    uint64_t drops = dropped(now) - dropped(&books->before);

    EQUAL(what, events, calls);
    EXPECT(what, events == t->reported + t->stray + t->lost + drops,
           "%llu events, %llu reported, %llu stray, %llu lost, %llu dropped",
           (unsigned long long)events, (unsigned long long)t->reported,
           (unsigned long long)t->stray, (unsigned long long)t->lost, (unsigned long long)drops);
    printf("  %-24s %9llu calls = %9llu reported + %llu stray + %llu lost + %llu dropped\n", what,
           (unsigned long long)calls, (unsigned long long)t->reported, (unsigned long long)t->stray,
           (unsigned long long)t->lost, (unsigned long long)drops);
    books->before = *now;
}

static uint64_t drops_of(const struct books *before, const struct reader_totals *t,
                         enum ft_segment_drop d)
{
    return t->rings.drops[d] - before->before.drops[d];
}

static void *open_comm(const struct ft_nccl_plugin_v5 *p, uint64_t id, int ranks, int rank)
{
    void *context = NULL;
    int mask = 0;

    if (p->init(&context, id, &mask, "harness", 2, ranks, rank, NULL) != FT_NCCL_SUCCESS ||
        !context) {
        printf("init failed\n");
        exit(1);
    }
    EQUAL("mask", mask & (2 | 4 | 8 | 16 | 64), 2 | 4 | 8 | 16);
    return context;
}

static void check_ring(const struct driver *d, struct books *books)
{
    struct reader *r = reader_start(socket_path);
    struct reader_totals t = {0};
    void *context = open_comm(d->v5, COMM, 4, 1);
    uint64_t calls = 0;

    reader_wait_connected(r);
    for (uint64_t i = 0; i < 10; i++)
        calls += driver_ring(d->v5, context, 1, 4, i, 2, 8, 65536);
    d->v5->finalize(context);
    reader_stop(r, true, &t);
    EQUAL("ring", t.operations, 10);
    EQUAL("ring", t.sent_bytes, 10 * 2 * 8 * 65536);
    EQUAL("ring", t.received_bytes, 10 * 2 * 8 * 65536);
    EQUAL("ring", t.last.comm_id, COMM);
    EQUAL("ring", t.last.rank, 1);
    EQUAL("ring", t.last.op.sequence, 9);
    EXPECT("ring", strcmp(t.last.op.func, "AllReduce") == 0 && strcmp(t.last.op.algo, "RING") == 0,
           "%s %s", t.last.op.func, t.last.op.algo);
    EQUAL("ring", ft_collective_bytes(&t.last), 4 * 1048576);
    EQUAL("ring", dropped(&t.rings), dropped(&books->before));
    balance("ring", books, &t, calls);
}

static void check_v4(const struct driver *d, struct books *books)
{
    struct reader *r = reader_start(socket_path);
    struct ft_nccl_event_v4 e = {.type = FT_NCCL_P2P, .rank = 3};
    struct reader_totals t = {0};
    void *context = NULL, *op = NULL, *proxy = NULL;
    int mask = 0;

    d->v4->init(&context, &mask, NULL, COMM, 2, 8, 3, NULL);
    e.u.p2p.func = "Send";
    e.u.p2p.count = 100;
    e.u.p2p.datatype = "ncclFloat16";
    e.u.p2p.peer = 5;
    d->v4->start(context, &op, &e);
    d->v4->stop(op);
    e = (struct ft_nccl_event_v4){.type = FT_NCCL_PROXY_OP, .parent = op};
    e.u.proxy_op.pid = getpid();
    e.u.proxy_op.peer = 5;
    e.u.proxy_op.is_send = 1;
    d->v4->start(context, &proxy, &e);
    d->v4->stop(proxy);
    reader_wait_connected(r);
    d->v4->finalize(context);
    reader_stop(r, true, &t);
    EXPECT("version 4", t.last.p2p && t.last.op.peer == 5, "peer %d", t.last.op.peer);
    EQUAL("version 4", ft_collective_bytes(&t.last), 200);
    balance("version 4", books, &t, 4);
}

/* Each must be survived, and counted. */
static void check_oddities(const struct driver *d, struct books *books)
{
    const struct ft_nccl_plugin_v5 *p = d->v6;
    struct ft_nccl_event_v5 e = {.type = FT_NCCL_PROXY_OP};
    struct reader *r = reader_start(socket_path);
    struct reader_totals t = {0};
    void *context = open_comm(p, COMM, 4, 0), *handle = NULL, *step = NULL;
    uint64_t calls = 0;

    reader_wait_connected(r);
    p->stop(NULL);
    p->stop((void *)(uintptr_t)0x7f0012345678);
    p->state(NULL, 9, NULL);
    p->state((void *)(uintptr_t)UINT64_C(0xf72fffffffffffff), 9, NULL);
    p->stop((void *)(uintptr_t)UINT64_C(0xf73fffffffffffff));
    calls += 5;

    /* An unknown newer kind is counted; calls of the interface and launches are not. */
    e.type = UINT64_C(1) << 40;
    p->start(context, &handle, &e);
    for (e.type = 1 << 8; !handle && e.type <= 1 << 11; e.type <<= 1)
        p->start(context, &handle, &e);
    EXPECT("unknown kind", !handle, "%p", handle);
    /* A communicator that is none of ours. */
    e.type = FT_NCCL_COLL;
    p->start(NULL, &handle, &e);
    p->start((char *)context + 1, &handle, &e);
    calls += 3;
    EXPECT("foreign context", !handle, "%p", handle);

    /* PXN: the parent is another process's address. */
    e = (struct ft_nccl_event_v5){.type = FT_NCCL_PROXY_OP, .parent = (void *)16, .rank = 2};
    e.u.proxy_op.pid = getpid() + 1;
    e.u.proxy_op.is_send = 1;
    p->start(context, &handle, &e);
    /* Its step is stopped twice and used after its stop; then the parent twice. */
    e = (struct ft_nccl_event_v5){.type = FT_NCCL_PROXY_STEP, .parent = handle};
    p->start(context, &step, &e);
    p->stop(step);
    p->stop(step);
    p->state(step, FT_NCCL_STEP_SEND_WAIT, NULL);
    p->stop(handle);
    p->stop(handle);
    p->start(context, &step, &e);
    calls += 8;
    EXPECT("step of a stopped parent", !step, "%p", step);

    /* A step without a parent; more steps at once than NCCL has. */
    e.parent = NULL;
    p->start(context, &step, &e);
    e = (struct ft_nccl_event_v5){.type = FT_NCCL_PROXY_OP};
    p->start(context, &handle, &e);
    e = (struct ft_nccl_event_v5){.type = FT_NCCL_PROXY_STEP, .parent = handle};
    for (int i = 0; i < 20; i++)
        p->start(context, &step, &e);
    calls += 22;
    /* Never stopped: communicator abort. Finalized twice. */
    p->finalize(context);
    p->finalize(context);
    p->finalize(NULL);
    reader_stop(r, true, &t);
    /* One has a foreign parent, one has none. */
    EQUAL("oddities", t.foreign, 2);
    EQUAL("oddities", t.incomplete, 1);
    EQUAL("oddities", drops_of(books, &t, FT_DROP_UNKNOWN), 1);
    EQUAL("oddities", drops_of(books, &t, FT_DROP_CONTEXT), 2);
    EQUAL("oddities", drops_of(books, &t, FT_DROP_POOL_FULL), 4);
    EQUAL("oddities", drops_of(books, &t, FT_DROP_STALE), 10);
    balance("oddities", books, &t, calls);
    /* Late calls of the transport's threads: counted, though nobody is there to see it. */
    p->stop(handle);
    p->start(context, &handle, &e);
    books->before.events += 2;
    books->before.drops[FT_DROP_STALE] += 2;
}

/* NCCL reports a wait for the peer at every poll: one event, whose time stays. */
static void check_polls(const struct driver *d, struct books *books)
{
    const struct ft_nccl_plugin_v5 *p = d->v5;
    struct ft_nccl_event_v5 e = {.type = FT_NCCL_COLL};
    struct reader *r = reader_start(socket_path);
    struct reader_totals t = {0};
    void *context = open_comm(p, COMM, 4, 0), *coll = NULL, *proxy = NULL, *step = NULL;

    reader_wait_connected(r);
    p->start(context, &coll, &e);
    p->stop(coll);
    e = (struct ft_nccl_event_v5){.type = FT_NCCL_PROXY_OP, .parent = coll};
    e.u.proxy_op.pid = getpid();
    e.u.proxy_op.is_send = 1;
    p->start(context, &proxy, &e);
    for (int i = 0; i < 100; i++)
        p->state(proxy, FT_NCCL_PROXY_IN_PROGRESS, NULL);
    e = (struct ft_nccl_event_v5){.type = FT_NCCL_PROXY_STEP, .parent = proxy};
    p->start(context, &step, &e);
    p->state(step, FT_NCCL_STEP_SEND_GPU_WAIT, NULL);
    for (int i = 0; i < 1000; i++)
        p->state(step, FT_NCCL_STEP_SEND_PEER_WAIT, NULL);
    p->state(step, FT_NCCL_STEP_SEND_WAIT, NULL);
    p->stop(step);
    /* Stale by now: each of these is an event that is dropped. */
    p->state(step, FT_NCCL_STEP_SEND_PEER_WAIT, NULL);
    p->state(step, FT_NCCL_STEP_SEND_PEER_WAIT, NULL);
    p->stop(proxy);
    p->state(proxy, FT_NCCL_PROXY_IN_PROGRESS, NULL);
    p->finalize(context);
    reader_stop(r, true, &t);
    EQUAL("polls", drops_of(books, &t, FT_DROP_STALE), 3);
    balance("polls", books, &t, 13);
}

static void check_qps_and_kernels(const struct driver *d, struct books *books)
{
    const struct ft_nccl_plugin_v5 *p = d->v5;
    struct ft_nccl_event_v5 e = {.type = FT_NCCL_COLL};
    struct ft_nccl_ib_qp qp = {.qp_number = 77};
    union ft_nccl_state args = {.kernel_ch.gpu_time_ns = 2000};
    struct reader *r = reader_start(socket_path);
    struct reader_totals t = {0};
    void *context, *coll = NULL, *proxy = NULL, *step = NULL, *kernel = NULL, *none = NULL;
    int mask = 0;

    setenv("FABRICTRACE_NCCL_KERNEL", "1", 1);
    p->init(&context, COMM, &mask, "kernels", 1, 2, 0, NULL);
    unsetenv("FABRICTRACE_NCCL_KERNEL");
    EXPECT("kernel events", mask & FT_NCCL_KERNEL_CH, "mask %d", mask);
    p->start(context, &coll, &e);
    e = (struct ft_nccl_event_v5){.type = FT_NCCL_KERNEL_CH, .parent = coll};
    p->start(context, &kernel, &e);
    p->state(kernel, FT_NCCL_KERNEL_CH_STOP, &args);
    p->stop(kernel);
    e = (struct ft_nccl_event_v5){.type = FT_NCCL_PROXY_OP, .parent = coll};
    e.u.proxy_op.pid = getpid();
    p->start(context, &proxy, &e);
    e = (struct ft_nccl_event_v5){.type = FT_NCCL_PROXY_STEP, .parent = proxy};
    p->start(context, &step, &e);
    e = (struct ft_nccl_event_v5){.type = FT_NCCL_NET_PLUGIN, .parent = step};
    e.u.net_plugin.id = FT_NCCL_NET_IB_QP;
    e.u.net_plugin.data = &qp;
    p->start(context, &none, &e);
    p->stop(step);
    p->stop(proxy);
    p->stop(coll);
    reader_wait_connected(r);
    p->finalize(context);
    reader_stop(r, true, &t);
    EQUAL("queue pairs", t.qps, 1);
    EQUAL("queue pairs", t.reports, 1);
    balance("kernels, queue pairs", books, &t, 10);
}

struct worker {
    pthread_t thread;
    const struct driver *d;
    void *context;
    void *shared; /* a proxy operation that every thread starts steps of */
    int rank, rounds;
    uint64_t calls;
};

static void *work(void *arg)
{
    struct worker *w = arg;

    for (int i = 0; i < w->rounds; i++) {
        struct ft_nccl_event_v5 e = {.type = FT_NCCL_PROXY_STEP, .parent = w->shared};
        void *step = NULL;

        w->calls += driver_ring(w->d->v5, w->context, w->rank, THREADS, (uint64_t)i, 2, 4, 4096);
        w->d->v5->start(w->context, &step, &e);
        w->calls++;
        if (step) {
            w->d->v5->stop(step);
            w->calls++;
        }
    }
    return NULL;
}

static uint64_t run_workers(const struct driver *d, void **contexts, void *shared, int rounds)
{
    struct worker workers[THREADS];
    uint64_t calls = 0;

    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){
            .d = d, .context = contexts[i % 2], .shared = shared, .rank = i, .rounds = rounds};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            exit(1);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        calls += workers[i].calls;
    }
    return calls;
}

static uint64_t run_shared(const struct driver *d, void **contexts, int rounds)
{
    struct ft_nccl_event_v5 e = {.type = FT_NCCL_PROXY_OP};
    void *shared = NULL;
    uint64_t calls;

    d->v5->start(contexts[0], &shared, &e);
    calls = 2 + run_workers(d, contexts, shared, rounds);
    d->v5->stop(shared);
    return calls;
}

/* Two communicators, eight threads, a proxy operation that all of them are at. */
static void check_threads(const struct driver *d, struct books *books, int rounds)
{
    struct reader *r = reader_start(socket_path);
    struct reader_totals t = {0};
    void *contexts[2] = {open_comm(d->v5, 1, THREADS, 0), open_comm(d->v5, 2, THREADS, 1)};
    uint64_t calls;

    reader_wait_connected(r);
    calls = run_shared(d, contexts, rounds);
    d->v5->finalize(contexts[0]);
    /* The second is finalized only after the reader has everything. */
    reader_wait_idle(r);
    d->v5->finalize(contexts[1]);
    reader_stop(r, true, &t);
    EXPECT("threads", t.reported > 0, "nothing was reported");
    balance("threads", books, &t, calls);
}

/* Nobody reads: the rings fill, the job goes on. */
static void check_absent(const struct driver *d, struct books *books, int rounds)
{
    void *contexts[2] = {open_comm(d->v5, 1, THREADS, 0), open_comm(d->v5, 2, THREADS, 1)};
    struct reader_totals t = {0};
    uint64_t calls = run_shared(d, contexts, rounds);
    struct reader *r = reader_start(socket_path);

    reader_wait_connected(r);
    reader_wait_idle(r);
    d->v5->finalize(contexts[0]);
    d->v5->finalize(contexts[1]);
    reader_stop(r, true, &t);
    EXPECT("absent", drops_of(books, &t, FT_DROP_RING_FULL) > 0 || rounds < 300, "nothing dropped");
    balance("agent absent", books, &t, calls);
}

static void *keep_working(void *arg)
{
    struct worker *w = arg;

    while (!__atomic_load_n(&w->rounds, __ATOMIC_RELAXED))
        w->calls += driver_ring(w->d->v5, w->context, 0, 4, 1, 1, 4, 4096);
    return NULL;
}

/* Killed and started again 20 times, as the agent would be. */
static void check_restarts(const struct driver *d, struct books *books)
{
    struct worker w = {.d = d, .context = open_comm(d->v5, COMM, 4, 0)};
    struct reader_totals t = {0};
    struct reader *r;

    if (pthread_create(&w.thread, NULL, keep_working, &w))
        exit(1);
    for (int i = 0; i < 20; i++) {
        const struct timespec a_while = {0, 20000000};

        r = reader_start(socket_path);
        reader_wait_connected(r);
        nanosleep(&a_while, NULL);
        reader_stop(r, false, &t);
    }
    r = reader_start(socket_path);
    reader_wait_connected(r);
    __atomic_store_n(&w.rounds, 1, __ATOMIC_RELAXED);
    pthread_join(w.thread, NULL);
    reader_wait_idle(r);
    d->v5->finalize(w.context);
    reader_stop(r, true, &t);
    EQUAL("restarts", t.connections, 21);
    EXPECT("restarts", t.lost > 0, "a killed reader lost nothing?");
    balance("20 restarts", books, &t, w.calls);
}

/* The child must neither write its parent's rings nor hang. */
static void check_fork(const struct driver *d, struct books *books)
{
    struct reader *r = reader_start(socket_path);
    struct reader_totals t = {0};
    void *context = open_comm(d->v5, COMM, 4, 0), *again = NULL;
    uint64_t calls = driver_ring(d->v5, context, 0, 4, 0, 1, 4, 4096);
    int status = -1;
    pid_t pid;

    reader_wait_connected(r);
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        int mask;

        alarm(100);
        setenv("FABRICTRACE_SOCKET", "/nonexistent", 1);
        driver_ring(d->v5, context, 0, 4, 1, 1, 4, 4096);
        d->v5->finalize(context);
#ifdef __SANITIZE_THREAD__
        _exit(0); /* which knows no new threads after a fork */
#endif
        if (d->v5->init(&again, COMM, &mask, "child", 1, 4, 0, NULL) != 0)
            _exit(1);
        driver_ring(d->v5, again, 0, 4, 1, 1, 4, 4096);
        d->v5->finalize(again);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    EXPECT("fork", WIFEXITED(status) && WEXITSTATUS(status) == 0, "child's status %x", status);
    calls += driver_ring(d->v5, context, 0, 4, 2, 1, 4, 4096);
    d->v5->finalize(context);
    reader_stop(r, true, &t);
    EQUAL("fork", t.operations, 2);
    balance("fork", books, &t, calls);
}

/* Communicators come and go, some are never finalized, more than there is room for. */
static void check_many(const struct driver *d, struct books *books)
{
    struct reader *r = reader_start(socket_path);
    struct reader_totals t = {0};
    void *contexts[FT_SEGMENT_COMMS], *context = NULL;
    uint64_t calls = 0;
    int mask;

    for (int i = 0; i < FT_SEGMENT_COMMS; i++)
        contexts[i] = open_comm(d->v5, (uint64_t)i, 2, 0);
    EXPECT("many", d->v5->init(&context, 1, &mask, NULL, 1, 2, 0, NULL) != FT_NCCL_SUCCESS,
           "one too many was taken");
    reader_wait_connected(r);
    for (int i = 0; i < FT_SEGMENT_COMMS; i++)
        calls += driver_ring(d->v5, contexts[i], 0, 2, 0, 1, 1, 1);
    for (int i = 0; i < FT_SEGMENT_COMMS; i++)
        d->v5->finalize(contexts[i]);
    reader_stop(r, true, &t);
    EQUAL("many", t.rings.comms_refused, 1);
    balance("many communicators", books, &t, calls);
}

static pthread_barrier_t together;

static void *open_and_close(void *arg)
{
    const struct driver *d = arg;
    void *context = NULL;
    int mask = 0;

    pthread_barrier_wait(&together);
    d->v5->init(&context, COMM, &mask, "together", 1, 2, 0, NULL);
    d->v5->finalize(context);
    return NULL;
}

/* Communicators are opened in several threads at once: one of them loads the other plugin. */
static void open_together(struct driver *d)
{
    pthread_t threads[THREADS];

    pthread_barrier_init(&together, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, open_and_close, d);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* Another plugin behind ours: both see everything, each with its own contexts and handles. In a
 * process of its own, since NCCL decides it once. */
static int check_chain(const char *plugin, const char *behind)
{
    struct reader *r = reader_start(socket_path);
    struct reader_totals t = {0};
    struct ft_nccl_event_v5 e = {.type = FT_NCCL_GROUP};
    struct books books = {0};
    struct driver d;
    const _Atomic uint64_t *counts;
    void *context = NULL, *handle = NULL, *other;
    uint64_t calls = 0;
    int mask = 0;

    setenv("FABRICTRACE_NCCL_CHAIN", behind, 1);
    driver_load(&d, plugin);
    open_together(&d);
    d.v5->init(&context, COMM, &mask, "chain", 2, 4, 0, NULL);
    EXPECT("chain", mask & FT_NCCL_GROUP, "mask %d", mask);
    /* The connection of those before has ended, which the reader may not have seen. */
    reader_wait_idle(r);
    /* Only the other one asked for groups. */
    d.v5->start(context, &handle, &e);
    EXPECT("chain", handle, "no handle for the other's event");
    d.v5->stop(handle);
    for (uint64_t i = 0; i < 20; i++)
        calls += driver_ring(d.v5, context, 0, 4, i, 1, 4, 4096);
    /* What is no number of ours goes to neither. */
    d.v5->stop((void *)(uintptr_t)UINT64_C(0xf8ffffffffffffff));
    d.v5->finalize(context);
    reader_stop(r, true, &t);
    balance("chain", &books, &t, calls);
    other = dlopen(behind, RTLD_NOW | RTLD_NOLOAD);
    counts = other ? dlsym(other, "counting") : NULL;
    EXPECT("chain", counts, "the other plugin was not loaded");
    if (counts) {
        EQUAL("chain: inits", counts[0], 1 + THREADS);
        EQUAL("chain: starts", counts[1], 1 + 20 * (1 + 2 + 2 * 4));
        EQUAL("chain: stops", counts[2], 1 + 20 * (1 + 2));
        EQUAL("chain: states", counts[3], 0);
        EQUAL("chain: finalizes", counts[4], 1 + THREADS);
        EQUAL("chain: wrong", counts[5], 0);
    }
    printf("%d checks, %d failed\n", checks, failures);
    return failures ? 1 : 0;
}

int main(int argc, char **argv)
{
    int scale = argc > 2 ? atoi(argv[2]) : 500;
    struct books books = {0};
    struct driver d;

    if (argc < 2) {
        fprintf(stderr, "usage: harness PLUGIN [ROUNDS | chain PLUGIN]\n");
        return 2;
    }
    snprintf(socket_path, sizeof(socket_path), "/tmp/ft-nccl-harness.%d", (int)getpid());
    setenv("FABRICTRACE_SOCKET", socket_path, 1);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 3 && strcmp(argv[2], "chain") == 0)
        return check_chain(argv[1], argv[3]);
    driver_load(&d, argv[1]);
    check_ring(&d, &books);
    check_v4(&d, &books);
    check_oddities(&d, &books);
    check_polls(&d, &books);
    check_qps_and_kernels(&d, &books);
    check_threads(&d, &books, scale);
    check_absent(&d, &books, scale);
    check_restarts(&d, &books);
    check_fork(&d, &books);
    check_many(&d, &books);
    /* NCCL closes the plugin after the last finalize; late calls come all the same. */
    dlclose(d.library);
    d.v5->stop((void *)(uintptr_t)UINT64_C(0xf720000000000000));
    printf("%d checks, %d failed\n", checks, failures);
    return failures ? 1 : 0;
}
