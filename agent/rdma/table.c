// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/rdma/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rdma/sport.h"
#include "lib/base/table.h"

/* Two tuples a queue pair; a hint for each address and direction of one without destination. */
#define TUPLES_EACH 2
#define ODD_ROUNDS  3
#define HINTS_EACH  8
/* Below it are the ports that services listen on (Linux net.ipv4.ip_local_port_range). */
#define EPHEMERAL_MIN 32768

enum reported_by {
    TOLD_BY_NONE,
    TOLD_BY_CM,
    TOLD_BY_WIRE,
    TOLD_BY_QUERY,
};

struct qp_key {
    uint32_t device;
    uint32_t lqpn;
};

struct qp {
    struct qp_key key;
    uint32_t round;
    uint32_t port, rqpn, pid, domain;
    uint32_t sq_psn, rq_psn;
    uint8_t type, state;
    bool connected;
    bool asked;
    uint8_t reported_by; /* enum told_by */
    uint8_t port_source; /* enum ft_rdma_source */
    bool one_way;        /* nobody knows the port of the other direction */
    bool begun, gone, kernel;
    bool reported;         /* somebody was told that there is one with this key */
    uint8_t reported_form; /* what of it; 0: nothing yet */
    uint16_t sport;
    struct ft_mono asked_at, reported_at;
    struct ft_wall first_seen;
    struct ft_ip src, dst;
};

struct tuple_key {
    struct ft_tuple tuple;
    uint32_t direction;
};

struct flow {
    struct tuple_key key;
    uint32_t round;
    struct qp_key qp;
    uint32_t lqpn, rqpn, pid;
    uint32_t device_port;
    uint8_t source;
    bool shared; /* by several queue pairs */
    bool reported;
    bool captured;
    struct ft_mono last_report;
    struct ft_mono captured_at;
    struct ft_wall first_seen;
};

/* What a packet of a queue pair without destination would show. */
struct hint_key {
    struct ft_ip local;
    uint32_t dst_qp;
    uint16_t sport;
    uint16_t direction;
};

struct hint {
    struct hint_key key;
    struct qp_key qp;
    bool shared;
};

struct ft_rdma_table {
    struct ft_rdma_table_config config;
    struct ft_rdma_device_port device_ports[FT_RDMA_DEVICE_PORTS_MAX];
    uint32_t device_port_count;
    bool device_port_reported[FT_RDMA_DEVICE_PORTS_MAX];
    struct ft_mono device_port_reported_at[FT_RDMA_DEVICE_PORTS_MAX];
    struct ft_rdma_end ends[FT_RDMA_ENDS_MAX];
    uint32_t ask_from;        /* where the next questions begin: nobody is left out for long */
    uint32_t round, complete; /* complete: the last that ended */
    uint32_t odd_rounds;      /* in a row */
    struct ft_table *qps, *flows, *hints;
    struct ft_rdma_table_stats stats;
};

struct ft_rdma_table *ft_rdma_table_new(const struct ft_rdma_table_config *config)
{
    struct ft_rdma_table *t = calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    t->config = *config;
    t->qps = ft_table_new(sizeof(struct qp), sizeof(struct qp_key), config->qps_max, config->seed);
    t->flows = ft_table_new(sizeof(struct flow), sizeof(struct tuple_key),
                            TUPLES_EACH * config->qps_max, config->seed);
    t->hints = ft_table_new(sizeof(struct hint), sizeof(struct hint_key),
                            HINTS_EACH * config->qps_max, config->seed);
    if (!t->qps || !t->flows || !t->hints) {
        ft_rdma_table_free(t);
        return NULL;
    }
    return t;
}

void ft_rdma_table_free(struct ft_rdma_table *t)
{
    if (!t)
        return;
    ft_table_free(t->qps);
    ft_table_free(t->flows);
    ft_table_free(t->hints);
    free(t);
}

void ft_rdma_table_refresh(struct ft_rdma_table *t, int64_t refresh_ns)
{
    t->config.refresh_ns = refresh_ns;
}

void ft_rdma_table_clear_ports(struct ft_rdma_table *t)
{
    t->device_port_count = 0;
}

