// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/discovery/survey.h"

/* That are looked through in the time of one look-up. */
#define PORTS_A_LOOK 32
#define ADVISE_TIER  "state the switch's tier in the topology file"

static uint32_t far_node(const struct ft_survey *s, uint32_t end)
{
    return s->ends[end].link == FT_NONE ? FT_NONE : s->ends[s->ends[end].link].node;
}

static bool are_neighbours(const struct ft_survey *s, uint32_t a, uint32_t b)
{
    const struct ft_node *n = &s->nodes[a];

    ft_task_spend(s->task, 1 + n->end_count / PORTS_A_LOOK);
    for (uint32_t i = 0; i < n->end_count; i++)
        if (far_node(s, n->first_end + i) == b)
            return true;
    return false;
}

/* Whether every switch that `a` is linked to, b is linked to as well. */
static bool neighbours_within(const struct ft_survey *s, uint32_t a, uint32_t b)
{
    const struct ft_node *n = &s->nodes[a];

    for (uint32_t i = 0; i < n->end_count; i++) {
        uint32_t far = far_node(s, n->first_end + i);

        if (far != FT_NONE && !are_neighbours(s, b, far))
            return false;
    }
    return true;
}

static bool share_neighbour(const struct ft_survey *s, uint32_t a, uint32_t b)
{
    const struct ft_node *n = &s->nodes[a];

    for (uint32_t i = 0; i < n->end_count; i++) {
        uint32_t far = far_node(s, n->first_end + i);

        if (far != FT_NONE && far != b && are_neighbours(s, b, far))
            return true;
    }
    return false;
}

static bool is_stated(const struct ft_survey *s, const struct ft_node *n)
{
    return n->base != FT_NONE && ft_topology_switch(s->base, n->base)->tier_stated;
}

static void drop_hosts(struct ft_survey *s, uint32_t node)
{
    for (uint32_t i = 0; i < s->nic_count; i++)
        for (uint32_t e = 0; e < s->nics[i].end_count; e++)
            if (s->ends[s->nics[i].ends[e]].node == node)
                s->nics[i].dropped = true;
    s->nodes[node].host_ends = 0;
    ft_findings_add(s->findings, FT_FINDING_NOTE, s->nodes[node].name, NULL,
                    "let the poller read the switches behind it, or state them in the file",
                    "hosts seem to be attached, but it is linked to leaves: there must be a switch "
                    "between that is not polled");
}

/* Hosts of a switch that is linked to a leaf are behind a switch that nobody polls, unless the two
 * are a pair with a link between them, which shows by neighbours that they share. */
static void weed_hosts(struct ft_survey *s)
{
    for (uint32_t i = 0; i < s->end_count; i++) {
        uint32_t a = s->ends[i].node, b = far_node(s, i);

        if (b == FT_NONE || s->nodes[a].host_ends == 0 ||
            s->nodes[b].host_ends <= s->nodes[a].host_ends || is_stated(s, &s->nodes[a]) ||
            share_neighbour(s, a, b))
            continue;
        drop_hosts(s, a);
    }
}

static bool raise_tier(struct ft_survey *s, enum ft_tier below)
{
    bool some = false;

    for (uint32_t i = 0; i < s->end_count; i++) {
        struct ft_node *n = &s->nodes[s->ends[i].node];
        uint32_t far = far_node(s, i);

        if (far != FT_NONE && n->tier == FT_TIER_UNKNOWN && s->nodes[far].tier == below) {
            n->tier = below + 1;
            some = true;
        }
    }
    return some;
}

/* A switch without hosts below the spines: linked to nothing that some leaf is not linked to. A
 * superspine is linked to spines of several pods, which no leaf is. */
static bool find_empty_leaves(struct ft_survey *s)
{
    bool some = false;

    for (uint32_t i = 0; i < s->end_count; i++) {
        uint32_t at = s->ends[i].node, spine = far_node(s, i);
        struct ft_node *n = &s->nodes[at];

        if (spine == FT_NONE || n->tier != FT_TIER_UNKNOWN || s->nodes[spine].tier != FT_TIER_SPINE)
            continue;
        for (uint32_t k = 0; k < s->nodes[spine].end_count && n->tier == FT_TIER_UNKNOWN; k++) {
            uint32_t leaf = far_node(s, s->nodes[spine].first_end + k);

            if (leaf == FT_NONE || s->nodes[leaf].tier != FT_TIER_LEAF ||
                !neighbours_within(s, at, leaf))
                continue;
            n->tier = FT_TIER_LEAF;
            some = true;
        }
    }
    return some;
}

static void note_unknown(struct ft_survey *s)
{
    for (uint32_t i = 0; i < s->node_count; i++) {
        const struct ft_node *n = &s->nodes[i];
        bool linked = false;

        for (uint32_t k = 0; k < n->end_count; k++)
            linked |= far_node(s, n->first_end + k) != FT_NONE;
        if (linked && n->tier == FT_TIER_UNKNOWN)
            ft_findings_add(s->findings, FT_FINDING_NOTE, n->name, NULL, ADVISE_TIER,
                            "its tier is unknown: no host of its part of the fabric is known yet; "
                            "its links are left out");
    }
    for (uint32_t i = 0; i < s->end_count; i++) {
        const struct ft_node *n = &s->nodes[s->ends[i].node];
        uint32_t far = far_node(s, i);

        if (far != FT_NONE && s->ends[i].link > i && n->tier != FT_TIER_UNKNOWN &&
            n->tier == s->nodes[far].tier)
            ft_findings_add(s->findings, FT_FINDING_NOTE, n->name, s->ends[i].name, NULL,
                            "its link to %.100s is inside the tier %s: it is left out of paths",
                            s->nodes[far].name, ft_tier_name(n->tier));
    }
}

void ft_survey_tiers(struct ft_survey *s)
{
    bool some = true;

    weed_hosts(s);
    for (uint32_t i = 0; i < s->node_count; i++) {
        struct ft_node *n = &s->nodes[i];

        if (is_stated(s, n))
            n->tier = ft_topology_switch(s->base, n->base)->tier;
        else if (n->host_ends)
            n->tier = FT_TIER_LEAF;
    }
    while (some) {
        some = raise_tier(s, FT_TIER_LEAF);
        some |= find_empty_leaves(s);
    }
    raise_tier(s, FT_TIER_SPINE);
    note_unknown(s);
}
