// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <string.h>

#include "lib/fabric/spraying.h"

/* A flow that is sampled so often at a hop, and was recently, is not judged by other flows: what is
 * older is uncertain where others moved. */
#define FRESH_MS     3000
#define OFTEN_MS     1000
#define OFTEN_MIN    3
#define OFTEN_FOR_MS 10000
/* One that is sampled so often cannot move away and back unseen. */
#define DENSE_MS 250

static bool same_path(const struct ft_path *a, const struct ft_path *b)
{
    return a->hop_count == b->hop_count &&
           memcmp(a->hops, b->hops, a->hop_count * sizeof(*a->hops)) == 0;
}

static bool is_known_path(const struct ft_trial *trial, const struct ft_path *path)
{
    return trial->by->known && same_path(trial->by->known, path);
}

static void nothing_certain(struct ft_judgement *j)
{
    for (uint32_t h = 0; h < j->path.hop_count; h++) {
        j->path.hops[h] = (struct ft_hop){FT_NONE, FT_NONE};
        j->switches[h] = FT_NONE;
    }
}

static void begin_common(const struct ft_trial *trial, struct ft_judgement *j,
                         const struct ft_path *path)
{
    j->path = *path;
    for (uint32_t h = 0; h < path->hop_count; h++)
        j->switches[h] = ft_topology_port(trial->t, path->hops[h].in)->switch_id;
}

/* Keeps in *j what its path shares with each of the paths. The ways from the two leaves of a dual
 * ToR NIC may differ in length; then no hop is the same hop. */
static void intersect(const struct ft_trial *trial, struct ft_judgement *j,
                      const struct ft_path *paths, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (paths[i].hop_count != j->path.hop_count) {
            nothing_certain(j);
            return;
        }
        for (uint32_t h = 0; h < j->path.hop_count; h++) {
            struct ft_hop *common = &j->path.hops[h];
            const struct ft_hop *hop = &paths[i].hops[h];

            common->in = ft_topology_end_of_both(trial->t, common->in, hop->in);
            common->out = ft_topology_end_of_both(trial->t, common->out, hop->out);
            if (j->switches[h] != ft_topology_port(trial->t, hop->in)->switch_id)
                j->switches[h] = FT_NONE;
        }
    }
}

/* Adds n candidates, of which the first FT_COMPARED_MAX are in paths, to what *out has of them. */
static void add_candidates(const struct ft_trial *trial, struct ft_judgement *out,
                           const struct ft_path *paths, uint64_t n)
{
    if (n == 0)
        return;
    if (out->candidates == 0)
        begin_common(trial, out, &paths[0]);
    out->candidates += n;
    if (n > FT_COMPARED_MAX)
        nothing_certain(out);
    else
        intersect(trial, out, paths, (size_t)n);
}

/* Counts the candidates of one or two choices of sightings and what all of them agree on. */
static void gather(struct ft_trial *trial, const bool *first, const bool *second,
                   struct ft_judgement *out)
{
    struct ft_path paths[FT_COMPARED_MAX];

    out->candidates = 0;
    out->path.hop_count = 0;
    add_candidates(trial, out, paths,
                   ft_trial_paths(trial, first, paths, FT_COMPARED_MAX, FT_CANDIDATES_LIMIT));
    if (second)
        add_candidates(trial, out, paths,
                       ft_trial_paths(trial, second, paths, FT_COMPARED_MAX, FT_CANDIDATES_LIMIT));
}

static void conclude(struct ft_judgement *out, enum ft_path_state state, enum ft_reason reason)
{
    out->state = state;
    out->reason = reason;
}

static bool are_ends_known(const struct ft_judging *by, struct ft_judgement *out)
{
    conclude(out, FT_PATH_UNRESOLVED, FT_REASON_UNKNOWN_SOURCE);
    if (by->src_nic == FT_NONE)
        return false;
    conclude(out, FT_PATH_UNRESOLVED, FT_REASON_UNKNOWN_DESTINATION);
    if (by->dst_nic == FT_NONE)
        return false;
    conclude(out, FT_PATH_UNRESOLVED, FT_REASON_NO_ROUTE);
    return ft_paths_length(by->t, by->src_nic, by->dst_nic) > 0;
}

static bool is_outlier(struct ft_trial *trial, uint16_t i)
{
    bool alone[FT_SIGHTINGS_MAX] = {false};

    alone[i] = trial->usable[i];
    return trial->usable[i] ? !ft_trial_fits(trial, alone)
                            : !(ft_sighting_switch(&trial->list[i]) & FT_SWITCH_UNKNOWN) &&
                                  trial->list[i].past == FT_PRESENT;
}

