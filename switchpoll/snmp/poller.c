// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/snmp/poller.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"
#include "switchpoll/snmp/poll.h"
#include "switchpoll/snmp/report.h"

#define NS_PER_MS     INT64_C(1000000)
#define NS_PER_S      INT64_C(1000000000)
#define FIRST_GAP_NS  NS_PER_MS /* between two switches in the first round */
#define BACK_OFF_MAX  4         /* intervals */
#define LOST_SHARE    4         /* requests for lost switches: one in so many, beside the others */
#define LOG_NS        (60 * NS_PER_S)
#define LOG_BURST     20
#define ERROR_BYTES   256
#define PROBLEM_BYTES (FT_DEVICE_PROBLEM_BYTES + FT_POLL_TEXT_BYTES + 64)

enum lane { LANE_NONE, LANE_LIVE, LANE_LOST };

struct job {
    struct ft_poller *poller;
    const struct ft_target *target;
    struct ft_device *device;
    struct ft_poll poll;
    struct ft_watch *timer;
    struct ft_mono due;
    struct ft_mono begun;
    int64_t duration_ns;
    unsigned failures;            /* in a row */
    unsigned skipped;             /* intervals since the last poll */
    bool polled;                  /* once at least */
    enum lane lane;               /* that it holds */
    bool waiting;                 /* in a queue for one */
    struct job *next;             /* there */
    char reported[PROBLEM_BYTES]; /* the problem as last logged */
};

struct queue {
    struct job *first;
    struct job *last;
};

struct ft_poller {
    struct ft_loop *loop;
    struct ft_snmp *snmp;
    struct ft_poller_config config;
    struct ft_targets *targets;
    struct ft_device_room room;
    struct ft_snmp_auth **auths; /* by index of the credentials */
    struct job *jobs;
    uint64_t running[LANE_LOST + 1];
    struct queue queues[LANE_LOST + 1];
    struct ft_log_limit log_limit;
    struct ft_poller_stats stats; /* what is counted as it happens */
};

static void start_poll(struct job *job);

static enum lane lane_for(const struct job *job)
{
    return job->failures ? LANE_LOST : LANE_LIVE;
}

static uint64_t lane_width(const struct ft_poller *p, enum lane lane)
{
    return lane == LANE_LIVE ? p->config.parallel : 1 + p->config.parallel / LOST_SHARE;
}

static void enqueue(struct queue *q, struct job *job)
{
    job->next = NULL;
    job->waiting = true;
    if (q->last)
        q->last->next = job;
    else
        q->first = job;
    q->last = job;
}

/* Starts the polls that wait, as many as may run. */
static void serve(struct ft_poller *p, enum lane lane)
{
    struct queue *q = &p->queues[lane];

    while (q->first && p->running[lane] < lane_width(p, lane)) {
        struct job *job = q->first;

        q->first = job->next;
        if (!q->first)
            q->last = NULL;
        job->waiting = false;
        job->lane = lane;
        p->running[lane]++;
        start_poll(job);
    }
}

static void leave_lane(struct job *job)
{
    struct ft_poller *p = job->poller;
    enum lane lane = job->lane;

    job->lane = LANE_NONE;
    p->running[lane]--;
}

/* Tells a problem once, and once that it is over. */
static void report_problem(struct job *job, const char *problem)
{
    char agent[FT_IP_TEXT_BYTES];
    const char *name = job->device->name ? job->device->name : "";
    const struct ft_log_subject subject = {FT_LOG_ID_SWITCH, FT_LOG_SWITCH_FIELD,
                                           *name ? name : agent};
    uint64_t held;

    if (strcmp(problem, job->reported) == 0)
        return;
    snprintf(job->reported, sizeof(job->reported), "%s", problem);
    if (!ft_log_limit_pass(&job->poller->log_limit, ft_mono_now(), &held))
        return;
    ft_ip_format(&job->target->address, agent);
    if (held)
        ft_log(FT_LOG_WARNING, "snmp: %" PRIu64 " messages on switches were held back", held);
    ft_log_about(*problem ? FT_LOG_WARNING : FT_LOG_NOTICE, &subject, "switch '%s'%s%s%s: %s",
                 agent, *name ? " (" : "", name, *name ? ")" : "",
                 *problem ? problem : "well again");
}

