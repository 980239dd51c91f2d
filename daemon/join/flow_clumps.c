// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/flow_clumps.h"

#include <string.h>

/* Observations without the start of their interval are of a second. */
#define SECOND_MS 1000
#define LINKS_MAX 64

/* Where the samples of a flow are counted. */
struct site {
    uint32_t group; /* FT_NONE: nowhere */
    bool own;       /* by the switch of the group */
    enum ft_tier tier;
};

uint32_t ft_flow_link_up(const struct ft_topology *t, uint32_t in, uint32_t out, bool own)
{
    uint32_t port = out;

    if (!own)
        port = in != FT_NONE && ft_is_port(in) ? ft_topology_port(t, in)->peer : FT_NONE;
    if (port == FT_NONE || !ft_is_port(port) || ft_topology_port(t, port)->group == FT_NONE ||
        ft_topology_port(t, port)->direction != FT_DIRECTION_UP)
        return FT_NONE;
    return port;
}

static const struct ft_sighting *sightings(const struct ft_flow *flow)
{
    return flow->evidence.size ? flow->evidence.list : flow->evidence.own;
}

static uint32_t link_of(const struct ft_topology *t, const struct ft_sighting *s, bool own)
{
    if (ft_sighting_samples(s, 0) == 0 && ft_sighting_samples(s, 1) == 0)
        return FT_NONE;
    return ft_flow_link_up(t, ft_sighting_in(s), ft_sighting_out(s), own);
}

/* Whether another link of the same group has samples. */
static bool is_spread(const struct ft_topology *t, const struct ft_flow *flow, uint16_t from,
                      uint32_t link, bool own)
{
    const struct ft_sighting *list = sightings(flow);

    for (uint16_t i = from; i < flow->evidence.count; i++) {
        uint32_t other = link_of(t, &list[i], own);

        if (other != FT_NONE && other != link &&
            ft_topology_port(t, other)->group == ft_topology_port(t, link)->group)
            return true;
    }
    return false;
}

/* The lowest group with samples of several links; rather by its own switch. */
static struct site find_site(const struct ft_topology *t, const struct ft_flow *flow)
{
    const struct ft_sighting *list = sightings(flow);
    struct site best = {.group = FT_NONE};

    for (uint16_t i = 0; i < flow->evidence.count; i++)
        for (int own = 1; own >= 0; own--) {
            uint32_t link = link_of(t, &list[i], own), group;
            enum ft_tier tier;

            if (link == FT_NONE)
                continue;
            group = ft_topology_port(t, link)->group;
            tier = ft_topology_switch(t, ft_topology_group(t, group)->switch_id)->tier;
            if (ft_topology_group(t, group)->link_count > LINKS_MAX ||
                (best.group != FT_NONE &&
                 (tier > best.tier || (tier == best.tier && (best.own || !own)))))
                continue;
            if (is_spread(t, flow, i + 1, link, own))
                best = (struct site){.group = group, .own = own, .tier = tier};
        }
    return best;
}

/* Empties what an older window left, and sees where samples are to be counted from now on. */
static void advance(struct ft_join *j, struct ft_flow *flow, struct ft_flow_clumps *c,
                    uint32_t window)
{
    struct site at = find_site(j->t, flow);

    for (uint32_t step = 0; step < 2 && step < window - c->window; step++) {
        c->slots[(window - step) & 1] = (struct ft_clumps){0};
        c->repeated[(window - step) & 1] = false;
    }
    c->window = window;
    if (at.group == c->group && at.own == c->own)
        return;
    *c = (struct ft_flow_clumps){.group = at.group, .own = at.own, .fresh = true, .window = window};
}

static struct ft_flow_clumps *add(struct ft_join *j, struct ft_flow *flow, uint32_t window)
{
    size_t before = ft_flow_beside(flow);
    struct site at = find_site(j->t, flow);
    struct ft_flow_clumps *c;

    if (at.group == FT_NONE || ft_join_is_full(j))
        return NULL;
    c = ft_flow_add_part(flow, FT_FLOW_CLUMPS);
    if (!c)
        return NULL;
    ft_join_recount(j, flow, before);
    *c = (struct ft_flow_clumps){.group = at.group, .own = at.own, .fresh = true, .window = window};
    return c;
}

