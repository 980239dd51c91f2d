// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/window/window.h"

#include <stdlib.h>

#include "daemon/join/flow_path.h"
#include "daemon/window/collisions.h"
#include "daemon/window/figures.h"
#include "daemon/window/link_counters.h"
#include "daemon/window/lossy_links.h"
#include "daemon/window/underused.h"

/* A group is as much work as so many flows or links, and so is the learning of a hash. */
#define ITEMS_A_GROUP  50
#define ITEMS_A_HASH   1000
#define ITEMS_A_SPREAD 20
#define ITEMS_A_RHYTHM 1000 /* half a millisecond */

enum phase {
    PHASE_IDLE,
    PHASE_CONGESTION,
    PHASE_FLOWS,
    PHASE_SAID,
    PHASE_PARTS,
    PHASE_LINKS,
    PHASE_GROUPS,
    PHASE_SPREAD,
    PHASE_RHYTHMS,
    PHASE_HASHES,
    PHASE_END,
    PHASE_EVENTS,
};

struct ft_window {
    struct ft_window_config config;
    struct ft_join *join;
    struct ft_events *events;
    const struct ft_counters *counters; /* NULL: none */
    struct ft_exporters *exporters;
    const struct ft_congestion *congestion; /* NULL: nobody reports any */
    struct ft_detours *detours;             /* NULL: nobody looks */
    struct ft_spread *spread;               /* NULL: nobody measures it */
    struct ft_rhythms *rhythms;             /* likewise */
    struct ft_hashes *hashes;               /* NULL: nobody learns them */
    struct ft_inference *inference;         /* NULL: nobody infers paths */
    struct ft_pair_links *pairs;            /* NULL: nobody asks */
    struct ft_emitter emitter;
    struct ft_loads loads;
    struct ft_figures_work *figures;
    struct ft_underused *underused;
    struct ft_lossy_links *lossy;
    enum phase phase;
    uint32_t cursor, number;
    int64_t now_ms;
    int64_t complete_from_ms; /* records are taken since then */
    bool partial;             /* the window that is closed began before that */
    struct ft_span span, last;
    struct ft_partial_said *said;                  /* of a member, in its phase */
    struct ft_partition_list missing, unaccounted; /* of the aggregator */
    const struct ft_losses *losses;                /* NULL: no program accounts */
    struct ft_window_stats stats;
};

struct ft_window *ft_window_new(const struct ft_window_config *config, struct ft_join *join,
                                struct ft_events *events, const struct ft_emitter *emitter)
{
    struct ft_window *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->config = *config;
    w->join = join;
    w->events = events;
    w->emitter = *emitter;
    w->figures = ft_figures_work_new(ft_join_topology(join));
    w->underused = ft_underused_new();
    w->lossy = ft_lossy_links_new();
    if (!w->figures || !w->underused || !w->lossy ||
        ft_underused_resize(w->underused, ft_join_topology(join)) ||
        ft_lossy_links_resize(w->lossy, ft_join_topology(join)) ||
        ft_loads_init(&w->loads, ft_join_topology(join))) {
        ft_window_free(w);
        return NULL;
    }
    return w;
}

void ft_window_free(struct ft_window *w)
{
    if (!w)
        return;
    ft_figures_work_free(w->figures);
    ft_underused_free(w->underused);
    ft_lossy_links_free(w->lossy);
    ft_partial_said_free(w->said);
    ft_loads_free(&w->loads);
    free(w);
}

void ft_window_count(struct ft_window *w, const struct ft_counters *counters,
                     struct ft_exporters *exporters)
{
    w->counters = counters;
    w->exporters = exporters;
}

void ft_window_watch(struct ft_window *w, struct ft_detours *detours)
{
    w->detours = detours;
}

void ft_window_congestion(struct ft_window *w, const struct ft_congestion *congestion)
{
    w->congestion = congestion;
}

void ft_window_learn(struct ft_window *w, struct ft_hashes *hashes, struct ft_inference *inference)
{
    w->hashes = hashes;
    w->inference = inference;
}

void ft_window_spread(struct ft_window *w, struct ft_spread *spread)
{
    w->spread = spread;
}

void ft_window_rhythms(struct ft_window *w, struct ft_rhythms *rhythms)
{
    w->rhythms = rhythms;
}

void ft_window_pair(struct ft_window *w, struct ft_pair_links *pairs)
{
    w->pairs = pairs;
}

