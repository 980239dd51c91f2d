// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/packet.h"

#define ETHERTYPE_IPV4    0x0800
#define ETHERTYPE_VLAN    0x8100 /* IEEE 802.1Q */
#define ETHERTYPE_QINQ    0x88a8 /* IEEE 802.1ad */
#define ETHERTYPE_QINQ_91 0x9100 /* its forerunner, still in use */
#define ETHERTYPE_IPV6    0x86dd
#define ETHERTYPE_MPLS    0x8847
#define ETHERTYPE_MPLS_UP 0x8848 /* upstream-assigned labels, RFC 5332 */
#define ETHERTYPE_BRIDGED 0x6558 /* Ethernet in GRE */

#define PROTO_HOP_BY_HOP  0
#define PROTO_IPV4        4
#define PROTO_TCP         6
#define PROTO_IPV6        41
#define PROTO_ROUTING     43
#define PROTO_FRAGMENT    44
#define PROTO_GRE         47
#define PROTO_AH          51
#define PROTO_DESTINATION 60

#define IPV4_HEAD_BYTES 20
#define IPV6_HEAD_BYTES 40
#define UDP_HEAD_BYTES  8

/* Ethernet, IPv4 without options, UDP */
#define PLAIN_IP_AT   14
#define PLAIN_UDP_AT  (PLAIN_IP_AT + IPV4_HEAD_BYTES)
#define PLAIN_BYTES   (PLAIN_UDP_AT + UDP_HEAD_BYTES)
#define PLAIN_VERSION 0x45 /* and the length of the head in words */

#define BTH_OPCODE_CNP 0x81
#define BTH_HEAD_BYTES 12

#define VXLAN_PORT       4789
#define VXLAN_PORT_LINUX 8472 /* before there was a standard, and still its default */
#define VXLAN_HEAD_BYTES 8
#define VXLAN_HAS_VNI    0x08

#define GPE_PORT         4790 /* draft-ietf-nvo3-vxlan-gpe */
#define GPE_VERSION      0x30
#define GPE_HAS_PROTOCOL 0x04
#define GPE_OAM          0x01

#define GENEVE_PORT       6081
#define GENEVE_HEAD_BYTES 8
#define GENEVE_VERSION    0xc0
#define GENEVE_OPTIONS    0x3f /* in words of 4 bytes */
#define GENEVE_CONTROL    0x80

#define MPLS_UDP_PORT 6635 /* RFC 7510 */

/* Tunnels in tunnels that are opened. */
#define TUNNELS_MAX 2

#define GRE_CHECKSUM 0x8000
#define GRE_ROUTING  0x4000
#define GRE_KEY      0x2000
#define GRE_SEQUENCE 0x1000
#define GRE_VERSION  0x0007

#define MPLS_BOTTOM 0x100
#define ECN_CE      3

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

/* A bit for each operation of RC, RD and XRC. No data: READ request (0x0c), ACK and ATOMIC ACK
 * (0x11, 0x12), FLUSH (0x1c). RESYNC of RD (0x15) is reserved elsewhere, as are 0x18 to 0x1b, 0x1e,
 * 0x1f. */
#define RELIABLE_DATA 0x20d9efff
#define RELIABLE_ACK  0x10061000

enum ft_bth_class ft_bth_class_of(uint8_t opcode)
{
    static const struct {
        uint32_t data, ack;
    } transports[8] = {
        [0] = {RELIABLE_DATA, RELIABLE_ACK},      [1] = {0x00000fff, 0}, /* UC: SEND and WRITE */
        [2] = {RELIABLE_DATA, RELIABLE_ACK},      [3] = {0x00000030, 0}, /* UD: SEND only */
        [4] = {0, 1u << (BTH_OPCODE_CNP & 0x1f)}, [5] = {RELIABLE_DATA, RELIABLE_ACK},
    };
    uint32_t bit = 1u << (opcode & 0x1f);

