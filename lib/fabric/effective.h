// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_EFFECTIVE_H
#define FT_FABRIC_EFFECTIVE_H
/*
 * How many paths over several tiers share traffic as unevenly as it does, with an interval: from
 * the samples at each switch that chooses.
 *
 * By the chain rule the entropy of a path is that of the first choice, and of each link the entropy
 * of what is chosen behind it, by the link's share; so each tier's samples are enough, whatever
 * their rates. Samples make entropy look less than it is by (links - 1) / 2n (Miller 1955), which
 * is added. Pure. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An entropy, in nats. */
struct ft_entropy {
    double nats, variance;
    double paths; /* that there are */
};

/* What is behind a link that leads to no further choice. */
#define FT_ENTROPY_NONE ((struct ft_entropy){.paths = 1})

struct ft_entropy_link {
    uint64_t samples;
    uint32_t behind_id; /* of links with the same one, what is behind them is the same */
    struct ft_entropy behind;
};

/* Of links that can be chosen, m >= 1. False: too few samples to say. */
bool ft_entropy_of(const struct ft_entropy_link *links, size_t m, struct ft_entropy *out);

struct ft_effective {
    double paths, lo, hi; /* 95 % */
};

void ft_effective(const struct ft_entropy *entropy, struct ft_effective *out);

#endif
