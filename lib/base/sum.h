// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_SUM_H
#define FT_BASE_SUM_H
/* Checksums against damage, by XXH3 with 64 bits: no protection from somebody who means harm.
 * Thread: any. */
#include <stddef.h>
#include <stdint.h>

/* The sum of some bytes behind what `before` is the sum of; 0 to begin with. */
uint64_t ft_sum64(uint64_t before, const void *bytes, size_t len);

#endif
