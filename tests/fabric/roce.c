// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "tests/fabric/roce.h"

#include <errno.h>
#include <string.h>

#include "lib/base/reader.h"

#define IP4_BYTES  20
#define IP6_BYTES  40
#define UDP_BYTES  8
#define BTH_BYTES  12
#define RETH_BYTES 16
#define AETH_BYTES 4
#define ICRC_BYTES 4
#define TOS        0x6a /* DSCP 26, ECN-capable: what RoCE clusters commonly mark */
#define TTL        64
#define ACK_OK     0x1f /* AETH syndrome: acknowledged, no credit limit (section 9.7.5.2) */

static void put16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static void put24(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 16);
    put16(p + 1, v);
}

static void put32(uint8_t *p, uint32_t v)
{
    put16(p, v >> 16);
    put16(p + 2, v);
}

static uint32_t sum16(const uint8_t *p, size_t len, uint32_t sum)
{
    for (; len > 1; p += 2, len -= 2)
        sum += (uint32_t)p[0] << 8 | p[1];
    return len ? sum + ((uint32_t)p[0] << 8) : sum;
}

static uint32_t fold16(uint32_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return ~sum & 0xffff;
}

/* CRC-32 of IEEE 802.3, reflected, which the ICRC takes over. */
static uint32_t crc32_add(uint32_t crc, const uint8_t *p, size_t len)
{
    static uint32_t table[256];

    if (!table[1]) {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t v = i;

            for (int bit = 0; bit < 8; bit++)
                v = v & 1 ? v >> 1 ^ 0xedb88320u : v >> 1;
            table[i] = v;
        }
    }
    while (len--)
        crc = crc >> 8 ^ table[(crc ^ *p++) & 0xff];
    return crc;
}

