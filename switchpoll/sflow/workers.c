// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/sflow/workers.h"

#include <errno.h>
#include <linux/filter.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "switchpoll/sflow/udp.h"

#define NS_PER_MS     1000000
#define TICKS         4           /* an interval */
#define HANDOVER_MAX  (64u << 20) /* bytes of a thread that wait for the main loop */
#define MILLIS_EXPIRE 10000

/* Encoded records on their way to the main loop. */
struct batch {
    struct batch *next;
    struct ft_writer w;
    uint32_t records;
};

struct worker {
    struct ft_workers *owner;
    pthread_t thread;
    bool started;
    int wake_fd;
    atomic_bool stop;
    atomic_bool ended;

    /* Whoever needs the lock waits for this mutex first, so that a thread which takes it again and
     * again lets the main loop in. */
    pthread_mutex_t queue_lock;
    pthread_mutex_t lock; /* over udp, ingest, interval and forgetting */
    struct ft_udp *udp;
    struct ft_ingest *ingest;
    int64_t interval_ms; /* as configured */
    int64_t forget_ms;
    uint64_t drops_past; /* of sockets closed by a reload */
    uint64_t taken_past;

    struct ft_gather *gather; /* the thread's own */
    struct ft_wall expire_at;

    pthread_mutex_t handover; /* over what follows */
    struct batch *first, **last;
    size_t waiting_bytes;
    uint64_t lost; /* records dropped at the cap, not reported yet */
    struct ft_ingest_stats account;
    struct ft_workers_stats taken;
};

struct ft_workers {
    struct ft_output *output;
    struct ft_watch *watch;
    int ready_fd;
    char *listen;
    bool given; /* sockets of the service manager, one for each */
    size_t count;
    struct worker list[];
};

static void hold(struct worker *w)
{
    pthread_mutex_lock(&w->queue_lock);
    pthread_mutex_lock(&w->lock);
    pthread_mutex_unlock(&w->queue_lock);
}

static void let_go(struct worker *w)
{
    pthread_mutex_unlock(&w->lock);
}

static void poke(int fd)
{
    const uint64_t one = 1;

    /* Fails only when the count is at its top: then it wakes all the same. */
    if (write(fd, &one, sizeof(one)) < 0)
        return;
}

static void quiet(int fd)
{
    uint64_t count;

    if (read(fd, &count, sizeof(count)) < 0)
        return;
}

/* Thread: the worker's, or the main loop's once it has ended. */
static void hand_over(struct worker *w)
{
    uint32_t records = ft_gather_records(w->gather);
    struct batch *b = records ? calloc(1, sizeof(*b)) : NULL;
    bool fits;

    if (!records)
        return;
    pthread_mutex_lock(&w->handover);
    fits = b && w->waiting_bytes + ft_gather_packed(w->gather)->len <= HANDOVER_MAX;
    if (fits) {
        ft_gather_take(w->gather, &b->w);
        b->records = records;
        w->waiting_bytes += b->w.len;
        *w->last = b;
        w->last = &b->next;
    } else {
        w->lost += records;
    }
    pthread_mutex_unlock(&w->handover);
    if (!fits) {
        ft_gather_empty(w->gather);
        free(b);
    }
    poke(w->owner->ready_fd);
}

static void note_lost(struct worker *w, uint32_t records)
{
    if (!records)
        return;
    pthread_mutex_lock(&w->handover);
    w->lost += records;
    pthread_mutex_unlock(&w->handover);
}

/* All that there is, at the end of an interval. */
static void hand_over_all(struct worker *w)
{
    ft_gather_finish(w->gather);
    note_lost(w, ft_gather_lost(w->gather));
    hand_over(w);
}

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    struct worker *w = arg;
    int rc = ft_gather_add(w->gather, record);

    if (rc < 0)
        note_lost(w, 1);
    if (rc > 0)
        hand_over(w);
}

static void on_datagram(void *arg, const uint8_t *bytes, size_t len, struct ft_wall when)
{
    struct worker *w = arg;

    ft_ingest_datagram(w->ingest, bytes, len, when);
}

/* The account that others see. Under the lock, or when the thread has ended. */
static void report_lost(struct worker *w)
{
    struct ft_ingest_stats account;
    struct ft_udp_stats udp = {0};

    ft_ingest_stats(w->ingest, &account);
    if (w->udp)
        ft_udp_stats(w->udp, &udp);
    pthread_mutex_lock(&w->handover);
    w->account = account;
    w->taken = (struct ft_workers_stats){.datagrams = w->taken_past + udp.datagrams,
                                         .kernel_drops = w->drops_past + udp.kernel_drops,
                                         .buffer_bytes = udp.buffer_bytes};
    pthread_mutex_unlock(&w->handover);
}

