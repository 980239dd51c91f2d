// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/jobs/jobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/jobs/collective_record.h"
#include "agent/jobs/collectives.h"
#include "agent/jobs/rings.h"
#include "agent/jobs/tally.h"
#include "lib/base/log.h"
#include "lib/base/reader.h"
#include "lib/io/loop.h"

#define NS_PER_MS   INT64_C(1000000)
#define NS_PER_S    INT64_C(1000000000)
#define POLL_NS     (50 * NS_PER_MS)
#define ANNOUNCE_NS (30 * NS_PER_S)
#define OPS_MAX     1024
#define PEERS_MAX   16384
#define HELLO_BYTES 64
#define HELLO_FDS   4
#define HELLO_NS    (5 * NS_PER_S)
#define REST_NS     NS_PER_S
/* Connections of one user that have said nothing yet. */
#define SILENT_MAX 8

struct seen_comm {
    struct ft_rings_comm comm;
    struct ft_mono announced;
};

struct job {
    struct ft_jobs *jobs;
    struct job *next;
    int fd;
    struct ft_watch *watch;
    struct ft_watch *deadline; /* for its hello */
    uid_t uid;
    uint64_t capped;        /* of its events, written to its rings */
    struct ft_rings *rings; /* NULL until its memory has come */
    struct ft_collectives *collectives;
    char name[FT_SEGMENT_NAME];
    struct ft_job_identity who;
    struct ft_rings_stats before; /* counted before this agent */
    struct seen_comm comms[FT_SEGMENT_COMMS];
};

struct ft_jobs {
    struct ft_jobs_config config;
    char *socket;
    struct ft_loop *loop;
    struct ft_uplink *uplink;
    int listen_fd;
    struct ft_watch *listening, *polling, *rest;
    uint64_t refused;
    struct job *first;
    size_t count;
    struct ft_tally ended; /* over jobs that have ended */
    struct ft_log_limit limit;
    struct ft_mono looked;
    struct ft_collective_record record;
};

/* Whoever is not announced for two minutes is over for the daemon. */
static int64_t announce_ns(const struct ft_jobs *jobs)
{
    return jobs->config.refresh_ns < ANNOUNCE_NS ? jobs->config.refresh_ns : ANNOUNCE_NS;
}

static void warn(struct ft_jobs *jobs, uint32_t pid, const char *why)
{
    uint64_t held;

    if (ft_log_limit_pass(&jobs->limit, ft_mono_now(), &held))
        ft_log(FT_LOG_WARNING, "job of pid %u: %s", pid, why);
}

static void set_clock(struct job *job)
{
    job->who.offset_ms = ft_wall_now().ms - ft_mono_now().ns / NS_PER_MS;
}

static void on_report(void *arg, const struct ft_collective *c)
{
    struct job *job = arg;

    ft_collective_record_fill(&job->jobs->record, c, &job->who);
    ft_uplink_record(job->jobs->uplink, &job->jobs->record.record);
    ft_rings_sent(job->rings, c->events);
}

static void on_record(void *arg, const struct ft_segment_record *record)
{
    struct job *job = arg;

    ft_rings_stray(job->rings, ft_collectives_record(job->collectives, 1, record, ft_mono_now()));
}

static void announce(struct job *job, const struct ft_rings_comm *comm, bool closed)
{
    struct ft_communicator_record record;

    ft_communicator_record_fill(&record, comm, closed, &job->who, ft_wall_now().ms);
    ft_uplink_record(job->jobs->uplink, &record.record);
}

static bool same_comm(const struct ft_rings_comm *a, const struct ft_rings_comm *b)
{
    return a->comm_id == b->comm_id && a->rank == b->rank && a->opened_ns == b->opened_ns;
}

