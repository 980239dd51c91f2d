// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/detour.h"

#include <string.h>

struct search {
    const struct ft_sighting *list;
    const struct ft_topology *t;
    uint32_t count;
    uint32_t dst_nic;
    int64_t since_ms;
    uint32_t before[FT_SIGHTINGS_MAX]; /* sighting from which this one was reached first, FT_NONE */
    uint32_t depth[FT_SIGHTINGS_MAX];  /* hops up to here; 0: not reached */
    uint32_t queue[FT_SIGHTINGS_MAX];
    uint32_t queued;
};

static bool counts(const struct search *q, uint32_t i)
{
    const struct ft_sighting *s = &q->list[i];

    return ft_is_port(ft_sighting_in(s)) && ft_is_port(ft_sighting_out(s)) &&
           s->last_ms >= q->since_ms;
}

static bool is_attached(const struct search *q, uint32_t nic, uint32_t port)
{
    const struct ft_nic *n = ft_topology_nic(q->t, nic);

    for (uint32_t i = 0; i < n->attach_count; i++)
        if (n->attach[i] == port)
            return true;
    return false;
}

static void reach(struct search *q, uint32_t i, uint32_t before)
{
    if (q->depth[i] || (before != FT_NONE && q->depth[before] == FT_DETOUR_HOPS_MAX))
        return;
    q->depth[i] = before == FT_NONE ? 1 : q->depth[before] + 1;
    q->before[i] = before;
    q->queue[q->queued++] = i;
}

/* Breadth first, so that what leads to the destination first is the shortest. FT_NONE. */
static uint32_t walk(struct search *q, uint32_t src_nic)
{
    for (uint32_t i = 0; i < q->count; i++)
        if (counts(q, i) && is_attached(q, src_nic, ft_sighting_in(&q->list[i])))
            reach(q, i, FT_NONE);
    for (uint32_t next = 0; next < q->queued; next++) {
        uint32_t at = q->queue[next];
        uint32_t peer = ft_topology_port(q->t, ft_sighting_out(&q->list[at]))->peer;

        if (is_attached(q, q->dst_nic, ft_sighting_out(&q->list[at])))
            return at;
        for (uint32_t i = 0; peer != FT_NONE && i < q->count; i++)
            if (counts(q, i) && ft_sighting_in(&q->list[i]) == peer)
                reach(q, i, at);
    }
    return FT_NONE;
}

/* The first hop after which the destination's leaf is not nearer by one. */
static uint32_t bend_of(const struct ft_topology *t, const struct ft_detour *d)
{
    uint32_t leaf = ft_topology_port(t, d->hops[d->hop_count - 1].out)->switch_id;

    for (uint32_t h = 0; h + 1 < d->hop_count; h++) {
        uint32_t here = ft_topology_port(t, d->hops[h].in)->switch_id;
        uint32_t next = ft_topology_port(t, d->hops[h + 1].in)->switch_id;
        uint32_t from = ft_topology_distance(t, here, leaf);
        uint32_t to = ft_topology_distance(t, next, leaf);

        if (from == FT_NONE || to == FT_NONE || to + 1 != from)
            return h;
    }
    return FT_NONE;
}

bool ft_detour_find(const struct ft_sighting *list, uint32_t count, const struct ft_topology *t,
                    uint32_t src_nic, uint32_t dst_nic, int64_t within_ms, struct ft_detour *out)
{
    struct search q = {.list = list, .t = t, .count = count, .dst_nic = dst_nic};
    struct ft_detour d = {.shortest = 0};
    int64_t newest_ms = INT64_MIN;
    uint32_t last;

    if (src_nic == FT_NONE || dst_nic == FT_NONE || count > FT_SIGHTINGS_MAX)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (list[i].last_ms > newest_ms)
            newest_ms = list[i].last_ms;
    q.since_ms = newest_ms > INT64_MIN + within_ms ? newest_ms - within_ms : INT64_MIN;
    d.shortest = ft_paths_length(t, src_nic, dst_nic);
    last = d.shortest ? walk(&q, src_nic) : FT_NONE;
    if (last == FT_NONE || q.depth[last] <= d.shortest)
        return false;
    d.hop_count = q.depth[last];
    for (uint32_t h = d.hop_count; h-- > 0; last = q.before[last])
        d.hops[h] = (struct ft_hop){ft_sighting_in(&list[last]), ft_sighting_out(&list[last])};
    d.at = bend_of(t, &d);
    if (d.at == FT_NONE)
        return false;
    *out = d;
    return true;
}
