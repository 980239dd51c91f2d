// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <math.h>
#include <string.h>

#include "lib/fabric/evidence_impl.h"

#define CANDIDATES_LIMIT 65536
/* Candidate paths that are compared hop by hop for what they agree on; beyond that, nothing is
 * certain. */
#define COMPARED_MAX 64
/* A change of path is believed when spraying would leave its other paths unseen this rarely. */
#define SPRAY_DOUBT 0.01
/* A link that goes down and up, twice, makes three. */
#define RETURNS_SPRAYED 4

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
           ft_topology_ends_agree(trial->t, s->in, hop->in) &&
           ft_topology_ends_agree(trial->t, s->out, hop->out);
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
    trial->list = ft_evidence_list(ev);
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

static void nothing_certain(struct ft_judgement *j)
{
    for (uint32_t h = 0; h < j->path.hop_count; h++) {
        j->path.hops[h] = (struct ft_hop){FT_NONE, FT_NONE};
        j->switches[h] = FT_NONE;
    }
}

static void begin_common(const struct trial *trial, struct ft_judgement *j,
                         const struct ft_path *path)
{
    j->path = *path;
    for (uint32_t h = 0; h < path->hop_count; h++)
        j->switches[h] = ft_topology_port(trial->t, path->hops[h].in)->switch_id;
}

/* Keeps in *j what its path shares with each of the paths. The ways from the two leaves of a dual
 * ToR NIC may differ in length; then no hop is the same hop. */
