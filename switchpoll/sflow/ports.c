// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/sflow/ports.h"

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

struct processor_key {
    struct ft_ip agent;
    uint32_t sub_agent;
    uint32_t source_type;
    uint32_t source_index;
};

struct processor {
    struct processor_key key;
    struct ft_wall when;
    struct ft_sflow_processor load;
};

struct ft_ports {
    struct ft_table *table;
    struct ft_table *processors;
    struct ft_ports_stats stats;
};

struct ft_ports *ft_ports_new(uint64_t max, uint64_t seed)
{
    struct ft_ports *ports = calloc(1, sizeof(*ports));

    if (!ports)
        return NULL;
    ports->table = ft_table_new(sizeof(struct port), sizeof(struct key), max, seed);
    ports->processors =
        ft_table_new(sizeof(struct processor), sizeof(struct processor_key), max, seed);
    if (!ports->table || !ports->processors) {
        ft_ports_free(ports);
        return NULL;
    }
    return ports;
}

void ft_ports_free(struct ft_ports *ports)
{
    if (!ports)
        return;
    ft_table_free(ports->table);
    ft_table_free(ports->processors);
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

int ft_ports_put_processor(struct ft_ports *ports, const struct ft_ip *agent, uint32_t sub_agent,
                           const struct ft_sflow_processor *load, struct ft_wall when)
{
    struct processor_key key = {.agent = *agent,
                                .sub_agent = sub_agent,
                                .source_type = load->source_type,
                                .source_index = load->source_index};
    struct processor *p;
    bool fresh;

    ports->stats.received++;
    p = ft_table_insert(ports->processors, &key, &fresh);
    if (!p) {
        ports->stats.refused++;
        return -ENOBUFS;
    }
    if (!fresh)
        ports->stats.superseded++;
    p->when = when;
    p->load = *load;
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
    c->has_admin_up = true;
    c->admin_up = s->admin_up;
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

static void fill_ethernet(Fabrictrace__EthernetCounters *c, const struct ft_sflow_ethernet *e)
{
    c->has_fcs_errors = known(e->fcs_errors);
    c->fcs_errors = e->fcs_errors;
    c->has_symbol_errors = known(e->symbol_errors);
    c->symbol_errors = e->symbol_errors;
    c->has_alignment_errors = known(e->alignment_errors);
    c->alignment_errors = e->alignment_errors;
    c->has_too_long = known(e->too_long);
    c->too_long = e->too_long;
    c->has_in_mac_errors = known(e->in_mac_errors);
    c->in_mac_errors = e->in_mac_errors;
    c->has_out_mac_errors = known(e->out_mac_errors);
    c->out_mac_errors = e->out_mac_errors;
    c->has_carrier_errors = known(e->carrier_errors);
    c->carrier_errors = e->carrier_errors;
    c->has_deferred = known(e->deferred);
    c->deferred = e->deferred;
}

static void fill_lag(Fabrictrace__LagMember *c, const struct ft_sflow_lag *lag)
{
    c->has_ifindex = lag->ifindex != 0;
    c->ifindex = lag->ifindex;
    c->has_state = c->has_partner_state = true;
    c->state = lag->actor_state;
    c->partner_state = lag->partner_state;
    c->has_lacp_in = known(lag->lacp_in);
    c->lacp_in = lag->lacp_in;
    c->has_lacp_out = known(lag->lacp_out);
    c->lacp_out = lag->lacp_out;
    c->has_lacp_bad = known(lag->lacp_bad);
    c->lacp_bad = lag->lacp_bad;
}

static void fill_optics(Fabrictrace__Optics *c, const struct ft_sflow_optics *o)
{
    c->has_temperature_celsius = o->temperature_mc != -1;
    c->temperature_celsius = o->temperature_mc / 1000.0;
    c->has_supply_millivolts = o->supply_mv != UINT32_MAX;
    c->supply_millivolts = o->supply_mv;
    c->has_lanes = c->has_lanes_low = c->has_lanes_high = true;
    c->lanes = o->lanes;
    c->lanes_low = o->lanes_low;
    c->lanes_high = o->lanes_high;
    c->has_rx_power_least_microwatts = o->rx_power_least_uw != UINT32_MAX;
    c->rx_power_least_microwatts = o->rx_power_least_uw;
}

static void emit(struct port *port, const struct ft_record_sink *sink)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__PortCounters c = FABRICTRACE__PORT_COUNTERS__INIT;
    Fabrictrace__EthernetCounters ethernet = FABRICTRACE__ETHERNET_COUNTERS__INIT;
    Fabrictrace__LagMember lag = FABRICTRACE__LAG_MEMBER__INIT;
    Fabrictrace__Optics optics = FABRICTRACE__OPTICS__INIT;

    c.has_time_ms = true;
    c.time_ms = (uint64_t)port->when.ms;
    c.has_agent = true;
    c.agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&port->key.agent, &c.agent.len);
    c.has_ifindex = true;
    c.ifindex = port->key.ifindex;
    c.has_source = true;
    c.source = FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SFLOW;
    fill(&c, &port->counters);
    if (port->counters.has_ethernet) {
        fill_ethernet(&ethernet, &port->counters.ethernet);
        c.ethernet = &ethernet;
    }
    if (port->counters.has_lag) {
        fill_lag(&lag, &port->counters.lag);
        c.lag = &lag;
    }
    if (port->counters.has_pfc) {
        c.has_in_pfc = known(port->counters.pfc.indications);
        c.in_pfc = port->counters.pfc.indications;
        c.has_out_pfc = known(port->counters.pfc.requests);
        c.out_pfc = port->counters.pfc.requests;
    }
    if (port->counters.has_optics) {
        fill_optics(&optics, &port->counters.optics);
        c.optics = &optics;
    }
    c.port = port->counters.port[0] ? port->counters.port : NULL;
    record.kind_case = FABRICTRACE__RECORD__KIND_COUNTERS;
    record.counters = &c;
    sink->emit(sink->arg, &record);
}

