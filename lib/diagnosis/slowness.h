// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_SLOWNESS_H
#define FT_DIAGNOSIS_SLOWNESS_H
/* Whether a series of lengths has a stretch that is slow: longer than usual by more than its noise,
 * and by more than its past where only that is known. */
#include <stdbool.h>
#include <stddef.h>

/* The share of a series below its own usual value, where nothing else says what is usual. */
#define FT_SLOWNESS_PAST 0.3

struct ft_slowness {
    size_t first, end;
    double ratio; /* of the stretch to what is usual */
};

/* values: logarithms of lengths over what is usual, in order of time. noise: the least that they
 * are taken to vary by, as few may be near each other by chance. room: as many. */
bool ft_slowness_of(const double *values, size_t count, double noise, double *room,
                    struct ft_slowness *slow);

/* What one has to be slow by to stand out from others at the same time, which differ by chance at
 * least so much. Overwrites them. */
double ft_slowness_bar(double *others, size_t count, double differ);

#endif
