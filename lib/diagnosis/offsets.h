// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_OFFSETS_H
#define FT_DIAGNOSIS_OFFSETS_H
/*
 * Clocks that are known to differ by so much from each other, in trees. An array of them is the
 * caller's; each begins as its own root. Pure. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

struct ft_offset {
    uint32_t parent;
    uint32_t weight; /* of a root: of its tree; first that of the clock */
    double ahead_ns; /* of its parent's clock */
    bool connected;  /* a root with others */
};

/* The root of a clock's tree, and by how much the clock is ahead of the root's. */
uint32_t ft_offsets_root(const struct ft_offset *offsets, uint32_t clock, double *ahead_ns);

/* Two clocks of different trees, and by how much the first is ahead of the second. */
void ft_offsets_unite(struct ft_offset *offsets, uint32_t a, uint32_t b, double a_ahead_ns);

#endif
