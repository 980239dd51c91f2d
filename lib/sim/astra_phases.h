// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SIM_ASTRA_PHASES_H
#define FT_SIM_ASTRA_PHASES_H
/*
 * What a collective of a simulated rank is made of: the rings that it goes over, and the phases
 * round them one after the other. Pure; a part of astra_system.c, nobody else includes this.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/sim/astra.h"

#define FT_ASTRA_PHASES_MAX (2 * FT_ASTRA_DIMS_MAX)

/* The ranks that a phase goes round. */
struct ft_astra_ring {
    uint32_t count, index;
    uint32_t first, step;  /* rank i is first + i * step */
    const uint32_t *ranks; /* or ranks[i] */
};

struct ft_astra_phase {
    enum ft_astra_op op;
    struct ft_astra_impl impl;
    struct ft_astra_ring ring;
    bool backwards; /* round the ring the other way */
    bool fast;
    uint32_t queue;
    uint64_t bytes, result_bytes;
};

/* What a collective goes over: each dimension's ring, or one ring. */
struct ft_astra_rings {
    uint32_t dims;
    struct ft_astra_ring ring[FT_ASTRA_DIMS_MAX];
    struct ft_astra_impl impl[FT_ASTRA_DIMS_MAX];
    uint32_t involved; /* bits */
    bool fast;
};

/* The rings of a collective as this rank sees them; NULL, or what cannot be. */
const char *ft_astra_rings_of(const struct ft_astra_input *in, uint32_t rank,
                              const struct ft_astra_node *node, struct ft_astra_rings *shape);

/* The phases of so many bytes of each rank; how many they are. */
uint32_t ft_astra_phases_of(const struct ft_astra_input *in, const struct ft_astra_rings *shape,
                            enum ft_astra_op op, uint64_t bytes,
                            struct ft_astra_phase phases[FT_ASTRA_PHASES_MAX]);

#endif