/* What is not newer than a sighting elsewhere is of the past: the flow may have come back by
 * another path. */
static void leave_before(struct ft_trial *trial, int64_t last_ms, struct ft_judgement *out)
{
    for (uint16_t i = 0; i < trial->count; i++)
        if (trial->usable[i] && trial->list[i].last_ms <= last_ms) {
            trial->usable[i] = false;
            out->past[i] = true;
            trial->uncertain = true;
        }
}

/* A sighting that no equal-cost path crosses says that the topology is wrong, or that the packet
 * was an outlier, or where the flow went before a link was lost; none is a change of path. It is
 * set aside, for good, once newer samples alone have followed a path for long enough: a link that
 * comes up again must not make it a second path. False while it stands, else *out has the
 * candidates of what is left. */
static bool set_outliers_aside(struct ft_trial *trial, struct ft_judgement *out)
{
    bool outlier[FT_SIGHTINGS_MAX];
    int64_t newest_ms = INT64_MIN, last_ms = INT64_MIN;

    gather(trial, trial->usable, NULL, out);
    if (!trial->off_path && out->candidates > 0)
        return true;
    for (uint16_t i = 0; i < trial->count; i++) {
        outlier[i] = is_outlier(trial, i);
        if (trial->usable[i] && !outlier[i] && trial->list[i].last_ms > newest_ms)
            newest_ms = trial->list[i].last_ms;
    }
    for (uint16_t i = 0; i < trial->count; i++) {
        if (!outlier[i])
            continue;
        if (newest_ms == INT64_MIN ||
            newest_ms - trial->list[i].last_ms < trial->by->policy.hold_down_ms)
            return false;
        if (trial->list[i].last_ms > last_ms)
            last_ms = trial->list[i].last_ms;
    }
    for (uint16_t i = 0; i < trial->count; i++) {
        trial->usable[i] &= !outlier[i];
        out->stray[i] = outlier[i];
    }
    out->stray_ms = last_ms > 0 ? last_ms : 0;
    leave_before(trial, last_ms, out);
    trial->outlier_ms = last_ms;
    gather(trial, trial->usable, NULL, out);
    return true;
}

/* Whether a sighting has a sample each so many milliseconds. Its samples are of two windows, of
 * which one may have just begun. */
static bool is_sampled_each(const struct ft_sighting *s, uint32_t ms)
{
    uint64_t samples = (uint64_t)ft_sighting_samples(s, 0) + ft_sighting_samples(s, 1);
    uint32_t lasted_ms = s->lasted_ms < OFTEN_FOR_MS ? s->lasted_ms : OFTEN_FOR_MS;

    return samples >= OFTEN_MIN && samples * ms >= lasted_ms;
}

static int64_t uncertain_until(const struct ft_trial *trial, uint32_t end)
{
    return end != FT_NONE && ft_is_port(end) ? trial->by->trust->links[end].uncertain_ms
                                             : INT64_MIN;
}

/* Until when evidence at a hop is uncertain: what the flow chose before it counts too. */
static int64_t doubt_at(const struct ft_trial *trial, const struct ft_sighting *s, uint32_t stage,
                        const struct ft_path *path)
{
    int64_t until_ms = uncertain_until(trial, ft_sighting_out(s)), ms;
    uint32_t in = ft_sighting_in(s);

    if (ft_is_port(in)) {
        ms = uncertain_until(trial, ft_topology_port(trial->t, in)->peer);
        until_ms = ms > until_ms ? ms : until_ms;
    }
    if (stage >= path->hop_count || !ft_sighting_matches(s, trial->t, &path->hops[stage]))
        return until_ms;
    for (uint32_t h = 0; h <= stage; h++) {
        ms = uncertain_until(trial, path->hops[h].out);
        until_ms = ms > until_ms ? ms : until_ms;
    }
    return until_ms;
}

static bool may_doubt(const struct ft_trial *trial)
{
    for (uint16_t i = 0; trial->by->trust && i < trial->count; i++)
        if (trial->recent[i] && trial->list[i].last_ms < trial->by->trust->uncertain_ms)
            return true;
    return false;
}

/* A flow on a path that is known does not leave it for a few samples that are late. */
static bool is_fresh(const struct ft_trial *trial, const struct ft_sighting *s)
{
    return trial->by->now_ms - s->last_ms <= FRESH_MS &&
           (trial->by->is_known || is_sampled_each(s, OFTEN_MS));
}

/* Leaves out of recent evidence what is older than a move of other flows on its path, and has not
 * been seen since. */