int ft_window_resize(struct ft_window *w)
{
    struct ft_loads loads;
    int rc = ft_loads_init(&loads, ft_join_topology(w->join));

    if (rc)
        return rc;
    ft_underused_resize(w->underused, ft_join_topology(w->join));
    ft_figures_follow(w->figures, ft_join_topology(w->join));
    ft_lossy_links_resize(w->lossy, ft_join_topology(w->join));
    ft_loads_free(&w->loads);
    w->loads = loads;
    return 0;
}

static struct ft_span span_of(const struct ft_window *w, uint32_t number)
{
    int64_t length_ms = w->config.loads.window_ms;

    return (struct ft_span){number * length_ms, (number + 1) * length_ms};
}

void ft_window_account(struct ft_window *w, const struct ft_losses *losses)
{
    w->losses = losses;
}

void ft_window_complete_from(struct ft_window *w, int64_t ms, bool anew)
{
    if (anew || ms > w->complete_from_ms)
        w->complete_from_ms = ms;
}

void ft_window_begin(struct ft_window *w, int64_t now_ms)
{
    ft_join_seal(w->join);
    w->number = ft_join_window(w->join);
    w->span = span_of(w, w->number);
    w->now_ms = now_ms;
    w->cursor = 0;
    w->phase = w->congestion ? PHASE_CONGESTION : PHASE_FLOWS;
    ft_loads_reset(&w->loads, ft_join_topology(w->join));
    w->partial = w->span.start_ms < w->complete_from_ms || ft_partial_behind(w->config.origin);
    ft_figures_begin(w->figures, w->partial, w->counters, w->hashes);
    w->loads.observations = ft_figures_seen(w->figures, ft_join_stats(w->join), w->losses);
    ft_lossy_links_begin(w->lossy);
    if (w->pairs)
        ft_pair_links_begin(w->pairs);
    if (w->spread)
        ft_spread_begin(w->spread);
    if (w->rhythms)
        ft_rhythms_begin(w->rhythms);
    if (w->hashes)
        ft_hashes_begin(w->hashes, ft_join_topology(w->join), w->span.end_ms);
    if (w->inference)
        ft_inference_begin(w->inference, w->number, w->span.start_ms, w->partial);
}

bool ft_window_busy(const struct ft_window *w)
{
    return w->phase != PHASE_IDLE;
}

static void publish(struct ft_window *w, struct ft_flow *flow, const struct ft_span *span,
                    int64_t now_ms)
{
    ft_emit_path(&w->emitter, w->join, flow, span);
    flow->published = (uint8_t)(flow->state + 1);
    flow->published_ms = now_ms;
    flow->rate_published =
        flow->bytes_window && span_of(w, flow->bytes_window).start_ms == span->start_ms;
    w->stats.paths++;
}

/* Whether a resolved path is known of a moment in the window: samples show it then, or before and
 * after without a pause. */
static bool is_known_in(const struct ft_window *w, const struct ft_flow *flow,
                        const struct ft_span *span)
{
    return ft_join_path_ms(w->join, flow) < span->end_ms ||
           ft_join_was_on_path(w->join, flow, span->end_ms - 1);
}

/* The window that holds what is new of a flow: its path began in it, or, where that window is
 * closed or the path was not yet certain in it, samples last showed the path. */
static uint32_t window_of_news(const struct ft_window *w, const struct ft_flow *flow)
{
    struct ft_span span;
    uint32_t number;

    if (flow->state != FT_PATH_RESOLVED)
        return ft_join_window_of(w->join, ft_flow_seen_ms(flow));
    number = ft_join_window_of(w->join, flow->path_since_ms);
    span = span_of(w, number);
    if (number >= ft_join_window(w->join) && is_known_in(w, flow, &span))
        return number;
    return ft_join_window_of(w->join, ft_join_path_ms(w->join, flow));
}

void ft_window_publish_path(struct ft_window *w, struct ft_flow *flow, int64_t now_ms)
{
    struct ft_span span;

    if (flow->state == FT_PATH_UNRESOLVED || flow->reason == FT_REASON_CHANGING) {
        flow->published = 0;
        return;
    }
    span = span_of(w, window_of_news(w, flow));
    publish(w, flow, &span, now_ms);
}

/* Whether what is known of a flow's path now is not what it was in the window: it moved after it,
 * or began to. */
static bool is_of_later(const struct ft_window *w, const struct ft_flow *flow,
                        const struct ft_span *span)
{
    const struct ft_topology *t = ft_join_topology(w->join);
    struct ft_path path;

    if (flow->state == FT_PATH_RESOLVED)
        return flow->path_since_ms >= span->end_ms || !is_known_in(w, flow, span);
    if (flow->reason != FT_REASON_CHANGING || flow->last_ms < span->end_ms)
        return false;
    path = ft_flow_path(t, flow);
    return ft_evidence_agrees(&flow->evidence, t, &path, w->number & 1);
}

