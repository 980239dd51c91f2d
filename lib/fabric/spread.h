// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_SPREAD_H
#define FT_FABRIC_SPREAD_H
/*
 * How traffic spreads over the equal-cost links that it could take, by its samples.
 *
 * What chooses a link anew each time is a trial: a sampled packet of a queue pair that is sprayed,
 * the queue pair itself where it stays on its path. Where the packets of a second keep to few
 * links, as in flowlets or where a route flaps, they are fewer than the samples (dispersion.h). c
 * trials over
 * m links: exp(entropy) of the shares is the effective number of paths; a link without any is dead
 * with the p-value m (1 - 1/m)^c; the one with the fewest is slow with m times the lower tail of
 * the binomial distribution, since it is the least of m. Where links may be weighed otherwise
 * (weights.h), the largest p counts, of each link that of its least share. Pure. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FT_SPREAD_LINKS_MAX 64

/* One link of the group. */
struct ft_spread_link {
    uint64_t samples;
    uint64_t trials;           /* samples that chose, and queue pairs that stay */
    uint32_t stays;            /* of them, these */
    uint32_t seconds;          /* with samples */
    int64_t first_ms, last_ms; /* of the samples; the first of those without a long pause */
};

struct ft_spread_figures {
    uint32_t seen; /* links with samples */
    uint64_t samples;
    double trials;                     /* of samples as many as they are choices */
    double effective;                  /* paths, by samples; 0: no samples */
    double even_p;                     /* that even choice is as uneven by chance */
    uint32_t least;                    /* the link with the fewest trials for its share */
    double least_p;                    /* that chance leaves some link with so few */
    double few_p[FT_SPREAD_LINKS_MAX]; /* the same of each link */
};

struct ft_chance;
struct ft_dispersion;
struct ft_link_set;

/* How many choices the trials of a link are. d: of those that are samples. */
double ft_spread_choices(const struct ft_spread_link *link, const struct ft_dispersion *d);

/* links[set->m]. */
void ft_spread_figures(const struct ft_spread_link *links, const struct ft_link_set *set,
                       const struct ft_dispersion *d, struct ft_chance *chance,
                       struct ft_spread_figures *out);

/* The share of its samples that a sprayed queue pair, which had some in so many seconds, chose
 * links anew for: 1 where each link has samples in as many seconds as if each did. n samples at
 * random are in s (1 - exp(-n / s)) of s seconds; less by more than chance makes it is the same of
 * fewer that choose. */
double ft_spread_choosing(const struct ft_spread_link *links, size_t m, uint32_t seconds);

enum ft_alternation {
    FT_ALTERNATION_UNKNOWN, /* one link, or too few samples */
    FT_ALTERNATION_SPRAYED, /* links alternate */
    FT_ALTERNATION_MOVED,   /* links follow each other: changes of route */
};

/* Whether one queue pair alternates among links or moved from one to the next: in a runs test of
 * two links, those of which one ended before the other began make two runs, which n1 and n2 samples
 * that alternate at random do with probability 2 / C(n1 + n2, n1). *p: the largest one that says
 * so, or where links overlap in time, 0. */
enum ft_alternation ft_spread_alternation(const struct ft_spread_link *links, size_t m, double *p);

#endif
