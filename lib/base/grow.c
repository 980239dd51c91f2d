// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/grow.h"

#include <stdint.h>
#include <stdlib.h>

#define FIRST_ITEMS 16

void *ft_grow(void *items, size_t count, size_t *size, size_t item_bytes)
{
    size_t more = *size ? 2 * *size : FIRST_ITEMS, bytes;
    void *grown;

    if (count < *size)
        return items;
    if (*size > SIZE_MAX / 2 || __builtin_mul_overflow(more, item_bytes, &bytes))
        return NULL;
    grown = realloc(items, bytes);
    if (grown)
        *size = more;
    return grown;
}