int ft_rdma_table_add_port(struct ft_rdma_table *t, const struct ft_rdma_device_port *device_port)
{
    if (t->device_port_count == FT_RDMA_DEVICE_PORTS_MAX)
        return -ENOSPC;
    t->device_ports[t->device_port_count++] = *device_port;
    return 0;
}

const struct ft_rdma_device_port *ft_rdma_table_port_at(const struct ft_rdma_table *t, size_t i)
{
    return i < t->device_port_count ? &t->device_ports[i] : NULL;
}

/* A row need not name its port where the device has one alone. */
static uint32_t device_port_of(const struct ft_rdma_table *t, uint32_t device, uint32_t port)
{
    for (uint32_t i = 0; i < t->device_port_count; i++)
        if (t->device_ports[i].device == device && (port == 0 || t->device_ports[i].port == port))
            return i;
    return FT_RDMA_DEVICE_PORTS_MAX;
}

static bool can_compute(const struct ft_rdma_table *t, uint32_t device_port)
{
    return device_port < FT_RDMA_DEVICE_PORTS_MAX &&
           ft_rdma_sport_is_computable(t->device_ports[device_port].driver);
}

void ft_rdma_table_begin(struct ft_rdma_table *t)
{
    const struct ft_rdma_table_stats before = t->stats;

    t->round++;
    t->stats = (struct ft_rdma_table_stats){
        .rows = before.rows, .rows_refused = before.rows_refused, .connected = before.connected};
}

/* Has an address handle: reached RTR and left it for nothing but SQD or back to RTS. */
static bool is_connected(const struct ft_rdma_qp *qp)
{
    return qp->has_rqpn && qp->has_type && qp->has_state && qp->rqpn != 0 &&
           (qp->type == FT_QP_TYPE_RC || qp->type == FT_QP_TYPE_UC) &&
           (qp->state == FT_QP_STATE_RTR || qp->state == FT_QP_STATE_RTS ||
            qp->state == FT_QP_STATE_SQD);
}

/* Whether a row is of another queue pair than the one that had its number. A thread that is gone is
 * not named any more, while its queue pair stays with the process. */
static bool is_another(const struct qp *qp, const struct ft_rdma_qp *row, bool connected)
{
    bool orphan = row->pid == 0 && row->has_domain;

    return qp->gone || qp->rqpn != row->rqpn || qp->type != row->type ||
           qp->domain != row->domain || (qp->pid != row->pid && !orphan) ||
           (qp->connected && !connected);
}

void ft_rdma_table_qp(struct ft_rdma_table *t, uint32_t device, const struct ft_rdma_qp *row,
                      struct ft_wall wall)
{
    const struct qp_key key = {.device = device, .lqpn = row->lqpn};
    bool connected = is_connected(row);
    struct qp *qp;
    bool fresh;

    t->stats.rows++;
    qp = ft_table_insert(t->qps, &key, &fresh);
    /* A list that changes while it is written may name one twice. */
    if (!qp || qp->round != t->round) {
        t->stats.listed++;
        t->stats.no_owner += row->pid == 0 && !row->kernel_name[0];
    }
    if (!qp) {
        t->stats.refused++;
        t->stats.rows_refused++;
        return;
    }
    if (fresh || is_another(qp, row, connected)) {
        *qp = (struct qp){
            .key = key, .first_seen = wall, .begun = t->complete > 0, .reported = qp->reported};
    }
    qp->round = t->round;
    qp->port = row->port;
    qp->rqpn = row->rqpn;
    qp->pid = row->pid;
    qp->domain = row->domain;
    qp->type = row->type;
    qp->state = row->state;
    qp->sq_psn = row->sq_psn;
    qp->rq_psn = row->rq_psn;
    qp->connected = connected;
    qp->kernel = row->kernel_name[0] != '\0';
}

static struct qp *find_qp(const struct ft_rdma_table *t, uint32_t device, uint32_t lqpn)
{
    const struct qp_key key = {.device = device, .lqpn = lqpn};

    return ft_table_find(t->qps, &key);
}

