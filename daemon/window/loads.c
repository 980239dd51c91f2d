// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/window/loads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/join/flow_path.h"
#include "daemon/join/moves.h"
#include "daemon/publish/emit.h"
#include "lib/base/grow.h"

#define SHARES_MAX 64
/* Groups in which a share of a flow is not certain; of more, the flow is unplaced in the first. */
#define VAGUE_MAX 16

int ft_loads_init(struct ft_loads *l, const struct ft_topology *t)
{
    memset(l, 0, sizeof(*l));
    l->link = calloc((size_t)ft_topology_ports(t) + 1, sizeof(*l->link));
    l->unplaced = calloc((size_t)ft_topology_groups(t) + 1, sizeof(*l->unplaced));
    l->skewed = ft_skewed_new(t);
    l->reach = ft_reach_new(t);
    if (l->link && l->unplaced && l->skewed && l->reach)
        return 0;
    ft_loads_free(l);
    return -ENOMEM;
}

void ft_loads_free(struct ft_loads *l)
{
    free(l->link);
    free(l->unplaced);
    free(l->elephants);
    ft_skewed_free(l->skewed);
    ft_reach_free(l->reach);
    memset(l, 0, sizeof(*l));
}

void ft_loads_reset(struct ft_loads *l, const struct ft_topology *t)
{
    struct ft_loads kept = {.link = l->link,
                            .unplaced = l->unplaced,
                            .skewed = l->skewed,
                            .reach = l->reach,
                            .elephants = l->elephants,
                            .elephant_size = l->elephant_size};

    memset(l->link, 0, ft_topology_ports(t) * sizeof(*l->link));
    memset(l->unplaced, 0, ft_topology_groups(t) * sizeof(*l->unplaced));
    *l = kept;
}

double ft_loads_of_group(struct ft_loads *l, const struct ft_topology *t, uint32_t group)
{
    const struct ft_group *g = ft_topology_group(t, group);

    if (l->summed == group + 1)
        return l->sum;
    l->summed = group + 1;
    l->sum = 0;
    for (uint32_t i = 0; i < g->link_count; i++)
        l->sum += l->link[g->links[i]].bytes;
    return l->sum;
}

/* The slowest link of a path, 0 when no speed is known. */
static uint64_t slowest_bps(const struct ft_topology *t, const struct ft_path *path)
{
    uint64_t slowest = 0;

    for (uint32_t h = 0; h < path->hop_count; h++) {
        uint64_t speed =
            ft_is_port(path->hops[h].out) ? ft_topology_port(t, path->hops[h].out)->speed_bps : 0;

        if (speed && (!slowest || speed < slowest))
            slowest = speed;
    }
    return slowest;
}

static int keep_elephant(struct ft_loads *l, size_t max, const struct ft_elephant *elephant)
{
    struct ft_elephant *grown;

    if (l->elephant_count >= max)
        goto drop;
    grown = ft_grow(l->elephants, l->elephant_count, &l->elephant_size, sizeof(*grown));
    if (!grown)
        goto drop;
    l->elephants = grown;
    l->elephants[l->elephant_count++] = *elephant;
    return 0;
drop:
    l->elephants_dropped++;
    return -ENOMEM;
}

void ft_loads_keep_elephant(struct ft_loads *l, uint32_t port, const Fabrictrace__Victim *said)
{
    const struct ft_elephant elephant = {
        .port = port, .flow = FT_NONE, .lo_bps = said->rate_lo_bps, .said = said};

    keep_elephant(l, SIZE_MAX, &elephant);
}

/* A flow's volume: what c samples stand for has the variance bytes^2 / c. */
struct volume {
    double bytes;
    double variance;
    const struct ft_flow *flow;
};

/* How a flow came to a link. */
enum chosen {
    CHOSEN_NOT,    /* by no choice among links alike, nor by weights of the link's own group */
    CHOSEN_NARROW, /* by such a choice among some links of the group */
    CHOSEN_OF_ALL,
};

