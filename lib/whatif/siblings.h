// SPDX-License-Identifier: Apache-2.0
#ifndef FT_WHATIF_SIBLINGS_H
#define FT_WHATIF_SIBLINGS_H
/*
 * Whether what a link carries could take another link of its group: a link that is down or missing
 * elsewhere leaves some flows fewer of them. Pure.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/sim/policies.h"
#include "lib/whatif/measure.h"

struct ft_siblings;

/* Of placed flows, which are borrowed as the input is. NULL without memory. */
struct ft_siblings *ft_siblings_new(const struct ft_policy_input *in,
                                    const struct ft_placed *placed);
void ft_siblings_free(struct ft_siblings *siblings);

/* Whether some flow on a link has a path by the other one, which is as far from its source. */
bool ft_siblings_may_take(const struct ft_siblings *siblings, uint32_t link, uint32_t other);

#endif
