// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/capture/flows.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/table.h"

#define ECN_CE 3

struct flow_key {
    struct ft_tuple tuple;
    uint16_t interface;
    uint8_t direction;
    uint8_t zero;
};

enum qp_state {
    QP_NONE,
    QP_ONE,
    QP_MANY,
};

struct flow {
    struct flow_key key;
    uint32_t dst_qp;
    enum qp_state qp;
    bool reported, source_routed;
    struct ft_wall first_seen;
    struct ft_mono last_packet;
    struct ft_mono last_report; /* before the first report: the first packet */
    struct ft_flow_counts counts;
};

struct ft_flows {
    struct ft_flows_config config;
    void (*emit)(void *arg, const struct ft_flow_report *report);
    void *arg;
    struct ft_table *table;
    struct ft_flows_stats stats;
};

struct ft_flows *ft_flows_new(const struct ft_flows_config *config,
                              void (*emit)(void *arg, const struct ft_flow_report *report),
                              void *arg)
{
    struct ft_flows *flows = calloc(1, sizeof(*flows));

    if (!flows)
        return NULL;
    flows->config = *config;
    flows->emit = emit;
    flows->arg = arg;
    flows->table =
        ft_table_new(sizeof(struct flow), sizeof(struct flow_key), config->flows_max, config->seed);
    if (!flows->table) {
        free(flows);
        return NULL;
    }
    return flows;
}

void ft_flows_free(struct ft_flows *flows)
{
    if (!flows)
        return;
    ft_table_free(flows->table);
    free(flows);
}

void ft_flows_configure(struct ft_flows *flows, const struct ft_flows_config *config)
{
    flows->config.tick_ns = config->tick_ns;
    flows->config.report_ns = config->report_ns;
    flows->config.refresh_ns = config->refresh_ns;
    flows->config.idle_ns = config->idle_ns;
}

static void note_qp(struct flow *flow, uint32_t dst_qp)
{
    if (flow->qp == QP_NONE) {
        flow->qp = QP_ONE;
        flow->dst_qp = dst_qp;
    } else if (flow->dst_qp != dst_qp) {
        flow->qp = QP_MANY;
    }
}

int ft_flows_packet(struct ft_flows *flows, uint32_t interface, enum ft_flow_direction direction,
                    const struct ft_packet *packet, uint32_t frame_bytes, struct ft_mono now,
                    struct ft_wall when)
{
    struct flow_key key = {
        .tuple = packet->tuple,
        .interface = (uint16_t)interface,
        .direction = (uint8_t)direction,
    };
    struct flow *flow;
    bool fresh;

    flow = ft_table_insert(flows->table, &key, &fresh);
    if (!flow)
        return -ENOSPC;
    if (fresh) {
        flow->first_seen = when;
        flow->last_report = now;
        flows->stats.created++;
    }
    flow->last_packet = now;
    flow->source_routed |= packet->source_routed;
    switch (packet->bth) {
    case FT_BTH_DATA:
        flow->counts.data_packets++;
        break;
    case FT_BTH_ACK:
        flow->counts.ack_packets++;
        break;
    case FT_BTH_CNP:
        flow->counts.ack_packets++;
        flow->counts.cnp_packets++;
        break;
    case FT_BTH_NONE:
        flow->counts.other_packets++;
        break;
    }
    if (packet->bth != FT_BTH_NONE)
        note_qp(flow, packet->dst_qp);
    flow->counts.ce_packets += packet->ecn == ECN_CE;
    flow->counts.bytes += frame_bytes;
    return 0;
}

static bool quiet(const struct flow *flow)
{
    const struct ft_flow_counts *c = &flow->counts;

    return c->data_packets + c->ack_packets + c->other_packets == 0;
}

static void report(struct ft_flows *flows, struct flow *flow, struct ft_mono now,
                   struct ft_wall wall, bool ended)
{
    struct ft_flow_report r = {
        .tuple = flow->key.tuple,
        .interface = flow->key.interface,
        .direction = (enum ft_flow_direction)flow->key.direction,
        .counts = flow->counts,
        .time = wall,
        .first_seen = flow->first_seen,
        .interval_ns = ft_mono_since_ns(now, flow->last_report),
        .has_dst_qp = flow->qp == QP_ONE,
        .dst_qp = flow->dst_qp,
        .ended = ended,
        .source_routed = flow->source_routed,
    };

    flow->counts = (struct ft_flow_counts){0};
    flow->last_report = now;
    flow->reported = true;
    flows->stats.reports++;
    flows->emit(flows->arg, &r);
}

static bool due(const struct ft_flows *flows, const struct flow *flow, struct ft_mono now)
{
    /* Ticks come a little early or late: a report belongs to the tick nearest to its time. */
    int64_t since_ns = ft_mono_since_ns(now, flow->last_report) + flows->config.tick_ns / 2;

    if (!flow->reported)
        return true;
    return since_ns >= (quiet(flow) ? flows->config.refresh_ns : flows->config.report_ns);
}

void ft_flows_tick(struct ft_flows *flows, struct ft_mono now, struct ft_wall wall)
{
    uint32_t index = 0;
    struct flow *flow;

    while ((flow = ft_table_next(flows->table, &index))) {
        if (ft_mono_since_ns(now, flow->last_packet) >= flows->config.idle_ns) {
            report(flows, flow, now, wall, true);
            ft_table_remove(flows->table, flow);
            flows->stats.ended++;
        } else if (due(flows, flow, now)) {
            report(flows, flow, now, wall, false);
        }
    }
}

void ft_flows_flush(struct ft_flows *flows, struct ft_mono now, struct ft_wall wall)
{
    uint32_t index = 0;
    struct flow *flow;

    while ((flow = ft_table_next(flows->table, &index)))
        if (!flow->reported || !quiet(flow))
            report(flows, flow, now, wall, false);
}

void ft_flows_stats(const struct ft_flows *flows, struct ft_flows_stats *stats)
{
    *stats = flows->stats;
    stats->active = ft_table_count(flows->table);
}
