// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 256

void ft_writer_init(struct ft_writer *w, size_t max)
{
    *w = (struct ft_writer){.max = max};
}

void ft_writer_free(struct ft_writer *w)
{
    free(w->bytes);
    ft_writer_init(w, w->max);
}

void ft_writer_reset(struct ft_writer *w)
{
    w->len = 0;
    w->failed = false;
}

static bool grow(struct ft_writer *w, size_t n)
{
    size_t needed = w->len + n;
    size_t size = w->size ? w->size : FIRST_SIZE;
    uint8_t *bytes;

    if (needed < n || needed > w->max)
        return false;
    while (size < needed)
        size = size > w->max / 2 ? w->max : size * 2;
    if (size > w->max)
        size = w->max;
    bytes = realloc(w->bytes, size);
    if (!bytes)
        return false;
    w->bytes = bytes;
    w->size = size;
    return true;
}

bool ft_write_reserve_grown(struct ft_writer *w, size_t n)
{
    return !w->failed && grow(w, n);
}

uint8_t *ft_write_grown(struct ft_writer *w, size_t n)
{
    uint8_t *p;

    if (w->failed || !grow(w, n)) {
        w->failed = true;
        return NULL;
    }
    p = w->bytes + w->len;
    w->len += n;
    return p;
}

void ft_write_bytes(struct ft_writer *w, const void *bytes, size_t n)
{
    uint8_t *p;

    if (n == 0)
        return;
    p = ft_write_room(w, n);
    if (p)
        memcpy(p, bytes, n);
}

void ft_write_be32(struct ft_writer *w, uint32_t v)
{
    uint8_t b[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};

    ft_write_bytes(w, b, sizeof(b));
}

void ft_write_be64(struct ft_writer *w, uint64_t v)
{
    ft_write_be32(w, (uint32_t)(v >> 32));
    ft_write_be32(w, (uint32_t)v);
}

void ft_write_str(struct ft_writer *w, const char *text)
{
    ft_write_bytes(w, text, strlen(text));
}

void ft_write_vfmt(struct ft_writer *w, const char *format, va_list args)
{
    va_list again;
    int n;
    uint8_t *p;

    va_copy(again, args);
    n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (n < 0) {
        w->failed = true;
        return;
    }
    /* vsnprintf also writes a terminator, which is taken back. */
    p = ft_write_room(w, (size_t)n + 1);
    if (!p)
        return;
    vsnprintf((char *)p, (size_t)n + 1, format, args);
    w->len--;
}

void ft_write_fmt(struct ft_writer *w, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    ft_write_vfmt(w, format, args);
    va_end(args);
}

/* log10(2) is 1233 / 4096, a little too small: the power of ten decides. */
static size_t digits_of(uint64_t v)
{
    static const uint64_t powers[] = {
        0,
        UINT64_C(10),
        UINT64_C(100),
        UINT64_C(1000),
        UINT64_C(10000),
        UINT64_C(100000),
        UINT64_C(1000000),
        UINT64_C(10000000),
        UINT64_C(100000000),
        UINT64_C(1000000000),
        UINT64_C(10000000000),
        UINT64_C(100000000000),
        UINT64_C(1000000000000),
        UINT64_C(10000000000000),
        UINT64_C(100000000000000),
        UINT64_C(1000000000000000),
        UINT64_C(10000000000000000),
        UINT64_C(100000000000000000),
        UINT64_C(1000000000000000000),
        UINT64_C(10000000000000000000),
    };
    unsigned bits = 64 - (unsigned)__builtin_clzll(v | 1);
    unsigned n = bits * 1233 >> 12;

    return n + (v >= powers[n]);
}

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                            "25262728293031323334353637383940414243444546474849"
                            "50515253545556575859606162636465666768697071727374"
                            "75767778798081828384858687888990919293949596979899";

/* Four digits, of which the first ones may be 0. */
static inline uint8_t *put_four(uint8_t *p, uint32_t v)
{
    memcpy(p, pairs + v / 100 * 2, 2);
    memcpy(p + 2, pairs + v % 100 * 2, 2);
    return p + 4;
}

/* Of a number below 10,000. */
static inline uint8_t *put_up_to_four(uint8_t *p, uint32_t v)
{
    if (v >= 1000)
        return put_four(p, v);
    if (v >= 100) {
        *p++ = (uint8_t)('0' + v / 100);
        v %= 100;
    } else if (v < 10) {
        *p = (uint8_t)('0' + v);
        return p + 1;
    }
    memcpy(p, pairs + v * 2, 2);
    return p + 2;
}

#define FOUR_DIGITS  10000u
#define EIGHT_DIGITS 100000000u

/* Apart, so that shorter ones keep no registers for it. */
static __attribute__((noinline)) uint8_t *put_long(uint8_t *p, uint64_t v)
{
    uint32_t low = (uint32_t)(v % EIGHT_DIGITS);

    p = ft_put_u64(p, v / EIGHT_DIGITS);
    return put_four(put_four(p, low / FOUR_DIGITS), low % FOUR_DIGITS);
}

/* A sixth of what is computed for a record's text is its numbers: as few divisions as can be. */
uint8_t *ft_put_u64(uint8_t *p, uint64_t v)
{
    if (v < FOUR_DIGITS)
        return put_up_to_four(p, (uint32_t)v);
    if (v >= EIGHT_DIGITS)
        return put_long(p, v);
    p = put_up_to_four(p, (uint32_t)v / FOUR_DIGITS);
    return put_four(p, (uint32_t)v % FOUR_DIGITS);
}

void ft_write_u64(struct ft_writer *w, uint64_t v)
{
    uint8_t *p = ft_write_room(w, digits_of(v));

    if (p)
        ft_put_u64(p, v);
}
