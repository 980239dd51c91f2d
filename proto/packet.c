// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/packet.h"

#include "proto/packet_impl.h"

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

enum {
    GRE_CHECKSUM = 0x8000,
    GRE_ROUTING = 0x4000,
    GRE_KEY = 0x2000,
    GRE_SEQUENCE = 0x1000,
    GRE_VERSION = 0x0007,
};

#define ECN_CE 3

/* A bit for each operation of RC, RD and XRC. No data: READ request (0x0c), ACK and ATOMIC ACK
 * (0x11, 0x12), FLUSH (0x1c). RESYNC of RD (0x15) is reserved elsewhere, as are 0x18 to 0x1b, 0x1e,
 * 0x1f. */
#define RELIABLE_DATA 0x20d9efff
#define RELIABLE_ACK  0x10061000

#define UC_DATA 0x00000fff /* SEND and WRITE */
#define UD_DATA 0x00000030 /* SEND only */

/* Of them, as above: what bears the number of a READ, and an ACK. */
#define READ_REQUEST   (1u << 0x0c)
#define READ_RESPONSES 0x0001e000
#define RC_ACK         0x11
#define XRC_ACK        0xb1
/* RC, UC, XRC: one queue pair at each end, whose packets are numbered one by one. */
#define TRANSPORTS_NUMBERED (1u << 0 | 1u << 1 | 1u << 5)
#define TRANSPORTS_RELIABLE (1u << 0 | 1u << 2 | 1u << 5)

/* As constants: a table of them is cheaper than asking each sample. */
#define OPCODE_BIT(op) (1u << ((op)&0x1f))
#define IN(op, set)    ((set) >> ((op) >> 5) & 1)
#define IS_DATA(op)                                                                                \
    (OPCODE_BIT(op) & (IN(op, TRANSPORTS_RELIABLE) ? RELIABLE_DATA                                 \
                       : (op) >> 5 == 1            ? UC_DATA                                       \
                       : (op) >> 5 == 3            ? UD_DATA                                       \
                                                   : 0))
#define PSN_KIND(op)                                                                               \
    (!IN(op, TRANSPORTS_NUMBERED)      ? (IS_DATA(op) ? FT_PSN_OTHER : FT_PSN_NONE)                \
     : OPCODE_BIT(op) & READ_RESPONSES ? FT_PSN_RESPONSE                                           \
     : OPCODE_BIT(op) & READ_REQUEST   ? FT_PSN_READ                                               \
     : IS_DATA(op)                     ? FT_PSN_REQUEST                                            \
                                       : FT_PSN_NONE)
#define PSN_KINDS_4(op) PSN_KIND(op), PSN_KIND((op) + 1), PSN_KIND((op) + 2), PSN_KIND((op) + 3)
#define PSN_KINDS_16(op)                                                                           \
    PSN_KINDS_4(op), PSN_KINDS_4((op) + 4), PSN_KINDS_4((op) + 8), PSN_KINDS_4((op) + 12)
#define PSN_KINDS_64(op)                                                                           \
    PSN_KINDS_16(op), PSN_KINDS_16((op) + 16), PSN_KINDS_16((op) + 32), PSN_KINDS_16((op) + 48)

const uint8_t ft_psn_kinds[256] = {PSN_KINDS_64(0), PSN_KINDS_64(64), PSN_KINDS_64(128),
                                   PSN_KINDS_64(192)};

enum ft_bth_class ft_bth_class_of(uint8_t opcode)
{
    static const struct {
        uint32_t data, ack;
    } transports[8] = {
        [0] = {RELIABLE_DATA, RELIABLE_ACK},      [1] = {UC_DATA, 0},
        [2] = {RELIABLE_DATA, RELIABLE_ACK},      [3] = {UD_DATA, 0},
        [4] = {0, 1u << (BTH_OPCODE_CNP & 0x1f)}, [5] = {RELIABLE_DATA, RELIABLE_ACK},
    };
    uint32_t bit = 1u << (opcode & 0x1f);

    if (transports[opcode >> 5].data & bit)
        return FT_BTH_DATA;
    if (!(transports[opcode >> 5].ack & bit))
        return FT_BTH_NONE;
    return opcode == BTH_OPCODE_CNP ? FT_BTH_CNP : FT_BTH_ACK;
}

/* The AETH of an ACK follows its BTH at once. Apart, since few samples are ACKs: decode_bth() is
 * put into who calls it without this. */
