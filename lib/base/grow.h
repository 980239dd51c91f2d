// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_GROW_H
#define FT_BASE_GROW_H
/* Arrays that grow as they are filled. Thread: any. */
#include <stddef.h>

/* Room for another item behind the first count of an array that has *size of them, doubled where it
 * is full; NULL, 0 and 0 to begin with. Returns the array, which may have moved; NULL without
 * memory, and it stays as it is. */
void *ft_grow(void *items, size_t count, size_t *size, size_t item_bytes);

#endif
