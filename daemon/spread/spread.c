// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/spread/spread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/join/flow_clumps.h"
#include "daemon/join/flow_names.h"
#include "daemon/spread/spread_impl.h"
#include "lib/base/table.h"
#include "lib/fabric/choice.h"

/* Groups that one flow passes on its way up: a sprayed one those behind each link. */
#define GROUPS_MAX (1 + FT_SPREAD_LINKS_MAX)

_Static_assert(FT_SPREAD_LINKS_MAX <= 64, "a bit for each link");
_Static_assert(sizeof(struct ft_spread_entry) + 40 <= FT_SPREAD_ENTRY_BYTES,
               "what the budget of the program gives an entry");
_Static_assert(sizeof(struct ft_spread_qp) + 40 <= FT_SPREAD_QP_BYTES,
               "what the budget of the program gives a queue pair");

struct ft_spread *ft_spread_new(uint64_t seed)
{
    struct ft_spread *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    ft_spread_kept_init(&s->kept);
    ft_spread_kept_init(&s->next);
    s->entries = ft_table_new(sizeof(struct ft_spread_entry), sizeof(struct ft_spread_key),
                              FT_SPREAD_ENTRIES_MAX, seed);
    s->qps = ft_table_new(sizeof(struct ft_spread_qp), sizeof(struct ft_spread_key),
                          FT_SPREAD_QPS_MAX, seed);
    s->chance = ft_chance_new();
    if (!s->entries || !s->qps || !s->chance) {
        ft_spread_free(s);
        return NULL;
    }
    return s;
}

static void empty(struct ft_table *entries)
{
    struct ft_spread_entry *e;
    uint32_t index = 0;

    if (!entries)
        return;
    while ((e = ft_table_next(entries, &index)))
        free(e->stats);
    ft_table_clear(entries);
}

static void forget(struct ft_spread *s)
{
    empty(s->entries);
    empty(s->qps);
    s->cursor = s->qp_cursor = 0;
    s->bytes = s->qp_bytes = 0;
}

void ft_spread_free(struct ft_spread *s)
{
    if (!s)
        return;
    forget(s);
    ft_table_free(s->entries);
    ft_table_free(s->qps);
    ft_chance_free(s->chance);
    ft_spread_kept_free(&s->kept);
    ft_spread_kept_free(&s->next);
    free(s);
}

void ft_spread_begin(struct ft_spread *s)
{
    forget(s);
    ft_spread_kept_clear(&s->next);
}

static uint32_t link_of(const struct ft_topology *t, const struct ft_sighting *s, bool own)
{
    return ft_flow_link_up(t, ft_sighting_in(s), ft_sighting_out(s), own);
}

static uint32_t position(const struct ft_group *g, uint32_t port)
{
    for (uint32_t i = 0; i < g->link_count; i++)
        if (g->links[i] == port)
            return i;
    return FT_NONE;
}

static void see(struct ft_spread_link *l, const struct ft_sighting *s, unsigned slot)
{
    int64_t first_ms = ft_sighting_first_ms(s);

    if (l->samples == 0 || first_ms < l->first_ms)
        l->first_ms = first_ms;
    if (l->samples == 0 || s->last_ms > l->last_ms)
        l->last_ms = s->last_ms;
    l->samples += ft_sighting_samples(s, slot);
    if (ft_seconds_of(s->seconds, slot) > l->seconds)
        l->seconds = ft_seconds_of(s->seconds, slot);
}

static unsigned slot_of(const struct ft_flow *flow)
{
    return flow->bytes_window & 1;
}

static const struct ft_sighting *sightings(const struct ft_flow *flow)
{
    return flow->evidence.size ? flow->evidence.list : flow->evidence.own;
}

/* A flow's samples at a group. Returns on how many links they are; *at: one of these. */
static uint32_t look_at(struct ft_spread_stats *p, const struct ft_topology *t,
                        const struct ft_flow *flow, unsigned slot, bool own, uint32_t *at)
{
    const struct ft_sighting *list = sightings(flow);
    const struct ft_group *g = ft_topology_group(t, p->group);
    uint32_t seen = 0;

    memset(p->links, 0, g->link_count * sizeof(*p->links));
    for (uint16_t i = 0; i < flow->evidence.count; i++) {
        uint32_t port = ft_sighting_samples(&list[i], slot) ? link_of(t, &list[i], own) : FT_NONE,
                 link;

        if (port == FT_NONE || ft_topology_port(t, port)->group != p->group)
            continue;
        link = position(g, port);
        if (link == FT_NONE)
            continue;
        seen += p->links[link].samples == 0;
        see(&p->links[link], &list[i], slot);
        *at = link;
    }
    return seen;
}