static void load_link(struct ft_load *link, bool counts, double part, const struct volume *volume,
                      enum chosen chosen)
{
    link->bytes += volume->bytes * part;
    link->variance += volume->variance * part * part;
    if (!counts)
        return;
    link->flows += part;
    link->certain += part == 1 && chosen == CHOSEN_OF_ALL;
    link->narrow += part == 1 && chosen == CHOSEN_NARROW;
}

static enum chosen how_chosen(const struct ft_loads *l, const struct ft_topology *t,
                              const struct ft_flow *flow, const struct ft_path *path, uint32_t hop)
{
    struct ft_reach_ends ends;

    /* Its sender chose the link. */
    if (flow->source_routed || ft_skewed_before(l->skewed, t, path, hop))
        return CHOSEN_NOT;
    ends = ft_reach_ends(t, flow->src_nic, flow->dst_nic, path->hops[0].out);
    return ft_reach_all(l->reach, t, path->hops[hop].out, &ends) ? CHOSEN_OF_ALL : CHOSEN_NARROW;
}

/* Loads links of a path (bits by hop) with a part of the flow. */
static int add_path(struct ft_loads *l, const struct ft_loads_config *config,
                    const struct ft_topology *t, const struct ft_move_part *part, uint32_t links,
                    const struct ft_rate *rate, const struct volume *volume, bool counts,
                    uint32_t index)
{
    uint64_t slowest = slowest_bps(t, part->path);
    uint64_t lo_bps = (uint64_t)((double)rate->lo_bps * part->share);
    /* On the path that it had for most of the window: two that exchange paths do not meet. */
    bool elephant = counts && part->share > 0.5 && slowest &&
                    (double)lo_bps >= config->elephant_share * (double)slowest;
    int rc = 0;

    for (uint32_t h = 0; h < part->path->hop_count; h++) {
        uint32_t port = part->path->hops[h].out;

        if (!ft_is_port(port) || !(links & UINT32_C(1) << h))
            continue;
        load_link(&l->link[port], counts, part->share, volume,
                  how_chosen(l, t, volume->flow, part->path, h));
        if (!elephant || ft_topology_port(t, port)->group == FT_NONE)
            continue;
        l->link[port].elephants++;
        if (keep_elephant(l, config->elephants_max,
                          &(struct ft_elephant){.port = port, .flow = index, .lo_bps = lo_bps}))
            rc = -ENOMEM;
    }
    return rc;
}

/* Groups in which a flow must have taken some link: up from its source's leaf, down to its
 * destination's. FT_NONE: there is none, or with two leaves to choose from even the group is not
 * certain. */
enum { GROUP_UP, GROUP_DOWN, GROUPS_OF_FLOW };

static void find_groups(const struct ft_topology *t, const struct ft_flow *flow,
                        uint32_t groups[GROUPS_OF_FLOW])
{
    const uint32_t ends[GROUPS_OF_FLOW] = {flow->src_nic, flow->dst_nic};
    const enum ft_direction directions[GROUPS_OF_FLOW] = {FT_DIRECTION_UP, FT_DIRECTION_DOWN};

    groups[GROUP_UP] = groups[GROUP_DOWN] = FT_NONE;
    if (flow->src_nic == FT_NONE || flow->dst_nic == FT_NONE ||
        ft_paths_length(t, flow->src_nic, flow->dst_nic) < 2)
        return;
    for (int e = 0; e < GROUPS_OF_FLOW; e++) {
        const struct ft_nic *nic = ft_topology_nic(t, ends[e]);

        if (nic->attach_count == 1)
            groups[e] = ft_topology_find_group(t, ft_topology_port(t, nic->attach[0])->switch_id,
                                               directions[e]);
    }
}

/* Whether a link of a path, of those that are certain, is in a group. */
static bool has_link_in(const struct ft_topology *t, const struct ft_path *path, uint32_t links,
                        uint32_t group)
{
    for (uint32_t h = 0; h < path->hop_count; h++)
        if (links & UINT32_C(1) << h && ft_is_port(path->hops[h].out) &&
            ft_topology_port(t, path->hops[h].out)->group == group)
            return true;
    return false;
}