static __attribute__((noinline)) uint8_t read_syndrome(struct ft_reader *r)
{
    return ft_reader_left(r) > 0 ? ft_read_u8(r) : FT_AETH_PLAIN;
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
    k->syndrome = FT_AETH_PLAIN;
    if (h[0] == RC_ACK || h[0] == XRC_ACK)
        k->syndrome = read_syndrome(r);
}

/* RFC 2784 and 2890. Returns the protocol inside, 0 for what is not decoded here. */
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
    return ft_packet_link(FT_LINK_ETHERNET, r, inner, body);
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
    return ft_packet_link(links[protocol], r, inner, body);
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
    return type == ETHERTYPE_BRIDGED ? ft_packet_link(FT_LINK_ETHERNET, r, inner, body)
                                     : ft_packet_ethertype(type, r, inner, body);
}

/* Decodes what a tunnel carries. UNKNOWN when the packet is not a tunnel. */
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
            return ft_packet_link(FT_LINK_MPLS, r, inner, body);
        default:
            return FT_PACKET_UNKNOWN;
        }
    case PROTO_GRE:
        type = skip_gre(r);
        return type == ETHERTYPE_BRIDGED ? ft_packet_link(FT_LINK_ETHERNET, r, inner, body)
                                         : ft_packet_ethertype(type, r, inner, body);
    case PROTO_IPV4:
        return ft_packet_ip(false, r, inner, body);
    case PROTO_IPV6:
        return ft_packet_ip(true, r, inner, body);
    case PROTO_ETHERNET:
        return ft_packet_link(FT_LINK_ETHERNET, r, inner, body);
    default:
        return FT_PACKET_UNKNOWN;
    }
}

static bool may_be_tunnel(enum ft_packet_status status, const struct ft_packet *k)
{
    uint8_t proto = k->tuple.proto;

    if (status == FT_PACKET_OK)
        return proto == FT_PROTO_UDP && is_tunnel_port(k->tuple.dport);
    return status == FT_PACKET_UNKNOWN && (proto == PROTO_GRE || proto == PROTO_IPV4 ||
                                           proto == PROTO_IPV6 || proto == PROTO_ETHERNET);
}

/* Replaces a tunnel by the flow inside it, and a tunnel in that likewise. A tunnel whose inside
 * cannot be read stays what it is: a flow when it has ports. */
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

/* The frame that nearly all are: no tag, option, fragment or tunnel, and complete up to its ports.
 * One check of the bounds, each field written once. False leaves a frame to the general decoder,
 * which has the same result for it: tests compare the two. */
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
    k->opcode = k->syndrome = 0;
    k->dst_qp = k->psn = 0;
    k->has_outer = k->has_vni = k->source_routed = false;
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
    enum ft_packet_status status = ft_packet_link(link, r, &k, &body);

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
    enum ft_packet_status status = ft_packet_link(link, r, &k, &body);

    if (status == FT_PACKET_OK && k.tuple.proto != FT_PROTO_UDP)
        status = FT_PACKET_UNKNOWN;
    if (status != FT_PACKET_OK)
        return status;
    *packet = k;
    *payload = body;
    return FT_PACKET_OK;
}

enum ft_usid ft_packet_stays(const struct ft_usid_blocks *blocks, const struct ft_packet *packet,
                             struct ft_ip *stays)
{
    if (blocks->count == 0 || packet->has_outer)
        return FT_USID_NONE;
    return ft_usid_stays(blocks, &packet->tuple.dst, stays);
}

void ft_packet_rename(struct ft_packet *packet, const struct ft_ip *stays)
{
    packet->source_routed = !ft_ip_equal(&packet->tuple.dst, stays);
    packet->tuple.dst = *stays;
}

enum ft_usid ft_packet_name(const struct ft_usid_blocks *blocks, struct ft_packet *packet)
{
    struct ft_ip stays;
    enum ft_usid usid = ft_packet_stays(blocks, packet, &stays);

    if (usid == FT_USID_KNOWN)
        ft_packet_rename(packet, &stays);
    return usid;
}

enum ft_packet_status ft_packet_udp_payload(enum ft_link_type link, struct ft_reader *r,
                                            struct ft_packet *packet, struct ft_reader *payload)
{
    if (link == FT_LINK_ETHERNET && decode_plain(*r, packet, payload))
        return FT_PACKET_OK;
    return any_udp_payload(link, r, packet, payload);
}
