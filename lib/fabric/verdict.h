// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_VERDICT_H
#define FT_FABRIC_VERDICT_H
/*
 * The word for an imbalance, from the probability that chance gives one at least as large: the only
 * definition of the thresholds. Pure.
 */
#include <stddef.h>

/* An imbalance that chance gives less often than this is called uneven. */
#define FT_VERDICT_UNEVEN_BELOW 0.05

/* An imbalance that chance gives less often than this is a fault: of 1,000 groups judged every 10 s
 * an even one would be blamed about once in three hours. */
#define FT_VERDICT_FAULT_BELOW 1e-6

enum ft_verdict {
    FT_VERDICT_EVEN,   /* no worse than chance */
    FT_VERDICT_UNEVEN, /* worse than most chance would give, may still be luck */
    FT_VERDICT_FAULT,  /* not explained by chance */
};

/* Of many figures judged at once: how small p must be for one to be called uneven, so that of all
 * that are called so at most FT_VERDICT_UNEVEN_BELOW are luck on average (Benjamini and Hochberg
 * 1995). Sorts p[n]. 0: none is. */
double ft_verdict_threshold(double *p, size_t n);

/* One of many; threshold as above. */
enum ft_verdict ft_verdict_among(double p, double threshold);

/* Of a figure alone. p in 0 .. 1, of metrics.h's ft_p_value(); what is not a number is even. */
enum ft_verdict ft_verdict_of(double p);

/* As in records: "even", "uneven", "fault". */
const char *ft_verdict_name(enum ft_verdict verdict);

#endif
