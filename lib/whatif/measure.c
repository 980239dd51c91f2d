// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/whatif/measure.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/task.h"
#include "lib/fabric/weights.h"
#include "lib/sim/fluid.h"
#include "lib/sim/loads.h"
#include "lib/whatif/siblings.h"

/* Parts of flows on a link add up to flows but for this. */
#define ROUNDING 1e-9

/* Flows as the fluid model has them: one for each path of a flow, or one on all of its paths. */
struct parts {
    const struct ft_topology *t;
    uint32_t count;                 /* of paths */
    uint32_t *first, *link;         /* by path, and one after another */
    double *demand, *rate;          /* by path */
    double *part;                   /* by item of link, of flows that are sprayed; NULL */
    double *capacity, *flows, *bps; /* by link */
    struct ft_siblings *siblings;
};

static void parts_free(struct parts *p)
{
    free(p->first);
    free(p->link);
    free(p->demand);
    free(p->rate);
    free(p->part);
    free(p->capacity);
    free(p->flows);
    free(p->bps);
    ft_siblings_free(p->siblings);
}

static int parts_init(struct parts *p, const struct ft_policy_input *in,
                      const struct ft_placed *placed)
{
    const struct ft_topology *t = in->topology;
    uint32_t count = placed->first[in->count];
    size_t links = (size_t)ft_links_of(t) + 1, n = (size_t)count + 1;
    bool sprayed = placed->sprayed;

    memset(p, 0, sizeof(*p));
    p->t = t;
    p->count = count;
    p->first = calloc(n + 1, sizeof(*p->first));
    p->link = calloc(n * FT_PATH_LINKS_MAX, sizeof(*p->link));
    p->demand = calloc(n, sizeof(*p->demand));
    p->rate = calloc(n, sizeof(*p->rate));
    p->part = sprayed ? calloc(n * FT_PATH_LINKS_MAX, sizeof(*p->part)) : NULL;
    p->capacity = calloc(links, sizeof(*p->capacity));
    p->flows = calloc(links, sizeof(*p->flows));
    p->bps = calloc(links, sizeof(*p->bps));
    p->siblings = ft_siblings_new(in, placed);
    if (p->first && p->link && p->demand && p->rate && (p->part || !sprayed) && p->capacity &&
        p->flows && p->bps && p->siblings)
        return 0;
    parts_free(p);
    return -ENOMEM;
}

double ft_placed_part(const struct ft_placed *placed, uint32_t flow, uint32_t path)
{
    if (placed->part)
        return placed->part[path];
    return 1.0 / (placed->first[flow + 1] - placed->first[flow]);
}

static void fill_parts(struct parts *p, const struct ft_policy_input *in,
                       const struct ft_placed *placed)
{
    const uint32_t *first = placed->first;

    for (uint32_t f = 0; f < in->count; f++) {
        for (uint32_t i = first[f]; i < first[f + 1]; i++) {
            uint32_t n = ft_path_links(p->t, &placed->paths[i], p->link + p->first[i]);
            double share = ft_placed_part(placed, f, i);

            p->demand[i] = share * (double)in->demands[f].rate_bps;
            p->first[i + 1] = p->first[i] + n;
            ft_task_spend(in->task, 1);
            for (uint32_t k = 0; k < n; k++) {
                p->flows[p->link[p->first[i] + k]] += share;
                p->bps[p->link[p->first[i] + k]] += p->demand[i];
                if (p->part)
                    p->part[p->first[i] + k] = share;
            }
        }
    }
    /* A link whose speed is not known limits nothing. */
    for (uint32_t l = 0; l < ft_links_of(p->t); l++)
        p->capacity[l] = ft_link_speed(p->t, l) ? (double)ft_link_speed(p->t, l) : INFINITY;
}

/* Rates of flows that are sprayed: one flow of the fluid model on all of its paths. */
static int rates_sprayed(struct parts *p, const struct ft_policy_input *in,
                         const struct ft_placed *placed, const struct ft_fluid *of_paths)
{
    const uint32_t *first = placed->first;
    size_t n = (size_t)in->count + 1;
    uint32_t *links = calloc(n, sizeof(*links));
    double *demand = calloc(n, sizeof(*demand)), *rate = calloc(n, sizeof(*rate));
    struct ft_fluid fluid = *of_paths;
    int rc = links && demand && rate ? 0 : -ENOMEM;

    for (uint32_t f = 0; rc == 0 && f < in->count; f++) {
        links[f + 1] = p->first[first[f + 1]];
        demand[f] = (double)in->demands[f].rate_bps;
    }
    fluid.flows = in->count;
    fluid.first = links;
    fluid.demand = demand;
    fluid.part = p->part;
    if (rc == 0)
        rc = ft_fluid_rates(&fluid, NULL, 0, rate);
    for (uint32_t f = 0; rc == 0 && f < in->count; f++)
        for (uint32_t i = first[f]; i < first[f + 1]; i++)
            p->rate[i] = rate[f] * ft_placed_part(placed, f, i);
    free(links);
    free(demand);
    free(rate);
    return rc;
}

