// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/report/status.h"

#include <string.h>

#include "lib/base/privilege.h"

#define NS_PER_MS 1000000

/* protobuf-c takes no const, though it changes nothing. */
static char *text(const char *s)
{
    return s && s[0] ? (char *)(uintptr_t)s : NULL;
}

static void fill_capabilities(unsigned held, struct ft_status_record *out)
{
    size_t count = 0;

    for (unsigned one = 1; one <= FT_NET_ADMIN; one <<= 1)
        if (held & one)
            out->capabilities[count++] = text(ft_privilege_name(one));
    out->status.capabilities = out->capabilities;
    out->status.n_capabilities = count;
}

static void fill_missing(const struct ft_status *status, struct ft_status_record *out)
{
    for (size_t i = 0; i < status->missing_count; i++) {
        Fabrictrace__MissingCapability *m = &out->missing_capabilities[i];

        fabrictrace__missing_capability__init(m);
        m->what = text(status->missing_capabilities[i].what);
        m->capability = text(status->missing_capabilities[i].capability);
        m->setting = text(status->missing_capabilities[i].setting);
        m->adds = text(status->missing_capabilities[i].adds);
        out->missing_list[i] = m;
    }
    out->status.missing_capabilities = out->missing_list;
    out->status.n_missing_capabilities = status->missing_count;
}

static void fill_ports(const struct ft_rdma *rdma, struct ft_status_record *out)
{
    size_t count = 0;

    while (count < FT_RDMA_DEVICE_PORTS_MAX && ft_rdma_port_at(rdma, count, &out->views[count])) {
        struct ft_rdma_port_view *view = &out->views[count];
        Fabrictrace__RdmaPort *m = &out->ports[count];

        fabrictrace__rdma_port__init(m);
        m->device = text(view->device);
        m->has_port = true;
        m->port = view->port;
        m->driver = text(view->driver);
        m->has_computed = view->driver != NULL;
        m->computed = view->computed;
        m->interfaces = (char **)(uintptr_t)view->interfaces;
        m->n_interfaces = view->interface_count;
        out->port_list[count++] = m;
    }
    out->status.ports = out->port_list;
    out->status.n_ports = count;
}

static void fill_queue_pairs(const struct ft_rdma_status *s, Fabrictrace__HostStatus *m)
{
    m->has_queue_pairs = m->has_resolved = m->has_unconnected = true;
    m->has_no_destination = m->has_no_source_port = m->has_refused = true;
    m->queue_pairs = s->table.listed;
    m->resolved = s->table.resolved;
    m->unconnected = s->table.unconnected;
    m->no_destination = s->table.no_destination;
    m->no_source_port = s->table.no_port;
    m->refused = s->table.refused;
    m->has_notified = true;
    m->notified = s->notified;
}

static void fill_members(const struct ft_aggregate *a, size_t at, struct ft_status_record *out)
{
    for (size_t i = 0; i < a->count; i++) {
        const struct ft_aggregate_member *from = &a->members[i];
        Fabrictrace__Member *m = &out->members[at][i];

        fabrictrace__member__init(m);
        m->interface = text(from->name);
        m->has_up = true;
        m->up = from->up;
        m->has_used = from->has_used;
        m->used = from->used;
        m->has_speed_bps = from->speed_bps > 0;
        m->speed_bps = from->speed_bps;
        out->member_list[at][i] = m;
    }
    out->aggregates[at].members = out->member_list[at];
    out->aggregates[at].n_members = a->count;
}

static bool is_listed(const struct ft_status_record *out, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(out->aggregates[i].interface, name) == 0)
            return true;
    return false;
}

static void fill_aggregates(const struct ft_aggregates *aggregates, struct ft_status_record *out)
{
    const struct ft_aggregate *a;
    size_t count = 0;

    for (size_t i = 0; count < FT_STATUS_AGGREGATES && (a = ft_aggregates_at(aggregates, i)); i++) {
        Fabrictrace__Aggregate *m = &out->aggregates[count];

        /* An aggregate and its VLANs are one. */
        if (is_listed(out, count, a->name))
            continue;
        fabrictrace__aggregate__init(m);
        m->interface = text(a->name);
        m->mode = text(a->mode);
        fill_members(a, count, out);
        out->aggregate_list[count++] = m;
    }
    out->status.aggregates = out->aggregate_list;
    out->status.n_aggregates = count;
}

void ft_report_status(const struct ft_status *status, struct ft_status_record *out)
{
    Fabrictrace__HostStatus *m = &out->status;
    struct ft_rdma_status rdma;

    fabrictrace__record__init(&out->record);
    fabrictrace__host_status__init(m);
    out->record.kind_case = FABRICTRACE__RECORD__KIND_HOST_STATUS;
    out->record.host_status = m;
    m->has_time_ms = true;
    m->time_ms = (uint64_t)status->time.ms;
    m->has_interval_ms = true;
    m->interval_ms = (uint32_t)(status->interval_ns / NS_PER_MS);
    m->source = text(status->source);
    m->host = text(status->host);
    m->user = text(status->user);
    m->has_probes = m->probes = status->probes;
    fill_capabilities(status->held, out);
    fill_missing(status, out);
    if (status->rdma) {
        ft_rdma_status(status->rdma, &rdma);
        fill_queue_pairs(&rdma, m);
        fill_ports(status->rdma, out);
        /* The texts of the record outlive this call. */
        m->problem = text(ft_rdma_problem(status->rdma));
    }
    if (status->aggregates)
        fill_aggregates(status->aggregates, out);
}
