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
#include "agent/plans/plan_reader.h"
#include "agent/plans/plan_report.h"
#include "agent/plans/withdrawn.h"
#include "agent/shim/protocol.h"
#include "lib/base/log.h"
#include "lib/base/writer.h"
#include "lib/io/closer.h"
#include "lib/io/listen_local.h"
#include "lib/io/local_users.h"
#include "lib/io/loop.h"
#include "proto/plan_name.h"

#define NS_PER_S    INT64_C(1000000000)
#define LOOK_NS     (2 * NS_PER_S)
#define SILENT_NS   (5 * NS_PER_S)
#define CALLERS_MAX 128
/* A quarter is left to others. */
#define CALLERS_USER  (CALLERS_MAX - CALLERS_MAX / 4)
#define PORTS_LOGGED  1000 /* a second */
#define REPEAT_LOG_NS (60 * NS_PER_S)

/* A process that asks. fd below 0: none. */
struct caller {
    struct ft_plans *plans;
    int fd;
    uid_t uid;
    uint64_t user; /* whose the user ID is */
    uint32_t pid;
    bool answered; /* with a port */
    bool waits;    /* for a file that is being read, with what it said */
    struct ft_plan_ask ask;
    struct ft_mono since;
    struct ft_watch *watch;
};

struct ft_plans {
    struct ft_plans_config config;
    char *socket, *folder;
    struct ft_loop *loop;
    int listen_fd;
    struct ft_closer *closer;
    struct ft_watch *listening, *tick;
    struct caller callers[CALLERS_MAX];
    size_t turn; /* whose waiting is looked at first */
    struct ft_plan_reader *reader;
    struct {
        uid_t uid;
        char job[FT_PLAN_JOB_BYTES];
        struct ft_plan_identity identity;
    } reading; /* what it reads */
    struct ft_kept_plans kept;
    struct ft_withdrawn withdrawn;
    struct ft_plans_stats stats;
    struct ft_log_limit warnings, ports;
    struct ft_plan_reports reports;
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
    ft_closer_hang_up(caller->plans->closer, caller->fd);
    *caller = (struct caller){.fd = -1};
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
        ft_plan_report_end(&plans->reports, &name,
                           FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_TAKEN_BACK);
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

/* Takes what was read into k, which is clear; it stays so where that is not the file's fault. */
static int load(struct ft_kept *k, const struct ft_plan_read *read, uid_t uid, const char *job)
{
    if (read->rc)
        ft_log(FT_LOG_WARNING, "plan of job '%s', user %u: not taken: %s", job, uid,
               read->error[0] ? read->error : strerror(-read->rc));
    else
        ft_log(FT_LOG_NOTICE, "plan of job '%s', user %u: taken, %zu queue pairs", job, uid,
               read->file.count);
    if (read->rc && !is_owners(read->rc))
        return read->rc;
    k->used = true;
    k->good = read->rc == 0;
    k->file = read->file;
    k->uid = uid;
    snprintf(k->job, sizeof(k->job), "%s", job);
    return 0;
}

static bool is_withdrawn(const struct ft_plans *plans, const struct ft_kept *k)
{
    const struct ft_withdrawal name = name_of(k);

    return ft_withdrawn_has(&plans->withdrawn, &name);
}

/* What was read replaces what was read before of its file; that is over if it was another plan. */
static struct ft_kept *replace(struct ft_plans *plans, const struct ft_plan_read *read)
{
    uid_t uid = plans->reading.uid;
    struct ft_kept *k = ft_kept_find(&plans->kept, uid, plans->reading.job);
    bool had = k && k->good;
    struct ft_withdrawal before = {.uid = 0};
    struct ft_kept fresh = {.identity = plans->reading.identity,
                            .user = ft_local_users_of(plans->config.users, uid)};