static void tick(struct worker *w, struct ft_wall now)
{
    ft_ingest_tick(w->ingest, now);
    hand_over_all(w);
    if (now.ms >= w->expire_at.ms || now.ms < w->expire_at.ms - 2 * MILLIS_EXPIRE) {
        ft_ingest_expire(w->ingest, now, w->forget_ms);
        w->expire_at.ms = now.ms + MILLIS_EXPIRE;
    }
    report_lost(w);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct ft_mono ticked = ft_mono_now();
    struct pollfd fds[2] = {{.events = POLLIN}, {.fd = w->wake_fd, .events = POLLIN}};
    int64_t span_ms;
    int pause_ms = 0;

    hold(w);
    while (!atomic_load(&w->stop)) {
        struct ft_mono now;

        fds[0].fd = pause_ms ? -1 : ft_udp_fd(w->udp);
        span_ms = w->interval_ms / TICKS;
        let_go(w);
        poll(fds, 2, pause_ms && pause_ms < span_ms ? pause_ms : (int)span_ms);
        if (fds[1].revents)
            quiet(w->wake_fd);
        hold(w);
        pause_ms = ft_udp_take(w->udp);
        now = ft_mono_now();
        if (ft_mono_since_ns(now, ticked) >= span_ms * NS_PER_MS) {
            tick(w, ft_wall_now());
            ticked = now;
        }
    }
    ft_udp_drain(w->udp);
    ft_ingest_flush(w->ingest);
    hand_over_all(w);
    report_lost(w);
    let_go(w);
    atomic_store(&w->ended, true);
    poke(w->owner->ready_fd);
    return NULL;
}

/* Takes what the threads have ready. */
static void collect(void *arg)
{
    struct ft_workers *workers = arg;

    quiet(workers->ready_fd);
    for (size_t i = 0; i < workers->count; i++) {
        struct worker *w = &workers->list[i];
        struct batch *b, *next;
        uint64_t lost;

        pthread_mutex_lock(&w->handover);
        b = w->first;
        w->first = NULL;
        w->last = &w->first;
        w->waiting_bytes = 0;
        lost = w->lost;
        w->lost = 0;
        pthread_mutex_unlock(&w->handover);
        ft_output_lost(workers->output, lost);
        for (; b; b = next) {
            next = b->next;
            ft_output_add(workers->output, b->w.bytes, b->w.len, b->records);
            ft_writer_free(&b->w);
            free(b);
        }
    }
}

/* Chooses the socket: a hash of the agent address (sFlow v5 section 5, datagram header) modulo
 * their number. Offsets count from the UDP payload. A load past the end chooses the first. */
static int steer(int fd, uint32_t sockets)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4), /* 1: IPv4, 2: IPv6 */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 2, 2, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 8),
        BPF_STMT(BPF_JMP | BPF_JA, 1),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 20), /* the last word of IPv6 */
        BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, 0x9e3779b1),
        BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 16),
        BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, sockets),
        BPF_STMT(BPF_RET | BPF_A, 0),
    };
    const struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

    if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program)) < 0)
        return -errno;
    return 0;
}

/* Opens a socket for each thread, in the order that steer() numbers them; all or none. */
static int open_sockets(struct ft_workers *workers, const struct ft_switchpoll_settings *settings,
                        struct ft_udp **sockets, char *error, size_t error_bytes)
{
    struct ft_udp_config config = {.listen = settings->listen,
                                   .buffer_bytes = settings->receive_buffer_bytes,
                                   .shared = true,
                                   .on_datagram = on_datagram};
    size_t open = 0;
    int rc = -EADDRNOTAVAIL;

    for (; open < workers->count; open++) {
        config.arg = &workers->list[open];
        config.given = workers->given ? FT_NOTIFY_SOCKETS + (int)open : 0;
        sockets[open] = ft_udp_new(NULL, &config, error, error_bytes);
        if (!sockets[open])
            goto fail;
    }
    rc = steer(ft_udp_fd(sockets[0]), (uint32_t)workers->count);
    if (rc == 0)
        return 0;
    snprintf(error, error_bytes, "listen '%s': cannot share it among workers: %s", settings->listen,
             strerror(-rc));
fail:
    while (open-- > 0)
        ft_udp_free(sockets[open]);
    return rc;
}

