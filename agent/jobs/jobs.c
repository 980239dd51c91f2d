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
#include "agent/jobs/jobs_impl.h"
#include "agent/jobs/process.h"
#include "agent/jobs/progress_record.h"
#include "agent/jobs/rings.h"
#include "agent/jobs/tally.h"
#include "lib/base/log.h"
#include "lib/io/closer.h"
#include "lib/io/listen_local.h"
#include "lib/io/local_users.h"
#include "lib/io/loop.h"

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S  INT64_C(1000000000)
#define POLL_NS   (50 * NS_PER_MS)
#define OPS_MAX   1024
#define PEERS_MAX 16384
#define HELLO_NS  (5 * NS_PER_S)
#define REST_NS   NS_PER_S
/* Connections of one user that have said nothing yet. */
#define SILENT_MAX 8

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

static void on_report(void *arg, const struct ft_collective *c)
{
    struct ft_job *job = arg;

    ft_job_say_closed(job, c);
    ft_collective_record_fill(&job->jobs->record, c, &job->who);
    ft_uplink_record(job->jobs->uplink, &job->jobs->record.record);
    ft_rings_sent(job->rings, c->events);
}

static bool in_flight(void *arg, uint32_t comm, uint64_t number)
{
    const struct ft_job *job = arg;
    const struct ft_jobs *jobs = job->jobs;

    for (size_t i = 0; i < jobs->flight_count; i++)
        if (jobs->flights[i].number == number && jobs->flights[i].comm == comm)
            return true;
    return false;
}

static void on_progress(void *arg, const struct ft_progress_report *report)
{
    struct ft_job *job = arg;

    ft_progress_record_fill(&job->jobs->progress, report, &job->who, ft_wall_now().ms);
    ft_uplink_record(job->jobs->uplink, &job->jobs->progress.record);
}

/* As the kernel has it; that of the machine where it is not known. */
static uint64_t age_s(const struct ft_job *job)
{
    struct timespec up;
    long ticks = sysconf(_SC_CLK_TCK);
    uint64_t start_s = ticks > 0 ? job->process.start_ticks / (uint64_t)ticks : 0;

    if (clock_gettime(CLOCK_BOOTTIME, &up))
        return 0;
    return (uint64_t)up.tv_sec > start_s ? (uint64_t)up.tv_sec - start_s : 0;
}

