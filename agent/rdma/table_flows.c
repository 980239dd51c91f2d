// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <string.h>

#include "agent/rdma/table_impl.h"

static struct ft_rdma_table_tuple_key key_of(const struct ft_rdma_table_qp *qp,
                                             enum ft_flow_direction direction)
{
    bool tx = direction == FT_FLOW_TX;

    return (struct ft_rdma_table_tuple_key){
        .tuple = {.src = tx ? qp->src : qp->dst,
                  .dst = tx ? qp->dst : qp->src,
                  .sport = qp->sport,
                  .dport = FT_ROCE_PORT,
                  .proto = FT_PROTO_UDP},
        .direction = (uint32_t)direction,
    };
}

static void add_flow(struct ft_rdma_table *t, const struct ft_rdma_table_qp *qp,
                     enum ft_flow_direction direction)
{
    const struct ft_rdma_table_tuple_key key = key_of(qp, direction);
    struct ft_rdma_table_flow *flow;
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
    flow->device_port = ft_rdma_table_port_of(t, qp->key.device, qp->port);
}

static void add_hint(struct ft_rdma_table *t, const struct ft_rdma_table_qp *qp,
                     const struct ft_ip *local, enum ft_flow_direction direction)
{
    const struct ft_rdma_table_hint_key key = {
        .local = *local,
        .dst_qp = direction == FT_FLOW_TX ? qp->rqpn : qp->key.lqpn,
        .sport = ft_rdma_sport(0, qp->key.lqpn, qp->rqpn),
        .direction = (uint16_t)direction,
    };
    struct ft_rdma_table_hint *hint;
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

void ft_rdma_table_flows_of(struct ft_rdma_table *t, struct ft_rdma_table_qp *qp)
{
    uint32_t device_port = ft_rdma_table_port_of(t, qp->key.device, qp->port);

    if (!qp->connected) {
        t->stats.unconnected++;
    } else if (qp->reported_by == FT_RDMA_BY_NOBODY) {
        t->stats.no_destination++;
        if (!ft_rdma_table_can_compute(t, device_port))
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
        if (!qp->return_port_unknown)
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

static void fill_flow(const struct ft_rdma_table *t, const struct ft_rdma_table_flow *flow,
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

static void report(const struct ft_rdma_table *t, const struct ft_rdma_table_flow *flow, bool ended,
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

void ft_rdma_table_report(struct ft_rdma_table *t, struct ft_mono now,
                          void (*emit)(void *arg, const struct ft_rdma_flow *flow), void *arg)
{
    uint32_t index = 0;
    struct ft_rdma_table_flow *flow;

    while ((flow = ft_table_next(t->flows, &index))) {
        /* Capture reports what it sees; should it stop, this table reports the flow again. */
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

/* A captured packet names the queue pair that it goes to, and its port gives the other one. */
static bool learn(struct ft_rdma_table *t, const struct ft_flow_report *report)
{
    bool tx = report->direction == FT_FLOW_TX;
    const struct ft_rdma_table_hint_key key = {
        .local = tx ? report->tuple.src : report->tuple.dst,
        .dst_qp = report->dst_qp,
        .sport = report->tuple.sport,
        .direction = (uint16_t)report->direction,
    };
    const struct ft_rdma_table_hint *hint =
        report->has_dst_qp ? ft_table_find(t->hints, &key) : NULL;
    struct ft_rdma_table_qp *qp = hint && !hint->shared ? ft_table_find(t->qps, &hint->qp) : NULL;

    if (!qp)
        return false;
    if (qp->reported_by == FT_RDMA_BY_NOBODY) {
        qp->reported_by = FT_RDMA_BY_PACKET;
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
    const struct ft_rdma_table_tuple_key key = {.tuple = report->tuple,
                                                .direction = (uint32_t)report->direction};
    struct ft_rdma_table_flow *flow;

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
