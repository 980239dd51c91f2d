// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/pipeline/configure.h"

#define NS_PER_MS 1000000
/* Observations looked at for links: half a percent of a core. */
#define CROSSINGS_A_SECOND 10000
/* Paths published when they become known: a tenth of a core. */
#define NEWS_A_SECOND 20000

void ft_pipeline_configure(struct ft_pipeline_config *config, const struct ft_settings *s,
                           bool replay)
{
    *config = (struct ft_pipeline_config){
        .join = {.flows_max = s->flows_max,
                 .beside_max = s->flows_max * FT_FLOW_BESIDE_BYTES,
                 .window_ms = s->window_ns / NS_PER_MS,
                 .evidence_ms = s->evidence_ns / NS_PER_MS,
                 .idle_ms = s->flow_idle_ns / NS_PER_MS,
                 .trust_topology = !s->verify_topology,
                 .policy = {.hold_down_ms = s->path_hold_down_ns / NS_PER_MS,
                            .tolerance_ms = s->tolerance_ns / NS_PER_MS}},
        .window = {.loads = {.window_ms = s->window_ns / NS_PER_MS,
                             .floor_share = replay ? 0 : s->floor,
                             .elephant_share = s->elephant,
                             .elephants_max = s->flows_max},
                   .refresh_ms = s->path_refresh_ns / NS_PER_MS,
                   .victims_max = (uint32_t)s->victims_max},
        .discovery = {.switches_max = s->switches_max,
                      .addresses_max = s->learnt_max,
                      .ports_max = s->fabric_ports_max},
        .crossings = {.flows_max = s->crossing_flows_max,
                      .ports_max = s->crossing_ports_max,
                      .rate_max = CROSSINGS_A_SECOND},
        .ends_max = s->ends_max,
        .ranks_max = s->ranks_max,
        .prober = {.elephant = s->probe_elephants && !replay ? s->elephant : 0,
                   .window_ms = s->window_ns / NS_PER_MS,
                   .rest_ms = s->oracle_keep_ns / NS_PER_MS},
        .hints_keep_ms = s->oracle_keep_ns / NS_PER_MS,
        .hash_sets_max = s->hash_sets_max,
        .infer_paths = s->infer_paths,
        .diagnosis_rows_max = s->operations_max,
        .news_max = NEWS_A_SECOND,
        .hang_ms = s->hang_after_ns / NS_PER_MS,
        .kept_bytes = s->kept_bytes,
        .link_local = s->link_local,
        .counters_max = s->counters_max,
        .grace_ms = s->grace_ns / NS_PER_MS,
        .events_max = s->events_max,
        .sources_max = s->sources_max,
        .replay = replay,
    };
}
