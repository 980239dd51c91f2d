// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Terms of a sum that are smaller than this part of it are left out. */
#define NEGLIGIBLE 1e-17

static bool by_speed(const struct ft_link_set *links, double *share)
{
    const uint64_t *speed = links->speed_bps;
    bool differ = false;
    double sum = 0;

    for (size_t i = 0; speed && i < links->m; i++) {
        if (speed[i] == 0)
            return false;
        differ |= speed[i] != speed[0];
        sum += (double)speed[i];
    }
    for (size_t i = 0; differ && i < links->m; i++)
        share[i] = (double)speed[i] / sum;
    return differ;
}

/* Rising numbers are of bundles of one each: what most groups have, and many links are fast. */
static bool is_rising(const uint32_t *bundle, size_t m)
{
    for (size_t i = 1; i < m; i++)
        if (bundle[i] <= bundle[i - 1])
            return false;
    return true;
}

static bool by_bundle(const struct ft_link_set *links, double *share)
{
    const uint32_t *bundle = links->bundle;
    size_t bundles = 0;
    bool differ = false;

    if (!bundle || is_rising(bundle, links->m))
        return false;
    for (size_t i = 0; i < links->m; i++) {
        size_t size = 0, first = links->m;

        for (size_t k = 0; k < links->m; k++)
            if (bundle[k] == bundle[i])
                first = size++ ? first : k;
        bundles += first == i;
        share[i] = 1 / (double)size;
        differ |= share[i] != share[0];
    }
    for (size_t i = 0; differ && i < links->m; i++)
        share[i] /= (double)bundles;
    return differ;
}

bool ft_weigh(const struct ft_link_set *links, enum ft_weighing by, double *share)
{
    return by == FT_WEIGHED_BY_SPEED ? by_speed(links, share) : by_bundle(links, share);
}

void ft_least_shares(const struct ft_link_set *links, double *share)
{
    double *weighed = malloc(links->m * sizeof(*weighed));

    for (size_t i = 0; i < links->m; i++)
        share[i] = weighed ? 1 / (double)links->m : 0;
    for (int by = 0; weighed && by < FT_WEIGHINGS; by++)
        if (ft_weigh(links, (enum ft_weighing)by, weighed))
            for (size_t i = 0; i < links->m; i++)
                share[i] = fmin(share[i], weighed[i]);
    free(weighed);
}

static double at_least(uint64_t k, uint64_t n, double share)
{
    return k ? ft_binomial_tail(n - k, n, 1 - share) : 1;
}

/* Tests that are independent of each other. */
struct tests {
    double least;
    unsigned count;
};

static void add_test(struct tests *tests, double p)
{
    tests->least = fmin(tests->least, p);
    tests->count++;
}

static bool is_first(const double *share, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (share[k] == share[i])
            return false;
    return true;
}

double ft_weighted_p_value(struct ft_chance *chance, const uint64_t *count, const double *share,
                           size_t m)
{
    uint64_t *of_class = malloc(m * sizeof(*of_class)), left = 0;
    struct tests tests = {.least = 1};
    double share_left = 1;
    size_t links_left = m;

    for (size_t i = 0; of_class && i < m; i++)
        left += count[i];
    for (size_t i = 0; of_class && left && i < m; i++) {
        uint64_t n = 0;
        size_t size = 0;

        if (!is_first(share, i))
            continue;
        for (size_t k = i; k < m; k++)
            if (share[k] == share[i]) {
                n += count[k];
                of_class[size++] = count[k];
            }
        links_left -= size;
        if (links_left) {
            double part = fmin(1, share[i] * (double)size / share_left);

            add_test(&tests,
                     fmin(1, 2 * fmin(ft_binomial_tail(n, left, part), at_least(n, left, part))));
        }
        if (size > 1 && n > 1)
            add_test(&tests, ft_p_value(chance, of_class, size));
        left -= n;
        share_left -= share[i] * (double)size;
    }
    free(of_class);
    return tests.count ? -expm1(tests.count * log1p(-tests.least)) : 1;
}

static double log_gamma(double x)
{
    int sign;

    return lgamma_r(x, &sign);
}