void ft_rdma_table_cm_id(struct ft_rdma_table *t, uint32_t device, const struct ft_rdma_cm_id *id)
{
    struct qp *qp = id->has_lqpn ? find_qp(t, device, id->lqpn) : NULL;
    uint32_t device_port;

    if (!qp || qp->round != t->round || !qp->connected || qp->reported_by > TOLD_BY_CM ||
        id->sport == 0 || id->dport == 0)
        return;
    device_port = device_port_of(t, device, qp->port);
    qp->reported_by = TOLD_BY_CM;
    qp->src = id->src;
    qp->dst = id->dst;
    qp->port_source = FT_RDMA_UNKNOWN;
    if (!can_compute(t, device_port))
        return;
    /* The side that connected set the label; a row does not tell which side it is of. */
    if (id->sport >= EPHEMERAL_MIN && id->dport < EPHEMERAL_MIN)
        qp->sport = ft_rdma_sport(ft_rdma_cm_flow_label(id->sport, id->dport), 0, 0);
    else if (id->dport >= EPHEMERAL_MIN && id->sport < EPHEMERAL_MIN)
        qp->sport = ft_rdma_sport(ft_rdma_cm_flow_label(id->dport, id->sport), 0, 0);
    else
        return;
    qp->port_source = FT_RDMA_COMPUTED;
}

size_t ft_rdma_table_to_query(struct ft_rdma_table *t, struct ft_mono before,
                              struct ft_rdma_asked_for *asked, size_t max)
{
    uint32_t limit = ft_table_limit(t->qps), at = t->ask_from;
    size_t count = 0;

    for (uint32_t i = 0; i < limit && count < max; i++, at++) {
        const struct qp *qp = ft_table_at(t->qps, at % limit);

        if (!qp || qp->round != t->round || !qp->connected || qp->pid == 0 ||
            (qp->asked && qp->asked_at.ns >= before.ns))
            continue;
        asked[count++] = (struct ft_rdma_asked_for){
            .device = qp->key.device,
            .port = qp->port,
            .lqpn = qp->key.lqpn,
            .rqpn = qp->rqpn,
            .sq_psn = qp->sq_psn,
            .rq_psn = qp->rq_psn,
            .pid = qp->pid,
        };
    }
    t->ask_from = limit ? at % limit : 0;
    return count;
}

void ft_rdma_table_asked(struct ft_rdma_table *t, const struct ft_rdma_asked_for *asked,
                         struct ft_mono now)
{
    struct qp *qp = find_qp(t, asked->device, asked->lqpn);

    if (!qp)
        return;
    qp->asked = true;
    qp->asked_at = now;
}

/* A port read from the device says what this end sends by. The other end uses the same only where
 * both follow from one formula. */
static void read_port(struct qp *qp, uint16_t sport)
{
    bool same = (qp->port_source == FT_RDMA_COMPUTED && qp->sport == sport) ||
                ft_rdma_sport(0, qp->key.lqpn, qp->rqpn) == sport;

    qp->one_way = qp->one_way || !same;
    qp->sport = sport;
    qp->port_source = FT_RDMA_OBSERVED;
}

void ft_rdma_table_answer(struct ft_rdma_table *t, uint32_t device, uint32_t lqpn,
                          const struct ft_rdma_answer *answer)
{
    struct qp *qp = find_qp(t, device, lqpn);
    uint32_t device_port = qp ? device_port_of(t, device, qp->port) : FT_RDMA_DEVICE_PORTS_MAX;

    if (device_port == FT_RDMA_DEVICE_PORTS_MAX)
        return;
    for (size_t i = 0; i < t->device_ports[device_port].gid_count; i++) {
        const struct ft_rdma_gid *gid = &t->device_ports[device_port].gids[i];

        if (gid->index != answer->sgid_index)
            continue;
        qp->reported_by = TOLD_BY_QUERY;
        qp->src = gid->ip;
        qp->dst = answer->dst;
        if (answer->sport) {
            read_port(qp, answer->sport);
        } else if (can_compute(t, device_port)) {
            qp->sport = ft_rdma_sport(answer->flow_label, lqpn, qp->rqpn);
            qp->port_source = FT_RDMA_COMPUTED;
        }
        return;
    }
}

static struct tuple_key key_of(const struct qp *qp, enum ft_flow_direction direction)
{
    bool tx = direction == FT_FLOW_TX;

    return (struct tuple_key){
        .tuple = {.src = tx ? qp->src : qp->dst,
                  .dst = tx ? qp->dst : qp->src,
                  .sport = qp->sport,
                  .dport = FT_ROCE_PORT,
                  .proto = FT_PROTO_UDP},
        .direction = (uint32_t)direction,
    };
}

