// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/plans/plans.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/plans/ask.h"
#include "agent/plans/kept.h"
#include "agent/plans/plan_file.h"
#include "agent/plans/withdrawn.h"
#include "agent/shim/protocol.h"
#include "lib/base/log.h"
#include "lib/base/writer.h"
#include "lib/io/listen_local.h"
#include "lib/io/local_users.h"
#include "lib/io/loop.h"
#include "proto/plan_name.h"
#include "proto/record.h"

#define NS_PER_S    INT64_C(1000000000)
#define LOOK_NS     (2 * NS_PER_S)
#define SILENT_NS   (5 * NS_PER_S)
#define CALLERS_MAX 128
/* A quarter is left to others. */
#define CALLERS_USER  (CALLERS_MAX - CALLERS_MAX / 4)
#define REPORTS_MAX   1000 /* a second */
#define ERROR_BYTES   256
#define REPEAT_LOG_NS (60 * NS_PER_S)

/* A process that asks. fd below 0: none. */
struct caller {
    struct ft_plans *plans;
    int fd;
    uid_t uid;
    uint64_t user; /* whose the user ID is */
    uint32_t pid;
    bool answered; /* with a port */
    struct ft_mono since;
    struct ft_watch *watch;
};

struct ft_plans {
    struct ft_plans_config config;
    char *socket, *folder;
    struct ft_loop *loop;
    struct ft_uplink *uplink;
    int listen_fd;
    struct ft_watch *listening, *tick;
    struct caller callers[CALLERS_MAX];
    struct ft_kept_plans kept;
    struct ft_withdrawn withdrawn;
    struct ft_plans_stats stats;
    struct ft_log_limit warnings, ports;
    struct ft_mono second;
    uint32_t reports; /* in it */
};

static void warn(struct ft_plans *plans, uint32_t pid, const char *why)
{
    uint64_t held;

    plans->stats.turned_away++;
    if (ft_log_limit_pass(&plans->warnings, ft_mono_now(), &held))
        ft_log(FT_LOG_WARNING, "plan: process %u rejected: %s", pid, why);
}

static void hang_up(struct caller *caller)
{
    ft_watch_free(caller->watch);
    close(caller->fd);
    *caller = (struct caller){.fd = -1};
}

static bool may_report(struct ft_plans *plans)
{
    struct ft_mono now = ft_mono_now();

    if (ft_mono_since_ns(now, plans->second) >= NS_PER_S) {
        plans->second = now;
        plans->reports = 0;
    }
    if (plans->reports == REPORTS_MAX) {
        plans->stats.unreported++;
        return false;
    }
    plans->reports++;
    return true;
}

static void report_end(struct ft_plans *plans, const struct ft_withdrawal *of,
                       Fabrictrace__PlanOutcome outcome)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__PlanPort port = FABRICTRACE__PLAN_PORT__INIT;

    if (!may_report(plans))
        return;
    port.has_time_ms = port.has_uid = port.has_outcome = port.has_plan_time_ms = true;
    port.time_ms = (uint64_t)ft_wall_now().ms;
    port.host = (char *)(uintptr_t)plans->config.host;
    port.source = (char *)(uintptr_t)plans->config.source;
    port.job = (char *)(uintptr_t)of->job;
    port.uid = of->uid;
    port.outcome = outcome;
    port.plan_time_ms = of->plan_time_ms;
    record.kind_case = FABRICTRACE__RECORD__KIND_PLAN_PORT;
    record.plan_port = &port;
    ft_uplink_record(plans->uplink, &record);
}

static struct ft_withdrawal name_of(const struct ft_kept *k)
{
    struct ft_withdrawal name = {.uid = k->uid, .plan_time_ms = k->file.record->plan->time_ms};

    memcpy(name.job, k->job, sizeof(name.job));
    return name;
}

/* What its owner took back, or replaced by something else. */
static void withdraw(struct ft_plans *plans, struct ft_kept *k)
{
    struct ft_withdrawal name;

    if (k->good) {
        name = name_of(k);
        report_end(plans, &name, FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_TAKEN_BACK);
        ft_log(FT_LOG_NOTICE, "plan of job '%s', user %u: withdrawn, %zu queue pairs", k->job,
               k->uid, k->file.count);
    }
    ft_kept_forget(k);
}