/* The group of a link, or of the members of an aggregate; FT_NONE. */
static uint32_t group_of(const struct ft_topology *t, uint32_t out)
{
    if (ft_is_lag(out))
        out = ft_topology_lag(t, out)->members[0];
    return out == FT_NONE ? FT_NONE : ft_topology_port(t, out)->group;
}

/* Of paths that are not known to their ends: the flow is unplaced in groups of which no link, and
 * no aggregate, is named. */
static void leave_unplaced(struct ft_loads *l, const struct ft_topology *t,
                           const struct ft_flow *flow, const struct ft_path_share *shares, size_t n)
{
    uint32_t groups[GROUPS_OF_FLOW];

    find_groups(t, flow, groups);
    for (int e = 0; e < GROUPS_OF_FLOW; e++) {
        bool named = groups[e] == FT_NONE;

        for (size_t i = 0; i < n && !named; i++)
            for (uint32_t h = 0; h < shares[i].path.hop_count; h++)
                named |= group_of(t, shares[i].path.hops[h].out) == groups[e];
        if (!named)
            l->unplaced[groups[e]]++;
    }
}

/* Loads the certain hops of a multipath flow's shares. Returns whether all are. */
static bool add_shares(struct ft_loads *l, const struct ft_topology *t,
                       const struct ft_path_share *shares, size_t n, const struct volume *volume,
                       bool counts)
{
    uint32_t vague[VAGUE_MAX], vague_count = 0;
    bool certain = true, complete = true;

    for (size_t i = 0; i < n; i++)
        for (uint32_t h = 0; h < shares[i].path.hop_count; h++) {
            uint32_t out = shares[i].path.hops[h].out, group, k = 0;

            if (ft_is_port(out)) {
                load_link(&l->link[out], counts, shares[i].share, volume, CHOSEN_NOT);
                continue;
            }
            certain = false;
            complete &= out != FT_NONE;
            if (!counts || !ft_is_lag(out))
                continue;
            group = group_of(t, out);
            while (k < vague_count && vague[k] != group)
                k++;
            if (group == FT_NONE || k < vague_count || vague_count == VAGUE_MAX)
                continue;
            vague[vague_count++] = group;
            l->unplaced[group]++;
        }
    if (counts && !complete)
        leave_unplaced(l, t, volume->flow, shares, n);
    return certain;
}

static bool share_a_leaf(const struct ft_topology *t, const struct ft_flow *flow)
{
    const struct ft_nic *src = ft_topology_nic(t, flow->src_nic);
    const struct ft_nic *dst = ft_topology_nic(t, flow->dst_nic);

    for (uint32_t i = 0; i < src->attach_count; i++)
        for (uint32_t k = 0; k < dst->attach_count; k++)
            if (ft_topology_port(t, src->attach[i])->switch_id ==
                ft_topology_port(t, dst->attach[k])->switch_id)
                return true;
    return false;
}

static void count_crossings(struct ft_loads *l, const struct ft_topology *t,
                            const struct ft_flow *flow, double bytes)
{
    const struct ft_nic *src, *dst;

    if (flow->src_nic == FT_NONE || flow->dst_nic == FT_NONE)
        return;
    src = ft_topology_nic(t, flow->src_nic);
    dst = ft_topology_nic(t, flow->dst_nic);
    if (src->rail != FT_NONE && dst->rail != FT_NONE && src->rail != dst->rail) {
        l->rail.flows++;
        l->rail.bytes += bytes;
    }
    if (share_a_leaf(t, flow) && ft_evidence_above_leaf(&flow->evidence, t)) {
        l->spine.flows++;
        l->spine.bytes += bytes;
    }
}

