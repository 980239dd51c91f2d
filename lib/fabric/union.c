// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "lib/base/grow.h"
#include "lib/fabric/chance.h"
#include "lib/fabric/metrics.h"
#include "lib/fabric/narrow.h"
#include "lib/fabric/weights.h"

/* Over so many groups the sum of chi-squares is drawn; beyond, its first two moments say it all. */
#define DRAWN_GROUPS_MAX 64
#define SEED             UINT64_C(0x756e696f6e)

/* What chance needs to know of links of a group that are chosen alike. */
struct group {
    uint64_t n;
    uint64_t m;
    double chi_square;
};

struct ft_union {
    double *value; /* load over its group's mean, of each link */
    size_t values;
    size_t value_size;
    struct group *groups;
    size_t count;
    size_t size;
    double fim_expected; /* by all links */
    uint32_t idle;
};

struct ft_union *ft_union_new(void)
{
    return calloc(1, sizeof(struct ft_union));
}

void ft_union_free(struct ft_union *u)
{
    if (!u)
        return;
    free(u->value);
    free(u->groups);
    free(u);
}

void ft_union_reset(struct ft_union *u)
{
    u->values = 0;
    u->count = 0;
    u->fim_expected = 0;
    u->idle = 0;
}

/* Room for m more links. */
static bool make_room(struct ft_union *u, size_t m)
{
    size_t size = 2 * (u->values + m);
    double *value;

    if (u->values + m <= u->value_size)
        return true;
    value = realloc(u->value, size * sizeof(*value));
    if (!value)
        return false;
    u->value = value;
    u->value_size = size;
    return true;
}

static bool add_class(struct ft_union *u, const uint64_t *count, size_t m)
{
    struct group *groups = ft_grow(u->groups, u->count, &u->size, sizeof(*groups));
    uint64_t n = 0;

    if (!groups)
        return false;
    for (size_t i = 0; i < m; i++)
        n += count[i];
    u->groups = groups;
    u->groups[u->count++] = (struct group){n, m, ft_chi_square(count, m)};
    return true;
}

/* Links that have the same share, however they are weighed, are compared among themselves: however
 * many flows all of these have, chance spreads them alike. */
static bool add_classes(struct ft_union *u, const uint64_t *count, const struct ft_link_set *links)
{
    size_t m = links->m;
    double *share = calloc(FT_WEIGHINGS * m, sizeof(*share));
    uint64_t *of_class = malloc(m * sizeof(*of_class));
    bool *done = calloc(m, sizeof(*done));
    bool ok = share && of_class && done;

    for (size_t by = 0; ok && by < FT_WEIGHINGS; by++)
        if (!ft_weigh(links, (enum ft_weighing)by, &share[by * m]))
            for (size_t i = 0; i < m; i++)
                share[by * m + i] = 0;
    for (size_t i = 0; ok && i < m; i++) {
        size_t size = 0;

        if (done[i])
            continue;
        for (size_t k = i; k < m; k++)
            if (share[k] == share[i] && share[m + k] == share[m + i]) {
                done[k] = true;
                of_class[size++] = count[k];
            }
        ok = size < 2 || add_class(u, of_class, size);
    }
    free(share);
    free(of_class);
    free(done);
    return ok;
}

static double mean_speed_of(const uint64_t *speed_bps, size_t m)
{
    double sum = 0;

    for (size_t i = 0; speed_bps && i < m; i++) {
        if (speed_bps[i] == 0)
            return 0;
        sum += (double)speed_bps[i];
    }
    return sum / (double)m;
}

int ft_union_add(struct ft_union *u, const double *load, const uint64_t *count,
                 const struct ft_link_set *links, double fim_expected)
{
    size_t m = links->m;
    double mean_speed, sum = 0;
    double *value;

    if (m < 2)
        return 0;
    if (!make_room(u, m))
        return -ENOMEM;
    value = u->value + u->values;
    mean_speed = mean_speed_of(links->speed_bps, m);
    for (size_t i = 0; i < m; i++) {
        value[i] = mean_speed > 0 ? load[i] * mean_speed / (double)links->speed_bps[i] : load[i];
        sum += value[i];
    }
    if (!(sum > 0)) {
        u->idle++;
        return 0;
    }
    if (!add_classes(u, count, links))
        return -ENOMEM;
    for (size_t i = 0; i < m; i++)
        value[i] /= sum / (double)m;
    u->values += m;
    u->fim_expected += fim_expected * (double)m;
    return 0;
}

