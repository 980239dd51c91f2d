// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/pipeline/stages.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/diagnosis/diagnoser.h"
#include "daemon/diagnosis/rhythms.h"
#include "daemon/hashes/hashes.h"
#include "daemon/health/congestion.h"
#include "daemon/health/detours.h"
#include "daemon/health/exporters.h"
#include "daemon/health/losses.h"
#include "daemon/inference/inference.h"
#include "daemon/jobs/ranks.h"
#include "daemon/join/counters.h"
#include "daemon/join/hints.h"
#include "daemon/pipeline/pipeline_impl.h"
#include "daemon/plans/follower.h"
#include "daemon/probe/probe_list.h"
#include "daemon/probe/probed.h"
#include "daemon/probe/prober.h"
#include "daemon/spread/spread.h"

#define EXPORTERS_MAX  65536
#define DETOURS_MAX    256
#define RANK_EDGES     4 /* a rank */
#define OPERATIONS_MAX 4096
#define RDMA_PORTS_MAX 65536
#define ENDS_A_PORT    8 /* where there are fewer queue pairs */
#define PORTS_A_SOURCE 16
#define STANDING_MAX   1024

static struct ft_pairing *new_pairing(const struct ft_pipeline_config *config,
                                      const struct ft_stage_hooks *hooks)
{
    size_t ports = config->ends_max / ENDS_A_PORT + ENDS_A_PORT;
    const struct ft_pairing_config pairing = {.ends_max = config->ends_max,
                                              .ports_max =
                                                  ports < RDMA_PORTS_MAX ? ports : RDMA_PORTS_MAX,
                                              .members_max = config->ranks_max,
                                              .link_local = config->link_local,
                                              .seed = config->join.seed};

    return ft_pairing_new(&pairing, &hooks->pairing);
}

/* What judges the sources: programs, exporters, clocks, and the paths by which flows go. */
static bool open_health(struct ft_stages *s, const struct ft_pipeline_config *config)
{
    s->agents = ft_agents_new(config->sources_max, config->kept_bytes);
    s->congestion = ft_congestion_new(PORTS_A_SOURCE * config->sources_max);
    s->losses = ft_losses_new(config->sources_max + 1);
    s->clocks = ft_clocks_new(config->sources_max, config->source_id);
    s->processors = ft_processors_new(EXPORTERS_MAX);
    s->unrated = ft_unrated_new(EXPORTERS_MAX);
    s->detours = ft_detours_new(DETOURS_MAX);
    return s->agents && s->congestion && s->losses && s->clocks && s->processors && s->unrated &&
           s->detours;
}

static bool open_jobs(struct ft_stages *s, const struct ft_pipeline_config *config)
{
    const struct ft_ranks_config ranks = {.members_max = config->ranks_max,
                                          .edges_max = RANK_EDGES * config->ranks_max,
                                          .seed = config->join.seed};
    const struct ft_slowest_config slowest = {.ranks_max = config->ranks_max,
                                              .operations_max = OPERATIONS_MAX,
                                              .seed = config->join.seed};

    s->ranks = ft_ranks_new(&ranks);
    s->pairs = ft_pair_links_new(config->ranks_max, config->join.seed);
    s->slowest = ft_slowest_new(&slowest);
    return s->ranks && s->pairs && s->slowest;
}

static struct ft_diagnoser *new_diagnoser(const struct ft_pipeline_config *config)
{
    const struct ft_diagnoser_config diagnoser = {
        .recent = {.ranks_max = config->ranks_max,
                   .rows_max = config->diagnosis_rows_max,
                   .seed = config->join.seed},
        .standing_max = STANDING_MAX,
        .hang_ms = config->hang_ms,
    };

    return ft_diagnoser_new(&diagnoser);
}

/* Stages that a configuration may do without. */
static bool open_optional(struct ft_stages *s, const struct ft_pipeline_config *config,
                          const struct ft_topology *topology, const struct ft_stage_hooks *hooks)
{
    if (config->ends_max)
        s->pairing = new_pairing(config, hooks);
    if (config->discovery.switches_max)
        s->discovery = ft_discovery_new(&config->discovery);
    if (config->crossings.flows_max)
        s->wiring = ft_wiring_new(&config->crossings, topology);
    if (config->hash_sets_max)
        s->hashes = ft_hashes_new(config->hash_sets_max, config->join.seed);
    if (config->infer_paths)
        s->inference = ft_inference_new(topology);
    if (config->diagnosis_rows_max) {
        s->diagnoser = new_diagnoser(config);
        s->second = ft_second_new(config->join.seed);
    }
    if (config->counters_max) {
        s->counters = ft_counters_new(config->counters_max, config->join.window_ms, topology);
        s->exporters = ft_exporters_new(EXPORTERS_MAX);
    }
    return (s->pairing || !config->ends_max) && (s->discovery || !config->discovery.switches_max) &&
           (s->wiring || !config->crossings.flows_max) && (s->hashes || !config->hash_sets_max) &&
           (s->inference || !config->infer_paths) &&
           ((s->diagnoser && s->second) || !config->diagnosis_rows_max) &&
           ((s->counters && s->exporters) || !config->counters_max);
}

