// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_DIGEST_H
#define FT_BASE_DIGEST_H
/*
 * A digest of a name (XXH3, 64 bits), to tell names apart without keeping them. Not for secrets.
 * Several are chained by giving each the digest of those before as its seed. Pure.
 */
#include <stdint.h>

uint64_t ft_digest_text(const char *text, uint64_t seed);

#endif
