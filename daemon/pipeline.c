// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/table.h"
#include "proto/loss.h"
#include "proto/record.h"

#define SOURCE_BYTES     128
#define RANK_MEMBERS_MAX 65536
#define RANK_EDGES_MAX   262144

/* The last accounting of another program. */
struct source {
    char id[SOURCE_BYTES];
    uint8_t *packed;
    size_t packed_bytes;
};

struct ft_pipeline {
    struct ft_pipeline_config config;
    struct ft_topology *topology;
    struct ft_join *join;
    struct ft_ranks *ranks;
    struct ft_events *events;
    struct ft_window *window;
    struct ft_emitter emitter;
    struct ft_table *sources;
    struct ft_pipeline_stats stats;
    void (*add_stages)(void *arg, struct ft_account *account);
    void *add_stages_arg;
    int64_t now_ms;
    struct ft_observation batch[FT_JOIN_BATCH];
    size_t gathered;
};

static void note_first_path(struct ft_pipeline *p, struct ft_flow *flow)
{
    int64_t took_ms = p->now_ms - flow->first_ms;

    if (flow->first_path_counted || flow->evidence.count == 0)
        return;
    flow->first_path_counted = true;
    p->stats.first_paths++;
    p->stats.first_path_sum_ms += took_ms;
    if (took_ms > p->stats.first_path_max_ms)
        p->stats.first_path_max_ms = took_ms;
}

static void on_judged(void *arg, struct ft_flow *flow)
{
    struct ft_pipeline *p = arg;

    if (flow->state == FT_PATH_RESOLVED)
        note_first_path(p, flow);
    ft_window_publish_path(p->window, flow, p->now_ms);
}

struct hop_list {
    Fabrictrace__Hop hops[FT_PATH_HOPS_MAX];
    Fabrictrace__Hop *list[FT_PATH_HOPS_MAX];
};

static size_t list_hops(struct hop_list *l, const struct ft_join *join, const struct ft_flow *flow,
                        const struct ft_route *route)
{
    struct ft_path path;

    ft_route_path(route, ft_join_topology(join), &path);
    for (uint32_t h = 0; h < path.hop_count; h++) {
        ft_emit_hop(&l->hops[h], join, flow, &path.hops[h]);
        l->list[h] = &l->hops[h];
    }
    return path.hop_count;
}

static void on_moved(void *arg, struct ft_flow *flow, const struct ft_route *before, int64_t now_ms)
{
    struct ft_pipeline *p = arg;
    Fabrictrace__Event event = FABRICTRACE__EVENT__INIT;
    Fabrictrace__Evidence evidence = FABRICTRACE__EVIDENCE__INIT;
    Fabrictrace__Flow tuple;
    struct hop_list old_hops, new_hops;
    char subject[FT_TUPLE_TEXT_BYTES], message[FT_TUPLE_TEXT_BYTES + 64], text[FT_TUPLE_TEXT_BYTES];

    ft_tuple_format_key(&flow->tuple, subject);
    ft_tuple_format(&flow->tuple, text);
    snprintf(message, sizeof(message), "%s took another path", text);
    ft_emit_tuple(&tuple, &flow->tuple);
    evidence.flow = &tuple;
    evidence.n_old_hops = list_hops(&old_hops, p->join, flow, before);
    evidence.old_hops = old_hops.list;
    evidence.n_new_hops = list_hops(&new_hops, p->join, flow, &flow->route);
    evidence.new_hops = new_hops.list;
    event.has_time_ms = event.has_since_ms = event.has_kind = event.has_severity = true;
    event.time_ms = event.since_ms = (uint64_t)now_ms;
    event.fabric = (char *)(uintptr_t)ft_topology_fabric(p->topology);
    event.kind = FABRICTRACE__KIND__KIND_PATH_CHANGE;
    event.severity = FABRICTRACE__SEVERITY__SEVERITY_INFO;
    event.subject = subject;
    event.message = message;
    event.evidence = &evidence;
    ft_events_once(p->events, &event);
}

struct ft_pipeline *ft_pipeline_new(const struct ft_pipeline_config *config,
                                    struct ft_topology *topology, const struct ft_emitter *emitter)
{
    struct ft_pipeline *p = calloc(1, sizeof(*p));
    struct ft_join_hooks hooks = {.judged = on_judged, .moved = on_moved, .arg = p};
    const struct ft_ranks_config ranks = {
        .members_max = RANK_MEMBERS_MAX, .edges_max = RANK_EDGES_MAX, .seed = config->join.seed};

