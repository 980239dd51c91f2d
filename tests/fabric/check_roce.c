// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "tests/fabric/roce.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/unit.h"

/* IP packets as Linux's Soft-RoCE driver sent them. */
static const uint8_t real_ack[] = {
    0x45, 0x00, 0x00, 0x30, 0xa6, 0x01, 0x40, 0x00, 0x3e, 0x11, 0x80, 0xb7, 0x0a, 0x02, 0x01, 0x01,
    0x0a, 0x01, 0x01, 0x01, 0xc1, 0x54, 0x12, 0xb7, 0x00, 0x1c, 0x00, 0x00, 0x11, 0x00, 0xff, 0xff,
    0x00, 0x00, 0x00, 0x14, 0x00, 0x44, 0x60, 0x09, 0x1f, 0x00, 0x00, 0x01, 0x8e, 0x7a, 0xc8, 0x34};
static const uint8_t real_send[] = {
    0x45, 0x00, 0x00, 0x3c, 0xde, 0x68, 0x40, 0x00, 0x3f, 0x11, 0x45, 0x44, 0x0a, 0x01, 0x02,
    0x01, 0x0a, 0x02, 0x02, 0x01, 0xf0, 0x07, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, 0x04, 0x00,
    0xff, 0xff, 0x00, 0x00, 0x00, 0x11, 0x80, 0x88, 0xd0, 0x29, 0x00, 0x00, 0x56, 0x30, 0x59,
    0xed, 0x70, 0xd0, 0x00, 0x00, 0x06, 0x95, 0x00, 0x00, 0x00, 0x40, 0x87, 0x61, 0x4f, 0x5d};

static uint32_t icrc_at_end(const uint8_t *bytes, size_t len)
{
    const uint8_t *p = bytes + len - 4;

    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static struct ft_ip ip(const char *text)
{
    struct ft_ip ip;

    ck_assert_int_eq(ft_ip_parse(text, &ip), 0);
    return ip;
}

START_TEST(icrc_of_real_packets)
{
    uint8_t cut[sizeof(real_ack)];

    ck_assert_uint_eq(ft_roce_icrc(real_ack, sizeof(real_ack)),
                      icrc_at_end(real_ack, sizeof(real_ack)));
    ck_assert_uint_eq(ft_roce_icrc(real_send, sizeof(real_send)),
                      icrc_at_end(real_send, sizeof(real_send)));

    /* What a router changes leaves it alone, what it must not change does not. */
    memcpy(cut, real_ack, sizeof(cut));
    cut[1] = 3;
    cut[8]--;
    ck_assert_uint_eq(ft_roce_icrc(cut, sizeof(cut)), icrc_at_end(real_ack, sizeof(real_ack)));
    cut[20] ^= 1;
    ck_assert_uint_ne(ft_roce_icrc(cut, sizeof(cut)), icrc_at_end(real_ack, sizeof(real_ack)));
    ck_assert_uint_eq(ft_roce_icrc(real_ack, 43), 0);
}
END_TEST

START_TEST(built_acknowledgement_is_the_real_one)
{
    struct ft_roce_packet packet = {.src = ip("10.2.1.1"),
                                    .dst = ip("10.1.1.1"),
                                    .sport = 49492,
                                    .ip_id = 0xa601,
                                    .opcode = FT_ROCE_ACKNOWLEDGE,
                                    .dst_qp = 0x14,
                                    .psn = 0x446009,
                                    .msn = 1};
    uint8_t bytes[FT_ROCE_PACKET_BYTES_MAX];
    size_t len;

    ck_assert_int_eq(ft_roce_build(&packet, bytes, sizeof(bytes), &len), 0);
    ck_assert_uint_eq(len, sizeof(real_ack));
    /* All but type of service, time to live and IP checksum. */
    ck_assert_mem_eq(bytes + 2, real_ack + 2, 6);
    ck_assert_mem_eq(bytes + 12, real_ack + 12, sizeof(real_ack) - 12);
    ck_assert_int_eq(ft_roce_build(&packet, bytes, sizeof(real_ack) - 1, &len), -EINVAL);
    packet.dst = ip("fd00::1");
    ck_assert_int_eq(ft_roce_build(&packet, bytes, sizeof(bytes), &len), -EINVAL);
}
END_TEST

START_TEST(built_write_over_ipv6)
{
    struct ft_roce_packet packet = {.src = ip("fd00:0:1:1::2"),
                                    .dst = ip("fd00:0:2:1::2"),
                                    .sport = 50001,
                                    .opcode = FT_ROCE_WRITE_ONLY,
                                    .ack_request = true,
                                    .dst_qp = 0x123456,
                                    .psn = 0xabcdef,
                                    .dma_bytes = 253,
                                    .payload_bytes = 253};
    uint8_t bytes[FT_ROCE_PACKET_BYTES_MAX];
    struct ft_roce_bth bth;
    uint32_t sum = 17;
    size_t len;

    ck_assert_int_eq(ft_roce_build(&packet, bytes, sizeof(bytes), &len), 0);
    ck_assert_uint_eq(len, 40 + 8 + 12 + 16 + 256 + 4);
    ck_assert_uint_eq(bytes[4] << 8 | bytes[5], len - 40);
    ck_assert_uint_eq(bytes[48 + 1] >> 4 & 3, 3); /* pad count */
    ck_assert_uint_eq(ft_roce_icrc(bytes, len), icrc_at_end(bytes, len));
    /* RFC 8200 section 8.1: the pseudo header and the datagram sum up to ones. */
    sum += (uint32_t)len - 40;
    for (size_t i = 8; i < len; i += 2)
        sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    ck_assert_uint_eq(sum, 0xffff);

    ck_assert_int_eq(ft_roce_read_bth(bytes + 48, len - 48, &bth), 0);
    ck_assert_uint_eq(bth.opcode, FT_ROCE_WRITE_ONLY);
    ck_assert(bth.ack_request);
    ck_assert_uint_eq(bth.dst_qp, 0x123456);
    ck_assert_uint_eq(bth.psn, 0xabcdef);
    ck_assert_int_eq(ft_roce_read_bth(bytes + 48, 11, &bth), -EINVAL);
    bytes[49] |= 1;
    ck_assert_int_eq(ft_roce_read_bth(bytes + 48, len - 48, &bth), -EINVAL);
}
END_TEST

FT_UNIT_MAIN("roce", icrc_of_real_packets, built_acknowledgement_is_the_real_one,
             built_write_over_ipv6)
