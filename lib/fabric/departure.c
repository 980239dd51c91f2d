// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/trial.h"

struct choice {
    const struct ft_path *path;
    uint32_t stage;
    const uint32_t *ports; /* that are known */
    size_t count;
};

static bool is_listed(const struct choice *c, uint32_t port)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->ports[i] == port)
            return true;
    return false;
}

/* Lets a walk pass that follows the path up to a stage, and leaves there by another port than those
 * that are known. */
static bool accept_prefix(void *arg, uint32_t stage, const struct ft_hop *hop)
{
    const struct choice *c = arg;
    const struct ft_hop *on = &c->path->hops[stage];

    if (stage > c->stage)
        return true;
    return hop->in == on->in && (stage == c->stage ? !is_listed(c, hop->out) : hop->out == on->out);
}

/* One walk for each port: behind each of them there may be very many paths. */
size_t ft_evidence_choice(const struct ft_judging *by, const struct ft_path *path, uint32_t stage,
                          uint32_t *ports, size_t max)
{
    struct choice c = {path, stage, ports, 0};
    struct ft_path next;

    while (c.count < max &&
           ft_paths_walk(by->t, by->src_nic, by->dst_nic, accept_prefix, &c, &next, 1, 1) > 0)
        ports[c.count++] = next.hops[stage].out;
    return c.count;
}

bool ft_evidence_left_at(const struct ft_evidence *ev, const struct ft_judging *by, uint32_t *first,
                         uint32_t *last)
{
    const struct ft_path *known = by->known;
    struct ft_trial trial;
    bool left = false;

    ft_trial_init(&trial, ev, by);
    for (uint16_t i = 0; i < trial.count; i++) {
        const struct ft_sighting *s = &trial.list[i];
        uint32_t stage = trial.stage[i], from = 0, to;

        if (!trial.usable[i] || stage >= known->hop_count ||
            ft_sighting_matches(s, by->t, &known->hops[stage]))
            continue;
        /* Where it came in as before, it left by another port; else it did so further up. */
        if (ft_sighting_in(s) != FT_NONE &&
            ft_topology_ends_agree(by->t, ft_sighting_in(s), known->hops[stage].in))
            from = to = stage;
        else
            to = stage ? stage - 1 : 0;
        if (!left || to < *last) {
            *first = from < to ? from : to;
            *last = to;
        }
        left = true;
    }
    return left;
}

bool ft_evidence_recount(struct ft_evidence *ev, const struct ft_judging *by,
                         const struct ft_sighting *s, int64_t before_ms, int64_t uncertain_ms)
{
    struct ft_trial trial;
    uint16_t at;

    ft_trial_init(&trial, ev, by);
    at = (uint16_t)(s - trial.list);
    for (uint16_t i = 0; trial.usable[at] && i < trial.count; i++) {
        bool pair[FT_SIGHTINGS_MAX] = {false};

        if (!trial.usable[i] || i == at ||
            ft_sighting_switch(&trial.list[i]) == ft_sighting_switch(s) ||
            trial.list[i].last_ms <= before_ms || trial.list[i].last_ms < uncertain_ms)
            continue;
        pair[i] = pair[at] = true;
        if (!ft_trial_fits(&trial, pair)) {
            ft_evidence_count(ev, true);
            return true;
        }
    }
    return false;
}
