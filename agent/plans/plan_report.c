// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/plans/plan_report.h"

#include <stdbool.h>

#include "proto/record.h"

#define NS_PER_S    INT64_C(1000000000)
#define REPORTS_MAX 1000 /* a second */

static bool may_report(struct ft_plan_reports *r)
{
    struct ft_mono now = ft_mono_now();

    if (ft_mono_since_ns(now, r->second) >= NS_PER_S) {
        r->second = now;
        r->count = 0;
    }
    if (r->count == REPORTS_MAX) {
        (*r->unreported)++;
        return false;
    }
    r->count++;
    return true;
}

void ft_plan_report_end(struct ft_plan_reports *r, const struct ft_withdrawal *of,
                        Fabrictrace__PlanOutcome outcome)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__PlanPort port = FABRICTRACE__PLAN_PORT__INIT;

    if (!may_report(r))
        return;
    port.has_time_ms = port.has_uid = port.has_outcome = port.has_plan_time_ms = true;
    port.time_ms = (uint64_t)ft_wall_now().ms;
    port.host = (char *)(uintptr_t)r->host;
    port.source = (char *)(uintptr_t)r->source;
    port.job = (char *)(uintptr_t)of->job;
    port.uid = of->uid;
    port.outcome = outcome;
    port.plan_time_ms = of->plan_time_ms;
    record.kind_case = FABRICTRACE__RECORD__KIND_PLAN_PORT;
    record.plan_port = &port;
    ft_uplink_record(r->uplink, &record);
}

void ft_plan_report_port(struct ft_plan_reports *r, uint32_t pid, const struct ft_plan_ask *ask,
                         const struct ft_kept *k, const struct ft_plan_entry *entry)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__PlanPort port = FABRICTRACE__PLAN_PORT__INIT;
    Fabrictrace__Flow flow = FABRICTRACE__FLOW__INIT;
    Fabrictrace__Qp qp = FABRICTRACE__QP__INIT;
    const struct ft_tuple tuple = {.src = ask->src,
                                   .dst = ask->dst,
                                   .sport = ask->sport,
                                   .dport = FT_ROCE_PORT,
                                   .proto = FT_PROTO_UDP};

    if (!may_report(r))
        return;
    ft_flow_from_tuple(&flow, &tuple);
    qp.has_local = qp.has_remote = true;
    qp.local = ask->qp;
    qp.remote = ask->peer;
    port.has_time_ms = port.has_uid = port.has_outcome = true;
    port.has_pid = pid != 0; /* 0: of another PID namespace */
    port.has_plan_time_ms = true;
    port.time_ms = (uint64_t)ft_wall_now().ms;
    port.host = (char *)(uintptr_t)r->host;
    port.job = (char *)(uintptr_t)k->job;
    port.uid = k->uid;
    port.pid = pid;
    port.flow = &flow;
    port.qp = &qp;
    port.outcome = (Fabrictrace__PlanOutcome)ask->outcome;
    port.n_hops = entry->move->n_hops;
    port.hops = entry->move->hops;
    port.n_hops_before = entry->move->n_hops_before;
    port.hops_before = entry->move->hops_before;
    port.plan_time_ms = k->file.record->plan->time_ms;
    port.source = (char *)(uintptr_t)r->source;
    record.kind_case = FABRICTRACE__RECORD__KIND_PLAN_PORT;
    record.plan_port = &port;
    ft_uplink_record(r->uplink, &record);
}
