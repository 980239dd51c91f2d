// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/diagnosis/diagnoser.h"
#include "daemon/health/congestion.h"
#include "daemon/health/losses.h"
#include "daemon/pipeline/intake.h"
#include "daemon/pipeline/pipeline_impl.h"
#include "daemon/plans/follower.h"
#include "daemon/probe/probed.h"
#include "daemon/probe/prober.h"
#include "proto/bounds.h"
#include "proto/columns.h"
#include "proto/record.h"

/* Several times what any program of ours says in an account. */
#define LOSS_TEXT_MAX     255
#define LOSS_LIST_MAX     64
#define PROGRESS_TEXT_MAX 255
#define PROGRESS_LIST_MAX 128
#define PLAN_HOPS_MAX     16

/* Where the table is full, who was not heard for twelve of the usual intervals is replaced: whoever
 * is there has said more than once by then that it is, and made-up names keep no entry for longer.
 * So many are looked at for each that is new. */
#define GONE_MS 120000
#define LOOKS   32

static void gather(struct ft_pipeline *p, const struct ft_observed *o)
{
    struct ft_observed_rest *rest = &p->rests[p->gathered];
    struct ft_observation *in = &p->batch[p->gathered];
    bool odd = false;

    if (!ft_intake_observed(o, in, &odd)) {
        p->stats.fates[FT_RECORD_INVALID]++;
        return;
    }
    if (!ft_pipeline_has_flow(p, &o->tuple)) {
        p->stats.fates[FT_RECORD_ELSEWHERE]++;
        return;
    }
    p->stats.implausible += odd;
    ft_pipeline_end_gap(p, (int64_t)o->time_ms);
    ft_rhythms_sampled(p->stages.rhythms, in->last_ms);
    ft_unrated_take(p->stages.unrated, o, p->now_ms);
    if (ft_intake_rest(o, rest))
        in->rest = rest;
    if (ft_intake_numbered(o, &p->numbers[p->gathered]))
        in->numbered = &p->numbers[p->gathered];
    p->gathered++;
    if (p->stages.wiring)
        ft_pipeline_cross(p, in, o->has_ttl && o->ttl < 256 ? (uint8_t)o->ttl : 0);
    if (p->gathered == FT_JOIN_BATCH)
        ft_pipeline_flush(p);
    if (p->stages.pairing)
        ft_pairing_observe(p->stages.pairing, o, p->now_ms);
}

void ft_pipeline_observed(struct ft_pipeline *p, const struct ft_observed *o, int64_t now_ms)
{
    ft_pipeline_complete(p);
    p->now_ms = now_ms;
    p->stats.records++;
    gather(p, o);
}

static void take_observation(struct ft_pipeline *p, const Fabrictrace__Observation *o)
{
    struct ft_observed one;

    if (ft_observed_from(o, &one))
        p->stats.fates[FT_RECORD_INVALID]++;
    else
        gather(p, &one);
}

/* Each is a record. Columns that do not fit together are one that is none. */
static void take_observations(struct ft_pipeline *p, const Fabrictrace__Observations *m)
{
    struct ft_columns_reader rows;
    struct ft_observed one = {.packets = 0};

    if (ft_columns_open(&rows, m)) {
        p->stats.records++;
        p->stats.fates[FT_RECORD_INVALID]++;
        return;
    }
    while (ft_columns_next(&rows, &one))
        ft_pipeline_observed(p, &one, p->now_ms);
}

static enum ft_record_fate take_report(struct ft_pipeline *p, const Fabrictrace__FlowReport *r)
{
    struct ft_host_report in;
    bool odd = false;

    if (!ft_intake_report(r, &in, &odd))
        return FT_RECORD_INVALID;
    if (!ft_pipeline_has_flow(p, &in.tuple))
        return FT_RECORD_ELSEWHERE;
    p->stats.implausible += odd;
    /* Its agent's clock may be ahead. */
    if (r->job && !r->ended)
        ft_rhythms_alive(p->stages.rhythms, r->job,
                         in.time_ms < p->now_ms ? in.time_ms : p->now_ms);
    if (p->stages.discovery && in.sending)
        ft_discovery_named(p->stages.discovery, &in.tuple.src, in.host, p->now_ms);
    if (in.sending && in.job)
        ft_follower_hear(p->stages.follower, ft_join_topology(p->stages.join), in.job, &in.tuple,
                         p->now_ms);
    return ft_pipeline_fate(p, ft_join_report(p->stages.join, &in));
}