/* at_end: the process is gone, and with it every communicator. */
static void look_at_comms(struct job *job, struct ft_mono now, bool at_end)
{
    for (uint32_t i = 0; i < FT_SEGMENT_COMMS; i++) {
        struct seen_comm *seen = &job->comms[i];
        struct ft_rings_comm comm;

        if (!ft_rings_comm(job->rings, i, &comm))
            continue;
        if (seen->comm.open && (!comm.open || at_end || !same_comm(&seen->comm, &comm)))
            announce(job, &seen->comm, true);
        else if (!comm.open && !seen->comm.open && comm.opened_ns &&
                 !same_comm(&seen->comm, &comm)) /* came and went between two looks */
            announce(job, &comm, true);
        if (comm.open && !at_end &&
            (!seen->comm.open || !same_comm(&seen->comm, &comm) ||
             ft_mono_since_ns(now, seen->announced) >= announce_ns(job->jobs))) {
            announce(job, &comm, false);
            seen->announced = now;
        }
        seen->comm = comm;
        seen->comm.open = comm.open && !at_end;
    }
}

/* What is dropped is in this agent's account, and not the next one's to miss. */
static void tell_capped(struct job *job)
{
    struct ft_collectives_stats stats;

    ft_collectives_stats(job->collectives, &stats);
    ft_rings_sent(job->rings, stats.events_capped - job->capped);
    job->capped = stats.events_capped;
}

static void read_job(struct job *job, struct ft_mono now)
{
    set_clock(job);
    ft_rings_read(job->rings, FT_SEGMENT_SLOTS, on_record, job);
    ft_collectives_tick(job->collectives, now);
    tell_capped(job);
}

static void finish_job(struct job *job)
{
    struct ft_mono now = ft_mono_now();

    set_clock(job);
    look_at_comms(job, now, false);
    /* A ring may be filled again while it is read; a job must not keep the agent here. */
    for (int i = 0; i < 4 && ft_rings_read(job->rings, FT_SEGMENT_SLOTS, on_record, job); i++)
        ;
    ft_collectives_flush(job->collectives, now);
    tell_capped(job);
}

/* over: nothing that it began will end. */
static void tally(const struct job *job, bool over, struct ft_tally *sum)
{
    struct ft_collectives_stats made;
    struct ft_rings_stats now;
    struct ft_tally one;

    ft_collectives_stats(job->collectives, &made);
    ft_rings_stats(job->rings, &now);
    ft_tally_job(&one, &now, &job->before, &made, over);
    ft_tally_add(sum, &one);
}

/* over: the process has ended, or hung up. Otherwise the next agent follows it. */
static void end_job(struct job *job, bool over)
{
    struct ft_jobs *jobs = job->jobs;
    struct job **at = &jobs->first;

    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    jobs->count--;
    if (job->rings) {
        finish_job(job);
        if (over)
            look_at_comms(job, ft_mono_now(), true);
        ft_rings_reported(job->rings);
        tally(job, over, &jobs->ended);
        ft_log(FT_LOG_INFO, "job of pid %u: %s", job->who.pid, over ? "ended" : "left alone");
    }
    ft_watch_free(job->watch);
    ft_watch_free(job->deadline);
    ft_collectives_free(job->collectives);
    ft_rings_free(job->rings);
    close(job->fd);
    free(job);
    if (!jobs->first) {
        ft_watch_free(jobs->polling);
        jobs->polling = NULL;
    }
}

static void on_poll(void *arg)
{
    struct ft_jobs *jobs = arg;
    struct ft_mono now = ft_mono_now();
    bool look = ft_mono_since_ns(now, jobs->looked) >= NS_PER_S;

    for (struct job *job = jobs->first; job; job = job->next) {
        if (!job->rings)
            continue;
        if (look)
            look_at_comms(job, now, false);
        read_job(job, now);
    }
    if (look)
        jobs->looked = now;
}

/* The memory that comes with a hello; -1 unless it is a hello of a known version. Every descriptor
 * that came is closed but the one returned. */
static int take_hello(int fd)
{
    uint8_t bytes[HELLO_BYTES];
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * HELLO_FDS)];
    } control;
    struct iovec iov = {.iov_base = bytes, .iov_len = sizeof(bytes)};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct ft_reader r;
    int memory = -1;
    bool good;

    if (n < 0)
        return -1;
    ft_reader_init(&r, bytes, (size_t)n);
    good = ft_read_be64(&r) == FT_SEGMENT_MAGIC && ft_read_be32(&r) == FT_SEGMENT_VERSION &&
           ft_reader_ok(&r) && ft_reader_left(&r) == 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
            int one;

            memcpy(&one, CMSG_DATA(c) + at, sizeof(one));
            if (good && memory < 0)
                memory = one;
            else
                close(one);
        }
    }
    return memory;
}

