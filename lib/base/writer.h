// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_WRITER_H
#define FT_BASE_WRITER_H
/*
 * Growing byte buffer with a cap.
 *
 * Appends until the cap; the append that would pass it, or that finds no memory, fails and makes
 * the writer fail until the next reset, so a message is written completely and checked once.
 *
 * Owner: the caller, who frees the buffer with ft_writer_free().
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ft_writer {
    uint8_t *bytes;
    size_t len;
    size_t size;
    size_t max;
    bool failed;
};

/* Starts empty, without memory. max is the cap in bytes. */
void ft_writer_init(struct ft_writer *w, size_t max);
void ft_writer_free(struct ft_writer *w);

/* Empties the buffer and clears a failure; the memory stays. */
void ft_writer_reset(struct ft_writer *w);

static inline bool ft_writer_ok(const struct ft_writer *w)
{
    return !w->failed;
}

/* As ft_write_room(), where the memory does not suffice yet. */
uint8_t *ft_write_grown(struct ft_writer *w, size_t n);

/* Makes room for n more bytes and returns where they go, NULL on failure. The caller fills them;
 * they count as written. */
static inline uint8_t *ft_write_room(struct ft_writer *w, size_t n)
{
    uint8_t *p;

    if (w->failed || n > w->size - w->len)
        return ft_write_grown(w, n);
    p = w->bytes + w->len;
    w->len += n;
    return p;
}

/* Whether n bytes more have room, made if need be. Unlike the others it does not make the writer
 * fail: less may still fit. */
bool ft_write_reserve_grown(struct ft_writer *w, size_t n);
static inline bool ft_write_reserve(struct ft_writer *w, size_t n)
{
    return (!w->failed && n <= w->size - w->len) || ft_write_reserve_grown(w, n);
}

static inline void ft_write_u8(struct ft_writer *w, uint8_t v)
{
    uint8_t *p = ft_write_room(w, 1);

    if (p)
        *p = v;
}

void ft_write_bytes(struct ft_writer *w, const void *bytes, size_t n);
void ft_write_be32(struct ft_writer *w, uint32_t v);
void ft_write_be64(struct ft_writer *w, uint64_t v);

/* Text without its terminator. */
void ft_write_str(struct ft_writer *w, const char *text);
void ft_write_fmt(struct ft_writer *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void ft_write_vfmt(struct ft_writer *w, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* Decimal text, without the cost of printf: for records. */
void ft_write_u64(struct ft_writer *w, uint64_t v);

/* The same to p, which has room for FT_U64_DIGITS; returns where it ends. */
#define FT_U64_DIGITS 20
uint8_t *ft_put_u64(uint8_t *p, uint64_t v);

#endif