    if (!p)
        return NULL;
    p->config = *config;
    p->emitter = *emitter;
    p->events = ft_events_new(config->events_max, emitter);
    p->sources = ft_table_new(sizeof(struct source), SOURCE_BYTES, config->sources_max, 0);
    p->join = ft_join_new(&config->join, topology, &hooks);
    p->ranks = ft_ranks_new(&ranks);
    if (p->join)
        ft_join_set_ranks(p->join, p->ranks);
    if (p->events && p->sources && p->join && p->ranks)
        p->window = ft_window_new(&config->window, p->join, p->events, emitter);
    if (!p->window) {
        ft_pipeline_free(p);
        return NULL;
    }
    p->topology = topology;
    return p;
}

void ft_pipeline_free(struct ft_pipeline *p)
{
    struct source *s;
    uint32_t index = 0;

    if (!p)
        return;
    while (p->sources && (s = ft_table_next(p->sources, &index)))
        free(s->packed);
    ft_table_free(p->sources);
    ft_window_free(p->window);
    ft_join_free(p->join);
    ft_ranks_free(p->ranks);
    ft_events_free(p->events);
    ft_topology_free(p->topology);
    free(p);
}

static void finish_close(struct ft_pipeline *p)
{
    while (ft_window_busy(p->window))
        ft_window_step(p->window, UINT32_MAX);
}

int ft_pipeline_set_topology(struct ft_pipeline *p, struct ft_topology *topology)
{
    int rc;

    ft_pipeline_settle(p);
    finish_close(p);
    rc = ft_join_set_topology(p->join, topology);
    if (rc)
        return rc;
    /* Loads of the old size would be written past their end. */
    rc = ft_window_resize(p->window);
    if (rc) {
        ft_join_set_topology(p->join, p->topology);
        return rc;
    }
    ft_topology_free(p->topology);
    p->topology = topology;
    return 0;
}

static enum ft_record_fate fate_of(enum ft_join_result result)
{
    static const enum ft_record_fate fates[FT_JOIN_RESULTS] = {
        [FT_JOIN_OK] = FT_RECORD_JOINED,     [FT_JOIN_LATE] = FT_RECORD_LATE,
        [FT_JOIN_AHEAD] = FT_RECORD_AHEAD,   [FT_JOIN_TABLE_FULL] = FT_RECORD_TABLE_FULL,
        [FT_JOIN_SPREAD] = FT_RECORD_SPREAD,
    };

    return fates[result];
}

void ft_pipeline_settle(struct ft_pipeline *p)
{
    uint64_t results[FT_JOIN_RESULTS] = {0};

    if (p->gathered == 0)
        return;
    ft_join_observe_batch(p->join, p->batch, p->gathered, results);
    p->gathered = 0;
    for (int r = 0; r < FT_JOIN_RESULTS; r++)
        p->stats.fates[fate_of((enum ft_join_result)r)] += results[r];
}

static void gather(struct ft_pipeline *p, const Fabrictrace__Observation *o)
{
    struct ft_observation in = {
        .point = o->point,
        .first_ms = (int64_t)(o->has_first_ms ? o->first_ms : o->time_ms),
        .last_ms = (int64_t)(o->has_last_ms ? o->last_ms : o->time_ms),
        .in_ifindex = o->in_ifindex,
        .out_ifindex = o->fate == FABRICTRACE__FATE__FATE_FORWARDED ? o->out_ifindex : 0,
        .samples = o->samples,
        .ce_samples = o->ce_samples,
        .data_samples = o->data_samples,
        .ack_samples = o->ack_samples,
        .bytes = o->bytes,
    };

    if (!o->flow || !o->has_time_ms || !o->has_agent || o->time_ms > INT64_MAX / 2 ||
        in.last_ms < in.first_ms || in.first_ms < 0 ||
        ft_ip_from_bytes(o->agent.data, o->agent.len, &in.agent) ||
        ft_flow_to_tuple(o->flow, &in.tuple)) {
        p->stats.fates[FT_RECORD_INVALID]++;
        return;
    }
    p->batch[p->gathered++] = in;
    if (p->gathered == FT_JOIN_BATCH)
        ft_pipeline_settle(p);
}

