// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_MIX_H
#define FT_BASE_MIX_H
/*
 * Numbers that look random and are the same on any machine. Pure. Thread: any.
 */
#include <stdint.h>

/* A number of a number, no two the same: a step of SplitMix64 (Steele, Lea, Flood 2014). */
static inline uint64_t ft_mix(uint64_t z)
{
    z += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* The next of the numbers that follow a seed. */
static inline uint64_t ft_mix_next(uint64_t *state)
{
    uint64_t number = ft_mix(*state);

    *state += UINT64_C(0x9e3779b97f4a7c15);
    return number;
}

#endif