static void leave_doubtful(struct ft_trial *trial)
{
    struct ft_path path = {.hop_count = 0};

    if (!may_doubt(trial))
        return;
    if (trial->by->known && trial->by->known->hop_count)
        path = *trial->by->known;
    else if (!ft_trial_only_path(trial, trial->recent, &path))
        path.hop_count = 0;
    for (uint16_t i = 0; i < trial->count; i++) {
        const struct ft_sighting *s = &trial->list[i];

        if (!trial->recent[i] || is_fresh(trial, s) ||
            s->last_ms >= doubt_at(trial, s, trial->stage[i], &path))
            continue;
        trial->recent[i] = false;
        trial->uncertain = true;
    }
}

/* Goes back in time as far as all samples allow one path. What contradicts them ended the stretch
 * before. *out has the candidates of all samples. */
static void find_stretch(struct ft_trial *trial, const struct ft_judgement *out)
{
    if (out->candidates > 0) {
        memcpy(trial->recent, trial->usable, sizeof(trial->recent));
        return;
    }
    for (uint32_t i = ft_trial_seen_before(trial, FT_NONE); i != FT_NONE;
         i = ft_trial_seen_before(trial, i)) {
        trial->recent[i] = true;
        if (ft_trial_fits(trial, trial->recent))
            continue;
        trial->recent[i] = false;
        trial->left = i;
        return;
    }
}

/* Whether one recent sighting leaves no other path. */
static bool one_is_enough(struct ft_trial *trial, const bool *use)
{
    int64_t newest = ft_trial_newest_ms(trial, use);
    struct ft_path path;

    if (trial->count == 1)
        return true;
    for (uint16_t i = 0; i < trial->count; i++) {
        bool alone[FT_SIGHTINGS_MAX] = {false};

        alone[i] = use[i] && newest - trial->list[i].last_ms <= FT_APART_MS;
        if (alone[i] && ft_trial_only_path(trial, alone, &path))
            return true;
    }
    return false;
}

/* Whether the sightings that make a path the only one belong to one stretch. */
static bool is_one_stretch(struct ft_trial *trial, const bool *use)
{
    bool enough[FT_SIGHTINGS_MAX];
    int64_t apart, last_ms;

    if (one_is_enough(trial, use))
        return true;
    ft_trial_newest_enough(trial, use, enough);
    last_ms = ft_trial_common_ms(trial, enough, &apart);
    return apart <= 0 ||
           (apart <= FT_APART_MS && trial->by->now_ms - last_ms >= trial->by->policy.tolerance_ms);
}

static void conclude_partial(const struct ft_trial *trial, struct ft_judgement *out,
                             enum ft_reason reason)
{
    ft_trial_leave_sampled(trial, trial->usable, out);
    conclude(out, FT_PATH_PARTIAL, reason);
}

/* Sightings that are not of one stretch: certain is what those allow that are close to the newest,
 * of the hops of those that overlap with it. */
static void conclude_apart(struct ft_trial *trial, struct ft_judgement *out, enum ft_reason reason)
{
    bool recent[FT_SIGHTINGS_MAX];
    int64_t newest = ft_trial_newest_ms(trial, trial->recent), first_ms = INT64_MIN;

    for (uint16_t i = 0; i < trial->count; i++) {
        const struct ft_sighting *s = &trial->list[i];

        recent[i] = trial->recent[i] && newest - s->last_ms <= FT_APART_MS;
        if (recent[i] && s->last_ms == newest && ft_sighting_first_ms(s) > first_ms)
            first_ms = ft_sighting_first_ms(s);
    }
    gather(trial, recent, NULL, out);
    for (uint16_t i = 0; i < trial->count; i++)
        recent[i] = recent[i] && trial->list[i].last_ms >= first_ms;
    ft_trial_leave_sampled(trial, recent, out);
    conclude(out, FT_PATH_PARTIAL, reason);
}

/* Whether a sighting may as well be of the path before. */
static bool is_of_both(struct ft_trial *trial, uint16_t i)
{
    const struct ft_path *known = trial->by->known;
    bool pair[FT_SIGHTINGS_MAX] = {false};

    if (known && known->hop_count)
        return trial->stage[i] < known->hop_count &&
               ft_sighting_matches(&trial->list[i], trial->t, &known->hops[trial->stage[i]]);
    if (trial->left == FT_NONE)
        return false;
    pair[i] = pair[trial->left] = true;
    return ft_trial_fits(trial, pair);
}

