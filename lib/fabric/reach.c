// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/reach.h"

#include <stdlib.h>

#include "lib/fabric/topology_impl.h"

/* Odd, and without a pattern (the golden ratio). */
#define MIX UINT64_C(0x9e3779b97f4a7c15)

struct ft_reach {
    uint32_t *alike; /* by port */
    bool *apart;     /* by group: not all of its links are alike */
};

/* Of each switch a digest of how far it is from all that have NICs. */
static uint64_t *digest_distances(const struct ft_topology *t)
{
    uint64_t *digest = calloc((size_t)t->switch_count + 1, sizeof(*digest));

    for (uint32_t to = 0; digest && to < t->switch_count; to++) {
        if (t->row[to] == FT_NONE)
            continue;
        for (uint32_t from = 0; from < t->switch_count; from++) {
            digest[from] = (digest[from] ^ ft_switch_distance(t, from, to)) * MIX;
            digest[from] ^= digest[from] >> 32;
        }
    }
    return digest;
}

/* The switch above: to which a link up leads, or from which one down comes. */
static uint32_t above(const struct ft_topology *t, uint32_t link)
{
    const struct ft_port *port = &t->ports[link];

    return port->direction == FT_DIRECTION_UP ? t->ports[port->peer].switch_id : port->switch_id;
}

static void sort_out(struct ft_reach *r, const struct ft_topology *t, uint32_t group,
                     const uint64_t *digest)
{
    const struct ft_group *g = &t->groups[group];

    for (uint32_t i = 0; i < g->link_count; i++) {
        uint32_t first = 0;

        while (digest[above(t, g->links[first])] != digest[above(t, g->links[i])])
            first++;
        r->alike[g->links[i]] = first;
        r->apart[group] |= first > 0;
    }
}

struct ft_reach *ft_reach_new(const struct ft_topology *t)
{
    struct ft_reach *r = calloc(1, sizeof(*r));
    uint64_t *digest = digest_distances(t);

    if (r) {
        r->alike = calloc((size_t)t->port_count + 1, sizeof(*r->alike));
        r->apart = calloc((size_t)t->group_count + 1, sizeof(*r->apart));
    }
    if (!r || !digest || !r->alike || !r->apart) {
        ft_reach_free(r);
        free(digest);
        return NULL;
    }
    for (uint32_t i = 0; i < t->group_count; i++)
        sort_out(r, t, i, digest);
    free(digest);
    return r;
}

void ft_reach_free(struct ft_reach *r)
{
    if (!r)
        return;
    free(r->alike);
    free(r->apart);
    free(r);
}

struct ft_reach_ends ft_reach_ends(const struct ft_topology *t, uint32_t src_nic, uint32_t dst_nic,
                                   uint32_t first)
{
    struct ft_reach_ends ends = {FT_NONE, dst_nic};

    if (first != FT_NONE)
        ends.from = ft_topology_end_switch(t, first);
    else if (src_nic != FT_NONE && t->nics[src_nic].attach_count == 1)
        ends.from = t->ports[t->nics[src_nic].attach[0]].switch_id;
    return ends;
}

uint32_t ft_reach_alike(const struct ft_reach *r, uint32_t link)
{
    return r->alike[link];
}

/* Whether the switch that chooses is as far from the destination by one as by the other. */
static bool lead_alike(const struct ft_topology *t, uint32_t a, uint32_t b, uint32_t nic)
{
    const struct ft_nic *n = &t->nics[nic];
    uint8_t nearest_a = FT_UNREACHABLE, nearest_b = FT_UNREACHABLE;

    for (uint32_t i = 0; i < n->attach_count; i++) {
        uint32_t to = t->ports[n->attach[i]].switch_id;
        uint8_t by_a = ft_switch_distance(t, a, to), by_b = ft_switch_distance(t, b, to);

        nearest_a = by_a < nearest_a ? by_a : nearest_a;
        nearest_b = by_b < nearest_b ? by_b : nearest_b;
    }
    return nearest_a == nearest_b && nearest_a != FT_UNREACHABLE;
}

/* By which of two links down a flow comes was chosen by switches before: at its source's side the
 * two are as far, and where the destination is at several leaves, so are these. */
static bool come_alike(const struct ft_topology *t, uint32_t a, uint32_t b,
                       const struct ft_reach_ends *ends)
{
    const struct ft_nic *n = &t->nics[ends->to];

    if (ends->from == FT_NONE ||
        ft_switch_distance(t, a, ends->from) != ft_switch_distance(t, b, ends->from) ||
        ft_switch_distance(t, a, ends->from) == FT_UNREACHABLE)
        return false;
    for (uint32_t i = 0; i < n->attach_count; i++) {
        uint32_t to = t->ports[n->attach[i]].switch_id;

        if (ft_switch_distance(t, a, to) != ft_switch_distance(t, b, to))
            return false;
    }
    return true;
}

bool ft_reach_either(const struct ft_reach *r, const struct ft_topology *t, uint32_t link,
                     uint32_t other, const struct ft_reach_ends *ends)
{
    if (r->alike[link] == r->alike[other])
        return true;
    if (ends->to == FT_NONE)
        return false;
    return t->ports[link].direction == FT_DIRECTION_UP
               ? lead_alike(t, above(t, link), above(t, other), ends->to)
               : come_alike(t, above(t, link), above(t, other), ends);
}

bool ft_reach_all(const struct ft_reach *r, const struct ft_topology *t, uint32_t link,
                  const struct ft_reach_ends *ends)
{
    uint32_t group = t->ports[link].group;
    const struct ft_group *g;

    if (group == FT_NONE || !r->apart[group])
        return true;
    g = &t->groups[group];
    for (uint32_t i = 0; i < g->link_count; i++)
        if (r->alike[g->links[i]] == i && !ft_reach_either(r, t, link, g->links[i], ends))
            return false;
    return true;
}
