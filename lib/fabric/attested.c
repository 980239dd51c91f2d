// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/trial.h"

/* So long after the first sample it shows which links nobody samples. They are taken as the
 * topology has them. */
#define UNSEEN_MS 2000
/* A switch of whose samples none named a link of the fabric for so long takes none there. */
#define BLIND_MS 60000

/* Whether a sighting names the link's egress port, or its ingress port at the next switch. */
static bool names_out(const struct ft_trial *trial, uint16_t i, const struct ft_hop *hop)
{
    return ft_sighting_out(&trial->list[i]) != FT_NONE &&
           ft_sighting_matches(&trial->list[i], trial->t, hop);
}

static bool names_in(const struct ft_trial *trial, uint16_t i, const struct ft_hop *next)
{
    return ft_sighting_in(&trial->list[i]) != FT_NONE &&
           ft_sighting_matches(&trial->list[i], trial->t, next);
}

/* Whether samples of a switch name the links by which packets come in. Until it has had time to
 * show that, it may. */
static bool shows_ingress(const struct ft_trial *trial, uint32_t switch_id)
{
    const struct ft_trust *trust = trial->by->trust;

    return trial->by->now_ms - trust->since_ms < UNSEEN_MS ||
           trust->switches[switch_id].names_in_ms >= trial->by->now_ms - BLIND_MS;
}

static bool shows_egress(const struct ft_trial *trial, uint32_t switch_id)
{
    const struct ft_trust *trust = trial->by->trust;

    return trial->by->now_ms - trust->since_ms < UNSEEN_MS ||
           trust->switches[switch_id].names_out_ms >= trial->by->now_ms - BLIND_MS;
}

/* Whether the flow was sampled on a link: at both its ends, or at one of them where it is confirmed
 * that the other is there. Of an end at which samples never name such links nothing can be asked.
 */
static bool is_link_attested(const struct ft_trial *trial, const bool *use, uint32_t stage,
                             const struct ft_hop *hop, const struct ft_hop *next)
{
    uint32_t here = ft_topology_port(trial->t, hop->in)->switch_id;
    uint32_t there = ft_topology_port(trial->t, next->in)->switch_id;
    bool out = false, in = false;

    for (uint16_t i = 0; i < trial->count; i++) {
        if (!use[i])
            continue;
        out |= trial->stage[i] == stage && names_out(trial, i, hop);
        in |= trial->stage[i] == stage + 1 && names_in(trial, i, next);
    }
    if (trial->by->trust->links[hop->out].confirmed && (out || in))
        return true;
    return (out || !shows_egress(trial, here)) && (in || !shows_ingress(trial, there));
}

/* Below one switch there is no link: the flow is to be sampled there. */
static bool is_seen_at(const struct ft_trial *trial, const bool *use, const struct ft_hop *hop)
{
    for (uint16_t i = 0; i < trial->count; i++)
        if (use[i] && (names_in(trial, i, hop) || names_out(trial, i, hop)))
            return true;
    return false;
}

bool ft_trial_is_attested(const struct ft_trial *trial, const bool *use, const struct ft_path *path)
{
    if (trial->by->verify && path->hop_count == 1)
        return is_seen_at(trial, use, &path->hops[0]);
    for (uint32_t h = 0; trial->by->verify && h + 1 < path->hop_count; h++)
        if (!is_link_attested(trial, use, h, &path->hops[h], &path->hops[h + 1]))
            return false;
    return true;
}

/* Whether a link may lead elsewhere than the topology says: samples at its ends would confirm it,
 * and do not. */
static bool may_lie(const struct ft_trial *trial, uint32_t link)
{
    const struct ft_port *port = ft_topology_port(trial->t, link);

    return !trial->by->trust->links[link].confirmed && shows_egress(trial, port->switch_id) &&
           shows_ingress(trial, ft_topology_port(trial->t, port->peer)->switch_id);
}

bool ft_trial_links_are_confirmed(const struct ft_trial *trial)
{
    for (uint16_t i = 0; trial->by->verify && i < trial->count; i++) {
        uint32_t in = ft_sighting_in(&trial->list[i]), out = ft_sighting_out(&trial->list[i]);

        if (!trial->usable[i])
            continue;
        if (ft_is_port(in) && ft_topology_is_fabric_end(trial->t, in) &&
            may_lie(trial, ft_topology_port(trial->t, in)->peer))
            return false;
        if (ft_is_port(out) && ft_topology_is_fabric_end(trial->t, out) && may_lie(trial, out))
            return false;
    }
    return true;
}

/* Whether a sample of a sighting at a stage, of since_ms or later, names the hop's port in, or out.
 */
static bool is_named(const struct ft_trial *trial, const bool *use, uint32_t stage,
                     const struct ft_hop *hop, bool out, int64_t since_ms)
{
    const struct ft_hop one = {out ? FT_NONE : hop->in, out ? hop->out : FT_NONE};

    for (uint16_t i = 0; i < trial->count; i++)
        if (use[i] && trial->stage[i] == stage && trial->list[i].last_ms >= since_ms &&
            (out ? ft_sighting_out(&trial->list[i]) : ft_sighting_in(&trial->list[i])) != FT_NONE &&
            ft_topology_ends_agree(trial->t, ft_sighting_in(&trial->list[i]), one.in) &&
            ft_topology_ends_agree(trial->t, ft_sighting_out(&trial->list[i]), one.out) &&
            ft_topology_end_switch(trial->t, out ? hop->out : hop->in) ==
                ft_sighting_switch(&trial->list[i]))
            return true;
    return false;
}

