// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_BOUND_H
#define FT_BASE_BOUND_H
/*
 * Where a key is in a sorted list, or belongs: what bsearch() does not say. Pure. Thread: any.
 */
#include <stddef.h>

/* The index of the first item that is not below the key; count where all are. The list has count
 * items of item_bytes; compare gets an item and the key, which need not be of one type. */
static inline size_t ft_lower_bound(const void *key, const void *items, size_t count,
                                    size_t item_bytes,
                                    int (*compare)(const void *item, const void *key))
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare((const char *)items + middle * item_bytes, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#endif
