// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/pipeline/pipeline.h"

#include <stdlib.h>

#include "daemon/diagnosis/diagnoser.h"
#include "daemon/hashes/hashes.h"
#include "daemon/health/congestion.h"
#include "daemon/health/losses.h"
#include "daemon/join/hints.h"
#include "daemon/pipeline/pipeline_impl.h"
#include "daemon/plans/follower.h"
#include "daemon/window/lossy_links.h"

#define RANKS_MAX    65536
#define KEPT_BYTES   ((size_t)64 << 20)
#define TABLES_PARTS 8 /* of 1,024 entries, that are freed at once */
/* Longer gaps are skipped; no empty windows are published. */
#define WINDOWS_GAP 60
/* What waited in sockets while nobody drove us has come in after this time. */
#define AFTER_PAUSE_MS 10000

struct ft_pipeline *ft_pipeline_new(const struct ft_pipeline_config *config,
                                    struct ft_topology *topology, const struct ft_emitter *emitter)
{
    struct ft_pipeline *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->config = *config;
    if (!p->config.ranks_max)
        p->config.ranks_max = RANKS_MAX;
    if (!p->config.kept_bytes)
        p->config.kept_bytes = KEPT_BYTES;
    p->emitter = *emitter;
    p->hooks = (struct ft_stage_hooks){
        .join = {ft_pipeline_on_judged, ft_pipeline_on_moved, ft_pipeline_on_entered,
                 ft_pipeline_on_of_job, p},
        .pairing = {ft_pipeline_on_paired, ft_pipeline_on_withdrawn, ft_pipeline_on_cover, p},
    };
    p->sources = ft_table_new(sizeof(struct ft_pipeline_program), FT_PIPELINE_PROGRAM_BYTES,
                              config->sources_max, 0);
    if (!p->sources || ft_stages_open(&p->stages, &p->config, topology, emitter, &p->hooks)) {
        ft_pipeline_free(p);
        return NULL;
    }
    p->base = p->topology = topology;
    ft_pipeline_find_edge(p);
    return p;
}

void ft_pipeline_free(struct ft_pipeline *p)
{
    struct ft_pipeline_program *s;
    uint32_t index = 0;

    if (!p)
        return;
    ft_pipeline_drop_discovery(p);
    while (p->sources && (s = ft_table_next(p->sources, &index)))
        free(s->packed);
    ft_table_free(p->sources);
    ft_stages_close(&p->stages);
    free(p->edge);
    if (p->topology != p->base)
        ft_topology_free(p->topology);
    ft_topology_free(p->base);
    free(p);
}

static int64_t due_ms(const struct ft_pipeline *p)
{
    int64_t end = (int64_t)ft_join_window(p->stages.join) + 1;

    return end * p->config.join.window_ms + p->config.grace_ms;
}

/* The aggregator closes a window once all of it is there; what is missing has another window's time
 * to come. */
static bool is_due(const struct ft_pipeline *p, int64_t now_ms)
{
    const struct ft_partials *partials = p->config.window.partials;
    int64_t window_ms = p->config.join.window_ms;
    int64_t start_ms = (int64_t)ft_join_window(p->stages.join) * window_ms;

    if (!partials)
        return now_ms >= due_ms(p);
    return now_ms >= due_ms(p) + window_ms ||
           (now_ms >= start_ms + window_ms && ft_partials_complete(partials, start_ms));
}

static bool resends(const void *arg, uint32_t port, struct ft_lossy_found *found)
{
    return ft_lossy_links_judge(ft_window_lossy(arg), port, found);
}

/* What a diagnosis works with; the counters are those of the window before the one that is open. */
static struct ft_diagnoser_surroundings surroundings(const struct ft_pipeline *p)
{
    uint32_t window = ft_join_window(p->stages.join);

    return (struct ft_diagnoser_surroundings){
        .fabric = ft_topology_fabric(p->topology),
        .window = window,
        .events = p->stages.events,
        .emitter = &p->emitter,
        .second = p->stages.second,
        .witnesses = {.ranks = p->stages.ranks,
                      .pairs = p->stages.pairs,
                      .join = p->stages.join,
                      .counters = p->stages.counters,
                      .congestion = p->stages.congestion,
                      .resends = resends,
                      .resends_arg = p->stages.window,
                      .window = window ? window - 1 : 0,
                      .window_ms = p->config.join.window_ms},
    };
}

static bool diagnose(struct ft_pipeline *p, int64_t now_ms, uint32_t items)
{
    const struct ft_diagnoser_surroundings around = surroundings(p);

    return p->stages.diagnoser && ft_diagnoser_step(p->stages.diagnoser, now_ms, items, &around);
}

