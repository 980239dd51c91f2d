// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/trial.h"

#include <string.h>

/* So long after a move or a change of links others are likely. */
#define UNQUIET_MS 30000

/* A packet crosses one switch a stage, so every sighting of the stage must match the hop. */
static bool accept_all(void *arg, uint32_t stage, const struct ft_hop *hop)
{
    const struct ft_trial *trial = arg;

    for (uint16_t i = 0; i < trial->count; i++)
        if (trial->use[i] && trial->stage[i] == stage &&
            !ft_sighting_matches(&trial->list[i], trial->t, hop))
            return false;
    return true;
}

/* A switch may be at one stage from one leaf of the source and at another from another. Sightings
 * of one flow are taken from the leaf that most of them agree with. */
static void agree_on_leaf(struct ft_trial *trial)
{
    const struct ft_judging *by = trial->by;
    const struct ft_nic *src = ft_topology_nic(by->t, by->src_nic);
    uint32_t stage[FT_SIGHTINGS_MAX], most = 0;

    for (uint32_t a = 0; a < src->attach_count; a++) {
        uint32_t agree = 0;

        for (uint16_t i = 0; i < trial->count; i++) {
            const struct ft_sighting *s = &trial->list[i];

            stage[i] =
                !trial->usable[i]
                    ? FT_NONE
                    : ft_paths_stage_from(by->t, by->src_nic, a, by->dst_nic, ft_sighting_switch(s),
                                          (struct ft_hop){ft_sighting_in(s), ft_sighting_out(s)});
            agree += stage[i] != FT_NONE;
        }
        for (uint16_t i = 0; agree > most && i < trial->count; i++)
            if (stage[i] != FT_NONE)
                trial->stage[i] = stage[i];
        most = agree > most ? agree : most;
    }
}

void ft_trial_init(struct ft_trial *trial, const struct ft_evidence *ev,
                   const struct ft_judging *by)
{
    trial->by = by;
    trial->t = by->t;
    trial->list = ft_evidence_list(ev);
    trial->count = ev->count;
    trial->left = FT_NONE;
    trial->outlier_ms = INT64_MIN;
    trial->known = trial->strange = trial->off_path = trial->uncertain = false;
    for (uint16_t i = 0; i < ev->count; i++) {
        const struct ft_sighting *s = &trial->list[i];

        trial->stage[i] = FT_NONE;
        trial->usable[i] = trial->recent[i] = false;
        if (s->past != FT_PRESENT)
            continue;
        if (ft_sighting_switch(s) & FT_SWITCH_UNKNOWN) {
            trial->strange = true;
            continue;
        }
        trial->known = true;
        trial->stage[i] = ft_paths_stage(by->t, by->src_nic, by->dst_nic, ft_sighting_switch(s),
                                         (struct ft_hop){ft_sighting_in(s), ft_sighting_out(s)});
        trial->usable[i] = trial->stage[i] != FT_NONE;
        trial->off_path |= !trial->usable[i];
    }
    if (trial->known && ft_topology_nic(by->t, by->src_nic)->attach_count > 1)
        agree_on_leaf(trial);
    memcpy(trial->use, trial->usable, sizeof(trial->use));
}

/* The switch that a port of a switch leads to; FT_NONE. */
static uint32_t switch_behind(const struct ft_topology *t, uint32_t end)
{
    uint32_t peer = end != FT_NONE && ft_is_port(end) ? ft_topology_port(t, end)->peer : FT_NONE;

    return peer == FT_NONE ? FT_NONE : ft_topology_port(t, peer)->switch_id;
}

/* The switches that a path must have so that it can satisfy all that is used: those of the
 * sightings, and where the ports lead that they name. */
static void find_via(const struct ft_trial *trial, uint32_t via[FT_PATH_HOPS_MAX])
{
    for (uint32_t h = 0; h < FT_PATH_HOPS_MAX; h++)
        via[h] = FT_NONE;
    for (uint16_t i = 0; i < trial->count; i++) {
        const struct ft_sighting *s = &trial->list[i];
        uint32_t stage = trial->stage[i], next;

        if (!trial->use[i] || stage == FT_NONE)
            continue;
        via[stage] = ft_sighting_switch(s);
        next = switch_behind(trial->t, ft_sighting_in(s));
        if (stage > 0 && next != FT_NONE)
            via[stage - 1] = next;
        next = switch_behind(trial->t, ft_sighting_out(s));
        if (stage + 1 < FT_PATH_HOPS_MAX && next != FT_NONE)
            via[stage + 1] = next;
    }
}

