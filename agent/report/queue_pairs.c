// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/report/queue_pairs.h"

#include <string.h>

#define NS_PER_MS 1000000

static char *text(const char *s)
{
    return s && s[0] ? (char *)(uintptr_t)s : NULL;
}

static ProtobufCBinaryData address(const struct ft_ip *ip)
{
    size_t len;
    const uint8_t *bytes = ft_ip_bytes(ip, &len);

    return (ProtobufCBinaryData){.len = len, .data = (uint8_t *)(uintptr_t)bytes};
}

/* With and without a VLAN one address has an entry each. */
static void fill_addresses(const struct ft_rdma_device_port *device_port,
                           struct ft_queue_pairs_record *out)
{
    size_t n = 0;

    for (size_t i = 0; i < device_port->gid_count; i++) {
        bool again = false;

        for (size_t k = 0; k < i; k++)
            again |= ft_ip_equal(&device_port->gids[k].ip, &device_port->gids[i].ip);
        if (!again)
            out->addresses[n++] = address(&device_port->gids[i].ip);
    }
    out->list.n_addresses = n;
    out->list.addresses = out->addresses;
}

static void fill_pair(const struct ft_rdma_end *end, const struct ft_owner *owner,
                      Fabrictrace__QueuePair *m)
{
    static const char *const states[] = {
        [FT_QP_STATE_RTR] = "rtr", [FT_QP_STATE_RTS] = "rts", [FT_QP_STATE_SQD] = "sqd"};

    fabrictrace__queue_pair__init(m);
    m->has_local = m->has_remote = true;
    m->local = end->lqpn;
    m->remote = end->rqpn;
    m->has_since_ms = true;
    m->since_ms = (uint64_t)end->first_seen.ms;
    m->has_ended = m->ended = end->ended;
    if (end->ended)
        return;
    m->has_begun = m->begun = end->begun;
    if (end->state < sizeof(states) / sizeof(states[0]))
        m->state = text(states[end->state]);
    m->has_src = m->has_dst = end->has_dst;
    if (end->has_dst) {
        m->src = address(&end->src);
        m->dst = address(&end->dst);
    }
    m->has_sport = end->source != FT_RDMA_UNKNOWN;
    m->sport = end->sport;
    m->has_tuple_source = true;
    m->tuple_source =
        end->source == FT_RDMA_OBSERVED   ? FABRICTRACE__TUPLE_SOURCE__TUPLE_SOURCE_OBSERVED
        : end->source == FT_RDMA_COMPUTED ? FABRICTRACE__TUPLE_SOURCE__TUPLE_SOURCE_COMPUTED
                                          : FABRICTRACE__TUPLE_SOURCE__TUPLE_SOURCE_UNKNOWN;
    m->has_sq_psn = m->has_rq_psn = true;
    m->sq_psn = end->sq_psn;
    m->rq_psn = end->rq_psn;
    m->has_kernel = m->kernel = end->kernel;
    if (!owner)
        return;
    m->has_pid = true;
    m->pid = owner->process;
    m->comm = text(owner->comm);
    m->job = text(owner->job);
}

void ft_report_queue_pairs(const struct ft_rdma_ends_report *report, const char *host,
                           const char *source, struct ft_queue_pairs_record *out)
{
    Fabrictrace__QueuePairs *m = &out->list;

    fabrictrace__record__init(&out->record);
    fabrictrace__queue_pairs__init(m);
    out->record.kind_case = FABRICTRACE__RECORD__KIND_QUEUE_PAIRS;
    out->record.queue_pairs = m;
    m->has_time_ms = m->has_interval_ms = true;
    m->time_ms = (uint64_t)report->time.ms;
    m->interval_ms = (uint32_t)(report->interval_ns / NS_PER_MS);
    m->source = text(source);
    m->host = text(host);
    m->device = text(report->device);
    m->has_port = true;
    m->port = report->device_port->port;
    m->interface = text(report->device_port->netdev);
    m->driver = text(ft_rdma_driver_name(report->device_port->driver));
    m->has_computed = true;
    m->computed = report->computed;
    fill_addresses(report->device_port, out);
    m->has_listed = true;
    m->listed = (uint32_t)report->listed;
    for (size_t i = 0; i < report->count; i++) {
        fill_pair(&report->ends[i], report->owners[i], &out->pairs[i]);
        out->pair_list[i] = &out->pairs[i];
    }
    m->n_queue_pairs = report->count;
    m->queue_pairs = out->pair_list;
}