static bool predict(void *arg, const struct ft_join *join, const struct ft_flow *flow, uint32_t in,
                    struct ft_hint *hint)
{
    return ft_hashes_predict(arg, join, flow, in, hint);
}

static bool may_predict(void *arg)
{
    return ft_hashes_trusted(arg) > 0;
}

static bool infer(void *arg, const struct ft_join *join, const struct ft_flow *flow, uint32_t in,
                  struct ft_hint *hint)
{
    return ft_inference_predict(arg, ft_join_topology(join), flow, in, hint);
}

static bool may_infer(void *arg)
{
    return ft_inference_is_ready(arg);
}

int ft_stages_open(struct ft_stages *s, const struct ft_pipeline_config *config,
                   const struct ft_topology *topology, const struct ft_emitter *emitter,
                   const struct ft_stage_hooks *hooks)
{
    struct ft_join_config join = config->join;

    join.grace_ms = config->grace_ms;
    s->events = ft_events_new(config->events_max, emitter);
    s->join = ft_join_new(&join, topology, &hooks->join);
    s->spread = ft_spread_new(config->join.seed);
    s->rhythms = ft_rhythms_new(config->join.seed);
    s->follower = ft_follower_new(config->join.seed);
    s->hints = ft_hints_new(config->hints_keep_ms, config->join.seed);
    s->probed = calloc(1, sizeof(*s->probed));
    if (s->probed)
        s->probed->list = ft_probe_list_new(config->join.seed);
    if (config->prober.elephant > 0)
        s->prober = ft_prober_new(&config->prober);
    if (!s->hints || !s->probed || !s->probed->list ||
        (config->prober.elephant > 0 && !s->prober) || !s->events || !s->join || !s->spread ||
        !s->rhythms || !s->follower || !open_health(s, config) || !open_jobs(s, config) ||
        !open_optional(s, config, topology, hooks))
        return -ENOMEM;
    ft_join_set_ranks(s->join, s->ranks);
    ft_join_set_hints(s->join, s->hints);
    if (s->hashes)
        ft_join_set_predictor(s->join,
                              &(struct ft_join_predictor){predict, s->hashes, may_predict});
    if (s->inference)
        ft_join_set_inferrer(s->join, &(struct ft_join_predictor){infer, s->inference, may_infer});
    s->window = ft_window_new(&config->window, s->join, s->events, emitter);
    if (!s->window)
        return -ENOMEM;
    ft_window_count(s->window, s->counters, s->exporters);
    ft_window_congestion(s->window, s->congestion);
    ft_window_watch(s->window, s->detours);
    ft_window_account(s->window, s->losses);
    ft_window_pair(s->window, s->pairs);
    ft_window_learn(s->window, s->hashes, s->inference);
    ft_window_spread(s->window, s->spread);
    ft_window_rhythms(s->window, s->rhythms);
    return 0;
}

void ft_stages_close(struct ft_stages *s)
{
    /* A look in progress reads the others. */
    ft_diagnoser_free(s->diagnoser);
    ft_second_free(s->second);
    ft_window_free(s->window);
    ft_congestion_free(s->congestion);
    ft_pairing_free(s->pairing);
    ft_pairing_free(s->left);
    ft_agents_free(s->agents);
    ft_losses_free(s->losses);
    ft_clocks_free(s->clocks);
    ft_processors_free(s->processors);
    ft_unrated_free(s->unrated);
    ft_join_free(s->join);
    ft_ranks_free(s->ranks);
    ft_pair_links_free(s->pairs);
    ft_slowest_free(s->slowest);
    ft_events_free(s->events);
    ft_discovery_free(s->discovery);
    ft_wiring_free(s->wiring);
    ft_counters_free(s->counters);
    ft_exporters_free(s->exporters);
    ft_detours_free(s->detours);
    ft_hashes_free(s->hashes);
    ft_inference_free(s->inference);
    ft_spread_free(s->spread);
    ft_rhythms_free(s->rhythms);
    ft_follower_free(s->follower);
    ft_hints_free(s->hints);
    if (s->probed)
        ft_probe_list_free(s->probed->list);
    free(s->probed);
    ft_prober_free(s->prober);
}

void ft_stages_restart_pairing(struct ft_stages *s, const struct ft_pipeline_config *config,
                               const struct ft_stage_hooks *hooks)
{
    struct ft_pairing *fresh = s->pairing ? new_pairing(config, hooks) : NULL;

    if (!fresh)
        return;
    /* Of one before it is still there. */
    if (s->left)
        ft_pairing_free(s->left);
    s->left = s->pairing;
    s->pairing = fresh;
}
