// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/jobs/jobs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agent/jobs/collective_record.h"
#include "agent/jobs/collectives.h"
#include "agent/jobs/hello.h"
#include "agent/jobs/process.h"
#include "agent/jobs/progress_record.h"
#include "agent/jobs/rings.h"
#include "agent/jobs/tally.h"
#include "lib/base/log.h"
#include "lib/io/listen_local.h"
#include "lib/io/loop.h"

#define NS_PER_MS   INT64_C(1000000)
#define NS_PER_S    INT64_C(1000000000)
#define POLL_NS     (50 * NS_PER_MS)
#define LOOK_NS     (500 * NS_PER_MS)
#define ANNOUNCE_NS (30 * NS_PER_S)
#define OPS_MAX     1024
#define PEERS_MAX   16384
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
    struct ft_tally_counts counts;
    struct ft_progress *progress;
    struct ft_process_seen process; /* when it was adopted; start_ticks 0: not known */
    unsigned uninterruptible;       /* looks that found it so, one after the other */
    struct seen_comm comms[FT_SEGMENT_COMMS];
};

struct ft_jobs {
    struct ft_jobs_config config;
    char *socket;
    struct ft_loop *loop;
    struct ft_uplink *uplink;
    int listen_fd;
    struct ft_watch *listening, *polling, *rest;
    uint64_t refused, odd;
    struct job *first;
    size_t count;
    struct ft_tally ended; /* over jobs that have ended */
    struct ft_log_limit limit;
    struct ft_mono looked, progressed;
    struct ft_collective_record record;
    struct ft_progress_record progress;
    struct ft_rings_flight flights[FT_PROGRESS_FLIGHTS]; /* of the job that is read */
    size_t flight_count;
};

/* Whoever is not announced for two minutes is over for the daemon. */
static int64_t announce_ns(const struct ft_jobs *jobs)
{
    return jobs->config.refresh_ns < ANNOUNCE_NS ? jobs->config.refresh_ns : ANNOUNCE_NS;
}

static void log_job(enum ft_log_level level, uint32_t pid, const char *text)
{
    char number[16];
    const struct ft_log_subject subject = {FT_LOG_ID_JOB, FT_LOG_JOB_FIELD, number};

    snprintf(number, sizeof(number), "%u", pid);
    ft_log_about(level, &subject, "job of pid %u: %s", pid, text);
}