static bool is_same(const struct ft_plan_identity *a, const struct ft_plan_identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
           a->changed_ns == b->changed_ns;
}

/* Its owner took the file away, or has something else there that is not a plan of its own. Whatever
 * else keeps the agent from opening or reading it, as too many open files, says nothing of it. */
static bool is_owners(int rc)
{
    return rc == -ENOENT || rc == -EPERM || rc == -EFBIG || rc == -EINVAL;
}

/* Reads a file into k, which is clear; it stays so where that is not the file's fault. */
static int load(struct ft_kept *k, int fd, uid_t uid, const char *job)
{
    char error[ERROR_BYTES] = "";
    int rc = ft_plan_file_read(fd, job, &k->file, error, sizeof(error));

    if (rc)
        ft_log(FT_LOG_WARNING, "plan of job '%s', user %u: not taken: %s", job, uid,
               error[0] ? error : strerror(-rc));
    else
        ft_log(FT_LOG_NOTICE, "plan of job '%s', user %u: taken, %zu queue pairs", job, uid,
               k->file.count);
    if (rc && !is_owners(rc))
        return rc;
    k->used = true;
    k->good = rc == 0;
    k->uid = uid;
    snprintf(k->job, sizeof(k->job), "%s", job);
    return 0;
}

static bool is_withdrawn(const struct ft_plans *plans, const struct ft_kept *k)
{
    const struct ft_withdrawal name = name_of(k);

    return ft_withdrawn_has(&plans->withdrawn, &name);
}

/* Reads a file, which replaces what was read before of it; that is over if it was another plan. */
static struct ft_kept *replace(struct ft_plans *plans, struct ft_kept *k, int fd, uid_t uid,
                               const char *job, const struct ft_plan_identity *identity)
{
    bool had = k && k->good;
    struct ft_withdrawal before = {.uid = 0};
    struct ft_kept fresh = {.identity = *identity,
                            .user = ft_local_users_of(plans->config.users, uid)};

    if (load(&fresh, fd, uid, job))
        return NULL;
    if (had)
        before = name_of(k);
    if (!k)
        k = ft_kept_slot(&plans->kept, fresh.user);
    ft_kept_forget(k);
    *k = fresh;
    if (had && (!k->good || k->file.record->plan->time_ms != before.plan_time_ms))
        report_end(plans, &before, FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_TAKEN_BACK);
    return k;
}

static struct ft_kept *not_taken(struct ft_plans *plans, uid_t uid, const char *job,
                                 const char *why)
{
    uint64_t held;

    if (ft_log_limit_pass(&plans->warnings, ft_mono_now(), &held))
        ft_log(FT_LOG_WARNING, "plan of job '%s', user %u: not taken: %s", job, uid, why);
    return NULL;
}

/* The user's plan for that job as it lies in the folder now; NULL: there is none that is good. */
static struct ft_kept *plan_of(struct ft_plans *plans, uid_t uid, const char *job)
{
    char name[FT_PLAN_NAME_BYTES];
    struct ft_plan_identity identity;
    struct ft_kept *k = ft_kept_find(&plans->kept, uid, job);
    int fd;

    if (ft_plan_name(name, uid, job, plans->config.host))
        return NULL;
    fd = ft_plan_file_open(plans->config.folder, name, uid, &identity);
    if (fd < 0) {
        if (k && is_owners(fd))
            withdraw(plans, k);
        return fd == -ENOENT
                   ? NULL
                   : not_taken(plans, uid, job,
                               fd == -EPERM ? "others may write it, or it is not the user's"
                                            : strerror(-fd));
    }
    if (k && is_same(&k->identity, &identity)) {
        close(fd);
    } else if (ft_kept_may_read(&plans->kept, ft_local_users_of(plans->config.users, uid),
                                (uint64_t)identity.bytes, ft_mono_now())) {
        k = replace(plans, k, fd, uid, job, &identity);
    } else {
        close(fd);
        return not_taken(plans, uid, job,
                         "too much of files of this user was read in the last ten seconds");
    }
    if (!k)
        return NULL;
    k->asked = ft_mono_now();
    return k->good && !is_withdrawn(plans, k) ? k : NULL;
}

