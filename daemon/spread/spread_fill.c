// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <math.h>
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
        uint64_t links = ft_topology_nearest_links(t, g, p->dst_nic);

        sum->common = sum->flows > 1 ? sum->common & links : links;
        sum->possible |= links;
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
        to->stays += from->stays;
    }
    sum->variance += p->variance;
    sum->doubt += p->doubt;
}

/* Of the samples that chose, of all flows. */
static struct ft_dispersion dispersion_of(const struct ft_spread_stats *p, uint32_t links)
{
    struct ft_dispersion d = FT_DISPERSION_NONE;
    uint64_t samples = 0;

    for (uint32_t i = 0; i < links; i++)
        samples += p->links[i].trials - p->links[i].stays;
    if (samples)
        d.factor = fmax(1, p->variance / (double)samples);
    /* Of several flows as of the sum of independent variances (Satterthwaite 1946). */
    if (p->doubt > 0)
        d.freedom = p->variance * p->variance / p->doubt;
    return d;
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
                      const char *port, uint64_t samples, const struct ft_dispersion *d)
{
    fabrictrace__spread_link__init(out);
    out->port = ft_spread_text(port);
    out->has_samples = out->has_trials = true;
    out->samples = l->samples;
    out->trials = (uint64_t)llround(ft_spread_choices(l, d));
    if (samples) {
        out->has_share = out->has_share_lo = out->has_share_hi = true;
        out->share = (double)l->samples / (double)samples;
        ft_wilson(l->samples, samples, &out->share_lo, &out->share_hi);
    }
    out->has_last_ms = l->samples > 0;
    out->last_ms = (uint64_t)l->last_ms;
}

/* What is said of the links that lead on. */
struct of_links {
    struct ft_spread_link links[FT_SPREAD_LINKS_MAX];
    const char *names[FT_SPREAD_LINKS_MAX];
    uint64_t speeds[FT_SPREAD_LINKS_MAX];
    uint32_t bundles[FT_SPREAD_LINKS_MAX];
    uint32_t m;
    struct ft_spread_figures figures;
};

/* Those of a group, by bit, and maybe those that have samples beside them. */
static void look_at(struct ft_spread *s, const struct ft_topology *t,
                    const struct ft_spread_stats *p, const struct ft_dispersion *d, uint64_t set,
                    bool seen, struct of_links *out)
{
    const struct ft_group *g = ft_topology_group(t, p->group);

    out->m = 0;
    for (uint32_t i = 0; i < g->link_count; i++)
        if (set & UINT64_C(1) << i || (seen && p->links[i].samples)) {
            out->names[out->m] = ft_topology_port(t, g->links[i])->name;
            out->speeds[out->m] = ft_topology_port(t, g->links[i])->speed_bps;
            out->bundles[out->m] = ft_skewed_bundle(t, g->links[i]);
            out->links[out->m++] = p->links[i];
        }
    ft_spread_figures(
        out->links,
        &(struct ft_link_set){.m = out->m, .speed_bps = out->speeds, .bundle = out->bundles}, d,
        s->chance, &out->figures);
}

/* Whatever of a flow's links it may take, those that all flows may are taken alike. */
static void fill_chance(struct ft_spread_parts *parts, const struct of_links *common)
{
    const struct ft_spread_figures *f = &common->figures;
    Fabrictrace__Spread *out = &parts->out;

    out->dead = parts->dead;
    if (common->m < 2 || f->trials <= 0)
        return;
    out->has_even_p = out->has_least_p = true;
    out->even_p = f->even_p;
    out->least_p = f->least_p;
    out->least = ft_spread_text(common->names[f->least]);
    for (uint32_t i = 0; i < common->m; i++)
        if (common->links[i].samples == 0 && f->few_p[i] < DEAD_P)
            parts->dead[out->n_dead++] = ft_spread_text(common->names[i]);
}

static void fill_figures(struct ft_spread_parts *parts, const struct ft_spread_figures *f,
                         uint32_t possible)
{
    Fabrictrace__Spread *out = &parts->out;

    out->has_possible = out->has_seen = out->has_samples = out->has_trials = true;
    out->possible = possible;
    out->seen = f->seen;
    out->samples = f->samples;
    out->trials = (uint64_t)llround(f->trials);
    out->has_effective_paths = f->samples > 0;
    out->effective_paths = f->effective;
}

void ft_spread_fill(struct ft_spread *s, struct ft_spread_parts *parts, const struct ft_topology *t,
                    const struct ft_spread_stats *p)
{
    const struct ft_group *g = ft_topology_group(t, p->group);
    struct ft_dispersion d = dispersion_of(p, g->link_count);
    Fabrictrace__Spread *out = &parts->out;
    struct of_links all, common;

    look_at(s, t, p, &d, p->possible, true, &all);
    out->switch_ = ft_spread_text(ft_topology_switch(t, g->switch_id)->name);
    out->group = ft_spread_text(g->name);
    out->has_flows = out->has_sprayed_flows = true;
    out->flows = p->flows;
    out->sprayed_flows = p->sprayed;
    fill_figures(parts, &all.figures, all.m);
    if (p->common != p->possible)
        look_at(s, t, p, &d, p->common, false, &common);
    fill_chance(parts, p->common == p->possible ? &all : &common);
    for (uint32_t i = 0; i < all.m; i++) {
        fill_link(&parts->links[i], &all.links[i], all.names[i], all.figures.samples, &d);
        parts->list[i] = &parts->links[i];
    }
    out->links = parts->list;
    out->n_links = all.m;
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
