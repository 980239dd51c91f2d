// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/sum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t ft_sum64(uint64_t before, const void *bytes, size_t len)
{
    return XXH3_64bits_withSeed(bytes, len, before);
}