static void answer(struct caller *caller, const struct ft_plan_ask *ask, uint16_t sport)
{
    uint8_t bytes[FT_SHIM_ANSWER_BYTES];
    struct ft_writer w;

    ft_writer_init(&w, sizeof(bytes));
    ft_write_be64(&w, FT_SHIM_MAGIC);
    ft_write_be32(&w, FT_SHIM_ANSWER);
    ft_write_be32(&w, ask->qp);
    ft_write_be32(&w, sport);
    /* Who does not read gets none. */
    if (ft_writer_ok(&w))
        (void)!send(caller->fd, w.bytes, w.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    ft_writer_free(&w);
}

static void take_ask(struct caller *caller, const struct ft_plan_ask *ask)
{
    struct ft_plans *plans = caller->plans;
    struct ft_kept *k = ask->job[0] ? plan_of(plans, caller->uid, ask->job) : NULL;
    struct ft_plan_entry *entry = k ? ft_plan_file_find(&k->file, &ask->src, &ask->dst) : NULL;

    plans->stats.asked++;
    if (entry) {
        entry->given++;
        plans->stats.given++;
    } else {
        plans->stats.refused++;
    }
    answer(caller, ask, entry ? entry->sport : 0);
    if (entry)
        caller->answered = true;
    else
        hang_up(caller);
}

static void count_outcome(struct ft_plans *plans, enum ft_shim_outcome outcome)
{
    if (outcome == FT_SHIM_LABEL)
        plans->stats.labels++;
    else if (outcome == FT_SHIM_SPORT)
        plans->stats.sports++;
    else
        plans->stats.rejected++;
}

static void report(struct caller *caller, const struct ft_plan_ask *ask, const struct ft_kept *k,
                   const struct ft_plan_entry *entry)
{
    struct ft_plans *plans = caller->plans;
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__PlanPort port = FABRICTRACE__PLAN_PORT__INIT;
    Fabrictrace__Flow flow = FABRICTRACE__FLOW__INIT;
    Fabrictrace__Qp qp = FABRICTRACE__QP__INIT;
    const struct ft_tuple tuple = {.src = ask->src,
                                   .dst = ask->dst,
                                   .sport = ask->sport,
                                   .dport = FT_ROCE_PORT,
                                   .proto = FT_PROTO_UDP};

    ft_flow_from_tuple(&flow, &tuple);
    qp.has_local = qp.has_remote = true;
    qp.local = ask->qp;
    qp.remote = ask->peer;
    port.has_time_ms = port.has_uid = port.has_outcome = true;
    port.has_pid = caller->pid != 0; /* 0: of another PID namespace */
    port.has_plan_time_ms = true;
    port.time_ms = (uint64_t)ft_wall_now().ms;
    port.host = (char *)(uintptr_t)plans->config.host;
    port.job = (char *)(uintptr_t)k->job;
    port.uid = caller->uid;
    port.pid = caller->pid;
    port.flow = &flow;
    port.qp = &qp;
    port.outcome = (Fabrictrace__PlanOutcome)ask->outcome;
    port.n_hops = entry->move->n_hops;
    port.hops = entry->move->hops;
    port.n_hops_before = entry->move->n_hops_before;
    port.hops_before = entry->move->hops_before;
    port.plan_time_ms = k->file.record->plan->time_ms;
    port.source = (char *)(uintptr_t)plans->config.source;
    record.kind_case = FABRICTRACE__RECORD__KIND_PLAN_PORT;
    record.plan_port = &port;
    ft_uplink_record(plans->uplink, &record);
}

static void take_done(struct caller *caller, const struct ft_plan_ask *ask)
{
    static const char *const became[] = {
        [FT_SHIM_LABEL] = "has port", [FT_SHIM_SPORT] = "has port", [FT_SHIM_REFUSED] = "refused"};
    struct ft_plans *plans = caller->plans;
    struct ft_kept *k = plan_of(plans, caller->uid, ask->job);
    struct ft_plan_entry *entry =
        k ? ft_plan_file_port(&k->file, &ask->src, &ask->dst, ask->sport) : NULL;
    char src[FT_IP_TEXT_BYTES], dst[FT_IP_TEXT_BYTES];
    uint64_t held;

    /* Withdrawn meanwhile, or none that it was given. */
    if (!entry)
        return;
    count_outcome(plans, ask->outcome);
    if (may_report(plans))
        report(caller, ask, k, entry);
    ft_ip_format(&ask->src, src);
    ft_ip_format(&ask->dst, dst);
    if (ft_log_limit_pass(&plans->ports, ft_mono_now(), &held))
        ft_log(FT_LOG_INFO,
               "plan of job '%s', user %u: queue pair %u of process %u, %s > %s: %s %u", k->job,
               k->uid, ask->qp, caller->pid, src, dst, became[ask->outcome], ask->sport);
}

static void on_message(void *arg)
{
    struct caller *caller = arg;
    uint8_t bytes[FT_SHIM_DONE_BYTES + 1];
    ssize_t n = recv(caller->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    struct ft_plan_ask ask;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        hang_up(caller);
        return;
    }
    if (ft_plan_ask_decode(bytes, (size_t)n, &ask) ||
        (ask.kind == FT_SHIM_DONE) != caller->answered) {
        warn(caller->plans, caller->pid, "it does not speak the protocol of this version");
        hang_up(caller);
    } else if (ask.kind == FT_SHIM_DONE) {
        take_done(caller, &ask);
        hang_up(caller);
    } else {
        take_ask(caller, &ask);
    }
}

static struct caller *free_caller(struct ft_plans *plans, uint64_t user)
{
    struct caller *found = NULL;
    size_t own = 0;

    for (size_t i = 0; i < CALLERS_MAX; i++) {
        struct caller *c = &plans->callers[i];

        own += c->fd >= 0 && c->user == user;
        if (c->fd < 0 && !found)
            found = c;
    }
    return own < CALLERS_USER ? found : NULL;
}

/* The waiting connection keeps the socket readable: it is looked at again with the next tick. */
static void rest(struct ft_plans *plans)
{
    ft_loop_trouble(plans->loop, "plan.socket: no process can be accepted: %s", strerror(errno));
    ft_watch_free(plans->listening);
    plans->listening = NULL;
}

static void on_connection(void *arg)
{
    struct ft_plans *plans = arg;
    int fd = accept4(plans->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct ucred peer = {0};
    socklen_t len = sizeof(peer);
    struct caller *caller;
    uint64_t user;

    if (fd < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            rest(plans);
        return;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len)) {
        close(fd);
        return;
    }
    user = ft_local_users_of(plans->config.users, peer.uid);
    caller = free_caller(plans, user);
    if (!caller) {
        warn(plans, (uint32_t)peer.pid, "too many ask at once, or say nothing");
        close(fd);
        return;
    }
    *caller = (struct caller){.plans = plans,
                              .fd = fd,
                              .uid = peer.uid,
                              .user = user,
                              .pid = (uint32_t)peer.pid,
                              .since = ft_mono_now()};
    caller->watch = ft_watch_stage(ft_watch_fd(plans->loop, fd, on_message, caller), "plans");
    if (!caller->watch)
        hang_up(caller);
}

/* Whether the file of a plan is still the one that was read. */
static void look(struct ft_plans *plans, struct ft_kept *k)
{
    char name[FT_PLAN_NAME_BYTES];
    struct ft_plan_identity identity;
    int fd;

    if (ft_plan_name(name, k->uid, k->job, plans->config.host))
        return;
    fd = ft_plan_file_open(plans->config.folder, name, k->uid, &identity);
    if (fd >= 0)
        close(fd);
    else if (is_owners(fd))
        withdraw(plans, k);
}

static void on_tick(void *arg)
{
    struct ft_plans *plans = arg;
    struct ft_mono now = ft_mono_now();

    for (size_t i = 0; i < CALLERS_MAX; i++) {
        struct caller *c = &plans->callers[i];

        if (c->fd < 0 || ft_mono_since_ns(now, c->since) < SILENT_NS)
            continue;
        warn(plans, c->pid, "it says nothing");
        hang_up(c);
    }
    plans->stats.plans = 0;
    for (size_t i = 0; i < FT_KEPT_MAX; i++) {
        if (plans->kept.list[i].used)
            look(plans, &plans->kept.list[i]);
        plans->stats.plans += plans->kept.list[i].good;
    }
    if (!plans->listening)
        plans->listening = ft_watch_fd(plans->loop, plans->listen_fd, on_connection, plans);
}

struct ft_plans *ft_plans_new(struct ft_loop *loop, struct ft_uplink *uplink,
                              const struct ft_plans_config *config, char *error, size_t error_bytes)
{
    struct ft_plans *plans = calloc(1, sizeof(*plans));

    if (!plans) {
        snprintf(error, error_bytes, "no memory");
        return NULL;
    }
    plans->config = *config;
    plans->loop = loop;
    plans->uplink = uplink;
    plans->warnings = (struct ft_log_limit){.interval_ns = REPEAT_LOG_NS, .burst = 10};
    plans->ports = (struct ft_log_limit){.interval_ns = NS_PER_S, .burst = REPORTS_MAX};
    for (size_t i = 0; i < CALLERS_MAX; i++)
        plans->callers[i].fd = -1;
    plans->socket = strdup(config->socket);
    plans->folder = strdup(config->folder);
    plans->config.folder = plans->folder;
    plans->listen_fd = plans->socket && plans->folder ? ft_listen_local(config->socket) : -ENOMEM;
    if (plans->listen_fd < 0) {
        snprintf(error, error_bytes, "plan.socket '%s': %s", config->socket,
                 strerror(-plans->listen_fd));
        free(plans->socket);
        free(plans->folder);
        free(plans);
        return NULL;
    }
    plans->listening = ft_watch_fd(loop, plans->listen_fd, on_connection, plans);
    plans->tick = ft_watch_stage(ft_watch_timer(loop, LOOK_NS, on_tick, plans), "plans");
    if (!plans->listening || !plans->tick) {
        snprintf(error, error_bytes, "no memory");
        ft_plans_free(plans);
        return NULL;
    }
    return plans;
}

void ft_plans_free(struct ft_plans *plans)
{
    if (!plans)
        return;
    ft_watch_free(plans->tick);
    ft_watch_free(plans->listening);
    for (size_t i = 0; i < CALLERS_MAX; i++)
        if (plans->callers[i].fd >= 0)
            hang_up(&plans->callers[i]);
    for (size_t i = 0; i < FT_KEPT_MAX; i++)
        ft_kept_forget(&plans->kept.list[i]);
    close(plans->listen_fd);
    unlink(plans->socket);
    free(plans->socket);
    free(plans->folder);
    free(plans);
}

void ft_plans_notice(struct ft_plans *plans, const uint8_t *payload, size_t len)
{
    struct ft_withdrawal withdrawal;
    uint64_t held;

    if (ft_withdrawal_decode(payload, len, &withdrawal)) {
        plans->stats.notices_refused++;
        if (ft_log_limit_pass(&plans->warnings, ft_mono_now(), &held))
            ft_log(FT_LOG_WARNING, "plan: a notice of the daemon is not one of this version");
        return;
    }
    if (ft_withdrawn_add(&plans->withdrawn, &withdrawal)) {
        plans->stats.withdrawn++;
        if (ft_log_limit_pass(&plans->ports, ft_mono_now(), &held))
            ft_log(FT_LOG_NOTICE,
                   "plan of job '%s', user %u: withdrawn by the daemon: samples do not bear it out",
                   withdrawal.job, withdrawal.uid);
    }
    report_end(plans, &withdrawal, FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_WITHDRAWN);
}

const struct ft_plans_stats *ft_plans_stats(const struct ft_plans *plans)
{
    return &plans->stats;
}
