// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/ports.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/table.h"

struct key {
    struct ft_ip agent;
    uint32_t ifindex;
};

struct port {
    struct key key;
    struct ft_wall when;
    struct ft_sflow_counters counters;
};

struct ft_ports {
    struct ft_table *table;
    struct ft_ports_stats stats;
};

struct ft_ports *ft_ports_new(uint64_t max, uint64_t seed)
{
    struct ft_ports *ports = calloc(1, sizeof(*ports));

    if (!ports)
        return NULL;
    ports->table = ft_table_new(sizeof(struct port), sizeof(struct key), max, seed);
    if (!ports->table) {
        free(ports);
        return NULL;
    }
    return ports;
}

void ft_ports_free(struct ft_ports *ports)
{
    if (!ports)
        return;
    ft_table_free(ports->table);
    free(ports);
}

int ft_ports_put(struct ft_ports *ports, const struct ft_ip *agent,
                 const struct ft_sflow_counters *counters, struct ft_wall when)
{
    struct key key = {.agent = *agent, .ifindex = counters->ifindex};
    struct port *port;
    bool fresh;

    ports->stats.received++;
    port = ft_table_insert(ports->table, &key, &fresh);
    if (!port) {
        ports->stats.refused++;
        return -ENOBUFS;
    }
    if (!fresh)
        ports->stats.superseded++;
    port->when = when;
    port->counters = *counters;
    return 0;
}

/* A counter that an agent does not have stays absent. */
static bool known(uint64_t v)
{
    return v != FT_SFLOW_NO_COUNT;
}

static void fill(Fabrictrace__PortCounters *c, const struct ft_sflow_counters *s)
{
    c->has_speed_bps = s->speed_bps != 0;
    c->speed_bps = s->speed_bps;
    c->has_oper_up = true;
    c->oper_up = s->oper_up;
    c->has_in_bytes = known(s->in_bytes);
    c->in_bytes = s->in_bytes;
    c->has_out_bytes = known(s->out_bytes);
    c->out_bytes = s->out_bytes;
    c->has_in_packets = known(s->in_packets);
    c->in_packets = s->in_packets;
    c->has_out_packets = known(s->out_packets);
    c->out_packets = s->out_packets;
    c->has_in_discards = known(s->in_discards);
    c->in_discards = s->in_discards;
    c->has_out_discards = known(s->out_discards);
    c->out_discards = s->out_discards;
    c->has_in_errors = known(s->in_errors);
    c->in_errors = s->in_errors;
    c->has_out_errors = known(s->out_errors);
    c->out_errors = s->out_errors;
}

static void emit(struct port *port, const struct ft_sink *sink)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__PortCounters c = FABRICTRACE__PORT_COUNTERS__INIT;

    c.has_time_ms = true;
    c.time_ms = (uint64_t)port->when.ms;
    c.has_agent = true;
    c.agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&port->key.agent, &c.agent.len);
    c.has_ifindex = true;
    c.ifindex = port->key.ifindex;
    c.has_source = true;
    c.source = FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SFLOW;
    fill(&c, &port->counters);
    record.kind_case = FABRICTRACE__RECORD__KIND_COUNTERS;
    record.counters = &c;
    sink->emit(sink->arg, &record);
}

void ft_ports_flush(struct ft_ports *ports, const struct ft_sink *sink)
{
    struct port *port;
    uint32_t at = 0;

    while ((port = ft_table_next(ports->table, &at)))
        emit(port, sink);
    ports->stats.emitted += ft_table_count(ports->table);
    ft_table_clear(ports->table);
}

void ft_ports_stats(const struct ft_ports *ports, struct ft_ports_stats *stats)
{
    *stats = ports->stats;
    stats->pending = ft_table_count(ports->table);
}