/* Since when all that makes the path the only one, and is of it alone, has been seen. */
static int64_t since_ms(struct ft_trial *trial, const bool *use)
{
    bool needed[FT_SIGHTINGS_MAX];
    int64_t since = INT64_MIN;
    int64_t left_ms = trial->outlier_ms;

    if (trial->left != FT_NONE && trial->list[trial->left].last_ms > left_ms)
        left_ms = trial->list[trial->left].last_ms;
    ft_trial_needed(trial, use, needed);
    for (uint16_t i = 0; i < trial->count; i++) {
        int64_t first_ms = ft_sighting_first_ms(&trial->list[i]);

        /* Of two exporters one is later: the samples before the last one elsewhere are of the same
         * move. */
        if (first_ms <= left_ms && trial->list[i].last_ms > left_ms &&
            left_ms - first_ms <= trial->by->policy.tolerance_ms &&
            is_sampled_each(&trial->list[i], DENSE_MS))
            first_ms = left_ms + 1;
        if (needed[i] && first_ms > left_ms && first_ms > since && !is_of_both(trial, i))
            since = first_ms;
    }
    return ft_trial_sampled_ms(trial, use,
                               since != INT64_MIN ? since : ft_trial_certain_ms(trial, use));
}

static void resolve(struct ft_trial *trial, const bool *use, struct ft_judgement *out)
{
    conclude(out, FT_PATH_RESOLVED, FT_REASON_NONE);
    if (!is_known_path(trial, &out->path))
        out->since_ms = since_ms(trial, use);
    else if (trial->by->is_known)
        out->since_ms = trial->by->known_since_ms;
    else
        out->since_ms = ft_trial_certain_ms(trial, use);
}

/* Whether samples attest each link of a path; of one stretch where the topology may miss links. */
static bool is_of_one_time(const struct ft_trial *trial, const bool *use,
                           const struct ft_path *path)
{
    int64_t links_ms, apart_ms;

    if (!ft_trial_is_attested(trial, use, path))
        return false;
    if (!ft_trial_may_miss_links(trial))
        return true;
    links_ms = ft_trial_links_ms(trial, use, path, &apart_ms);
    return apart_ms <= 0 || (apart_ms <= FT_APART_MS &&
                             trial->by->now_ms - links_ms >= trial->by->policy.tolerance_ms);
}

/* Whether samples attest each link of a path. After a move, or a change of links, those do that are
 * recently: the topology may not know of the next change yet, and leave but one path when the flow
 * has another. */
static bool is_attested(struct ft_trial *trial, const struct ft_path *path)
{
    bool use[FT_SIGHTINGS_MAX];
    int64_t since_ms;

    if (!ft_trial_is_unquiet(trial))
        return ft_trial_is_attested(trial, trial->recent, path);
    since_ms = ft_trial_newest_ms(trial, trial->recent) - FT_STRETCH_GAP_MS;
    for (uint16_t i = 0; i < trial->count; i++)
        use[i] = trial->recent[i] && trial->list[i].last_ms >= since_ms;
    return is_of_one_time(trial, use, path);
}

/* All evidence is of one stretch, as far as it goes. *out has the candidates of all samples. */
static void judge_steady(struct ft_trial *trial, const struct ft_evidence *ev,
                         struct ft_judgement *out)
{
    enum ft_reason reason = trial->uncertain ? FT_REASON_CHANGING : FT_REASON_AMBIGUOUS;

    if (memcmp(trial->recent, trial->usable, trial->count * sizeof(*trial->recent)) != 0)
        gather(trial, trial->recent, NULL, out);
    if (!ft_trial_any(trial, trial->recent) || out->candidates != 1) {
        conclude_partial(trial, out, reason);
        return;
    }
    if (trial->by->is_known && is_known_path(trial, &out->path)) {
        resolve(trial, trial->recent, out);
        return;
    }
    if (!is_one_stretch(trial, trial->recent)) {
        conclude_apart(trial, out, reason);
    } else if (!is_attested(trial, &out->path)) {
        conclude_partial(trial, out, FT_REASON_UNCONFIRMED);
    } else if (ft_spraying_may_hide(trial, ev, trial->recent)) {
        conclude_partial(trial, out, FT_REASON_FEW_SAMPLES);
    } else {
        resolve(trial, trial->recent, out);
    }
}

/* What certainly came after the last sample of the path before: by as much as exporters may differ,
 * or in the order of one source. */
static void find_firm(const struct ft_trial *trial, bool *confirmed_part)
{
    const struct ft_sighting *left = &trial->list[trial->left];

    for (uint16_t i = 0; i < trial->count; i++) {
        const struct ft_sighting *s = &trial->list[i];

        confirmed_part[i] =
            trial->recent[i] && (s->last_ms >= left->last_ms + trial->by->policy.tolerance_ms ||
                                 (s->last_ms > left->last_ms && ft_sightings_differ(s, left)));
    }
}

