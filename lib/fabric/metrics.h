// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_METRICS_H
#define FT_FABRIC_METRICS_H
/*
 * Imbalance of the links of an ECMP group, of a layer and of the fabric, and what chance would
 * give.
 *
 * FIM after FlowTracer (arXiv 2410.17078); Jain's index (Jain, Chiu, Hawe 1984); effective links is
 * the exponential of Shannon's entropy (Hill number of order 1). fim_expected is the mean absolute
 * deviation of a binomial (De Moivre's closed form). Pure and deterministic.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of m links. Without any load `some` is false and the rest is 0: publish nothing, not zeros. */
struct ft_figures {
    bool some;
    double fim;             /* percent, 0 .. 200(1 - 1/m) */
    double max_over_mean;   /* 1 .. m */
    double cov;             /* 0 .. sqrt(m - 1) */
    double jain;            /* 1/m .. 1 */
    double effective_links; /* 1 .. m */
};

/* load[m] as carried; speed_bps[m] weights links of unequal speed (load / (speed / mean speed));
 * NULL or any 0 in it: equal speeds. m >= 1. */
void ft_figures_of(const double *load, const uint64_t *speed_bps, size_t m, struct ft_figures *out);

/* FIM in percent that n flows give on average when each chooses one of m links at random. 0 when
 * n = 0 or m < 2. */
double ft_fim_expected(uint64_t n, uint64_t m);

/* Pearson's chi-square of counts against the even share; 0 without counts. */
double ft_chi_square(const uint64_t *count, size_t m);

/* Upper tail of the chi-square distribution: the regularised incomplete gamma Q(dof/2, x/2). */
double ft_chi_square_tail(double x, double dof);

/* Probability of an imbalance at least this large under uniform hashing. Chi-square with m - 1
 * degrees where n/m >= 5; below that the exact distribution of the sum of squares where that is
 * affordable, else Monte Carlo with 20,000 draws and a fixed seed; where no draw is as large, a
 * proven upper bound when it is below 1/20,001. The tables
 * of (n, m) are cached here, because every group of a fabric asks for the same few. One per thread.
 */
struct ft_chance;
struct ft_chance *ft_chance_new(void);
void ft_chance_free(struct ft_chance *chance);

/* 1 when there are no counts or m < 2. The links count as equals (weights.h: where they may not).
 */
double ft_p_value(struct ft_chance *chance, const uint64_t *count, size_t m);

/* The union of several groups: each load divided by its own group's mean. Groups without load are
 * left out and counted idle; groups of one link are left out. */
struct ft_union;
struct ft_union *ft_union_new(void);
void ft_union_free(struct ft_union *u);
void ft_union_reset(struct ft_union *u);

struct ft_link_set;
struct ft_choices;

/* count[m]: flows per link for chance (flows with a certain link), load[m]: what the figures are
 * of; fim_expected: of this group. -ENOMEM. */
int ft_union_add(struct ft_union *u, const double *load, const uint64_t *count,
                 const struct ft_link_set *links, double fim_expected);
/* Of the group that was added last: its flows that have not all links to choose from, for chance
 * (narrow.h). -ENOMEM. */
int ft_union_add_narrow(struct ft_union *u, const struct ft_choices *choices,
                        const struct ft_link_set *links);
uint32_t ft_union_idle(const struct ft_union *u);
uint32_t ft_union_links(const struct ft_union *u);
void ft_union_figures(const struct ft_union *u, struct ft_figures *out);

/* Mean FIM by chance (exact: FIM of a union is the mean of its groups' FIM weighted by links), and
 * the probability that the groups' chi-squares add up to as much, where links that may be weighed
 * otherwise than others of their group are compared among themselves alone: chi-square with summed
 * degrees where n/links >= 5, else drawn from the groups' tables (at most 64 groups, p >=
 * 1/20,001), else the gamma distribution of the sum's mean and variance. */
double ft_union_fim_expected(const struct ft_union *u);
/* Whether chance had a say: a flow took a link of it that it might as well not have taken. */
bool ft_union_is_judged(const struct ft_union *u);
double ft_union_p_value(const struct ft_union *u, struct ft_chance *chance);

/* P(at most k of n), each with probability p, neither 0 nor 1. */
double ft_binomial_tail(uint64_t k, uint64_t n, double p);

/* Lower and upper end of the 95 % Wilson score interval of k successes in n trials; (0, 1) for
 * n = 0. */
void ft_wilson(uint64_t k, uint64_t n, double *lo, double *hi);

#endif