/* For the history: of one that moved after the window the path in it is not known any more. */
static void keep_elephant(const struct ft_window *w, const struct ft_flow *flow)
{
    struct ft_flow then = *flow;

    if (is_of_later(w, flow, &w->span)) {
        then.state = FT_PATH_UNRESOLVED;
        then.reason = FT_REASON_CHANGING;
        then.path.hop_count = 0;
    }
    ft_emit_path(&w->config.keep, w->join, &then, &w->span);
}

static void close_flow(struct ft_window *w, uint32_t index)
{
    struct ft_flow *flow = ft_join_at(w->join, index);
    /* Windows close a little earlier or later: what is to come with each does. */
    int64_t early_ms = (w->span.end_ms - w->span.start_ms) / 8;
    struct ft_span span;
    bool due;

    if (!flow || !ft_join_age(w->join, flow, w->number, w->now_ms) ||
        !ft_partial_owns(w->config.origin, &flow->tuple, w->span.end_ms))
        return;
    if (flow->bytes_window == w->number) {
        size_t elephants = w->loads.elephant_count;

        ft_loads_add(&w->loads, &w->config.loads, w->join, flow, index);
        if (w->config.keep.record && w->loads.elephant_count > elephants)
            keep_elephant(w, flow);
        if (w->pairs)
            ft_pair_links_flow(w->pairs, w->join, flow);
        ft_underused_flow(w->underused, w->join, flow, &w->span);
        ft_lossy_links_flow(w->lossy, w->join, flow, index, w->number, &w->span);
        if (w->detours)
            ft_detours_flow(w->detours, w->join, flow);
        if (w->spread)
            ft_spread_flow(w->spread, w->join, flow, &w->span, &w->emitter);
        if (w->rhythms)
            ft_rhythms_flow(w->rhythms, w->join, flow, &w->span);
        if (w->hashes)
            ft_hashes_flow(w->hashes, w->join, flow, w->span.start_ms);
        if (w->inference)
            ft_inference_flow(w->inference, w->join, flow);
    }
    span = span_of(w, flow->bytes_window ? flow->bytes_window : w->number);
    due = flow->published != flow->state + 1 ||
          (!flow->rate_published && flow->bytes_window != 0) ||
          w->now_ms - flow->published_ms + early_ms >= w->config.refresh_ms;
    if (!due || is_of_later(w, flow, &span))
        return;
    if (flow->state != FT_PATH_RESOLVED && ft_evidence_begun_since(&flow->evidence, span.end_ms))
        span = span_of(w, flow->window);
    publish(w, flow, &span, w->now_ms);
}

static uint64_t speed_of(const struct ft_window *w, uint32_t id)
{
    uint64_t speed_bps = ft_topology_port(ft_join_topology(w->join), id)->speed_bps;

    return speed_bps || !w->counters ? speed_bps : ft_counters_speed_bps(w->counters, id);
}

static bool is_of(uint32_t newest, uint32_t number)
{
    return newest >= number && newest <= number + 1;
}

/* What samples reported of their port. */
static void fill_marks(Fabrictrace__Link *out, const struct ft_window *w, uint32_t id)
{
    const struct ft_port_marks *marks = ft_join_marks(w->join, id);
    const struct ft_port_depths *depths = ft_join_depths(w->join, id);
    unsigned slot = w->number & 1;

    if (is_of(marks->window, w->number) && marks->samples[slot]) {
        out->has_ce_marked_share = true;
        out->ce_marked_share = (double)marks->ce_samples[slot] / (double)marks->samples[slot];
    }
    if (!is_of(depths->window, w->number))
        return;
    out->has_queue_max_bytes = depths->has_queue[slot];
    out->queue_max_bytes = depths->queue_max_bytes[slot];
    out->has_transit_max_ns = depths->has_transit[slot];
    out->transit_max_ns = depths->transit_max_ns[slot];
}

