// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/packet_impl.h"

#define MPLS_BOTTOM 0x100

#define SRH_TYPE       4
#define SRH_HEAD_BYTES 8
#define SEGMENT_BYTES  16

/* What follows the IP header: as much as the IP header states and the head holds. */
struct payload {
    struct ft_reader r;
    size_t stated;
    bool cut;      /* the head ends before the stated length */
    bool fragment; /* a first fragment: upper length fields count bytes that are elsewhere */
};

/* Reading past the end: the head's fault or the packet's own. */
static enum ft_packet_status ran_out(const struct payload *p)
{
    return p->cut ? FT_PACKET_SHORT : FT_PACKET_BAD;
}

static void payload_take(struct payload *p, struct ft_reader *r, size_t stated)
{
    size_t left = ft_reader_left(r);

    p->stated = stated;
    p->cut = left < stated;
    p->fragment = false;
    ft_read_child(r, p->cut ? left : stated, &p->r);
}

/* Leaves body on what follows the UDP header, which is empty where the head ends before, or on the
 * payload of a protocol without ports. */
static enum ft_packet_status decode_ports(struct payload *p, struct ft_packet *k,
                                          struct ft_reader *body)
{
    const uint8_t *h;
    size_t left, stated, bytes;

    if (k->tuple.proto != FT_PROTO_UDP && k->tuple.proto != PROTO_TCP) {
        *body = p->r;
        return FT_PACKET_UNKNOWN;
    }
    h = ft_read_bytes(&p->r, 4);
    if (!h)
        return ran_out(p);
    k->tuple.sport = (uint16_t)(h[0] << 8 | h[1]);
    k->tuple.dport = (uint16_t)(h[2] << 8 | h[3]);
    if (k->tuple.proto != FT_PROTO_UDP)
        return FT_PACKET_OK;
    h = ft_read_bytes(&p->r, 4);
    if (!h)
        return p->cut ? FT_PACKET_OK : FT_PACKET_BAD;
    stated = (size_t)h[0] << 8 | h[1];
    if (stated < UDP_HEAD_BYTES || (stated > p->stated && !p->fragment))
        return FT_PACKET_BAD;
    left = ft_reader_left(&p->r);
    bytes = stated - UDP_HEAD_BYTES;
    ft_read_child(&p->r, bytes < left ? bytes : left, body);
    return FT_PACKET_OK;
}

/* RFC 791 section 3.1 */
static enum ft_packet_status decode_ipv4(struct ft_reader *r, struct ft_packet *k,
                                         struct payload *p)
{
    const uint8_t *h = ft_read_bytes(r, IPV4_HEAD_BYTES);
    size_t head_bytes;
    uint16_t fragment;

    if (!h)
        return FT_PACKET_SHORT;
    head_bytes = (size_t)(h[0] & 0x0f) * 4;
    k->ip_bytes = (uint16_t)(h[2] << 8 | h[3]);
    if (h[0] >> 4 != 4 || head_bytes < IPV4_HEAD_BYTES || k->ip_bytes < head_bytes)
        return FT_PACKET_BAD;
    k->dscp = h[1] >> 2;
    k->ecn = h[1] & 3;
    k->ttl = h[8];
    k->tuple.proto = h[9];
    k->tuple.src = ft_ip4(h + 12);
    k->tuple.dst = ft_ip4(h + 16);
    fragment = (uint16_t)(h[6] << 8 | h[7]);
    if (fragment & 0x1fff)
        return FT_PACKET_UNKNOWN;
    ft_read_skip(r, head_bytes - IPV4_HEAD_BYTES);
    if (!ft_reader_ok(r))
        return FT_PACKET_SHORT;
    payload_take(p, r, k->ip_bytes - head_bytes);
    p->fragment = fragment & 0x2000;
    return FT_PACKET_OK;
}

/* RFC 8754: a packet with segments left goes to the last one in the end, which the list has first
 * (section 2). Leaves *last alone where it has arrived, or the header is of another type.
 * BAD: what a router would not forward (section 4.3.1.1). */
