// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/pipeline/pipeline.h"

#include <stdlib.h>

#include "daemon/health/congestion.h"
#include "daemon/health/losses.h"
#include "daemon/pipeline/pipeline_impl.h"

#define EXPORTERS_MAX  65536
#define DETOURS_MAX    256
#define RANKS_MAX      65536
#define RANK_EDGES     4 /* a rank */
#define OPERATIONS_MAX 4096
#define RDMA_PORTS_MAX 65536
#define ENDS_A_PORT    8 /* where there are fewer queue pairs */
#define KEPT_BYTES     ((size_t)64 << 20)
#define PORTS_A_SOURCE 16
/* A pause that is longer is no pause: windows in which nobody was there are not published. */
#define WINDOWS_GAP 60
/* What waited in sockets while nobody drove us has come in after this time. */
#define AFTER_PAUSE_MS 10000

static struct ft_pairing *make_pairing(struct ft_pipeline *p)
{
    size_t ports = p->config.ends_max / ENDS_A_PORT + ENDS_A_PORT;
    const struct ft_pairing_config config = {.ends_max = p->config.ends_max,
                                             .ports_max =
                                                 ports < RDMA_PORTS_MAX ? ports : RDMA_PORTS_MAX,
                                             .members_max = p->config.ranks_max,
                                             .link_local = p->config.link_local,
                                             .seed = p->config.join.seed};
    const struct ft_pairing_hooks hooks = {ft_pipeline_on_paired, ft_pipeline_on_withdrawn,
                                           ft_pipeline_on_cover, p};

    return ft_pairing_new(&config, &hooks);
}

static void make_jobs(struct ft_pipeline *p)
{
    const struct ft_ranks_config ranks = {.members_max = p->config.ranks_max,
                                          .edges_max = RANK_EDGES * p->config.ranks_max,
                                          .seed = p->config.join.seed};
    const struct ft_slowest_config slowest = {.ranks_max = p->config.ranks_max,
                                              .operations_max = OPERATIONS_MAX,
                                              .seed = p->config.join.seed};

    p->ranks = ft_ranks_new(&ranks);
    p->pairs = ft_pair_links_new(p->config.ranks_max, p->config.join.seed);
    p->slowest = ft_slowest_new(&slowest);
}

struct ft_pipeline *ft_pipeline_new(const struct ft_pipeline_config *config,
                                    struct ft_topology *topology, const struct ft_emitter *emitter)
{
    struct ft_pipeline *p = calloc(1, sizeof(*p));
    struct ft_join_hooks hooks = {.judged = ft_pipeline_on_judged,
                                  .moved = ft_pipeline_on_moved,
                                  .entered = ft_pipeline_on_entered,
                                  .arg = p};
    if (!p)
        return NULL;
    p->config = *config;
    if (!p->config.ranks_max)
        p->config.ranks_max = RANKS_MAX;
    if (!p->config.kept_bytes)
        p->config.kept_bytes = KEPT_BYTES;
    p->emitter = *emitter;
    p->agents = ft_agents_new(config->sources_max, p->config.kept_bytes);
    if (config->ends_max)
        p->pairing = make_pairing(p);
    p->events = ft_events_new(config->events_max, emitter);
    p->sources = ft_table_new(sizeof(struct ft_pipeline_program), FT_PIPELINE_PROGRAM_BYTES,
                              config->sources_max, 0);
    p->join = ft_join_new(&config->join, topology, &hooks);
    p->congestion = ft_congestion_new(PORTS_A_SOURCE * config->sources_max);
    p->losses = ft_losses_new(config->sources_max + 1);
    p->clocks = ft_clocks_new(config->sources_max, config->source_id);
    p->processors = ft_processors_new(EXPORTERS_MAX);
    p->unrated = ft_unrated_new(EXPORTERS_MAX);
    p->detours = ft_detours_new(DETOURS_MAX);
    make_jobs(p);
    if (p->join)
        ft_join_set_ranks(p->join, p->ranks);
    if (config->discovery.switches_max)
        p->discovery = ft_discovery_new(&config->discovery);
    if (config->crossings.flows_max)
        p->wiring = ft_wiring_new(&config->crossings, topology);
    if (config->counters_max) {
        p->counters = ft_counters_new(config->counters_max, config->join.window_ms, topology);
        p->exporters = ft_exporters_new(EXPORTERS_MAX);
    }
    if (p->events && p->sources && p->join && p->ranks && p->pairs && p->slowest && p->congestion &&
        p->losses && p->clocks && p->detours && p->processors && p->unrated && p->agents &&
        (p->discovery || !config->discovery.switches_max) &&
        (p->wiring || !config->crossings.flows_max) && (p->pairing || !config->ends_max) &&
        ((p->counters && p->exporters) || !config->counters_max))
        p->window = ft_window_new(&config->window, p->join, p->events, emitter);
    if (!p->window) {
        ft_pipeline_free(p);
        return NULL;
    }
    ft_window_count(p->window, p->counters, p->exporters);
    ft_window_watch(p->window, p->detours);
    ft_window_pair(p->window, p->pairs);
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
    ft_unrated_free(p->unrated);
    ft_join_free(p->join);
    ft_ranks_free(p->ranks);
    ft_pair_links_free(p->pairs);
    ft_slowest_free(p->slowest);
    ft_events_free(p->events);
    ft_discovery_free(p->discovery);
    ft_wiring_free(p->wiring);
    ft_counters_free(p->counters);
    ft_exporters_free(p->exporters);
    ft_detours_free(p->detours);
    free(p->edge);
    if (p->topology != p->base)
        ft_topology_free(p->topology);
    ft_topology_free(p->base);
    free(p);
}

