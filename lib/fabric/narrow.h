// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_NARROW_H
#define FT_FABRIC_NARROW_H
/*
 * What chance gives the links of a group of which some flows have not all to choose from (reach.h).
 *
 * Those that have all are spread over all links; the others, in each set of links that are alike,
 * over these: how many of them a set has says nothing, since it is not known here how many had a
 * choice. Pure.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/fabric/weights.h"

/* By link. */
struct ft_choices {
    const uint64_t *all;    /* flows that have all links to choose from */
    const uint64_t *narrow; /* those that have not; NULL: there are none */
    const uint32_t *alike;  /* the same number: who may take one may take the other */
};

/* Links that are alike, and the flows on them that have not all links to choose from. */
struct ft_alike {
    struct ft_link_set links; /* borrowed from here */
    uint64_t *count;
    size_t *index; /* in the group */
    uint64_t *speed_bps;
    uint32_t *bundle;
};

/* For groups of m links. -ENOMEM. */
int ft_alike_init(struct ft_alike *alike, size_t m);
void ft_alike_free(struct ft_alike *alike);

/* The next set with such flows, from *at = 0 on; false: that was all. */
bool ft_alike_next(struct ft_alike *alike, const struct ft_choices *choices,
                   const struct ft_link_set *links, size_t *at);

/* As ft_by_chance_of(). The p-values of those with all links and of each set, which are
 * independent, are taken together; fim_expected is of as many flows in each set. */
struct ft_by_chance ft_by_chance_among(struct ft_chance *chance, const struct ft_choices *choices,
                                       const struct ft_link_set *links);

#endif