/* P(k of n), the share neither 0 nor 1. */
static double exactly(double k, double n, double share)
{
    return exp(log_gamma(n + 1) - log_gamma(k + 1) - log_gamma(n - k + 1) + k * log(share) +
               (n - k) * log1p(-share));
}

/* Mean of how far the number of n flows is from t. */
static double away_from(double t, double n, double share)
{
    double below = 0, k, p;

    if (share <= 0 || share >= 1)
        return fabs(n * share - t);
    /* The side that has less of the distribution is added up; the mean gives the other. */
    if (t > n * share)
        return away_from(n - t, n, 1 - share);
    if (t < 0)
        return n * share - t;
    k = floor(t);
    p = exactly(k, n, share);
    for (; k >= 0 && p > 0; k--) {
        double term = (t - k) * p;

        below += term;
        if (term < NEGLIGIBLE * below && k < t - 1)
            break;
        p *= k / (n - k + 1) * (1 - share) / share;
    }
    return n * share - t + 2 * below;
}

double ft_weighted_fim_expected(uint64_t n, const double *share, const uint64_t *speed_bps,
                                size_t m)
{
    double mean = 0, away = 0;
    bool known = speed_bps != NULL;

    for (size_t i = 0; known && i < m; i++)
        known = speed_bps[i] > 0;
    if (n == 0 || m < 2)
        return 0;
    for (size_t i = 0; i < m; i++)
        mean += (double)n * share[i] / (known ? (double)speed_bps[i] : 1) / (double)m;
    for (size_t i = 0; i < m; i++) {
        double even = mean * (known ? (double)speed_bps[i] : 1);

        away += away_from(even, (double)n, share[i]) / even;
    }
    return 100 * away / (double)m;
}

static void share_alike(double *share, size_t m)
{
    for (size_t i = 0; i < m; i++)
        share[i] = 1 / (double)m;
}

double ft_by_chance_share(struct ft_chance *chance, const uint64_t *count,
                          const struct ft_link_set *links, double *share)
{
    double *weighed = malloc(links->m * sizeof(*weighed));
    double most = weighed ? ft_p_value(chance, count, links->m) : 1;

    share_alike(share, links->m);
    for (int by = 0; weighed && by < FT_WEIGHINGS; by++) {
        double p;

        if (!ft_weigh(links, (enum ft_weighing)by, weighed))
            continue;
        p = ft_weighted_p_value(chance, count, weighed, links->m);
        if (p <= most)
            continue;
        most = p;
        memcpy(share, weighed, links->m * sizeof(*share));
    }
    free(weighed);
    return most;
}

/* Whether links that are chosen alike, with that share, have the same speed, or one is not known.
 */
static bool is_plain(const struct ft_link_set *links, const double *share)
{
    const uint64_t *speed = links->speed_bps;
    bool differ = false;

    for (size_t i = 0; i < links->m; i++) {
        if (share[i] != share[0])
            return false;
        if (speed && speed[i] == 0)
            speed = NULL;
    }
    for (size_t i = 0; speed && i < links->m; i++)
        differ |= speed[i] != speed[0];
    return !differ;
}

struct ft_by_chance ft_by_chance_of(struct ft_chance *chance, const uint64_t *count,
                                    const struct ft_link_set *links)
{
    double *share = malloc(links->m * sizeof(*share));
    struct ft_by_chance c = {.p = 1};
    uint64_t n = 0;

    for (size_t i = 0; i < links->m; i++)
        n += count[i];
    if (!share)
        return c;
    c.judged = n > 0 && links->m > 1;
    c.p = ft_by_chance_share(chance, count, links, share);
    c.fim_expected = is_plain(links, share)
                         ? ft_fim_expected(n, links->m)
                         : ft_weighted_fim_expected(n, share, links->speed_bps, links->m);
    free(share);
    return c;
}

double ft_weighted_entropy(uint64_t flows, const double *share, size_t m)
{
    double n = (double)flows, sum = 0;

    for (size_t i = 0; i < m; i++) {
        double links = 0, one = 0;

        if (share[i] <= 0 || share[i] >= 1 || !is_first(share, i))
            continue;
        for (size_t k = i; k < m; k++)
            links += share[k] == share[i];
        for (double k = 1; k < n; k++)
            one -= k / n * log(k / n) * exactly(k, n, share[i]);
        sum += links * one;
    }
    return sum;
}