uint64_t ft_trial_paths(struct ft_trial *trial, const bool *use, struct ft_path *paths, size_t max,
                        uint64_t limit)
{
    uint32_t via[FT_PATH_HOPS_MAX];

    memcpy(trial->use, use, trial->count * sizeof(*use));
    find_via(trial, via);
    return ft_paths_walk_via(trial->t, trial->by->src_nic, trial->by->dst_nic, via, accept_all,
                             trial, paths, max, limit);
}

bool ft_trial_fits(struct ft_trial *trial, const bool *use)
{
    return ft_trial_paths(trial, use, NULL, 0, 1) > 0;
}

bool ft_trial_only_path(struct ft_trial *trial, const bool *use, struct ft_path *path)
{
    return ft_trial_paths(trial, use, path, 1, 2) == 1;
}

int64_t ft_trial_newest_ms(const struct ft_trial *trial, const bool *use)
{
    int64_t newest = INT64_MIN;

    for (uint16_t i = 0; i < trial->count; i++)
        if (use[i] && trial->list[i].last_ms > newest)
            newest = trial->list[i].last_ms;
    return newest;
}

bool ft_trial_any(const struct ft_trial *trial, const bool *use)
{
    return ft_trial_newest_ms(trial, use) != INT64_MIN;
}

uint32_t ft_trial_seen_before(const struct ft_trial *trial, uint32_t last)
{
    uint32_t found = FT_NONE;

    for (uint16_t i = 0; i < trial->count; i++) {
        const struct ft_sighting *s = &trial->list[i];

        if (!trial->usable[i] ||
            (last != FT_NONE && (s->last_ms > trial->list[last].last_ms ||
                                 (s->last_ms == trial->list[last].last_ms && i <= last))))
            continue;
        if (found == FT_NONE || s->last_ms > trial->list[found].last_ms)
            found = i;
    }
    return found;
}

void ft_trial_newest_enough(struct ft_trial *trial, const bool *use, bool *enough)
{
    bool all[FT_SIGHTINGS_MAX];
    struct ft_path path;

    memcpy(all, trial->usable, sizeof(all));
    memcpy(trial->usable, use, sizeof(all));
    memset(enough, 0, sizeof(all));
    for (uint32_t i = ft_trial_seen_before(trial, FT_NONE); i != FT_NONE;
         i = ft_trial_seen_before(trial, i)) {
        enough[i] = true;
        if (ft_trial_only_path(trial, enough, &path))
            break;
    }
    memcpy(trial->usable, all, sizeof(all));
}

void ft_trial_needed(struct ft_trial *trial, const bool *use, bool *enough)
{
    struct ft_path path;

    ft_trial_newest_enough(trial, use, enough);
    for (uint16_t i = 0; i < trial->count; i++) {
        if (!enough[i])
            continue;
        enough[i] = false;
        enough[i] = !ft_trial_only_path(trial, enough, &path);
    }
}

int64_t ft_trial_common_ms(const struct ft_trial *trial, const bool *use, int64_t *apart_ms)
{
    int64_t first_ms = INT64_MIN, end_ms = INT64_MAX;

    for (uint16_t i = 0; i < trial->count; i++) {
        if (!use[i])
            continue;
        if (ft_sighting_first_ms(&trial->list[i]) > first_ms)
            first_ms = ft_sighting_first_ms(&trial->list[i]);
        if (trial->list[i].last_ms < end_ms)
            end_ms = trial->list[i].last_ms;
    }
    *apart_ms = first_ms - end_ms;
    return first_ms > end_ms ? first_ms : end_ms;
}

bool ft_trial_is_unquiet(const struct ft_trial *trial)
{
    const struct ft_trust *trust = trial->by->trust;

    return trust && trust->uncertain_ms >= trial->by->now_ms - UNQUIET_MS;
}