static void fill_link(Fabrictrace__Link *out, const struct ft_window *w, uint32_t id)
{
    const struct ft_topology *t = ft_join_topology(w->join);
    const struct ft_port *port = ft_topology_port(t, id);
    const struct ft_load *load = &w->loads.link[id];
    double seconds = (double)(w->span.end_ms - w->span.start_ms) / 1000;
    uint64_t speed_bps = speed_of(w, id);
    uint32_t numbered, again;

    out->has_window_start_ms = out->has_window_end_ms = true;
    out->window_start_ms = (uint64_t)w->span.start_ms;
    out->window_end_ms = (uint64_t)w->span.end_ms;
    out->fabric = (char *)(uintptr_t)ft_topology_fabric(t);
    out->switch_ = (char *)(uintptr_t)ft_topology_switch(t, port->switch_id)->name;
    out->port = (char *)(uintptr_t)port->name;
    if (port->peer != FT_NONE) {
        const struct ft_port *peer = ft_topology_port(t, port->peer);

        out->peer = (char *)(uintptr_t)ft_topology_switch(t, peer->switch_id)->name;
        out->peer_port = (char *)(uintptr_t)peer->name;
    } else if (port->nic != FT_NONE) {
        out->peer =
            (char *)(uintptr_t)ft_topology_host(t, ft_topology_nic(t, port->nic)->host_id)->name;
    }
    out->tier = (char *)(uintptr_t)ft_tier_name(ft_topology_switch(t, port->switch_id)->tier);
    out->direction = (char *)(uintptr_t)ft_direction_name(port->direction);
    if (port->group != FT_NONE)
        out->group = (char *)(uintptr_t)ft_topology_group(t, port->group)->name;
    out->has_partial = out->partial = w->partial;
    out->has_flows = out->has_bytes = true;
    out->flows = (uint64_t)(load->flows + 0.5);
    out->bytes = (uint64_t)load->bytes;
    if (w->counters)
        ft_link_counters_fill(out, w->counters, load, id, ft_join_other_end(w->join, id),
                              w->number);
    ft_lossy_links_count(w->lossy, id, &numbered, &again);
    out->has_numbered_flows = out->has_resending_flows = numbered > 0;
    out->numbered_flows = numbered;
    out->resending_flows = again;
    if (speed_bps) {
        double bytes = out->has_counter_bytes ? (double)out->counter_bytes : load->bytes;

        out->has_speed_bps = out->has_utilization = true;
        out->speed_bps = speed_bps;
        out->utilization = bytes * 8 / seconds / (double)speed_bps;
    }
    fill_marks(out, w, id);
}

static void close_link(struct ft_window *w, uint32_t id)
{
    const struct ft_topology *t = ft_join_topology(w->join);
    const struct ft_port *port = ft_topology_port(t, id);
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Link out = FABRICTRACE__LINK__INIT;
    double sum;

    if (port->peer == FT_NONE && port->nic == FT_NONE)
        return;
    fill_link(&out, w, id);
    w->loads.link[id].last_ms = ft_join_marks(w->join, id)->last_ms;
    if (port->group != FT_NONE) {
        sum = ft_loads_of_group(&w->loads, t, port->group);
        out.has_share = sum > 0;
        out.share = sum > 0 ? w->loads.link[id].bytes / sum : 0;
    }
    record.kind_case = FABRICTRACE__RECORD__KIND_LINK;
    record.link = &out;
    w->emitter.record(w->emitter.arg, &record);
}

/* The next leaf or hash that is due; false when that was all. */
static bool learn(struct ft_window *w)
{
    if (w->inference && ft_inference_step(w->inference, w->join, w->counters))
        return true;
    return w->hashes && ft_hashes_step(w->hashes, ft_topology_fabric(ft_join_topology(w->join)),
                                       w->span.end_ms, &w->emitter);
}

static void spend(uint32_t *items, uint32_t cost)
{
    *items -= *items > cost ? cost : *items - 1;
}

static void end_loads(struct ft_window *w)
{
    const struct ft_topology *t = ft_join_topology(w->join);
    struct ft_events *events = w->config.origin || w->config.partials ? NULL : w->events;

    if (!w->config.origin)
        ft_figures_end(w->figures, &w->loads, t, &w->span, &w->emitter);
    if (!w->partial && !w->config.origin)
        ft_collisions_raise(&w->loads, w->join, w->events, w->number, &w->span,
                            w->config.victims_max);
    if (w->pairs)
        ft_pair_links_end(w->pairs, &(struct ft_pair_loads){ft_loads_pair_load, &w->loads}, t);
    if (w->config.partials)
        ft_partials_close(w->config.partials, w->span.start_ms);
    if (w->exporters && events) {
        if (w->partial)
            ft_exporters_hold(w->exporters, t, w->events, w->number, &w->span);
        else
            ft_exporters_close(w->exporters, w->join, w->counters, w->events, w->number, &w->span);
    }
    if (events)
        ft_underused_close(w->underused, t, w->counters, &w->loads, events, w->number, &w->span);
    ft_lossy_links_close(w->lossy, w->join, events, w->number, &w->span, w->config.victims_max);
    if (w->detours)
        ft_detours_close(w->detours, ft_topology_fabric(t), w->events, w->number, &w->span);
    w->phase = PHASE_EVENTS;
    w->cursor = 0;
}