static enum ft_record_fate take_report(struct ft_pipeline *p, const Fabrictrace__FlowReport *r)
{
    struct ft_host_report in = {
        .time_ms = (int64_t)r->time_ms,
        .interval_ms = r->interval_ms,
        .sending = r->direction == FABRICTRACE__DIRECTION__DIRECTION_TX,
        .host = r->host,
        .bytes = r->bytes,
        .data_packets = r->data_packets,
        .ack_packets = r->ack_packets,
        .qp_local = r->qp && r->qp->has_local ? r->qp->local : FT_NONE,
        .qp_remote = r->qp && r->qp->has_remote ? r->qp->remote : FT_NONE,
        .pid = r->pid,
        .comm = r->comm,
        .job = r->job,
        .tuple_source = r->tuple_source,
        .ended = r->ended,
    };

    if (!r->flow || !r->has_time_ms || r->time_ms == 0 || r->time_ms > INT64_MAX / 2 ||
        ft_flow_to_tuple(r->flow, &in.tuple))
        return FT_RECORD_INVALID;
    return fate_of(ft_join_report(p->join, &in));
}

static enum ft_record_fate take_loss(struct ft_pipeline *p, const Fabrictrace__Record *record)
{
    const Fabrictrace__Loss *loss = record->loss;
    char id[SOURCE_BYTES] = {0};
    uint8_t *packed;
    struct source *s;
    size_t len;
    bool fresh;

    if (!loss->source || !loss->program)
        return FT_RECORD_INVALID;
    p->emitter.record(p->emitter.arg, record);
    snprintf(id, sizeof(id), "%s %s", loss->program, loss->source);
    s = ft_table_insert(p->sources, id, &fresh);
    len = fabrictrace__loss__get_packed_size(loss);
    packed = s ? malloc(len ? len : 1) : NULL;
    if (packed) {
        fabrictrace__loss__pack(loss, packed);
        free(s->packed);
        s->packed = packed;
        s->packed_bytes = len;
    }
    return FT_RECORD_FORWARDED;
}

/* Goes out as it came, also where this daemon has no room to remember it. */
static enum ft_record_fate take_ranks(struct ft_pipeline *p, const Fabrictrace__Record *record)
{
    int rc = record->kind_case == FABRICTRACE__RECORD__KIND_COMMUNICATOR
                 ? ft_ranks_communicator(p->ranks, record->communicator)
                 : ft_ranks_collective(p->ranks, record->collective);

    if (rc == -EINVAL)
        return FT_RECORD_INVALID;
    p->emitter.record(p->emitter.arg, record);
    return rc ? FT_RECORD_TABLE_FULL : FT_RECORD_FORWARDED;
}

void ft_pipeline_record(struct ft_pipeline *p, const Fabrictrace__Record *record, int64_t now_ms)
{
    enum ft_record_fate fate = FT_RECORD_UNUSED;

    p->now_ms = now_ms;
    p->stats.records++;
    if (record->kind_case == FABRICTRACE__RECORD__KIND_OBSERVATION) {
        gather(p, record->observation);
        return;
    }
    /* Records are applied in the order in which they came. */
    ft_pipeline_settle(p);
    if (record->kind_case == FABRICTRACE__RECORD__KIND_FLOW)
        fate = take_report(p, record->flow);
    else if (record->kind_case == FABRICTRACE__RECORD__KIND_LOSS)
        fate = take_loss(p, record);
    else if (record->kind_case == FABRICTRACE__RECORD__KIND_COMMUNICATOR ||
             record->kind_case == FABRICTRACE__RECORD__KIND_COLLECTIVE)
        fate = take_ranks(p, record);
    p->stats.fates[fate]++;
}

int64_t ft_record_time_ms(const Fabrictrace__Record *record)
{
    switch (record->kind_case) {
    case FABRICTRACE__RECORD__KIND_OBSERVATION:
        return (int64_t)(record->observation->has_last_ms ? record->observation->last_ms
                                                          : record->observation->time_ms);
    case FABRICTRACE__RECORD__KIND_FLOW:
        return (int64_t)record->flow->time_ms;
    case FABRICTRACE__RECORD__KIND_COUNTERS:
        return (int64_t)record->counters->time_ms;
    case FABRICTRACE__RECORD__KIND_COMMUNICATOR:
        return (int64_t)record->communicator->time_ms;
    case FABRICTRACE__RECORD__KIND_COLLECTIVE:
        return (int64_t)record->collective->time_ms;
    default:
        return 0;
    }
}

static int64_t due_ms(const struct ft_pipeline *p)
{
    int64_t end = (int64_t)ft_join_window(p->join) + 1;

    return end * p->config.join.window_ms + p->config.grace_ms;
}

