// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/narrow.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int ft_alike_init(struct ft_alike *a, size_t m)
{
    *a = (struct ft_alike){.links = {.m = 0},
                           .count = calloc(m + 1, sizeof(*a->count)),
                           .index = calloc(m + 1, sizeof(*a->index)),
                           .speed_bps = calloc(m + 1, sizeof(*a->speed_bps)),
                           .bundle = calloc(m + 1, sizeof(*a->bundle))};
    if (a->count && a->index && a->speed_bps && a->bundle)
        return 0;
    ft_alike_free(a);
    return -ENOMEM;
}

void ft_alike_free(struct ft_alike *a)
{
    free(a->count);
    free(a->index);
    free(a->speed_bps);
    free(a->bundle);
    memset(a, 0, sizeof(*a));
}

static bool is_first(const uint32_t *alike, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (alike[k] == alike[i])
            return false;
    return true;
}

bool ft_alike_next(struct ft_alike *a, const struct ft_choices *choices,
                   const struct ft_link_set *links, size_t *at)
{
    for (; choices->narrow && *at < links->m; (*at)++) {
        uint64_t flows = 0;
        size_t size = 0;

        if (!is_first(choices->alike, *at))
            continue;
        for (size_t i = *at; i < links->m; i++) {
            if (choices->alike[i] != choices->alike[*at])
                continue;
            flows += choices->narrow[i];
            a->count[size] = choices->narrow[i];
            a->speed_bps[size] = links->speed_bps ? links->speed_bps[i] : 0;
            a->bundle[size] = links->bundle ? links->bundle[i] : (uint32_t)i;
            a->index[size++] = i;
        }
        if (!flows)
            continue;
        a->links = (struct ft_link_set){.m = size, .speed_bps = a->speed_bps, .bundle = a->bundle};
        (*at)++;
        return true;
    }
    return false;
}

static bool has_any(const struct ft_choices *choices, size_t m)
{
    for (size_t i = 0; choices->narrow && i < m; i++)
        if (choices->narrow[i])
            return true;
    return false;
}

/* What is gathered of the tests. */
struct sums {
    double *flows; /* by link, as chance gives them */
    double n;
    double least; /* of the p-values */
    unsigned tests;
};

static void add(struct sums *s, struct ft_chance *chance, const uint64_t *count,
                const struct ft_link_set *links, const size_t *index, double *share)
{
    double p, n = 0;

    for (size_t i = 0; i < links->m; i++)
        n += (double)count[i];
    if (n <= 0)
        return;
    p = ft_by_chance_share(chance, count, links, share);
    for (size_t i = 0; i < links->m; i++)
        s->flows[index ? index[i] : i] += n * share[i];
    s->n += n;
    if (links->m < 2)
        return;
    s->least = fmin(s->least, p);
    s->tests++;
}

struct ft_by_chance ft_by_chance_among(struct ft_chance *chance, const struct ft_choices *choices,
                                       const struct ft_link_set *links)
{
    struct sums s = {.flows = NULL, .least = 1};
    struct ft_by_chance c = {.p = 1};
    struct ft_alike alike;
    double *share;
    size_t at = 0;

    if (!has_any(choices, links->m))
        return ft_by_chance_of(chance, choices->all, links);
    if (ft_alike_init(&alike, links->m))
        return c;
    share = malloc(links->m * sizeof(*share));
    s.flows = calloc(links->m, sizeof(*s.flows));
    if (share && s.flows) {
        add(&s, chance, choices->all, links, NULL, share);
        while (ft_alike_next(&alike, choices, links, &at))
            add(&s, chance, alike.count, &alike.links, alike.index, share);
        for (size_t i = 0; i < links->m; i++)
            share[i] = s.flows[i] / s.n;
        c.judged = s.tests > 0;
        /* Sidak 1967, as ft_weighted_p_value(). */
        c.p = s.tests ? -expm1(s.tests * log1p(-s.least)) : 1;
        c.fim_expected = ft_weighted_fim_expected((uint64_t)s.n, share, links->speed_bps, links->m);
    }
    free(share);
    free(s.flows);
    ft_alike_free(&alike);
    return c;
}