static bool is_confirmed(const struct ft_trial *trial, uint32_t end)
{
    return ft_is_port(end) && trial->by->trust->links[end].confirmed;
}

void ft_trial_leave_sampled(const struct ft_trial *trial, const bool *use, struct ft_judgement *out)
{
    uint32_t count = out->path.hop_count;
    bool in[FT_PATH_HOPS_MAX], leaves[FT_PATH_HOPS_MAX];
    int64_t newest_ms = ft_trial_newest_ms(trial, use);
    int64_t since_ms = newest_ms == INT64_MIN ? newest_ms : newest_ms - FT_NEAR_MS;

    if (!trial->by->verify)
        return;
    /* Of samples on both sides of a move none but the newest is of now. */
    if (newest_ms != INT64_MIN && trial->by->trust->uncertain_ms >= since_ms)
        since_ms = newest_ms;
    for (uint32_t h = 0; h < count; h++) {
        const struct ft_hop *hop = &out->path.hops[h];

        in[h] = hop->in != FT_NONE && is_named(trial, use, h, hop, false, since_ms);
        leaves[h] = hop->out != FT_NONE && is_named(trial, use, h, hop, true, since_ms);
    }
    for (uint32_t h = 0; h + 1 < count; h++)
        if (in[h + 1] != leaves[h] && is_confirmed(trial, out->path.hops[h].out))
            in[h + 1] = leaves[h] = true;
    for (uint32_t h = 0; h < count; h++) {
        struct ft_hop *hop = &out->path.hops[h];

        hop->in = in[h] ? hop->in : FT_NONE;
        hop->out = leaves[h] ? hop->out : FT_NONE;
        if (!in[h] && !leaves[h])
            out->switches[h] = FT_NONE;
    }
}

/* Of the sightings of a path that was left, or of the present one, those of a window. */
static void use_window(struct ft_trial *trial, uint8_t past, unsigned slot)
{
    const struct ft_judging *by = trial->by;

    for (uint16_t i = 0; i < trial->count; i++) {
        const struct ft_sighting *s = &trial->list[i];

        trial->use[i] = false;
        if (s->past != past || (ft_sighting_switch(s) & FT_SWITCH_UNKNOWN) ||
            ft_sighting_samples(s, slot) == 0)
            continue;
        trial->stage[i] = ft_paths_stage(by->t, by->src_nic, by->dst_nic, ft_sighting_switch(s),
                                         (struct ft_hop){ft_sighting_in(s), ft_sighting_out(s)});
        trial->use[i] = trial->stage[i] != FT_NONE;
    }
}

/* Whether one of them names the link after a hop; exact: and not only the aggregate that it is in.
 */
static bool is_sampled(const struct ft_trial *trial, const struct ft_path *path, uint32_t h,
                       bool exact)
{
    const struct ft_hop *hop = &path->hops[h];
    const struct ft_hop *next = h + 1 < path->hop_count ? hop + 1 : NULL;

    for (uint16_t i = 0; i < trial->count; i++) {
        const struct ft_sighting *s = &trial->list[i];

        if (!trial->use[i])
            continue;
        if (trial->stage[i] == h && ft_sighting_out(s) != FT_NONE &&
            (!exact || ft_sighting_out(s) == hop->out) &&
            ft_topology_ends_agree(trial->t, ft_sighting_out(s), hop->out))
            return true;
        if (next && trial->stage[i] == h + 1 && ft_sighting_in(s) != FT_NONE &&
            next->in != FT_NONE && (!exact || ft_sighting_in(s) == next->in) &&
            ft_topology_ends_agree(trial->t, ft_sighting_in(s), next->in))
            return true;
    }
    return false;
}

/* Whether a flow on the link would be sampled as such: what is between switches, where one of them
 * names such links. */
static bool is_attested(const struct ft_trial *trial, const struct ft_hop *hop)
{
    uint32_t peer = ft_topology_port(trial->t, hop->out)->peer;

    return trial->by->verify && peer != FT_NONE &&
           (shows_egress(trial, ft_topology_port(trial->t, hop->out)->switch_id) ||
            shows_ingress(trial, ft_topology_port(trial->t, peer)->switch_id));
}

uint32_t ft_evidence_links(const struct ft_evidence *ev, const struct ft_judging *by,
                           const struct ft_path *path, uint8_t past, unsigned slot)
{
    struct ft_path paths[FT_COMPARED_MAX];
    uint32_t links = 0, implied = 0;
    struct ft_trial trial;
    uint64_t n;

    if (by->src_nic == FT_NONE || by->dst_nic == FT_NONE)
        return 0;
    ft_trial_init(&trial, ev, by);
    use_window(&trial, past, slot);
    for (uint32_t h = 0; h < path->hop_count; h++) {
        if (!ft_is_port(path->hops[h].out))
            continue;
        if (is_sampled(&trial, path, h, true))
            links |= UINT32_C(1) << h;
        else if (!is_attested(&trial, &path->hops[h]) || is_sampled(&trial, path, h, false))
            implied |= UINT32_C(1) << h;
    }
    if (!implied || !ft_trial_any(&trial, trial.use))
        return links;
    n = ft_trial_paths(&trial, trial.use, paths, FT_COMPARED_MAX, FT_COMPARED_MAX + 1);
    for (uint32_t h = 0; h < path->hop_count && n <= FT_COMPARED_MAX; h++)
        for (uint64_t p = 0; p < n; p++)
            if (h >= paths[p].hop_count || paths[p].hops[h].out != path->hops[h].out)
                implied &= ~(UINT32_C(1) << h);
    return n > 0 && n <= FT_COMPARED_MAX ? links | implied : links;
}