static void finish(struct ft_window *w)
{
    ft_join_close(w->join);
    w->last = w->span;
    w->stats.closed++;
    w->stats.number = w->number;
    w->phase = PHASE_IDLE;
}

/* All flows of this daemon are in the loads, and a member has said them. */
static void end_said(struct ft_window *w)
{
    ft_partial_said_free(w->said);
    w->said = NULL;
    w->phase = w->config.origin ? PHASE_HASHES : PHASE_LINKS;
    w->cursor = 0;
    if (!w->config.partials)
        return;
    ft_partials_begin(w->config.partials, w->span.start_ms, &w->missing);
    w->phase = PHASE_PARTS;
}

/* All flows of others are in the loads, too. */
static void end_parts(struct ft_window *w)
{
    w->partial = ft_partials_end(w->config.partials, &w->unaccounted);
    ft_figures_begin(w->figures, w->partial, w->counters, w->hashes);
    ft_figures_partitions(w->figures, &w->missing, &w->unaccounted);
    w->phase = w->config.origin ? PHASE_HASHES : PHASE_LINKS;
}

bool ft_window_step(struct ft_window *w, uint32_t items)
{
    const struct ft_topology *t = ft_join_topology(w->join);
    uint32_t work;

    for (; items && w->phase != PHASE_IDLE; items--) {
        switch (w->phase) {
        case PHASE_CONGESTION:
            if (!ft_congestion_raise(w->congestion, &w->cursor, w->events, w->number, w->now_ms,
                                     ft_topology_fabric(t), &work)) {
                w->phase = PHASE_FLOWS;
                w->cursor = 0;
            }
            spend(&items, work);
            break;
        case PHASE_FLOWS:
            if (w->cursor < ft_join_limit(w->join)) {
                close_flow(w, w->cursor++);
                break;
            }
            if (w->config.origin)
                w->said = ft_partial_say(w->config.origin, &w->loads, w->join, w->number, &w->span,
                                         w->partial, &w->emitter);
            w->phase = PHASE_SAID;
            break;
        case PHASE_SAID:
            if (!ft_partial_say_step(w->said, &work))
                end_said(w);
            spend(&items, work);
            break;
        case PHASE_PARTS:
            if (!ft_partials_step(w->config.partials, w->number, &w->loads, w->join, &work))
                end_parts(w);
            spend(&items, work);
            break;
        case PHASE_LINKS:
            if (w->cursor < ft_topology_ports(t)) {
                close_link(w, w->cursor++);
                break;
            }
            w->phase = PHASE_GROUPS;
            w->cursor = 0;
            break;
        case PHASE_GROUPS:
            if (w->cursor < ft_topology_groups(t)) {
                ft_figures_group(w->figures, &w->loads, t, w->cursor++, &w->span, w->number,
                                 &w->emitter, w->events);
                spend(&items, ITEMS_A_GROUP);
                break;
            }
            w->phase = PHASE_SPREAD;
            break;
        case PHASE_SPREAD:
            spend(&items, ITEMS_A_SPREAD);
            if (!w->spread || !ft_spread_step(w->spread, w->join, &w->span, &w->emitter))
                w->phase = PHASE_RHYTHMS;
            break;
        case PHASE_RHYTHMS:
            spend(&items, ITEMS_A_RHYTHM);
            if (!w->rhythms || !ft_rhythms_step(w->rhythms, ft_topology_fabric(t), &w->span,
                                                &w->emitter, w->events, w->number))
                w->phase = PHASE_HASHES;
            break;
        case PHASE_HASHES:
            spend(&items, ITEMS_A_HASH);
            if (!learn(w))
                w->phase = PHASE_END;
            break;
        case PHASE_END:
            end_loads(w);
            break;
        case PHASE_EVENTS:
            if (!ft_events_sweep_step(w->events, &w->cursor, w->number, w->span.end_ms, &work))
                finish(w);
            spend(&items, work);
            break;
        case PHASE_IDLE:
            break;
        }
    }
    return w->phase == PHASE_IDLE;
}

const struct ft_lossy_links *ft_window_lossy(const struct ft_window *w)
{
    return w->lossy;
}

struct ft_span ft_window_last(const struct ft_window *w)
{
    return w->last;
}

void ft_window_set_last(struct ft_window *w, const struct ft_span *span)
{
    w->last = *span;
}

const struct ft_window_stats *ft_window_stats(const struct ft_window *w)
{
    return &w->stats;
}