/* What waits in the rings is this agent's to read; what its predecessor left unpublished or never
 * counted was its predecessor's to count. */
static void note_before(struct job *job)
{
    struct ft_rings_stats *b = &job->before;

    ft_rings_stats(job->rings, b);
    b->outside = b->outside_reported;
    b->events = b->read - b->lost + b->outside_reported;
    for (int d = 0; d < FT_DROPS; d++) {
        b->drops[d] = b->drops_reported[d];
        b->events += b->drops_reported[d];
    }
}

static int adopt(struct job *job)
{
    const struct ft_jobs_config *config = &job->jobs->config;
    const struct ft_collectives_config folding = {
        .ops_max = OPS_MAX,
        .peers_max = config->peers_max ? config->peers_max : PEERS_MAX,
        .seed = config->seed,
        .hold_ns = config->hold_ns,
        .reports_per_s = config->reports_per_s,
    };
    int memory = take_hello(job->fd);
    int rc = memory < 0 ? -EBADMSG : ft_rings_open(memory, &job->rings);

    if (memory >= 0)
        close(memory);
    if (rc)
        return rc;
    job->collectives = ft_collectives_new(&folding, on_report, job);
    if (!job->collectives) {
        ft_rings_free(job->rings);
        job->rings = NULL;
        return -ENOMEM;
    }
    ft_rings_job(job->rings, job->name);
    for (char *c = job->name; *c; c++)
        if (*c < 0x20 || *c > 0x7e)
            *c = '?';
    job->who.job = job->name;
    note_before(job);
    set_clock(job);
    look_at_comms(job, ft_mono_now(), false);
    return 0;
}

static void on_job(void *arg)
{
    struct job *job = arg;
    int rc;

    if (job->rings) {
        /* A plugin says nothing after its hello: this is its end. */
        end_job(job, true);
        return;
    }
    rc = adopt(job);
    if (rc) {
        warn(job->jobs, job->who.pid,
             rc == -EBADMSG ? "what it offers is not the memory of this version's plugin"
                            : strerror(-rc));
        end_job(job, true);
        return;
    }
    ft_watch_once_disarm(job->deadline);
    ft_log(FT_LOG_INFO, "job of pid %u: followed", job->who.pid);
}

static void on_silent(void *arg)
{
    struct job *job = arg;

    warn(job->jobs, job->who.pid, "rejected: it sends nothing");
    job->jobs->refused++;
    end_job(job, true);
}

/* One user cannot take all connections: a quarter is left to others, and silent connections are
 * few. */
static bool has_room(const struct ft_jobs *jobs, uid_t uid)
{
    size_t silent = 0, own = 0, most = jobs->config.jobs_max - jobs->config.jobs_max / 4;

    for (const struct job *job = jobs->first; job; job = job->next)
        if (job->uid == uid) {
            own++;
            silent += !job->rings;
        }
    return jobs->count < jobs->config.jobs_max && own < most && silent < SILENT_MAX;
}

static void on_connection(void *arg);

static void listen_again(void *arg)
{
    struct ft_jobs *jobs = arg;

    jobs->listening = ft_watch_fd(jobs->loop, jobs->listen_fd, on_connection, jobs);
    if (!jobs->listening)
        ft_watch_once_arm(jobs->rest, REST_NS);
}

/* The waiting connection keeps the socket readable. */
static void rest(struct ft_jobs *jobs)
{
    ft_loop_trouble(jobs->loop, "nccl.socket: no job can be accepted: %s", strerror(errno));
    ft_watch_free(jobs->listening);
    jobs->listening = NULL;
    ft_watch_once_arm(jobs->rest, REST_NS);
}

