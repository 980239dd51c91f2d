// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/snmp/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MS_PER_CS 10

/* One block of memory for all lists of a report. */
struct form {
    Fabrictrace__SwitchReport report;
    ProtobufCBinaryData *addresses;
    Fabrictrace__PortInfo *ports;
    Fabrictrace__PortInfo **port_list;
    Fabrictrace__Neighbor *neighbors;
    Fabrictrace__Neighbor **neighbor_list;
    ProtobufCBinaryData *neighbor_addresses;
};

static void form_free(struct form *form)
{
    free(form->addresses);
    free(form->ports);
    free(form->port_list);
    free(form->neighbors);
    free(form->neighbor_list);
    free(form->neighbor_addresses);
}

static size_t neighbor_addresses(const struct ft_device *d)
{
    size_t n = 0;

    for (size_t i = 0; i < d->neighbors.count; i++)
        n += d->neighbors.items[i].address_count;
    return n;
}

/* calloc(0) may be NULL, hence the one more. */
static bool form_init(struct form *form, const struct ft_snmp_report *r)
{
    const struct ft_device *d = r->device;

    *form = (struct form){.report = FABRICTRACE__SWITCH_REPORT__INIT};
    form->addresses = calloc(1 + r->also_count + d->address_count, sizeof(*form->addresses));
    form->ports = calloc(d->ports.count + 1, sizeof(*form->ports));
    form->port_list = calloc(d->ports.count + 1, sizeof(form->port_list[0]));
    form->neighbors = calloc(d->neighbors.count + 1, sizeof(*form->neighbors));
    form->neighbor_list = calloc(d->neighbors.count + 1, sizeof(form->neighbor_list[0]));
    form->neighbor_addresses = calloc(neighbor_addresses(d) + 1, sizeof(*form->neighbor_addresses));
    return form->addresses && form->ports && form->port_list && form->neighbors &&
           form->neighbor_list && form->neighbor_addresses;
}

static ProtobufCBinaryData bytes_of(const struct ft_ip *ip)
{
    ProtobufCBinaryData data;

    data.data = (uint8_t *)(uintptr_t)ft_ip_bytes(ip, &data.len);
    return data;
}

static void add_address(struct form *form, const struct ft_ip *ip)
{
    Fabrictrace__SwitchReport *m = &form->report;
    ProtobufCBinaryData data = bytes_of(ip);

    for (size_t i = 0; i < m->n_addresses; i++)
        if (form->addresses[i].len == data.len &&
            memcmp(form->addresses[i].data, data.data, data.len) == 0)
            return;
    form->addresses[m->n_addresses++] = data;
    m->addresses = form->addresses;
}

static void add_port(struct form *form, const struct ft_device_port *port)
{
    size_t i = form->report.n_ports++;
    Fabrictrace__PortInfo *m = &form->ports[i];

    fabrictrace__port_info__init(m);
    m->has_ifindex = true;
    m->ifindex = port->ifindex;
    m->name = port->name ? port->name : port->descr;
    m->alias = port->alias;
    m->mac = port->mac;
    m->has_speed_bps = port->speed_bps != 0;
    m->speed_bps = port->speed_bps;
    m->has_oper_up = port->has_oper_up;
    m->oper_up = port->oper_up;
    m->has_admin_up = port->has_admin_up;
    m->admin_up = port->admin_up;
    m->has_lag_ifindex = port->lag_ifindex != 0;
    m->lag_ifindex = port->lag_ifindex;
    if (port->lldp.text) {
        m->has_lldp_id_kind = true;
        m->lldp_id_kind = port->lldp.kind;
        m->lldp_id = port->lldp.text;
    }
    form->port_list[i] = m;
    form->report.ports = form->port_list;
}

/* Takes the next free entries of the list of addresses. */
static void add_neighbor(struct form *form, const struct ft_device_neighbor *n, size_t *taken)
{
    size_t i = form->report.n_neighbors++;
    Fabrictrace__Neighbor *m = &form->neighbors[i];

    fabrictrace__neighbor__init(m);
    m->has_ifindex = true;
    m->ifindex = n->ifindex;
    m->has_chassis_kind = n->chassis.text != NULL;
    m->chassis_kind = n->chassis.kind;
    m->chassis_id = n->chassis.text;
    m->has_port_kind = n->port.text != NULL;
    m->port_kind = n->port.kind;
    m->port_id = n->port.text;
    m->port_description = n->port_descr;
    m->name = n->name;
    m->has_forwards = n->has_forwards;
    m->forwards = n->forwards;
    m->addresses = form->neighbor_addresses + *taken;
    for (size_t k = 0; k < n->address_count; k++)
        m->addresses[k] = bytes_of(&n->addresses[k]);
    m->n_addresses = n->address_count;
    *taken += n->address_count;
    form->neighbor_list[i] = m;
    form->report.neighbors = form->neighbor_list;
}

