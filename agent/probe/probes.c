// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/probe/probes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/probe/course.h"
#include "agent/probe/sockets.h"
#include "lib/base/log.h"
#include "lib/base/writer.h"
#include "lib/io/listen_local.h"
#include "lib/io/loop.h"
#include "proto/probe_request.h"
#include "proto/record.h"

#define NS_PER_S      INT64_C(1000000000)
#define TICK_NS       (NS_PER_S / 10)
#define SILENT_NS     (5 * NS_PER_S)
#define REPEAT_LOG_NS (60 * NS_PER_S)
#define CALLERS_MAX   8
#define WAITING_MAX   16
/* ICMP messages that are read before others of the loop are heard. */
#define TAKEN_MAX   64
#define ICMP_BYTES  2048
#define REPLY_BYTES 65536

/* A process that asks. fd below 0: none. */
struct caller {
    struct ft_probes *probes;
    int fd;
    uid_t uid;
    bool asked;
    struct ft_mono since;
    struct ft_watch *watch;
};

/* A flow that is probed, or waits for it. */
struct item {
    struct ft_course course;
    struct caller *caller; /* NULL: it has gone, or the daemon asked */
    uid_t uid;
    bool by_daemon;
};

struct ft_probes {
    struct ft_probes_config config;
    char *socket;
    struct ft_loop *loop;
    struct ft_uplink *uplink;
    struct ft_probe_sockets sockets;
    int listen_fd;
    struct ft_watch *listening, *tick, *icmp4, *icmp6;
    struct caller callers[CALLERS_MAX];
    struct item items[WAITING_MAX]; /* the first is probed */
    size_t count;
    struct ft_mono round; /* the last one, of whatever flow */
    struct ft_probes_stats stats;
    struct ft_log_limit warnings;
};

static void hang_up(struct caller *caller)
{
    struct ft_probes *probes = caller->probes;

    for (size_t i = 0; i < probes->count; i++)
        if (probes->items[i].caller == caller)
            probes->items[i].caller = NULL;
    ft_watch_free(caller->watch);
    close(caller->fd);
    *caller = (struct caller){.fd = -1};
}

static void warn(struct ft_probes *probes, uid_t uid, const char *why)
{
    uint64_t held;

    probes->stats.turned_away++;
    if (ft_log_limit_pass(&probes->warnings, ft_mono_now(), &held))
        ft_log(FT_LOG_WARNING, "probe: a process of user %u rejected: %s", uid, why);
}

/* Who asked has the record as a line of JSON; who does not read gets none. */
static void reply(struct caller *caller, const Fabrictrace__Record *record)
{
    struct ft_writer w;

    ft_writer_init(&w, REPLY_BYTES);
    if (ft_record_to_json(record, &w) == 0 && ft_writer_ok(&w))
        (void)!send(caller->fd, w.bytes, w.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    ft_writer_free(&w);
    hang_up(caller);
}

static void fill_answer(Fabrictrace__ProbeAnswer *out, const struct ft_course_hop *hop,
                        uint32_t ttl)
{
    fabrictrace__probe_answer__init(out);
    out->has_ttl = out->has_sent = true;
    out->ttl = ttl;
    out->sent = hop->sent;
    if (!hop->answered)
        return;
    out->has_address = out->has_rtt_ns = true;
    out->address.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&hop->address, &out->address.len);
    out->rtt_ns = (uint64_t)(hop->rtt_ns > 0 ? hop->rtt_ns : 0);
}

/* Says what came of a request: to the daemon, to who asked, and to the log. refused: why nothing
 * was sent, NULL. */
