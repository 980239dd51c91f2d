// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/changes.h"
#include "daemon/congestion.h"
#include "daemon/intake.h"
#include "daemon/losses.h"
#include "daemon/topology_diff.h"
#include "lib/base/table.h"
#include "proto/loss.h"
#include "proto/record.h"

#define SOURCE_BYTES 128
/* Two switches see one packet within this time, give or take their reporting. */
#define ONE_WAY_MS    2000
#define EXPORTERS_MAX 65536
#define DISCOVER_MS   1000
/* Judging takes a tenth of the time at most. */
#define DISCOVER_FLOWS_A_MS 100
#define RANK_MEMBERS_MAX    65536
#define RANK_EDGES_MAX      262144
#define RANK_PAIRS_MAX      65536
#define OPERATIONS_MAX      4096
#define RDMA_PORTS_MAX      65536

/* The last accounting of another program. */
struct source {
    char id[SOURCE_BYTES];
    uint8_t *packed;
    size_t packed_bytes;
};

struct ft_pipeline {
    struct ft_pipeline_config config;
    struct ft_topology *base;     /* of the file */
    struct ft_topology *topology; /* the present one; may be the base itself */
    struct ft_discovery *discovery;
    struct ft_counters *counters; /* NULL: not used */
    struct ft_exporters *exporters;
    bool *edge; /* by port id: nothing of the fabric is at the other end; NULL: nobody asks */
    struct ft_join *join;
    struct ft_ranks *ranks;
    struct ft_pair_links *pairs;
    struct ft_slowest *slowest;
    struct ft_events *events;
    struct ft_window *window;
    struct ft_congestion *congestion;
    struct ft_pairing *pairing; /* NULL: not wanted */
    struct ft_agents *agents;
    struct ft_losses *losses;
    struct ft_clocks *clocks;
    struct ft_processors *processors;
    struct ft_emitter emitter;
    struct ft_table *sources;
    struct ft_pipeline_stats stats;
    void (*add_stages)(void *arg, struct ft_account *account);
    void *add_stages_arg;
    int64_t now_ms;
    struct ft_observation batch[FT_JOIN_BATCH];
    struct ft_observed_rest rests[FT_JOIN_BATCH];
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
                        const struct ft_path *path)
{
    for (uint32_t h = 0; h < path->hop_count; h++) {
        ft_emit_hop(&l->hops[h], join, flow, &path->hops[h]);
        l->list[h] = &l->hops[h];
    }
    return path->hop_count;
}

static void on_moved(void *arg, struct ft_flow *flow, const struct ft_path *before, int64_t now_ms)
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
    evidence.n_new_hops = list_hops(&new_hops, p->join, flow, &flow->path);
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

/* Where the flow entered the fabric, for the learning of attachments. That it enters at two
 * switches at once means that one of them is not its first. */
static void on_entered(void *arg, const struct ft_observation *o, const struct ft_flow *flow,
                       uint32_t in)
{
    struct ft_pipeline *p = arg;
    const struct ft_evidence *ev = &flow->evidence;
    const struct ft_sighting *list = ev->size ? ev->list : ev->own;
    bool twice = false;

    if (!p->edge || !p->edge[in])
        return;
    for (uint16_t i = 0; i < ev->count; i++)
        twice |= list[i].in != in && ft_is_port(list[i].in) && p->edge[list[i].in] &&
                 list[i].last_ms > o->last_ms - ONE_WAY_MS;
    ft_discovery_entered(p->discovery, &o->tuple.src, &o->agent, o->in_ifindex, o->last_ms, twice);
}

/* What pairing found out goes the way of what hosts say. */
static void on_paired(void *arg, const struct ft_host_report *report)
{
    struct ft_pipeline *p = arg;

    ft_pipeline_settle(p);
    ft_join_report(p->join, report);
}

static void on_withdrawn(void *arg, const struct ft_tuple *tuple)
{
    struct ft_pipeline *p = arg;
    int64_t window_ms = p->config.join.window_ms;
    struct ft_flow *flow;
    struct ft_span span;

    ft_pipeline_settle(p);
    flow = ft_join_withdraw(p->join, tuple);
    if (!flow || !flow->host->shown)
        return;
    span.start_ms = flow->window * window_ms;
    span.end_ms = span.start_ms + window_ms;
    ft_emit_path(&p->emitter, p->join, flow, &span);
    flow->host->shown = false;
    flow->published = flow->ended ? (uint8_t)(flow->state + 1) : 0;
}

