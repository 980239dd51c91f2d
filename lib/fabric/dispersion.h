// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_DISPERSION_H
#define FT_FABRIC_DISPERSION_H
/*
 * How many samples of a flow that is sprayed are one choice of a link, and probabilities that allow
 * for it.
 *
 * Packets that follow each other closely may keep to one link (flowlets), and so do samples of
 * them: counts of links vary more than if each sample chose, by a factor, their dispersion. It is
 * found within intervals of about a second: of two samples in one interval, those that a flowlet
 * keeps together are on one link more often than two of any time (quasi-likelihood: McCullagh and
 * Nelder 1989, chapter 4). Samples over the factor are choices, chi-square over it is compared by
 * the F distribution, since the factor itself has an error. Shares that differ among links, but
 * stay, do not raise it. Pure.
 */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of intervals: how many samples, how many ordered pairs of samples that lie in the same
 * one, and how many of these are on the same link, too. */
struct ft_clumps {
    uint64_t samples;
    uint64_t pairs;
    uint64_t same;
    uint32_t seconds; /* that the intervals have, or more */
};

struct ft_dispersion {
    double factor;  /* 1 or more */
    double freedom; /* degrees, as of an estimate of a variance; INFINITY: it is certain */
};

/* What is certain of choices that are one each. */
#define FT_DISPERSION_NONE ((struct ft_dispersion){.factor = 1, .freedom = (double)INFINITY})

/* Of a window in which count[m] samples of the flow took each link, in so many seconds. clumps: of
 * some of them or all, of some of the samples or all; or of another group that the flow passed
 * before, of which `part` came here, else 1. False where that says nothing: one interval, no
 * samples. */
bool ft_dispersion_of(const struct ft_clumps *clumps, const uint64_t *count, size_t m,
                      uint32_t seconds, double part, struct ft_dispersion *out);

/* Of counts that were divided by a factor with so many degrees of freedom: the upper tail of their
 * chi-square, and the lower tail of the binomial distribution, p of n, both of which need not be
 * integers then. */
double ft_dispersed_chi_square_tail(double x, double dof, double freedom);
double ft_dispersed_binomial_tail(double k, double n, double p, double freedom);

#endif