static void conclude(struct ft_probes *probes, const struct item *item, const char *refused)
{
    const struct ft_course *c = &item->course;
    uint32_t count = refused ? 0 : c->switches - 1, answered = 0;
    Fabrictrace__ProbeAnswer answers[FT_COURSE_SWITCHES], *list[FT_COURSE_SWITCHES];
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Probe probe = FABRICTRACE__PROBE__INIT;
    Fabrictrace__Flow flow = FABRICTRACE__FLOW__INIT;
    char text[FT_TUPLE_TEXT_BYTES], who[32];

    ft_flow_from_tuple(&flow, &c->tuple);
    for (uint32_t i = 0; i < count; i++) {
        fill_answer(&answers[i], &c->hops[i], i + 1);
        list[i] = &answers[i];
        answered += c->hops[i].answered;
    }
    probe.has_time_ms = probe.has_dst_qp = probe.has_dscp = probe.has_switches = true;
    probe.time_ms = (uint64_t)ft_wall_now().ms;
    probe.host = (char *)(uintptr_t)probes->config.host;
    probe.flow = &flow;
    probe.dst_qp = c->dst_qp;
    probe.dscp = c->dscp;
    probe.switches = c->switches;
    probe.n_answers = count;
    probe.answers = list;
    probe.has_uid = !item->by_daemon;
    probe.uid = item->uid;
    probe.has_by_daemon = probe.by_daemon = item->by_daemon;
    probe.refused = (char *)(uintptr_t)refused;
    record.kind_case = FABRICTRACE__RECORD__KIND_PROBE;
    record.probe = &probe;
    ft_tuple_format(&c->tuple, text);
    snprintf(who, sizeof(who), "user %u", item->uid);
    if (item->by_daemon)
        snprintf(who, sizeof(who), "the daemon");
    if (refused)
        ft_log(FT_LOG_NOTICE, "probe of %s for %s: refused: %s", text, who, refused);
    else
        ft_log(FT_LOG_NOTICE, "probe of %s for %s: TTL 1 to %u, %u of %u switches answered", text,
               who, count, answered, count);
    if (!refused || item->by_daemon)
        ft_uplink_record(probes->uplink, &record);
    probes->stats.refused += refused != NULL;
    probes->stats.probed += !refused;
    if (item->caller)
        reply(item->caller, &record);
}

/* caller: NULL: the daemon, whose flow does not wait: by then it asks for another. */
static void take(struct ft_probes *probes, const struct ft_probe_request *r, struct caller *caller)
{
    struct item item = {
        .course = {.tuple = r->tuple,
                   .dst_qp = r->dst_qp,
                   .dscp = r->dscp,
                   .switches = r->switches},
        .caller = caller,
        .uid = caller ? caller->uid : 0,
        .by_daemon = !caller,
    };
    const char *refused = ft_course_complaint(&r->tuple, r->dst_qp, r->dscp, r->switches);

    probes->stats.asked++;
    if (!refused && ft_interfaces_direction(probes->config.interfaces, FT_INTERFACE_NONE,
                                            &r->tuple.src, &r->tuple.dst) != FT_FLOW_TX)
        refused = "this host does not send such a flow";
    if (!refused && !caller && !probes->config.daemon_may_ask)
        refused = "probe.daemon is not set";
    if (!refused && probes->count >= (caller ? WAITING_MAX : 1))
        refused = caller ? "too many flows wait to be probed" : "another flow is being probed";
    if (refused)
        conclude(probes, &item, refused);
    else
        probes->items[probes->count++] = item;
}

static void shoot_round(struct ft_probes *probes, struct ft_course *c, struct ft_mono now)
{
    uint8_t bytes[FT_PROBE_BYTES];
    uint64_t random[2];

    ft_course_begin_round(c, now);
    for (uint32_t ttl = 1; ttl < c->switches; ttl++) {
        size_t len;

        if (!ft_course_wants(c, ttl))
            continue;
        /* Without random numbers an answer could be guessed. */
        if (getrandom(random, sizeof(random), 0) != sizeof(random)) {
            probes->stats.failed++;
            continue;
        }
        len = ft_course_shoot(c, ttl, ft_mono_now(), random, bytes);
        if (ft_probe_sockets_send(&probes->sockets, &c->tuple.src, &c->tuple.dst, bytes, len))
            probes->stats.failed++;
        else
            probes->stats.sent++;
    }
    /* The pause begins when all are sent. */
    probes->round = ft_mono_now();
}

