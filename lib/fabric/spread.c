// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/spread.h"

#include <math.h>

#include "lib/fabric/dispersion.h"
#include "lib/fabric/metrics.h"
#include "lib/fabric/weights.h"

/* Runs that chance makes so rarely are no chance. */
#define MOVED_P 0.01
/* Seconds with samples are fewer by so many standard errors hardly ever where each sample chose. */
#define CLUMPED 4.0

double ft_spread_choices(const struct ft_spread_link *link, const struct ft_dispersion *d)
{
    return link->stays + (double)(link->trials - link->stays) / d->factor;
}

/* How rarely chance leaves each link with so few of all trials. */
static void find_least(const double *trials, const struct ft_link_set *set, double freedom,
                       struct ft_spread_figures *f)
{
    double share[FT_SPREAD_LINKS_MAX];

    ft_least_shares(set, share);
    f->least_p = 2;
    for (size_t i = 0; i < set->m; i++) {
        double p =
            share[i] > 0 ? ft_dispersed_binomial_tail(trials[i], f->trials, share[i], freedom) : 1;

        f->few_p[i] = fmin(1, (double)set->m * p);
        /* Where several are certain to have so few, the one that has the fewest. */
        if (f->few_p[i] > f->least_p ||
            (f->few_p[i] == f->least_p && trials[i] >= trials[f->least]))
            continue;
        f->least = (uint32_t)i;
        f->least_p = f->few_p[i];
    }
}

static double chi_square(const double *trials, double all, const double *share, size_t m)
{
    double sum = 0;

    for (size_t i = 0; i < m; i++) {
        double mean = all * (share ? share[i] : 1 / (double)m);

        sum += (trials[i] - mean) * (trials[i] - mean) / mean;
    }
    return sum;
}

/* Where trials are fewer than what was counted: the largest of even choice and the weighings. */
static double dispersed_p(const double *trials, double all, const struct ft_link_set *set,
                          double freedom)
{
    double share[FT_SPREAD_LINKS_MAX], dof = (double)set->m - 1;
    double p = ft_dispersed_chi_square_tail(chi_square(trials, all, NULL, set->m), dof, freedom);

    for (int by = 0; by < FT_WEIGHINGS; by++)
        if (ft_weigh(set, (enum ft_weighing)by, share))
            p = fmax(p, ft_dispersed_chi_square_tail(chi_square(trials, all, share, set->m), dof,
                                                     freedom));
    return p;
}

void ft_spread_figures(const struct ft_spread_link *links, const struct ft_link_set *set,
                       const struct ft_dispersion *d, struct ft_chance *chance,
                       struct ft_spread_figures *out)
{
    struct ft_spread_figures f = {.even_p = 1, .least_p = 1};
    double trials[FT_SPREAD_LINKS_MAX];
    uint64_t counts[FT_SPREAD_LINKS_MAX];
    double entropy = 0;

    for (size_t i = 0; i < set->m; i++) {
        trials[i] = ft_spread_choices(&links[i], d);
        counts[i] = links[i].trials;
        f.samples += links[i].samples;
        f.trials += trials[i];
        f.seen += links[i].samples > 0;
        f.few_p[i] = 1;
        if (trials[i] < trials[f.least])
            f.least = (uint32_t)i;
    }
    for (size_t i = 0; i < set->m; i++) {
        double share = (double)links[i].samples / (double)f.samples;

        if (links[i].samples)
            entropy -= share * log(share);
    }
    if (f.samples)
        f.effective = exp(entropy);
    if (f.trials > 0 && set->m > 1) {
        /* Exact, and the larger one where few are counted. */
        f.even_p = ft_by_chance_of(chance, counts, set).p;
        if (isfinite(d->freedom))
            f.even_p = fmax(f.even_p, dispersed_p(trials, f.trials, set, d->freedom));
        find_least(trials, set, d->freedom, &f);
    }
    *out = f;
}

/* In how many seconds links have samples, if that share of these chose; *variance: of that. */
static double seconds_of(const struct ft_spread_link *links, size_t m, uint32_t seconds,
                         double share, double *variance)
{
    double sum = 0;

    *variance = 0;
    for (size_t i = 0; i < m; i++) {
        double part = -expm1(-share * (double)links[i].samples / seconds);

        sum += seconds * part;
        *variance += seconds * part * (1 - part);
    }
    return sum;
}

double ft_spread_choosing(const struct ft_spread_link *links, size_t m, uint32_t seconds)
{
    double seen = 0, variance, expected, lo = 0, hi = 1;

    if (seconds == 0)
        return 1;
    for (size_t i = 0; i < m; i++)
        seen += links[i].seconds;
    expected = seconds_of(links, m, seconds, 1, &variance);
    if (expected - seen <= CLUMPED * sqrt(variance) + 1)
        return 1;
    for (int i = 0; i < 40; i++) {
        double share = (lo + hi) / 2;

        if (seconds_of(links, m, seconds, share, &variance) < seen)
            lo = share;
        else
            hi = share;
    }
    return (lo + hi) / 2;
}

static double log_choose(uint64_t n, uint64_t k)
{
    double a = (double)n, b = (double)k;

    return lgamma(a + 1) - lgamma(b + 1) - lgamma(a - b + 1);
}

enum ft_alternation ft_spread_alternation(const struct ft_spread_link *links, size_t m, double *p)
{
    size_t used = 0;

    *p = 0;
    for (size_t i = 0; i < m; i++) {
        if (links[i].samples == 0)
            continue;
        used++;
        for (size_t k = 0; k < i; k++) {
            const struct ft_spread_link *a = &links[i], *b = &links[k];
            double apart;

            if (b->samples == 0)
                continue;
            if (a->first_ms < b->last_ms && b->first_ms < a->last_ms) {
                *p = 0;
                return FT_ALTERNATION_SPRAYED;
            }
            apart = fmin(1, 2 * exp(-log_choose(a->samples + b->samples, a->samples)));
            *p = fmax(*p, apart);
        }
    }
    return used > 1 && *p < MOVED_P ? FT_ALTERNATION_MOVED : FT_ALTERNATION_UNKNOWN;
}
