// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/rhythm.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LAGS_MAX    (FT_RHYTHM_BINS / 3 + 2)
#define BLURS       2.5 /* of which a period is at least that many */
#define SIGMAS      5.0 /* above the noise */
#define AT_LEAST    0.35
#define PEAK_MIN    0.4  /* of a peak above the valley before it */
#define NEAR        0.1  /* of the lag: the same period in both halves */
#define NEARLY      0.75 /* of the highest peak: the first one that is so is the period */
#define DEPTH_MIN   0.25 /* deviation against the mean: of less, folding may be the cause */
#define BINS_MIN    32
#define QUIET_SHARE 0.1 /* of what is usual while it sends */

struct correlation {
    double at[LAGS_MAX];
    size_t lags;  /* known: up to a third of the time */
    double noise; /* standard deviation of a lag where nothing repeats */
};

/* False: too little changes. */
static bool correlate(const double *rates, size_t n, struct correlation *c)
{
    double mean = 0, power = 0, squares = 0;
    bool positive = true;

    for (size_t i = 0; i < n; i++)
        mean += rates[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        power += (rates[i] - mean) * (rates[i] - mean);
    c->lags = n / 3;
    if (n < BINS_MIN || sqrt(power / (double)n) <= DEPTH_MIN * mean)
        return false;
    for (size_t lag = 0; lag <= c->lags; lag++) {
        double sum = 0;

        for (size_t i = 0; i + lag < n; i++)
            sum += (rates[i] - mean) * (rates[i + lag] - mean);
        c->at[lag] = sum / power * (double)n / (double)(n - lag);
        positive = positive && c->at[lag] > 0;
        squares += lag > 0 && positive ? c->at[lag] * c->at[lag] : 0;
    }
    c->noise = sqrt((1 + 2 * squares) / (double)n);
    return true;
}

static bool is_peak(const struct correlation *c, size_t lag)
{
    size_t reach = lag / 4 > 1 ? lag / 4 : 1;

    for (size_t k = lag > reach ? lag - reach : 0; k <= lag + reach && k <= c->lags; k++)
        if (c->at[k] > c->at[lag])
            return false;
    return lag + 1 <= c->lags;
}

/* The first peak that is nearly the highest; 0: none stands out. */
static size_t first_peak(const struct correlation *c, size_t least)
{
    size_t peak = 0;
    double highest = 0;

    for (int pass = 0; pass < 2; pass++) {
        double valley = 1;

        for (size_t lag = 1; lag <= c->lags; lag++) {
            valley = fmin(valley, c->at[lag]);
            if (lag < least || !is_peak(c, lag) || c->at[lag] < AT_LEAST ||
                c->at[lag] - valley < PEAK_MIN || c->at[lag] - valley < SIGMAS * c->noise)
                continue;
            if (pass == 0)
                highest = fmax(highest, c->at[lag]);
            else if (c->at[lag] >= NEARLY * highest) {
                peak = lag;
                break;
            }
        }
    }
    return peak;
}

/* Whether a part of the time shows the same period by itself. */
static bool repeats(const double *rates, size_t n, size_t lag, struct correlation *c)
{
    double far;

    if (!correlate(rates, n, c))
        return false;
    far = fabs((double)first_peak(c, 2) - (double)lag);
    return far <= NEAR * (double)lag + 1;
}

/* Sums of all bins within the blur: what folding alone makes of a steady rate is not among them. */
static size_t smooth(const double *rates, size_t n, double blur, double *out)
{
    size_t width = blur > 1 ? (size_t)ceil(blur) : 1;
    double sum = 0;

    if (n < width)
        return 0;
    for (size_t i = 0; i < n; i++) {
        sum += rates[i] - (i >= width ? rates[i - width] : 0);
        if (i + 1 >= width)
            out[i + 1 - width] = sum;
    }
    return n + 1 - width;
}

/* Between bins: the vertex of the parabola through three lags. */
static double between(const struct correlation *c, size_t lag)
{
    double before = c->at[lag - 1], at = c->at[lag], after = c->at[lag + 1];
    double bend = before - 2 * at + after;

    return bend < 0 ? (double)lag + 0.5 * (before - after) / bend : (double)lag;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* What is usual while it sends: the middle of the bins with traffic, by their bytes. */
static double exchange_of(const double *rates, size_t n)
{
    double sorted[FT_RHYTHM_BINS], total = 0, sum = 0, usual = 0;
    size_t busy = 0;

    memcpy(sorted, rates, n * sizeof(*rates));
    qsort(sorted, n, sizeof(*sorted), by_value);
    for (size_t i = 0; i < n; i++)
        total += sorted[i];
    for (size_t i = 0; i < n && sum < total / 2; i++) {
        sum += sorted[i];
        usual = sorted[i];
    }
    for (size_t i = 0; i < n && usual > 0; i++)
        busy += rates[i] > QUIET_SHARE * usual;
    return n ? (double)busy / (double)n : 0;
}

void ft_rhythm_find(const double *rates, size_t n, double blur, struct ft_rhythm *out)
{
    struct ft_rhythm found = {.exchange = exchange_of(rates, n)};
    size_t least = (size_t)fmax(2, ceil(BLURS * blur)), lag, count;
    double smoothed[FT_RHYTHM_BINS];
    struct correlation c;

    count = smooth(rates, n, blur, smoothed);
    lag = correlate(smoothed, count, &c) ? first_peak(&c, least) : 0;
    if (lag > 0) {
        found.period = between(&c, lag);
        found.regularity = fmin(1, c.at[lag]);
        if (!repeats(smoothed, count / 2, lag, &c) ||
            !repeats(smoothed + count - count / 2, count / 2, lag, &c))
            found.period = found.regularity = 0;
    }
    *out = found;
}
