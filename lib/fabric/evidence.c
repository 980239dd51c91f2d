// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/evidence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CANDIDATES_LIMIT 65536
/* Candidate paths that are compared hop by hop for what they agree on; beyond that, nothing is
 * certain. */
#define COMPARED_MAX 64
/* A change of path is believed when spraying would leave its other paths unseen this rarely. */
#define SPRAY_DOUBT 0.01

void ft_evidence_init(struct ft_evidence *ev)
{
    memset(ev, 0, sizeof(*ev));
}

void ft_evidence_free(struct ft_evidence *ev)
{
    if (ev->size)
        free(ev->list);
    ft_evidence_init(ev);
}

/* An entry of a table may not point into itself before it is in place, so the own list is found
 * anew each time. */
static struct ft_sighting *list_of(const struct ft_evidence *ev)
{
    return ev->size ? ev->list : (struct ft_sighting *)(uintptr_t)ev->own;
}

static bool grow(struct ft_evidence *ev)
{
    uint16_t size = ev->size ? ev->size * 2 : FT_SIGHTINGS_OWN * 2;
    struct ft_sighting *list;

    list = realloc(ev->size ? ev->list : NULL, size * sizeof(*list));
    if (!list)
        return false;
    if (!ev->size)
        memcpy(list, ev->own, sizeof(ev->own));
    ev->list = list;
    ev->size = size;
    return true;
}

struct ft_sighting *ft_evidence_sight(struct ft_evidence *ev, uint32_t switch_id, uint32_t in,
                                      uint32_t out, uint32_t point, bool *fresh)
{
    struct ft_sighting *list = list_of(ev);
    struct ft_sighting *s;

    for (uint16_t i = 0; i < ev->count; i++) {
        s = &list[i];
        if (s->switch_id == switch_id && s->in == in && s->out == out && s->point == point) {
            *fresh = false;
            return s;
        }
    }
    if (ev->count == FT_SIGHTINGS_MAX)
        return NULL;
    if (ev->count == (ev->size ? ev->size : FT_SIGHTINGS_OWN) && !grow(ev))
        return NULL;
    s = &list_of(ev)[ev->count++];
    *s = (struct ft_sighting){.switch_id = switch_id, .in = in, .out = out, .point = point};
    *fresh = true;
    return s;
}

static void drop(struct ft_evidence *ev, const bool *gone)
{
    struct ft_sighting *list = list_of(ev);
    uint16_t kept = 0;

    for (uint16_t i = 0; i < ev->count; i++)
        if (!gone[i])
            list[kept++] = list[i];
    ev->count = kept;
}

bool ft_evidence_forget(struct ft_evidence *ev, int64_t before_ms)
{
    const struct ft_sighting *list = list_of(ev);
    bool gone[FT_SIGHTINGS_MAX];
    bool any = false;

    for (uint16_t i = 0; i < ev->count; i++) {
        gone[i] = list[i].last_ms < before_ms;
        any |= gone[i];
    }
    if (any)
        drop(ev, gone);
    return any;
}

/* The case of one flow: its evidence between its ends, and which sightings a walk must satisfy. */
struct trial {
    const struct ft_topology *t;
    const struct ft_sighting *list;
    uint16_t count;
    uint32_t src, dst;
    uint32_t stage[FT_SIGHTINGS_MAX]; /* FT_NONE: not usable */
    bool use[FT_SIGHTINGS_MAX];
};

static bool matches(const struct trial *trial, const struct ft_sighting *s,
                    const struct ft_hop *hop)
{
    return ft_topology_port(trial->t, hop->in)->switch_id == s->switch_id &&
           (s->in == FT_NONE || s->in == hop->in) && (s->out == FT_NONE || s->out == hop->out);
}

/* A packet crosses one switch a stage, so every sighting of the stage must match the hop. */
static bool accept_all(void *arg, uint32_t stage, const struct ft_hop *hop)
{
    const struct trial *trial = arg;

    for (uint16_t i = 0; i < trial->count; i++)
        if (trial->use[i] && trial->stage[i] == stage && !matches(trial, &trial->list[i], hop))
            return false;
    return true;
}

/* Several paths at once: one matching sighting is enough, if the stage has any. */
static bool accept_any(void *arg, uint32_t stage, const struct ft_hop *hop)
{
    const struct trial *trial = arg;
    bool sampled = false;

    for (uint16_t i = 0; i < trial->count; i++) {
        if (!trial->use[i] || trial->stage[i] != stage)
            continue;
        if (matches(trial, &trial->list[i], hop))
            return true;
        sampled = true;
    }
    return !sampled;
}

