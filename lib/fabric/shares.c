// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <string.h>

#include "lib/fabric/trial.h"

/* Several paths at once: one matching sighting is enough, if the stage has any. */
static bool accept_any(void *arg, uint32_t stage, const struct ft_hop *hop)
{
    const struct ft_trial *trial = arg;
    bool sampled = false;

    for (uint16_t i = 0; i < trial->count; i++) {
        if (!trial->use[i] || trial->stage[i] != stage)
            continue;
        if (ft_sighting_matches(&trial->list[i], trial->t, hop))
            return true;
        sampled = true;
    }
    return !sampled;
}

static double samples_of(const struct ft_sighting *s, enum ft_slots slots)
{
    return (slots & FT_SLOT_EVEN ? (double)ft_sighting_samples(s, 0) : 0) +
           (slots & FT_SLOT_ODD ? (double)ft_sighting_samples(s, 1) : 0);
}

/* The stage that distinguishes the paths best: most samples among those with alternatives, where no
 * sighting is of an aggregate if there is such a stage. */
static uint32_t best_stage(const struct ft_trial *trial, enum ft_slots slots)
{
    double samples[FT_PATH_HOPS_MAX] = {0};
    uint16_t sightings[FT_PATH_HOPS_MAX] = {0};
    bool vague[FT_PATH_HOPS_MAX] = {false};
    uint32_t best = FT_NONE;

    for (uint16_t i = 0; i < trial->count; i++) {
        const struct ft_sighting *s = &trial->list[i];

        if (!trial->use[i])
            continue;
        samples[trial->stage[i]] += samples_of(s, slots);
        vague[trial->stage[i]] |= ft_is_lag(ft_sighting_in(s)) || ft_is_lag(ft_sighting_out(s));
        sightings[trial->stage[i]]++;
    }
    for (uint32_t stage = 0; stage < FT_PATH_HOPS_MAX; stage++)
        if (sightings[stage] > 1 &&
            (best == FT_NONE || (vague[best] && !vague[stage]) ||
             (vague[best] == vague[stage] && samples[stage] > samples[best])))
            best = stage;
    return best;
}

/* Whether two paths leave every switch by the same port or aggregate, and no sighting that matches
 * one of them does not match the other. */
static bool same_to_samples(const struct ft_trial *trial, const struct ft_path *a,
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
            ft_sighting_matches(&trial->list[i], trial->t, &a->hops[stage]) !=
                ft_sighting_matches(&trial->list[i], trial->t, &b->hops[stage]))
            return false;
    }
    return true;
}

/* Makes one share of paths that no sighting distinguishes but by members of aggregates. paths[] are
 * as they were walked, of which each share has one. Returns how many are left. */
