// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/join/flow_follow.h"
#include "daemon/join/flow_host.h"
#include "daemon/join/flow_networks.h"
#include "daemon/join/flow_numbers.h"
#include "daemon/join/flow_path.h"
#include "daemon/join/hints.h"
#include "daemon/join/join_impl.h"
#include "lib/fabric/volume.h"

#define NAMES_MAX 65536
/* Those who sample, of which lags are learnt: 8 MB. */
#define SOURCES_MAX 4096
/* Times flow_idle without a report of its hosts. */
#define LISTS_MISSED 2

struct ft_join *ft_join_new(const struct ft_join_config *config, const struct ft_topology *t,
                            const struct ft_join_hooks *hooks)
{
    struct ft_join *j = calloc(1, sizeof(*j));

    if (!j)
        return NULL;
    j->config = *config;
    j->hooks = *hooks;
    j->t = t;
    j->flows = ft_table_new(sizeof(struct ft_flow), sizeof(struct ft_tuple), config->flows_max,
                            config->seed);
    j->names = ft_names_new(NAMES_MAX);
    j->marks = calloc((size_t)ft_topology_ports(t) + 1, sizeof(*j->marks));
    j->depths = calloc((size_t)ft_topology_ports(t) + 1, sizeof(*j->depths));
    j->sampled = ft_sampled_new(t);
    j->outages = ft_outages_new(t, (uint32_t)config->window_ms);
    j->holds = ft_holds_new(SOURCES_MAX, config->seed);
    if (!j->holds || !j->flows || !j->names || !j->marks || !j->depths || !j->sampled ||
        !j->outages || ft_trust_init(&j->trust, t)) {
        ft_join_free(j);
        return NULL;
    }
    ft_table_without_index(j->flows);
    return j;
}

static void release(struct ft_join *j, struct ft_flow *flow)
{
    j->beside -= ft_flow_beside(flow);
    ft_evidence_free(&flow->evidence);
    free(flow->parts);
}

void ft_join_free(struct ft_join *j)
{
    struct ft_flow *flow;
    uint32_t index = 0;

    if (!j)
        return;
    while (j->flows && (flow = ft_table_next(j->flows, &index)))
        release(j, flow);
    ft_table_free(j->flows);
    ft_names_free(j->names);
    free(j->marks);
    free(j->depths);
    ft_sampled_free(j->sampled);
    ft_outages_free(j->outages);
    ft_holds_free(j->holds);
    ft_trust_free(&j->trust);
    free(j);
}

void ft_join_set_ranks(struct ft_join *j, const struct ft_ranks *ranks)
{
    j->ranks = ranks;
}

const struct ft_ranks *ft_join_ranks(const struct ft_join *j)
{
    return j->ranks;
}

void ft_join_set_hints(struct ft_join *j, struct ft_hints *hints)
{
    j->hints = hints;
}

struct ft_hints *ft_join_hints(const struct ft_join *j)
{
    return j->hints;
}

void ft_join_set_predictor(struct ft_join *j, const struct ft_join_predictor *predictor)
{
    j->predictor = *predictor;
}

const struct ft_join_predictor *ft_join_predictor(const struct ft_join *j)
{
    return &j->predictor;
}

void ft_join_set_inferrer(struct ft_join *j, const struct ft_join_predictor *inferrer)
{
    j->inferrer = *inferrer;
}

const struct ft_join_predictor *ft_join_inferrer(const struct ft_join *j)
{
    return &j->inferrer;
}

const struct ft_topology *ft_join_topology(const struct ft_join *j)
{
    return j->t;
}

uint32_t ft_join_window_of(const struct ft_join *j, int64_t ms)
{
    return ft_join_window_at(j, ms);
}

uint32_t ft_join_window(const struct ft_join *j)
{
    return j->window;
}

void ft_join_open(struct ft_join *j, uint32_t window)
{
    j->window = window;
}

void ft_join_seal(struct ft_join *j)
{
    j->sealed = true;
    ft_outages_close(j->outages, j->window);
    j->sweeping = ft_names_crowded(j->names);
    if (j->sweeping)
        ft_names_begin(j->names);
}

void ft_join_close(struct ft_join *j)
{
    if (j->sweeping)
        ft_names_sweep(j->names);
    j->sweeping = false;
    j->window++;
    j->sealed = false;
}

uint32_t ft_join_newest(const struct ft_join *j)
{
    return j->newest;
}

bool ft_join_forget(struct ft_join *j, uint32_t work)
{
    struct ft_flow *flow;

    for (; work > 0 && (flow = ft_table_next(j->flows, &j->forgotten)); work--) {
        release(j, flow);
        ft_table_remove(j->flows, flow);
        j->stats.flows_removed++;
    }
    if (work == 0)
        return true;
    j->forgotten = 0;
    return false;
}

