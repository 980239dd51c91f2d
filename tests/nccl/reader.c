// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "tests/nccl/reader.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"

struct reader {
    pthread_t thread;
    char path[108];
    int listen_fd;
    int fd;
    struct ft_rings *rings;
    struct ft_collectives *collectives;
    struct reader_totals totals;
    struct ft_mono now;
    atomic_int stop; /* 1: in order, 2: at once */
    atomic_bool connected;
    atomic_ullong rounds_idle;
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void on_report(void *arg, const struct ft_collective *c)
{
    struct reader *r = arg;
    struct reader_totals *t = &r->totals;

    t->reported += c->events;
    t->reports++;
    t->operations += c->operations;
    t->incomplete += c->incomplete;
    t->foreign += c->foreign;
    t->last = *c;
    t->last.peers = NULL;
    for (size_t i = 0; i < c->peer_count; i++) {
        t->sent_bytes += c->peers[i].sent_bytes;
        t->received_bytes += c->peers[i].received_bytes;
        t->median_ns = ft_collective_median_ns(&c->peers[i].steps);
        for (int q = 0; q < FT_RECORD_QPS && c->peers[i].qps[q]; q++)
            t->qps++;
    }
    ft_rings_sent(r->rings, c->events);
}

static void on_record(void *arg, const struct ft_segment_record *record)
{
    struct reader *r = arg;
    uint64_t stray = ft_collectives_record(r->collectives, 1, record, r->now);

    r->totals.stray += stray;
    ft_rings_stray(r->rings, stray);
}

static int receive_fd(int fd)
{
    char bytes[64];
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = {bytes, sizeof(bytes)};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    int memory;

    if (recvmsg(fd, &m, MSG_CMSG_CLOEXEC) != FT_SEGMENT_HELLO_BYTES || !CMSG_FIRSTHDR(&m))
        return -1;
    memcpy(&memory, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(memory));
    return memory;
}

static void take_over(struct reader *r)
{
    struct ft_rings_stats stats;
    int memory;

    r->fd = accept(r->listen_fd, NULL, NULL);
    if (r->fd < 0)
        return;
    memory = receive_fd(r->fd);
    if (memory < 0 || ft_rings_open(memory, &r->rings))
        die("no memory came");
    close(memory);
    ft_rings_stats(r->rings, &stats);
    r->totals.lost = stats.lost;
    r->totals.connections++;
    r->connected = true;
}

static void hang_up(struct reader *r, bool in_order)
{
    if (in_order) {
        while (ft_rings_read(r->rings, FT_SEGMENT_SLOTS, on_record, r))
            ;
        ft_collectives_flush(r->collectives, r->now);
        ft_rings_reported(r->rings);
    }
    ft_rings_stats(r->rings, &r->totals.rings);
    /* What it did not tell is the next one's to count. */
    if (!in_order)
        r->totals.stray -= r->totals.rings.stray;
    ft_rings_free(r->rings);
    r->rings = NULL;
    close(r->fd);
    r->fd = -1;
    r->connected = false;
}

static void *run(void *arg)
{
    struct reader *r = arg;

    while (!r->stop) {
        struct pollfd fds = {.fd = r->fd >= 0 ? r->fd : r->listen_fd, .events = POLLIN};

        poll(&fds, 1, 1);
        r->now = ft_mono_now();
        if (r->fd < 0) {
            if (fds.revents)
                take_over(r);
            continue;
        }
        if (ft_rings_read(r->rings, FT_SEGMENT_SLOTS, on_record, r))
            r->rounds_idle = 0;
        else
            r->rounds_idle++;
        ft_collectives_tick(r->collectives, r->now);
        if (fds.revents)
            hang_up(r, true);
    }
    if (r->fd >= 0)
        hang_up(r, r->stop == 1);
    return NULL;
}

/* Keeps it reachable in the child of a fork, where nothing is freed. */
static struct reader *current;

struct reader *reader_start(const char *path)
{
    const struct ft_collectives_config config = {
        .ops_max = 1024, .peers_max = 16384, .hold_ns = 20000000, .reports_per_s = 100};
    struct reader *r = calloc(1, sizeof(*r));
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (!r)
        die("no memory");
    snprintf(r->path, sizeof(r->path), "%s", path);
    memcpy(address.sun_path, r->path, sizeof(r->path));
    unlink(path);
    r->fd = -1;
    r->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (r->listen_fd < 0 || bind(r->listen_fd, (struct sockaddr *)&address, sizeof(address)) ||
        listen(r->listen_fd, 4))
        die(path);
    r->collectives = ft_collectives_new(&config, on_report, r);
    if (!r->collectives || pthread_create(&r->thread, NULL, run, r))
        die("reader");
    current = r;
    return r;
}

void reader_stop(struct reader *r, bool in_order, struct reader_totals *to)
{
    const struct reader_totals *t = &r->totals;

    r->stop = in_order ? 1 : 2;
    pthread_join(r->thread, NULL);
    to->reported += t->reported;
    to->stray += t->stray;
    to->lost = t->lost; /* the last knows of all before it that were killed */
    to->reports += t->reports;
    to->operations += t->operations;
    to->incomplete += t->incomplete;
    to->foreign += t->foreign;
    to->connections += t->connections;
    to->sent_bytes += t->sent_bytes;
    to->received_bytes += t->received_bytes;
    to->qps += t->qps;
    to->median_ns = t->median_ns;
    to->last = t->last;
    if (t->connections)
        to->rings = t->rings;
    ft_collectives_free(r->collectives);
    close(r->listen_fd);
    unlink(r->path);
    if (current == r)
        current = NULL;
    free(r);
}

static void wait_until(struct reader *r, bool (*done)(struct reader *r))
{
    const struct timespec ms = {0, 1000000};

    for (int i = 0; i < 120000; i++) {
        if (done(r))
            return;
        nanosleep(&ms, NULL);
    }
    fprintf(stderr, "the reader waited two minutes in vain\n");
    exit(1);
}

static bool is_connected(struct reader *r)
{
    return r->connected;
}

static bool is_idle(struct reader *r)
{
    return r->rounds_idle > 2 && r->connected;
}

void reader_wait_connected(struct reader *r)
{
    wait_until(r, is_connected);
}

void reader_wait_idle(struct reader *r)
{
    r->rounds_idle = 0;
    wait_until(r, is_idle);
}