/* Whether every host of the topology lists its queue pairs. */
static bool on_cover(void *arg)
{
    const struct ft_pipeline *p = arg;
    const struct ft_topology *t = p->topology;

    for (uint32_t i = 0; i < ft_topology_nics(t); i++) {
        const struct ft_nic *nic = ft_topology_nic(t, i);
        bool known = false;

        for (uint32_t k = 0; k < nic->address_count; k++)
            known |= ft_pairing_knows(p->pairing, &nic->addresses[k]);
        if (!known)
            return false;
    }
    return true;
}

/* Finds the edge of the present topology. Without memory nothing is learnt meanwhile. */
static void find_edge(struct ft_pipeline *p)
{
    const struct ft_topology *t = p->topology;
    uint32_t ports = ft_topology_ports(t);

    free(p->edge);
    p->edge = p->discovery ? calloc((size_t)ports + 1, sizeof(*p->edge)) : NULL;
    for (uint32_t i = 0; p->edge && i < ports; i++) {
        const struct ft_port *port = ft_topology_port(t, i);

        p->edge[i] = port->peer == FT_NONE &&
                     !ft_discovery_linked(p->discovery,
                                          ft_topology_switch(t, port->switch_id)->name, port->name);
    }
}

struct ft_pipeline *ft_pipeline_new(const struct ft_pipeline_config *config,
                                    struct ft_topology *topology, const struct ft_emitter *emitter)
{
    struct ft_pipeline *p = calloc(1, sizeof(*p));
    struct ft_join_hooks hooks = {
        .judged = on_judged, .moved = on_moved, .entered = on_entered, .arg = p};
    const struct ft_ranks_config ranks = {
        .members_max = RANK_MEMBERS_MAX, .edges_max = RANK_EDGES_MAX, .seed = config->join.seed};
    const struct ft_slowest_config slowest = {
        .ranks_max = RANK_MEMBERS_MAX, .operations_max = OPERATIONS_MAX, .seed = config->join.seed};

    const struct ft_pairing_config pairing = {.ends_max = config->ends_max,
                                              .ports_max = RDMA_PORTS_MAX,
                                              .members_max = RANK_MEMBERS_MAX,
                                              .link_local = config->link_local,
                                              .seed = config->join.seed};
    const struct ft_pairing_hooks paired = {on_paired, on_withdrawn, on_cover, p};

    if (!p)
        return NULL;
    p->config = *config;
    p->emitter = *emitter;
    p->agents = ft_agents_new(config->sources_max);
    if (config->ends_max)
        p->pairing = ft_pairing_new(&pairing, &paired);
    p->events = ft_events_new(config->events_max, emitter);
    p->sources = ft_table_new(sizeof(struct source), SOURCE_BYTES, config->sources_max, 0);
    p->join = ft_join_new(&config->join, topology, &hooks);
    p->congestion = ft_congestion_new(config->sources_max);
    p->losses = ft_losses_new(config->sources_max + 1);
    p->clocks = ft_clocks_new(config->sources_max, config->source_id);
    p->processors = ft_processors_new(EXPORTERS_MAX);
    p->ranks = ft_ranks_new(&ranks);
    p->pairs = ft_pair_links_new(RANK_PAIRS_MAX, config->join.seed);
    p->slowest = ft_slowest_new(&slowest);
    if (p->join)
        ft_join_set_ranks(p->join, p->ranks);
    if (config->discovery.switches_max)
        p->discovery = ft_discovery_new(&config->discovery);
    if (config->counters_max) {
        p->counters = ft_counters_new(config->counters_max, config->join.window_ms, topology);
        p->exporters = ft_exporters_new(EXPORTERS_MAX);
    }
    if (p->events && p->sources && p->join && p->ranks && p->pairs && p->slowest && p->congestion &&
        p->losses && p->clocks && p->processors && p->agents &&
        (p->discovery || !config->discovery.switches_max) && (p->pairing || !config->ends_max) &&
        ((p->counters && p->exporters) || !config->counters_max))
        p->window = ft_window_new(&config->window, p->join, p->events, emitter);
    if (!p->window) {
        ft_pipeline_free(p);
        return NULL;
    }
    ft_window_count(p->window, p->counters, p->exporters);
    ft_window_pair(p->window, p->pairs);
    p->base = p->topology = topology;
    find_edge(p);
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
    ft_congestion_free(p->congestion);
    ft_pairing_free(p->pairing);
    ft_agents_free(p->agents);
    ft_losses_free(p->losses);
    ft_clocks_free(p->clocks);
    ft_processors_free(p->processors);
    ft_join_free(p->join);
    ft_ranks_free(p->ranks);
    ft_pair_links_free(p->pairs);
    ft_slowest_free(p->slowest);
    ft_events_free(p->events);
    ft_discovery_free(p->discovery);
    ft_counters_free(p->counters);
    ft_exporters_free(p->exporters);
    free(p->edge);
    if (p->topology != p->base)
        ft_topology_free(p->topology);
    ft_topology_free(p->base);
    free(p);
}