/* Whether the flow has been seen on its present path alone for long enough. */
static bool is_stable(const struct ft_trial *trial, const bool *confirmed_part)
{
    return ft_trial_newest_ms(trial, confirmed_part) - trial->list[trial->left].last_ms >=
           trial->by->policy.hold_down_ms;
}

/* What the flow left is past; of a path that continues, only what contradicts it. */
static void find_past(const struct ft_trial *trial, const struct ft_path *path, bool goes_on,
                      struct ft_judgement *out)
{
    int64_t left_ms = trial->list[trial->left].last_ms;

    for (uint16_t i = 0; i < trial->count; i++) {
        const struct ft_sighting *s = &trial->list[i];

        out->past[i] |=
            trial->usable[i] && s->last_ms <= left_ms &&
            !(goes_on && ft_sighting_matches(s, trial->t, &path->hops[trial->stage[i]]));
    }
}

/* Whether the samples that a flow is back on its known path are of where it had left it, or as many
 * as a new path needs: others may be of a path that goes there by the same hops. */
static bool is_back(struct ft_trial *trial, const bool *confirmed_part, const struct ft_path *path)
{
    for (uint16_t i = 0; i < trial->count; i++)
        if (confirmed_part[i] && trial->stage[i] == trial->stage[trial->left])
            return true;
    return is_one_stretch(trial, confirmed_part) &&
           ft_trial_is_attested(trial, confirmed_part, path);
}

static void judge_changed(struct ft_trial *trial, const struct ft_evidence *ev,
                          struct ft_judgement *out)
{
    bool confirmed_part[FT_SIGHTINGS_MAX], before[FT_SIGHTINGS_MAX];
    struct ft_path path;

    out->contradicted = true;
    out->left_ms = trial->list[trial->left].last_ms;
    find_firm(trial, confirmed_part);
    if (ft_trial_any(trial, confirmed_part) && ft_trial_only_path(trial, confirmed_part, &path)) {
        bool goes_on = is_known_path(trial, &path);

        if (is_stable(trial, confirmed_part) && !ft_spraying_may_hide(trial, ev, confirmed_part) &&
            (goes_on ? ft_spraying_is_steady(ev) && is_back(trial, confirmed_part, &path)
                     : ft_spraying_is_ruled_out(trial, ev, confirmed_part) &&
                           is_one_stretch(trial, confirmed_part) &&
                           is_of_one_time(trial, confirmed_part, &path))) {
            out->candidates = 1;
            begin_common(trial, out, &path);
            out->moved = !goes_on;
            out->among_sprayed = ft_spraying_is_known(trial);
            find_past(trial, &path, goes_on, out);
            resolve(trial, confirmed_part, out);
            return;
        }
    }
    out->sprayed = ft_spraying_shows(trial, ev);
    if (out->sprayed && ft_trial_links_are_confirmed(trial)) {
        conclude(out, FT_PATH_MULTIPATH, FT_REASON_NONE);
        return;
    }
    for (uint16_t i = 0; i < trial->count; i++)
        before[i] = trial->usable[i] && !trial->recent[i];
    if (!ft_trial_fits(trial, before)) {
        memset(before, 0, sizeof(before));
        before[trial->left] = true;
    }
    gather(trial, trial->recent, before, out);
    conclude_partial(trial, out, out->sprayed ? FT_REASON_UNCONFIRMED : FT_REASON_CHANGING);
}

void ft_evidence_judge(const struct ft_evidence *ev, const struct ft_judging *by,
                       struct ft_judgement *out)
{
    struct ft_trial trial;

    *out = (struct ft_judgement){.path.hop_count = 0};
    if (by->several) {
        conclude(out, FT_PATH_UNRESOLVED, FT_REASON_SEVERAL_NETWORKS);
        return;
    }
    if (!are_ends_known(by, out))
        return;
    ft_trial_init(&trial, ev, by);
    if (!trial.known) {
        conclude(out, FT_PATH_UNRESOLVED,
                 trial.strange ? FT_REASON_UNKNOWN_SWITCH : FT_REASON_NO_SAMPLES);
        return;
    }
    if (!set_outliers_aside(&trial, out)) {
        out->candidates = 0;
        out->path.hop_count = 0;
        conclude(out, FT_PATH_UNRESOLVED, FT_REASON_OFF_PATH);
        return;
    }
    find_stretch(&trial, out);
    leave_doubtful(&trial);
    if (trial.left == FT_NONE)
        judge_steady(&trial, ev, out);
    else
        judge_changed(&trial, ev, out);
}
