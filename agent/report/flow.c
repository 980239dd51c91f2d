// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/report/flow.h"

#include <stdio.h>

#define NS_PER_MS 1000000

static Fabrictrace__Direction direction(enum ft_flow_direction direction)
{
    return direction == FT_FLOW_TX ? FABRICTRACE__DIRECTION__DIRECTION_TX
                                   : FABRICTRACE__DIRECTION__DIRECTION_RX;
}

static void fill_counts(const struct ft_flow_counts *counts, Fabrictrace__FlowReport *m)
{
    m->has_data_packets = true;
    m->data_packets = counts->data_packets;
    m->has_ack_packets = true;
    m->ack_packets = counts->ack_packets;
    m->has_cnp_packets = counts->cnp_packets > 0;
    m->cnp_packets = counts->cnp_packets;
    m->has_other_packets = true;
    m->other_packets = counts->other_packets;
    m->has_ce_packets = true;
    m->ce_packets = counts->ce_packets;
    m->has_bytes = true;
    m->bytes = counts->bytes;
}

static char *copy(char text[FT_OWNER_TEXT_BYTES], const char *from)
{
    if (!from)
        return NULL;
    snprintf(text, FT_OWNER_TEXT_BYTES, "%s", from);
    return text;
}

static void fill_owner(const struct ft_flow_report *report, struct ft_flow_record *out)
{
    out->report.has_pid = report->pid != 0;
    out->report.pid = report->pid;
    out->report.comm = copy(out->comm, report->comm);
    out->report.job = copy(out->job, report->job);
}

void ft_report_flow(const struct ft_flow_report *report, const char *host, const char *interface,
                    struct ft_flow_record *out)
{
    Fabrictrace__FlowReport *m = &out->report;

    fabrictrace__record__init(&out->record);
    fabrictrace__flow_report__init(m);
    fabrictrace__flow__init(&out->flow);
    fabrictrace__qp__init(&out->qp);
    out->record.kind_case = FABRICTRACE__RECORD__KIND_FLOW;
    out->record.flow = m;
    out->tuple = report->tuple;
    ft_flow_from_tuple(&out->flow, &out->tuple);
    m->flow = &out->flow;
    m->has_time_ms = true;
    m->time_ms = (uint64_t)report->time.ms;
    m->has_first_seen_ms = true;
    m->first_seen_ms = (uint64_t)report->first_seen.ms;
    m->host = (char *)(uintptr_t)host;
    if (interface[0])
        m->interface = (char *)(uintptr_t)interface;
    if (report->direction != FT_FLOW_UNKNOWN) {
        m->has_direction = true;
        m->direction = direction(report->direction);
    }
    m->has_tuple_source = true;
    m->tuple_source = report->computed ? FABRICTRACE__TUPLE_SOURCE__TUPLE_SOURCE_COMPUTED
                                       : FABRICTRACE__TUPLE_SOURCE__TUPLE_SOURCE_OBSERVED;
    if (!report->uncounted) {
        m->has_interval_ms = true;
        m->interval_ms = (uint32_t)(report->interval_ns / NS_PER_MS);
        fill_counts(&report->counts, m);
    }
    m->has_source_routed = m->source_routed = report->source_routed;
    fill_owner(report, out);
    /* protobuf-c takes no const, though it changes nothing. */
    m->members = (char **)(uintptr_t)report->members;
    m->n_members = report->member_count;
    if (report->has_qp) {
        m->qp = &out->qp;
        out->qp.has_local = true;
        out->qp.local = report->lqpn;
        out->qp.has_remote = true;
        out->qp.remote = report->rqpn;
    } else if (report->has_dst_qp) {
        m->qp = &out->qp;
        out->qp.has_local = report->direction == FT_FLOW_RX;
        out->qp.local = report->dst_qp;
        out->qp.has_remote = !out->qp.has_local;
        out->qp.remote = report->dst_qp;
    }
    if (report->ended) {
        m->has_ended = true;
        m->ended = true;
    }
}