static enum ft_record_fate fate_of_error(int rc)
{
    return rc == 0 ? FT_RECORD_JOINED : rc == -EINVAL ? FT_RECORD_INVALID : FT_RECORD_TABLE_FULL;
}

/* Whether what the record says of the administrator's wish is believed (down_ports.h). */
static bool is_believed(const struct ft_pipeline *p, const Fabrictrace__PortCounters *c)
{
    struct ft_ip agent;

    return c->has_source && (c->source == FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SNMP ||
                             (p->stages.discovery && c->has_agent &&
                              !ft_ip_from_bytes(c->agent.data, c->agent.len, &agent) &&
                              ft_discovery_has_both(p->stages.discovery, &agent)));
}

static enum ft_record_fate take_counters(struct ft_pipeline *p, const Fabrictrace__PortCounters *c)
{
    bool sampled = c->has_source && c->source == FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SFLOW;
    int said = p->stages.discovery ? ft_discovery_counters(p->stages.discovery, c, p->now_ms) : 0;
    Fabrictrace__PortCounters believed = *c;
    int rc;

    believed.has_admin_up = c->has_admin_up && is_believed(p, c);
    rc = p->stages.counters ? ft_counters_take(p->stages.counters, &believed, p->now_ms) : 0;

    /* Whoever sends these sends samples as well. */
    if (sampled)
        ft_rhythms_sampled(p->stages.rhythms, p->now_ms);
    if (!p->stages.counters && !p->stages.discovery)
        return FT_RECORD_UNUSED;
    return fate_of_error(rc ? rc : said);
}

static enum ft_record_fate take_switch(struct ft_pipeline *p, const Fabrictrace__SwitchReport *r)
{
    return p->stages.discovery
               ? fate_of_error(ft_discovery_report(p->stages.discovery, r, p->now_ms))
               : FT_RECORD_UNUSED;
}

static bool is_gone(void *arg, void *entry)
{
    struct ft_pipeline *p = arg;
    struct ft_pipeline_program *s = entry;

    /* This host's clock was set back. */
    if (s->heard_ms > p->now_ms)
        s->heard_ms = p->now_ms;
    if (p->now_ms - s->heard_ms < GONE_MS)
        return false;
    p->sources_bytes -= s->packed_bytes;
    free(s->packed);
    return true;
}

static struct ft_pipeline_program *program_of(struct ft_pipeline *p, const char *id)
{
    bool fresh;
    struct ft_pipeline_program *s = ft_table_insert(p->sources, id, &fresh);

    if (!s && ft_table_make_room(p->sources, &p->sources_hand, LOOKS, is_gone, p))
        s = ft_table_insert(p->sources, id, &fresh);
    return s;
}

/* The account stays for whoever asks. Without room the older one does. */
static enum ft_record_fate keep_loss(struct ft_pipeline *p, const Fabrictrace__Loss *loss)
{
    char id[FT_PIPELINE_PROGRAM_BYTES] = {0};
    size_t len = fabrictrace__loss__get_packed_size(loss);
    struct ft_pipeline_program *s;
    uint8_t *packed;

    snprintf(id, sizeof(id), "%s %s", loss->program, loss->source);
    s = program_of(p, id);
    if (!s)
        return FT_RECORD_TABLE_FULL;
    s->heard_ms = p->now_ms;
    if (p->sources_bytes - s->packed_bytes + len > p->config.kept_bytes)
        return FT_RECORD_TABLE_FULL;
    packed = malloc(len ? len : 1);
    if (!packed)
        return FT_RECORD_FORWARDED;
    fabrictrace__loss__pack(loss, packed);
    free(s->packed);
    p->sources_bytes += len - s->packed_bytes;
    s->packed = packed;
    s->packed_bytes = len;
    return FT_RECORD_FORWARDED;
}

static enum ft_record_fate take_loss(struct ft_pipeline *p, const Fabrictrace__Record *record)
{
    const Fabrictrace__Loss *loss = record->loss;

