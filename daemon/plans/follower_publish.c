// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/join/flow_path.h"
#include "daemon/plans/follower_impl.h"

#define SUBJECT_BYTES (FT_PLAN_JOB_BYTES + 16)
#define MESSAGE_BYTES 512

static void fill(Fabrictrace__Plan *out, const struct ft_followed_plan *plan, const char *fabric)
{
    fabrictrace__plan__init(out);
    out->has_time_ms = out->has_stage = out->has_uid = out->has_ports_given = true;
    out->has_ports_confirmed = out->has_ports_missed = out->has_ports_refused = true;
    out->has_hosts = out->has_hosts_ended = out->has_since_ms = true;
    out->time_ms = plan->time_ms;
    out->fabric = (char *)(uintptr_t)fabric;
    out->job = (char *)(uintptr_t)plan->job;
    out->uid = plan->uid;
    out->stage = plan->stage;
    out->ports_given = plan->ports - plan->refused;
    out->ports_confirmed = plan->confirmed;
    out->ports_missed = plan->missed;
    out->ports_refused = plan->refused;
    out->has_end = plan->end != FABRICTRACE__PLAN_END__PLAN_END_UNKNOWN;
    out->end = plan->end;
    out->hosts = plan->host_count;
    out->hosts_ended = plan->ended;
    out->since_ms = (uint64_t)plan->since_ms;
}

bool ft_follower_is_shown(const struct ft_followed_plan *plan)
{
    return plan->used && (plan->ports || plan->ended);
}

void ft_follower_publish(const struct ft_followed_plan *plan, const char *fabric,
                         const struct ft_emitter *emitter)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Plan out;

    fill(&out, plan, fabric);
    record.kind_case = FABRICTRACE__RECORD__KIND_PLAN;
    record.plan = &out;
    emitter->record(emitter->arg, &record);
}

static Fabrictrace__PlanPortState state_of(const struct ft_followed_port *port)
{
    static const Fabrictrace__PlanPortState states[] = {
        [FT_PORT_AWAITED] = FABRICTRACE__PLAN_PORT_STATE__PLAN_PORT_STATE_AWAITED,
        [FT_PORT_CONFIRMED] = FABRICTRACE__PLAN_PORT_STATE__PLAN_PORT_STATE_CONFIRMED,
        [FT_PORT_MISSED] = FABRICTRACE__PLAN_PORT_STATE__PLAN_PORT_STATE_MISSED,
        [FT_PORT_UNCONFIRMED] = FABRICTRACE__PLAN_PORT_STATE__PLAN_PORT_STATE_UNCONFIRMED,
        [FT_PORT_REFUSED] = FABRICTRACE__PLAN_PORT_STATE__PLAN_PORT_STATE_REFUSED,
    };

    return states[port->state];
}

bool ft_follower_next_port(const struct ft_follower *f, uint32_t *index, const char *job,
                           const struct ft_emitter *emitter)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    struct ft_followed_port *port;

    record.kind_case = FABRICTRACE__RECORD__KIND_PLAN_PORT;
    while ((port = ft_table_next(f->ports, index))) {
        if (!port->counted || (job && strcmp(job, f->plans[port->key.plan].job) != 0))
            continue;
        record.plan_port = fabrictrace__plan_port__unpack(NULL, port->report_bytes, port->report);
        if (!record.plan_port)
            continue;
        record.plan_port->has_state = true;
        record.plan_port->state = state_of(port);
        emitter->record(emitter->arg, &record);
        fabrictrace__plan_port__free_unpacked(record.plan_port, NULL);
        return true;
    }
    return false;
}

struct hops {
    Fabrictrace__Hop hops[FT_PATH_HOPS_MAX];
    Fabrictrace__Hop *list[FT_PATH_HOPS_MAX];
    size_t count;
};

static void fill_seen(struct hops *out, const struct ft_join *join, const struct ft_flow *flow)
{
    const struct ft_path path = ft_flow_path(ft_join_topology(join), flow);

    out->count = 0;
    for (uint32_t i = 0; flow->state == FT_PATH_RESOLVED && i < path.hop_count; i++) {
        if (path.hops[i].in == FT_NONE && path.hops[i].out == FT_NONE)
            continue;
        ft_emit_hop(&out->hops[out->count], join, flow, &path.hops[i]);
        out->list[out->count] = &out->hops[out->count];
        out->count++;
    }
}

void ft_follower_publish_end(const struct ft_followed_plan *plan,
                             const struct ft_followed_port *port,
                             const Fabrictrace__PlanPort *report,
                             const struct ft_follower_surroundings *around, int64_t now_ms)
{
    Fabrictrace__Event event;
    Fabrictrace__Evidence evidence = FABRICTRACE__EVIDENCE__INIT;
    const struct ft_flow *flow = ft_join_find(around->join, &port->key.tuple);
    bool other = plan->end == FABRICTRACE__PLAN_END__PLAN_END_CONTRADICTED;
    char subject[SUBJECT_BYTES], message[MESSAGE_BYTES], text[FT_TUPLE_TEXT_BYTES];
    struct hops seen = {.count = 0};

    if (flow && other)
        fill_seen(&seen, around->join, flow);
    ft_tuple_format(&port->key.tuple, text);
    snprintf(subject, sizeof(subject), "%s/%" PRIu32, plan->job, plan->uid);
    snprintf(message, sizeof(message),
             "plan of job '%s', user %" PRIu32 ": withdrawn, as %s %s; queue pairs that have its "
             "ports keep them, no other gets one",
             plan->job, plan->uid, text,
             other ? "takes another path than it predicted"
                   : "is sampled, and no single path is certain");
    evidence.flow = report->flow;
    evidence.host = report->host;
    evidence.has_count = evidence.has_flows = true;
    evidence.count = plan->missed;
    evidence.flows = plan->ports - plan->refused;
    evidence.n_old_hops = report->n_hops;
    evidence.old_hops = report->hops;
    evidence.n_new_hops = seen.count;
    evidence.new_hops = seen.list;
    ft_emit_event(&event, FABRICTRACE__KIND__KIND_PLAN_WITHDRAWN,
                  FABRICTRACE__SEVERITY__SEVERITY_WARNING, around->fabric, now_ms, now_ms);
    event.subject = subject;
    event.message = message;
    event.evidence = &evidence;
    ft_events_once(around->events, &event);
}