static void on_connection(void *arg)
{
    struct ft_jobs *jobs = arg;
    struct ucred peer = {0};
    socklen_t len = sizeof(peer);
    int fd = accept4(jobs->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct job *job;

    if (fd < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            rest(jobs);
        return;
    }
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
    job = has_room(jobs, peer.uid) ? calloc(1, sizeof(*job)) : NULL;
    if (!job) {
        warn(jobs, (uint32_t)peer.pid, "rejected: too many jobs are connected, or send nothing");
        jobs->refused++;
        close(fd);
        return;
    }
    job->jobs = jobs;
    job->fd = fd;
    job->uid = peer.uid;
    job->who =
        (struct ft_job_identity){.host = jobs->config.host, .job = "", .pid = (uint32_t)peer.pid};
    job->next = jobs->first;
    jobs->first = job;
    jobs->count++;
    job->watch = ft_watch_stage(ft_watch_fd(jobs->loop, fd, on_job, job), "jobs");
    job->deadline = ft_watch_once(jobs->loop, on_silent, job);
    if (job->deadline)
        ft_watch_once_arm(job->deadline, HELLO_NS);
    if (!jobs->polling)
        jobs->polling = ft_watch_stage(ft_watch_timer(jobs->loop, POLL_NS, on_poll, jobs), "jobs");
    if (!job->watch || !job->deadline || !jobs->polling)
        end_job(job, true);
}

static int open_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd, err;

    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    /* Left by an agent that was killed; one that lives would answer. */
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
        close(fd);
        return -EADDRINUSE;
    }
    if (errno == ECONNREFUSED)
        unlink(path);
    /* Jobs run as their own users. */
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) || chmod(path, 0666) ||
        listen(fd, 64)) {
        err = errno;
        close(fd);
        return -err;
    }
    return fd;
}

struct ft_jobs *ft_jobs_new(struct ft_loop *loop, struct ft_uplink *uplink,
                            const struct ft_jobs_config *config, char *error, size_t error_bytes)
{
    struct ft_jobs *jobs = calloc(1, sizeof(*jobs));

    if (!jobs) {
        snprintf(error, error_bytes, "no memory");
        return NULL;
    }
    jobs->config = *config;
    jobs->loop = loop;
    jobs->uplink = uplink;
    jobs->limit = (struct ft_log_limit){.interval_ns = 60 * NS_PER_S, .burst = 10};
    jobs->config.socket = NULL;
    jobs->socket = strdup(config->socket);
    jobs->listen_fd = jobs->socket ? open_socket(config->socket) : -ENOMEM;
    if (jobs->listen_fd < 0) {
        snprintf(error, error_bytes, "nccl.socket '%s': %s", config->socket,
                 strerror(-jobs->listen_fd));
        free(jobs->socket);
        free(jobs);
        return NULL;
    }
    jobs->listening = ft_watch_fd(loop, jobs->listen_fd, on_connection, jobs);
    jobs->rest = ft_watch_once(loop, listen_again, jobs);
    if (!jobs->listening || !jobs->rest) {
        snprintf(error, error_bytes, "no memory");
        ft_jobs_free(jobs);
        return NULL;
    }
    return jobs;
}

void ft_jobs_free(struct ft_jobs *jobs)
{
    if (!jobs)
        return;
    ft_jobs_flush(jobs);
    close(jobs->listen_fd);
    unlink(jobs->socket);
    free(jobs->socket);
    free(jobs);
}

void ft_jobs_refresh(struct ft_jobs *jobs, int64_t refresh_ns)
{
    jobs->config.refresh_ns = refresh_ns;
}

void ft_jobs_flush(struct ft_jobs *jobs)
{
    while (jobs->first)
        end_job(jobs->first, false);
    ft_watch_free(jobs->rest);
    jobs->rest = NULL;
    ft_watch_free(jobs->listening);
    jobs->listening = NULL;
}

void ft_jobs_account(const struct ft_jobs *jobs, struct ft_account *account)
{
    struct ft_tally sum = jobs->ended;

    for (const struct job *job = jobs->first; job; job = job->next)
        if (job->rings)
            tally(job, false, &sum);
    ft_tally_account(&sum, account);
}

uint64_t ft_jobs_refused(const struct ft_jobs *jobs)
{
    return jobs->refused;
}

size_t ft_jobs_count(const struct ft_jobs *jobs)
{
    return jobs->count;
}
