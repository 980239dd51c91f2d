// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_NEAR_H
#define FT_BASE_NEAR_H
/*
 * Which known name somebody meant who mistyped one: that with the fewest letters to change, add,
 * drop or swap with the next one, as long as these are at most a third. Pure. Thread: any.
 */
#include <stddef.h>

struct ft_near {
    const char *text; /* as it was typed */
    size_t best;
    const char *name; /* the nearest so far, not terminated by len; NULL: none */
    size_t len;
};

void ft_near_begin(struct ft_near *near, const char *text);

/* A known name, of which len bytes count. It is borrowed as long as near is used. */
void ft_near_try(struct ft_near *near, const char *name, size_t len);

#endif
