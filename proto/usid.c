// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/usid.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SID_BYTES 2

int ft_usid_block_parse(const char *text, struct ft_prefix *block)
{
    struct ft_prefix p;

    if (!strchr(text, '/') || ft_prefix_parse(text, strlen(text), &p) || ft_ip_is4(&p.ip) ||
        p.bits < FT_USID_BLOCK_BITS_MIN || p.bits > FT_USID_BLOCK_BITS_MAX || p.bits % 16)
        return -EINVAL;
    *block = p;
    return 0;
}

int ft_usid_blocks_parse(char *const *texts, size_t count, uint64_t local,
                         struct ft_usid_blocks *blocks, char *error, size_t error_bytes)
{
    struct ft_usid_blocks b = {.local = (uint32_t)local};

    if (count > FT_USID_BLOCKS_MAX) {
        snprintf(error, error_bytes, "more than %d prefixes", FT_USID_BLOCKS_MAX);
        return -EINVAL;
    }
    for (; b.count < count; b.count++)
        if (ft_usid_block_parse(texts[b.count], &b.list[b.count])) {
            snprintf(error, error_bytes,
                     "'%s' is not an IPv6 prefix of 16, 32, 48, 64, 80 or 96 bits", texts[b.count]);
            return -EINVAL;
        }
    b.count = ft_prefixes_sort(b.list, b.count);
    *blocks = b;
    return 0;
}

static uint32_t sid_at(const struct ft_ip *ip, size_t at)
{
    return at < sizeof(ip->b) ? (uint32_t)ip->b[at] << 8 | ip->b[at + 1] : 0;
}

static enum ft_usid stays_behind(size_t block, uint32_t local, const struct ft_ip *dst,
                                 struct ft_ip *stays)
{
    size_t end = block, from;
    struct ft_ip out = {{0}};

    while (sid_at(dst, end))
        end += SID_BYTES;
    for (size_t at = end; at < sizeof(dst->b); at++)
        if (dst->b[at])
            return FT_USID_UNKNOWN;
    if (end == block)
        return FT_USID_UNKNOWN;
    from = end - SID_BYTES;
    while (sid_at(dst, from) >= local) {
        if (from == block)
            return FT_USID_UNKNOWN;
        from -= SID_BYTES;
    }
    memcpy(out.b, dst->b, block);
    memcpy(out.b + block, dst->b + from, end - from);
    *stays = out;
    return FT_USID_KNOWN;
}

/* The first 8 bytes, as they lie there. */
static inline uint64_t head_of(const struct ft_ip *ip)
{
    uint64_t head;

    memcpy(&head, ip->b, sizeof(head));
    return head;
}

/* Nearly all that is asked about shows by its first bits that it is of no block, of which each has
 * 16 at least. */
static inline bool is_in(const struct ft_prefix *block, const struct ft_ip *dst)
{
    uint64_t differ = head_of(&block->ip) ^ head_of(dst);

    if (differ & htobe64(UINT64_C(0xffff) << 48))
        return false;
    if (block->bits >= 32 && differ & htobe64(UINT64_C(0xffffffff) << 32))
        return false;
    return ft_prefix_has(block, dst);
}

enum ft_usid ft_usid_stays(const struct ft_usid_blocks *blocks, const struct ft_ip *dst,
                           struct ft_ip *stays)
{
    for (size_t i = 0; i < blocks->count; i++)
        if (is_in(&blocks->list[i], dst))
            return stays_behind(blocks->list[i].bits / 8, blocks->local, dst, stays);
    return FT_USID_NONE;
}