    if (transports[opcode >> 5].data & bit)
        return FT_BTH_DATA;
    if (!(transports[opcode >> 5].ack & bit))
        return FT_BTH_NONE;
    return opcode == BTH_OPCODE_CNP ? FT_BTH_CNP : FT_BTH_ACK;
}

/* IBTA volume 1 section 9.2. Whatever does not look like a BTH leaves the packet without one. */
static inline void decode_bth(struct ft_reader *r, struct ft_packet *k)
{
    const uint8_t *h = ft_read_bytes(r, BTH_HEAD_BYTES);

    if (!h || (h[1] & 0x0f) != 0) /* the version */
        return;
    k->bth = ft_bth_class_of(h[0]);
    if (k->bth == FT_BTH_NONE)
        return;
    k->opcode = h[0];
    k->dst_qp = ft_be32_at(h + 4) & 0xffffff;
    k->psn = ft_be32_at(h + 8) & 0xffffff;
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

/* RFC 8200 section 4: follows the chain to the upper layer, whose protocol becomes the tuple's. */
static enum ft_packet_status skip_extensions(uint8_t next, struct ft_packet *k, struct payload *p)
{
    uint8_t header, length;
    uint16_t fragment;

    for (;;) {
        switch (next) {
        case PROTO_HOP_BY_HOP:
        case PROTO_ROUTING:
        case PROTO_DESTINATION:
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

static enum ft_packet_status decode_ip(bool six, struct ft_reader *r, struct ft_packet *k,
                                       struct ft_reader *body)
{
    struct payload p;
    enum ft_packet_status status = six ? decode_ipv6(r, k, &p) : decode_ipv4(r, k, &p);

    if (status == FT_PACKET_OK && k->tuple.proto == PROTO_AH)
        status = skip_authentication(k, &p);

    return status == FT_PACKET_OK ? decode_ports(&p, k, body) : status;
}

/* Takes the labels off and returns the protocol that the first nibble below tells: IP, or
 * Ethernet behind a control word (RFC 4385), whose addresses are taken off as well; 0 for others.
 */
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
static enum ft_packet_status decode_ethertype(uint16_t type, struct ft_reader *r,
                                              struct ft_packet *k, struct ft_reader *body)
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
    return decode_ip(type == ETHERTYPE_IPV6, r, k, body);
}

static enum ft_packet_status decode_link(enum ft_link_type link, struct ft_reader *r,
                                         struct ft_packet *k, struct ft_reader *body)
{
    struct ft_reader peek = *r;
    uint16_t type;

    ft_reader_init(body, r->pos, 0);
    switch (link) {
    case FT_LINK_ETHERNET:
        ft_read_skip(r, 12);
        return decode_ethertype(ft_read_be16(r), r, k, body);
    case FT_LINK_COOKED:
        ft_read_skip(r, 14);
        return decode_ethertype(ft_read_be16(r), r, k, body);
    case FT_LINK_COOKED2:
        type = ft_read_be16(r);
        ft_read_skip(r, 18);
        return decode_ethertype(type, r, k, body);
    case FT_LINK_IPV4:
        return decode_ip(false, r, k, body);
    case FT_LINK_IPV6:
        return decode_ip(true, r, k, body);
    case FT_LINK_MPLS:
        return decode_ethertype(ETHERTYPE_MPLS, r, k, body);
    case FT_LINK_RAW:
        switch (ft_read_u8(&peek) >> 4) {
        case 4:
            return decode_ip(false, r, k, body);
        case 6:
            return decode_ip(true, r, k, body);
        default:
            return ft_reader_ok(&peek) ? FT_PACKET_UNKNOWN : FT_PACKET_SHORT;
        }
    }
    return FT_PACKET_UNKNOWN;
}

/* RFC 2784 and 2890. Returns the protocol inside, 0 for what is none of ours. */
static uint16_t skip_gre(struct ft_reader *r)
{
    uint16_t flags = ft_read_be16(r);
    uint16_t type = ft_read_be16(r);

    if (flags & (GRE_ROUTING | GRE_VERSION))
        return 0;
    for (uint16_t field = GRE_CHECKSUM; field >= GRE_SEQUENCE; field >>= 1)
        if (flags & field)
            ft_read_skip(r, 4);
    return type;
}

static inline bool is_tunnel_port(uint16_t dport)
{
    return dport == VXLAN_PORT || dport == GENEVE_PORT || dport == GPE_PORT ||
           dport == MPLS_UDP_PORT || dport == VXLAN_PORT_LINUX;
}

/* RFC 7348 section 5. Any port may be anybody's: on one that is not VXLAN's own every reserved bit
 * has to be 0. */
static enum ft_packet_status decode_vxlan(bool strict, struct ft_reader *r, struct ft_packet *inner,
                                          struct ft_reader *body)
{
    const uint8_t *h = ft_read_bytes(r, VXLAN_HEAD_BYTES);

    if (!h || !(h[0] & VXLAN_HAS_VNI) ||
        (strict && (ft_be32_at(h) != (uint32_t)VXLAN_HAS_VNI << 24 || h[7] != 0)))
        return FT_PACKET_UNKNOWN;
    inner->has_vni = true;
    inner->vni = ft_be32_at(h + 4) >> 8;
    return decode_link(FT_LINK_ETHERNET, r, inner, body);
}

/* VXLAN with a protocol inside that need not be Ethernet. */
static enum ft_packet_status decode_gpe(struct ft_reader *r, struct ft_packet *inner,
                                        struct ft_reader *body)
{
    static const enum ft_link_type links[] = {
        [1] = FT_LINK_IPV4, [2] = FT_LINK_IPV6, [3] = FT_LINK_ETHERNET, [5] = FT_LINK_MPLS};
    const uint8_t *h = ft_read_bytes(r, VXLAN_HEAD_BYTES);
    uint8_t protocol;

    if (!h || h[0] & (GPE_VERSION | GPE_OAM))
        return FT_PACKET_UNKNOWN;
    protocol = h[0] & GPE_HAS_PROTOCOL ? h[3] : 3;
    if (protocol == 0 || protocol == 4 || protocol >= sizeof(links) / sizeof(links[0]))
        return FT_PACKET_UNKNOWN;
    inner->has_vni = h[0] & VXLAN_HAS_VNI;
    inner->vni = inner->has_vni ? ft_be32_at(h + 4) >> 8 : 0;
    return decode_link(links[protocol], r, inner, body);
}

/* RFC 8926 section 3.4 */
static enum ft_packet_status decode_geneve(struct ft_reader *r, struct ft_packet *inner,
                                           struct ft_reader *body)
{
    const uint8_t *h = ft_read_bytes(r, GENEVE_HEAD_BYTES);
    uint16_t type;

    if (!h || h[0] & GENEVE_VERSION || h[1] & GENEVE_CONTROL)
        return FT_PACKET_UNKNOWN;
    type = (uint16_t)(h[2] << 8 | h[3]);
    inner->has_vni = true;
    inner->vni = ft_be32_at(h + 4) >> 8;
    ft_read_skip(r, (size_t)(h[0] & GENEVE_OPTIONS) * 4);
    return type == ETHERTYPE_BRIDGED ? decode_link(FT_LINK_ETHERNET, r, inner, body)
                                     : decode_ethertype(type, r, inner, body);
}

/* Decodes what a tunnel carries. UNKNOWN when the packet is no tunnel. */
static enum ft_packet_status decode_inner(const struct ft_packet *k, struct ft_reader *r,
                                          struct ft_packet *inner, struct ft_reader *body)
{
    uint16_t type;

    switch (k->tuple.proto) {
    case FT_PROTO_UDP:
        switch (k->tuple.dport) {
        case VXLAN_PORT:
        case VXLAN_PORT_LINUX:
            return decode_vxlan(k->tuple.dport != VXLAN_PORT, r, inner, body);
        case GPE_PORT:
            return decode_gpe(r, inner, body);
        case GENEVE_PORT:
            return decode_geneve(r, inner, body);
        case MPLS_UDP_PORT:
            return decode_link(FT_LINK_MPLS, r, inner, body);
        default:
            return FT_PACKET_UNKNOWN;
        }
    case PROTO_GRE:
        type = skip_gre(r);
        return type == ETHERTYPE_BRIDGED ? decode_link(FT_LINK_ETHERNET, r, inner, body)
                                         : decode_ethertype(type, r, inner, body);
    case PROTO_IPV4:
        return decode_ip(false, r, inner, body);
    case PROTO_IPV6:
        return decode_ip(true, r, inner, body);
    default:
        return FT_PACKET_UNKNOWN;
    }
}

static bool may_be_tunnel(enum ft_packet_status status, const struct ft_packet *k)
{
    return status == FT_PACKET_OK ? k->tuple.proto == FT_PROTO_UDP && is_tunnel_port(k->tuple.dport)
                                  : status == FT_PACKET_UNKNOWN && (k->tuple.proto == PROTO_GRE ||
                                                                    k->tuple.proto == PROTO_IPV4 ||
                                                                    k->tuple.proto == PROTO_IPV6);
}

/* Puts the flow inside in the place of the tunnel that carries it, and of a tunnel in that
 * likewise. A tunnel whose inside cannot be read stays what it is: a flow when it has ports. */
static enum ft_packet_status open_tunnels(enum ft_packet_status status, struct ft_packet *k,
                                          struct ft_reader *body)
{
    struct ft_packet at = *k;
    struct ft_reader at_body = *body;

    for (int depth = 0; depth < TUNNELS_MAX && may_be_tunnel(status, &at); depth++) {
        struct ft_packet inner = {0};
        struct ft_reader inside;

        if (ft_reader_left(&at_body) == 0) /* cut off before, or a later fragment */
            break;
        ft_reader_init(&inside, at_body.pos, 0);
        status = decode_inner(&at, &at_body, &inner, &inside);
        inner.has_outer = true;
        /* Switches hash by the outermost. */
        inner.outer = at.has_outer ? at.outer : at.tuple;
        if (!inner.has_vni && at.has_vni) {
            inner.has_vni = true;
            inner.vni = at.vni;
        }
        /* A switch marks the header that it routes by: the outer one (RFC 6040). */
        if (at.ecn == ECN_CE)
            inner.ecn = ECN_CE;
        inner.ttl = at.ttl;
        at = inner;
        at_body = inside;
        if (status != FT_PACKET_OK)
            continue;
        *k = at;
        *body = at_body;
    }
    return status;
}

static uint16_t be16_at(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

/* The ports and protocol of a tuple in one store, for the same reason as in ft_ip4(). */
static void set_ports(struct ft_tuple *t, uint16_t sport, uint16_t dport, uint8_t proto)
{
#if __BYTE_ORDER == __LITTLE_ENDIAN
    const uint64_t word = sport | (uint64_t)dport << 16 | (uint64_t)proto << 32;
#else
    const uint64_t word = (uint64_t)sport << 48 | (uint64_t)dport << 32 | (uint64_t)proto << 24;
#endif

    _Static_assert(offsetof(struct ft_tuple, sport) + sizeof(word) == sizeof(*t), "eight bytes");
    memcpy((uint8_t *)t + offsetof(struct ft_tuple, sport), &word, sizeof(word));
}

/* The frame that nearly all are: no tag, option, fragment or tunnel, and whole to its ports. One
 * check of the bounds, each field written once. False leaves a frame to the general way, which says
 * the same of it: tests compare the two. */
static inline __attribute__((always_inline)) bool
decode_plain(struct ft_reader r, struct ft_packet *k, struct ft_reader *body)
{
    const uint8_t *h = ft_read_bytes(&r, PLAIN_BYTES);
    const uint8_t *ip, *udp;
    size_t ip_bytes, udp_bytes, left;

    if (!h)
        return false;
    ip = h + PLAIN_IP_AT;
    udp = h + PLAIN_UDP_AT;
    if (be16_at(ip - 2) != ETHERTYPE_IPV4 || ip[0] != PLAIN_VERSION || be16_at(ip + 6) & 0x3fff ||
        ip[9] != FT_PROTO_UDP)
        return false;
    if (be16_at(udp + 2) != FT_ROCE_PORT && is_tunnel_port(be16_at(udp + 2)))
        return false;
    ip_bytes = be16_at(ip + 2);
    udp_bytes = be16_at(udp + 4);
    if (udp_bytes < UDP_HEAD_BYTES || ip_bytes < IPV4_HEAD_BYTES + udp_bytes)
        return false;
    k->ecn = ip[1] & 3;
    k->dscp = ip[1] >> 2;
    k->ttl = ip[8];
    k->ip_bytes = (uint16_t)ip_bytes;
    k->flow_label = 0;
    k->bth = FT_BTH_NONE;
    k->opcode = 0;
    k->dst_qp = k->psn = 0;
    k->has_outer = k->has_vni = false;
    k->vni = 0;
    k->tuple.src = ft_ip4(ip + 12);
    k->tuple.dst = ft_ip4(ip + 16);
    set_ports(&k->tuple, be16_at(udp), be16_at(udp + 2), FT_PROTO_UDP);
    left = ft_reader_left(&r);
    udp_bytes -= UDP_HEAD_BYTES;
    ft_read_child(&r, udp_bytes < left ? udp_bytes : left, body);
    return true;
}

static enum ft_packet_status decode_any(enum ft_link_type link, struct ft_reader *r,
                                        struct ft_packet *packet)
{
    struct ft_packet k = {0};
    struct ft_reader body;
    enum ft_packet_status status = decode_link(link, r, &k, &body);

    if (may_be_tunnel(status, &k)) {
        bool flow = status == FT_PACKET_OK;

        status = open_tunnels(status, &k, &body);
        if (flow || k.has_outer)
            status = FT_PACKET_OK;
    }
    if (status != FT_PACKET_OK)
        return status;
    if (k.tuple.proto == FT_PROTO_UDP && k.tuple.dport == FT_ROCE_PORT)
        decode_bth(&body, &k);
    *packet = k;
    return FT_PACKET_OK;
}

enum ft_packet_status ft_packet_decode(enum ft_link_type link, struct ft_reader *r,
                                       struct ft_packet *packet)
{
    struct ft_reader body;

    if (link != FT_LINK_ETHERNET || !decode_plain(*r, packet, &body))
        return decode_any(link, r, packet);
    if (packet->tuple.dport == FT_ROCE_PORT)
        decode_bth(&body, packet);
    return FT_PACKET_OK;
}

static enum ft_packet_status any_udp_payload(enum ft_link_type link, struct ft_reader *r,
                                             struct ft_packet *packet, struct ft_reader *payload)
{
    struct ft_packet k = {0};
    struct ft_reader body;
    enum ft_packet_status status = decode_link(link, r, &k, &body);

    if (status == FT_PACKET_OK && k.tuple.proto != FT_PROTO_UDP)
        status = FT_PACKET_UNKNOWN;
    if (status != FT_PACKET_OK)
        return status;
    *packet = k;
    *payload = body;
    return FT_PACKET_OK;
}

enum ft_packet_status ft_packet_udp_payload(enum ft_link_type link, struct ft_reader *r,
                                            struct ft_packet *packet, struct ft_reader *payload)
{
    if (link == FT_LINK_ETHERNET && decode_plain(*r, packet, payload))
        return FT_PACKET_OK;
    return any_udp_payload(link, r, packet, payload);
}