static void finish_close(struct ft_pipeline *p)
{
    while (ft_window_busy(p->window))
        ft_window_step(p->window, UINT32_MAX);
}

/* Makes a topology the present one; the one before is freed unless it is the base. */
static int install(struct ft_pipeline *p, struct ft_topology *topology)
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
    if (p->topology != p->base)
        ft_topology_free(p->topology);
    p->topology = topology;
    find_edge(p);
    if (p->counters)
        ft_counters_follow(p->counters, topology);
    return 0;
}

int ft_pipeline_set_topology(struct ft_pipeline *p, struct ft_topology *base)
{
    struct ft_topology *old_base = p->base, *whole = base;
    int rc;

    if (p->discovery && ft_discovery_some(p->discovery)) {
        whole = ft_discovery_build(p->discovery, base, p->now_ms);
        if (!whole)
            whole = base;
        ft_changes_hold(p->events, ft_topology_fabric(base), ft_discovery_findings(p->discovery),
                        p->now_ms);
    }
    rc = install(p, whole);
    if (rc) {
        if (whole != base)
            ft_topology_free(whole);
        return rc;
    }
    p->base = base;
    ft_topology_free(old_base);
    return 0;
}

/* Looks at the fabric anew where something was said of it. */
static void rediscover(struct ft_pipeline *p, int64_t due_ms)
{
    /* Another topology means to judge every flow anew: about a second for a million. */
    int64_t apart_ms = DISCOVER_MS + (int64_t)ft_join_flows(p->join) / DISCOVER_FLOWS_A_MS;
    struct ft_topology *t;

    if (!p->discovery || !ft_discovery_due(p->discovery, due_ms, apart_ms))
        return;
    t = ft_discovery_build(p->discovery, p->base, p->now_ms);
    ft_changes_hold(p->events, ft_topology_fabric(p->base), ft_discovery_findings(p->discovery),
                    p->now_ms);
    if (!t)
        return;
    if (ft_topology_same(p->topology, t)) {
        ft_topology_free(t);
        find_edge(p);
        return;
    }
    ft_changes_tell(p->events, p->topology, t, p->now_ms);
    if (install(p, t))
        ft_topology_free(t);
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
    struct ft_observed_rest *rest = &p->rests[p->gathered];
    struct ft_observation *in = &p->batch[p->gathered];

    if (!ft_intake_observation(o, in)) {
        p->stats.fates[FT_RECORD_INVALID]++;
        return;
    }
    if (ft_intake_rest(o, rest))
        in->rest = rest;
    p->gathered++;
    if (p->gathered == FT_JOIN_BATCH)
        ft_pipeline_settle(p);
    if (p->pairing)
        ft_pairing_observe(p->pairing, o, p->now_ms);
}

static enum ft_record_fate take_report(struct ft_pipeline *p, const Fabrictrace__FlowReport *r)
{
    struct ft_host_report in;

    if (!ft_intake_report(r, &in))
        return FT_RECORD_INVALID;
    if (p->discovery && in.sending)
        ft_discovery_named(p->discovery, &in.tuple.src, in.host);
    return fate_of(ft_join_report(p->join, &in));
}

