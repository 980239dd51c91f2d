// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/window/figures.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/health/losses.h"
#include "daemon/window/link_counters.h"
#include "daemon/window/partial.h"
#include "daemon/window/polarized.h"
#include "daemon/window/stopped.h"
#include "lib/base/grow.h"
#include "lib/fabric/metrics.h"
#include "lib/fabric/narrow.h"
#include "lib/fabric/skewed.h"
#include "lib/fabric/verdict.h"
#include "lib/fabric/weights.h"

/* From where on chance explains the other members of a group. */
#define EXPLAINED_P 0.001
#define TIERS       (FT_TIER_SUPERSPINE + 1)
#define DIRECTIONS  2
/* An alarm must not be what chance gives a fabric of this many groups and windows. */
#define FALSE_ALARMS_A_DAY 0.01
/* Where a larger part of a group's flows has no link, those of a link may be among them. */
#define BLIND 0.1

/* Several groups taken together. */
struct pool {
    struct ft_union *flows;
    struct ft_union *bytes;
    uint32_t groups;
    uint64_t flow_count;
    uint64_t unplaced;
    double byte_sum;
};

struct ft_figures_work {
    struct ft_chance *chance;
    struct pool layer[TIERS][DIRECTIONS];
    struct pool fabric;
    /* Of groups: published when all are known, since each verdict depends on all of them. */
    Fabrictrace__Imbalance *held;
    double *p;
    size_t held_count, held_size, p_size;
    bool partial;                       /* the window was not seen from its start */
    const struct ft_counters *counters; /* NULL: none */
    const struct ft_hashes *hashes;     /* likewise */
    struct ft_stopped *stopped;
    double kept; /* share of the samples that pollers did not thin out; 1: all */
    struct ft_taken observations, samples;                 /* until the close before */
    const struct ft_partition_list *missing, *unaccounted; /* NULL: not of a group */
    /* scratch of one group */
    double *flows, *bytes;
    uint64_t *certain, *narrow, *speed;
    uint32_t *bundle, *alike;
    size_t size;
};

static bool pool_init(struct pool *p)
{
    p->flows = ft_union_new();
    p->bytes = ft_union_new();
    return p->flows && p->bytes;
}

static void pool_free(struct pool *p)
{
    ft_union_free(p->flows);
    ft_union_free(p->bytes);
}

static void pool_reset(struct pool *p)
{
    ft_union_reset(p->flows);
    ft_union_reset(p->bytes);
    p->groups = 0;
    p->flow_count = p->unplaced = 0;
    p->byte_sum = 0;
}

struct ft_figures_work *ft_figures_work_new(const struct ft_topology *t)
{
    struct ft_figures_work *w = calloc(1, sizeof(*w));
    bool certain;

    if (!w)
        return NULL;
    w->kept = 1;
    w->chance = ft_chance_new();
    w->stopped = ft_stopped_new();
    certain = w->chance && w->stopped && pool_init(&w->fabric);
    for (int tier = 0; tier < TIERS && certain; tier++)
        for (int d = 0; d < DIRECTIONS && certain; d++)
            certain = pool_init(&w->layer[tier][d]);
    if (!certain) {
        ft_figures_work_free(w);
        return NULL;
    }
    ft_stopped_resize(w->stopped, t);
    return w;
}

void ft_figures_work_free(struct ft_figures_work *w)
{
    if (!w)
        return;
    ft_chance_free(w->chance);
    ft_stopped_free(w->stopped);
    pool_free(&w->fabric);
    for (int tier = 0; tier < TIERS; tier++)
        for (int d = 0; d < DIRECTIONS; d++)
            pool_free(&w->layer[tier][d]);
    free(w->held);
    free(w->p);
    free(w->flows);
    free(w->bytes);
    free(w->certain);
    free(w->narrow);
    free(w->speed);
    free(w->bundle);
    free(w->alike);
    free(w);
}

void ft_figures_begin(struct ft_figures_work *w, bool partial, const struct ft_counters *counters,
                      const struct ft_hashes *hashes)
{
    w->partial = partial;
    w->counters = counters;
    w->hashes = hashes;
    w->missing = w->unaccounted = NULL;
    w->held_count = 0;
    pool_reset(&w->fabric);
    for (int tier = 0; tier < TIERS; tier++)
        for (int d = 0; d < DIRECTIONS; d++)
            pool_reset(&w->layer[tier][d]);
}