static enum ft_packet_status read_routing(struct ft_reader r, struct ft_ip *last)
{
    const uint8_t *h = ft_read_bytes(&r, SRH_HEAD_BYTES);
    unsigned segments;

    if (!h || h[2] != SRH_TYPE || h[3] == 0)
        return FT_PACKET_OK;
    segments = h[1] / 2; /* Hdr Ext Len is in words of 8 bytes */
    if (h[4] + 1u > segments || h[3] > h[4] + 1u)
        return FT_PACKET_BAD;
    h = ft_read_bytes(&r, SEGMENT_BYTES);
    if (h)
        *last = ft_ip6(h);
    return FT_PACKET_OK;
}

/* RFC 8200 section 4: follows the chain to the upper layer, whose protocol becomes the tuple's, as
 * does the last segment, unless the upper layer is a tunnel's: that goes where its header says. */
static enum ft_packet_status skip_extensions(uint8_t next, struct ft_packet *k, struct payload *p)
{
    struct ft_ip last = k->tuple.dst;
    uint8_t header, length;
    uint16_t fragment;

    for (;;) {
        switch (next) {
        case PROTO_ROUTING:
        case PROTO_HOP_BY_HOP:
        case PROTO_DESTINATION:
            if (next == PROTO_ROUTING && read_routing(p->r, &last) != FT_PACKET_OK)
                return FT_PACKET_BAD;
            header = ft_read_u8(&p->r);
            length = ft_read_u8(&p->r);
            ft_read_skip(&p->r, (size_t)length * 8 + 6);
            p->stated -= (size_t)length * 8 + 8;
            break;
        case PROTO_AH: /* RFC 4302 section 2.2: in words of 4 bytes, less 2 */
            header = ft_read_u8(&p->r);
            length = ft_read_u8(&p->r);
            ft_read_skip(&p->r, (size_t)length * 4 + 6);
            p->stated -= (size_t)length * 4 + 8;
            break;
        case PROTO_FRAGMENT:
            header = ft_read_u8(&p->r);
            ft_read_skip(&p->r, 1);
            fragment = ft_read_be16(&p->r);
            ft_read_skip(&p->r, 4);
            if (ft_reader_ok(&p->r) && fragment & 0xfff8)
                return FT_PACKET_UNKNOWN;
            p->fragment |= fragment & 1;
            p->stated -= 8;
            break;
        default:
            k->tuple.proto = next;
            if (next == FT_PROTO_UDP || next == PROTO_TCP)
                k->tuple.dst = last;
            return FT_PACKET_OK;
        }
        if (!ft_reader_ok(&p->r))
            return ran_out(p);
        next = header;
    }
}

/* RFC 8200 section 3 */
static enum ft_packet_status decode_ipv6(struct ft_reader *r, struct ft_packet *k,
                                         struct payload *p)
{
    const uint8_t *h = ft_read_bytes(r, IPV6_HEAD_BYTES);
    uint16_t payload_bytes;

    if (!h)
        return FT_PACKET_SHORT;
    if (h[0] >> 4 != 6)
        return FT_PACKET_BAD;
    k->dscp = (uint8_t)((h[0] & 0x0f) << 2 | h[1] >> 6);
    k->ecn = h[1] >> 4 & 3;
    k->ttl = h[7];
    k->flow_label = (uint32_t)(h[1] & 0x0f) << 16 | (uint32_t)h[2] << 8 | h[3];
    payload_bytes = (uint16_t)(h[4] << 8 | h[5]);
    /* a payload within 40 bytes of 64 KiB does not fit the field */
    k->ip_bytes = payload_bytes > UINT16_MAX - IPV6_HEAD_BYTES
                      ? UINT16_MAX
                      : (uint16_t)(payload_bytes + IPV6_HEAD_BYTES);
    k->tuple.src = ft_ip6(h + 8);
    k->tuple.dst = ft_ip6(h + 24);
    payload_take(p, r, payload_bytes);
    return skip_extensions(h[6], k, p);
}

