// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_RHYTHM_H
#define FT_DIAGNOSIS_RHYTHM_H
/*
 * The period of a job and the part of its time in which it sends, from what its flows carried over
 * time: no rank, no operation is known.
 *
 * The period is the first lag at which the autocorrelation has a peak that is nearly its highest,
 * stands above the noise of this series (Bartlett's variance), and is there in both halves of the
 * time. Traffic that does not repeat, and time of less than three periods, give none. Pure.
 * Thread: any.
 */
#include <stddef.h>

/* Samples of the rate that are looked at, at most. */
#define FT_RHYTHM_BINS 1024

struct ft_rhythm {
    double period;     /* [bins]; 0: not known */
    double regularity; /* autocorrelation at the period, 0 to 1 */
    double exchange;   /* [0 to 1] part of the time with traffic; 0 without any */
};

/* Of n rates, one a bin, FT_RHYTHM_BINS at most. Changes within `blur` bins are not to be seen:
 * periods below two and a half of these are none. */
void ft_rhythm_find(const double *rates, size_t n, double blur, struct ft_rhythm *out);

#endif