/* The groups that samples of a flow name. */
static size_t groups_of(const struct ft_topology *t, const struct ft_flow *flow, unsigned slot,
                        uint32_t groups[GROUPS_MAX])
{
    const struct ft_sighting *list = sightings(flow);
    size_t n = 0;

    for (uint16_t i = 0; i < flow->evidence.count; i++)
        for (int own = 0; own < 2; own++) {
            uint32_t port =
                         ft_sighting_samples(&list[i], slot) ? link_of(t, &list[i], own) : FT_NONE,
                     group;
            size_t k = 0;

            if (port == FT_NONE)
                continue;
            group = ft_topology_port(t, port)->group;
            while (k < n && groups[k] != group)
                k++;
            if (k == n && n < GROUPS_MAX &&
                ft_topology_group(t, group)->link_count <= FT_SPREAD_LINKS_MAX)
                groups[n++] = group;
        }
    return n;
}

static uint64_t sum_of(const struct ft_spread_link *links, uint32_t count)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum += links[i].samples;
    return sum;
}

/* How much samples of a sprayed flow keep together. False: that is not known. */
static bool find_dispersion(const struct ft_spread_stats *p, const struct ft_topology *t,
                            const struct ft_flow *flow, struct ft_dispersion *out)
{
    uint32_t links = ft_topology_group(t, p->group)->link_count, at, group;
    const struct ft_clumps *clumps = ft_flow_clumps_of(flow, flow->bytes_window, &group);
    uint32_t seconds = ft_seconds_of(flow->seconds, slot_of(flow));
    struct ft_spread_link there[FT_SPREAD_LINKS_MAX];
    struct ft_spread_stats before = {.links = there};
    uint64_t counts[FT_SPREAD_LINKS_MAX];
    double part = 1;

    if (!clumps)
        return false;
    if (group != p->group) {
        before.group = group;
        if (look_at(&before, t, flow, slot_of(flow), true, &at) < 2 &&
            look_at(&before, t, flow, slot_of(flow), false, &at) < 2)
            return false;
        part = fmin(1, (double)sum_of(p->links, links) /
                           (double)sum_of(there, ft_topology_group(t, group)->link_count));
    }
    for (uint32_t i = 0; i < links; i++)
        counts[i] = p->links[i].samples;
    if (!ft_dispersion_of(clumps, counts, links, seconds, part, out))
        return false;
    out->factor = fmax(out->factor, 1 / ft_spread_choosing(p->links, links, seconds));
    return true;
}

/* Samples of what is sprayed chose their links, as far as they do not keep together; what is not
 * did so once. */
static void count_trials(struct ft_spread_stats *p, const struct ft_topology *t,
                         const struct ft_flow *flow)
{
    struct ft_dispersion d;
    uint32_t most = p->first;

    p->variance = p->doubt = 0;
    if (p->sprayed) {
        /* Where it is not known how far they do, they say nothing of chance. */
        if (p->end - p->first < 2 || !find_dispersion(p, t, flow, &d))
            return;
        for (uint32_t i = p->first; i < p->end; i++)
            p->links[i].trials = p->links[i].samples;
        p->variance = d.factor * (double)sum_of(p->links + p->first, p->end - p->first);
        p->doubt = isfinite(d.freedom) ? p->variance * p->variance / d.freedom : 0;
        return;
    }
    for (uint32_t i = p->first; i < p->end; i++)
        if (p->links[i].samples > p->links[most].samples)
            most = i;
    p->links[most].trials = p->links[most].stays = 1;
}

static void add_to(struct ft_spread *s, const struct ft_spread_key *key,
                   const struct ft_spread_stats *p, const struct ft_topology *t)
{
    bool fresh;
    struct ft_spread_entry *e = ft_table_insert(s->entries, key, &fresh);

    if (e && fresh) {
        e->stats = ft_spread_stats_new(s, t, p->group, false);
        if (!e->stats) {
            ft_table_remove(s->entries, e);
            e = NULL;
        }
    }
    if (e)
        ft_spread_add(e->stats, p, t);
    else
        s->refused++;
}

static void publish_flow(struct ft_spread *s, const struct ft_join *join,
                         const struct ft_flow *flow, const struct ft_spread_stats *p,
                         enum ft_alternation alternation, double alternation_p,
                         const struct ft_span *span, const struct ft_emitter *emitter)
{
    const struct ft_topology *t = ft_join_topology(join);
    struct ft_spread_parts parts = {.out = FABRICTRACE__SPREAD__INIT};
    Fabrictrace__Flow tuple;

    ft_spread_fill(s, &parts, t, p);
    ft_emit_tuple(&tuple, &flow->tuple);
    parts.out.has_of = true;
    parts.out.of = FABRICTRACE__SPREAD_OF__SPREAD_OF_QP;
    parts.out.flow = &tuple;
    parts.out.src_host = ft_spread_text(ft_flow_src_host(join, flow));
    parts.out.dst_host = ft_spread_text(ft_flow_dst_host(join, flow));
    parts.out.job = ft_spread_text(ft_flow_job(flow));
    ft_spread_fill_alternation(&parts.out, alternation, alternation_p);
    ft_spread_hand_on(s, &parts, t, span, emitter);
}