static void advance(struct ft_probes *probes)
{
    struct ft_mono now = ft_mono_now();

    while (probes->count && ft_course_is_over(&probes->items[0].course, now)) {
        struct item done = probes->items[0];

        probes->count--;
        memmove(probes->items, probes->items + 1, probes->count * sizeof(*probes->items));
        conclude(probes, &done, NULL);
    }
    if (probes->count && ft_course_is_due(&probes->items[0].course, now) &&
        (probes->round.ns == 0 || ft_mono_since_ns(now, probes->round) >= FT_COURSE_ROUND_NS))
        shoot_round(probes, &probes->items[0].course, now);
    probes->stats.waiting = probes->count;
}

static void on_icmp(struct ft_probes *probes, int fd,
                    int (*decode)(const uint8_t *, size_t, struct ft_ttl_answer *))
{
    uint8_t bytes[ICMP_BYTES];

    for (int i = 0; i < TAKEN_MAX; i++) {
        struct ft_ttl_answer answer;
        struct ft_ip from;
        long n = ft_probe_sockets_receive(fd, bytes, sizeof(bytes), &from);

        if (n == -EINTR)
            continue;
        if (n < 0)
            break;
        if (probes->count && decode(bytes, (size_t)n, &answer) == 0 &&
            ft_course_take(&probes->items[0].course, &from, &answer, ft_mono_now()))
            probes->stats.answered++;
        else
            probes->stats.foreign++;
    }
    advance(probes);
}

static void on_icmp4(void *arg)
{
    struct ft_probes *probes = arg;

    on_icmp(probes, probes->sockets.receive4, ft_ttl_answer_decode4);
}

static void on_icmp6(void *arg)
{
    struct ft_probes *probes = arg;

    on_icmp(probes, probes->sockets.receive6, ft_ttl_answer_decode6);
}

static void on_message(void *arg)
{
    struct caller *caller = arg;
    uint8_t bytes[FT_PROBE_REQUEST_BYTES + 1];
    ssize_t n = recv(caller->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    struct ft_probe_request request;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        hang_up(caller);
    } else if (caller->asked || ft_probe_request_decode(bytes, (size_t)n, &request)) {
        warn(caller->probes, caller->uid, "it does not speak the protocol of this version");
        hang_up(caller);
    } else {
        caller->asked = true;
        take(caller->probes, &request, caller);
    }
}

/* The waiting connection keeps the socket readable: it is looked at again with the next tick. */
static void rest(struct ft_probes *probes)
{
    ft_loop_trouble(probes->loop, "probe.socket: no process can be accepted: %s", strerror(errno));
    ft_watch_free(probes->listening);
    probes->listening = NULL;
}

static struct caller *free_caller(struct ft_probes *probes)
{
    for (size_t i = 0; i < CALLERS_MAX; i++)
        if (probes->callers[i].fd < 0)
            return &probes->callers[i];
    return NULL;
}

static void on_connection(void *arg)
{
    struct ft_probes *probes = arg;
    int fd = accept4(probes->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct ucred peer = {0};
    socklen_t len = sizeof(peer);
    struct caller *caller;

    if (fd < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            rest(probes);
        return;
    }
    caller = free_caller(probes);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) || !caller ||
        (peer.uid != 0 && peer.uid != geteuid())) {
        warn(probes, peer.uid,
             caller ? "only root and the agent's own user may ask"
                    : "too many ask at once, or say nothing");
        close(fd);
        return;
    }
    *caller = (struct caller){.probes = probes, .fd = fd, .uid = peer.uid, .since = ft_mono_now()};
    caller->watch = ft_watch_stage(ft_watch_fd(probes->loop, fd, on_message, caller), "probes");
    if (!caller->watch)
        hang_up(caller);
}