/* The interval of a window; NULL where later ones are counted instead. */
static struct ft_flow_interval *find_interval(struct ft_flow_clumps *c, uint32_t start, bool odd)
{
    struct ft_flow_interval *oldest = &c->intervals[0];

    for (int i = 0; i < FT_FLOW_INTERVALS; i++) {
        struct ft_flow_interval *at = &c->intervals[i];

        if (at->samples && at->start == start && at->odd == odd)
            return at;
        if (oldest->samples && (at->samples == 0 || (int32_t)(at->start - oldest->start) < 0))
            oldest = at;
    }
    if (oldest->samples && (int32_t)(start - oldest->start) < 0)
        return NULL;
    *oldest = (struct ft_flow_interval){.start = start, .odd = odd};
    return oldest;
}

/* Of an interval; as many as are counted where that is not known. */
static uint32_t seconds_of(const struct ft_observation *o)
{
    return o->interval_ms ? o->interval_ms / SECOND_MS + (o->interval_ms % SECOND_MS != 0)
                          : FT_SECONDS_MAX;
}

static void count(struct ft_flow_clumps *c, const struct ft_observation *o, uint32_t start,
                  uint32_t link, uint32_t window)
{
    struct ft_flow_interval *at = find_interval(c, start, window & 1);
    struct ft_clumps *sum = &c->slots[window & 1];
    uint64_t n = o->samples;

    if (!at)
        return;
    if (at->samples == 0)
        sum->seconds += seconds_of(o);
    if (at->links & UINT64_C(1) << link)
        c->repeated[window & 1] = true;
    at->links |= UINT64_C(1) << link;
    sum->samples += n;
    sum->pairs += 2 * n * at->samples + n * (n - 1);
    sum->same += n * (n - 1);
    at->samples += n;
}

/* Which link of the group it is; FT_NONE: samples taken elsewhere. */
static uint32_t position(const struct ft_topology *t, const struct ft_flow_clumps *c, uint32_t in,
                         uint32_t out)
{
    uint32_t port = ft_flow_link_up(t, in, out, c->own);
    const struct ft_group *g;

    if (port == FT_NONE || ft_topology_port(t, port)->group != c->group)
        return FT_NONE;
    g = ft_topology_group(t, c->group);
    for (uint32_t i = 0; i < g->link_count; i++)
        if (g->links[i] == port)
            return i;
    return FT_NONE;
}

void ft_flow_take_clumps(struct ft_join *j, struct ft_flow *flow, const struct ft_observation *o,
                         uint32_t in, uint32_t out, uint32_t window, bool due)
{
    struct ft_flow_clumps *c = ft_flow_part(flow, FT_FLOW_CLUMPS);
    int64_t start_ms = o->start_ms ? o->start_ms : o->last_ms - o->last_ms % SECOND_MS;
    uint32_t start = (uint32_t)start_ms, link;

    if (!c) {
        if (!due || (flow->evidence.returns == 0 && flow->state != FT_PATH_MULTIPATH))
            return;
        c = add(j, flow, window);
        if (!c)
            return;
    }
    if (window > c->window)
        advance(j, flow, c, window);
    if (c->group == FT_NONE) {
        size_t before = ft_flow_beside(flow);

        ft_flow_remove_part(flow, FT_FLOW_CLUMPS);
        ft_join_recount(j, flow, before);
        return;
    }
    link = position(j->t, c, in, out);
    if (link == FT_NONE || o->samples == 0)
        return;
    /* Of the interval in which it begins, some samples have gone. */
    if (c->fresh) {
        c->fresh = false;
        c->begun = start;
        c->point = o->point;
        c->in = in;
    }
    if ((int32_t)(start - c->begun) > 0 && o->point == c->point && (!c->own || in == c->in))
        count(c, o, start, link, window);
}

const struct ft_clumps *ft_flow_clumps_of(const struct ft_flow *flow, uint32_t window,
                                          uint32_t *group)
{
    const struct ft_flow_clumps *c = ft_flow_part(flow, FT_FLOW_CLUMPS);

    if (!c || c->group == FT_NONE || c->window - window > 1 || c->repeated[window & 1])
        return NULL;
    *group = c->group;
    return &c->slots[window & 1];
}