static int find_slowest(struct parts *p, const struct ft_policy_input *in,
                        const struct ft_placed *placed, struct ft_measured *out)
{
    const uint32_t *first = placed->first;
    struct ft_fluid fluid = {.links = ft_links_of(p->t),
                             .capacity = p->capacity,
                             .flows = p->count,
                             .first = p->first,
                             .link = p->link,
                             .demand = p->demand,
                             .task = in->task};
    int rc =
        p->part ? rates_sprayed(p, in, placed, &fluid) : ft_fluid_rates(&fluid, NULL, 0, p->rate);

    out->slowest_share = 1;
    out->slowest = FT_NONE;
    for (uint32_t f = 0; rc == 0 && f < in->count; f++) {
        double rate = 0, demand = (double)in->demands[f].rate_bps;

        for (uint32_t i = first[f]; i < first[f + 1]; i++)
            rate += p->rate[i];
        if (demand <= 0 || (out->slowest != FT_NONE && rate / demand >= out->slowest_share))
            continue;
        out->slowest = f;
        out->slowest_share = rate / demand;
        out->slowest_bps = rate;
    }
    return rc;
}

static void find_hottest(const struct parts *p, struct ft_measured *out)
{
    out->hottest = FT_NONE;
    for (uint32_t l = 0; l < ft_topology_ports(p->t); l++) {
        double speed = (double)ft_link_speed(p->t, l);

        if (ft_topology_port(p->t, l)->peer == FT_NONE)
            continue;
        if (p->flows[l] > out->most)
            out->most = p->flows[l];
        if (speed > 0 && p->bps[l] / speed > out->hottest_load) {
            out->hottest_load = p->bps[l] / speed;
            out->hottest = l;
        }
    }
}

/* Links with two flows or more while another that some of these could take carries at least one
 * less: link[] are those of a group that are not down. */
static uint32_t collisions_of(const struct parts *p, const uint32_t *link, uint32_t n)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++) {
        double load = p->flows[link[i]];

        for (uint32_t k = 0; load >= 2 - ROUNDING && k < n; k++)
            if (load >= p->flows[link[k]] + 1 - ROUNDING &&
                ft_siblings_may_take(p->siblings, link[i], link[k])) {
                count++;
                break;
            }
    }
    return count;
}

static int add_group(const struct parts *p, const struct ft_policy_input *in,
                     const struct ft_group *g, struct ft_union *u, struct ft_measured *out,
                     struct ft_layer *layer)
{
    double *load = calloc(g->link_count, sizeof(*load));
    uint64_t *count = calloc(g->link_count, sizeof(*count));
    uint64_t *speed = calloc(g->link_count, sizeof(*speed));
    uint32_t *links = calloc(g->link_count, sizeof(*links));
    uint32_t n = 0;
    int rc = load && count && speed && links ? 0 : -ENOMEM;

    for (uint32_t i = 0; rc == 0 && i < g->link_count; i++) {
        uint32_t link = g->links[i];

        if (in->dead && in->dead[link])
            continue;
        load[n] = p->flows[link];
        speed[n] = ft_link_speed(p->t, link);
        links[n] = link;
        count[n++] = (uint64_t)llround(p->flows[link]);
        layer->most = fmax(layer->most, p->flows[link]);
    }
    if (rc == 0 && n > 1) {
        rc = ft_union_add(u, load, count, &(struct ft_link_set){.m = n, .speed_bps = speed}, 0);
        layer->links += n;
        out->collisions += collisions_of(p, links, n);
    }
    free(load);
    free(count);
    free(speed);
    free(links);
    return rc;
}

static int measure_layer(const struct parts *p, const struct ft_policy_input *in, enum ft_tier tier,
                         enum ft_direction direction, struct ft_measured *out,
                         struct ft_layer *layer)
{
    struct ft_union *u = ft_union_new();
    struct ft_figures figures = {0};
    int rc = u ? 0 : -ENOMEM;

    *layer =
        (struct ft_layer){.tier = ft_tier_name(tier), .direction = ft_direction_name(direction)};
    for (uint32_t i = 0; rc == 0 && i < ft_topology_groups(p->t); i++) {
        const struct ft_group *g = ft_topology_group(p->t, i);

        if (g->tier == tier && g->direction == direction)
            rc = add_group(p, in, g, u, out, layer);
        ft_task_spend(in->task, 1 + g->link_count / 8);
    }
    if (rc == 0)
        ft_union_figures(u, &figures);
    layer->fim = figures.some ? figures.fim : 0;
    ft_union_free(u);
    return rc;
}

int ft_measure(const struct ft_policy_input *in, const struct ft_placed *placed, double *rate_bps,
               struct ft_measured *out)
{
    struct parts p;
    uint32_t at = 0;
    int rc = parts_init(&p, in, placed);

    if (rc)
        return rc;
    memset(out, 0, sizeof(*out));
    fill_parts(&p, in, placed);
    find_hottest(&p, out);
    rc = find_slowest(&p, in, placed, out);
    for (enum ft_tier tier = FT_TIER_LEAF; tier <= FT_TIER_SUPERSPINE; tier++)
        for (int down = 0; down < 2 && rc == 0; down++)
            rc = measure_layer(&p, in, tier, down ? FT_DIRECTION_DOWN : FT_DIRECTION_UP, out,
                               &out->layers[at++]);
    if (rc == 0 && rate_bps)
        memcpy(rate_bps, p.rate, p.count * sizeof(*rate_bps));
    parts_free(&p);
    return rc;
}