uint32_t ft_roce_icrc(const uint8_t *bytes, size_t len)
{
    static const uint8_t ones[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    uint8_t head[IP6_BYTES + UDP_BYTES + BTH_BYTES];
    size_t ip_bytes = len && bytes[0] >> 4 == 6 ? IP6_BYTES : IP4_BYTES;
    size_t head_bytes = ip_bytes + UDP_BYTES + BTH_BYTES;
    uint32_t crc;

    if (len < head_bytes + ICRC_BYTES)
        return 0;
    /* Fields that a switch may change, and the bytes before the IP header, count as ones. */
    memcpy(head, bytes, head_bytes);
    if (ip_bytes == IP6_BYTES) {
        head[0] |= 0x0f;
        memset(head + 1, 0xff, 3);
        head[7] = 0xff;
    } else {
        head[1] = 0xff;
        head[8] = 0xff;
        memset(head + 10, 0xff, 2);
    }
    memset(head + ip_bytes + 6, 0xff, 2);
    head[ip_bytes + UDP_BYTES + 4] = 0xff;
    crc = crc32_add(0xffffffff, ones, sizeof(ones));
    crc = crc32_add(crc, head, head_bytes);
    return ~crc32_add(crc, bytes + head_bytes, len - head_bytes - ICRC_BYTES);
}

static void put_ip4(const struct ft_roce_packet *packet, uint8_t *p, size_t total)
{
    size_t n;

    p[0] = 0x45;
    p[1] = TOS;
    put16(p + 2, (uint32_t)total);
    put16(p + 4, packet->ip_id);
    put16(p + 6, 0x4000); /* do not fragment */
    p[8] = TTL;
    p[9] = FT_PROTO_UDP;
    memcpy(p + 12, ft_ip_bytes(&packet->src, &n), 4);
    memcpy(p + 16, ft_ip_bytes(&packet->dst, &n), 4);
    put16(p + 10, fold16(sum16(p, IP4_BYTES, 0)));
}

static void put_ip6(const struct ft_roce_packet *packet, uint8_t *p, size_t total)
{
    put32(p, 6u << 28 | TOS << 20);
    put16(p + 4, (uint32_t)(total - IP6_BYTES));
    p[6] = FT_PROTO_UDP;
    p[7] = TTL;
    memcpy(p + 8, packet->src.b, 16);
    memcpy(p + 24, packet->dst.b, 16);
}

/* IPv6 forbids a zero checksum (RFC 8200 section 8.1); over IPv4 RoCEv2 sends zero. */
static void put_udp6_checksum(uint8_t *ip, size_t total)
{
    uint32_t udp_bytes = (uint32_t)(total - IP6_BYTES);
    uint32_t sum = fold16(sum16(ip + 8, total - 8, udp_bytes + FT_PROTO_UDP));

    put16(ip + IP6_BYTES + 6, sum ? sum : 0xffff);
}

static size_t put_bth(const struct ft_roce_packet *packet, uint8_t *p, uint32_t pad)
{
    p[0] = (uint8_t)packet->opcode;
    p[1] = (uint8_t)(pad << 4);
    put16(p + 2, 0xffff);
    put32(p + 4, packet->dst_qp & 0xffffff);
    p[8] = packet->ack_request ? 0x80 : 0;
    put24(p + 9, packet->psn);
    p += BTH_BYTES;
    switch (packet->opcode) {
    case FT_ROCE_WRITE_FIRST:
    case FT_ROCE_WRITE_ONLY:
        put32(p + 12, packet->dma_bytes);
        return BTH_BYTES + RETH_BYTES;
    case FT_ROCE_ACKNOWLEDGE:
        p[0] = ACK_OK;
        put24(p + 1, packet->msn);
        return BTH_BYTES + AETH_BYTES;
    case FT_ROCE_WRITE_MIDDLE:
    case FT_ROCE_WRITE_LAST:
        break;
    }
    return BTH_BYTES;
}

int ft_roce_build(const struct ft_roce_packet *packet, uint8_t *bytes, size_t size, size_t *len)
{
    bool four = ft_ip_is4(&packet->src);
    size_t ip_bytes = four ? IP4_BYTES : IP6_BYTES;
    uint32_t pad = -packet->payload_bytes & 3u;
    uint8_t head[BTH_BYTES + RETH_BYTES] = {0};
    size_t head_bytes, total;
    uint32_t icrc;

    if (four != ft_ip_is4(&packet->dst))
        return -EINVAL;
    head_bytes = put_bth(packet, head, pad);
    total = ip_bytes + UDP_BYTES + head_bytes + packet->payload_bytes + pad + ICRC_BYTES;
    if (total > size || total > FT_ROCE_PACKET_BYTES_MAX)
        return -EINVAL;
    memset(bytes, 0, total);
    if (four)
        put_ip4(packet, bytes, total);
    else
        put_ip6(packet, bytes, total);
    put16(bytes + ip_bytes, packet->sport);
    put16(bytes + ip_bytes + 2, FT_ROCE_PORT);
    put16(bytes + ip_bytes + 4, (uint32_t)(total - ip_bytes));
    memcpy(bytes + ip_bytes + UDP_BYTES, head, head_bytes);
    icrc = ft_roce_icrc(bytes, total);
    for (size_t i = 0; i < ICRC_BYTES; i++)
        bytes[total - ICRC_BYTES + i] = (uint8_t)(icrc >> 8 * i);
    if (!four)
        put_udp6_checksum(bytes, total);
    *len = total;
    return 0;
}

int ft_roce_read_bth(const uint8_t *bytes, size_t len, struct ft_roce_bth *bth)
{
    struct ft_reader reader;
    struct ft_roce_bth read;
    uint8_t flags;

    ft_reader_init(&reader, bytes, len);
    read.opcode = ft_read_u8(&reader);
    flags = ft_read_u8(&reader);
    ft_read_skip(&reader, 3);
    read.dst_qp = ft_read_be24(&reader);
    read.ack_request = ft_read_u8(&reader) & 0x80;
    read.psn = ft_read_be24(&reader);
    if (!ft_reader_ok(&reader) || flags & 0x0f)
        return -EINVAL;
    *bth = read;
    return 0;
}

bool ft_roce_is_write(uint8_t opcode)
{
    return opcode == FT_ROCE_WRITE_FIRST || opcode == FT_ROCE_WRITE_MIDDLE ||
           ft_roce_ends_message(opcode);
}

bool ft_roce_ends_message(uint8_t opcode)
{
    return opcode == FT_ROCE_WRITE_LAST || opcode == FT_ROCE_WRITE_ONLY;
}
