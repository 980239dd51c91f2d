// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/hinted.h"

#include <string.h>

/* So many paths are kept and compared; where there are more, each end is looked for anew. */
#define COMPARED_MAX 64

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
    uint32_t via[FT_PATH_HOPS_MAX];
    /* All that are left, where they are not too many. */
    const struct ft_path *paths;
    uint64_t path_count;
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

static uint64_t find(struct trial *trial, struct ft_path *paths, size_t max, uint64_t limit)
{
    return ft_paths_walk_via(trial->from->t, trial->from->src_nic, trial->from->dst_nic, trial->via,
                             accept, trial, paths, max, limit);
}

static uint32_t switch_behind(const struct ft_topology *t, uint32_t end)
{
    uint32_t peer = end != FT_NONE && ft_is_port(end) ? ft_topology_port(t, end)->peer : FT_NONE;

    return peer == FT_NONE ? FT_NONE : ft_topology_port(t, peer)->switch_id;
}

/* The switches of all paths that what is certain allows, so that others are not walked. Only where
 * all paths are of one length: accept() sees no more stages than a path has. */
static void find_via(struct trial *trial)
{
    const struct ft_hinted_from *from = trial->from;
    uint32_t length = ft_paths_length(from->t, from->src_nic, from->dst_nic);

    for (uint32_t h = 0; h < FT_PATH_HOPS_MAX; h++)
        trial->via[h] = FT_NONE;
    if (ft_topology_nic(from->t, from->src_nic)->attach_count > 1)
        return;
    for (uint32_t h = 0; h < from->certain->hop_count && h < length; h++) {
        uint32_t before = switch_behind(from->t, from->certain->hops[h].in);
        uint32_t next = switch_behind(from->t, from->certain->hops[h].out);

        if (from->switches && from->switches[h] != FT_NONE)
            trial->via[h] = from->switches[h];
        if (h > 0 && before != FT_NONE)
            trial->via[h - 1] = before;
        if (h + 1 < length && next != FT_NONE)
            trial->via[h + 1] = next;
    }
}

static bool has_other(const struct trial *trial, const struct ft_hop *hop)
{
    return differs(trial, ft_topology_port(trial->from->t, hop->out)->switch_id, hop);
}

/* Whether all paths have this end here. One of another length has another one. */
static bool is_common(struct trial *trial, enum end end, uint32_t stage, uint32_t value)
{
    bool other = false;

    trial->end = end;
    trial->stage = stage;
    trial->other_than = value;
    if (!trial->paths)
        other = find(trial, NULL, 0, 1) > 0;
    for (uint64_t i = 0; !other && trial->paths && i < trial->path_count; i++)
        other =
            trial->paths[i].hop_count <= stage || has_other(trial, &trial->paths[i].hops[stage]);
    trial->end = END_NONE;
    return !other;
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
    struct ft_path paths[COMPARED_MAX];
    const struct ft_path *path = &paths[0];

    memset(out, 0, sizeof(*out));
    out->ask = FT_NONE;
    find_via(&trial);
    trial.path_count = find(&trial, paths, COMPARED_MAX, COMPARED_MAX + 1);
    if (trial.path_count == 0)
        return false;
    trial.paths = trial.path_count <= COMPARED_MAX ? paths : NULL;
    out->path.hop_count = path->hop_count;
    for (uint32_t h = 0; h < path->hop_count; h++)
        fill_hop(&trial, path, h, out);
    /* What follows from a hint is known by the hint. */
    for (uint32_t h = 0; h < path->hop_count; h++) {
        const struct ft_hint *hint =
            out->switches[h] == FT_NONE ? NULL : hint_of(&trial, out->switches[h]);

        if (!hint || is_certain(from, h))
            continue;
        if (hint->by > weakest)
            weakest = hint->by;
        if (hint->by == FT_BY_PREDICTION && (out->accuracy == 0 || hint->accuracy < out->accuracy))
            out->accuracy = hint->accuracy;
    }
    for (uint32_t h = 0; h < path->hop_count; h++) {
        const struct ft_hint *hint =
            out->switches[h] == FT_NONE ? NULL : hint_of(&trial, out->switches[h]);

        if (!is_certain(from, h))
            out->by[h] = hint ? hint->by : weakest;
    }
    out->hinted = weakest > FT_BY_SAMPLES;
    return true;
}