static void trial_init(struct trial *trial, const struct ft_evidence *ev,
                       const struct ft_topology *t, uint32_t src, uint32_t dst, bool *known,
                       bool *off_path)
{
    trial->t = t;
    trial->list = list_of(ev);
    trial->count = ev->count;
    trial->src = src;
    trial->dst = dst;
    *known = false;
    *off_path = false;
    for (uint16_t i = 0; i < ev->count; i++) {
        const struct ft_sighting *s = &trial->list[i];

        trial->stage[i] = FT_NONE;
        trial->use[i] = false;
        if (s->switch_id & FT_SWITCH_UNKNOWN)
            continue;
        *known = true;
        trial->stage[i] = ft_paths_stage(t, src, dst, s->switch_id);
        trial->use[i] = trial->stage[i] != FT_NONE;
        *off_path |= !trial->use[i];
    }
}

static uint64_t count_paths(struct trial *trial, struct ft_path *paths, size_t max, uint64_t limit)
{
    return ft_paths_walk(trial->t, trial->src, trial->dst, accept_all, trial, paths, max, limit);
}

static void nothing_certain(struct ft_path *path)
{
    for (uint32_t h = 0; h < path->hop_count; h++)
        path->hops[h] = (struct ft_hop){FT_NONE, FT_NONE};
}

/* Keeps in *common what it shares with each of the paths. The ways from the two leaves of a dual
 * ToR NIC may differ in length; then no hop is the same hop. */
static void intersect(struct ft_path *common, const struct ft_path *paths, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (paths[i].hop_count != common->hop_count) {
            nothing_certain(common);
            return;
        }
        for (uint32_t h = 0; h < common->hop_count; h++) {
            if (common->hops[h].in != paths[i].hops[h].in)
                common->hops[h].in = FT_NONE;
            if (common->hops[h].out != paths[i].hops[h].out)
                common->hops[h].out = FT_NONE;
        }
    }
}

/* Counts the candidates of one or two choices of sightings and what all of them agree on. */
static void gather(struct trial *trial, const bool *first, const bool *second,
                   struct ft_judgement *out)
{
    struct ft_path paths[COMPARED_MAX];
    const bool *choice[2] = {first, second};
    bool begun = false;

    out->candidates = 0;
    for (int c = 0; c < 2; c++) {
        uint64_t n;

        if (!choice[c])
            continue;
        memcpy(trial->use, choice[c], trial->count * sizeof(*trial->use));
        n = count_paths(trial, paths, COMPARED_MAX, CANDIDATES_LIMIT);
        if (n == 0)
            continue;
        if (!begun)
            out->path = paths[0];
        begun = true;
        out->candidates += n;
        if (n > COMPARED_MAX)
            nothing_certain(&out->path);
        else
            intersect(&out->path, paths, (size_t)n);
    }
}

/* How many samples of one place must all have taken the new path before spraying over as many paths
 * as there are is ruled out. */
static uint64_t samples_needed(const struct trial *trial)
{
    uint64_t ways =
        ft_paths_walk(trial->t, trial->src, trial->dst, NULL, NULL, NULL, 0, CANDIDATES_LIMIT);

    if (ways < 2)
        return 1;
    return 1 + (uint64_t)ceil(log(1 / SPRAY_DOUBT) / log((double)ways));
}

struct split {
    bool old[FT_SIGHTINGS_MAX];   /* also those that span the change */
    bool young[FT_SIGHTINGS_MAX]; /* likewise */
    bool gone[FT_SIGHTINGS_MAX];  /* old alone */
    int64_t old_last_ms, young_last_ms;
    uint64_t young_samples; /* of the best-sampled sighting */
};

/* Splits the sightings at a moment: what ended by then is old, what began then is young, what spans
 * it belongs to both. False when either side is empty. */
static bool split_at(const struct trial *trial, const bool *usable, int64_t at_ms,
                     int64_t tolerance_ms, struct split *s)
{
    bool any_old = false, any_young = false;

    s->old_last_ms = s->young_last_ms = INT64_MIN;
    s->young_samples = 0;
    for (uint16_t i = 0; i < trial->count; i++) {
        const struct ft_sighting *g = &trial->list[i];
        bool young = g->first_ms >= at_ms;
        bool old = !young && g->last_ms < at_ms + tolerance_ms;
        uint64_t samples = (uint64_t)g->samples[0] + g->samples[1];

        s->old[i] = usable[i] && !young;
        s->young[i] = usable[i] && !old;
        s->gone[i] = usable[i] && old;
        if (!usable[i])
            continue;
        any_old |= old;
        any_young |= young;
        if (old && g->last_ms > s->old_last_ms)
            s->old_last_ms = g->last_ms;
        if (young && g->last_ms > s->young_last_ms)
            s->young_last_ms = g->last_ms;
        if (young && samples > s->young_samples)
            s->young_samples = samples;
    }
    return any_old && any_young;
}

static bool consistent(struct trial *trial, const bool *use)
{
    memcpy(trial->use, use, trial->count * sizeof(*use));
    return count_paths(trial, NULL, 0, 1) > 0;
}

