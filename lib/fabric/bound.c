// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fabric/chance.h"

/* Weights of up to exp(11000) fit a long double. */
#define LOG_MAX   11000
#define FLOWS_MAX 4096
/* Close enough: nobody asks how much less than this chance it is. */
#define LOG_ENOUGH -23

struct work {
    uint64_t n;
    uint64_t fullest;                    /* links with more flows are left out */
    long double *power, *base, *scratch; /* n + 1 coefficients each */
};

static void multiply(long double *to, const long double *by, long double *scratch, uint64_t n)
{
    for (uint64_t k = 0; k <= n; k++) {
        scratch[k] = 0;
        for (uint64_t j = 0; j <= k; j++)
            scratch[k] += to[j] * by[k - j];
    }
    memcpy(to, scratch, (n + 1) * sizeof(*to));
}

/* ln E[exp(s pairs)]: one link with c flows weighs exp(s c(c - 1)/2) / c!; the product over the
 * links has, as the coefficient of n flows, the sum over all ways to assign them. */
static double log_moment(struct work *w, uint64_t m, double s)
{
    memset(w->power, 0, (w->n + 1) * sizeof(*w->power));
    w->power[0] = 1;
    memset(w->base, 0, (w->n + 1) * sizeof(*w->base));
    for (uint64_t c = 0; c <= w->fullest; c++)
        w->base[c] = expl((long double)s * (long double)(c * (c - (c > 0)) / 2) -
                          lgammal((long double)c + 1));
    for (uint64_t left = m; left; left >>= 1) {
        if (left & 1)
            multiply(w->power, w->base, w->scratch, w->n);
        if (left > 1)
            multiply(w->base, w->base, w->scratch, w->n);
    }
    return (double)(logl(w->power[w->n]) + lgammal((long double)w->n + 1) -
                    (long double)w->n * logl((long double)m));
}

/* The bound's logarithm is convex in s: thirds of the range are thrown away. */
static double least(struct work *w, uint64_t m, uint64_t q, double top)
{
    double low = 0, high = top, best = 0;

    while (high - low > 1e-2 * top && best > LOG_ENOUGH) {
        double a = low + (high - low) / 3, b = high - (high - low) / 3;
        double at_a = log_moment(w, m, a) - a * (double)q;
        double at_b = log_moment(w, m, b) - b * (double)q;

        if (at_a < best)
            best = at_a;
        if (at_b < best)
            best = at_b;
        if (at_a < at_b)
            high = b;
        else
            low = a;
    }
    return best;
}

/* P(some link has more than k flows) <= m P(Bin(n, 1/m) > k), and a binomial tail is below its
 * first term times a geometric series. */
static double fuller_than(uint64_t k, uint64_t n, uint64_t m)
{
    double c = (double)k + 1, flows = (double)n, p = 1 / (double)m;
    double ratio = (flows - c) / (c + 1) * p / (1 - p);
    double term;

    if (k >= n)
        return 0;
    if (ratio >= 1)
        return 1;
    term = lgamma(flows + 1) - lgamma(c + 1) - lgamma(flows - c + 1) + c * log(p) +
           (flows - c) * log1p(-p);
    return (double)m * exp(term) / (1 - ratio);
}

/* A few very full links make the moments explode long before they matter, so their chance is taken
 * apart; where to cut is tried out. */
static double least_over_cuts(struct work *w, uint64_t m, uint64_t q)
{
    double best = 1;

    for (uint64_t k = 2 + w->n / m; k < 2 * w->n && best > exp(LOG_ENOUGH) * 2; k += 1 + k / 3) {
        double apart = fuller_than(k, w->n, m), top, bound;

        w->fullest = k < w->n ? k : w->n;
        top = (LOG_MAX - (double)w->n * log((double)m)) /
              ((double)w->n * (double)(w->fullest - 1) / 2);
        if (apart >= best || top <= 0)
            continue;
        bound = apart + exp(least(w, m, q, top < 5 ? top : 5));
        if (isfinite(bound) && bound < best)
            best = bound;
    }
    return best;
}

double ft_chance_bound(uint64_t n, uint64_t m, uint64_t q)
{
    struct work w = {.n = n};
    double best = 1;

    if (n < 2 || m < 2 || n > FLOWS_MAX)
        return 1;
    w.power = calloc(n + 1, sizeof(*w.power));
    w.base = calloc(n + 1, sizeof(*w.base));
    w.scratch = calloc(n + 1, sizeof(*w.scratch));
    if (w.power && w.base && w.scratch)
        best = least_over_cuts(&w, m, q);
    free(w.power);
    free(w.base);
    free(w.scratch);
    return best;
}