static enum ft_record_fate fate_of_error(int rc)
{
    return rc == 0 ? FT_RECORD_JOINED : rc == -EINVAL ? FT_RECORD_INVALID : FT_RECORD_TABLE_FULL;
}

static enum ft_record_fate take_counters(struct ft_pipeline *p, const Fabrictrace__PortCounters *c)
{
    return p->counters ? fate_of_error(ft_counters_take(p->counters, c)) : FT_RECORD_UNUSED;
}

static enum ft_record_fate take_switch(struct ft_pipeline *p, const Fabrictrace__SwitchReport *r)
{
    return p->discovery ? fate_of_error(ft_discovery_report(p->discovery, r)) : FT_RECORD_UNUSED;
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
    ft_losses_take(p->losses, loss, p->now_ms);
    if (loss->has_time_ms && loss->time_ms < INT64_MAX / 2)
        ft_clocks_take(p->clocks, loss->program, loss->source, (int64_t)loss->time_ms, p->now_ms,
                       p->config.replay);
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

/* A collective goes out with what is known of its slowest peer; borrows the rest. */
static void forward_collective(struct ft_pipeline *p, const Fabrictrace__Collective *in)
{
    const struct ft_slowest_last *last = ft_slowest_take(p->slowest, in, p->pairs);
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

/* Goes out also where this daemon has no room to remember it. */
static enum ft_record_fate take_ranks(struct ft_pipeline *p, const Fabrictrace__Record *record)
{
    int rc = record->kind_case == FABRICTRACE__RECORD__KIND_COMMUNICATOR
                 ? ft_ranks_communicator(p->ranks, record->communicator)
                 : ft_ranks_collective(p->ranks, record->collective);

    if (rc == -EINVAL)
        return FT_RECORD_INVALID;
    if (p->pairing && record->kind_case == FABRICTRACE__RECORD__KIND_COMMUNICATOR)
        ft_pairing_communicator(p->pairing, record->communicator, p->now_ms);
    if (record->kind_case == FABRICTRACE__RECORD__KIND_COLLECTIVE)
        forward_collective(p, record->collective);
    else
        p->emitter.record(p->emitter.arg, record);
    return rc ? FT_RECORD_TABLE_FULL : FT_RECORD_FORWARDED;
}

static enum ft_record_fate take_queue_pairs(struct ft_pipeline *p,
                                            const Fabrictrace__QueuePairs *list)
{
    struct ft_ip ip;
    int rc;

    if (!p->pairing)
        return FT_RECORD_UNUSED;
    rc = ft_pairing_list(p->pairing, list, p->now_ms);
    for (size_t i = 0; rc != -EINVAL && p->discovery && i < list->n_addresses; i++)
        if (ft_ip_from_bytes(list->addresses[i].data, list->addresses[i].len, &ip) == 0)
            ft_discovery_named(p->discovery, &ip, list->host);
    return rc == 0 ? FT_RECORD_JOINED : rc == -EINVAL ? FT_RECORD_INVALID : FT_RECORD_TABLE_FULL;
}

static enum ft_record_fate take_status(struct ft_pipeline *p, const Fabrictrace__HostStatus *status)
{
    switch (ft_agents_take(p->agents, status, p->now_ms)) {
    case 0:
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
    ft_congestion_take(p->congestion, host);
    return FT_RECORD_FORWARDED;
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
    else if (record->kind_case == FABRICTRACE__RECORD__KIND_SWITCH_REPORT)
        fate = take_switch(p, record->switch_report);
    else if (record->kind_case == FABRICTRACE__RECORD__KIND_COUNTERS)
        fate = take_counters(p, record->counters);
    else if (record->kind_case == FABRICTRACE__RECORD__KIND_PROCESSOR)
        fate = fate_of_error(ft_processors_take(p->processors, record->processor));
    else if (record->kind_case == FABRICTRACE__RECORD__KIND_HOST)
        fate = forward_host(p, record);
    else if (record->kind_case == FABRICTRACE__RECORD__KIND_QUEUE_PAIRS)
        fate = take_queue_pairs(p, record->queue_pairs);
    else if (record->kind_case == FABRICTRACE__RECORD__KIND_HOST_STATUS)
        fate = take_status(p, record->host_status);
    p->stats.fates[fate]++;
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
    if (p->pairing)
        ft_pairing_account(p->pairing, account);
}

static void fill_loss(struct ft_pipeline *p, struct ft_loss_record *out, int64_t now_ms)
{
    struct ft_account account = {.stage_count = 0};

    add_own_stages(p, &account);
    if (p->add_stages)
        p->add_stages(p->add_stages_arg, &account);
    ft_loss_record_fill(out, &account, "fabrictraced", p->config.source_id, now_ms);
}

static int64_t due_ms(const struct ft_pipeline *p)
{
    int64_t end = (int64_t)ft_join_window(p->join) + 1;

    return end * p->config.join.window_ms + p->config.grace_ms;
}

static void begin_close(struct ft_pipeline *p, int64_t now_ms)
{
    const char *fabric = ft_topology_fabric(p->topology);
    uint32_t window = ft_join_window(p->join);
    struct ft_loss_record own;

    fill_loss(p, &own, now_ms);
    ft_losses_take(p->losses, &own.loss, now_ms);
    /* Before the close sweeps out what was not raised in its window. */
    ft_congestion_raise(p->congestion, p->events, window, now_ms, fabric);
    ft_losses_raise(p->losses, p->events, window, now_ms, fabric);
    ft_clocks_raise(p->clocks, p->events, window, now_ms, fabric);
    ft_window_begin(p->window, now_ms);
}

bool ft_pipeline_advance(struct ft_pipeline *p, int64_t now_ms, uint32_t items)
{
    ft_pipeline_settle(p);
    p->now_ms = now_ms;
    if (p->pairing)
        ft_pairing_sweep(p->pairing, now_ms);
    if (!ft_window_busy(p->window)) {
        rediscover(p, now_ms);
        if (ft_join_window(p->join) == 0 || now_ms < due_ms(p))
            return false;
        begin_close(p, now_ms);
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
    rediscover(p, INT64_MAX);
    while (ft_join_window(p->join) != 0 && ft_join_window(p->join) <= last) {
        begin_close(p, p->now_ms);
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

void ft_pipeline_emit_loss(struct ft_pipeline *p, const struct ft_emitter *emitter, int64_t now_ms)
{
    struct ft_loss_record out;

    fill_loss(p, &out, now_ms);
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

const struct ft_slowest *ft_pipeline_slowest(const struct ft_pipeline *p)
{
    return p->slowest;
}

const struct ft_pair_links *ft_pipeline_pair_links(const struct ft_pipeline *p)
{
    return p->pairs;
}

const char *ft_pipeline_source(const struct ft_pipeline *p, uint32_t id)
{
    const struct ft_port *port = ft_topology_port(p->topology, id);
    const char *name = ft_topology_switch(p->topology, port->switch_id)->name;
    uint32_t base_switch = ft_topology_find_switch(p->base, name);
    uint32_t base_port =
        base_switch == FT_NONE ? FT_NONE : ft_topology_find_port(p->base, base_switch, port->name);
    const struct ft_port *stated =
        base_port == FT_NONE ? NULL : ft_topology_port(p->base, base_port);

    if (stated && (port->peer != FT_NONE ? stated->peer : stated->nic) != FT_NONE)
        return "static";
    if (port->peer == FT_NONE && p->discovery &&
        ft_discovery_learnt(p->discovery, name, port->name))
        return "learnt";
    return "lldp";
}

const struct ft_agents *ft_pipeline_agents(const struct ft_pipeline *p)
{
    return p->agents;
}

const struct ft_pairing *ft_pipeline_pairing(const struct ft_pipeline *p)
{
    return p->pairing;
}

const struct ft_counters *ft_pipeline_counters(const struct ft_pipeline *p)
{
    return p->counters;
}

const struct ft_exporters *ft_pipeline_exporters(const struct ft_pipeline *p)
{
    return p->exporters;
}

const struct ft_processors *ft_pipeline_processors(const struct ft_pipeline *p)
{
    return p->processors;
}

int64_t ft_pipeline_now_ms(const struct ft_pipeline *p)
{
    return p->now_ms;
}

const struct ft_clocks *ft_pipeline_clocks(const struct ft_pipeline *p)
{
    return p->clocks;
}

const struct ft_discovery *ft_pipeline_discovery(const struct ft_pipeline *p)
{
    return p->discovery;
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