/* Looks for one moment at which a change of path explains all sightings; the latest such. */
static bool find_change(struct trial *trial, const bool *usable, int64_t tolerance_ms,
                        struct split *found)
{
    int64_t below = INT64_MAX;

    for (uint16_t n = 0; n < trial->count; n++) {
        int64_t at_ms = INT64_MIN;

        for (uint16_t i = 0; i < trial->count; i++)
            if (usable[i] && trial->list[i].first_ms < below && trial->list[i].first_ms > at_ms)
                at_ms = trial->list[i].first_ms;
        if (at_ms == INT64_MIN)
            return false;
        below = at_ms;
        if (split_at(trial, usable, at_ms, tolerance_ms, found) &&
            consistent(trial, found->young) && consistent(trial, found->old))
            return true;
    }
    return false;
}

/* A sighting that no equal-cost path crosses says that the topology is wrong or the packet went
 * astray; neither is a change of path. */
static bool any_contradicts(struct trial *trial, const bool *usable)
{
    bool alone[FT_SIGHTINGS_MAX] = {false};

    for (uint16_t i = 0; i < trial->count; i++) {
        bool fits;

        if (!usable[i])
            continue;
        alone[i] = true;
        fits = consistent(trial, alone);
        alone[i] = false;
        if (!fits)
            return true;
    }
    return false;
}

static void settle(struct ft_judgement *out, enum ft_path_state state, enum ft_reason reason)
{
    out->state = state;
    out->reason = reason;
}

static void conclude(struct ft_judgement *out)
{
    if (out->candidates == 1)
        settle(out, FT_PATH_RESOLVED, FT_REASON_NONE);
    else if (out->candidates > 1)
        settle(out, FT_PATH_PARTIAL, FT_REASON_AMBIGUOUS);
}

void ft_evidence_judge(struct ft_evidence *ev, const struct ft_topology *t, uint32_t src_nic,
                       uint32_t dst_nic, const struct ft_evidence_policy *policy,
                       struct ft_judgement *out)
{
    struct trial trial;
    struct split split;
    bool usable[FT_SIGHTINGS_MAX];
    bool known, off_path;

    *out = (struct ft_judgement){.path.hop_count = 0};
    settle(out, FT_PATH_UNRESOLVED, FT_REASON_UNKNOWN_SOURCE);
    if (src_nic == FT_NONE)
        return;
    settle(out, FT_PATH_UNRESOLVED, FT_REASON_UNKNOWN_DESTINATION);
    if (dst_nic == FT_NONE)
        return;
    settle(out, FT_PATH_UNRESOLVED, FT_REASON_NO_ROUTE);
    if (ft_paths_length(t, src_nic, dst_nic) == 0)
        return;
    trial_init(&trial, ev, t, src_nic, dst_nic, &known, &off_path);
    settle(out, FT_PATH_UNRESOLVED, FT_REASON_OFF_PATH);
    if (off_path)
        return;
    memcpy(usable, trial.use, sizeof(usable));
    gather(&trial, usable, NULL, out);
    if (!known && out->candidates != 1) {
        settle(out, FT_PATH_UNRESOLVED,
               ev->count ? FT_REASON_UNKNOWN_SWITCH : FT_REASON_NO_SAMPLES);
        out->path.hop_count = 0;
        return;
    }
    conclude(out);
    if (out->candidates > 0)
        return;
    if (any_contradicts(&trial, usable)) {
        settle(out, FT_PATH_UNRESOLVED, FT_REASON_OFF_PATH);
        return;
    }
    if (!find_change(&trial, usable, policy->tolerance_ms, &split)) {
        settle(out, FT_PATH_MULTIPATH, FT_REASON_NONE);
        return;
    }
    if (split.young_last_ms - split.old_last_ms < policy->settle_ms ||
        split.young_samples < samples_needed(&trial)) {
        gather(&trial, split.young, split.old, out);
        settle(out, FT_PATH_PARTIAL, FT_REASON_CHANGING);
        return;
    }
    gather(&trial, split.young, NULL, out);
    conclude(out);
    out->changed = true;
    drop(ev, split.gone);
}

/* The stage that tells the paths apart best: most recent samples among those with alternatives. */
static uint32_t telling_stage(const struct trial *trial)
{
    uint64_t samples[FT_PATH_HOPS_MAX] = {0};
    uint16_t ways[FT_PATH_HOPS_MAX] = {0};
    uint32_t best = FT_NONE;

    for (uint16_t i = 0; i < trial->count; i++) {
        const struct ft_sighting *s = &trial->list[i];

        if (!trial->use[i])
            continue;
        samples[trial->stage[i]] += (uint64_t)s->samples[0] + s->samples[1];
        ways[trial->stage[i]]++;
    }
    for (uint32_t stage = 0; stage < FT_PATH_HOPS_MAX; stage++)
        if (ways[stage] > 1 && (best == FT_NONE || samples[stage] > samples[best]))
            best = stage;
    return best;
}