/* The slowest port of a flow's NICs, where its path is not known; 0: no speed is. */
static uint64_t slowest_nic_bps(const struct ft_topology *t, const struct ft_flow *flow)
{
    const uint32_t ends[] = {flow->src_nic, flow->dst_nic};
    uint64_t slowest = 0;

    for (int e = 0; e < 2; e++) {
        const struct ft_nic *nic = ends[e] == FT_NONE ? NULL : ft_topology_nic(t, ends[e]);

        for (uint32_t i = 0; nic && i < nic->attach_count; i++) {
            uint64_t speed = ft_topology_port(t, nic->attach[i])->speed_bps;

            if (speed && (!slowest || speed < slowest))
                slowest = speed;
        }
    }
    return slowest;
}

static bool is_counted(const struct ft_loads_config *config, const struct ft_topology *t,
                       const struct ft_flow *flow, const struct ft_path *path,
                       const struct ft_rate *rate)
{
    uint64_t slowest = slowest_bps(t, path);

    if (ft_role_answers(flow->role))
        return false;
    if (!slowest)
        slowest = slowest_nic_bps(t, flow);
    return (double)rate->bps >= config->floor_share * (double)slowest;
}

/* Whether a flow whose path is uncertain had the known one in the window all the same, as far as it
 * was sampled: all its samples are of that path, and it was left in the window at the earliest. */
static bool is_as_known(const struct ft_join *join, const struct ft_flow *flow,
                        const struct ft_path *known, const struct ft_judgement *judged,
                        int64_t from_ms, bool *certain)
{
    const struct ft_topology *t = ft_join_topology(join);
    uint32_t all = (UINT32_C(1) << known->hop_count) - 1;
    int64_t first_ms, last_ms;
    bool attested;

    if (flow->reason != FT_REASON_CHANGING || known->hop_count == 0 ||
        !ft_evidence_agrees(&flow->evidence, t, known, flow->bytes_window & 1))
        return false;
    ft_evidence_attested(&flow->evidence, t, known, &first_ms, &last_ms);
    attested = first_ms >= from_ms;
    /* A link of which no sample is left may be where it left. */
    *certain =
        attested && ft_join_links(join, flow, known, FT_PRESENT, flow->bytes_window & 1) == all;
    return judged->contradicted ? judged->left_ms >= from_ms : attested;
}

/* The path that a flow had in the window, which began at from_ms; NULL: none is known. certain: it
 * had all of it, as far as its own moves do not say otherwise. *known and *judged are room for it.
 */
static const struct ft_path *path_of(const struct ft_join *join, const struct ft_flow *flow,
                                     int64_t from_ms, struct ft_path *known,
                                     struct ft_judgement *judged, bool *certain)
{
    *certain = false;
    *known = ft_flow_path(ft_join_topology(join), flow);
    if (flow->state == FT_PATH_RESOLVED) {
        *certain = ft_join_is_placed(join, flow, from_ms);
        return known;
    }
    if (flow->state != FT_PATH_PARTIAL)
        return NULL;
    ft_join_judge(join, flow, judged);
    if (is_as_known(join, flow, known, judged, from_ms, certain))
        return known;
    *certain = false;
    return judged->state == FT_PATH_PARTIAL ? &judged->path : NULL;
}

/* Whether each hop of a path leaves by a port, not by some member of an aggregate. */
static bool is_of_ports(const struct ft_path *path)
{
    for (uint32_t h = 0; h < path->hop_count; h++)
        if (!ft_is_port(path->hops[h].out))
            return false;
    return path->hop_count > 0;
}

/* Loads what a flow sent on each of the paths that it had, as far as they are certain. Returns
 * whether all of it is placed; where not, the flow is unplaced in groups of which some part of it
 * has no certain link. */
