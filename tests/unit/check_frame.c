// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/transport/frame.h"

#include <string.h>

#include "lib/io/endpoint.h"
#include "tests/unit/unit.h"

static struct ft_writer w;

static const struct ft_frame frames[] = {
    {.type = FT_FRAME_HELLO,
     .version = FT_TRANSPORT_VERSION,
     .boot_id = 0x0123456789abcdef,
     .program = "fabrictrace-agent",
     .source_id = "gpu01"},
    {.type = FT_FRAME_WELCOME, .version = FT_TRANSPORT_VERSION, .sequence = UINT64_MAX},
    {.type = FT_FRAME_DATA, .sequence = 9, .payload = (const uint8_t *)"ab", .payload_len = 2},
    {.type = FT_FRAME_ACK, .sequence = 10},
    {.type = FT_FRAME_REFUSE, .reason = "too many sources"},
    {.type = FT_FRAME_RECORDS,
     .sequence = 9,
     .numbers = {.last = 100, .count = 7, .newest = 120},
     .payload = (const uint8_t *)"ab",
     .payload_len = 2},
};

#define FRAMES (sizeof(frames) / sizeof(frames[0]))

static void encode(const struct ft_frame *frame)
{
    ft_writer_reset(&w);
    ft_frame_write(&w, frame);
    ck_assert(ft_writer_ok(&w));
}

START_TEST(decodes_what_was_encoded)
{
    ft_writer_init(&w, 4096);
    for (size_t i = 0; i < FRAMES; i++) {
        struct ft_frame f;
        size_t total;

        encode(&frames[i]);
        ck_assert_int_eq(ft_frame_decode(w.bytes, w.len, w.len, &f, &total), FT_FRAME_OK);
        ck_assert_uint_eq(total, w.len);
        ck_assert_int_eq(f.type, frames[i].type);
        ck_assert_uint_eq(f.version, frames[i].version);
        ck_assert_uint_eq(f.boot_id, frames[i].boot_id);
        ck_assert_uint_eq(f.sequence, frames[i].sequence);
        ck_assert_str_eq(f.program, frames[i].program);
        ck_assert_str_eq(f.source_id, frames[i].source_id);
        ck_assert_str_eq(f.reason, frames[i].reason);
        ck_assert_uint_eq(f.payload_len, frames[i].payload_len);
        ck_assert(f.payload_len == 0 || memcmp(f.payload, "ab", 2) == 0);
        ck_assert_int_eq(ft_frame_decode(w.bytes, w.len, w.len - 1, &f, &total), FT_FRAME_BAD);
    }
    ft_writer_free(&w);
}
END_TEST

/* The bytes that the header of the transport promises; other programs may speak it. */
START_TEST(layout_is_as_documented)
{
    static const uint8_t data[] = {0, 0, 0, 11, 3, 0, 0, 0, 0, 0, 0, 0, 9, 'a', 'b'};
    static const uint8_t hello[] = {0, 0, 0, 13, 1, 1, 0, 0, 0, 0, 0, 0, 0, 7, 1, 'p', 's'};
    struct ft_frame small = {
        .type = FT_FRAME_HELLO, .version = 1, .boot_id = 7, .program = "p", .source_id = "s"};

    ft_writer_init(&w, 4096);
    encode(&frames[2]);
    ck_assert_uint_eq(w.len, sizeof(data));
    ck_assert_mem_eq(w.bytes, data, sizeof(data));
    encode(&small);
    ck_assert_uint_eq(w.len, sizeof(hello));
    ck_assert_mem_eq(w.bytes, hello, sizeof(hello));
    ft_writer_free(&w);
}
END_TEST