static void add_flow(struct ft_rdma_table *t, const struct qp *qp, enum ft_flow_direction direction)
{
    const struct tuple_key key = key_of(qp, direction);
    struct flow *flow;
    bool fresh;

    flow = ft_table_insert(t->flows, &key, &fresh);
    if (!flow)
        return;
    if (fresh)
        flow->first_seen = qp->first_seen;
    if (!fresh && flow->round == t->complete) {
        flow->shared = true;
        if (flow->pid != qp->pid)
            flow->pid = 0;
        return;
    }
    /* What was seen on the wire stays seen as long as it is this queue pair's. */
    if (flow->source != FT_RDMA_OBSERVED || memcmp(&flow->qp, &qp->key, sizeof(qp->key)) != 0)
        flow->source = direction == FT_FLOW_TX ? qp->port_source : FT_RDMA_COMPUTED;
    flow->round = t->complete;
    flow->shared = false;
    flow->qp = qp->key;
    flow->lqpn = qp->key.lqpn;
    flow->rqpn = qp->rqpn;
    flow->pid = qp->pid;
    flow->device_port = device_port_of(t, qp->key.device, qp->port);
}

static void add_hint(struct ft_rdma_table *t, const struct qp *qp, const struct ft_ip *local,
                     enum ft_flow_direction direction)
{
    const struct hint_key key = {
        .local = *local,
        .dst_qp = direction == FT_FLOW_TX ? qp->rqpn : qp->key.lqpn,
        .sport = ft_rdma_sport(0, qp->key.lqpn, qp->rqpn),
        .direction = (uint16_t)direction,
    };
    struct hint *hint;
    bool fresh;

    hint = ft_table_insert(t->hints, &key, &fresh);
    if (!hint)
        return;
    /* One address may be listed twice, with and without a VLAN. */
    if (fresh)
        hint->qp = qp->key;
    else if (memcmp(&hint->qp, &qp->key, sizeof(qp->key)) != 0)
        hint->shared = true;
}

static void place_qp(struct ft_rdma_table *t, struct qp *qp)
{
    uint32_t device_port = device_port_of(t, qp->key.device, qp->port);

    if (!qp->connected) {
        t->stats.unconnected++;
    } else if (qp->reported_by == TOLD_BY_NONE) {
        t->stats.no_destination++;
        if (!can_compute(t, device_port))
            return;
        for (size_t i = 0; i < t->device_ports[device_port].gid_count; i++) {
            add_hint(t, qp, &t->device_ports[device_port].gids[i].ip, FT_FLOW_TX);
            add_hint(t, qp, &t->device_ports[device_port].gids[i].ip, FT_FLOW_RX);
        }
    } else if (qp->port_source == FT_RDMA_UNKNOWN) {
        t->stats.no_port++;
    } else {
        t->stats.resolved++;
        add_flow(t, qp, FT_FLOW_TX);
        if (!qp->one_way)
            add_flow(t, qp, FT_FLOW_RX);
    }
}

/* The interface that has the flow's own address: an aggregate, where the port's own is one of its
 * members. One address may be listed for several; then the port's own has to do. */
static const char *netdev_of(const struct ft_rdma_device_port *device_port,
                             const struct ft_ip *local)
{
    const char *netdev = NULL;

    for (size_t i = 0; i < device_port->gid_count; i++) {
        const struct ft_rdma_gid *gid = &device_port->gids[i];

        if (!ft_ip_equal(&gid->ip, local))
            continue;
        if (netdev && strcmp(netdev, gid->netdev) != 0)
            return device_port->netdev;
        netdev = gid->netdev;
    }
    return netdev && netdev[0] ? netdev : device_port->netdev;
}

static void fill_flow(const struct ft_rdma_table *t, const struct flow *flow,
                      struct ft_rdma_flow *out)
{
    const struct ft_tuple *tuple = &flow->key.tuple;
    const struct ft_ip *local = flow->key.direction == FT_FLOW_TX ? &tuple->src : &tuple->dst;