static struct ft_taken take_since(struct ft_taken *before, const struct ft_taken *now)
{
    struct ft_taken since = {now->came - before->came, now->taken - before->taken};

    *before = *now;
    return since;
}

static double share_of(const struct ft_taken *t)
{
    return t->taken < t->came ? (double)t->taken / (double)t->came : 1;
}

struct ft_taken ft_figures_seen(struct ft_figures_work *w, const struct ft_join_stats *stats,
                                const struct ft_losses *losses)
{
    struct ft_taken samples = {0, 0}, observations = {0, stats->observations[FT_JOIN_OK] -
                                                             stats->recalled[FT_JOIN_OK]};

    for (int i = 0; i < FT_JOIN_RESULTS; i++)
        observations.came += stats->observations[i] - stats->recalled[i];
    if (losses)
        ft_losses_thinned(losses, &samples.came, &samples.taken);
    samples = take_since(&w->samples, &samples);
    w->kept = share_of(&samples);
    return take_since(&w->observations, &observations);
}

void ft_figures_follow(struct ft_figures_work *w, const struct ft_topology *t)
{
    ft_stopped_resize(w->stopped, t);
}

void ft_figures_partitions(struct ft_figures_work *w, const struct ft_partition_list *missing,
                           const struct ft_partition_list *unaccounted)
{
    w->missing = missing;
    w->unaccounted = unaccounted;
}

static int reserve(struct ft_figures_work *w, size_t m)
{
    if (m <= w->size)
        return 0;
    free(w->flows);
    free(w->bytes);
    free(w->certain);
    free(w->narrow);
    free(w->speed);
    free(w->bundle);
    free(w->alike);
    w->flows = calloc(m, sizeof(*w->flows));
    w->bytes = calloc(m, sizeof(*w->bytes));
    w->certain = calloc(m, sizeof(*w->certain));
    w->narrow = calloc(m, sizeof(*w->narrow));
    w->speed = calloc(m, sizeof(*w->speed));
    w->bundle = calloc(m, sizeof(*w->bundle));
    w->alike = calloc(m, sizeof(*w->alike));
    w->size = w->flows && w->bytes && w->certain && w->narrow && w->speed && w->bundle && w->alike
                  ? m
                  : 0;
    return w->size ? 0 : -ENOMEM;
}

static void begin_record(const struct ft_figures_work *w, Fabrictrace__Imbalance *out,
                         const struct ft_loads *loads, const struct ft_topology *t,
                         const struct ft_span *span, Fabrictrace__Scope scope, const char *name)
{
    double seen = share_of(&loads->observations) * w->kept;

    fabrictrace__imbalance__init(out);
    out->has_window_start_ms = out->has_window_end_ms = true;
    out->window_start_ms = (uint64_t)span->start_ms;
    out->window_end_ms = (uint64_t)span->end_ms;
    out->fabric = (char *)(uintptr_t)ft_topology_fabric(t);
    out->has_scope = true;
    out->scope = scope;
    out->has_partial = out->partial = w->partial;
    out->has_seen_share = seen < 1;
    out->seen_share = seen;
    if (w->missing) {
        out->missing_partitions = (uint32_t *)(uintptr_t)w->missing->item;
        out->n_missing_partitions = w->missing->count;
    }
    if (w->unaccounted) {
        out->unaccounted_partitions = (uint32_t *)(uintptr_t)w->unaccounted->item;
        out->n_unaccounted_partitions = w->unaccounted->count;
    }
    out->name = (char *)(uintptr_t)name;
}

static void fill_counts(Fabrictrace__Imbalance *out, uint32_t links, uint64_t flows,
                        uint64_t unplaced, double bytes)
{
    out->has_links = out->has_flows = out->has_flows_unplaced = out->has_bytes = true;
    out->links = links;
    out->flows = flows;
    out->flows_unplaced = unplaced;
    out->bytes = (uint64_t)bytes;
}

/* Without any load a figure is null, which is to say absent. */
static void fill_figures(Fabrictrace__Imbalance *out, const struct ft_figures *flows,
                         const struct ft_figures *bytes)
{
    if (bytes->some) {
        out->has_fim_bytes = out->has_bottleneck_ratio = true;
        out->fim_bytes = bytes->fim;
        out->bottleneck_ratio = bytes->max_over_mean;
    }
    if (!flows->some)
        return;
    out->has_fim = out->has_max_over_mean = out->has_cov = out->has_jain = true;
    out->has_effective_links = true;
    out->fim = flows->fim;
    out->max_over_mean = flows->max_over_mean;
    out->cov = flows->cov;
    out->jain = flows->jain;
    out->effective_links = flows->effective_links;
}

