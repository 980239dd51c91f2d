// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/window/resends.h"

#include <stdlib.h>

#include "lib/base/table.h"

/* Samples that overtake each other no more often than that look like none that were sent again. */
#define OVERTAKEN_MAX 0.02
/* Of a source and a group, a kilobyte for 25 of them. Those without room do not count; for one more
 * so many are looked at, whether they are of windows before. */
#define COVERED_MAX 16384
#define LOOKS       64
#define LINKS_MAX   64

/* Over which links of a group a source sampled flows in this window and the one before, a bit for
 * each in the order of the group. */
struct covered {
    struct covered_key {
        uint32_t source, group;
    } key;
    uint32_t window;
    uint64_t now, before;
};

struct ft_resends {
    struct ft_table *covered;
    uint32_t hand; /* where a full table is looked at next */
    uint32_t window;
    uint64_t refused;
};

struct ft_resends *ft_resends_new(void)
{
    struct ft_resends *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->covered = ft_table_new(sizeof(struct covered), sizeof(struct covered_key), COVERED_MAX, 0);
    if (r->covered)
        return r;
    free(r);
    return NULL;
}

void ft_resends_free(struct ft_resends *r)
{
    if (!r)
        return;
    ft_table_free(r->covered);
    free(r);
}

void ft_resends_forget(struct ft_resends *r)
{
    ft_table_clear(r->covered);
}

static bool is_old(void *arg, void *entry)
{
    const struct ft_resends *r = arg;
    const struct covered *c = entry;

    /* Later than now: a clock was set back. */
    return c->window + 1 < r->window || c->window > r->window;
}

static struct covered *covered_of(struct ft_resends *r, const struct covered_key *key,
                                  uint32_t window)
{
    struct covered *c = ft_table_find(r->covered, key);
    bool fresh;

    r->window = window;
    if (c)
        return c;
    if (ft_table_make_room(r->covered, &r->hand, LOOKS, is_old, r))
        c = ft_table_insert(r->covered, key, &fresh);
    r->refused += !c;
    return c;
}

/* Notes that the source sampled a flow over a link. Whether it did over all links of its group. */
static bool covers(struct ft_resends *r, const struct ft_topology *t, uint32_t source,
                   uint32_t port, uint32_t window)
{
    const struct ft_group *group = ft_topology_group(t, ft_topology_port(t, port)->group);
    const struct covered_key key = {source, ft_topology_port(t, port)->group};
    uint64_t all =
        group->link_count < LINKS_MAX ? (UINT64_C(1) << group->link_count) - 1 : UINT64_MAX;
    struct covered *c = group->link_count <= LINKS_MAX ? covered_of(r, &key, window) : NULL;

    if (!c)
        return false;
    if (c->window != window) {
        c->before = c->window + 1 == window ? c->now : 0;
        c->now = 0;
        c->window = window;
    }
    for (uint32_t i = 0; i < group->link_count; i++)
        if (group->links[i] == port)
            c->now |= UINT64_C(1) << i;
    return (c->now | c->before) == all;
}

/* Whether the source did so over all links that compare with those of the flow. */
static bool covers_path(struct ft_resends *r, const struct ft_topology *t,
                        const struct ft_flow *flow, uint32_t source, uint32_t window)
{
    bool all = true;

    for (uint32_t h = 0; h < flow->path.hop_count; h++) {
        uint32_t port = flow->path.hops[h].out, group;

        if (!ft_is_port(port))
            continue;
        group = ft_topology_port(t, port)->group;
        if (group != FT_NONE && ft_topology_group(t, group)->link_count > 1)
            all &= covers(r, t, source, port, window);
    }
    return all;
}

struct ft_resent_samples ft_resends_of(struct ft_resends *r, const struct ft_join *join,
                                       const struct ft_flow *flow, uint32_t window)
{
    const struct ft_flow_numbers *n = ft_flow_numbers(flow);
    struct ft_resent_samples sum = {0, 0};
    struct ft_join_again by[FT_NUMBERS_ROWS];
    size_t count = ft_join_again(join, flow, window, by);
    bool none_overtaken = true;

    for (size_t i = 0; i < count; i++) {
        bool overtaken = by[i].overtaken > OVERTAKEN_MAX;

        none_overtaken &= !overtaken;
        if (overtaken &&
            (!by[i].enters || !covers_path(r, ft_join_topology(join), flow, by[i].source, window)))
            continue;
        sum.samples += by[i].samples;
        sum.back += by[i].back;
    }
    if (!n || n->samples == 0)
        return (struct ft_resent_samples){0, 0};
    return none_overtaken ? (struct ft_resent_samples){n->samples, n->back} : sum;
}

uint64_t ft_resends_refused(const struct ft_resends *r)
{
    return r->refused;
}