    *out = (struct ft_rdma_flow){
        .tuple = *tuple,
        .direction = (enum ft_flow_direction)flow->key.direction,
        .source = (enum ft_rdma_source)flow->source,
        .has_qp = !flow->shared,
        .lqpn = flow->lqpn,
        .rqpn = flow->rqpn,
        .pid = flow->pid,
        .netdev = flow->device_port < t->device_port_count
                      ? netdev_of(&t->device_ports[flow->device_port], local)
                      : "",
        .first_seen = flow->first_seen,
    };
}

static void report(const struct ft_rdma_table *t, const struct flow *flow, bool ended,
                   void (*emit)(void *arg, const struct ft_rdma_flow *flow), void *arg)
{
    struct ft_rdma_flow out;

    fill_flow(t, flow, &out);
    out.ended = ended;
    /* Its device port may be the port of another device now. */
    if (ended)
        out.netdev = "";
    emit(arg, &out);
}

bool ft_rdma_table_may_end(struct ft_rdma_table *t, bool odd)
{
    t->odd_rounds = odd ? t->odd_rounds + 1 : 0;
    return !odd || t->odd_rounds > ODD_ROUNDS;
}

void ft_rdma_table_end(struct ft_rdma_table *t)
{
    uint32_t index = 0;
    struct qp *qp;

    t->complete = t->round;
    ft_table_clear(t->hints);
    while ((qp = ft_table_next(t->qps, &index))) {
        if (qp->round == t->round)
            place_qp(t, qp);
        else if (qp->reported)
            qp->gone = true;
        else
            ft_table_remove(t->qps, qp);
    }
    t->stats.connected = t->stats.listed - t->stats.unconnected;
}

void ft_rdma_table_report(struct ft_rdma_table *t, struct ft_mono now,
                          void (*emit)(void *arg, const struct ft_rdma_flow *flow), void *arg)
{
    uint32_t index = 0;
    struct flow *flow;

    while ((flow = ft_table_next(t->flows, &index))) {
        /* Capture reports what it sees; should it stop without a word, this table goes on. */
        bool captured =
            flow->captured && ft_mono_since_ns(now, flow->captured_at) < 2 * t->config.refresh_ns;

        if (flow->round != t->complete) {
            if (flow->reported && !captured)
                report(t, flow, true, emit, arg);
            ft_table_remove(t->flows, flow);
        } else if (!captured && (!flow->reported || ft_mono_since_ns(now, flow->last_report) >=
                                                        t->config.refresh_ns)) {
            flow->reported = true;
            flow->last_report = now;
            report(t, flow, false, emit, arg);
        }
    }
}

static void fill_end(const struct ft_rdma_table *t, const struct qp *qp, uint32_t device_port,
                     struct ft_rdma_end *out)
{
    *out = (struct ft_rdma_end){
        .lqpn = qp->key.lqpn,
        .rqpn = qp->rqpn,
        .pid = qp->pid,
        .state = qp->state,
        .sq_psn = qp->sq_psn,
        .rq_psn = qp->rq_psn,
        .has_dst = qp->reported_by != TOLD_BY_NONE,
        .src = qp->src,
        .dst = qp->dst,
        .source = (enum ft_rdma_source)qp->port_source,
        .sport = qp->sport,
        .first_seen = qp->first_seen,
        .begun = qp->begun,
        .kernel = qp->kernel,
        .ended = qp->gone || !qp->connected,
    };
    if (out->has_dst || !can_compute(t, device_port))
        return;
    out->source = FT_RDMA_COMPUTED;
    out->sport = ft_rdma_sport(0, qp->key.lqpn, qp->rqpn);
}

/* Whether somebody believes of a queue pair what is no longer so, or has not heard of it lately. */
static bool has_news(const struct ft_rdma_table *t, const struct qp *qp, struct ft_mono now)
{
    if (qp->gone || !qp->connected)
        return qp->reported;
    return qp->round == t->complete &&
           (qp->reported_form != 1 + qp->reported_by * 4 + qp->port_source ||
            ft_mono_since_ns(now, qp->reported_at) >= t->config.refresh_ns);
}

static void note_told(struct ft_rdma_table *t, struct qp *qp, struct ft_mono now)
{
    qp->reported = !qp->gone && qp->connected;
    qp->reported_form = qp->reported ? (uint8_t)(1 + qp->reported_by * 4 + qp->port_source) : 0;
    qp->reported_at = now;
    if (qp->gone)
        ft_table_remove(t->qps, qp);
}

