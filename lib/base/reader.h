// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_READER_H
#define FT_BASE_READER_H
/*
 * Bounded reader: the only way to touch bytes that came from outside.
 *
 * Every getter checks bounds. The first one that would pass the end fails, returns zero and makes
 * the reader fail for good, so a decoder may read a complete header and ask ft_reader_ok() once. A
 * child reader covers the next n bytes only, so a record inside a record cannot overrun its parent.
 *
 * Owner: the caller, on its stack; the bytes are borrowed. Integers are big endian unless named le.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ft_reader {
    const uint8_t *pos;
    const uint8_t *end;
    bool failed;
};

static inline void ft_reader_init(struct ft_reader *r, const void *bytes, size_t len)
{
    r->pos = bytes;
    r->end = len ? r->pos + len : r->pos; /* nothing may be NULL, to which C adds not even 0 */
    r->failed = false;
}

static inline bool ft_reader_ok(const struct ft_reader *r)
{
    return !r->failed;
}

static inline size_t ft_reader_left(const struct ft_reader *r)
{
    return r->failed ? 0 : (size_t)(r->end - r->pos);
}

/* Borrows the next n bytes; NULL on failure. */
static inline const uint8_t *ft_read_bytes(struct ft_reader *r, size_t n)
{
    const uint8_t *p = r->pos;

    if (r->failed || (size_t)(r->end - p) < n) {
        r->failed = true;
        return NULL;
    }
    r->pos += n;
    return p;
}

static inline void ft_read_skip(struct ft_reader *r, size_t n)
{
    ft_read_bytes(r, n);
}

/* The 32 bits at p, for a block of fixed fields that ft_read_bytes() took completely: one check of
 * the bounds instead of one a field. */
static inline uint32_t ft_be32_at(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint8_t ft_read_u8(struct ft_reader *r)
{
    const uint8_t *p = ft_read_bytes(r, 1);

    return p ? p[0] : 0;
}

static inline uint16_t ft_read_be16(struct ft_reader *r)
{
    const uint8_t *p = ft_read_bytes(r, 2);

    return p ? (uint16_t)(p[0] << 8 | p[1]) : 0;
}

static inline uint32_t ft_read_be24(struct ft_reader *r)
{
    const uint8_t *p = ft_read_bytes(r, 3);

    return p ? (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2] : 0;
}

static inline uint32_t ft_read_be32(struct ft_reader *r)
{
    const uint8_t *p = ft_read_bytes(r, 4);

    return p ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3] : 0;
}

static inline uint64_t ft_read_be64(struct ft_reader *r)
{
    uint64_t high = ft_read_be32(r);

    return high << 32 | ft_read_be32(r);
}

/* An unsigned number in pieces of seven bits, the lowest first (LEB128, as in Protocol Buffers).
 * Fails beyond ten bytes. */
static inline uint64_t ft_read_varint(struct ft_reader *r)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = ft_read_u8(r);

        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    r->failed = true;
    return 0;
}

/* A reader over the next n bytes, which the parent skips. Fails, and makes the child fail, when the
 * parent has fewer. */
static inline void ft_read_child(struct ft_reader *r, size_t n, struct ft_reader *child)
{
    const uint8_t *p = ft_read_bytes(r, n);

    ft_reader_init(child, p, p ? n : 0);
    child->failed = !p;
}

#endif
