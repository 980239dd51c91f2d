// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/offsets.h"

uint32_t ft_offsets_root(const struct ft_offset *offsets, uint32_t clock, double *ahead_ns)
{
    *ahead_ns = 0;
    while (offsets[clock].parent != clock) {
        *ahead_ns += offsets[clock].ahead_ns;
        clock = offsets[clock].parent;
    }
    return clock;
}

void ft_offsets_unite(struct ft_offset *offsets, uint32_t a, uint32_t b, double a_ahead_ns)
{
    double of_a, of_b;
    uint32_t root_a = ft_offsets_root(offsets, a, &of_a);
    uint32_t root_b = ft_offsets_root(offsets, b, &of_b);

    /* The smaller tree below the larger one, so that ways to the root are short. */
    if (offsets[root_a].weight > offsets[root_b].weight) {
        ft_offsets_unite(offsets, b, a, -a_ahead_ns);
        return;
    }
    offsets[root_a].parent = root_b;
    offsets[root_a].ahead_ns = a_ahead_ns + of_b - of_a;
    offsets[root_b].weight += offsets[root_a].weight;
    offsets[root_b].connected = true;
}