static int init_worker(struct ft_workers *workers, struct worker *w,
                       const struct ft_switchpoll_settings *settings, uint64_t seed)
{
    uint64_t n = workers->count;
    const struct ft_ingest_config config = {
        .interval_ms = (uint32_t)(settings->fold_interval_ns / NS_PER_MS),
        .sums_max = (settings->sums_max + n - 1) / n,
        .ports_max = (settings->ports_max + n - 1) / n,
        .exporters_max = (settings->exporters_max + n - 1) / n,
        .sources_max = (settings->sources_max + n - 1) / n,
        .seed = seed,
        .sink = {.emit = on_record, .arg = w},
    };

    w->owner = workers;
    w->last = &w->first;
    w->interval_ms = config.interval_ms;
    w->forget_ms = settings->exporter_timeout_ns / NS_PER_MS;
    pthread_mutex_init(&w->queue_lock, NULL);
    pthread_mutex_init(&w->lock, NULL);
    pthread_mutex_init(&w->handover, NULL);
    w->gather = ft_output_gather(workers->output);
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w->ingest = ft_ingest_new(&config);
    if (w->wake_fd < 0 || !w->ingest || !w->gather)
        return -ENOMEM;
    ft_ingest_take_blocks(w->ingest, &settings->srv6_blocks, settings->srv6_local);
    return ft_ingest_take_exporters(w->ingest, &settings->exporters);
}

