// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/dispersion.h"

#include <float.h>
#include <math.h>

#include "lib/fabric/metrics.h"

#define STEPS 60

static double log_gamma(double x)
{
    int sign;

    return lgamma_r(x, &sign);
}

/* DLMF 8.17.22, by Lentz's method; converges fast where x < (a + 1) / (a + b + 2). */
static double beta_fraction(double x, double a, double b)
{
    double value = 1, c = 1, d = 1 - (a + b) / (a + 1) * x, step;

    d = 1 / (fabs(d) < DBL_MIN ? DBL_MIN : d);
    value = d;
    for (double k = 1; k < 10000; k++) {
        for (int odd = 0; odd < 2; odd++) {
            double term = odd ? -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1))
                              : k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k));

            d = 1 + term * d;
            d = 1 / (fabs(d) < DBL_MIN ? DBL_MIN : d);
            c = 1 + term / c;
            c = fabs(c) < DBL_MIN ? DBL_MIN : c;
            step = d * c;
            value *= step;
        }
        if (fabs(step - 1) < 1e-14)
            break;
    }
    return value;
}

/* The regularised incomplete beta function I_x(a, b); y = 1 - x, which may be small. */
static double beta(double x, double y, double a, double b)
{
    double front;

    if (x <= 0 || y <= 0)
        return x <= 0 ? 0 : 1;
    front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log(y));
    if (x < (a + 1) / (a + b + 2))
        return fmin(1, front * beta_fraction(x, a, b) / a);
    return fmax(0, 1 - front * beta_fraction(y, b, a) / b);
}

/* The mean of the pair correlation of moments in an interval, where samples keep together for
 * l intervals at the mean, exponentially distributed. */
static double kept_together(double l)
{
    return 2 * (l + l * l * expm1(-1 / l));
}

/* By how much more pairs of the window keep together than those within intervals do, where that is
 * this share of them: what keeps together does so beyond the end of an interval. */
static double beyond(double together, double intervals)
{
    double lo = 0, hi = 2 * intervals, l;

    if (together < 1e-6 || intervals <= 1)
        return 1;
    for (int i = 0; i < STEPS; i++) {
        l = (lo + hi) / 2;
        if (kept_together(l) < together)
            lo = l;
        else
            hi = l;
    }
    l = (lo + hi) / 2;
    return intervals * kept_together(l / intervals) / kept_together(l);
}

bool ft_dispersion_of(const struct ft_clumps *clumps, const uint64_t *count, size_t m,
                      uint32_t seconds, double part, struct ft_dispersion *out)
{
    double n = 0, same = 0, tracked = (double)clumps->samples, pairs = (double)clumps->pairs;
    double all, seen, intervals, within, agree, excess, together = 0, freedom;

    for (size_t i = 0; i < m; i++) {
        n += (double)count[i];
        same += (double)count[i] * ((double)count[i] - 1);
    }
    if (m < 2 || n < 2 || tracked < 2)
        return false;
    all = n * (n - 1);
    agree = same / all;
    /* One second more than there are intervals is seen where they do not begin with seconds. */
    seen = fmin(1, (clumps->seconds + 1.0) / fmax(1, seconds));
    intervals = pairs > 0 ? tracked * (tracked - 1) / pairs / seen : INFINITY;
    /* The share of all pairs that lie within intervals. */
    within = 1 / intervals;
    if (within >= 1 || agree >= 1)
        return false;
    excess = pairs > 0 ? (double)clumps->same / pairs - agree : 0;
    /* Those that agree since they keep together are among all that agree. */
    for (int i = 0; i < 2; i++) {
        double chance = fmax(1 / (double)m, (same / all - together * within));

        agree = fmin(chance, 1 - 1e-9);
        together = fmin(1, fmax(0, excess) / ((1 - within) * (1 - agree)));
    }
    freedom = pairs > 0 ? tracked * tracked / pairs * (1 - within) * (1 - agree) / agree : INFINITY;
    together /= together + (1 - together) * part;
    *out = (struct ft_dispersion){
        .factor = 1 + together * beyond(together, intervals) * within * (n - 1),
        .freedom = freedom,
    };
    return freedom >= 1;
}

double ft_dispersed_chi_square_tail(double x, double dof, double freedom)
{
    double sum = x + freedom;

    if (!isfinite(freedom))
        return ft_chi_square_tail(x, dof);
    return beta(freedom / sum, x / sum, freedom / 2, dof / 2);
}

/* Where the normal distribution has so much in its upper tail. */
static double normal_point(double tail)
{
    double lo = 0, hi = 40;

    for (int i = 0; i < STEPS; i++) {
        double z = (lo + hi) / 2;

        if (erfc(z / sqrt(2)) / 2 > tail)
            lo = z;
        else
            hi = z;
    }
    return (lo + hi) / 2;
}

double ft_dispersed_binomial_tail(double k, double n, double p, double freedom)
{
    double at_most, squared;

    if (k >= n)
        return 1;
    at_most = beta(1 - p, p, n - k, k + 1);
    if (at_most >= 0.5 || !isfinite(freedom))
        return at_most;
    /* Student's distribution instead of the normal one. */
    squared = pow(normal_point(at_most), 2);
    return beta(freedom / (freedom + squared), squared / (freedom + squared), freedom / 2, 0.5) / 2;
}