static bool add_parts(struct ft_loads *l, const struct ft_loads_config *config,
                      const struct ft_join *join, const struct ft_flow *flow,
                      const struct ft_move_part *parts, size_t n, const struct ft_rate *rate,
                      const struct volume *volume, bool counts, uint32_t index, int *rc)
{
    static const struct ft_path nothing = {.hop_count = 0};
    const struct ft_topology *t = ft_join_topology(join);
    uint32_t groups[GROUPS_OF_FLOW];
    bool placed = true, found = false;

    for (size_t i = 0; i < n; i++) {
        const struct ft_path *path = parts[i].path ? parts[i].path : &nothing;
        uint32_t all = (UINT32_C(1) << path->hop_count) - 1, links = all;

        if (parts[i].share <= 0)
            continue;
        if (!parts[i].certain)
            links = parts[i].path
                        ? ft_join_links(join, flow, path, parts[i].past, flow->bytes_window & 1)
                        : 0;
        if (add_path(l, config, t, &(struct ft_move_part){.path = path, .share = parts[i].share},
                     links, rate, volume, counts, index))
            *rc = -ENOMEM;
        placed &= links == all && path->hop_count > 0;
        /* All of a path has a link in each of the groups. */
        if (links == all && is_of_ports(path))
            continue;
        if (!found)
            find_groups(t, flow, groups);
        found = true;
        for (int e = 0; e < GROUPS_OF_FLOW; e++)
            if (groups[e] != FT_NONE && !has_link_in(t, path, links, groups[e])) {
                l->unplaced[groups[e]] += counts;
                groups[e] = FT_NONE;
            }
    }
    return placed;
}

/* Several flows: which links they load is not known, nor whose ends are whose. */
static void add_several(struct ft_loads *l, const struct ft_loads_config *config,
                        const struct ft_topology *t, const struct ft_flow *flow,
                        const struct ft_rate *rate)
{
    static const struct ft_path nothing = {.hop_count = 0};

    if (!is_counted(config, t, flow, &nothing, rate))
        return;
    l->flows++;
    l->bytes += (double)flow->bytes;
    leave_unplaced(l, t, flow, NULL, 0);
}

int ft_loads_add(struct ft_loads *l, const struct ft_loads_config *config,
                 const struct ft_join *join, struct ft_flow *flow, uint32_t index)
{
    static const struct ft_path nothing = {.hop_count = 0};
    const struct ft_topology *t = ft_join_topology(join);
    struct ft_rate rate = ft_flow_rate(flow, config->window_ms);
    struct ft_path_share shares[SHARES_MAX];
    struct ft_path known;
    struct ft_judgement judged;
    double bytes = (double)flow->bytes;
    struct volume volume = {.bytes = bytes,
                            .variance = bytes * bytes * ft_flow_variance(flow, config->window_ms),
                            .flow = flow};
    int64_t from_ms = flow->bytes_window * config->window_ms;
    struct ft_move_part parts[FT_MOVE_PARTS];
    bool certain, counts;
    const struct ft_path *path = path_of(join, flow, from_ms, &known, &judged, &certain);
    size_t n = 0;
    int rc = 0;

    if (flow->reason == FT_REASON_SEVERAL_NETWORKS) {
        add_several(l, config, t, flow, &rate);
        return 0;
    }
    if (flow->state == FT_PATH_MULTIPATH) {
        n = ft_evidence_shares(&flow->evidence, t, flow->src_nic, flow->dst_nic,
                               ft_slot_of(flow->bytes_window), shares, SHARES_MAX);
        counts = is_counted(config, t, flow, n ? &shares[0].path : &nothing, &rate);
    } else {
        counts = is_counted(config, t, flow, path ? path : &nothing, &rate);
    }
    if (counts) {
        l->flows++;
        l->bytes += bytes;
        count_crossings(l, t, flow, bytes);
    }
    if (n) {
        if (add_shares(l, t, shares, n, &volume, counts) && counts)
            l->placed++;
        return 0;
    }
    n = ft_moves_divide(flow, t, path, certain, flow->bytes_window & 1, from_ms, parts);
    if (add_parts(l, config, join, flow, parts, n, &rate, &volume, counts, index, &rc) && counts)
        l->placed++;
    return rc;
}

struct ft_pair_load ft_loads_pair_load(const void *arg, uint32_t port)
{
    const struct ft_load *load = &((const struct ft_loads *)arg)->link[port];

    return (struct ft_pair_load){.bytes = load->bytes,
                                 .variance = load->variance,
                                 .flows = load->flows,
                                 .elephants = load->elephants};
}