int ft_union_add_narrow(struct ft_union *u, const struct ft_choices *choices,
                        const struct ft_link_set *links)
{
    struct ft_alike alike;
    bool ok = true;
    size_t at = 0;

    if (ft_alike_init(&alike, links->m))
        return -ENOMEM;
    while (ok && ft_alike_next(&alike, choices, links, &at))
        ok = add_classes(u, alike.count, &alike.links);
    ft_alike_free(&alike);
    return ok ? 0 : -ENOMEM;
}

uint32_t ft_union_idle(const struct ft_union *u)
{
    return u->idle;
}

uint32_t ft_union_links(const struct ft_union *u)
{
    return (uint32_t)u->values;
}

void ft_union_figures(const struct ft_union *u, struct ft_figures *out)
{
    ft_figures_of(u->value, NULL, u->values, out);
}

double ft_union_fim_expected(const struct ft_union *u)
{
    return u->values ? u->fim_expected / (double)u->values : 0;
}

/* How many tail values are at least u: the index of the number of pairs drawn, and one. */
static uint32_t pick(const struct ft_tail *t, double u)
{
    uint32_t low = 1, high = t->width;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (t->tail[mid] >= u)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Adds a chi-square of the group, drawn from its table, to each sum; false without a table. */
static bool add_draws(struct ft_chance *chance, const struct group *group, struct ft_random *random,
                      double *sums)
{
    uint64_t limit = ft_chance_limit(group->m);
    uint64_t n = group->n < limit ? group->n : limit;
    const struct ft_tail *tail = ft_chance_tail(chance, n, group->m);
    double scale = 2 * (double)group->m / (double)n;

    if (!tail)
        return false;
    for (int i = 0; i < FT_DRAWS; i++) {
        double u = ((double)(ft_random_next(random) >> 11) + 1) * 0x1p-53;
        uint64_t pairs = tail->least + pick(tail, u) - 1;

        sums[i] += scale * (double)pairs + (double)group->m - (double)n;
    }
    return true;
}

/* -ENOTSUP when a group has no table, -ENOMEM. */
static int draw_p_value(const struct ft_union *u, struct ft_chance *chance, double chi_square,
                        double *p)
{
    double *sums = calloc(FT_DRAWS, sizeof(*sums));
    struct ft_random random = {SEED};
    uint32_t hits = 0;
    bool ok = true;

    if (!sums)
        return -ENOMEM;
    for (size_t i = 0; ok && i < u->count; i++)
        if (u->groups[i].n > 0)
            ok = add_draws(chance, &u->groups[i], &random, sums);
    /* Equal sums that were added in another order may differ in their last bits. */
    for (int i = 0; i < FT_DRAWS; i++)
        hits += sums[i] >= chi_square * (1 - 1e-12) - 1e-9;
    free(sums);
    if (!ok)
        return -ENOTSUP;
    *p = (double)(hits + 1) / (FT_DRAWS + 1);
    return 0;
}

bool ft_union_is_judged(const struct ft_union *u)
{
    for (size_t i = 0; i < u->count; i++)
        if (u->groups[i].n > 0)
            return true;
    return false;
}

double ft_union_p_value(const struct ft_union *u, struct ft_chance *chance)
{
    double chi_square = 0, flows = 0, links = 0, mean = 0, variance = 0, p;
    size_t groups = 0;

    for (size_t i = 0; i < u->count; i++) {
        const struct group *g = &u->groups[i];

        if (g->n == 0)
            continue;
        groups++;
        chi_square += g->chi_square;
        flows += (double)g->n;
        links += (double)g->m;
        mean += (double)(g->m - 1);
        variance += 2 * (double)(g->m - 1) * (double)(g->n - 1) / (double)g->n;
    }
    /* Single flows cannot be uneven. */
    if (variance == 0)
        return 1;
    if (flows / links >= 5)
        return ft_chi_square_tail(chi_square, mean);
    if (groups <= DRAWN_GROUPS_MAX)
        if (draw_p_value(u, chance, chi_square, &p) == 0)
            return p;
    /* The gamma distribution of this mean and variance: chi-square, stretched. */
    return ft_chi_square_tail(2 * chi_square * mean / variance, 2 * mean * mean / variance);
}
