// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/slowness.h"

#include <math.h>
#include <string.h>

#include "lib/diagnosis/stats.h"

#define STRETCH_MIN 6
#define CHANGED     1.2 /* where it was usual before or after */
#define ALWAYS      1.4 /* where it was never: then it may be built so */
#define OFTEN       0.8
#define SIGMAS      6
#define LIKE        4 /* others, to know how much they differ */
#define ABOVE       0.6
#define TENTH       0.253 /* of a normal distribution between its middle and that, in spreads */
#define BEYOND      1.1   /* times what others are slow by at the same time, */
#define OUTLIER     6     /* and so many spreads of what they are */

static double middle(const double *values, size_t count, double *room, double *spread)
{
    double median;

    memcpy(room, values, count * sizeof(*room));
    median = ft_median(room, count);
    *spread = ft_spread(room, count, median);
    return median;
}

bool ft_slowness_of(const double *values, size_t count, double noise, double *room,
                    struct ft_slowness *slow)
{
    double bar = log(1 + (CHANGED - 1) / 2), least = log(ALWAYS), median, spread, rest = 0,
           other = 0;
    size_t first, end, outside, often = 0, n;

    ft_stretch(values, count, bar, log(2), &first, &end);
    n = end - first;
    outside = count - n;
    if (n < STRETCH_MIN)
        return false;
    median = middle(values + first, n, room, &spread);
    if (outside >= STRETCH_MIN) {
        size_t before = first;

        memcpy(room, values, before * sizeof(*room));
        memcpy(room + before, values + end, (count - end) * sizeof(*room));
        rest = ft_median(room, outside);
        other = ft_spread(room, outside, rest);
        if (rest < bar)
            least = log(CHANGED);
    }
    for (size_t i = first; i < end; i++)
        often += values[i] > bar;
    spread = fmax(fmax(spread, other), fmax(noise, 1e-3));
    if (median < least || median - fmax(rest, 0) < log(1.1) || (double)often < OFTEN * (double)n ||
        median < SIGMAS * 1.2533 * spread / sqrt((double)n))
        return false;
    *slow = (struct ft_slowness){.first = first, .end = end, .ratio = exp(median)};
    return true;
}

/* How far above their middle others are by chance; 0: too few to say. */
static double differ_of(double *others, size_t count)
{
    double median, above;

    if (count < LIKE)
        return 0;
    median = ft_median(others, count);
    /* Above the middle they may differ by more than below it. */
    above = (ft_quantile(others, count, ABOVE) - median) / TENTH;
    return fmax(above, ft_spread(others, count, median)); /* which replaces them */
}

double ft_slowness_bar(double *others, size_t count, double differ)
{
    double median = count ? ft_median(others, count) : 0;

    differ = fmax(differ, differ_of(others, count));
    return fmax(median, 0) + fmax(log(BEYOND), OUTLIER * differ);
}