static void follow_plans(struct ft_pipeline *p, int64_t now_ms)
{
    const struct ft_follower_surroundings around = {.join = p->stages.join,
                                                    .events = p->stages.events,
                                                    .emitter = &p->emitter,
                                                    .fabric = ft_topology_fabric(p->topology)};

    ft_follower_look(p->stages.follower, &around, now_ms);
}

static void begin_close(struct ft_pipeline *p, int64_t now_ms)
{
    const char *fabric = ft_topology_fabric(p->topology);
    uint32_t window = ft_join_window(p->stages.join);
    struct ft_loss_record own;

    ft_pipeline_fill_loss(p, &own, now_ms);
    ft_losses_take(p->stages.losses, &own.loss, now_ms);
    /* Before the close sweeps out what was not raised in its window. */
    ft_losses_raise(p->stages.losses, p->stages.events, window, now_ms, fabric);
    ft_clocks_raise(p->stages.clocks, p->stages.events, window, now_ms, fabric);
    ft_unrated_raise(p->stages.unrated, p->topology, p->stages.events, window, now_ms);
    if (p->stages.diagnoser) {
        const struct ft_diagnoser_surroundings around = surroundings(p);

        ft_diagnoser_raise(p->stages.diagnoser, &around, now_ms);
    }
    follow_plans(p, now_ms);
    ft_window_begin(p->stages.window, now_ms);
}

static bool went_back(const struct ft_pipeline *p, int64_t now_ms)
{
    int64_t start_ms = (int64_t)ft_join_window(p->stages.join) * p->config.join.window_ms;

    return !p->config.replay && now_ms < start_ms - p->config.join.window_ms;
}

static void open_at(struct ft_pipeline *p, int64_t now_ms, uint32_t window)
{
    ft_join_open(p->stages.join, window);
    ft_window_complete_from(p->stages.window, now_ms, true);
}

void ft_pipeline_begin(struct ft_pipeline *p, int64_t now_ms)
{
    open_at(p, now_ms, ft_join_window_of(p->stages.join, now_ms));
    /* Of windows that are made up for, which no time of before closes. */
    p->advanced_ms = 0;
}

/* Events that stand are cleared; false: that was all. */
static bool clear_events(struct ft_pipeline *p, int64_t now_ms, uint32_t items)
{
    uint32_t work;

    while (ft_events_sweep_step(p->stages.events, &p->back_index, UINT32_MAX, now_ms, &work)) {
        if (work >= items)
            return true;
        items -= work;
    }
    return false;
}

/* Forgets, in steps, most of what start_over() would; true: there is more. */
static bool forget(struct ft_pipeline *p, int64_t now_ms, uint32_t items)
{
    switch (p->back) {
    case FT_PIPELINE_BACK_FLOWS:
        if (ft_join_forget(p->stages.join, items))
            return true;
        p->back = FT_PIPELINE_BACK_EVENTS;
        p->back_index = 0;
        return true;
    case FT_PIPELINE_BACK_EVENTS:
        if (clear_events(p, now_ms, items))
            return true;
        p->back = FT_PIPELINE_BACK_ADDRESSES;
        p->back_index = 0;
        return true;
    case FT_PIPELINE_BACK_ADDRESSES:
        if (p->stages.discovery &&
            ft_discovery_set_back_step(p->stages.discovery, now_ms, &p->back_index, items))
            return true;
        p->back = FT_PIPELINE_BACK_FLOWS;
        p->back_index = 0;
        break;
    }
    return false;
}

/* Hosts and pollers announce again whatever is there. */
static void start_over(struct ft_pipeline *p, int64_t now_ms)
{
    uint32_t window = ft_join_window_of(p->stages.join, now_ms);

    ft_join_restart(p->stages.join, window);
    if (p->config.window.partials)
        ft_partials_restart(p->config.window.partials, window * p->config.join.window_ms);
    ft_window_complete_from(p->stages.window, now_ms, true);
    /* Those that were raised meanwhile. */
    ft_events_sweep(p->stages.events, UINT32_MAX, now_ms);
    if (p->stages.wiring)
        ft_wiring_restart(p->stages.wiring);
    if (p->stages.discovery)
        ft_discovery_set_back(p->stages.discovery, now_ms);
    ft_stages_restart_pairing(&p->stages, &p->config, &p->hooks);
    p->stats.restarts++;
    p->set_back = false;
}

static void skip_gap(struct ft_pipeline *p, int64_t now_ms)
{
    uint32_t window = ft_join_window(p->stages.join);
    uint32_t present = ft_join_window_of(p->stages.join, now_ms - p->config.grace_ms);

    if (window <= ft_join_newest(p->stages.join) || present < window + WINDOWS_GAP)
        return;
    p->stats.windows_skipped += present - window;
    open_at(p, now_ms, present);
}

/* Nobody drove us for longer than windows are kept open: what came meanwhile waits in sockets, and
 * is late though its senders' clocks are right. */