static int start_thread(struct worker *w)
{
    sigset_t all, old;
    int rc;

    /* Signals are the main loop's. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&w->thread, NULL, work, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    w->started = rc == 0;
    return -rc;
}

struct ft_workers *ft_workers_new(struct ft_loop *loop,
                                  const struct ft_switchpoll_settings *settings, uint64_t seed,
                                  struct ft_output *output, char *error, size_t error_bytes)
{
    size_t count = settings->workers;
    struct ft_workers *workers = calloc(1, sizeof(*workers) + count * sizeof(workers->list[0]));
    struct ft_udp *sockets[FT_WORKERS_MAX];
    int rc = 0;

    snprintf(error, error_bytes, "out of memory");
    if (!workers)
        return NULL;
    workers->output = output;
    workers->count = count;
    workers->given = ft_notify_sockets() > 0;
    for (size_t i = 0; i < count; i++)
        rc = init_worker(workers, &workers->list[i], settings, seed) < 0 ? -ENOMEM : rc;
    workers->listen = strdup(settings->listen);
    workers->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (rc < 0 || workers->ready_fd < 0 || !workers->listen)
        goto fail;
    workers->watch =
        ft_watch_stage(ft_watch_fd(loop, workers->ready_fd, collect, workers), "collect");
    if (!workers->watch || open_sockets(workers, settings, sockets, error, error_bytes) < 0)
        goto fail;
    for (size_t i = 0; i < count; i++) {
        workers->list[i].udp = sockets[i];
        report_lost(&workers->list[i]);
    }
    return workers;
fail:
    ft_workers_free(workers);
    return NULL;
}

int ft_workers_start(struct ft_workers *workers, char *error, size_t error_bytes)
{
    for (size_t i = 0; i < workers->count; i++) {
        int rc = start_thread(&workers->list[i]);

        if (rc < 0) {
            snprintf(error, error_bytes, "cannot start a worker: %s", strerror(-rc));
            return rc;
        }
    }
    return 0;
}

/* What a thread hands over at its end may be more than may wait: it is taken as it comes. */
static void collect_until_ended(struct ft_workers *workers, struct worker *w)
{
    struct pollfd fd = {.fd = workers->ready_fd, .events = POLLIN};

    while (!atomic_load(&w->ended)) {
        poll(&fd, 1, -1);
        collect(workers);
    }
}

void ft_workers_stop(struct ft_workers *workers)
{
    for (size_t i = 0; i < workers->count; i++) {
        atomic_store(&workers->list[i].stop, true);
        if (workers->list[i].started)
            poke(workers->list[i].wake_fd);
    }
    for (size_t i = 0; i < workers->count; i++) {
        struct worker *w = &workers->list[i];

        if (!w->started)
            continue;
        collect_until_ended(workers, w);
        pthread_join(w->thread, NULL);
        w->started = false;
    }
    collect(workers);
}

void ft_workers_free(struct ft_workers *workers)
{
    if (!workers)
        return;
    ft_workers_stop(workers);
    for (size_t i = 0; i < workers->count; i++) {
        struct worker *w = &workers->list[i];

        ft_udp_free(w->udp);
        ft_ingest_free(w->ingest);
        ft_gather_free(w->gather);
        if (w->wake_fd >= 0)
            close(w->wake_fd);
        pthread_mutex_destroy(&w->queue_lock);
        pthread_mutex_destroy(&w->lock);
        pthread_mutex_destroy(&w->handover);
    }
    ft_watch_free(workers->watch);
    if (workers->ready_fd >= 0)
        close(workers->ready_fd);
    free(workers->listen);
    free(workers);
}

/* The thread is held: it takes what is left in the old socket, then reads the new one. */
static void change_socket(struct worker *w, struct ft_udp *udp)
{
    struct ft_udp_stats old;

    ft_udp_drain(w->udp);
    ft_udp_stats(w->udp, &old);
    w->drops_past += old.kernel_drops;
    w->taken_past += old.datagrams;
    ft_udp_free(w->udp);
    w->udp = udp;
}

int ft_workers_reload(struct ft_workers *workers, const struct ft_switchpoll_settings *settings,
                      char *error, size_t error_bytes)
{
    bool moves = !workers->given && strcmp(workers->listen, settings->listen) != 0;
    char *listen = strdup(settings->listen);
    struct ft_udp *sockets[FT_WORKERS_MAX];

    snprintf(error, error_bytes, "out of memory");
    if (!listen || (moves && open_sockets(workers, settings, sockets, error, error_bytes) < 0)) {
        free(listen);
        return -EADDRNOTAVAIL;
    }
    for (size_t i = 0; i < workers->count; i++) {
        struct worker *w = &workers->list[i];

        hold(w);
        if (moves)
            change_socket(w, sockets[i]);
        else
            ft_udp_set_buffer(w->udp, settings->receive_buffer_bytes);
        w->interval_ms = settings->fold_interval_ns / NS_PER_MS;
        w->forget_ms = settings->exporter_timeout_ns / NS_PER_MS;
        ft_ingest_set_interval(w->ingest, (uint32_t)w->interval_ms, (uint32_t)w->interval_ms);
        ft_ingest_thin(w->ingest, 1);
        if (ft_ingest_take_exporters(w->ingest, &settings->exporters))
            ft_log(FT_LOG_ERROR, "exporters: no memory; they are as before");
        ft_ingest_take_blocks(w->ingest, &settings->srv6_blocks, settings->srv6_local);
        report_lost(w);
        let_go(w);
        poke(w->wake_fd);
    }
    free(workers->listen);
    workers->listen = listen;
    return 0;
}

void ft_workers_set_interval(struct ft_workers *workers, uint32_t interval_ms, uint32_t part)
{
    for (size_t i = 0; i < workers->count; i++) {
        struct worker *w = &workers->list[i];

        hold(w);
        ft_ingest_set_interval(w->ingest, (uint32_t)w->interval_ms, interval_ms);
        ft_ingest_thin(w->ingest, part);
        let_go(w);
    }
}

void ft_workers_account(void *arg, struct ft_ingest_stats *stats)
{
    struct ft_workers *workers = arg;

    for (size_t i = 0; i < workers->count; i++) {
        struct worker *w = &workers->list[i];

        pthread_mutex_lock(&w->handover);
        ft_ingest_stats_add(stats, &w->account);
        pthread_mutex_unlock(&w->handover);
    }
}

void ft_workers_stats(struct ft_workers *workers, struct ft_workers_stats *stats)
{
    *stats = (struct ft_workers_stats){0};
    for (size_t i = 0; i < workers->count; i++) {
        struct worker *w = &workers->list[i];

        pthread_mutex_lock(&w->handover);
        stats->datagrams += w->taken.datagrams;
        stats->kernel_drops += w->taken.kernel_drops;
        stats->buffer_bytes = w->taken.buffer_bytes;
        pthread_mutex_unlock(&w->handover);
    }
}

size_t ft_workers_hold(struct ft_workers *workers, const struct ft_sflow_exporters **tables)
{
    for (size_t i = 0; i < workers->count; i++) {
        hold(&workers->list[i]);
        tables[i] = ft_ingest_exporters(workers->list[i].ingest);
    }
    return workers->count;
}

void ft_workers_release(struct ft_workers *workers)
{
    for (size_t i = 0; i < workers->count; i++)
        let_go(&workers->list[i]);
}

uint64_t ft_workers_buffer(struct ft_workers *workers)
{
    struct ft_workers_stats stats;

    ft_workers_stats(workers, &stats);
    return stats.buffer_bytes;
}
