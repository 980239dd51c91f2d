// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/spread/spread_impl.h"
#include "lib/base/table.h"
#include "lib/fabric/choice.h"
#include "lib/fabric/effective.h"

/* Tiers in which switches choose among links up. */
#define TIERS_MAX 3

static struct ft_table *of_kind(const struct ft_spread *s, const struct ft_spread_key *key)
{
    return key->kind == FABRICTRACE__SPREAD_OF__SPREAD_OF_QP ? s->qps : s->entries;
}

static bool entropy_at(const struct ft_spread *s, const struct ft_spread_key *key,
                       const struct ft_spread_stats *p, const struct ft_topology *t, unsigned tiers,
                       struct ft_entropy *out);

/* What the switch behind a link chooses among, on the way up. False: that is not known. */
static bool entropy_behind(const struct ft_spread *s, const struct ft_spread_key *key,
                           uint32_t link, uint32_t dst_nic, const struct ft_topology *t,
                           unsigned tiers, struct ft_entropy *out)
{
    uint32_t at = ft_topology_port(t, ft_topology_port(t, link)->peer)->switch_id;
    uint32_t left = ft_choice_distance(t, at, dst_nic);
    const struct ft_port *port;
    struct ft_spread_key next = *key;
    struct ft_choice choice;
    const struct ft_spread_entry *e;

    *out = FT_ENTROPY_NONE;
    if (left == 0)
        return true;
    if (left == FT_NONE || !ft_choice_find(&choice, t, at, dst_nic, left - 1) || choice.count == 0)
        return false;
    port = ft_topology_port(t, choice.links[0]);
    if (choice.count == 1 || port->direction != FT_DIRECTION_UP)
        return true;
    next.group = port->group;
    for (uint32_t i = 1; i < choice.count; i++)
        if (ft_topology_port(t, choice.links[i])->group != next.group)
            return false;
    e = next.group == FT_NONE || tiers == 1 ? NULL : ft_table_find(of_kind(s, key), &next);
    return e && entropy_at(s, key, e->stats, t, tiers - 1, out);
}

/* Of the choices from a group on. */
static bool entropy_at(const struct ft_spread *s, const struct ft_spread_key *key,
                       const struct ft_spread_stats *p, const struct ft_topology *t, unsigned tiers,
                       struct ft_entropy *out)
{
    const struct ft_group *g = ft_topology_group(t, p->group);
    struct ft_entropy_link links[FT_SPREAD_LINKS_MAX];
    uint32_t m = 0;

    if (p->mixed)
        return false;
    for (uint32_t i = 0; i < g->link_count; i++) {
        if (!(p->possible & UINT64_C(1) << i || p->links[i].samples))
            continue;
        links[m].samples = p->links[i].samples;
        links[m].behind_id =
            ft_topology_port(t, g->links[i])->peer == FT_NONE
                ? FT_NONE
                : ft_topology_port(t, ft_topology_port(t, g->links[i])->peer)->switch_id;
        if (links[m].behind_id == FT_NONE)
            return false;
        if (!entropy_behind(s, key, g->links[i], p->dst_nic, t, tiers, &links[m].behind)) {
            if (links[m].samples)
                return false;
            /* Nothing took it: what is behind it does not count. */
            links[m].behind = FT_ENTROPY_NONE;
        }
        m++;
    }
    return m && ft_entropy_of(links, m, out);
}

void ft_spread_fill_whole(const struct ft_spread *s, Fabrictrace__Spread *out,
                          const struct ft_spread_entry *e, const struct ft_topology *t)
{
    const struct ft_group *g = ft_topology_group(t, e->stats->group);
    struct ft_effective effective;
    struct ft_entropy entropy;

    if (ft_topology_switch(t, g->switch_id)->tier != FT_TIER_LEAF ||
        !entropy_at(s, &e->key, e->stats, t, TIERS_MAX, &entropy))
        return;
    ft_effective(&entropy, &effective);
    out->has_end_to_end_paths = out->has_end_to_end_lo = out->has_end_to_end_hi = true;
    out->end_to_end_paths = effective.paths;
    out->end_to_end_lo = effective.lo;
    out->end_to_end_hi = effective.hi;
}