static Fabrictrace__Verdict name_verdict(enum ft_verdict verdict)
{
    static const Fabrictrace__Verdict verdicts[] = {
        [FT_VERDICT_EVEN] = FABRICTRACE__VERDICT__VERDICT_EVEN,
        [FT_VERDICT_UNEVEN] = FABRICTRACE__VERDICT__VERDICT_UNEVEN,
        [FT_VERDICT_FAULT] = FABRICTRACE__VERDICT__VERDICT_FAULT,
    };

    return verdicts[verdict];
}

/* The verdict is that of the figure alone. */
static void fill_chance(Fabrictrace__Imbalance *out, bool judged, double fim_expected,
                        double p_value)
{
    out->has_verdict = true;
    out->verdict =
        judged ? name_verdict(ft_verdict_of(p_value)) : FABRICTRACE__VERDICT__VERDICT_IDLE;
    if (!judged)
        return;
    out->has_fim_expected = out->has_p_value = true;
    out->fim_expected = fim_expected;
    out->p_value = p_value;
}

static void emit(const struct ft_emitter *emitter, Fabrictrace__Imbalance *out)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;

    record.kind_case = FABRICTRACE__RECORD__KIND_IMBALANCE;
    record.imbalance = out;
    emitter->record(emitter->arg, &record);
}

/* Without memory a group is published with the verdict that it has alone. */
static void hold(struct ft_figures_work *w, const struct ft_emitter *emitter,
                 Fabrictrace__Imbalance *out)
{
    Fabrictrace__Imbalance *held = ft_grow(w->held, w->held_count, &w->held_size, sizeof(*held));
    double *p = ft_grow(w->p, w->held_count, &w->p_size, sizeof(*p));

    w->held = held ? held : w->held;
    w->p = p ? p : w->p;
    if (!held || !p)
        emit(emitter, out);
    else
        w->held[w->held_count++] = *out;
}

/* Of 1,000 even groups 50 are below 0.05 by luck: the verdicts of a window's groups are held
 * against all of them. */
static void publish_groups(struct ft_figures_work *w, const struct ft_emitter *emitter)
{
    size_t judged = 0;
    double threshold;

    for (size_t i = 0; i < w->held_count; i++)
        if (w->held[i].has_p_value)
            w->p[judged++] = w->held[i].p_value;
    threshold = ft_verdict_threshold(w->p, judged);
    for (size_t i = 0; i < w->held_count; i++) {
        Fabrictrace__Imbalance *out = &w->held[i];

        if (out->has_p_value)
            out->verdict = name_verdict(ft_verdict_among(out->p_value, threshold));
        emit(emitter, out);
    }
    w->held_count = 0;
}

static double windows_a_day(const struct ft_span *span)
{
    return 86400000.0 / (double)(span->end_ms - span->start_ms);
}

static struct ft_link_set links_of(const struct ft_figures_work *w, size_t m)
{
    return (struct ft_link_set){.m = m, .speed_bps = w->speed, .bundle = w->bundle};
}

static struct ft_choices choices_of(const struct ft_figures_work *w)
{
    return (struct ft_choices){w->certain, w->narrow, w->alike};
}

static struct ft_by_chance by_chance(const struct ft_figures_work *w, size_t m)
{
    struct ft_link_set links = links_of(w, m);
    struct ft_choices choices = choices_of(w);

    return ft_by_chance_among(w->chance, &choices, &links);
}

/* Whether flows could have taken a link: some with all links to choose from, or those on links that
 * are alike. */
static bool may_be_taken(const struct ft_loads *loads, const struct ft_group *group, uint32_t link)
{
    uint32_t alike = ft_reach_alike(loads->reach, link);

    for (uint32_t i = 0; i < group->link_count; i++) {
        const struct ft_load *other = &loads->link[group->links[i]];

        if (other->certain ||
            (other->narrow && ft_reach_alike(loads->reach, group->links[i]) == alike))
            return true;
    }
    return false;
}

/* Whether p is so small that chance does not raise an alarm of a fabric of this many groups. */
static bool is_alarm(double p, const struct ft_topology *t, const struct ft_span *span)
{
    return p * ft_topology_groups(t) * windows_a_day(span) < FALSE_ALARMS_A_DAY;
}

