// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/probe/packet.h"

#include <string.h>

#define UDP_BYTES     8
#define BTH_BYTES     12
#define NONCE_BYTES   8
#define ICRC_BYTES    4
#define PAYLOAD_BYTES (BTH_BYTES + NONCE_BYTES + ICRC_BYTES)
#define SEND_ONLY     0x04 /* of a reliable connection */
#define PKEY          0xffff
#define DONT_FRAGMENT 0x4000

static uint8_t *put16(uint8_t *p, uint32_t value)
{
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
    return p + 2;
}

static uint8_t *put32(uint8_t *p, uint32_t value)
{
    return put16(put16(p, value >> 16), value);
}

static uint32_t sum_of(uint32_t sum, const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        sum += (uint32_t)bytes[i] << (i % 2 ? 0 : 8);
    return sum;
}

/* RFC 1071; of UDP 0 means none, and is sent as 0xffff. */
static uint16_t checksum_of(uint32_t sum)
{
    sum = (sum >> 16) + (sum & 0xffff);
    sum = (sum >> 16) + (sum & 0xffff);
    return (uint16_t)(sum == 0xffff ? 0xffff : ~sum);
}

static uint8_t *put_ip4(uint8_t *p, const struct ft_probe_shot *shot, const uint8_t *src,
                        const uint8_t *dst)
{
    uint8_t *header = p;

    *p++ = 0x45;
    *p++ = (uint8_t)(shot->dscp << 2);
    p = put16(p, 20 + UDP_BYTES + PAYLOAD_BYTES);
    p = put16(p, shot->id);
    p = put16(p, DONT_FRAGMENT);
    *p++ = shot->ttl;
    *p++ = FT_PROTO_UDP;
    p = put16(p, 0);
    memcpy(p, src, 4);
    memcpy(p + 4, dst, 4);
    put16(header + 10, checksum_of(sum_of(0, header, 20)));
    return p + 8;
}

static uint8_t *put_ip6(uint8_t *p, const struct ft_probe_shot *shot, const uint8_t *src,
                        const uint8_t *dst)
{
    p = put32(p, UINT32_C(6) << 28 | (uint32_t)shot->dscp << 22);
    p = put16(p, UDP_BYTES + PAYLOAD_BYTES);
    *p++ = FT_PROTO_UDP;
    *p++ = shot->ttl;
    memcpy(p, src, 16);
    memcpy(p + 16, dst, 16);
    return p + 32;
}

size_t ft_probe_packet(const struct ft_probe_shot *shot, uint8_t bytes[FT_PROBE_BYTES],
                       uint16_t *udp_checksum)
{
    size_t src_len, dst_len;
    const uint8_t *src = ft_ip_bytes(&shot->tuple.src, &src_len);
    const uint8_t *dst = ft_ip_bytes(&shot->tuple.dst, &dst_len);
    uint8_t *udp, *p;
    uint32_t sum;

    memset(bytes, 0, FT_PROBE_BYTES);
    udp = src_len == 4 ? put_ip4(bytes, shot, src, dst) : put_ip6(bytes, shot, src, dst);
    p = put16(udp, shot->tuple.sport);
    p = put16(p, shot->tuple.dport);
    p = put16(p, UDP_BYTES + PAYLOAD_BYTES);
    p += 2;
    *p++ = SEND_ONLY;
    p++;
    p = put16(p, PKEY);
    p = put32(p, shot->dst_qp);
    p = put32(p, (uint32_t)shot->nonce & 0xffffff); /* the packet's number */
    p = put32(p, (uint32_t)(shot->nonce >> 32));
    p = put32(p, (uint32_t)shot->nonce);
    p += ICRC_BYTES;
    sum = sum_of(sum_of(sum_of(0, src, src_len), dst, dst_len), udp, (size_t)(p - udp));
    *udp_checksum = checksum_of(sum + FT_PROTO_UDP + UDP_BYTES + PAYLOAD_BYTES);
    put16(udp + 6, *udp_checksum);
    return (size_t)(p - bytes);
}