    if (!loss->source || !loss->program ||
        !ft_message_within(&loss->base, LOSS_TEXT_MAX, LOSS_LIST_MAX))
        return FT_RECORD_INVALID;
    ft_losses_take(p->stages.losses, loss, p->now_ms);
    if (loss->has_time_ms && loss->time_ms < INT64_MAX / 2)
        ft_clocks_take(p->stages.clocks, loss->program, loss->source, (int64_t)loss->time_ms,
                       p->now_ms, p->config.replay);
    p->emitter.record(p->emitter.arg, record);
    return keep_loss(p, loss);
}

/* A collective goes out with what is known of its slowest peer; borrows the rest. Of a rank that is
 * another process, or that nobody announced, nothing is known. */
static void forward_collective(struct ft_pipeline *p, const Fabrictrace__Collective *in,
                               bool is_its)
{
    const struct ft_slowest_last *last =
        !is_its ? NULL : ft_slowest_take(p->stages.slowest, in, p->stages.pairs);
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Collective out = *in;
    bool named = last && last->named;

    /* What another daemon said may be of another time. */
    out.has_slowest_peer = out.has_slowest_step_median_ns = out.has_others_step_median_ns = named;
    out.slowest_switch = out.slowest_port = NULL;
    out.has_slowest_port_flows = named && last->has_link;
    if (named) {
        out.slowest_peer = last->peer;
        out.slowest_step_median_ns = last->step_median_ns;
        out.others_step_median_ns = last->others_median_ns;
    }
    if (named && last->has_link) {
        out.slowest_switch = (char *)(uintptr_t)last->link.switch_name;
        out.slowest_port = (char *)(uintptr_t)last->link.port;
        out.slowest_port_flows = last->link.flows;
    }
    record.kind_case = FABRICTRACE__RECORD__KIND_COLLECTIVE;
    record.collective = &out;
    p->emitter.record(p->emitter.arg, &record);
}

static void take_collective(struct ft_pipeline *p, const Fabrictrace__Collective *c, bool is_its)
{
    if (p->stages.diagnoser)
        ft_diagnoser_collective(p->stages.diagnoser, c, p->now_ms);
    forward_collective(p, c, is_its);
}

/* Goes out also where this daemon has no room to remember it. */
static enum ft_record_fate take_ranks(struct ft_pipeline *p, const Fabrictrace__Record *record)
{
    const char *job = record->kind_case == FABRICTRACE__RECORD__KIND_COMMUNICATOR
                          ? record->communicator->job
                          : record->collective->job;
    int rc;

    if (job)
        ft_rhythms_plugin(p->stages.rhythms, job, p->now_ms);
    ft_ranks_at(p->stages.ranks, p->now_ms);
    rc = record->kind_case == FABRICTRACE__RECORD__KIND_COMMUNICATOR
             ? ft_ranks_communicator(p->stages.ranks, record->communicator)
             : ft_ranks_collective(p->stages.ranks, record->collective);
    if (rc == -EINVAL)
        return FT_RECORD_INVALID;
    if (p->stages.pairing && record->kind_case == FABRICTRACE__RECORD__KIND_COMMUNICATOR &&
        rc != -EEXIST)
        ft_pairing_communicator(p->stages.pairing, record->communicator, p->now_ms);
    if (record->kind_case == FABRICTRACE__RECORD__KIND_COLLECTIVE)
        take_collective(p, record->collective, rc != -EEXIST && rc != -ENOENT);
    else
        p->emitter.record(p->emitter.arg, record);
    if (p->stages.diagnoser && record->kind_case == FABRICTRACE__RECORD__KIND_COMMUNICATOR)
        ft_diagnoser_communicator(p->stages.diagnoser, record->communicator);
    return rc == -ENOSPC ? FT_RECORD_TABLE_FULL : FT_RECORD_FORWARDED;
}

static enum ft_record_fate forward_progress(struct ft_pipeline *p,
                                            const Fabrictrace__Record *record)
{
    const Fabrictrace__Progress *progress = record->progress;

    if (!progress->comm_id || strlen(progress->comm_id) >= FT_RANKS_ID || !progress->has_rank ||
        !progress->host || !progress->has_time_ms ||
        !ft_message_within(&progress->base, PROGRESS_TEXT_MAX, PROGRESS_LIST_MAX))
        return FT_RECORD_INVALID;
    if (p->stages.diagnoser)
        ft_diagnoser_progress(p->stages.diagnoser, progress, p->now_ms);
    p->emitter.record(p->emitter.arg, record);
    return FT_RECORD_FORWARDED;
}