static void note_pause(struct ft_pipeline *p, int64_t now_ms)
{
    int64_t pause_ms = now_ms - p->advanced_ms;

    if (!p->config.replay && p->advanced_ms && pause_ms > p->config.grace_ms)
        p->stood_ms = now_ms + AFTER_PAUSE_MS;
    p->advanced_ms = now_ms;
}

/* As ft_pipeline_advance(), of the windows. */
static bool advance_windows(struct ft_pipeline *p, int64_t now_ms, uint32_t items)
{
    if (!ft_window_busy(p->stages.window)) {
        if (ft_pipeline_discover(p, items))
            return true;
        ft_pipeline_weigh_links(p, now_ms);
        ft_pipeline_rediscover(p, now_ms);
        if (ft_pipeline_discover(p, items))
            return true;
        if (ft_join_window(p->stages.join) == 0)
            return false;
        p->set_back |= went_back(p, now_ms);
        if (p->set_back && forget(p, now_ms, items))
            return true;
        if (p->set_back)
            start_over(p, now_ms);
        skip_gap(p, now_ms);
        if (!is_due(p, now_ms))
            return false;
        begin_close(p, now_ms);
    }
    if (!ft_window_step(p->stages.window, items))
        return true;
    ft_pipeline_emit_loss(p, &p->emitter, now_ms);
    return ft_join_window(p->stages.join) != 0 && is_due(p, now_ms);
}

/* A window has begun that cannot be opened before the close of an older one is through: what is of
 * it would pass for that of a clock that is ahead. By the time that windows were advanced to last:
 * where they are made up for, that is not the records' own, and closes none before all of it is
 * read. */
static bool closes_late(const struct ft_pipeline *p)
{
    uint32_t window = ft_join_window(p->stages.join);

    return !p->config.replay && window != 0 &&
           ft_join_window_of(p->stages.join, p->advanced_ms) > window + 1 &&
           (ft_window_busy(p->stages.window) || is_due(p, p->advanced_ms));
}

bool ft_pipeline_waits(struct ft_pipeline *p)
{
    if (p->hurry)
        ft_pipeline_complete(p);
    while (p->hurry && (p->set_back || closes_late(p)))
        advance_windows(p, p->advanced_ms, UINT32_MAX);
    return ft_pipeline_in_progress(p) || closes_late(p);
}

/* What queue pairs there were before the clock was set back. */
static bool free_left(struct ft_pipeline *p)
{
    for (int i = 0; i < TABLES_PARTS && p->stages.left; i++)
        if (!ft_pairing_free_step(p->stages.left))
            p->stages.left = NULL;
    return p->stages.left != NULL;
}

bool ft_pipeline_advance(struct ft_pipeline *p, int64_t now_ms, uint32_t items)
{
    bool more;

    ft_pipeline_flush(p);
    note_pause(p, now_ms);
    p->now_ms = now_ms;
    ft_hints_advance(p->stages.hints, now_ms);
    /* Nothing that a look at a job reads may change before it ends. */
    if (p->stages.diagnoser && ft_diagnoser_looking(p->stages.diagnoser))
        return diagnose(p, now_ms, items);
    more = ft_ranks_age(p->stages.ranks, now_ms, items);
    more |= free_left(p);
    if (p->stages.pairing && ft_pairing_sweep(p->stages.pairing, now_ms, items))
        return true;
    more |= diagnose(p, now_ms, items);
    if (p->stages.diagnoser && ft_diagnoser_looking(p->stages.diagnoser))
        return true;
    return advance_windows(p, now_ms, items) || more;
}

void ft_pipeline_finish(struct ft_pipeline *p)
{
    uint32_t last = ft_join_window_of(p->stages.join, p->now_ms);

    ft_pipeline_flush(p);
    ft_pipeline_finish_close(p);
    ft_pipeline_complete(p);
    ft_pipeline_rediscover(p, INT64_MAX);
    ft_pipeline_complete(p);
    while (ft_join_window(p->stages.join) != 0 && ft_join_window(p->stages.join) <= last) {
        begin_close(p, p->now_ms);
        ft_pipeline_finish_close(p);
        if (ft_join_window(p->stages.join) > last && p->stages.hashes)
            ft_hashes_finish(p->stages.hashes, ft_topology_fabric(p->topology), p->now_ms,
                             &p->emitter);
        ft_pipeline_emit_loss(p, &p->emitter, p->now_ms);
    }
}

const struct ft_stages *ft_pipeline_stages(const struct ft_pipeline *p)
{
    return &p->stages;
}

int64_t ft_pipeline_now_ms(const struct ft_pipeline *p)
{
    return p->now_ms;
}

const struct ft_pipeline_stats *ft_pipeline_stats(const struct ft_pipeline *p)
{
    return &p->stats;
}
