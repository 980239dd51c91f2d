// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/paths.h"

#include "lib/fabric/topology_impl.h"

struct walk {
    const struct ft_topology *t;
    const struct ft_nic *dst;
    uint32_t dst_switch;
    const uint32_t *via; /* by stage, FT_NONE: any switch */
    ft_path_accept accept;
    void *arg;
    struct ft_path *paths;
    size_t max;
    uint64_t limit;
    uint64_t found;
    struct ft_path path;
};

static uint32_t switch_of_port(const struct ft_topology *t, uint32_t port)
{
    return t->ports[port].switch_id;
}

/* Distance from a switch to the nearest one that the NIC hangs on; FT_UNREACHABLE. */
static uint8_t length_to_nic(const struct ft_topology *t, uint32_t from, const struct ft_nic *nic)
{
    uint8_t best = FT_UNREACHABLE;

    for (uint32_t i = 0; i < nic->attach_count; i++) {
        uint8_t d = ft_switch_distance(t, from, switch_of_port(t, nic->attach[i]));

        if (d < best)
            best = d;
    }
    return best;
}

static bool take_hop(struct walk *w, uint32_t stage, uint32_t out)
{
    w->path.hops[stage].out = out;
    return !w->accept || w->accept(w->arg, stage, &w->path.hops[stage]);
}

static void arrive(struct walk *w, uint32_t stage)
{
    for (uint32_t i = 0; i < w->dst->attach_count && w->found < w->limit; i++) {
        if (switch_of_port(w->t, w->dst->attach[i]) != w->dst_switch ||
            !take_hop(w, stage, w->dst->attach[i]))
            continue;
        w->path.hop_count = stage + 1;
        if (w->found < w->max)
            w->paths[w->found] = w->path;
        w->found++;
    }
}

static void step(struct walk *w, uint32_t stage, uint32_t at, bool up, uint8_t left);

static void step_to(struct walk *w, uint32_t stage, const struct ft_neighbour *n, uint8_t left)
{
    for (uint32_t i = 0; i < n->count && w->found < w->limit; i++) {
        uint32_t out = w->t->links[n->first + i];

        if (!take_hop(w, stage, out))
            continue;
        w->path.hops[stage + 1].in = w->t->ports[out].peer;
        step(w, stage + 1, n->switch_id, n->up, left);
    }
}