/* In IPv4 an authentication header is a protocol like any other (RFC 4302 section 3.1.1). */
static enum ft_packet_status skip_authentication(struct ft_packet *k, struct payload *p)
{
    while (k->tuple.proto == PROTO_AH) {
        uint8_t next = ft_read_u8(&p->r);
        size_t bytes = (size_t)ft_read_u8(&p->r) * 4 + 8;

        ft_read_skip(&p->r, bytes - 2);
        if (!ft_reader_ok(&p->r))
            return ran_out(p);
        p->stated -= bytes;
        k->tuple.proto = next;
    }
    return FT_PACKET_OK;
}

enum ft_packet_status ft_packet_ip(bool six, struct ft_reader *r, struct ft_packet *k,
                                   struct ft_reader *body)
{
    struct payload p;
    enum ft_packet_status status = six ? decode_ipv6(r, k, &p) : decode_ipv4(r, k, &p);

    if (status == FT_PACKET_OK && k->tuple.proto == PROTO_AH)
        status = skip_authentication(k, &p);

    return status == FT_PACKET_OK ? decode_ports(&p, k, body) : status;
}

/* Takes the labels off and returns the protocol by the first nibble below: IP, or Ethernet behind a
 * control word (RFC 4385), whose addresses are taken off as well; 0 for others. */
static uint16_t skip_labels(struct ft_reader *r)
{
    struct ft_reader peek;
    uint32_t label;

    do
        label = ft_read_be32(r);
    while (ft_reader_ok(r) && !(label & MPLS_BOTTOM));
    peek = *r;
    switch (ft_read_u8(&peek) >> 4) {
    case 4:
        return ETHERTYPE_IPV4;
    case 6:
        return ETHERTYPE_IPV6;
    case 0:
        ft_read_skip(r, 4 + 12);
        return ft_read_be16(r);
    default:
        return 0;
    }
}

/* From a link's protocol field through any VLAN tags and one label stack to IP. */
enum ft_packet_status ft_packet_ethertype(uint16_t type, struct ft_reader *r, struct ft_packet *k,
                                          struct ft_reader *body)
{
    bool labels = false;

    for (;;) {
        if (type == ETHERTYPE_VLAN || type == ETHERTYPE_QINQ || type == ETHERTYPE_QINQ_91) {
            ft_read_skip(r, 2);
            type = ft_read_be16(r);
        } else if (!labels && (type == ETHERTYPE_MPLS || type == ETHERTYPE_MPLS_UP)) {
            labels = true;
            type = skip_labels(r);
        } else {
            break;
        }
    }
    if (!ft_reader_ok(r))
        return FT_PACKET_SHORT;
    if (type != ETHERTYPE_IPV4 && type != ETHERTYPE_IPV6)
        return FT_PACKET_UNKNOWN;
    return ft_packet_ip(type == ETHERTYPE_IPV6, r, k, body);
}

enum ft_packet_status ft_packet_link(enum ft_link_type link, struct ft_reader *r,
                                     struct ft_packet *k, struct ft_reader *body)
{
    struct ft_reader peek = *r;
    uint16_t type;

    ft_reader_init(body, r->pos, 0);
    switch (link) {
    case FT_LINK_ETHERNET:
        ft_read_skip(r, 12);
        return ft_packet_ethertype(ft_read_be16(r), r, k, body);
    case FT_LINK_COOKED:
        ft_read_skip(r, 14);
        return ft_packet_ethertype(ft_read_be16(r), r, k, body);
    case FT_LINK_COOKED2:
        type = ft_read_be16(r);
        ft_read_skip(r, 18);
        return ft_packet_ethertype(type, r, k, body);
    case FT_LINK_IPV4:
        return ft_packet_ip(false, r, k, body);
    case FT_LINK_IPV6:
        return ft_packet_ip(true, r, k, body);
    case FT_LINK_MPLS:
        return ft_packet_ethertype(ETHERTYPE_MPLS, r, k, body);
    case FT_LINK_RAW:
        switch (ft_read_u8(&peek) >> 4) {
        case 4:
            return ft_packet_ip(false, r, k, body);
        case 6:
            return ft_packet_ip(true, r, k, body);
        default:
            return ft_reader_ok(&peek) ? FT_PACKET_UNKNOWN : FT_PACKET_SHORT;
        }
    }
    return FT_PACKET_UNKNOWN;
}