static void intersect(const struct trial *trial, struct ft_judgement *j,
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
            begin_common(trial, out, &paths[0]);
        begun = true;
        out->candidates += n;
        if (n > COMPARED_MAX)
            nothing_certain(out);
        else
            intersect(trial, out, paths, (size_t)n);
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

static bool consistent(struct trial *trial, const bool *use)
{
    memcpy(trial->use, use, trial->count * sizeof(*use));
    return count_paths(trial, NULL, 0, 1) > 0;
}

/* Counts the paths that the sightings allow one by one, and what these agree on. */
static void gather_any(struct trial *trial, struct ft_judgement *out)
{
    struct ft_path paths[COMPARED_MAX];
    uint64_t n = ft_paths_walk(trial->t, trial->src, trial->dst, accept_any, trial, paths,
                               COMPARED_MAX, CANDIDATES_LIMIT);

    out->candidates = n;
    if (n == 0)
        return;
    begin_common(trial, out, &paths[0]);
    if (n > COMPARED_MAX)
        nothing_certain(out);
    else
        intersect(trial, out, paths, (size_t)n);
}

/* The sightings on either side of a change of path. What spans it belongs to both. */
struct split {
    bool old[FT_SIGHTINGS_MAX];
    bool young[FT_SIGHTINGS_MAX];
};

static void add_doubtful(struct trial *trial, struct split *s, uint16_t i, bool *fits)
{
    s->young[i] = true;
    if (consistent(trial, s->young))
        return;
    s->young[i] = false;
    s->old[i] = true;
    *fits = consistent(trial, s->old);
}

/* Splits the sightings at the first sample of one of them, which is young. Old is what had ended by
 * then, or did within the tolerance; young is what began after it. What lies within the tolerance
 * altogether may be a late word of the old path or an early one of the new: it goes where it fits.
 * False when either side is empty or contradicts itself. */
static bool split_at(struct trial *trial, const bool *usable, uint16_t first, int64_t tolerance_ms,
                     struct split *s)
{
    int64_t at_ms = trial->list[first].first_ms;
    bool doubtful[FT_SIGHTINGS_MAX];
    bool any_old = false, fits;

    for (uint16_t i = 0; i < trial->count; i++) {
        const struct ft_sighting *g = &trial->list[i];
        bool after = g->first_ms >= at_ms;
        bool over = g->last_ms < at_ms + tolerance_ms;

        doubtful[i] = usable[i] && i != first && after && over;
        s->old[i] = usable[i] && !after;
        s->young[i] = usable[i] && (i == first || !over);
    }
    fits = consistent(trial, s->young) && consistent(trial, s->old);
    for (uint16_t i = 0; i < trial->count && fits; i++) {
        if (doubtful[i])
            add_doubtful(trial, s, i, &fits);
        any_old |= s->old[i] && !s->young[i];
    }
    return fits && any_old;
}

/* The usable sighting that began last before a moment; FT_NONE when there is none. */
static uint32_t begun_before(const struct trial *trial, const bool *usable, int64_t below_ms)
{
    uint32_t found = FT_NONE;

    for (uint16_t i = 0; i < trial->count; i++)
        if (usable[i] && trial->list[i].first_ms < below_ms &&
            (found == FT_NONE || trial->list[i].first_ms > trial->list[found].first_ms))
            found = i;
    return found;
}

/* Looks for one moment at which a change of path explains all sightings; the latest such. */
static bool find_change(struct trial *trial, const bool *usable, int64_t tolerance_ms,
                        struct split *found)
{
    uint32_t i = begun_before(trial, usable, INT64_MAX);

    for (; i != FT_NONE; i = begun_before(trial, usable, trial->list[i].first_ms))
        if (split_at(trial, usable, (uint16_t)i, tolerance_ms, found))
            return true;
    return false;
}

/* Whether the new side of a change has been seen alone for long enough, and often enough. */
static bool has_settled(const struct trial *trial, const struct split *s, int64_t settle_ms)
{
    int64_t old_last_ms = INT64_MIN, young_last_ms = INT64_MIN;
    uint64_t most = 0;

    for (uint16_t i = 0; i < trial->count; i++) {
        const struct ft_sighting *g = &trial->list[i];
        uint64_t samples = (uint64_t)g->samples[0] + g->samples[1];

        if (s->old[i] && !s->young[i] && g->last_ms > old_last_ms)
            old_last_ms = g->last_ms;
        if (!s->young[i] || s->old[i])
            continue;
        if (g->last_ms > young_last_ms)
            young_last_ms = g->last_ms;
        if (samples > most)
            most = samples;
    }
    return young_last_ms - old_last_ms >= settle_ms && most >= samples_needed(trial);
}

/* How long the sightings have contradicted each other: since the first that fitted no path together
 * with those before it. */
static int64_t contradicted_for_ms(struct trial *trial, const bool *usable)
{
    bool so_far[FT_SIGHTINGS_MAX];
    int64_t since_ms = INT64_MAX, last_ms = INT64_MIN;
    uint32_t i = begun_before(trial, usable, INT64_MAX);

    for (; i != FT_NONE; i = begun_before(trial, usable, trial->list[i].first_ms)) {
        for (uint16_t k = 0; k < trial->count; k++)
            so_far[k] = usable[k] && trial->list[k].first_ms <= trial->list[i].first_ms;
        if (consistent(trial, so_far))
            break;
        since_ms = trial->list[i].first_ms;
    }
    for (uint16_t k = 0; k < trial->count; k++)
        if (usable[k] && trial->list[k].last_ms > last_ms)
            last_ms = trial->list[k].last_ms;
    return last_ms - since_ms;
}

static bool has_alternatives(const struct trial *trial, const bool *usable)
{
    for (uint16_t i = 0; i < trial->count; i++)
        for (uint16_t k = 0; usable[i] && k < i; k++)
            if (usable[k] && ft_sightings_differ(&trial->list[k], &trial->list[i]))
                return true;
    return false;
}

/* Whether the flow takes several paths at once, and not one after the other: a flow that left its
 * path and came back contradicts itself too. Samples of one source are in order, so that they tell:
 * they come back again and again. Those of several switches may be late: then sightings that no one
 * path explains have all been seen for a time, and until now. */
static bool is_sprayed(struct trial *trial, const bool *usable, uint16_t returns,
                       int64_t lasting_ms)
{
    bool now[FT_SIGHTINGS_MAX];
    int64_t last_ms = INT64_MIN;

    if (has_alternatives(trial, usable))
        return returns >= RETURNS_SPRAYED;
    for (uint16_t i = 0; i < trial->count; i++)
        if (usable[i] && trial->list[i].last_ms > last_ms)
            last_ms = trial->list[i].last_ms;
    for (uint16_t i = 0; i < trial->count; i++) {
        const struct ft_sighting *s = &trial->list[i];

        now[i] = usable[i] && last_ms - s->last_ms < lasting_ms &&
                 s->last_ms - s->first_ms >= lasting_ms;
    }
    return !consistent(trial, now);
}

/* A sighting that no equal-cost path crosses says that the topology is wrong, or that the packet
 * went astray, or where the flow went before a link was lost; none is a change of path. It is set
 * aside once newer samples alone have followed a path for long enough. False while it stands. */
static bool set_aside(struct trial *trial, bool *usable, int64_t settle_ms)
{
    bool alone[FT_SIGHTINGS_MAX] = {false}, astray[FT_SIGHTINGS_MAX];
    int64_t newest_ms = INT64_MIN;

    for (uint16_t i = 0; i < trial->count; i++) {
        alone[i] = usable[i];
        astray[i] =
            usable[i] ? !consistent(trial, alone) : !(trial->list[i].switch_id & FT_SWITCH_UNKNOWN);
        alone[i] = false;
        if (usable[i] && !astray[i] && trial->list[i].last_ms > newest_ms)
            newest_ms = trial->list[i].last_ms;
    }
    for (uint16_t i = 0; i < trial->count; i++) {
        if (!astray[i])
            continue;
        if (newest_ms == INT64_MIN || newest_ms - trial->list[i].last_ms < settle_ms)
            return false;
        usable[i] = false;
    }
    return true;
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
    int64_t lasting_ms;

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
    memcpy(usable, trial.use, sizeof(usable));
    gather(&trial, usable, NULL, out);
    if (!known && out->candidates != 1) {
        settle(out, FT_PATH_UNRESOLVED,
               ev->count ? FT_REASON_UNKNOWN_SWITCH : FT_REASON_NO_SAMPLES);
        out->path.hop_count = 0;
        return;
    }
    if (off_path || out->candidates == 0) {
        if (!set_aside(&trial, usable, policy->settle_ms)) {
            settle(out, FT_PATH_UNRESOLVED, FT_REASON_OFF_PATH);
            out->candidates = 0;
            out->path.hop_count = 0;
            return;
        }
        gather(&trial, usable, NULL, out);
        /* For good: a link that comes up again must not make them a second path. */
        for (uint16_t i = 0; i < ev->count; i++)
            if (!usable[i])
                ft_sighting_forget_way(&ft_evidence_list(ev)[i]);
    }
    conclude(out);
    if (out->candidates > 0) {
        ev->returns = 0;
        return;
    }
    if (find_change(&trial, usable, policy->tolerance_ms, &split)) {
        if (!has_settled(&trial, &split, policy->settle_ms)) {
            gather(&trial, split.young, split.old, out);
            settle(out, FT_PATH_PARTIAL, FT_REASON_CHANGING);
            return;
        }
        gather(&trial, split.young, NULL, out);
        conclude(out);
        out->changed = true;
        for (uint16_t i = 0; i < trial.count; i++)
            split.old[i] &= !split.young[i];
        ft_evidence_drop(ev, split.old);
        ev->returns = 0;
        return;
    }
    lasting_ms = policy->settle_ms + policy->tolerance_ms;
    if (contradicted_for_ms(&trial, usable) < lasting_ms ||
        !is_sprayed(&trial, usable, ev->returns, lasting_ms)) {
        memcpy(trial.use, usable, sizeof(usable));
        gather_any(&trial, out);
        settle(out, FT_PATH_PARTIAL, FT_REASON_CHANGING);
        return;
    }
    settle(out, FT_PATH_MULTIPATH, FT_REASON_NONE);
}

/* The stage that tells the paths apart best: most recent samples among those with alternatives,
 * where no sighting is of an aggregate if there is such a stage. */
static uint32_t telling_stage(const struct trial *trial)
{
    uint64_t samples[FT_PATH_HOPS_MAX] = {0};
    uint16_t ways[FT_PATH_HOPS_MAX] = {0};
    bool vague[FT_PATH_HOPS_MAX] = {false};
    uint32_t best = FT_NONE;

    for (uint16_t i = 0; i < trial->count; i++) {
        const struct ft_sighting *s = &trial->list[i];

        if (!trial->use[i])
            continue;
        samples[trial->stage[i]] += (uint64_t)s->samples[0] + s->samples[1];
        vague[trial->stage[i]] |= ft_is_lag(s->in) || ft_is_lag(s->out);
        ways[trial->stage[i]]++;
    }
    for (uint32_t stage = 0; stage < FT_PATH_HOPS_MAX; stage++)
        if (ways[stage] > 1 && (best == FT_NONE || (vague[best] && !vague[stage]) ||
                                (vague[best] == vague[stage] && samples[stage] > samples[best])))
            best = stage;
    return best;
}

/* Whether two paths leave every switch by the same port or aggregate, and no sighting that matches
 * one of them does not match the other. */
static bool same_to_samples(const struct trial *trial, const struct ft_path *a,
                            const struct ft_path *b)
{
    if (a->hop_count != b->hop_count)
        return false;
    for (uint32_t h = 0; h < a->hop_count; h++)
        if (ft_topology_end_of_both(trial->t, a->hops[h].out, b->hops[h].out) == FT_NONE)
            return false;
    for (uint16_t i = 0; i < trial->count; i++) {
        uint32_t stage = trial->stage[i];

        if (trial->use[i] && stage < a->hop_count &&
            matches(trial, &trial->list[i], &a->hops[stage]) !=
                matches(trial, &trial->list[i], &b->hops[stage]))
            return false;
    }
    return true;
}

/* Makes one share of paths that no sighting tells apart but by members of aggregates. paths[] are
 * as they were walked, of which each share has one. Returns how many are left. */
static size_t merge_shares(const struct trial *trial, const struct ft_path *paths,
                           struct ft_path_share *shares, size_t count)
{
    size_t first[COMPARED_MAX], kept = 0;

    for (size_t p = 0; p < count; p++) {
        struct ft_path_share share = shares[p];
        size_t k = 0;

        while (k < kept && !same_to_samples(trial, &paths[first[k]], &paths[p]))
            k++;
        if (k == kept) {
            first[kept] = p;
            shares[kept++] = share;
            continue;
        }
        shares[k].share += share.share;
        for (uint32_t h = 0; h < share.path.hop_count; h++) {
            struct ft_hop *hop = &shares[k].path.hops[h];

            hop->in = ft_topology_end_of_both(trial->t, hop->in, share.path.hops[h].in);
            hop->out = ft_topology_end_of_both(trial->t, hop->out, share.path.hops[h].out);
        }
    }
    return kept;
}

static double samples_of(const struct ft_sighting *s)
{
    return (double)s->samples[0] + s->samples[1];
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
    for (uint16_t i = 0; i < trial.count; i++)
        trial.use[i] &= !ft_evidence_is_repeated(trial.list, trial.count, i);
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
        for (uint16_t i = 0; i < trial.count; i++)
            if (trial.use[i] && trial.stage[i] == stage &&
                matches(&trial, &trial.list[i], &paths[p].hops[stage]))
                shares[p].share += samples_of(&trial.list[i]) / alike[i];
        sum += shares[p].share;
    }
    for (uint64_t p = 0; p < count; p++)
        shares[p].share = sum > 0 ? shares[p].share / sum : 1.0 / (double)count;
    return merge_shares(&trial, paths, shares, (size_t)count);
}
