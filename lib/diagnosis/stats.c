// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/stats.h"

#include <math.h>
#include <stdlib.h>

#define PERIOD_MAX 64
#define STEADY     0.5  /* range of the sums of a period, as a share of their median */
#define RARE       0.15 /* of the sums: left out at either end */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

double ft_quantile(double *values, size_t count, double share)
{
    double at;
    size_t low;

    if (count == 0)
        return 0;
    qsort(values, count, sizeof(*values), by_value);
    at = share * (double)(count - 1);
    low = (size_t)at;
    if (low + 1 >= count)
        return values[count - 1];
    return values[low] + (at - (double)low) * (values[low + 1] - values[low]);
}

double ft_spread(double *values, size_t count, double centre)
{
    for (size_t i = 0; i < count; i++)
        values[i] = fabs(values[i] - centre);
    return 1.4826 * ft_median(values, count);
}

void ft_stretch(const double *values, size_t count, double bar, double limit, size_t *first,
                size_t *end)
{
    double sum = 0, best = 0;
    size_t from = 0;

    *first = *end = 0;
    for (size_t i = 0; i < count; i++) {
        double above = values[i] - bar;

        above = above > limit ? limit : above < -limit ? -limit : above;
        if (sum <= 0) {
            sum = 0;
            from = i;
        }
        sum += above;
        if (sum > best) {
            best = sum;
            *first = from;
            *end = i + 1;
        }
    }
}

size_t ft_period(const double *values, size_t count, size_t blocks_min, double *room)
{
    double least = INFINITY;
    size_t best = 1;

    for (size_t period = 1; period <= PERIOD_MAX && count / period >= blocks_min; period++) {
        size_t n = count / period;
        double median, range;

        for (size_t b = 0; b < n; b++) {
            room[b] = 0;
            for (size_t k = 0; k < period; k++)
                room[b] += values[b * period + k];
        }
        median = ft_median(room, n);
        range = (ft_quantile(room, n, 1 - RARE) - ft_quantile(room, n, RARE)) / median;
        if (!(median > 0) || range >= least)
            continue;
        least = range;
        best = period;
        if (range < STEADY)
            break;
    }
    return best;
}
