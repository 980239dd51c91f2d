// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/metrics.h"

#include <math.h>

#include "lib/fabric/chance.h"

static bool speeds_known(const uint64_t *speed_bps, size_t m)
{
    for (size_t i = 0; speed_bps && i < m; i++)
        if (speed_bps[i] == 0)
            return false;
    return speed_bps != NULL;
}

/* What a link of the mean speed would carry instead. */
static double weighed(const double *load, const uint64_t *speed_bps, double mean_speed, size_t i)
{
    return mean_speed > 0 ? load[i] * mean_speed / (double)speed_bps[i] : load[i];
}

void ft_figures_of(const double *load, const uint64_t *speed_bps, size_t m, struct ft_figures *out)
{
    double sum = 0, away = 0, squares = 0, max = 0, entropy = 0, mean_speed = 0, mean;

    if (speeds_known(speed_bps, m))
        for (size_t i = 0; i < m; i++)
            mean_speed += (double)speed_bps[i] / (double)m;
    for (size_t i = 0; i < m; i++)
        sum += weighed(load, speed_bps, mean_speed, i);
    *out = (struct ft_figures){.some = sum > 0};
    if (!out->some)
        return;
    mean = sum / (double)m;
    for (size_t i = 0; i < m; i++) {
        double x = weighed(load, speed_bps, mean_speed, i) / mean;

        away += fabs(x - 1);
        squares += (x - 1) * (x - 1);
        max = fmax(max, x);
        if (x > 0)
            entropy -= x / (double)m * log(x / (double)m);
    }
    out->fim = 100 * away / (double)m;
    out->max_over_mean = max;
    out->cov = sqrt(squares / (double)m);
    /* F^2 / (m sum f^2), of values whose mean is 1. */
    out->jain = 1 / (1 + squares / (double)m);
    out->effective_links = exp(entropy);
}

static double log_gamma(double x)
{
    int sign;

    /* lgamma() writes its sign to a global. */
    return lgamma_r(x, &sign);
}

double ft_fim_expected(uint64_t n, uint64_t m)
{
    double k, all, p;

    if (n == 0 || m < 2)
        return 0;
    k = (double)(n / m + 1);
    all = (double)n;
    p = 1 / (double)m;
    return 200 * exp(log(k) + log_gamma(all + 1) - log_gamma(k + 1) - log_gamma(all - k + 1) +
                     k * log(p) + (all - k + 1) * log1p(-p) - log(all * p));
}

double ft_chi_square(const uint64_t *count, size_t m)
{
    double sum = 0, away = 0, mean;

    for (size_t i = 0; i < m; i++)
        sum += (double)count[i];
    if (sum == 0)
        return 0;
    mean = sum / (double)m;
    for (size_t i = 0; i < m; i++)
        away += ((double)count[i] - mean) * ((double)count[i] - mean);
    return away / mean;
}

/* P(a, x) / (x^a e^-x / gamma(a)) = sum of x^k / (a (a + 1) ... (a + k)) (DLMF 8.11.4 with 8.2). */
static double gamma_series(double a, double x)
{
    double term = 1 / a, sum = term;

    for (double k = 1; term > sum * 1e-17; k++) {
        term *= x / (a + k);
        sum += term;
    }
    return sum;
}

/* Q(a, x) / (x^a e^-x / gamma(a)) = 1/(x+1-a - 1(1-a)/(x+3-a - 2(2-a)/(x+5-a - ...))) (DLMF 8.9.2,
 * even part), by the recurrence of its convergents: A_k = b_k A_(k-1) + a_k A_(k-2), B_k alike. */
static double gamma_fraction(double a, double x)
{
    double top_before = 0, top = 1, bottom_before = 1, bottom = x + 1 - a;
    double value = top / bottom, last;
    double k = 0;

    do {
        double part = -(k + 1) * (k + 1 - a), b = x + 2 * k + 3 - a;
        double next_top = b * top + part * top_before;
        double next_bottom = b * bottom + part * bottom_before;
        double scale = fabs(next_bottom);

        /* Only the ratio counts; scaled to stay in range. */
        top_before = top / scale;
        bottom_before = bottom / scale;
        top = next_top / scale;
        bottom = next_bottom / scale;
        last = value;
        value = top / bottom;
        k++;
    } while (fabs(value - last) > 1e-15 * fabs(value) && k < 100000);
    return value;
}

double ft_chi_square_tail(double x, double dof)
{
    double a = dof / 2, half = x / 2, front;

    if (!(half > 0) || !(a > 0))
        return 1;
    front = exp(a * log(half) - half - log_gamma(a));
    if (half < a + 1)
        return fmax(0, 1 - front * gamma_series(a, half));
    return fmin(1, front * gamma_fraction(a, half));
}

/* P(pairs >= q); of draws never below 1 in draws + 1. */
static double tail_at(const struct ft_tail *t, uint64_t q)
{
    double p = q <= t->least ? 1 : q - t->least < t->width ? t->tail[q - t->least] : 0;

    return t->exact ? p : (p * FT_DRAWS + 1) / (FT_DRAWS + 1);
}

double ft_p_value(struct ft_chance *chance, const uint64_t *count, size_t m)
{
    const struct ft_tail *tail;
    uint64_t n = 0, pairs = 0;
    double p;

    for (size_t i = 0; i < m; i++) {
        n += count[i];
        pairs += count[i] ? count[i] * (count[i] - 1) / 2 : 0;
    }
    if (n == 0 || m < 2)
        return 1;
    tail = n < 5 * (uint64_t)m ? ft_chance_tail(chance, n, m) : NULL;
    if (!tail)
        return ft_chi_square_tail(ft_chi_square(count, m), (double)(m - 1));
    p = tail_at(tail, pairs);
    /* No draw came near: what is proven may be much less. */
    if (!tail->exact && p <= 1.0 / (FT_DRAWS + 1))
        p = fmin(p, ft_chance_bound(n, m, pairs));
    return p;
}

double ft_binomial_tail(uint64_t k, uint64_t n, double p)
{
    double count = (double)n, i = (double)k, term, sum = 0;

    if (k >= n)
        return 1;
    /* Terms are added up from the largest, away from the mean. */
    if (i > count * p)
        return 1 - ft_binomial_tail(n - k - 1, n, 1 - p);
    term = exp(log_gamma(count + 1) - log_gamma(i + 1) - log_gamma(count - i + 1) + i * log(p) +
               (count - i) * log1p(-p));
    for (; i >= 0 && term > sum * 1e-17; i--) {
        sum += term;
        term *= i / (count - i + 1) * (1 - p) / p;
    }
    return fmin(1, sum);
}

void ft_wilson(uint64_t k, uint64_t n, double *lo, double *hi)
{
    const double z = 1.959963984540054; /* the normal distribution's 97.5 % point */
    double share, centre, reach, trials = (double)n;

    if (n == 0) {
        *lo = 0;
        *hi = 1;
        return;
    }
    share = (double)k / trials;
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials);
    reach = z / (1 + z * z / trials) *
            sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials));
    *lo = k == 0 ? 0 : fmax(0, centre - reach);
    *hi = k == n ? 1 : fmin(1, centre + reach);
}