    if (load(&fresh, read, uid, plans->reading.job))
        return NULL;
    if (had)
        before = name_of(k);
    if (!k)
        k = ft_kept_slot(&plans->kept, fresh.user);
    ft_kept_forget(k);
    *k = fresh;
    if (had && (!k->good || k->file.record->plan->time_ms != before.plan_time_ms))
        ft_plan_report_end(&plans->reports, &before,
                           FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_TAKEN_BACK);
    return k;
}

static void not_taken(struct ft_plans *plans, uid_t uid, const char *job, const char *why)
{
    uint64_t held;

    if (ft_log_limit_pass(&plans->warnings, ft_mono_now(), &held))
        ft_log(FT_LOG_WARNING, "plan of job '%s', user %u: not taken: %s", job, uid, why);
}

/* A file that is to be read: as -EAGAIN of plan_of(), or 0 where that cannot be. */
static int begin_read(struct ft_plans *plans, int fd, uid_t uid, const char *job,
                      const struct ft_plan_identity *identity)
{
    int rc;

    if (ft_plan_reader_busy(plans->reader)) {
        close(fd);
        return -EAGAIN;
    }
    if (!ft_kept_may_read(&plans->kept, ft_local_users_of(plans->config.users, uid),
                          (uint64_t)identity->bytes, ft_mono_now())) {
        close(fd);
        not_taken(plans, uid, job,
                  "too much of files of this user was read in the last ten seconds");
        return 0;
    }
    rc = ft_plan_reader_begin(plans->reader, fd, job);
    if (rc) {
        not_taken(plans, uid, job, strerror(-rc));
        return 0;
    }
    plans->reading.uid = uid;
    plans->reading.identity = *identity;
    snprintf(plans->reading.job, sizeof(plans->reading.job), "%s", job);
    return -EAGAIN;
}

static struct ft_kept *good_one(struct ft_plans *plans, struct ft_kept *k)
{
    if (k)
        k->asked = ft_mono_now();
    return k && k->good && !is_withdrawn(plans, k) ? k : NULL;
}

/* The user's plan for that job as it lies in the folder now; NULL: there is none that is good.
 * -EAGAIN: it has to be read, or another one is being read. */
static int plan_of(struct ft_plans *plans, uid_t uid, const char *job, struct ft_kept **out)
{
    char name[FT_PLAN_NAME_BYTES];
    struct ft_plan_identity identity;
    struct ft_kept *k = ft_kept_find(&plans->kept, uid, job);
    int fd;

    *out = NULL;
    if (ft_plan_name(name, uid, job, plans->config.host))
        return 0;
    fd = ft_plan_file_open(plans->config.folder, name, uid, &identity);
    if (fd < 0) {
        if (k && is_owners(fd))
            withdraw(plans, k);
        if (fd != -ENOENT)
            not_taken(plans, uid, job,
                      fd == -EPERM ? "others may write it, or it is not the user's"
                                   : strerror(-fd));
        return 0;
    }
    if (!k || !is_same(&k->identity, &identity))
        return begin_read(plans, fd, uid, job, &identity);
    close(fd);
    *out = good_one(plans, k);
    return 0;
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

static void finish_ask(struct caller *caller, const struct ft_plan_ask *ask, struct ft_kept *k)
{
    struct ft_plans *plans = caller->plans;
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

static void finish_done(struct caller *caller, const struct ft_plan_ask *ask, struct ft_kept *k)
{
    static const char *const became[] = {
        [FT_SHIM_LABEL] = "has port", [FT_SHIM_SPORT] = "has port", [FT_SHIM_REFUSED] = "refused"};
    struct ft_plans *plans = caller->plans;
    struct ft_plan_entry *entry =
        k ? ft_plan_file_port(&k->file, &ask->src, &ask->dst, ask->sport) : NULL;
    char src[FT_IP_TEXT_BYTES], dst[FT_IP_TEXT_BYTES];
    uint64_t held;

    /* Withdrawn meanwhile, or none that it was given. */
    if (!entry)
        return;
    count_outcome(plans, ask->outcome);
    ft_plan_report_port(&plans->reports, caller->pid, ask, k, entry);
    ft_ip_format(&ask->src, src);
    ft_ip_format(&ask->dst, dst);
    if (ft_log_limit_pass(&plans->ports, ft_mono_now(), &held))
        ft_log(FT_LOG_INFO,
               "plan of job '%s', user %u: queue pair %u of process %u, %s > %s: %s %u", k->job,
               k->uid, ask->qp, caller->pid, src, dst, became[ask->outcome], ask->sport);
}

/* What a process said is answered by this plan, NULL: by none. */
static void finish(struct caller *caller, struct ft_kept *k)
{
    if (caller->waits)
        ft_watch_resume(caller->watch);
    caller->waits = false;
    if (caller->ask.kind == FT_SHIM_DONE) {
        finish_done(caller, &caller->ask, k);
        hang_up(caller);
    } else {
        finish_ask(caller, &caller->ask, k);
    }
}

static void take(struct caller *caller)
{
    struct ft_kept *k = NULL;

    if (!caller->ask.job[0] ||
        plan_of(caller->plans, caller->uid, caller->ask.job, &k) != -EAGAIN) {
        finish(caller, k);
        return;
    }
    /* It has said all that it may. */
    if (!caller->waits)
        ft_watch_pause(caller->watch);
    caller->waits = true;
}

/* Who waited for this file is answered, whatever became of it; the next that needs one has it read.
 */
static void on_read(void *arg, const struct ft_plan_read *read)
{
    struct ft_plans *plans = arg;
    struct ft_kept *k = replace(plans, read);
    size_t turn = plans->turn++;

    for (size_t i = 0; i < CALLERS_MAX; i++) {
        struct caller *c = &plans->callers[i];

        if (c->fd >= 0 && c->waits && c->uid == plans->reading.uid &&
            strcmp(c->ask.job, plans->reading.job) == 0)
            finish(c, good_one(plans, k));
    }
    for (size_t i = 0; i < CALLERS_MAX; i++) {
        struct caller *c = &plans->callers[(turn + i) % CALLERS_MAX];

        if (c->fd >= 0 && c->waits)
            take(c);
    }
}

static void on_message(void *arg)
{
    struct caller *caller = arg;
    uint8_t bytes[FT_SHIM_DONE_BYTES + 1];
    ssize_t n = ft_closer_receive(caller->fd, bytes, sizeof(bytes));

    if (n == -EAGAIN || n == -EINTR)
        return;
    if (n <= 0 && n != -EBADMSG) {
        hang_up(caller);
        return;
    }
    if (n < 0 || ft_plan_ask_decode(bytes, (size_t)n, &caller->ask) ||
        (caller->ask.kind == FT_SHIM_DONE) != caller->answered) {
        warn(caller->plans, caller->pid, "it does not speak the protocol of this version");
        hang_up(caller);
    } else {
        take(caller);
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
static void rest(struct ft_plans *plans, const char *why)
{
    ft_loop_trouble(plans->loop, "plan.socket: no process can be accepted: %s", why);
    ft_watch_free(plans->listening);
    plans->listening = NULL;
}

static void on_connection(void *arg)
{
    struct ft_plans *plans = arg;
    struct ucred peer = {0};
    socklen_t len = sizeof(peer);
    struct caller *caller;
    uint64_t user;
    int fd;

    if (!ft_closer_may_accept(plans->closer)) {
        rest(plans, "too many connections are still being closed");
        return;
    }
    fd = accept4(plans->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            rest(plans, strerror(errno));
        return;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len)) {
        ft_closer_hang_up(plans->closer, fd);
        return;
    }
    user = ft_local_users_of(plans->config.users, peer.uid);
    caller = free_caller(plans, user);
    if (!caller) {
        warn(plans, (uint32_t)peer.pid, "too many ask at once, or say nothing");
        ft_closer_hang_up(plans->closer, fd);
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
        if (c->waits) {
            finish(c, NULL);
            continue;
        }
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
    plans->reports = (struct ft_plan_reports){.uplink = uplink,
                                              .host = config->host,
                                              .source = config->source,
                                              .unreported = &plans->stats.unreported};
    plans->warnings = (struct ft_log_limit){.interval_ns = REPEAT_LOG_NS, .burst = 10};
    plans->ports = (struct ft_log_limit){.interval_ns = NS_PER_S, .burst = PORTS_LOGGED};
    for (size_t i = 0; i < CALLERS_MAX; i++)
        plans->callers[i].fd = -1;
    plans->socket = strdup(config->socket);
    plans->folder = strdup(config->folder);
    plans->config.folder = plans->folder;
    plans->closer = ft_closer_new();
    plans->listen_fd =
        plans->socket && plans->folder && plans->closer ? ft_listen_local(config->socket) : -ENOMEM;
    if (plans->listen_fd < 0) {
        snprintf(error, error_bytes, "plan.socket '%s': %s", config->socket,
                 strerror(-plans->listen_fd));
        ft_closer_free(plans->closer);
        free(plans->socket);
        free(plans->folder);
        free(plans);
        return NULL;
    }
    plans->listening = ft_watch_fd(loop, plans->listen_fd, on_connection, plans);
    plans->tick = ft_watch_stage(ft_watch_timer(loop, LOOK_NS, on_tick, plans), "plans");
    plans->reader = ft_plan_reader_new(loop, on_read, plans);
    if (!plans->listening || !plans->tick || !plans->reader) {
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
    ft_plan_reader_free(plans->reader);
    ft_watch_free(plans->tick);
    ft_watch_free(plans->listening);
    for (size_t i = 0; i < CALLERS_MAX; i++)
        if (plans->callers[i].fd >= 0)
            hang_up(&plans->callers[i]);
    for (size_t i = 0; i < FT_KEPT_MAX; i++)
        ft_kept_forget(&plans->kept.list[i]);
    ft_closer_hang_up(plans->closer, plans->listen_fd);
    ft_closer_free(plans->closer);
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
    ft_plan_report_end(&plans->reports, &withdrawal,
                       FABRICTRACE__PLAN_OUTCOME__PLAN_OUTCOME_WITHDRAWN);
}

struct ft_closer_stats ft_plans_closing(const struct ft_plans *plans)
{
    return ft_closer_stats(plans->closer);
}

const struct ft_plans_stats *ft_plans_stats(const struct ft_plans *plans)
{
    return &plans->stats;
}