void ft_rdma_table_ends(struct ft_rdma_table *t, struct ft_mono now,
                        void (*emit)(void *arg, const struct ft_rdma_device_port *device_port,
                                     const struct ft_rdma_end *ends, size_t count),
                        void *arg)
{
    bool due[FT_RDMA_DEVICE_PORTS_MAX + 1] = {false};
    uint32_t index = 0;
    struct qp *qp;

    while ((qp = ft_table_next(t->qps, &index)))
        if (has_news(t, qp, now))
            due[device_port_of(t, qp->key.device, qp->port)] = true;
    for (uint32_t device_port = 0; device_port <= FT_RDMA_DEVICE_PORTS_MAX; device_port++) {
        bool silent = device_port < t->device_port_count &&
                      (!t->device_port_reported[device_port] ||
                       ft_mono_since_ns(now, t->device_port_reported_at[device_port]) >=
                           t->config.refresh_ns);
        size_t count = 0;

        for (index = 0; due[device_port] && (qp = ft_table_next(t->qps, &index));) {
            if (!has_news(t, qp, now) || device_port_of(t, qp->key.device, qp->port) != device_port)
                continue;
            fill_end(t, qp, device_port, &t->ends[count++]);
            note_told(t, qp, now);
            if (count < FT_RDMA_ENDS_MAX)
                continue;
            /* Of a device that is gone nobody hears any more: that says it. */
            if (device_port < t->device_port_count)
                emit(arg, &t->device_ports[device_port], t->ends, count);
            count = 0;
        }
        if (device_port == FT_RDMA_DEVICE_PORTS_MAX || (!due[device_port] && !silent))
            continue;
        if (count > 0 || silent)
            emit(arg, &t->device_ports[device_port], t->ends, count);
        t->device_port_reported[device_port] = true;
        t->device_port_reported_at[device_port] = now;
    }
}

/* A captured packet names the queue pair that it goes to, and its port gives the other one. */
static bool learn(struct ft_rdma_table *t, const struct ft_flow_report *report)
{
    bool tx = report->direction == FT_FLOW_TX;
    const struct hint_key key = {
        .local = tx ? report->tuple.src : report->tuple.dst,
        .dst_qp = report->dst_qp,
        .sport = report->tuple.sport,
        .direction = (uint16_t)report->direction,
    };
    const struct hint *hint = report->has_dst_qp ? ft_table_find(t->hints, &key) : NULL;
    struct qp *qp = hint && !hint->shared ? ft_table_find(t->qps, &hint->qp) : NULL;

    if (!qp)
        return false;
    if (qp->reported_by == TOLD_BY_NONE) {
        qp->reported_by = TOLD_BY_WIRE;
        qp->src = key.local;
        qp->dst = tx ? report->tuple.dst : report->tuple.src;
        qp->sport = report->tuple.sport;
        qp->port_source = FT_RDMA_COMPUTED; /* of the other direction; match() raises this one */
        t->stats.no_destination--;
        t->stats.resolved++;
        add_flow(t, qp, FT_FLOW_TX);
        add_flow(t, qp, FT_FLOW_RX);
    }
    return true;
}

bool ft_rdma_table_match(struct ft_rdma_table *t, const struct ft_flow_report *report,
                         struct ft_mono now, struct ft_rdma_flow *out)
{
    const struct tuple_key key = {.tuple = report->tuple, .direction = (uint32_t)report->direction};
    struct flow *flow;

    if (report->direction == FT_FLOW_UNKNOWN || report->tuple.dport != FT_ROCE_PORT)
        return false;
    flow = ft_table_find(t->flows, &key);
    if (!flow && learn(t, report))
        flow = ft_table_find(t->flows, &key);
    if (!flow)
        return false;
    flow->source = FT_RDMA_OBSERVED;
    /* Once capture has lost sight of it, this table speaks for it again. */
    flow->captured = !report->ended;
    flow->captured_at = now;
    fill_flow(t, flow, out);
    return true;
}

void ft_rdma_table_stats(const struct ft_rdma_table *t, struct ft_rdma_table_stats *stats)
{
    *stats = t->stats;
}
