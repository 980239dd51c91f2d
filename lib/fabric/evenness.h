// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_EVENNESS_H
#define FT_FABRIC_EVENNESS_H
/*
 * How evenly a switch chooses among its links, given what the tier before chose: that determines
 * the port by which a flow comes in. Where two tiers hash alike, flows of one port of entry take
 * few links (polarisation), though all links together may be used evenly. Pure.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/fabric/hash_model.h"

struct ft_evenness {
    double effective; /* exponential of the entropy of the choice given the port of entry: 1 to the
                         number of links */
    double by_chance; /* exponential of its mean if each flow takes any link alike, or by weights
                         that links of different speed may have (weights.h), if that is less */
};

struct ft_link_set;

/* Of flows, at least one, that came in by `entries` known ports, or by none of them. -ENOMEM. */
int ft_evenness(const struct ft_hash_flow *flows, size_t count, uint32_t entries,
                const struct ft_link_set *links, struct ft_evenness *out);

#endif
