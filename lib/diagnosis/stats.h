// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_STATS_H
#define FT_DIAGNOSIS_STATS_H
/* Figures that single odd values do not move. Functions that order values do so in place. */
#include <stddef.h>

/* The n-th of the values by size, counted from 0; what stands behind it is not smaller.
 */
double ft_nth(double *values, size_t count, size_t n);

/* The value below which a share of them lies; 0 without values. */
double ft_quantile(double *values, size_t count, double share);

static inline double ft_median(double *values, size_t count)
{
    return ft_quantile(values, count, 0.5);
}

/* Standard deviation by the median of the distances from a centre. */
double ft_spread(double *values, size_t count, double centre);

/* The stretch from *first up to *end whose values exceed bar the most in sum, each counted to no
 * more than limit above or below it; both 0 where none does. */
void ft_stretch(const double *values, size_t count, double bar, double limit, size_t *first,
                size_t *end);

/* The smallest number of values whose sums are steady from one such block to the next; where none
 * is, the steadiest of those that leave blocks_min blocks. room: as many as values. */
size_t ft_period(const double *values, size_t count, size_t blocks_min, double *room);

#endif
