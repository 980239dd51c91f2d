// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/ttl_answer.h"

#include <errno.h>

#include "lib/base/reader.h"

#define ICMP4_TIME_EXCEEDED 11
#define ICMP6_TIME_EXCEEDED 3
#define IP4_LEAST           20
#define PROTO_ICMP          1
#define BTH_BYTES           12

/* The UDP header that is quoted, and what there is behind it. The answer may be cut off, and padded
 * or extended behind the packet (RFC 4884): only the datagram's own bytes count. */
static int read_udp(struct ft_reader *r, struct ft_ttl_answer *answer)
{
    uint16_t len;

    answer->tuple.sport = ft_read_be16(r);
    answer->tuple.dport = ft_read_be16(r);
    len = ft_read_be16(r);
    answer->udp_checksum = ft_read_be16(r);
    if (!ft_reader_ok(r))
        return -EBADMSG;
    if (len < 8 + BTH_BYTES + 8 || ft_reader_left(r) < BTH_BYTES + 8)
        return 0;
    ft_read_skip(r, BTH_BYTES);
    answer->nonce = ft_read_be64(r);
    answer->has_nonce = true;
    return 0;
}

/* Behind the version and header length of an IPv4 header: how long the header is, 0: it is none. */
static size_t header_bytes(uint8_t first)
{
    size_t bytes = (size_t)(first & 15) * 4;

    return first >> 4 == 4 && bytes >= IP4_LEAST ? bytes : 0;
}

static int read_quoted4(struct ft_reader *r, struct ft_ttl_answer *answer)
{
    size_t header = header_bytes(ft_read_u8(r));
    const uint8_t *src, *dst;
    uint16_t fragment;

    ft_read_skip(r, 3);
    answer->id = ft_read_be16(r);
    fragment = ft_read_be16(r);
    ft_read_skip(r, 1);
    answer->tuple.proto = ft_read_u8(r);
    ft_read_skip(r, 2);
    src = ft_read_bytes(r, 4);
    dst = ft_read_bytes(r, 4);
    if (!ft_reader_ok(r) || !header || answer->tuple.proto != FT_PROTO_UDP || fragment & 0x1fff)
        return -EBADMSG;
    answer->tuple.src = ft_ip4(src);
    answer->tuple.dst = ft_ip4(dst);
    ft_read_skip(r, header - IP4_LEAST);
    return read_udp(r, answer);
}

static bool is_intact(const uint8_t *bytes, size_t len)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < len; i++)
        sum += (uint32_t)bytes[i] << (i % 2 ? 0 : 8);
    sum = (sum >> 16) + (sum & 0xffff);
    return (uint16_t)(sum + (sum >> 16)) == 0xffff;
}

int ft_ttl_answer_decode4(const uint8_t *bytes, size_t len, struct ft_ttl_answer *answer)
{
    struct ft_ttl_answer read = {.id = 0};
    struct ft_reader r;
    size_t header;
    uint8_t proto, type, code;
    int rc;

    ft_reader_init(&r, bytes, len);
    header = header_bytes(ft_read_u8(&r));
    ft_read_skip(&r, 8);
    proto = ft_read_u8(&r);
    ft_read_skip(&r, 10);
    if (!ft_reader_ok(&r) || !header || proto != PROTO_ICMP)
        return -EBADMSG;
    ft_read_skip(&r, header - IP4_LEAST);
    if (!ft_reader_ok(&r) || !is_intact(bytes + header, len - header))
        return -EBADMSG;
    type = ft_read_u8(&r);
    code = ft_read_u8(&r);
    ft_read_skip(&r, 6);
    if (!ft_reader_ok(&r) || type != ICMP4_TIME_EXCEEDED || code != 0)
        return -EBADMSG;
    rc = read_quoted4(&r, &read);
    if (rc == 0)
        *answer = read;
    return rc;
}

int ft_ttl_answer_decode6(const uint8_t *bytes, size_t len, struct ft_ttl_answer *answer)
{
    struct ft_ttl_answer read = {.id = 0};
    const uint8_t *src, *dst;
    struct ft_reader r;
    uint8_t type, code, version;
    int rc;

    ft_reader_init(&r, bytes, len);
    type = ft_read_u8(&r);
    code = ft_read_u8(&r);
    ft_read_skip(&r, 6);
    version = ft_read_u8(&r) >> 4;
    ft_read_skip(&r, 5);
    /* Probes have no extension headers. */
    read.tuple.proto = ft_read_u8(&r);
    ft_read_skip(&r, 1);
    src = ft_read_bytes(&r, 16);
    dst = ft_read_bytes(&r, 16);
    if (!ft_reader_ok(&r) || type != ICMP6_TIME_EXCEEDED || code != 0 || version != 6 ||
        read.tuple.proto != FT_PROTO_UDP)
        return -EBADMSG;
    read.tuple.src = ft_ip6(src);
    read.tuple.dst = ft_ip6(dst);
    rc = read_udp(&r, &read);
    if (rc == 0)
        *answer = read;
    return rc;
}