void ft_pipeline_finish_close(struct ft_pipeline *p)
{
    while (ft_window_busy(p->window))
        ft_window_step(p->window, UINT32_MAX);
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

    ft_pipeline_fill_loss(p, &own, now_ms);
    ft_losses_take(p->losses, &own.loss, now_ms);
    /* Before the close sweeps out what was not raised in its window. */
    ft_congestion_raise(p->congestion, p->events, window, now_ms, fabric);
    ft_losses_raise(p->losses, p->events, window, now_ms, fabric);
    ft_clocks_raise(p->clocks, p->events, window, now_ms, fabric);
    ft_window_begin(p->window, now_ms);
}

static bool went_back(const struct ft_pipeline *p, int64_t now_ms)
{
    int64_t start_ms = (int64_t)ft_join_window(p->join) * p->config.join.window_ms;

    return !p->config.replay && now_ms < start_ms - p->config.join.window_ms;
}

/* Hosts and pollers announce again whatever is there. */
static void start_over(struct ft_pipeline *p, int64_t now_ms)
{
    struct ft_pairing *pairing = p->pairing ? make_pairing(p) : NULL;

    ft_join_restart(p->join, ft_join_window_of(p->join, now_ms));
    ft_events_sweep(p->events, UINT32_MAX, now_ms);
    if (p->wiring)
        ft_wiring_restart(p->wiring);
    if (pairing) {
        ft_pairing_free(p->pairing);
        p->pairing = pairing;
    }
    p->stats.restarts++;
}

static void skip_gap(struct ft_pipeline *p, int64_t now_ms)
{
    uint32_t window = ft_join_window(p->join);
    uint32_t present = ft_join_window_of(p->join, now_ms - p->config.grace_ms);

    if (window <= ft_join_newest(p->join) || present < window + WINDOWS_GAP)
        return;
    p->stats.windows_skipped += present - window;
    ft_join_open(p->join, present);
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

bool ft_pipeline_advance(struct ft_pipeline *p, int64_t now_ms, uint32_t items)
{
    ft_pipeline_settle(p);
    note_pause(p, now_ms);
    p->now_ms = now_ms;
    ft_ranks_age(p->ranks, now_ms);
    if (p->pairing)
        ft_pairing_sweep(p->pairing, now_ms);
    if (!ft_window_busy(p->window)) {
        ft_pipeline_weigh_links(p, now_ms);
        ft_pipeline_rediscover(p, now_ms);
        if (ft_join_window(p->join) == 0)
            return false;
        if (went_back(p, now_ms))
            start_over(p, now_ms);
        skip_gap(p, now_ms);
        if (now_ms < due_ms(p))
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
    ft_pipeline_finish_close(p);
    ft_pipeline_rediscover(p, INT64_MAX);
    while (ft_join_window(p->join) != 0 && ft_join_window(p->join) <= last) {
        begin_close(p, p->now_ms);
        ft_pipeline_finish_close(p);
        ft_pipeline_emit_loss(p, &p->emitter, p->now_ms);
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

const struct ft_detours *ft_pipeline_detours(const struct ft_pipeline *p)
{
    return p->detours;
}

const struct ft_exporters *ft_pipeline_exporters(const struct ft_pipeline *p)
{
    return p->exporters;
}

const struct ft_processors *ft_pipeline_processors(const struct ft_pipeline *p)
{
    return p->processors;
}

const struct ft_unrated *ft_pipeline_unrated(const struct ft_pipeline *p)
{
    return p->unrated;
}

int64_t ft_pipeline_now_ms(const struct ft_pipeline *p)
{
    return p->now_ms;
}

const struct ft_clocks *ft_pipeline_clocks(const struct ft_pipeline *p)
{
    return p->clocks;
}

const struct ft_wiring *ft_pipeline_wiring(const struct ft_pipeline *p)
{
    return p->wiring;
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