void ft_join_restart(struct ft_join *j, uint32_t window)
{
    uint32_t ports = ft_topology_ports(j->t);

    /* Those that came while others were forgotten. */
    j->forgotten = 0;
    while (ft_join_forget(j, UINT32_MAX))
        ;
    memset(j->marks, 0, ports * sizeof(*j->marks));
    memset(j->depths, 0, ports * sizeof(*j->depths));
    ft_sampled_restart(j->sampled);
    ft_outages_restart(j->outages);
    ft_trust_restart(&j->trust, j->t);
    if (j->hints)
        ft_hints_clear(j->hints);
    j->judged = NULL;
    j->window = window;
    j->newest = 0;
    j->heard_ms = j->moved_ms = 0;
}

void ft_join_sampled(const struct ft_join *j, uint32_t switch_id, uint32_t window,
                     uint64_t *samples, double *bytes)
{
    ft_sampled_window(j->sampled, switch_id, window, samples, bytes);
}

uint64_t ft_join_strays(const struct ft_join *j, uint32_t switch_id, uint32_t window)
{
    return ft_sampled_strays(j->sampled, switch_id, window);
}

/* What the closing window says of the flow's rate: the sending host's own count where it has one,
 * else what the packet numbers say, else the estimate from samples. */
static void finish_volume(const struct ft_join *j, struct ft_flow *flow, uint32_t window)
{
    const struct ft_flow_host *host = ft_flow_host(flow);
    uint64_t sent = host ? host->sent_bytes[window & 1] : 0;
    struct ft_volume volume;
    enum ft_rate_by by = FT_RATE_SAMPLES;

    if (flow->window < window || flow->window > window + 1)
        return;
    volume = ft_volume_close(&flow->evidence, j->t, flow->src_nic, flow->dst_nic, window & 1,
                             ft_outages_had(j->outages));
    if (volume.bytes == 0 && sent == 0)
        return;
    if (!ft_flow_is_several(flow) && ft_flow_number(j, flow, window, volume.samples, &volume.bytes))
        by = FT_RATE_PSN;
    flow->bytes_by = (uint8_t)(sent ? FT_RATE_HOST : by);
    flow->bytes = sent ? sent : volume.bytes;
    flow->samples = volume.samples > UINT32_MAX ? UINT32_MAX : (uint32_t)volume.samples;
    flow->lag_ms = (uint32_t)ft_holds_known_ms(j->holds, volume.source);
    flow->bytes_window = window;
}

/* Whether other flows moved on a flow's path, after it was seen there. */
static bool is_uncertain(const struct ft_join *j, const struct ft_flow *flow)
{
    int64_t uncertain_ms = INT64_MIN, first_ms, last_ms;
    struct ft_path path;

    if (flow->state != FT_PATH_RESOLVED || j->trust.uncertain_ms == INT64_MIN)
        return false;
    for (uint32_t h = 0; h < flow->path.hop_count; h++)
        if (j->trust.links[flow->path.hops[h].out].uncertain_ms > uncertain_ms)
            uncertain_ms = j->trust.links[flow->path.hops[h].out].uncertain_ms;
    if (uncertain_ms == INT64_MIN)
        return false;
    path = ft_flow_path(j->t, flow);
    ft_evidence_attested(&flow->evidence, j->t, &path, &first_ms, &last_ms);
    return first_ms < uncertain_ms;
}

/* Whether nobody has seen the flow, or said that it is there, for long. Hosts list their idle queue
 * pairs again and again: a flow of theirs outlives a list that is missed. */
static bool is_idle(const struct ft_join *j, const struct ft_flow *flow, int64_t now_ms)
{
    const struct ft_flow_host *host = ft_flow_host(flow);

    return now_ms - flow->last_ms >= j->config.idle_ms &&
           (!host || now_ms - host->listed_ms >= LISTS_MISSED * j->config.idle_ms);
}

bool ft_join_age(struct ft_join *j, struct ft_flow *flow, uint32_t window, int64_t now_ms)
{
    int64_t due_ms = ((int64_t)window + 1) * j->config.window_ms + j->config.grace_ms;
    size_t had;

    j->judged = NULL;
    if (is_idle(j, flow, now_ms) || (flow->ended && flow->window < window)) {
        release(j, flow);
        ft_table_remove(j->flows, flow);
        j->stats.flows_removed++;
        return false;
    }
    if (j->sweeping && ft_flow_host(flow))
        ft_flow_host_use_names(ft_flow_host(flow), j->names);
    finish_volume(j, flow, window);
    /* That the close comes later changes nothing. */
    now_ms = now_ms < due_ms ? now_ms : due_ms;
    if (ft_flow_age_networks(j, flow, window, now_ms) ||
        ft_evidence_forget(&flow->evidence, now_ms - j->config.evidence_ms) ||
        flow->state == FT_PATH_PARTIAL || flow->state == FT_PATH_MULTIPATH || is_uncertain(j, flow))
        ft_join_judge_now(j, flow, now_ms);
    had = ft_flow_beside(flow);
    ft_moves_forget(flow, ((int64_t)window + 1) * j->config.window_ms);
    ft_join_recount(j, flow, had);
    return true;
}