static double percent(uint32_t hundredths)
{
    return (double)hundredths / 100;
}

static void emit_processor(struct processor *p, const struct ft_record_sink *sink)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Processor out = FABRICTRACE__PROCESSOR__INIT;
    const struct ft_sflow_processor *load = &p->load;

    out.has_time_ms = out.has_agent = out.has_sub_agent = true;
    out.time_ms = (uint64_t)p->when.ms;
    out.agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&p->key.agent, &out.agent.len);
    out.sub_agent = p->key.sub_agent;
    out.has_source_type = out.has_source_index = true;
    out.source_type = load->source_type;
    out.source_index = load->source_index;
    out.has_cpu_5s_percent = load->cpu_5s != UINT32_MAX;
    out.cpu_5s_percent = percent(load->cpu_5s);
    out.has_cpu_1m_percent = load->cpu_1m != UINT32_MAX;
    out.cpu_1m_percent = percent(load->cpu_1m);
    out.has_cpu_5m_percent = load->cpu_5m != UINT32_MAX;
    out.cpu_5m_percent = percent(load->cpu_5m);
    out.has_memory_bytes = known(load->memory_bytes);
    out.memory_bytes = load->memory_bytes;
    out.has_memory_free_bytes = known(load->memory_free_bytes);
    out.memory_free_bytes = load->memory_free_bytes;
    record.kind_case = FABRICTRACE__RECORD__KIND_PROCESSOR;
    record.processor = &out;
    sink->emit(sink->arg, &record);
}

void ft_ports_flush(struct ft_ports *ports, const struct ft_record_sink *sink)
{
    struct processor *p;
    struct port *port;
    uint32_t at = 0;

    while ((port = ft_table_next(ports->table, &at)))
        emit(port, sink);
    at = 0;
    while ((p = ft_table_next(ports->processors, &at)))
        emit_processor(p, sink);
    ports->stats.emitted += ft_table_count(ports->table) + ft_table_count(ports->processors);
    ft_table_clear(ports->table);
    ft_table_clear(ports->processors);
}

void ft_ports_stats(const struct ft_ports *ports, struct ft_ports_stats *stats)
{
    *stats = ports->stats;
    stats->pending = ft_table_count(ports->table) + ft_table_count(ports->processors);
}
