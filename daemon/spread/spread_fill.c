// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdlib.h>

#include "daemon/spread/spread_impl.h"
#include "lib/fabric/choice.h"
#include "lib/fabric/skewed.h"
#include "lib/fabric/weights.h"

/* A link of which so few samples are chance is named as dead. */
#define DEAD_P     0.001
#define ALLOCATION 16 /* the allocator's own */

void ft_spread_add(struct ft_spread_stats *sum, const struct ft_spread_stats *p,
                   const struct ft_topology *t)
{
    sum->flows++;
    sum->sprayed += p->sprayed;
    if (sum->dst_nic != p->dst_nic) {
        const struct ft_group *g = ft_topology_group(t, p->group);
        uint32_t left = ft_choice_distance(t, g->switch_id, p->dst_nic);

        sum->possible |= ft_topology_nearest_links(t, g, p->dst_nic);
        sum->mixed |= sum->flows > 1 && left != sum->left;
        sum->left = left;
    }
    sum->dst_nic = p->dst_nic;
    for (uint32_t i = p->first; i < p->end; i++) {
        struct ft_spread_link *to = &sum->links[i];
        const struct ft_spread_link *from = &p->links[i];

        if (from->samples == 0)
            continue;
        if (to->samples == 0 || from->first_ms < to->first_ms)
            to->first_ms = from->first_ms;
        if (to->samples == 0 || from->last_ms > to->last_ms)
            to->last_ms = from->last_ms;
        to->samples += from->samples;
        to->trials += from->trials;
    }
}

struct ft_spread_stats *ft_spread_stats_new(struct ft_spread *s, const struct ft_topology *t,
                                            uint32_t group, bool qp)
{
    uint32_t links = ft_topology_group(t, group)->link_count;
    size_t size = sizeof(struct ft_spread_stats) + links * sizeof(struct ft_spread_link);
    struct ft_spread_stats *stats;

    if (s->bytes + size + ALLOCATION > FT_SPREAD_ROOM ||
        (qp && s->qp_bytes + size + ALLOCATION > FT_SPREAD_ROOM / 4))
        return NULL;
    stats = calloc(1, size);
    if (!stats)
        return NULL;
    s->bytes += size + ALLOCATION;
    s->qp_bytes += qp ? size + ALLOCATION : 0;
    stats->group = group;
    stats->dst_nic = FT_NONE;
    stats->links = (struct ft_spread_link *)(stats + 1);
    return stats;
}

static void fill_link(Fabrictrace__SpreadLink *out, const struct ft_spread_link *l,
                      const char *port, uint64_t samples)
{
    fabrictrace__spread_link__init(out);
    out->port = ft_spread_text(port);
    out->has_samples = out->has_trials = true;
    out->samples = l->samples;
    out->trials = l->trials;
    if (samples) {
        out->has_share = out->has_share_lo = out->has_share_hi = true;
        out->share = (double)l->samples / (double)samples;
        ft_wilson(l->samples, samples, &out->share_lo, &out->share_hi);
    }
    out->has_last_ms = l->samples > 0;
    out->last_ms = (uint64_t)l->last_ms;
}

static void fill_figures(struct ft_spread_parts *parts, const struct ft_spread_figures *f,
                         uint32_t possible, const char *least)
{
    Fabrictrace__Spread *out = &parts->out;

    out->has_possible = out->has_seen = out->has_samples = out->has_trials = true;
    out->possible = possible;
    out->seen = f->seen;
    out->samples = f->samples;
    out->trials = f->trials;
    out->has_effective_paths = f->samples > 0;
    out->effective_paths = f->effective;
    if (possible < 2)
        return;
    out->has_even_p = out->has_least_p = true;
    out->even_p = f->even_p;
    out->least_p = f->least_p;
    out->least = ft_spread_text(least);
}

void ft_spread_fill(struct ft_spread *s, struct ft_spread_parts *parts, const struct ft_topology *t,
                    const struct ft_spread_stats *p)
{
    const struct ft_group *g = ft_topology_group(t, p->group);
    struct ft_spread_link links[FT_SPREAD_LINKS_MAX];
    const char *names[FT_SPREAD_LINKS_MAX];
    uint64_t speeds[FT_SPREAD_LINKS_MAX];
    uint32_t bundles[FT_SPREAD_LINKS_MAX];
    struct ft_link_set set = {.speed_bps = speeds, .bundle = bundles};
    struct ft_spread_figures f;
    Fabrictrace__Spread *out = &parts->out;
    uint32_t m = 0;

    for (uint32_t i = 0; i < g->link_count; i++)
        if (p->possible & UINT64_C(1) << i || p->links[i].samples) {
            names[m] = ft_topology_port(t, g->links[i])->name;
            speeds[m] = ft_topology_port(t, g->links[i])->speed_bps;
            bundles[m] = ft_skewed_bundle(t, g->links[i]);
            links[m++] = p->links[i];
        }
    set.m = m;
    ft_spread_figures(links, &set, s->chance, &f);
    out->switch_ = ft_spread_text(ft_topology_switch(t, g->switch_id)->name);
    out->group = ft_spread_text(g->name);
    out->has_flows = out->has_sprayed_flows = true;
    out->flows = p->flows;
    out->sprayed_flows = p->sprayed;
    fill_figures(parts, &f, m, names[f.least]);
    out->dead = parts->dead;
    for (uint32_t i = 0; i < m; i++) {
        fill_link(&parts->links[i], &links[i], names[i], f.samples);
        parts->list[i] = &parts->links[i];
        if (links[i].samples == 0 && f.few_p[i] < DEAD_P)
            parts->dead[out->n_dead++] = ft_spread_text(names[i]);
    }
    out->links = parts->list;
    out->n_links = m;
}

void ft_spread_hand_on(struct ft_spread *s, struct ft_spread_parts *parts,
                       const struct ft_topology *t, const struct ft_span *span,
                       const struct ft_emitter *emitter)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;

    parts->out.has_window_start_ms = parts->out.has_window_end_ms = true;
    parts->out.window_start_ms = (uint64_t)span->start_ms;
    parts->out.window_end_ms = (uint64_t)span->end_ms;
    parts->out.fabric = ft_spread_text(ft_topology_fabric(t));
    record.kind_case = FABRICTRACE__RECORD__KIND_SPREAD;
    record.spread = &parts->out;
    emitter->record(emitter->arg, &record);
    s->refused += !ft_spread_kept_add(&s->next, &record);
}

void ft_spread_fill_alternation(Fabrictrace__Spread *out, enum ft_alternation alternation, double p)
{
    static const Fabrictrace__Alternation names[] = {
        [FT_ALTERNATION_UNKNOWN] = FABRICTRACE__ALTERNATION__ALTERNATION_UNKNOWN,
        [FT_ALTERNATION_SPRAYED] = FABRICTRACE__ALTERNATION__ALTERNATION_SPRAYED,
        [FT_ALTERNATION_MOVED] = FABRICTRACE__ALTERNATION__ALTERNATION_MOVED,
    };

    out->has_alternation = true;
    out->alternation = names[alternation];
    out->has_alternation_p = alternation == FT_ALTERNATION_MOVED;
    out->alternation_p = p;
}
