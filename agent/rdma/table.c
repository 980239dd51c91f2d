// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/rdma/table.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/rdma/table_impl.h"

/* Two tuples a queue pair; a hint for each address and direction of one without destination. */
#define TUPLES_EACH 2
#define ODD_ROUNDS  3
#define HINTS_EACH  8
/* Below it are the ports that services listen on (Linux net.ipv4.ip_local_port_range). */
#define EPHEMERAL_MIN 32768

struct ft_rdma_table *ft_rdma_table_new(const struct ft_rdma_table_config *config)
{
    struct ft_rdma_table *t = calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    t->config = *config;
    t->qps = ft_table_new(sizeof(struct ft_rdma_table_qp), sizeof(struct ft_rdma_table_qp_key),
                          config->qps_max, config->seed);
    t->flows =
        ft_table_new(sizeof(struct ft_rdma_table_flow), sizeof(struct ft_rdma_table_tuple_key),
                     TUPLES_EACH * config->qps_max, config->seed);
    t->hints =
        ft_table_new(sizeof(struct ft_rdma_table_hint), sizeof(struct ft_rdma_table_hint_key),
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

void ft_rdma_table_take_blocks(struct ft_rdma_table *t, const struct ft_usid_blocks *blocks)
{
    t->config.blocks = *blocks;
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
static bool is_another(const struct ft_rdma_table_qp *qp, const struct ft_rdma_qp *row,
                       bool connected)
{
    bool orphan = row->pid == 0 && row->has_domain;

    return qp->gone || qp->rqpn != row->rqpn || qp->type != row->type ||
           qp->domain != row->domain || (qp->pid != row->pid && !orphan) ||
           (qp->connected && !connected);
}

void ft_rdma_table_qp(struct ft_rdma_table *t, uint32_t device, const struct ft_rdma_qp *row,
                      struct ft_wall wall)
{
    const struct ft_rdma_table_qp_key key = {.device = device, .lqpn = row->lqpn};
    bool connected = is_connected(row);
    struct ft_rdma_table_qp *qp;
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
        *qp = (struct ft_rdma_table_qp){
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

static struct ft_rdma_table_qp *find_qp(const struct ft_rdma_table *t, uint32_t device,
                                        uint32_t lqpn)
{
    const struct ft_rdma_table_qp_key key = {.device = device, .lqpn = lqpn};

    return ft_table_find(t->qps, &key);
}

static struct ft_ip named(const struct ft_rdma_table *t, const struct ft_ip *dst)
{
    struct ft_ip stays = *dst;

    ft_usid_stays(&t->config.blocks, dst, &stays);
    return stays;
}

void ft_rdma_table_cm_id(struct ft_rdma_table *t, uint32_t device, const struct ft_rdma_cm_id *id)
{
    struct ft_rdma_table_qp *qp = id->has_lqpn ? find_qp(t, device, id->lqpn) : NULL;
    uint32_t device_port;

    if (!qp || qp->round != t->round || !qp->connected || qp->reported_by > FT_RDMA_BY_CM ||
        id->sport == 0 || id->dport == 0)
        return;
    device_port = ft_rdma_table_port_of(t, device, qp->port);
    qp->reported_by = FT_RDMA_BY_CM;
    qp->src = id->src;
    qp->dst = named(t, &id->dst);
    qp->port_source = FT_RDMA_UNKNOWN;
    if (!ft_rdma_table_can_compute(t, device_port))
        return;
    /* The side that connected set the label; a row does not say which side it is of. */
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
        const struct ft_rdma_table_qp *qp = ft_table_at(t->qps, at % limit);

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
    struct ft_rdma_table_qp *qp = find_qp(t, asked->device, asked->lqpn);

    if (!qp)
        return;
    qp->asked = true;
    qp->asked_at = now;
}

/* A port read from the device says what this end sends by. The other end uses the same only where
 * both follow from one formula. */
static void read_port(struct ft_rdma_table_qp *qp, uint16_t sport)
{
    bool same = (qp->port_source == FT_RDMA_COMPUTED && qp->sport == sport) ||
                ft_rdma_sport(0, qp->key.lqpn, qp->rqpn) == sport;

    qp->return_port_unknown = qp->return_port_unknown || !same;
    qp->sport = sport;
    qp->port_source = FT_RDMA_OBSERVED;
}

void ft_rdma_table_answer(struct ft_rdma_table *t, uint32_t device, uint32_t lqpn,
                          const struct ft_rdma_answer *answer)
{
    struct ft_rdma_table_qp *qp = find_qp(t, device, lqpn);
    uint32_t device_port =
        qp ? ft_rdma_table_port_of(t, device, qp->port) : FT_RDMA_DEVICE_PORTS_MAX;

    if (device_port == FT_RDMA_DEVICE_PORTS_MAX)
        return;
    for (size_t i = 0; i < t->device_ports[device_port].gid_count; i++) {
        const struct ft_rdma_gid *gid = &t->device_ports[device_port].gids[i];

        if (gid->index != answer->sgid_index)
            continue;
        qp->reported_by = FT_RDMA_BY_QUERY;
        qp->src = gid->ip;
        qp->dst = named(t, &answer->dst);
        if (answer->sport) {
            read_port(qp, answer->sport);
        } else if (ft_rdma_table_can_compute(t, device_port)) {
            qp->sport = ft_rdma_sport(answer->flow_label, lqpn, qp->rqpn);
            qp->port_source = FT_RDMA_COMPUTED;
        }
        return;
    }
}

bool ft_rdma_table_may_end(struct ft_rdma_table *t, bool odd)
{
    t->odd_rounds = odd ? t->odd_rounds + 1 : 0;
    return !odd || t->odd_rounds > ODD_ROUNDS;
}

void ft_rdma_table_end(struct ft_rdma_table *t)
{
    uint32_t index = 0;
    struct ft_rdma_table_qp *qp;

    t->complete = t->round;
    ft_table_clear(t->hints);
    while ((qp = ft_table_next(t->qps, &index))) {
        if (qp->round == t->round)
            ft_rdma_table_flows_of(t, qp);
        else if (qp->reported)
            qp->gone = true;
        else
            ft_table_remove(t->qps, qp);
    }
    t->stats.connected = t->stats.listed - t->stats.unconnected;
}

static void fill_end(const struct ft_rdma_table *t, const struct ft_rdma_table_qp *qp,
                     uint32_t device_port, struct ft_rdma_end *out)
{
    *out = (struct ft_rdma_end){
        .lqpn = qp->key.lqpn,
        .rqpn = qp->rqpn,
        .pid = qp->pid,
        .state = qp->state,
        .sq_psn = qp->sq_psn,
        .rq_psn = qp->rq_psn,
        .has_dst = qp->reported_by != FT_RDMA_BY_NOBODY,
        .src = qp->src,
        .dst = qp->dst,
        .source = (enum ft_rdma_source)qp->port_source,
        .sport = qp->sport,
        .first_seen = qp->first_seen,
        .begun = qp->begun,
        .kernel = qp->kernel,
        .ended = qp->gone || !qp->connected,
    };
    if (out->has_dst || !ft_rdma_table_can_compute(t, device_port))
        return;
    out->source = FT_RDMA_COMPUTED;
    out->sport = ft_rdma_sport(0, qp->key.lqpn, qp->rqpn);
}

/* Whether somebody believes of a queue pair what is no longer so, or has not heard of it lately. */
static bool has_news(const struct ft_rdma_table *t, const struct ft_rdma_table_qp *qp,
                     struct ft_mono now)
{
    if (qp->gone || !qp->connected)
        return qp->reported;
    return qp->round == t->complete &&
           (qp->reported_form != 1 + qp->reported_by * 4 + qp->port_source ||
            ft_mono_since_ns(now, qp->reported_at) >= t->config.refresh_ns);
}

static void note_reported(struct ft_rdma_table *t, struct ft_rdma_table_qp *qp, struct ft_mono now)
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
    struct ft_rdma_table_qp *qp;

    while ((qp = ft_table_next(t->qps, &index)))
        if (has_news(t, qp, now))
            due[ft_rdma_table_port_of(t, qp->key.device, qp->port)] = true;
    for (uint32_t device_port = 0; device_port <= FT_RDMA_DEVICE_PORTS_MAX; device_port++) {
        bool silent = device_port < t->device_port_count &&
                      (!t->device_port_reported[device_port] ||
                       ft_mono_since_ns(now, t->device_port_reported_at[device_port]) >=
                           t->config.refresh_ns);
        size_t count = 0;

        for (index = 0; due[device_port] && (qp = ft_table_next(t->qps, &index));) {
            if (!has_news(t, qp, now) ||
                ft_rdma_table_port_of(t, qp->key.device, qp->port) != device_port)
                continue;
            fill_end(t, qp, device_port, &t->ends[count++]);
            note_reported(t, qp, now);
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

void ft_rdma_table_stats(const struct ft_rdma_table *t, struct ft_rdma_table_stats *stats)
{
    *stats = t->stats;
}
