// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_CHANCE_H
#define FT_FABRIC_CHANCE_H
/*
 * How flows fall on links by chance: the distribution of the number of colliding pairs when each
 * of n flows chooses one of m links at random.
 *
 * Pairs q = sum c(c - 1)/2 over the links carry the same information as the sum of squares
 * (2q + n) and as chi-square (m/n (2q + n) - n), and are small integers, so that a table of
 * them is short. Used by metrics.c and union.c only.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/mix.h"
#include "lib/fabric/metrics.h"

#define FT_DRAWS 20000

/* Tail of one (n, m): tail[i] = P(pairs >= least + i); tail[0] is 1, past the end it is 0. */
struct ft_tail {
    uint64_t least;
    uint32_t width; /* 0: not made */
    bool exact;
    double *tail;
};

/* The tail of n flows over m links, made when it is not there; NULL where n or m is too large for
 * a table (see ft_chance_limit) or without memory. Borrowed until the next call. */
const struct ft_tail *ft_chance_tail(struct ft_chance *chance, uint64_t n, uint64_t m);

/* Most flows over m links for which there is a table; 0: none for so many links. At least 5 flows a
 * link, which is where chi-square takes over. */
uint64_t ft_chance_limit(uint64_t m);

/* An upper bound of P(pairs >= q) for n flows over m links that holds for any q, and is close where
 * draws never reach: the least E[exp(s pairs)] exp(-s q) over s >= 0 (Chernoff 1952), with overfull
 * links bounded by themselves. 1 when it cannot be had. */
double ft_chance_bound(uint64_t n, uint64_t m, uint64_t q);

/* Fixed seed, so that equal input gives equal output. */
struct ft_random {
    uint64_t state;
};

static inline uint64_t ft_random_next(struct ft_random *r)
{
    return ft_mix_next(&r->state);
}

#endif