START_TEST(asks_for_more_at_every_cut)
{
    ft_writer_init(&w, 4096);
    for (size_t i = 0; i < FRAMES; i++) {
        encode(&frames[i]);
        for (size_t len = 0; len < w.len; len++) {
            struct ft_frame f = {.sequence = 77};
            size_t total = 0;

            ck_assert_int_eq(ft_frame_decode(w.bytes, len, 4096, &f, &total), FT_FRAME_SHORT);
            ck_assert_uint_eq(total, len < 4 ? 4 : w.len);
            ck_assert_uint_eq(f.sequence, 77);
        }
        /* Cut within: the length field says less than the layout needs. */
        for (size_t len = 5; i != 4 && i != 2 && i != 5 && len < w.len; len++) {
            struct ft_frame f = {.sequence = 77};
            size_t total;
            uint8_t bytes[64];

            memcpy(bytes, w.bytes, len);
            bytes[3] = (uint8_t)(len - 4);
            if (frames[i].type == FT_FRAME_HELLO && len > 32)
                continue; /* a shorter source id is a good one */
            ck_assert_int_eq(ft_frame_decode(bytes, len, 4096, &f, &total), FT_FRAME_BAD);
            ck_assert_uint_eq(f.sequence, 77);
        }
    }
    ft_writer_free(&w);
}
END_TEST

static enum ft_frame_status decode(const char *bytes, size_t len)
{
    struct ft_frame f;
    size_t total;

    return ft_frame_decode((const uint8_t *)bytes, len, 4096, &f, &total);
}

#define DECODE(text) decode(text, sizeof(text) - 1)

START_TEST(refuses_what_is_no_frame)
{
    struct ft_frame f;
    size_t total;

    ck_assert_int_eq(DECODE("\0\0\0\0"), FT_FRAME_BAD);
    ck_assert_int_eq(DECODE("\377\377\377\377"), FT_FRAME_BAD);
    ck_assert_int_eq(DECODE("\0\0\0\1\77"), FT_FRAME_UNKNOWN);
    ck_assert_int_eq(DECODE("\0\0\0\1\0"), FT_FRAME_UNKNOWN);
    ck_assert_int_eq(DECODE("\0\0\0\12\4\0\0\0\0\0\0\0\1x"), FT_FRAME_BAD);
    ck_assert_int_eq(DECODE("\0\0\0\15\1\1\0\0\0\0\0\0\0\7\1ps"), FT_FRAME_OK);
    ck_assert_int_eq(DECODE("\0\0\0\15\1\1\0\0\0\0\0\0\0\7\1p\n"), FT_FRAME_BAD);
    ck_assert_int_eq(DECODE("\0\0\0\15\1\1\0\0\0\0\0\0\0\7\0ps"), FT_FRAME_BAD);
    ck_assert_int_eq(DECODE("\0\0\0\15\1\1\0\0\0\0\0\0\0\7\2ps"), FT_FRAME_BAD);
    ck_assert_int_eq(DECODE("\0\0\0\15\1\1\0\0\0\0\0\0\0\7\377ps"), FT_FRAME_BAD);
    /* A version that is not ours may go on as it likes. */
    ck_assert_int_eq(DECODE("\0\0\0\3\1\3?"), FT_FRAME_OK);
    ck_assert_int_eq(ft_frame_decode((const uint8_t *)"\0\0\0\4\5a\nb", 8, 4096, &f, &total),
                     FT_FRAME_OK);
    ck_assert_str_eq(f.reason, "a?b");
}
END_TEST

START_TEST(endpoints)
{
    static const char *const bad[] = {"",        "host",     "host:",  "host:x",  "host:65536",
                                      "host:-1", "::1:9477", "[::1:1", "host:1 ", "[::1]9477"};
    char host[FT_HOST_BYTES];
    uint16_t port;

    ck_assert_int_eq(ft_endpoint_split("daemon.example:9477", host, &port), 0);
    ck_assert_str_eq(host, "daemon.example");
    ck_assert_uint_eq(port, 9477);
    ck_assert_int_eq(ft_endpoint_split("[fd00::1]:65535", host, &port), 0);
    ck_assert_str_eq(host, "fd00::1");
    ck_assert_uint_eq(port, 65535);
    ck_assert_int_eq(ft_endpoint_split(":0", host, &port), 0);
    ck_assert_str_eq(host, "");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(ft_endpoint_split(bad[i], host, &port) < 0, "'%s'", bad[i]);
}
END_TEST

FT_UNIT_MAIN("frame", decodes_what_was_encoded, layout_is_as_documented, asks_for_more_at_every_cut,
             refuses_what_is_no_frame, endpoints)