/* over: nothing that it began will end. */
static void tally(struct ft_job *job, bool over, struct ft_tally *sum)
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
static void end_job(struct ft_job *job, bool over)
{
    struct ft_jobs *jobs = job->jobs;
    struct ft_job **at = &jobs->first;

    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    jobs->count--;
    if (job->rings) {
        ft_job_finish(job);
        if (over) {
            /* What is open still is what it died in. */
            ft_progress_look(job->progress, job->rings, FT_PROCESS_GONE, ft_mono_now());
            ft_job_look_at_comms(job, ft_mono_now(), true);
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
    ft_closer_hang_up(jobs->closer, job->fd);
    free(job);
    if (!jobs->first) {
        ft_watch_free(jobs->polling);
        jobs->polling = NULL;
    }
}

/* What waits in the rings is this agent's to read; what its predecessor left unpublished or never
 * counted was its predecessor's to count. */
static void note_before(struct ft_job *job)
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
static void warn_version(const struct ft_job *job, uint32_t version)
{
    char why[160];

    job->jobs->refused++;
    snprintf(why, sizeof(why),
             "its NCCL plugin has protocol version %" PRIu32
             ", this agent %d: ignored until it is started with the plugin of this release",
             version, FT_SEGMENT_VERSION);
    warn(job->jobs, job->who.pid, why);
}

static int take_hello(struct ft_job *job, uint32_t *version)
{
    struct ft_closer *closer = job->jobs->closer;
    int memory, foreign, rc;

    if (!ft_closer_may_take(closer, job->user))
        return -EBUSY;
    memory = ft_hello_take(job->fd, version, &foreign);
    if (foreign >= 0)
        ft_closer_take(closer, foreign, job->user);
    if (memory < 0)
        return memory;
    rc = ft_rings_open(memory, &job->rings);
    close(memory);
    return rc;
}

static int adopt(struct ft_job *job)
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
    int rc = take_hello(job, &version);

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
    ft_job_set_clock(job);
    ft_job_look_at_comms(job, ft_mono_now(), false);
    return 0;
}

static void on_job(void *arg)
{
    struct ft_job *job = arg;
    int rc;

    if (job->rings) {
        /* A plugin says nothing after its hello: this is its end. */
        ft_job_begin_end(job);
        return;
    }
    rc = adopt(job);
    if (rc) {
        if (rc != -EPROTONOSUPPORT) {
            job->jobs->refused++;
            warn(job->jobs, job->who.pid,
                 rc == -EBADMSG ? "its shared memory is not that of this version's plugin"
                 : rc == -EBUSY ? "what was sent in place of memory is still being closed"
                                : strerror(-rc));
        }
        end_job(job, true);
        return;
    }
    ft_watch_once_disarm(job->deadline);
    log_job(FT_LOG_INFO, job->who.pid, "followed");
}

static void on_silent(void *arg)
{
    struct ft_job *job = arg;

    warn(job->jobs, job->who.pid, "rejected: it sends nothing");
    job->jobs->refused++;
    end_job(job, true);
}

/* One user, with all IDs, cannot take all connections: a quarter is left to others, and silent
 * connections are few. */
static bool has_room(const struct ft_jobs *jobs, uint64_t user)
{
    size_t silent = 0, own = 0, most = jobs->config.jobs_max - jobs->config.jobs_max / 4;

    for (const struct ft_job *job = jobs->first; job; job = job->next)
        if (job->user == user) {
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
static void rest(struct ft_jobs *jobs, const char *why)
{
    ft_loop_trouble(jobs->loop, "nccl.socket: no job can be accepted: %s", why);
    ft_watch_free(jobs->listening);
    jobs->listening = NULL;
    ft_watch_once_arm(jobs->rest, REST_NS);
}

static void on_connection(void *arg)
{
    struct ft_jobs *jobs = arg;
    struct ucred peer = {0};
    socklen_t len = sizeof(peer);
    struct ft_job *job;
    uint64_t user;
    int fd;

    if (!ft_closer_may_accept(jobs->closer)) {
        rest(jobs, "too many connections are still being closed");
        return;
    }
    fd = accept4(jobs->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            rest(jobs, strerror(errno));
        return;
    }
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
    user = ft_local_users_of(jobs->config.users, peer.uid);
    job = has_room(jobs, user) ? calloc(1, sizeof(*job)) : NULL;
    if (!job) {
        warn(jobs, (uint32_t)peer.pid, "rejected: too many jobs are connected, or send nothing");
        jobs->refused++;
        ft_closer_hang_up(jobs->closer, fd);
        return;
    }
    job->jobs = jobs;
    job->fd = fd;
    job->user = user;
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
        jobs->polling =
            ft_watch_stage(ft_watch_timer(jobs->loop, POLL_NS, ft_jobs_poll, jobs), "jobs");
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
    jobs->end = end_job;
    jobs->limit = (struct ft_log_limit){.interval_ns = 60 * NS_PER_S, .burst = 10};
    jobs->config.socket = NULL;
    jobs->socket = strdup(config->socket);
    jobs->closer = ft_closer_new();
    jobs->listen_fd = jobs->socket && jobs->closer ? ft_listen_local(config->socket) : -ENOMEM;
    if (jobs->listen_fd < 0) {
        snprintf(error, error_bytes, "nccl.socket '%s': %s", config->socket,
                 strerror(-jobs->listen_fd));
        ft_closer_free(jobs->closer);
        free(jobs->socket);
        free(jobs);
        return NULL;
    }
    jobs->listening = ft_watch_fd(loop, jobs->listen_fd, on_connection, jobs);
    jobs->rest = ft_watch_once(loop, listen_again, jobs);
    jobs->more = ft_watch_stage(ft_watch_once(loop, ft_jobs_step, jobs), "jobs");
    if (!jobs->listening || !jobs->rest || !jobs->more) {
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
    ft_closer_hang_up(jobs->closer, jobs->listen_fd);
    ft_closer_free(jobs->closer);
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
    jobs->flushed = ft_mono_now();
    while (jobs->first)
        end_job(jobs->first, jobs->first->ending);
    ft_watch_free(jobs->more);
    jobs->more = NULL;
    ft_watch_free(jobs->rest);
    jobs->rest = NULL;
    ft_watch_free(jobs->listening);
    jobs->listening = NULL;
}

void ft_jobs_account(const struct ft_jobs *jobs, struct ft_account *account)
{
    struct ft_tally sum = jobs->ended;

    for (struct ft_job *job = jobs->first; job; job = job->next)
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

struct ft_closer_stats ft_jobs_closing(const struct ft_jobs *jobs)
{
    return ft_closer_stats(jobs->closer);
}

uint64_t ft_jobs_waiting(const struct ft_jobs *jobs)
{
    uint64_t records = 0;

    for (const struct ft_job *job = jobs->first; job; job = job->next)
        if (job->rings)
            records += ft_rings_waiting(job->rings);
    return records;
}

size_t ft_jobs_count(const struct ft_jobs *jobs)
{
    return jobs->count;
}