static void fill(struct form *form, const struct ft_snmp_report *r, struct ft_wall now)
{
    const struct ft_device *d = r->device;
    Fabrictrace__SwitchReport *m = &form->report;
    size_t taken = 0;

    m->has_time_ms = true;
    m->time_ms = (uint64_t)now.ms;
    m->has_interval_ms = true;
    m->interval_ms = r->interval_ms;
    m->has_agent = true;
    m->agent = bytes_of(&d->agent);
    add_address(form, &d->agent);
    for (size_t i = 0; i < r->also_count; i++)
        add_address(form, &r->also[i]);
    for (size_t i = 0; i < d->address_count; i++)
        add_address(form, &d->addresses[i]);
    m->name = d->name;
    if (d->chassis.text) {
        m->has_chassis_kind = true;
        m->chassis_kind = d->chassis.kind;
        m->chassis_id = d->chassis.text;
    }
    m->has_uptime_ms = d->scalars.has_uptime;
    m->uptime_ms = (uint64_t)d->scalars.uptime_cs * MS_PER_CS;
    m->has_reachable = true;
    m->reachable = r->reachable;
    m->has_has_lldp = d->polled;
    m->has_lldp = d->has_lldp;
    for (size_t i = 0; i < d->ports.count; i++)
        add_port(form, &d->ports.items[i]);
    for (size_t i = 0; i < d->neighbors.count; i++)
        if (d->neighbors.items[i].ifindex)
            add_neighbor(form, &d->neighbors.items[i], &taken);
    m->source = (char *)(uintptr_t)r->source;
    m->problem = *r->problem ? (char *)(uintptr_t)r->problem : NULL;
}

int ft_report_switch(const struct ft_snmp_report *r, struct ft_wall now,
                     const struct ft_record_sink *sink)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    struct form form;
    int rc = -ENOMEM;

    if (form_init(&form, r)) {
        fill(&form, r, now);
        record.kind_case = FABRICTRACE__RECORD__KIND_SWITCH_REPORT;
        record.switch_report = &form.report;
        sink->emit(sink->arg, &record);
        rc = 0;
    }
    form_free(&form);
    return rc;
}

/* The sum of three kinds of packets; false when the agent does not answer all of them. */
static bool packets(const struct ft_snmp_counters *c, enum ft_mib_counters first, uint64_t *sum)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < 3; i++) {
        uint64_t part;

        if (!ft_counters_get(c, first + i, &part))
            return false;
        total += part;
    }
    *sum = total;
    return true;
}

/* The 64-bit form where the agent has it. What this poll did not read would look like a counter
 * that stands still, hence is left out. */
static void fill_flow_control(const struct ft_device *d, const struct ft_device_port *port,
                              Fabrictrace__PortCounters *m)
{
    const struct ft_snmp_counters *c = &port->counters;

    if (port->pause_poll == d->poll) {
        m->has_in_pause = ft_counters_get(c, FT_MIB_IN_PAUSE_HC, &m->in_pause) ||
                          ft_counters_get(c, FT_MIB_IN_PAUSE, &m->in_pause);
        m->has_out_pause = ft_counters_get(c, FT_MIB_OUT_PAUSE_HC, &m->out_pause) ||
                           ft_counters_get(c, FT_MIB_OUT_PAUSE, &m->out_pause);
    }
    if (port->pfc_poll == d->poll) {
        m->has_in_pfc = ft_counters_get(c, FT_MIB_IN_PFC, &m->in_pfc);
        m->has_out_pfc = ft_counters_get(c, FT_MIB_OUT_PFC, &m->out_pfc);
    }
}

static void emit_port(const struct ft_device *d, const struct ft_device_port *port,
                      const struct ft_record_sink *sink)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__PortCounters m = FABRICTRACE__PORT_COUNTERS__INIT;
    const struct ft_snmp_counters *c = &port->counters;

    m.has_time_ms = true;
    m.time_ms = (uint64_t)port->counted.ms;
    m.has_agent = true;
    m.agent = bytes_of(&d->agent);
    m.has_ifindex = true;
    m.ifindex = port->ifindex;
    m.port = port->name ? port->name : port->descr;
    m.has_source = true;
    m.source = FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SNMP;
    m.has_speed_bps = port->speed_bps != 0;
    m.speed_bps = port->speed_bps;
    m.has_oper_up = port->has_oper_up;
    m.oper_up = port->oper_up;
    m.has_admin_up = port->has_admin_up;
    m.admin_up = port->admin_up;
    m.has_uptime_ms = d->scalars.has_uptime;
    m.uptime_ms = (uint64_t)d->scalars.uptime_cs * MS_PER_CS;
    m.has_discontinuity_ms = port->has_discontinuity;
    m.discontinuity_ms = (uint64_t)port->discontinuity_cs * MS_PER_CS;
    m.has_in_bytes = ft_counters_get(c, FT_MIB_IN_OCTETS, &m.in_bytes);
    m.has_out_bytes = ft_counters_get(c, FT_MIB_OUT_OCTETS, &m.out_bytes);
    m.has_in_packets = packets(c, FT_MIB_IN_UCAST, &m.in_packets);
    m.has_out_packets = packets(c, FT_MIB_OUT_UCAST, &m.out_packets);
    m.has_in_discards = ft_counters_get(c, FT_MIB_IN_DISCARDS, &m.in_discards);
    m.has_out_discards = ft_counters_get(c, FT_MIB_OUT_DISCARDS, &m.out_discards);
    m.has_in_errors = ft_counters_get(c, FT_MIB_IN_ERRORS, &m.in_errors);
    m.has_out_errors = ft_counters_get(c, FT_MIB_OUT_ERRORS, &m.out_errors);
    fill_flow_control(d, port, &m);
    record.kind_case = FABRICTRACE__RECORD__KIND_COUNTERS;
    record.counters = &m;
    sink->emit(sink->arg, &record);
}

size_t ft_report_counters(const struct ft_device *d, const struct ft_record_sink *sink)
{
    size_t emitted = 0;

    if (!d->counters_read || d->stale)
        return 0;
    for (size_t i = 0; i < d->ports.count; i++) {
        uint64_t octets;

        if (d->ports.items[i].missed ||
            !ft_counters_get(&d->ports.items[i].counters, FT_MIB_IN_OCTETS, &octets))
            continue;
        emit_port(d, &d->ports.items[i], sink);
        emitted++;
    }
    return emitted;
}