static void warn(struct ft_jobs *jobs, uint32_t pid, const char *why)
{
    uint64_t held;

    if (ft_log_limit_pass(&jobs->limit, ft_mono_now(), &held))
        log_job(FT_LOG_WARNING, pid, why);
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

/* What was in flight before the rings were read. Had it been looked at afterwards, a transfer that
 * ended in between would be neither in flight nor among what was read. */
static void read_flights(struct job *job)
{
    struct ft_jobs *jobs = job->jobs;
    bool more;

    jobs->flight_count = ft_rings_flights(job->rings, jobs->flights, FT_PROGRESS_FLIGHTS, &more);
}

static bool in_flight(void *arg, uint32_t comm, uint64_t number)
{
    const struct job *job = arg;
    const struct ft_jobs *jobs = job->jobs;

    for (size_t i = 0; i < jobs->flight_count; i++)
        if (jobs->flights[i].number == number && jobs->flights[i].comm == comm)
            return true;
    return false;
}

static void on_record(void *arg, const struct ft_segment_record *record)
{
    struct ft_mono now = ft_mono_now();
    struct job *job = arg;

    ft_rings_stray(job->rings, ft_collectives_record(job->collectives, 1, record, now));
    ft_progress_record(job->progress, record, now);
}

static void on_progress(void *arg, const struct ft_progress_report *report)
{
    struct job *job = arg;

    ft_progress_record_fill(&job->jobs->progress, report, &job->who, ft_wall_now().ms);
    ft_uplink_record(job->jobs->uplink, &job->jobs->progress.record);
}

/* A process that waits for a disk now and then is none that stands. */
static enum ft_progress_process see_process(struct job *job)
{
    struct ft_process_seen seen;
    int rc = ft_process_see_again(job->who.pid, &job->process, &seen);

    if (rc)
        return rc == -ESRCH ? FT_PROCESS_GONE : FT_PROCESS_UNKNOWN;
    job->uninterruptible = seen.state == 'D' ? job->uninterruptible + 1 : 0;
    if (job->uninterruptible > 1)
        return FT_PROCESS_UNINTERRUPTIBLE;
    if (seen.state == 'T' || seen.state == 't')
        return FT_PROCESS_STOPPED;
    return seen.state == 'Z' || seen.state == 'X' ? FT_PROCESS_GONE : FT_PROCESS_RUNNING;
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
static void log_capped(struct job *job)
{
    struct ft_collectives_stats stats;

    ft_collectives_stats(job->collectives, &stats);
    ft_rings_sent(job->rings, stats.events_capped - job->capped);
    job->capped = stats.events_capped;
}

static void read_job(struct job *job, struct ft_mono now)
{
    set_clock(job);
    read_flights(job);
    ft_rings_read(job->rings, FT_SEGMENT_SLOTS, on_record, job);
    ft_collectives_tick(job->collectives, now);
    log_capped(job);
}

static void finish_job(struct job *job)
{
    struct ft_mono now = ft_mono_now();

    set_clock(job);
    look_at_comms(job, now, false);
    read_flights(job);
    /* A ring may be filled again while it is read; a job must not keep the agent here. */
    for (int i = 0; i < 4 && ft_rings_read(job->rings, FT_SEGMENT_SLOTS, on_record, job); i++)
        ;
    ft_collectives_flush(job->collectives, now);
    log_capped(job);
}

/* As the kernel has it; that of the machine where it is not known. */
static uint64_t age_s(const struct job *job)
{
    struct timespec up;
    long ticks = sysconf(_SC_CLK_TCK);
    uint64_t start_s = ticks > 0 ? job->process.start_ticks / (uint64_t)ticks : 0;

    if (clock_gettime(CLOCK_BOOTTIME, &up))
        return 0;
    return (uint64_t)up.tv_sec > start_s ? (uint64_t)up.tv_sec - start_s : 0;
}

/* over: nothing that it began will end. */
static void tally(struct job *job, bool over, struct ft_tally *sum)
{
    uint32_t fresh;
    struct ft_collectives_stats made;
    struct ft_rings_stats now;
    struct ft_tally one;

    ft_collectives_stats(job->collectives, &made);
    ft_rings_stats(job->rings, &now);
    fresh = ft_tally_believe(&job->counts, &now, &job->before, age_s(job));
    if (fresh && job->jobs->odd == 0)
        warn(job->jobs, job->who.pid,
             "counters in its memory say more than a process can do: they do not count");
    job->jobs->odd += fresh;
    ft_tally_job(&one, &job->counts, &now, &made, over);
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
        if (over) {
            /* What is open still is what it died in. */
            ft_progress_look(job->progress, job->rings, FT_PROCESS_GONE, ft_mono_now());
            look_at_comms(job, ft_mono_now(), true);
        }
        ft_rings_reported(job->rings);
        tally(job, over, &jobs->ended);
        log_job(FT_LOG_INFO, job->who.pid, over ? "ended" : "left alone");
    }
    ft_watch_free(job->watch);
    ft_watch_free(job->deadline);
    ft_progress_free(job->progress);
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
    bool progress = ft_mono_since_ns(now, jobs->progressed) >= LOOK_NS;

    for (struct job *job = jobs->first; job; job = job->next) {
        if (!job->rings)
            continue;
        if (look)
            look_at_comms(job, now, false);
        read_job(job, now);
        if (progress)
            ft_progress_look(job->progress, job->rings, see_process(job), ft_mono_now());
    }
    if (look)
        jobs->looked = now;
    if (progress)
        jobs->progressed = now;
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

/* Both come with one package, but a job keeps the plugin that it was started with. */
static void warn_version(const struct job *job, uint32_t version)
{
    char why[160];

    job->jobs->refused++;
    snprintf(why, sizeof(why),
             "its NCCL plugin has protocol version %" PRIu32
             ", this agent %d: ignored until it is started with the plugin of this release",
             version, FT_SEGMENT_VERSION);
    warn(job->jobs, job->who.pid, why);
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
        .in_flight = in_flight,
    };
    const struct ft_progress_config moving = {.quiet_ns = config->quiet_ns, .seed = config->seed};
    uint32_t version;
    int memory = ft_hello_take(job->fd, &version);
    int rc = memory < 0 ? memory : ft_rings_open(memory, &job->rings);

    if (memory >= 0)
        close(memory);
    if (rc == -EPROTONOSUPPORT)
        warn_version(job, version);
    if (rc)
        return rc;
    job->collectives = ft_collectives_new(&folding, on_report, job);
    job->progress = ft_progress_new(&moving, on_progress, job);
    if (!job->collectives || !job->progress) {
        ft_rings_free(job->rings);
        job->rings = NULL;
        return -ENOMEM;
    }
    if (ft_process_see(job->who.pid, &job->process))
        job->process = (struct ft_process_seen){.start_ticks = 0};
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
        if (rc != -EPROTONOSUPPORT)
            warn(job->jobs, job->who.pid,
                 rc == -EBADMSG ? "its shared memory is not that of this version's plugin"
                                : strerror(-rc));
        end_job(job, true);
        return;
    }
    ft_watch_once_disarm(job->deadline);
    log_job(FT_LOG_INFO, job->who.pid, "followed");
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
    jobs->listen_fd = jobs->socket ? ft_listen_local(config->socket) : -ENOMEM;
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

    for (struct job *job = jobs->first; job; job = job->next)
        if (job->rings)
            tally(job, false, &sum);
    ft_tally_account(&sum, account);
}

uint64_t ft_jobs_refused(const struct ft_jobs *jobs)
{
    return jobs->refused;
}

uint64_t ft_jobs_implausible(const struct ft_jobs *jobs)
{
    return jobs->odd;
}

size_t ft_jobs_count(const struct ft_jobs *jobs)
{
    return jobs->count;
}
