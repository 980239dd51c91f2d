// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_UNDERUSE_H
#define FT_FABRIC_UNDERUSE_H
/*
 * Whether flows avoid a link of a set of equal-cost links for good, decided while they come.
 *
 * Each flow that is placed for the first time falls on one of m links. The likelihood ratio of "a
 * quarter of the share that chance gives" to "as chance gives" is added up after Shiryaev and
 * Roberts, R <- (1 + R) L. For flows that choose at random, R minus the number of flows is a
 * martingale, so that R reaches A only after A flows on average, whoever looks how often; with the
 * m links of a set, after A / m (Pollak 1985). With A = m FT_UNDERUSE_FLOWS there is one false
 * alarm in FT_UNDERUSE_FLOWS flows of a set at most, on average. Flows that stay count once: they
 * say nothing new. Pure.
 */
#include <stdbool.h>
#include <stdint.h>

#define FT_UNDERUSE_FLOWS 1e6

struct ft_underuse {
    double r;
    uint64_t flows; /* of the set, since it began to look so */
    uint64_t here;  /* of them, on this link */
    bool stands;
};

/* A flow fell on this link of m, or on another of them; m is 2 at least. */
void ft_underuse_add(struct ft_underuse *u, uint32_t m, bool here);

#endif