static enum ft_record_fate forward_states(struct ft_pipeline *p, const Fabrictrace__Record *record)
{
    const Fabrictrace__RankStates *states = record->rank_states;
    int rc = 0;

    if (!states->host || !states->has_time_ms || (!states->comm_id && !states->group) ||
        !ft_message_within(&states->base, PROGRESS_TEXT_MAX, PROGRESS_LIST_MAX))
        return FT_RECORD_INVALID;
    if (p->stages.second)
        rc = ft_second_take(p->stages.second, states, p->now_ms);
    if (rc == -EINVAL)
        return FT_RECORD_INVALID;
    p->emitter.record(p->emitter.arg, record);
    return rc ? FT_RECORD_TABLE_FULL : FT_RECORD_FORWARDED;
}

static enum ft_record_fate forward_plan_port(struct ft_pipeline *p,
                                             const Fabrictrace__Record *record)
{
    const Fabrictrace__PlanPort *port = record->plan_port;
    int rc;

    if (!ft_message_within(&port->base, PROGRESS_TEXT_MAX, PLAN_HOPS_MAX))
        return FT_RECORD_INVALID;
    rc = ft_follower_take(p->stages.follower, port, ft_join_topology(p->stages.join), p->now_ms);
    if (rc == -EINVAL || rc == -EPERM)
        return rc == -EPERM ? FT_RECORD_UNAUTHORIZED : FT_RECORD_INVALID;
    p->emitter.record(p->emitter.arg, record);
    return rc ? FT_RECORD_TABLE_FULL : FT_RECORD_FORWARDED;
}

static enum ft_record_fate forward_probe(struct ft_pipeline *p, const Fabrictrace__Record *record)
{
    if (!ft_message_within(&record->probe->base, PROGRESS_TEXT_MAX, FT_PROBED_SWITCHES) ||
        ft_probed_take(p->stages.probed, p->stages.join, record->probe, p->now_ms, &p->emitter))
        return FT_RECORD_INVALID;
    if (p->stages.prober)
        ft_prober_take(p->stages.prober, p->stages.join, record->probe, p->now_ms);
    return FT_RECORD_FORWARDED;
}

static enum ft_record_fate take_queue_pairs(struct ft_pipeline *p,
                                            const Fabrictrace__QueuePairs *list)
{
    struct ft_ip ip;
    int rc;

    if (!p->stages.pairing)
        return FT_RECORD_UNUSED;
    rc = ft_pairing_list(p->stages.pairing, list, p->now_ms);
    for (size_t i = 0; rc != -EINVAL && p->stages.discovery && i < list->n_addresses; i++)
        if (ft_ip_from_bytes(list->addresses[i].data, list->addresses[i].len, &ip) == 0)
            ft_discovery_named(p->stages.discovery, &ip, list->host, p->now_ms);
    return rc == 0 ? FT_RECORD_JOINED : rc == -EINVAL ? FT_RECORD_INVALID : FT_RECORD_TABLE_FULL;
}

static enum ft_record_fate take_status(struct ft_pipeline *p, const Fabrictrace__HostStatus *status)
{
    switch (ft_agents_take(p->stages.agents, status, p->now_ms)) {
    case 0:
        if (p->stages.prober)
            ft_prober_agent(p->stages.prober, status, p->now_ms);
        return FT_RECORD_JOINED;
    case -EINVAL:
        return FT_RECORD_INVALID;
    default:
        return FT_RECORD_TABLE_FULL;
    }
}

static enum ft_record_fate forward_host(struct ft_pipeline *p, const Fabrictrace__Record *record)
{
    const Fabrictrace__HostCounters *host = record->host;

    if (!host->source || !host->device || !host->has_time_ms)
        return FT_RECORD_INVALID;
    p->emitter.record(p->emitter.arg, record);
    ft_congestion_take(p->stages.congestion, host, p->now_ms);
    return FT_RECORD_FORWARDED;
}