void ft_spread_flow(struct ft_spread *s, const struct ft_join *join, const struct ft_flow *flow,
                    const struct ft_span *span, const struct ft_emitter *emitter)
{
    const struct ft_topology *t = ft_join_topology(join);
    unsigned slot = slot_of(flow);
    struct ft_spread_link links[FT_SPREAD_LINKS_MAX];
    uint32_t groups[GROUPS_MAX];
    size_t n;

    if (ft_role_answers(flow->role) || flow->src_nic == FT_NONE || flow->dst_nic == FT_NONE ||
        flow->reason == FT_REASON_SEVERAL_NETWORKS)
        return;
    /* Where samples found no room, a link without any may have had some. */
    if (flow->left_out & 1u << slot)
        return;
    n = groups_of(t, flow, slot, groups);
    for (size_t i = 0; i < n; i++) {
        const struct ft_group *g = ft_topology_group(t, groups[i]);
        struct ft_spread_key key = {.a = ft_topology_nic(t, flow->src_nic)->host_id,
                                    .b = ft_topology_nic(t, flow->dst_nic)->host_id,
                                    .kind = FABRICTRACE__SPREAD_OF__SPREAD_OF_CONNECTION,
                                    .group = groups[i]};
        enum ft_alternation alternation = FT_ALTERNATION_UNKNOWN;
        uint32_t seen, at = 0;
        double moved_p = 0;
        struct ft_spread_stats p = {.links = links};

        p.group = groups[i];
        p.flows = 1;
        seen = look_at(&p, t, flow, slot, true, &at);
        if (seen == 0)
            seen = look_at(&p, t, flow, slot, false, &at);
        if (seen == 0)
            continue;
        p.first = seen > 1 ? 0 : at;
        p.end = seen > 1 ? g->link_count : at + 1;
        p.dst_nic = flow->dst_nic;
        if (seen > 1)
            alternation = ft_spread_alternation(p.links, g->link_count, &moved_p);
        p.sprayed = alternation == FT_ALTERNATION_SPRAYED || flow->state == FT_PATH_MULTIPATH;
        count_trials(&p, t, flow);
        /* What came since is of the next window. */
        for (uint32_t k = p.first; k < p.end; k++)
            if (p.links[k].last_ms >= span->end_ms)
                p.links[k].last_ms = span->end_ms - 1;
        if (!(flow->source_routed && ft_spread_add_qp(s, t, flow, &p)) && seen > 1) {
            p.possible = p.common = ft_topology_nearest_links(t, g, flow->dst_nic);
            publish_flow(s, join, flow, &p, alternation, moved_p, span, emitter);
        }
        add_to(s, &key, &p, t);
        if (!ft_flow_job(flow))
            continue;
        key.kind = FABRICTRACE__SPREAD_OF__SPREAD_OF_JOB;
        key.a = (uintptr_t)ft_flow_job(flow);
        key.b = 0;
        add_to(s, &key, &p, t);
    }
}

static void publish_entry(struct ft_spread *s, const struct ft_spread_entry *e,
                          const struct ft_topology *t, const struct ft_span *span,
                          const struct ft_emitter *emitter)
{
    struct ft_spread_parts parts = {.out = FABRICTRACE__SPREAD__INIT};

    ft_spread_fill(s, &parts, t, e->stats);
    ft_spread_fill_whole(s, &parts.out, e, t);
    parts.out.has_of = true;
    parts.out.of = (Fabrictrace__SpreadOf)e->key.kind;
    if (e->key.kind == FABRICTRACE__SPREAD_OF__SPREAD_OF_JOB) {
        parts.out.job = (char *)(uintptr_t)e->key.a;
    } else {
        parts.out.src_host = ft_spread_text(ft_topology_host(t, (uint32_t)e->key.a)->name);
        parts.out.dst_host = ft_spread_text(ft_topology_host(t, (uint32_t)e->key.b)->name);
    }
    ft_spread_hand_on(s, &parts, t, span, emitter);
}

bool ft_spread_step(struct ft_spread *s, const struct ft_join *join, const struct ft_span *span,
                    const struct ft_emitter *emitter)
{
    struct ft_spread_kept full;
    struct ft_spread_entry *e;

    if (ft_spread_step_qps(s, ft_join_topology(join), span, emitter))
        return true;
    /* One queue pair alone that stays on its path spreads over nothing. */
    while ((e = ft_table_next(s->entries, &s->cursor)))
        if (e->stats->flows > 1 || e->stats->sprayed) {
            publish_entry(s, e, ft_join_topology(join), span, emitter);
            return true;
        }
    forget(s);
    ft_spread_kept_order(&s->next);
    full = s->next;
    s->next = s->kept;
    s->kept = full;
    return false;
}

bool ft_spread_next(const struct ft_spread *s, uint64_t *position, const struct ft_emitter *emitter)
{
    return ft_spread_kept_next(&s->kept, position, emitter);
}

uint64_t ft_spread_refused(const struct ft_spread *s)
{
    return s->refused;
}