static void on_tick(void *arg)
{
    struct ft_probes *probes = arg;
    struct ft_mono now = ft_mono_now();

    for (size_t i = 0; i < CALLERS_MAX; i++) {
        struct caller *c = &probes->callers[i];

        if (c->fd < 0 || c->asked || ft_mono_since_ns(now, c->since) < SILENT_NS)
            continue;
        warn(probes, c->uid, "it says nothing");
        hang_up(c);
    }
    advance(probes);
    if (!probes->listening && probes->listen_fd >= 0)
        probes->listening = ft_watch_fd(probes->loop, probes->listen_fd, on_connection, probes);
}

static bool watch(struct ft_probes *probes)
{
    struct ft_loop *loop = probes->loop;

    if (probes->listen_fd >= 0)
        probes->listening = ft_watch_fd(loop, probes->listen_fd, on_connection, probes);
    probes->tick = ft_watch_stage(ft_watch_timer(loop, TICK_NS, on_tick, probes), "probes");
    probes->icmp4 = ft_watch_fd(loop, probes->sockets.receive4, on_icmp4, probes);
    if (probes->sockets.receive6 >= 0)
        probes->icmp6 = ft_watch_fd(loop, probes->sockets.receive6, on_icmp6, probes);
    return (probes->listening || probes->listen_fd < 0) && probes->tick && probes->icmp4 &&
           (probes->icmp6 || probes->sockets.receive6 < 0);
}

/* Those who may ask own the socket, or are root. */
static int listen_at(struct ft_probes *probes, const char *path, char *error, size_t error_bytes)
{
    int rc = 0;

    probes->socket = strdup(path);
    if (!probes->socket)
        return -ENOMEM;
    probes->listen_fd = ft_listen_local(path);
    if (probes->listen_fd < 0)
        rc = probes->listen_fd;
    else if (chmod(path, 0600))
        rc = -errno;
    if (rc)
        snprintf(error, error_bytes, "probe.socket '%s': %s", path, strerror(-rc));
    return rc;
}

void ft_probes_ask(struct ft_probes *probes, const struct ft_probe_request *request)
{
    take(probes, request, NULL);
}

struct ft_probes *ft_probes_new(struct ft_loop *loop, struct ft_uplink *uplink,
                                const struct ft_probes_config *config, char *error,
                                size_t error_bytes)
{
    struct ft_probes *probes = calloc(1, sizeof(*probes));
    int rc;

    snprintf(error, error_bytes, "no memory");
    if (!probes)
        return NULL;
    probes->config = *config;
    probes->loop = loop;
    probes->uplink = uplink;
    probes->listen_fd = -1;
    probes->warnings = (struct ft_log_limit){.interval_ns = REPEAT_LOG_NS, .burst = 10};
    for (size_t i = 0; i < CALLERS_MAX; i++)
        probes->callers[i].fd = -1;
    rc = ft_probe_sockets_open(&probes->sockets);
    if (rc)
        snprintf(error, error_bytes, "%s: probes need raw sockets: %s",
                 config->socket ? "probe.socket" : "probe.daemon", strerror(-rc));
    else if (config->socket)
        rc = listen_at(probes, config->socket, error, error_bytes);
    if (rc == 0 && watch(probes))
        return probes;
    ft_probes_free(probes);
    return NULL;
}

void ft_probes_free(struct ft_probes *probes)
{
    if (!probes)
        return;
    ft_watch_free(probes->tick);
    ft_watch_free(probes->listening);
    ft_watch_free(probes->icmp4);
    ft_watch_free(probes->icmp6);
    for (size_t i = 0; i < CALLERS_MAX; i++)
        if (probes->callers[i].fd >= 0)
            hang_up(&probes->callers[i]);
    if (probes->listen_fd >= 0) {
        close(probes->listen_fd);
        unlink(probes->socket);
    }
    ft_probe_sockets_close(&probes->sockets);
    free(probes->socket);
    free(probes);
}

const struct ft_probes_stats *ft_probes_stats(const struct ft_probes *probes)
{
    return &probes->stats;
}
