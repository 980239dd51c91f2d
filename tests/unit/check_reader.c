// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/reader.h"
#include "lib/base/writer.h"
#include "tests/unit/unit.h"

static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};

START_TEST(reads_big_endian)
{
    struct ft_reader r;

    ft_reader_init(&r, bytes, sizeof(bytes));
    ck_assert_uint_eq(ft_read_u8(&r), 0x01);
    ck_assert_uint_eq(ft_read_be16(&r), 0x0203);
    ck_assert_uint_eq(ft_read_be24(&r), 0x040506);
    ck_assert_uint_eq(ft_read_be32(&r), 0x0708090a);
    ck_assert_uint_eq(ft_read_be64(&r), 0x0b0c0d0e0f101112);
    ck_assert(ft_reader_ok(&r));
    ck_assert_uint_eq(ft_reader_left(&r), 0);
}
END_TEST

START_TEST(fails_for_good)
{
    struct ft_reader r;

    ft_reader_init(&r, bytes, 3);
    ck_assert_uint_eq(ft_read_be32(&r), 0);
    ck_assert(!ft_reader_ok(&r));
    ck_assert_uint_eq(ft_read_u8(&r), 0);
    ck_assert_uint_eq(ft_reader_left(&r), 0);
}
END_TEST

START_TEST(child_cannot_overrun_parent)
{
    struct ft_reader r, child;

    ft_reader_init(&r, bytes, 8);
    ft_read_child(&r, 4, &child);
    ck_assert_uint_eq(ft_read_be32(&child), 0x01020304);
    ft_read_u8(&child);
    ck_assert(!ft_reader_ok(&child));
    ck_assert(ft_reader_ok(&r));
    ck_assert_uint_eq(ft_read_u8(&r), 5);
    ft_read_child(&r, 4, &child);
    ck_assert(!ft_reader_ok(&r));
    ck_assert(!ft_reader_ok(&child));
}
END_TEST

START_TEST(writer_keeps_its_cap)
{
    struct ft_writer w;

    ft_writer_init(&w, 300);
    for (int i = 0; i < 75; i++)
        ft_write_be32(&w, (uint32_t)i);
    ck_assert(ft_writer_ok(&w));
    ck_assert_uint_eq(w.len, 300);
    ft_write_u8(&w, 1);
    ck_assert(!ft_writer_ok(&w));
    ft_writer_reset(&w);
    ft_write_fmt(&w, "%s-%d", "leaf", 3);
    ft_write_u64(&w, UINT64_MAX);
    ft_write_u64(&w, 0);
    ck_assert(ft_writer_ok(&w));
    ck_assert_uint_eq(w.len, 27);
    ck_assert_mem_eq(w.bytes, "leaf-3184467440737095516150", 27);
    ft_writer_free(&w);
}
END_TEST

/* Of every length, at both ends of it, and with zeros in the middle. */
START_TEST(numbers_are_written_as_printf_does)
{
    uint64_t state = 1;

    for (uint64_t power = 1, i = 0; i < 20; i++, power *= 10)
        for (unsigned k = 0; k < 4; k++) {
            uint64_t v = power + k - 1 + (k == 3 ? power / 10000 : 0);
            uint8_t text[20];
            char expected[24];
            uint8_t *end = ft_put_u64(text, v);

            snprintf(expected, sizeof(expected), "%" PRIu64, v);
            ck_assert_uint_eq((size_t)(end - text), strlen(expected));
            ck_assert_mem_eq(text, expected, strlen(expected));
        }
    for (unsigned i = 0; i < 200000; i++) {
        uint8_t text[20];
        char expected[24];
        uint8_t *end;

        state = state * 6364136223846793005u + 1442695040888963407u;
        end = ft_put_u64(text, state >> (state & 63));
        snprintf(expected, sizeof(expected), "%" PRIu64, state >> (state & 63));
        ck_assert_uint_eq((size_t)(end - text), strlen(expected));
        ck_assert_mem_eq(text, expected, strlen(expected));
    }
}
END_TEST

FT_UNIT_MAIN("reader", reads_big_endian, fails_for_good, child_cannot_overrun_parent,
             writer_keeps_its_cap, numbers_are_written_as_printf_does)
