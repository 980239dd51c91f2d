// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/digest.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t ft_digest_text(const char *text, uint64_t seed)
{
    return XXH3_64bits_withSeed(text, strlen(text), seed);
}

uint64_t ft_digest_bytes(const void *bytes, size_t len, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, len, seed);
}
