// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_SWITCH_HASHES_H
#define FT_TESTS_SWITCH_HASHES_H
/* Hashes of a header's bytes as switches compute them: all but the last are linear over GF(2). */
#include <stddef.h>
#include <stdint.h>

static inline uint32_t crc32(const uint8_t *bytes, size_t len, uint32_t seed)
{
    uint32_t crc = ~seed;

    for (size_t i = 0; i < len; i++) {
        crc ^= bytes[i];
        for (int b = 0; b < 8; b++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

static inline uint32_t crc16(const uint8_t *bytes, size_t len, uint32_t seed)
{
    uint16_t crc = (uint16_t)seed;

    for (size_t i = 0; i < len; i++) {
        crc = (uint16_t)(crc ^ bytes[i] << 8);
        for (int b = 0; b < 8; b++)
            crc = (uint16_t)(crc << 1 ^ (crc & 0x8000 ? 0x1021 : 0));
    }
    return crc;
}

static inline uint32_t fold(const uint8_t *bytes, size_t len, uint32_t seed)
{
    for (size_t i = 0; i < len; i++)
        seed ^= (uint32_t)bytes[i] << (i % 3 * 2);
    return seed;
}

/* Bob Jenkins' one-at-a-time with a key: like Linux's, not linear. */
static inline uint32_t keyed(const uint8_t *bytes, size_t len, uint32_t seed)
{
    for (size_t i = 0; i < len; i++) {
        seed += bytes[i];
        seed += seed << 10;
        seed ^= seed >> 6;
    }
    seed += seed << 3;
    seed ^= seed >> 11;
    return seed + (seed << 15);
}

#endif