static void announce(struct job *job)
{
    struct ft_poller *p = job->poller;
    char problem[PROBLEM_BYTES] = "";
    char device[FT_DEVICE_PROBLEM_BYTES];
    struct ft_snmp_report report = {
        .device = job->device,
        .also = job->target->also,
        .also_count = job->target->also_count,
        .interval_ms = (uint32_t)(p->config.interval_ns / NS_PER_MS),
        .reachable = job->poll.reachable,
        .problem = problem,
        .source = p->config.source,
    };

    if (!job->poll.reachable) {
        snprintf(problem, sizeof(problem), "not reachable over SNMP: %s", job->poll.text);
    } else {
        ft_device_problem(job->device, device);
        snprintf(problem, sizeof(problem), "%s%s%s", job->poll.text,
                 job->poll.text[0] && device[0] ? "; " : "", device);
    }
    report_problem(job, problem);
    if (ft_report_switch(&report, ft_wall_now(), &p->config.sink) < 0)
        ft_log(FT_LOG_ERROR, "snmp: out of memory");
    p->config.on_poll(p->config.arg);
}

static void end_poll(struct job *job)
{
    struct ft_poller *p = job->poller;
    struct ft_mono now = ft_mono_now();
    enum lane lane = job->lane;

    job->polled = true;
    job->duration_ns = ft_mono_since_ns(now, job->begun);
    p->stats.polls++;
    if (job->poll.reachable) {
        job->failures = 0;
        p->stats.polls_partly += job->poll.partly;
        ft_device_end(job->device, now);
        ft_report_counters(job->device, &p->config.sink);
    } else {
        job->failures++;
        p->stats.polls_failed++;
    }
    announce(job);
    leave_lane(job);
    serve(p, lane);
}

static void on_poll_end(void *arg)
{
    end_poll(arg);
}

/* Tells that the poll could not even begin. */
static void fail_to_start(struct job *job, const char *text)
{
    job->poll.reachable = false;
    snprintf(job->poll.text, sizeof(job->poll.text), "%s", text);
    job->failures++;
    job->poller->stats.polls++;
    job->poller->stats.polls_failed++;
    leave_lane(job);
    announce(job);
}

static void start_poll(struct job *job)
{
    struct ft_poller *p = job->poller;
    char error[ERROR_BYTES];
    int rc;

    job->begun = ft_mono_now();
    job->skipped = 0;
    if (!job->poll.session)
        job->poll.session = ft_snmp_session_new(
            p->snmp, &job->target->address, job->target->port, p->auths[job->target->credentials],
            p->config.timeout_ns, (unsigned)p->config.retries, error, sizeof(error));
    if (!job->poll.session) {
        fail_to_start(job, error);
        return;
    }
    rc = ft_poll_start(&job->poll);
    if (rc < 0)
        fail_to_start(job, strerror(-rc));
}

/* Intervals from one poll of a lost switch to the next: 1, 2, 4, 4 ... */
static unsigned back_off(const struct job *job)
{
    unsigned intervals = job->failures < 2 ? 1 : job->failures < 3 ? 2 : BACK_OFF_MAX;

    return intervals;
}

static void arm(struct job *job)
{
    int64_t wait_ns = ft_mono_since_ns(job->due, ft_mono_now());

    ft_watch_once_arm(job->timer, wait_ns > 0 ? wait_ns : 0);
}

static void on_due(void *arg)
{
    struct job *job = arg;
    struct ft_poller *p = job->poller;
    enum lane lane = lane_for(job);

    job->due.ns += p->config.interval_ns;
    if (ft_mono_since_ns(ft_mono_now(), job->due) > p->config.interval_ns)
        job->due.ns = ft_mono_now().ns + p->config.interval_ns; /* the machine slept */
    arm(job);
    job->skipped++;
    if (job->poll.running || job->waiting) {
        p->stats.polls_late++;
    } else if (job->polled && job->skipped < back_off(job)) {
        announce(job);
    } else {
        enqueue(&p->queues[lane], job);
        serve(p, lane);
    }
}

static int make_auths(struct ft_poller *p, char *error, size_t error_bytes)
{
    p->auths = calloc(p->targets->credential_count, sizeof(struct ft_snmp_auth *));
    if (!p->auths) {
        snprintf(error, error_bytes, "out of memory");
        return -ENOMEM;
    }
    for (size_t i = 0; i < p->targets->credential_count; i++) {
        const struct ft_target_credentials *c = &p->targets->credentials[i];
        const struct ft_snmp_secrets secrets = {
            .version = c->version,
            .community = c->community,
            .user = c->user,
            .auth = c->auth,
            .auth_secret = c->auth_secret,
            .priv = c->priv,
            .priv_secret = c->priv_secret,
            .context = c->context,
        };
        char text[ERROR_BYTES];

        p->auths[i] = ft_snmp_auth_new(p->snmp, &secrets, text, sizeof(text));
        if (!p->auths[i]) {
            snprintf(error, error_bytes, "credentials '%s': %s", c->name, text);
            return -EINVAL;
        }
    }
    return 0;
}

