// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/partition.h"

#include <endian.h>
#include <string.h>

#define SEED  UINT32_C(0x9747b28c)
#define M     UINT32_C(0x5bd1e995)
#define SHIFT 24

enum { SRC = 0, DST = 16, SPORT = 32, DPORT = 34, PROTO = 36, KEY_BYTES = 37 };

uint32_t ft_murmur2(const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    uint32_t h = SEED ^ (uint32_t)len;

    for (; len >= 4; at += 4, len -= 4) {
        uint32_t k;

        memcpy(&k, at, sizeof(k));
        k = le32toh(k) * M;
        h = h * M ^ (k ^ k >> SHIFT) * M;
    }
    if (len > 2)
        h ^= (uint32_t)at[2] << 16;
    if (len > 1)
        h ^= (uint32_t)at[1] << 8;
    if (len > 0)
        h = (h ^ at[0]) * M;
    h = (h ^ h >> 13) * M;
    return h ^ h >> 15;
}

uint32_t ft_partition_of_bytes(const void *key, size_t len, uint32_t partitions)
{
    return (ft_murmur2(key, len) & INT32_MAX) % partitions;
}

uint32_t ft_partition_of_flow(const struct ft_tuple *tuple, uint32_t partitions)
{
    const uint16_t sport = htobe16(tuple->sport), dport = htobe16(tuple->dport);
    uint8_t key[KEY_BYTES];

    memcpy(key + SRC, tuple->src.b, sizeof(tuple->src.b));
    memcpy(key + DST, tuple->dst.b, sizeof(tuple->dst.b));
    memcpy(key + SPORT, &sport, sizeof(sport));
    memcpy(key + DPORT, &dport, sizeof(dport));
    key[PROTO] = tuple->proto;
    return ft_partition_of_bytes(key, sizeof(key), partitions);
}
