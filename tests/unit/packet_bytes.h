// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_PACKET_BYTES_H
#define FT_TESTS_PACKET_BYTES_H
/*
 * Frames for the tests of proto/packet.h, put together from parts.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/writer.h"
#include "proto/packet.h"
#include "tests/put.h"
#include "tests/unit/unit.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* A frame is put together from these and patched by the tests. */
static const uint8_t ethernet[] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1};

/* TOS 0x6b: DSCP 26, CE */
static const uint8_t ipv4[] = {0x45, 0x6b, 0x00, 0x40, 0x12, 0x34, 0x40, 0x00, 64, 17,
                               0,    0,    10,   0,    1,    1,    10,   0,    3,  1};

/* traffic class 0x6b, flow label 0xabcde */
static const uint8_t ipv6[] = {0x66, 0xba, 0xbc, 0xde, 0x00, 0x2c, 17, 64, 0xfd, 0, 0,    0, 0, 0,
                               0,    0,    0,    0,    0,    0,    0,  0,  0,    1, 0xfd, 0, 0, 0,
                               0,    0,    0,    0,    0,    0,    0,  0,  0,    0, 0,    2};

/* port 49441 to 4791, 44 bytes */
static const uint8_t udp[] = {0xc1, 0x21, 0x12, 0xb7, 0x00, 0x2c, 0, 0};

/* RC WRITE_FIRST to QP 17, as captured; then a RETH and an ICRC's place */
static const uint8_t bth[] = {
    0x06, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x11, 0x00, 0xb7, 0xc5, 0x40, 0, 0, 0, 0, 0, 0,
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0, 0, 0, 0, 0, 0};

#define ADD(w, part) ft_write_bytes(w, part, sizeof(part))

static inline void start(struct ft_writer *w, uint16_t ethertype)
{
    ft_writer_init(w, 4096);
    ADD(w, ethernet);
    put_be16(w, ethertype);
}

static inline void roce4(struct ft_writer *w)
{
    start(w, 0x0800);
    ADD(w, ipv4);
    ADD(w, udp);
    ADD(w, bth);
}

static inline void roce6(struct ft_writer *w)
{
    start(w, 0x86dd);
    ADD(w, ipv6);
    ADD(w, udp);
    ADD(w, bth);
}

/* Decodes a copy of exactly len bytes, so that a read past the end is seen. */
static inline enum ft_packet_status decode(enum ft_link_type link, const uint8_t *bytes, size_t len,
                                           struct ft_packet *k)
{
    uint8_t *copy = malloc(len ? len : 1);
    struct ft_reader r;
    enum ft_packet_status status;

    memcpy(copy, bytes, len);
    ft_reader_init(&r, copy, len);
    status = ft_packet_decode(link, &r, k);
    free(copy);
    return status;
}

static inline enum ft_packet_status decode_frame(struct ft_writer *w, struct ft_packet *k)
{
    enum ft_packet_status status = decode(FT_LINK_ETHERNET, w->bytes, w->len, k);

    ft_writer_free(w);
    return status;
}

static inline void tuple_is(const struct ft_packet *k, const char *text)
{
    char got[FT_TUPLE_TEXT_BYTES];

    ft_tuple_format(&k->tuple, got);
    ck_assert_str_eq(got, text);
}

static const uint8_t label[] = {0, 1, 0, 64}, bottom[] = {0, 2, 0x01, 63};

#endif