uint32_t ft_join_limit(const struct ft_join *j)
{
    return ft_table_limit(j->flows);
}

struct ft_flow *ft_join_at(const struct ft_join *j, uint32_t index)
{
    return ft_table_at(j->flows, index);
}

struct ft_flow *ft_join_find(const struct ft_join *j, const struct ft_tuple *tuple)
{
    return ft_table_find(j->flows, tuple);
}

size_t ft_join_flows(const struct ft_join *j)
{
    return ft_table_count(j->flows);
}

size_t ft_join_bytes(const struct ft_join *j)
{
    return ft_table_bytes(j->flows) + j->beside;
}

const struct ft_port_marks *ft_join_marks(const struct ft_join *j, uint32_t port)
{
    return &j->marks[port];
}

void ft_join_said(struct ft_join *j, uint32_t port, uint32_t window,
                  const struct ft_port_said *said)
{
    const struct ft_observed_rest rest = {.has_queue = said->has_queue,
                                          .has_transit = said->has_transit,
                                          .queue_max_bytes = said->queue_max_bytes,
                                          .transit_max_ns = said->transit_max_ns};

    ft_port_marks_add(&j->marks[port], window, said->samples, said->ce_samples, said->last_ms);
    if (rest.has_queue || rest.has_transit)
        ft_port_depths_add(&j->depths[port], window, &rest);
}

const struct ft_port_depths *ft_join_depths(const struct ft_join *j, uint32_t port)
{
    return &j->depths[port];
}

const struct ft_join_stats *ft_join_stats(const struct ft_join *j)
{
    return &j->stats;
}

void ft_join_confirm_link(struct ft_join *j, uint32_t port, bool confirmed)
{
    j->judged = NULL;
    j->trust.links[port].confirmed = confirmed;
}

void ft_join_contradict_link(struct ft_join *j, uint32_t port, bool contradicted)
{
    j->trust.links[port].contradicted = contradicted;
}

uint32_t ft_join_other_end(const struct ft_join *j, uint32_t port)
{
    uint32_t peer = ft_topology_port(j->t, port)->peer;
    const struct ft_link_trust *links = j->trust.links;

    return peer == FT_NONE || links[port].contradicted || links[peer].contradicted ? FT_NONE : peer;
}

/* Until it is judged a flow has no path of which a port is gone. */
static void follow_flows(struct ft_join *j, const struct ft_follow *follow)
{
    struct ft_flow *flow;
    uint32_t index = 0;

    while ((flow = ft_table_next(j->flows, &index))) {
        size_t had = ft_flow_beside(flow);

        ft_flow_follow(flow, follow);
        ft_join_recount(j, flow, had);
        if (flow->state == FT_PATH_RESOLVED && flow->path.hop_count == 0) {
            flow->state = FT_PATH_UNRESOLVED;
            flow->published = 0;
        }
    }
}

int ft_join_set_topology(struct ft_join *j, const struct ft_topology *t, int64_t now_ms)
{
    struct ft_port_marks *marks = calloc((size_t)ft_topology_ports(t) + 1, sizeof(*marks));
    struct ft_port_depths *depths = calloc((size_t)ft_topology_ports(t) + 1, sizeof(*depths));
    struct ft_follow *follow = ft_follow_new(j->t, t);
    struct ft_outages *outages = ft_outages_followed(j->outages, t);
    struct ft_trust trust = {0};

    if (!marks || !depths || !follow || !outages || ft_trust_init(&trust, t) ||
        ft_sampled_follow(j->sampled, t)) {
        free(marks);
        free(depths);
        ft_outages_free(outages);
        ft_follow_free(follow);
        ft_trust_free(&trust);
        return -ENOMEM;
    }
    ft_trust_follow(&trust, t, &j->trust, j->t, now_ms);
    ft_trust_free(&j->trust);
    j->trust = trust;
    free(j->marks);
    free(j->depths);
    j->marks = marks;
    j->depths = depths;
    ft_outages_free(j->outages);
    j->outages = outages;
    j->t = t;
    if (j->hints)
        ft_hints_clear(j->hints);
    follow_flows(j, follow);
    ft_follow_free(follow);
    j->judge_at = 0;
    j->judge_end = ft_table_limit(j->flows);
    j->judged = NULL;
    return 0;
}

bool ft_join_judge_step(struct ft_join *j, uint32_t items)
{
    for (; j->judge_at < j->judge_end && items; items--) {
        struct ft_flow *flow = ft_table_at(j->flows, j->judge_at++);

        if (!flow)
            continue;
        ft_join_locate(j, flow);
        ft_join_judge_now(j, flow, flow->last_ms);
    }
    j->judged = NULL;
    return j->judge_at < j->judge_end;
}

bool ft_join_judging_all(const struct ft_join *j)
{
    return j->judge_at < j->judge_end;
}