size_t ft_evidence_shares(const struct ft_evidence *ev, const struct ft_topology *t,
                          uint32_t src_nic, uint32_t dst_nic, struct ft_path_share *shares,
                          size_t max)
{
    struct ft_path paths[COMPARED_MAX];
    uint32_t alike[FT_SIGHTINGS_MAX] = {0};
    struct trial trial;
    bool known, off_path;
    uint64_t count;
    uint32_t stage;
    double sum = 0;

    trial_init(&trial, ev, t, src_nic, dst_nic, &known, &off_path);
    stage = telling_stage(&trial);
    if (stage == FT_NONE)
        return 0;
    if (max > COMPARED_MAX)
        max = COMPARED_MAX;
    count = ft_paths_walk(t, src_nic, dst_nic, accept_any, &trial, paths, max, max);
    if (count > max)
        count = max;
    /* A sighting that several paths pass is split evenly among them. */
    for (uint16_t i = 0; i < trial.count; i++)
        for (uint64_t p = 0; p < count; p++)
            alike[i] += trial.use[i] && trial.stage[i] == stage &&
                        matches(&trial, &trial.list[i], &paths[p].hops[stage]);
    for (uint64_t p = 0; p < count; p++) {
        shares[p] = (struct ft_path_share){.path = paths[p]};
        for (uint16_t i = 0; i < trial.count; i++) {
            const struct ft_sighting *s = &trial.list[i];

            if (trial.use[i] && trial.stage[i] == stage &&
                matches(&trial, s, &paths[p].hops[stage]))
                shares[p].share += ((double)s->samples[0] + s->samples[1]) / alike[i];
        }
        sum += shares[p].share;
    }
    for (uint64_t p = 0; p < count; p++)
        shares[p].share = sum > 0 ? shares[p].share / sum : 1.0 / (double)count;
    return (size_t)count;
}

void ft_evidence_at_hop(const struct ft_evidence *ev, const struct ft_topology *t,
                        const struct ft_hop *hop, uint64_t *here, uint64_t *by_hop)
{
    const struct ft_sighting *list = list_of(ev);
    uint32_t port = hop->out != FT_NONE ? hop->out : hop->in;

    *here = *by_hop = 0;
    if (port == FT_NONE)
        return;
    for (uint16_t i = 0; i < ev->count; i++) {
        const struct ft_sighting *s = &list[i];
        uint64_t samples = (uint64_t)s->samples[0] + s->samples[1];

        if (s->switch_id != ft_topology_port(t, port)->switch_id)
            continue;
        *here += samples;
        if (s->out == FT_NONE || s->out == hop->out)
            *by_hop += samples;
    }
}

void ft_evidence_volume(const struct ft_evidence *ev, unsigned slot, uint64_t *samples,
                        uint64_t *bytes)
{
    const struct ft_sighting *list = list_of(ev);

    *samples = *bytes = 0;
    for (uint16_t i = 0; i < ev->count; i++) {
        uint64_t s = 0, b = 0;
        bool before = false;

        /* Alternatives of one place belong together; each place is summed at its first. */
        for (uint16_t j = 0; j < ev->count; j++) {
            if (list[j].switch_id != list[i].switch_id || list[j].point != list[i].point)
                continue;
            before |= j < i;
            s += list[j].samples[slot];
            b += list[j].bytes[slot];
        }
        if (!before && s > *samples) {
            *samples = s;
            *bytes = b;
        }
    }
}

bool ft_evidence_above_leaf(const struct ft_evidence *ev, const struct ft_topology *t)
{
    const struct ft_sighting *list = list_of(ev);

    for (uint16_t i = 0; i < ev->count; i++)
        if (!(list[i].switch_id & FT_SWITCH_UNKNOWN) &&
            ft_topology_switch(t, list[i].switch_id)->tier > FT_TIER_LEAF)
            return true;
    return false;
}

const char *ft_reason_name(enum ft_reason reason)
{
    static const char *const names[] = {
        [FT_REASON_NONE] = NULL,
        [FT_REASON_NO_SAMPLES] = "no_samples",
        [FT_REASON_UNKNOWN_SOURCE] = "unknown_source",
        [FT_REASON_UNKNOWN_DESTINATION] = "unknown_destination",
        [FT_REASON_UNKNOWN_SWITCH] = "unknown_switch",
        [FT_REASON_NO_ROUTE] = "no_route",
        [FT_REASON_OFF_PATH] = "off_path",
        [FT_REASON_AMBIGUOUS] = "ambiguous",
        [FT_REASON_CHANGING] = "changing",
    };

    return names[reason];
}