bool ft_pipeline_advance(struct ft_pipeline *p, int64_t now_ms, uint32_t items)
{
    ft_pipeline_settle(p);
    p->now_ms = now_ms;
    if (!ft_window_busy(p->window)) {
        if (ft_join_window(p->join) == 0 || now_ms < due_ms(p))
            return false;
        ft_window_begin(p->window, now_ms);
    }
    if (!ft_window_step(p->window, items))
        return true;
    ft_pipeline_emit_loss(p, &p->emitter, now_ms);
    return ft_join_window(p->join) != 0 && now_ms >= due_ms(p);
}

void ft_pipeline_finish(struct ft_pipeline *p)
{
    uint32_t last = ft_join_window_of(p->join, p->now_ms);

    ft_pipeline_settle(p);
    finish_close(p);
    while (ft_join_window(p->join) != 0 && ft_join_window(p->join) <= last) {
        ft_window_begin(p->window, p->now_ms);
        finish_close(p);
        ft_pipeline_emit_loss(p, &p->emitter, p->now_ms);
    }
}

void ft_pipeline_on_account(struct ft_pipeline *p,
                            void (*add)(void *arg, struct ft_account *account), void *arg)
{
    p->add_stages = add;
    p->add_stages_arg = arg;
}

const char *ft_record_fate_name(enum ft_record_fate fate)
{
    static const char *const names[FT_RECORD_FATES] = {
        [FT_RECORD_JOINED] = "joined",
        [FT_RECORD_FORWARDED] = "forwarded",
        [FT_RECORD_LATE] = "late",
        [FT_RECORD_AHEAD] = "clock_ahead",
        [FT_RECORD_TABLE_FULL] = "table_full",
        [FT_RECORD_SPREAD] = "too_many_places",
        [FT_RECORD_INVALID] = "invalid",
        [FT_RECORD_UNUSED] = "unused_kind",
    };

    return names[fate];
}

static void add_own_stages(const struct ft_pipeline *p, struct ft_account *account)
{
    const struct ft_join_stats *join = ft_join_stats(p->join);
    const uint64_t *fates = p->stats.fates;
    struct ft_account_stage *stage = ft_account_stage(account, "records", "records");

    stage->received = p->stats.records;
    stage->processed = fates[FT_RECORD_JOINED] + fates[FT_RECORD_FORWARDED];
    stage->pending = p->gathered;
    for (int f = FT_RECORD_LATE; f < FT_RECORD_FATES; f++)
        ft_account_drop(stage, ft_record_fate_name((enum ft_record_fate)f), fates[f]);
    stage = ft_account_stage(account, "flows", "flows");
    stage->received = join->flows_new;
    stage->processed = join->flows_removed;
    stage->pending = ft_join_flows(p->join);
}

void ft_pipeline_emit_loss(struct ft_pipeline *p, const struct ft_emitter *emitter, int64_t now_ms)
{
    struct ft_account account = {.stage_count = 0};
    struct ft_loss_record out;

    add_own_stages(p, &account);
    if (p->add_stages)
        p->add_stages(p->add_stages_arg, &account);
    ft_loss_record_fill(&out, &account, "fabrictraced", p->config.source_id, now_ms);
    emitter->record(emitter->arg, &out.record);
}

void ft_pipeline_each_loss(const struct ft_pipeline *p, const struct ft_emitter *emitter)
{
    struct source *s;
    uint32_t index = 0;

    while ((s = ft_table_next(p->sources, &index))) {
        Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
        Fabrictrace__Loss *loss =
            s->packed ? fabrictrace__loss__unpack(NULL, s->packed_bytes, s->packed) : NULL;

        if (!loss)
            continue;
        record.kind_case = FABRICTRACE__RECORD__KIND_LOSS;
        record.loss = loss;
        emitter->record(emitter->arg, &record);
        fabrictrace__loss__free_unpacked(loss, NULL);
    }
}

const struct ft_ranks *ft_pipeline_ranks(const struct ft_pipeline *p)
{
    return p->ranks;
}

struct ft_join *ft_pipeline_join(const struct ft_pipeline *p)
{
    return p->join;
}

const struct ft_events *ft_pipeline_events(const struct ft_pipeline *p)
{
    return p->events;
}

const struct ft_window *ft_pipeline_window(const struct ft_pipeline *p)
{
    return p->window;
}

const struct ft_pipeline_stats *ft_pipeline_stats(const struct ft_pipeline *p)
{
    return &p->stats;
}
