// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_DIGEST_H
#define FT_BASE_DIGEST_H
/*
 * A digest of a name (XXH3, 64 bits), to distinguish names without keeping them, or of bytes, to
 * notice that they changed. Not for secrets.
 * Several are chained by giving each the digest of those before as its seed. Pure.
 */
#include <stddef.h>
#include <stdint.h>

uint64_t ft_digest_text(const char *text, uint64_t seed);
uint64_t ft_digest_bytes(const void *bytes, size_t len, uint64_t seed);

#endif
