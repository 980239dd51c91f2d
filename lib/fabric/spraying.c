// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/spraying.h"

#include <math.h>

/* A change of path is believed when spraying would leave its other paths unseen this rarely. */
#define SPRAY_DOUBT 0.01
/* A flow is sprayed when it came back so often, and once in so many samples at the least. A link
 * that goes down and up again every five seconds stays below both. */
#define RETURNS_SPRAYED 6
#define RETURNS_ONE_IN  3
/* One that came back so often since it was on a path for certain is steady no more. */
#define RETURNS_FEW 3
/* Where flows are sprayed: of one never seen elsewhere, of one that was, and of one that was once
 * and had stayed where it was for long. */
#define CHANCE_STEADY  1e-4
#define CHANCE_CHANGED 1e-6
#define CHANCE_MOVED   1e-3
/* So long after a sprayed flow was seen, others may be. */
#define SPRAYED_FOR_MS 600000
/* More ways than this need no more samples. */
#define PATHS_MAX 1024

static uint64_t paths_of(const struct ft_trial *trial)
{
    return ft_paths_walk(trial->t, trial->by->src_nic, trial->by->dst_nic, NULL, NULL, NULL, 0,
                         PATHS_MAX);
}

/* How many samples must all be of one path before spraying over so many ways would show that only
 * by a chance. */
static double samples_needed(uint64_t path_count, double chance)
{
    return path_count < 2 ? 1 : 1 + ceil(log(1 / chance) / log((double)path_count));
}

bool ft_spraying_is_steady(const struct ft_evidence *ev)
{
    return ev->stays > RETURNS_ONE_IN * ev->returns;
}

/* How many samples a sighting has since a moment, as they are spread over its stretch. */
static double of_stretch(const struct ft_sighting *s, int64_t ms)
{
    double samples = (double)ft_sighting_samples(s, 0) + ft_sighting_samples(s, 1);

    if (ft_sighting_first_ms(s) > ms)
        return samples;
    return samples * (double)(s->last_ms - ms) / (s->lasted_ms + 1);
}

/* The same, or since its stretch began, of the window of its last sample and the window before:
 * each has its own count. */
static double samples_since(const struct ft_trial *trial, const struct ft_sighting *s, int64_t ms)
{
    int64_t window_ms = trial->by->window_ms, begun_ms;
    double newest, before;

    if (window_ms <= 0)
        return of_stretch(s, ms);
    begun_ms = s->last_ms - s->last_ms % window_ms;
    newest = ft_sighting_samples(s, s->last_ms / window_ms & 1);
    before = ft_sighting_samples(s, !(s->last_ms / window_ms & 1));
    ms = ft_sighting_first_ms(s) > ms ? ft_sighting_first_ms(s) - 1 : ms;
    if (ms >= begun_ms)
        return newest * (double)(s->last_ms - ms) / (double)(s->last_ms - begun_ms + 1);
    if (ms <= begun_ms - window_ms)
        return newest + before;
    return newest + before * (double)(begun_ms - ms) / (double)window_ms;
}

bool ft_spraying_is_ruled_out(const struct ft_trial *trial, const struct ft_evidence *ev,
                              const bool *use)
{
    double needed = samples_needed(paths_of(trial), SPRAY_DOUBT);
    bool came_back = ev->returns >= RETURNS_FEW;
    int64_t since_ms = came_back ? trial->list[trial->left].last_ms : INT64_MIN;

    if (ev->stays >= needed && ft_spraying_is_steady(ev) && !came_back)
        return true;
    for (uint16_t i = 0; i < trial->count; i++)
        if (use[i] && samples_since(trial, &trial->list[i], since_ms) >= needed)
            return true;
    return false;
}

/* How long samples have contradicted each other. */
static int64_t contradicted_for_ms(const struct ft_trial *trial)
{
    const struct ft_sighting *left = &trial->list[trial->left];
    int64_t newest = ft_trial_newest_ms(trial, trial->recent), oldest = newest;
    int64_t begun = ft_sighting_first_ms(left);

    for (uint16_t i = 0; i < trial->count; i++) {
        const struct ft_sighting *s = &trial->list[i];

        if (trial->usable[i] && s->last_ms < oldest)
            oldest = s->last_ms;
        if (trial->recent[i] && s->last_ms == newest && ft_sighting_first_ms(s) > begun)
            begun = ft_sighting_first_ms(s);
    }
    return newest - (begun < oldest ? begun : oldest);
}

bool ft_spraying_shows(const struct ft_trial *trial, const struct ft_evidence *ev)
{
    const struct ft_evidence_policy *policy = &trial->by->policy;

    return ev->returns >= RETURNS_SPRAYED &&
           RETURNS_ONE_IN * ev->returns >= ev->returns + ev->stays &&
           contradicted_for_ms(trial) >= policy->hold_down_ms + policy->tolerance_ms;
}

bool ft_spraying_is_known(const struct ft_trial *trial)
{
    const struct ft_trust *trust = trial->by->trust;

    return trust && trust->sprayed_ms >= trial->by->now_ms - SPRAYED_FOR_MS;
}

/* What a sample of a sighting says against spraying: the log of how rarely a packet that may take
 * any of the ways would be seen there. */
static double weight(struct ft_trial *trial, uint16_t i, uint64_t path_count)
{
    bool alone[FT_SIGHTINGS_MAX] = {false};
    uint64_t n;

    alone[i] = true;
    n = ft_trial_paths(trial, alone, NULL, 0, path_count);
    return n ? log((double)path_count / (double)n) : 0;
}

bool ft_spraying_may_hide(struct ft_trial *trial, const struct ft_evidence *ev, const bool *use)
{
    bool changed = trial->left != FT_NONE;
    int64_t since_ms = changed ? trial->list[trial->left].last_ms : INT64_MIN;
    double against = 0, chance = CHANCE_STEADY;
    uint64_t path_count;
    bool stayed;

    if (!ft_spraying_is_known(trial))
        return false;
    path_count = paths_of(trial);
    stayed = ev->returns == 0 && ev->stays >= samples_needed(path_count, CHANCE_STEADY);
    if (path_count < 2 || (stayed && !changed))
        return false;
    if (changed)
        chance = stayed ? CHANCE_MOVED : CHANCE_CHANGED;
    for (uint16_t i = 0; i < trial->count; i++)
        if (use[i] && trial->list[i].last_ms > since_ms &&
            !ft_evidence_is_repeated(trial->list, trial->count, i))
            against += weight(trial, i, path_count) *
                       fmax(1, samples_since(trial, &trial->list[i], since_ms));
    /* One of the ways it does take. */
    return against < log((double)path_count) - log(chance);
}
