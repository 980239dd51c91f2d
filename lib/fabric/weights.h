// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_WEIGHTS_H
#define FT_FABRIC_WEIGHTS_H
/*
 * What chance gives the links of a group whose speeds differ.
 *
 * How a switch weighs such links is not known: each alike, as plain ECMP does; by their speed
 * (weighted ECMP); or the aggregates that they are in alike, whatever is left of each. What one of
 * these explains must not be called a fault, so the largest of their p-values counts. Weights that
 * are set by hand otherwise are not known here, and read as uneven. Pure.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/fabric/metrics.h"

/* m >= 1 links. */
struct ft_link_set {
    size_t m;
    const uint64_t *speed_bps; /* NULL, or any 0 in it: not known */
    const uint32_t *bundle; /* links with the same one share what it gets; NULL: each by itself */
};

enum ft_weighing {
    FT_WEIGHED_BY_SPEED,
    FT_WEIGHED_BY_BUNDLE, /* each alike, and in it each link alike */
    FT_WEIGHINGS,
};

/* The share of each link so weighed, of 1. False where it is the same for all, or not known. */
bool ft_weigh(const struct ft_link_set *links, enum ft_weighing by, double *share);

/* The least share of each link, of the weighings that there are and of the even one. */
void ft_least_shares(const struct ft_link_set *links, double *share);

/* Probability of an imbalance at least this large where each flow takes link i with that share.
 * Links with the same share are a class: how many flows each class has is binomial, and how they
 * spread in it is ft_p_value()'s. These are independent, so that the least of k such p-values is
 * 1 - (1 - p)^k (Sidak 1967). 1 without memory. */
double ft_weighted_p_value(struct ft_chance *chance, const uint64_t *count, const double *share,
                           size_t m);

/* FIM in percent, of loads over speeds as in ft_figures_of(), that n flows give on average with
 * these shares; the mean load is taken as its own mean. speed_bps as there. */
double ft_weighted_fim_expected(uint64_t n, const double *share, const uint64_t *speed_bps,
                                size_t m);

/* The largest p of the weighings, and of even choice; share[m]: by the one that gives it. */
double ft_by_chance_share(struct ft_chance *chance, const uint64_t *count,
                          const struct ft_link_set *links, double *share);

struct ft_by_chance {
    bool judged; /* there are flows that had a choice */
    double p;    /* as ft_by_chance_share() */
    double fim_expected;
};

/* p = 1 without memory. */
struct ft_by_chance ft_by_chance_of(struct ft_chance *chance, const uint64_t *count,
                                    const struct ft_link_set *links);

/* Mean entropy, in nats, of n flows' shares of the links, if each takes link i with that share. */
double ft_weighted_entropy(uint64_t n, const double *share, size_t m);

#endif