/* Whether flows took these members before, and are known to take none of them any more. */
static bool have_stopped(const struct ft_figures_work *w, const struct ft_loads *loads,
                         const struct ft_topology *t, uint32_t group, const struct ft_idle *idle,
                         const struct ft_span *span)
{
    const struct ft_group *g = ft_topology_group(t, group);
    uint64_t flows = 0;

    for (uint32_t i = 0; i < g->link_count; i++)
        flows += loads->link[g->links[i]].certain + loads->link[g->links[i]].narrow;
    return (double)loads->unplaced[group] <= BLIND * (double)(flows + loads->unplaced[group]) &&
           is_alarm(ft_stopped_by_chance(w->stopped, idle->ports, idle->count, flows), t, span);
}

/* Few members without any flow, while chance explains the others, are the cause themselves; of half
 * of them, or more, a hash is as likely, unless flows took them before. */
static void find_idle(struct ft_figures_work *w, const struct ft_loads *loads,
                      const struct ft_topology *t, uint32_t group_id, const struct ft_span *span,
                      uint32_t window, struct ft_idle *idle)
{
    const struct ft_group *group = ft_topology_group(t, group_id);
    size_t m = group->link_count, left = 0;

    *idle = (struct ft_idle){.count = 0};
    for (size_t i = 0; i < m; i++) {
        const struct ft_load *link = &loads->link[group->links[i]];

        if (link->certain || link->bytes > 0 || !may_be_taken(loads, group, group->links[i]) ||
            ft_link_counts_flows(t, w->counters, loads, group->links[i], window)) {
            w->certain[left] = w->certain[i];
            w->narrow[left] = w->narrow[i];
            w->speed[left] = w->speed[i];
            w->alike[left] = w->alike[i];
            w->bundle[left++] = w->bundle[i];
            continue;
        }
        if (idle->count < FT_IDLE_MAX)
            idle->ports[idle->count++] = group->links[i];
        idle->total++;
        idle->since_ms = link->last_ms > idle->since_ms ? link->last_ms : idle->since_ms;
    }
    idle->half = 2 * (m - left) >= m;
    if (left == 0 || (idle->half && idle->count < m - left) ||
        (left > 1 && by_chance(w, left).p < EXPLAINED_P))
        idle->count = idle->total = 0;
    idle->stopped = idle->count && idle->half && have_stopped(w, loads, t, group_id, idle, span);
}

static int pool_add(struct pool *p, const struct ft_figures_work *w, size_t m, uint64_t flows,
                    uint64_t unplaced, double bytes, double fim_expected)
{
    struct ft_link_set links = links_of(w, m);
    struct ft_choices choices = choices_of(w);

    if (ft_union_add(p->flows, w->flows, w->certain, &links, fim_expected) ||
        ft_union_add_narrow(p->flows, &choices, &links) ||
        ft_union_add(p->bytes, w->bytes, w->certain, &links, fim_expected))
        return -ENOMEM;
    p->groups++;
    p->flow_count += flows;
    p->unplaced += unplaced;
    p->byte_sum += bytes;
    return 0;
}