bool ft_trial_may_miss_links(const struct ft_trial *trial)
{
    return trial->by->verify && ft_trial_is_unquiet(trial) && trial->by->trust->loses_links;
}

/* The stretch in which a link of the path was sampled last, at either end. */
static bool link_stretch(const struct ft_trial *trial, const bool *use, const struct ft_path *path,
                         uint32_t h, int64_t *first_ms, int64_t *last_ms)
{
    const struct ft_hop *hop = &path->hops[h];
    const struct ft_sighting *of[FT_SIGHTINGS_MAX];
    uint32_t count = 0;

    *first_ms = INT64_MAX;
    *last_ms = INT64_MIN;
    for (uint16_t i = 0; i < trial->count; i++) {
        const struct ft_sighting *s = &trial->list[i];

        if (!use[i] ||
            !((ft_sighting_out(s) != FT_NONE && ft_sighting_matches(s, trial->t, hop)) ||
              (ft_sighting_in(s) != FT_NONE && ft_sighting_matches(s, trial->t, hop + 1))))
            continue;
        of[count++] = s;
        if (s->last_ms > *last_ms)
            *last_ms = s->last_ms;
    }
    for (uint32_t i = 0; i < count; i++)
        if (of[i]->last_ms + FT_STRETCH_GAP_MS >= *last_ms &&
            ft_sighting_first_ms(of[i]) < *first_ms)
            *first_ms = ft_sighting_first_ms(of[i]);
    return count > 0;
}

int64_t ft_trial_links_ms(const struct ft_trial *trial, const bool *use, const struct ft_path *path,
                          int64_t *apart_ms)
{
    int64_t first_ms = INT64_MIN, end_ms = INT64_MAX;

    *apart_ms = 0;
    for (uint32_t h = 0; h + 1 < path->hop_count; h++) {
        int64_t begun_ms, last_ms;

        if (!link_stretch(trial, use, path, h, &begun_ms, &last_ms))
            continue;
        first_ms = begun_ms > first_ms ? begun_ms : first_ms;
        end_ms = last_ms < end_ms ? last_ms : end_ms;
    }
    if (first_ms == INT64_MIN)
        return INT64_MAX;
    *apart_ms = first_ms - end_ms;
    return first_ms > end_ms ? first_ms : end_ms;
}

int64_t ft_trial_sampled_ms(struct ft_trial *trial, const bool *use, int64_t ms)
{
    int64_t left_ms = trial->outlier_ms, links_ms, apart_ms;
    struct ft_path path;

    if (!ft_trial_may_miss_links(trial) || !ft_trial_only_path(trial, use, &path))
        return ms;
    links_ms = ft_trial_links_ms(trial, trial->usable, &path, &apart_ms);
    if (trial->left != FT_NONE && trial->list[trial->left].last_ms > left_ms)
        left_ms = trial->list[trial->left].last_ms;
    return links_ms < ms && links_ms > left_ms ? links_ms : ms;
}

int64_t ft_trial_certain_ms(struct ft_trial *trial, const bool *use)
{
    bool needed[FT_SIGHTINGS_MAX];
    int64_t apart_ms;

    ft_trial_needed(trial, use, needed);
    return ft_trial_any(trial, needed) ? ft_trial_common_ms(trial, needed, &apart_ms)
                                       : ft_trial_newest_ms(trial, use);
}

int64_t ft_evidence_certain_ms(const struct ft_evidence *ev, const struct ft_judging *by)
{
    bool needed[FT_SIGHTINGS_MAX];
    int64_t ms, apart_ms = 0;
    struct ft_trial trial;

    ft_trial_init(&trial, ev, by);
    ft_trial_needed(&trial, trial.usable, needed);
    ms = ft_trial_any(&trial, needed) ? ft_trial_common_ms(&trial, needed, &apart_ms)
                                      : ft_trial_newest_ms(&trial, trial.usable);
    /* The newest sample may be of a part that the next path has as well: the known one is certain
     * as long as each part of it was seen. */
    for (uint16_t i = 0; apart_ms > 0 && i < trial.count; i++)
        if (needed[i] && trial.list[i].last_ms < ms)
            ms = trial.list[i].last_ms;
    return ft_trial_sampled_ms(&trial, trial.usable, ms);
}