static enum ft_record_fate take_partial(struct ft_pipeline *p, const Fabrictrace__Partial *part)
{
    struct ft_partials *partials = p->config.window.partials;

    if (!partials)
        return FT_RECORD_UNUSED;
    switch (ft_partials_take(partials, part)) {
    case 0:
        if (ft_join_window(p->stages.join) == 0)
            ft_join_open(p->stages.join,
                         ft_join_window_of(p->stages.join, (int64_t)part->window_start_ms));
        return FT_RECORD_JOINED;
    case -EALREADY:
        return FT_RECORD_UNUSED;
    case -ESTALE:
        return FT_RECORD_LATE;
    case -EINVAL:
        return FT_RECORD_INVALID;
    default:
        return FT_RECORD_TABLE_FULL;
    }
}

/* Of any kind but observations and flows, which are checked as they are read. */
static enum ft_record_fate take_other(struct ft_pipeline *p, const Fabrictrace__Record *record)
{
    enum ft_intake_numbers numbers = ft_intake_numbers(record, p->now_ms);

    if (numbers != FT_INTAKE_FITS)
        return numbers == FT_INTAKE_AHEAD ? FT_RECORD_AHEAD : FT_RECORD_INVALID;
    switch (record->kind_case) {
    case FABRICTRACE__RECORD__KIND_LOSS:
        return take_loss(p, record);
    case FABRICTRACE__RECORD__KIND_COMMUNICATOR:
    case FABRICTRACE__RECORD__KIND_COLLECTIVE:
        return take_ranks(p, record);
    case FABRICTRACE__RECORD__KIND_PROGRESS:
        ft_ranks_progress(p->stages.ranks, record->progress);
        return forward_progress(p, record);
    case FABRICTRACE__RECORD__KIND_RANK_STATES:
        return forward_states(p, record);
    case FABRICTRACE__RECORD__KIND_PLAN_PORT:
        return forward_plan_port(p, record);
    case FABRICTRACE__RECORD__KIND_PROBE:
        return forward_probe(p, record);
    case FABRICTRACE__RECORD__KIND_SWITCH_REPORT:
        return take_switch(p, record->switch_report);
    case FABRICTRACE__RECORD__KIND_COUNTERS:
        return take_counters(p, record->counters);
    case FABRICTRACE__RECORD__KIND_PROCESSOR:
        return fate_of_error(
            ft_processors_take(p->stages.processors, record->processor, p->now_ms));
    case FABRICTRACE__RECORD__KIND_HOST:
        return forward_host(p, record);
    case FABRICTRACE__RECORD__KIND_QUEUE_PAIRS:
        return take_queue_pairs(p, record->queue_pairs);
    case FABRICTRACE__RECORD__KIND_HOST_STATUS:
        return take_status(p, record->host_status);
    case FABRICTRACE__RECORD__KIND_PARTIAL:
        return take_partial(p, record->partial);
    default:
        return FT_RECORD_UNUSED;
    }
}

void ft_pipeline_record(struct ft_pipeline *p, const Fabrictrace__Record *record, int64_t now_ms)
{
    enum ft_record_fate fate;

    ft_pipeline_complete(p);
    p->now_ms = now_ms;
    if (record->kind_case == FABRICTRACE__RECORD__KIND_OBSERVATIONS) {
        take_observations(p, record->observations);
        return;
    }
    p->stats.records++;
    if (record->kind_case == FABRICTRACE__RECORD__KIND_OBSERVATION) {
        take_observation(p, record->observation);
        return;
    }
    /* Records are applied in the order in which they came. */
    ft_pipeline_flush(p);
    fate = record->kind_case == FABRICTRACE__RECORD__KIND_FLOW ? take_report(p, record->flow)
                                                               : take_other(p, record);
    p->stats.fates[fate]++;
}

void ft_pipeline_refuse(struct ft_pipeline *p)
{
    p->stats.records++;
    p->stats.fates[FT_RECORD_UNAUTHORIZED]++;
}

void ft_pipeline_unknown(struct ft_pipeline *p, uint64_t count)
{
    p->stats.records += count;
    p->stats.fates[FT_RECORD_UNUSED] += count;
}