int ft_figures_group(struct ft_figures_work *w, const struct ft_loads *loads,
                     const struct ft_topology *t, uint32_t group_id, const struct ft_span *span,
                     uint32_t window, const struct ft_emitter *emitter, struct ft_events *events)
{
    const struct ft_group *group = ft_topology_group(t, group_id);
    size_t m = group->link_count;
    struct ft_figures of_flows, of_bytes;
    struct ft_by_chance chance;
    Fabrictrace__Imbalance out;
    struct ft_idle idle;
    uint64_t unplaced = loads->unplaced[group_id];
    double flows = 0, bytes = 0;
    struct pool *layer = &w->layer[group->tier][group->direction == FT_DIRECTION_DOWN];

    if (reserve(w, m))
        return -ENOMEM;
    for (size_t i = 0; i < m; i++) {
        const struct ft_load *link = &loads->link[group->links[i]];

        w->flows[i] = link->flows;
        w->bytes[i] = link->bytes;
        w->certain[i] = link->certain;
        w->narrow[i] = link->narrow;
        w->alike[i] = ft_reach_alike(loads->reach, group->links[i]);
        w->speed[i] = ft_topology_port(t, group->links[i])->speed_bps;
        w->bundle[i] = ft_skewed_bundle(t, group->links[i]);
        flows += link->flows;
        bytes += link->bytes;
    }
    ft_figures_of(w->flows, w->speed, m, &of_flows);
    ft_figures_of(w->bytes, w->speed, m, &of_bytes);
    begin_record(w, &out, loads, t, span, FABRICTRACE__SCOPE__SCOPE_GROUP, group->name);
    fill_counts(&out, (uint32_t)m, (uint64_t)(flows + 0.5), unplaced, bytes);
    fill_figures(&out, &of_flows, &of_bytes);
    /* The model of chance assumes that a flow uses one link of the group. */
    chance = by_chance(w, m);
    fill_chance(&out, chance.judged, chance.fim_expected, chance.p);
    hold(w, emitter, &out);
    if (m > 1 && (pool_add(layer, w, m, out.flows, unplaced, bytes, chance.fim_expected) ||
                  pool_add(&w->fabric, w, m, out.flows, unplaced, bytes, chance.fim_expected)))
        return -ENOMEM;
    if (!w->partial && out.verdict == FABRICTRACE__VERDICT__VERDICT_FAULT &&
        is_alarm(out.p_value, t, span)) {
        find_idle(w, loads, t, group_id, span, window, &idle);
        ft_polarized_raise(&(struct ft_polarized){&out, group, t, loads, w->counters, w->hashes,
                                                  span->end_ms, window},
                           &idle, events);
    } else if (!w->partial && out.verdict == FABRICTRACE__VERDICT__VERDICT_EVEN) {
        ft_polarized_end(&out, span, events);
    }
    if (!w->partial)
        ft_stopped_note(w->stopped, loads, group);
    return 0;
}

static void fill_pool(Fabrictrace__Imbalance *out, const struct pool *p, struct ft_chance *chance)
{
    struct ft_figures of_flows, of_bytes;

    ft_union_figures(p->flows, &of_flows);
    ft_union_figures(p->bytes, &of_bytes);
    out->has_groups = out->has_idle_groups = true;
    out->groups = p->groups;
    out->idle_groups = ft_union_idle(p->flows);
    fill_counts(out, ft_union_links(p->flows), p->flow_count, p->unplaced, p->byte_sum);
    fill_figures(out, &of_flows, &of_bytes);
    fill_chance(out, ft_union_is_judged(p->flows), ft_union_fim_expected(p->flows),
                ft_union_p_value(p->flows, chance));
}

static void fill_crossing(const struct ft_cross_traffic *c, double bytes,
                          protobuf_c_boolean *has_flows, uint64_t *flows,
                          protobuf_c_boolean *has_share, double *share)
{
    *has_flows = true;
    *flows = c->flows;
    *has_share = bytes > 0;
    *share = bytes > 0 ? c->bytes / bytes : 0;
}

void ft_figures_end(struct ft_figures_work *w, const struct ft_loads *loads,
                    const struct ft_topology *t, const struct ft_span *span,
                    const struct ft_emitter *emitter)
{
    Fabrictrace__Imbalance out;
    char name[64];

    publish_groups(w, emitter);
    for (int tier = 0; tier < TIERS; tier++) {
        for (int d = 0; d < DIRECTIONS; d++) {
            if (w->layer[tier][d].groups == 0)
                continue;
            snprintf(name, sizeof(name), "%s/%s", ft_tier_name((enum ft_tier)tier),
                     ft_direction_name(d ? FT_DIRECTION_DOWN : FT_DIRECTION_UP));
            begin_record(w, &out, loads, t, span, FABRICTRACE__SCOPE__SCOPE_LAYER, name);
            fill_pool(&out, &w->layer[tier][d], w->chance);
            emit(emitter, &out);
        }
    }
    begin_record(w, &out, loads, t, span, FABRICTRACE__SCOPE__SCOPE_FABRIC, ft_topology_fabric(t));
    fill_pool(&out, &w->fabric, w->chance);
    /* A flow crosses several groups, yet it is one flow of the fabric. */
    out.flows = loads->placed;
    out.flows_unplaced = loads->flows - loads->placed;
    out.bytes = (uint64_t)loads->bytes;
    fill_crossing(&loads->spine, loads->bytes, &out.has_spine_crossings_avoidable,
                  &out.spine_crossings_avoidable, &out.has_spine_crossings_avoidable_share,
                  &out.spine_crossings_avoidable_share);
    fill_crossing(&loads->rail, loads->bytes, &out.has_rail_crossings, &out.rail_crossings,
                  &out.has_rail_crossings_share, &out.rail_crossings_share);
    emit(emitter, &out);
}
