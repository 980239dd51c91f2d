// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/hinted.h"

#include <string.h>

/* One end that paths may differ in. */
enum end {
    END_NONE,
    END_SWITCH,
    END_IN,
    END_OUT,
};

struct trial {
    const struct ft_hinted_from *from;
    const struct ft_hint *hints;
    size_t count;
    /* Only paths that have another end than this one here. */
    enum end end;
    uint32_t stage;
    uint32_t other_than;
};

static const struct ft_hint *hint_of(const struct trial *trial, uint32_t switch_id)
{
    for (size_t i = 0; i < trial->count; i++)
        if (trial->hints[i].switch_id == switch_id)
            return &trial->hints[i];
    return NULL;
}

static bool differs(const struct trial *trial, uint32_t switch_id, const struct ft_hop *hop)
{
    switch (trial->end) {
    case END_SWITCH:
        return switch_id != trial->other_than;
    case END_IN:
        return !ft_topology_ends_agree(trial->from->t, hop->in, trial->other_than);
    case END_OUT:
        return !ft_topology_ends_agree(trial->from->t, hop->out, trial->other_than);
    default:
        return true;
    }
}

static bool accept(void *arg, uint32_t stage, const struct ft_hop *hop)
{
    const struct trial *trial = arg;
    const struct ft_hinted_from *from = trial->from;
    uint32_t switch_id = ft_topology_port(from->t, hop->out)->switch_id;
    const struct ft_hint *hint = hint_of(trial, switch_id);

    if (stage < from->certain->hop_count) {
        const struct ft_hop *certain = &from->certain->hops[stage];

        if (!ft_topology_ends_agree(from->t, certain->in, hop->in) ||
            !ft_topology_ends_agree(from->t, certain->out, hop->out))
            return false;
        if (from->switches && from->switches[stage] != FT_NONE &&
            from->switches[stage] != switch_id)
            return false;
    }
    if (hint && !ft_topology_ends_agree(from->t, hint->out, hop->out))
        return false;
    return trial->end == END_NONE || stage != trial->stage || differs(trial, switch_id, hop);
}

static bool find(struct trial *trial, struct ft_path *path)
{
    return ft_paths_walk(trial->from->t, trial->from->src_nic, trial->from->dst_nic, accept, trial,
                         path, 1, 1) > 0;
}

/* Whether all paths have this end here. One of another length has another one. */
static bool is_common(struct trial *trial, enum end end, uint32_t stage, uint32_t value)
{
    struct ft_path other;
    bool found;

    trial->end = end;
    trial->stage = stage;
    trial->other_than = value;
    found = find(trial, &other);
    trial->end = END_NONE;
    return !found;
}

/* The port, the aggregate that it is in, or FT_NONE. */
static uint32_t common_end(struct trial *trial, enum end end, uint32_t stage, uint32_t port)
{
    uint32_t lag = ft_topology_port(trial->from->t, port)->lag;

    if (is_common(trial, end, stage, port))
        return port;
    return lag != FT_NONE && is_common(trial, end, stage, lag) ? lag : FT_NONE;
}

static bool is_certain(const struct ft_hinted_from *from, uint32_t stage)
{
    return stage < from->certain->hop_count && from->certain->hops[stage].out != FT_NONE;
}

static void fill_hop(struct trial *trial, const struct ft_path *path, uint32_t h,
                     struct ft_hinted *out)
{
    uint32_t switch_id = ft_topology_port(trial->from->t, path->hops[h].out)->switch_id;

    out->switches[h] = is_common(trial, END_SWITCH, h, switch_id) ? switch_id : FT_NONE;
    out->path.hops[h].in = common_end(trial, END_IN, h, path->hops[h].in);
    out->path.hops[h].out = common_end(trial, END_OUT, h, path->hops[h].out);
    if (out->ask == FT_NONE && ft_is_port(out->path.hops[h].in) && out->path.hops[h].out == FT_NONE)
        out->ask = h;
}

bool ft_hinted_path(const struct ft_hinted_from *from, const struct ft_hint *hints, size_t count,
                    struct ft_hinted *out)
{
    struct trial trial = {.from = from, .hints = hints, .count = count};
    uint8_t weakest = FT_BY_SAMPLES;
    struct ft_path path;

    memset(out, 0, sizeof(*out));
    out->ask = FT_NONE;
    if (!find(&trial, &path))
        return false;
    out->path.hop_count = path.hop_count;
    for (uint32_t h = 0; h < path.hop_count; h++)
        fill_hop(&trial, &path, h, out);
    /* What follows from a hint is known by the hint. */
    for (uint32_t h = 0; h < path.hop_count; h++) {
        const struct ft_hint *hint =
            out->switches[h] == FT_NONE ? NULL : hint_of(&trial, out->switches[h]);

        if (!hint || is_certain(from, h))
            continue;
        if (hint->by > weakest)
            weakest = hint->by;
        if (hint->by == FT_BY_PREDICTION && (out->accuracy == 0 || hint->accuracy < out->accuracy))
            out->accuracy = hint->accuracy;
    }
    for (uint32_t h = 0; h < path.hop_count; h++) {
        const struct ft_hint *hint =
            out->switches[h] == FT_NONE ? NULL : hint_of(&trial, out->switches[h]);

        if (!is_certain(from, h))
            out->by[h] = hint ? hint->by : weakest;
    }
    out->hinted = weakest > FT_BY_SAMPLES;
    return true;
}