static int make_jobs(struct ft_poller *p)
{
    struct ft_device_limits limits = p->config.limits;

    p->room.max = p->config.all_ports_max;
    limits.room = p->room.max ? &p->room : NULL;
    p->jobs = calloc(p->targets->count + 1, sizeof(*p->jobs));
    if (!p->jobs)
        return -ENOMEM;
    for (size_t i = 0; i < p->targets->count; i++) {
        struct job *job = &p->jobs[i];

        job->poller = p;
        job->target = &p->targets->items[i];
        job->device = ft_device_new(&job->target->address, &limits);
        job->timer = ft_watch_stage(ft_watch_once(p->loop, on_due, job), "snmp");
        if (!job->device || !job->timer)
            return -ENOMEM;
        job->poll = (struct ft_poll){
            .device = job->device,
            .varbinds_max = p->config.varbinds,
            .rows_max = 4 * p->config.limits.ports_max,
            .on_end = on_poll_end,
            .arg = job,
        };
    }
    return 0;
}

struct ft_poller *ft_poller_new(struct ft_loop *loop, struct ft_snmp *snmp,
                                const struct ft_poller_config *config, struct ft_targets *targets,
                                char *error, size_t error_bytes)
{
    struct ft_poller *p = calloc(1, sizeof(*p));
    int rc = -ENOMEM;

    if (!p) {
        ft_targets_free(targets);
        snprintf(error, error_bytes, "out of memory");
        return NULL;
    }
    p->loop = loop;
    p->snmp = snmp;
    p->config = *config;
    p->targets = targets;
    p->log_limit = (struct ft_log_limit){.interval_ns = LOG_NS, .burst = LOG_BURST};
    rc = make_auths(p, error, error_bytes);
    if (rc == 0) {
        rc = make_jobs(p);
        if (rc < 0)
            snprintf(error, error_bytes, "out of memory");
    }
    if (rc == 0)
        return p;
    ft_poller_free(p);
    return NULL;
}

/* The first round comes at once, a little apart; later ones are spread over the interval. */
int ft_poller_start(struct ft_poller *p)
{
    struct ft_mono now = ft_mono_now();
    size_t n = p->targets->count;

    for (size_t i = 0; i < n; i++) {
        struct job *job = &p->jobs[i];
        int64_t phase_ns = p->config.interval_ns / (int64_t)n * (int64_t)i;
        int64_t first_ns = (int64_t)i * FIRST_GAP_NS;

        /* The second poll comes half an interval to one and a half after the first. */
        job->due.ns = now.ns + phase_ns;
        if (phase_ns > p->config.interval_ns / 2)
            job->due.ns -= p->config.interval_ns;
        if (first_ns > phase_ns)
            first_ns = phase_ns;
        ft_watch_once_arm(job->timer, first_ns);
    }
    return 0;
}

void ft_poller_free(struct ft_poller *p)
{
    if (!p)
        return;
    for (size_t i = 0; p->jobs && i < p->targets->count; i++) {
        ft_watch_free(p->jobs[i].timer);
        ft_snmp_session_free(p->jobs[i].poll.session);
        ft_device_free(p->jobs[i].device);
    }
    free(p->jobs);
    for (size_t i = 0; p->auths && i < p->targets->credential_count; i++)
        ft_snmp_auth_free(p->auths[i]);
    free(p->auths);
    ft_targets_free(p->targets);
    free(p);
}

static void add_device(struct ft_device_stats *sum, const struct ft_device_stats *one)
{
    sum->restarts += one->restarts;
    sum->resets += one->resets;
    sum->wraps += one->wraps;
    sum->frozen += one->frozen;
    sum->unresolved += one->unresolved;
    sum->not_increasing += one->not_increasing;
    sum->truncated += one->truncated;
}

void ft_poller_stats(const struct ft_poller *p, struct ft_poller_stats *stats)
{
    *stats = p->stats;
    stats->switches = p->targets->count;
    for (size_t i = 0; i < p->targets->count; i++) {
        const struct job *job = &p->jobs[i];

        stats->reachable += job->poll.reachable;
        stats->ports += job->device->ports.count;
        stats->neighbors += job->device->neighbors.count;
        add_device(&stats->devices, &job->device->stats);
    }
}

bool ft_poller_view(const struct ft_poller *p, size_t i, struct ft_poller_view *view)
{
    const struct job *job = &p->jobs[i];

    if (i >= p->targets->count)
        return false;
    *view = (struct ft_poller_view){
        .agent = job->target->address,
        .name = job->device->name,
        .reachable = job->poll.reachable,
        .duration_ns = job->duration_ns,
        .ports = job->device->ports.count,
        .neighbors = job->device->neighbors.count,
    };
    return true;
}