/* The last link needs no search: a spine has hundreds of neighbours, one of them is the leaf. */
static const struct ft_neighbour *neighbour_to(const struct ft_topology *t, uint32_t at,
                                               uint32_t to)
{
    uint32_t low = t->first_neighbour[at], high = t->first_neighbour[at + 1];

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (t->neighbours[mid].switch_id == to)
            return &t->neighbours[mid];
        if (t->neighbours[mid].switch_id < to)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* One link further by a neighbour, if that is nearer. */
static void step_by(struct walk *w, uint32_t stage, const struct ft_neighbour *n, bool up,
                    uint8_t left)
{
    uint8_t rest;

    if (n->up && !up)
        return;
    rest = n->up ? ft_switch_distance(w->t, n->switch_id, w->dst_switch)
                 : ft_down_distance(w->t, n->switch_id, w->dst_switch);
    if (rest == left - 1)
        step_to(w, stage, n, rest);
}

/* From the switch `at`, `left` links before the destination's; `up`: no link down was taken yet. */
static void step(struct walk *w, uint32_t stage, uint32_t at, bool up, uint8_t left)
{
    const struct ft_topology *t = w->t;

    if (left == 0) {
        arrive(w, stage);
        return;
    }
    if (left == 1) {
        const struct ft_neighbour *n = neighbour_to(t, at, w->dst_switch);

        if (n && (up || !n->up))
            step_to(w, stage, n, 0);
        return;
    }
    if (w->via[stage + 1] != FT_NONE) {
        const struct ft_neighbour *n = neighbour_to(t, at, w->via[stage + 1]);

        if (n)
            step_by(w, stage, n, up, left);
        return;
    }
    for (uint32_t i = t->first_neighbour[at]; i < t->first_neighbour[at + 1] && w->found < w->limit;
         i++)
        step_by(w, stage, &t->neighbours[i], up, left);
}

/* Whether an attachment before the i-th is on the same switch. */
static bool seen_switch(const struct ft_topology *t, const struct ft_nic *nic, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (switch_of_port(t, nic->attach[k]) == switch_of_port(t, nic->attach[i]))
            return true;
    return false;
}

uint64_t ft_paths_walk(const struct ft_topology *t, uint32_t src_nic, uint32_t dst_nic,
                       ft_path_accept accept, void *arg, struct ft_path *paths, size_t max,
                       uint64_t limit)
{
    static const uint32_t any[FT_PATH_HOPS_MAX] = {FT_NONE, FT_NONE, FT_NONE, FT_NONE, FT_NONE};

    return ft_paths_walk_via(t, src_nic, dst_nic, any, accept, arg, paths, max, limit);
}

uint64_t ft_paths_walk_via(const struct ft_topology *t, uint32_t src_nic, uint32_t dst_nic,
                           const uint32_t via[FT_PATH_HOPS_MAX], ft_path_accept accept, void *arg,
                           struct ft_path *paths, size_t max, uint64_t limit)
{
    const struct ft_nic *src = ft_topology_nic(t, src_nic);
    struct walk w = {.t = t,
                     .dst = ft_topology_nic(t, dst_nic),
                     .via = via,
                     .accept = accept,
                     .arg = arg,
                     .paths = paths,
                     .max = max,
                     .limit = limit};

    if (src_nic == dst_nic)
        return 0;
    for (uint32_t i = 0; i < src->attach_count; i++) {
        uint32_t from = switch_of_port(t, src->attach[i]);
        uint8_t length = length_to_nic(t, from, w.dst);

        if (length >= FT_PATH_HOPS_MAX)
            continue;
        w.path.hops[0].in = src->attach[i];
        for (uint32_t k = 0; k < w.dst->attach_count; k++) {
            w.dst_switch = switch_of_port(t, w.dst->attach[k]);
            if (ft_switch_distance(t, from, w.dst_switch) == length && !seen_switch(t, w.dst, k))
                step(&w, 0, from, true, length);
        }
    }
    return w.found;
}

uint32_t ft_paths_length(const struct ft_topology *t, uint32_t src_nic, uint32_t dst_nic)
{
    const struct ft_nic *src = ft_topology_nic(t, src_nic);
    const struct ft_nic *dst = ft_topology_nic(t, dst_nic);
    uint32_t longest = 0;

    if (src_nic == dst_nic)
        return 0;
    for (uint32_t i = 0; i < src->attach_count; i++) {
        uint8_t length = length_to_nic(t, switch_of_port(t, src->attach[i]), dst);

        if (length < FT_PATH_HOPS_MAX && length + 1u > longest)
            longest = length + 1u;
    }
    return longest;
}

/* A switch lies on a shortest path if the distances to its two ends add up to all of it; at most
 * one of the two parts goes both up and down. */
static uint32_t stage_between(const struct ft_topology *t, uint32_t from, uint32_t to,
                              uint32_t length, uint32_t at)
{
    uint32_t up = ft_down_distance(t, at, from);
    uint32_t route = ft_switch_distance(t, at, from);

    if (up + ft_switch_distance(t, at, to) == length)
        return up;
    if (route + ft_down_distance(t, at, to) == length)
        return route;
    return FT_NONE;
}

static bool is_end_of(const struct ft_topology *t, uint32_t end, const struct ft_nic *nic)
{
    for (uint32_t i = 0; i < nic->attach_count; i++)
        if (ft_topology_ends_agree(t, end, nic->attach[i]))
            return true;
    return false;
}

/* A source's leaf and a destination's, and the links between. */
struct span {
    uint32_t from, to, length;
};

/* Whether an end of a switch leads to one that is at a stage; FT_NONE may lead anywhere. */
static bool leads_to(const struct ft_topology *t, const struct span *route, uint32_t end,
                     uint32_t stage)
{
    uint32_t port = ft_is_lag(end) ? ft_topology_lag(t, end)->members[0] : end;

    if (end == FT_NONE)
        return true;
    return t->ports[port].peer != FT_NONE &&
           stage_between(t, route->from, route->to, route->length,
                         switch_of_port(t, t->ports[port].peer)) == stage;
}

/* Whether packets that came and went by these ends were at a stage of a way. */
static bool fits_stage(const struct ft_topology *t, const struct ft_nic *src,
                       const struct ft_nic *dst, struct ft_hop ends, const struct span *route,
                       uint32_t stage)
{
    bool in_fits = stage ? leads_to(t, route, ends.in, stage - 1)
                         : ends.in == FT_NONE || is_end_of(t, ends.in, src);

    return in_fits && (stage < route->length ? leads_to(t, route, ends.out, stage + 1)
                                             : ends.out == FT_NONE || is_end_of(t, ends.out, dst));
}

/* The stage of a switch on ways from one attachment of the source. fits: ends agree with it. */
static uint32_t stage_from(const struct ft_topology *t, const struct ft_nic *src, uint32_t attach,
                           const struct ft_nic *dst, uint32_t switch_id, struct ft_hop ends,
                           bool *fits)
{
    uint32_t from = switch_of_port(t, src->attach[attach]), first = FT_NONE;
    uint8_t length = length_to_nic(t, from, dst);

    *fits = false;
    if (length >= FT_PATH_HOPS_MAX)
        return FT_NONE;
    for (uint32_t k = 0; k < dst->attach_count; k++) {
        struct span route = {from, switch_of_port(t, dst->attach[k]), length};
        uint32_t stage;

        if (ft_switch_distance(t, from, route.to) != length)
            continue;
        stage = stage_between(t, from, route.to, length, switch_id);
        if (stage == FT_NONE)
            continue;
        *fits = src->attach_count == 1 || fits_stage(t, src, dst, ends, &route, stage);
        if (*fits)
            return stage;
        if (first == FT_NONE)
            first = stage;
    }
    return first;
}

uint32_t ft_paths_stage_from(const struct ft_topology *t, uint32_t src_nic, uint32_t attach,
                             uint32_t dst_nic, uint32_t switch_id, struct ft_hop ends)
{
    bool fits;
    uint32_t stage;

    if (src_nic == dst_nic)
        return FT_NONE;
    stage = stage_from(t, ft_topology_nic(t, src_nic), attach, ft_topology_nic(t, dst_nic),
                       switch_id, ends, &fits);
    return fits ? stage : FT_NONE;
}

uint32_t ft_paths_stage(const struct ft_topology *t, uint32_t src_nic, uint32_t dst_nic,
                        uint32_t switch_id, struct ft_hop ends)
{
    const struct ft_nic *src = ft_topology_nic(t, src_nic);
    const struct ft_nic *dst = ft_topology_nic(t, dst_nic);
    uint32_t first = FT_NONE;

    if (src_nic == dst_nic)
        return FT_NONE;
    for (uint32_t i = 0; i < src->attach_count; i++) {
        bool fits;
        uint32_t stage = stage_from(t, src, i, dst, switch_id, ends, &fits);

        if (fits)
            return stage;
        if (first == FT_NONE)
            first = stage;
    }
    return first;
}