static size_t merge_shares(const struct ft_trial *trial, const struct ft_path *paths,
                           struct ft_path_share *shares, size_t count)
{
    size_t first[FT_COMPARED_MAX], kept = 0;

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

/* Makes shares of samples into shares of 1, without those that have none. One share alone is none.
 */
static size_t drop_empty(struct ft_path_share *shares, size_t count, double sum)
{
    size_t kept = 0;

    for (size_t p = 0; p < count; p++) {
        if (shares[p].share <= 0)
            continue;
        shares[kept] = shares[p];
        shares[kept++].share /= sum;
    }
    return kept > 1 ? kept : 0;
}

/* What a sighting says by itself: its hop, or the end alone that it came in by, and the other ends
 * of these links. */
static struct ft_path path_by(const struct ft_trial *trial, const struct ft_sighting *s,
                              uint32_t stage, bool out)
{
    struct ft_path path = {.hop_count =
                               ft_paths_length(trial->t, trial->by->src_nic, trial->by->dst_nic)};
    struct ft_hop *hop = &path.hops[stage];

    for (uint32_t h = 0; h < FT_PATH_HOPS_MAX; h++)
        path.hops[h] = (struct ft_hop){FT_NONE, FT_NONE};
    *hop = (struct ft_hop){ft_sighting_in(s), out ? ft_sighting_out(s) : FT_NONE};
    if (stage > 0 && ft_is_port(hop->in))
        path.hops[stage - 1].out = ft_topology_port(trial->t, hop->in)->peer;
    if (stage + 1 < path.hop_count && ft_is_port(hop->out))
        path.hops[stage + 1].in = ft_topology_port(trial->t, hop->out)->peer;
    return path;
}

/* Of more paths than there is room for: a share for each hop at a stage that was sampled, or for
 * each link by which packets came there. 0: too many again, or samples do not name it. */
static size_t share_by_hop(const struct ft_trial *trial, enum ft_slots slots, uint32_t stage,
                           bool out, struct ft_path_share *shares, size_t max)
{
    size_t count = 0;

    for (uint16_t i = 0; i < trial->count; i++) {
        struct ft_path path;
        struct ft_hop *hop;
        size_t k = 0;

        if (!trial->use[i] || trial->stage[i] != stage)
            continue;
        path = path_by(trial, &trial->list[i], stage, out);
        hop = &path.hops[stage];
        if (out ? hop->out == FT_NONE : stage == 0 || hop->in == FT_NONE)
            return 0;
        while (k < count && memcmp(&shares[k].path.hops[stage], hop, sizeof(*hop)) != 0)
            k++;
        if (k == max)
            return 0;
        if (k == count)
            shares[count++] = (struct ft_path_share){.path = path};
        shares[k].share += samples_of(&trial->list[i], slots);
    }
    return count;
}

/* The same, with a sum of 1. */
static size_t share_links(const struct ft_trial *trial, enum ft_slots slots, uint32_t stage,
                          struct ft_path_share *shares, size_t max)
{
    size_t count = share_by_hop(trial, slots, stage, true, shares, max);
    double sum = 0;

    if (count == 0)
        count = share_by_hop(trial, slots, stage, false, shares, max);
    for (size_t i = 0; i < count; i++)
        sum += shares[i].share;
    return drop_empty(shares, count, sum);
}

size_t ft_evidence_shares(const struct ft_evidence *ev, const struct ft_topology *t,
                          uint32_t src_nic, uint32_t dst_nic, enum ft_slots slots,
                          struct ft_path_share *shares, size_t max)
{
    struct ft_path paths[FT_COMPARED_MAX];
    uint32_t alike[FT_SIGHTINGS_MAX] = {0};
    const struct ft_judging by = {.t = t, .src_nic = src_nic, .dst_nic = dst_nic};
    struct ft_trial trial;
    uint64_t count;
    uint32_t stage;
    double sum = 0;

    ft_trial_init(&trial, ev, &by);
    for (uint16_t i = 0; i < trial.count; i++)
        trial.use[i] &= !ft_evidence_is_repeated(trial.list, trial.count, i) &&
                        samples_of(&trial.list[i], slots) > 0;
    stage = best_stage(&trial, slots);
    if (stage == FT_NONE)
        return 0;
    if (max > FT_COMPARED_MAX)
        max = FT_COMPARED_MAX;
    count = ft_paths_walk(t, src_nic, dst_nic, accept_any, &trial, paths, max, max + 1);
    if (count > max)
        return share_links(&trial, slots, stage, shares, max);
    /* A sighting that several paths pass is split evenly among them. */
    for (uint16_t i = 0; i < trial.count; i++)
        for (uint64_t p = 0; p < count; p++)
            alike[i] += trial.use[i] && trial.stage[i] == stage &&
                        ft_sighting_matches(&trial.list[i], t, &paths[p].hops[stage]);
    for (uint64_t p = 0; p < count; p++) {
        shares[p] = (struct ft_path_share){.path = paths[p]};
        for (uint16_t i = 0; i < trial.count; i++)
            if (trial.use[i] && trial.stage[i] == stage &&
                ft_sighting_matches(&trial.list[i], t, &paths[p].hops[stage]))
                shares[p].share += samples_of(&trial.list[i], slots) / alike[i];
        sum += shares[p].share;
    }
    count = merge_shares(&trial, paths, shares, (size_t)count);
    return drop_empty(shares, (size_t)count, sum);
}
