// SPDX-License-Identifier: Apache-2.0
#ifndef FT_PROTO_PACKET_H
#define FT_PROTO_PACKET_H
/*
 * From the head of a frame to its 5-tuple and RoCEv2 facts.
 *
 * Ethernet (with 802.1Q and 802.1ad tags), MPLS label stacks (RFC 3032), Linux cooked v1 and v2,
 * IPv4 (RFC 791), IPv6 (RFC 8200, extension headers skipped), UDP, TCP ports, and the InfiniBand
 * base transport header on UDP port 4791 (IBTA volume 1 section 9.2, annex A17). A tunnel, and one
 * more inside it, is opened (VXLAN, RFC 7348; VXLAN-GPE; Geneve, RFC 8926; MPLS in UDP, RFC 7510;
 * GRE, RFC 2784; IP in IP, RFC 2003; SRv6, where IP or Ethernet follows IPv6, with or without a
 * segment routing header, RFC 8986): the flow is then the inmost one, and the outermost, by which
 * switches hash, is kept beside it. A flow outside tunnels that has segments left (RFC 8754) goes
 * to the last of them: its destination is that, at every hop, and not the segment that comes next.
 * Pure: bytes in, a plain struct out. The head may be cut short (an sFlow header is): what could
 * not be read is marked as not known.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/reader.h"
#include "lib/base/tuple.h"
#include "proto/usid.h"

enum ft_packet_status {
    FT_PACKET_OK,      /* the tuple is known */
    FT_PACKET_SHORT,   /* cut off before the tuple was complete */
    FT_PACKET_BAD,     /* contradicts itself (length or version fields) */
    FT_PACKET_UNKNOWN, /* another protocol: not IP, or no ports, or a later fragment */
};

enum ft_bth_class {
    FT_BTH_NONE, /* no BTH: not RoCEv2, or cut off */
    FT_BTH_DATA, /* SEND, WRITE, READ response, ATOMIC, and UC/UD likewise */
    FT_BTH_ACK,  /* ACK, ATOMIC ACK, READ request */
    FT_BTH_CNP,  /* congestion notification (annex A17) */
};

struct ft_packet {
    struct ft_tuple tuple;
    uint8_t ecn; /* low two bits of TOS or traffic class; 3 = congestion experienced, in a tunnel by
                    either header */
    uint8_t dscp;
    uint8_t ttl;       /* TTL or hop limit; in a tunnel the outer one, which switches count down */
    uint16_t ip_bytes; /* length the IP header states, header included */
    uint32_t flow_label;
    enum ft_bth_class bth;
    uint8_t opcode;   /* the BTH fields are set when bth is not FT_BTH_NONE */
    uint32_t dst_qp;  /* 24 bits */
    uint32_t psn;     /* 24 bits */
    uint8_t syndrome; /* of an ACK's AETH; FT_AETH_PLAIN where there is none, or it is cut off */
    bool has_outer;
    bool has_vni;
    uint32_t vni;          /* with has_vni: network of VXLAN or Geneve, the inmost; 24 bits */
    struct ft_tuple outer; /* with has_outer: of the tunnel; ports are 0 where it has none */
    bool source_routed;    /* its destination had more of its path, see ft_packet_name() */
};

/* sFlow header_protocol and libpcap link types map onto these. */
enum ft_link_type {
    FT_LINK_ETHERNET,
    FT_LINK_IPV4,
    FT_LINK_IPV6,
    FT_LINK_COOKED,  /* LINKTYPE_LINUX_SLL */
    FT_LINK_COOKED2, /* LINKTYPE_LINUX_SLL2 */
    FT_LINK_RAW,     /* by the version nibble */
    FT_LINK_MPLS,    /* a label stack */
};

/* *packet is written only when FT_PACKET_OK is returned. */
enum ft_packet_status ft_packet_decode(enum ft_link_type link, struct ft_reader *r,
                                       struct ft_packet *packet);

/* Gives a flow whose destination is a container of micro-SIDs the one that stays of it, so that it
 * is one flow at all hops. Where it had more micro-SIDs than these it is source_routed: of the last
 * ones alone it may be either. Of a flow in a tunnel the header around it has the path, and it
 * keeps its destination. */
enum ft_usid ft_packet_name(const struct ft_usid_blocks *blocks, struct ft_packet *packet);
/* The two steps of it, for who has the packet of somebody else. */
enum ft_usid ft_packet_stays(const struct ft_usid_blocks *blocks, const struct ft_packet *packet,
                             struct ft_ip *stays);
void ft_packet_rename(struct ft_packet *packet, const struct ft_ip *stays);

/* The payload of the UDP datagram in a frame, for reading sFlow out of captures: payload covers
 * what the capture holds of it. */
enum ft_packet_status ft_packet_udp_payload(enum ft_link_type link, struct ft_reader *r,
                                            struct ft_packet *packet, struct ft_reader *payload);

/* The class of a BTH opcode (IBTA table 38; 0x81 is the CNP of annex A17). */
enum ft_bth_class ft_bth_class_of(uint8_t opcode);

/* Whose packet numbers a packet takes part in (IBTA section 9.7.1). */
enum ft_psn_kind {
    FT_PSN_NONE = 0,     /* nobody's: ACKs bear the number that they answer */
    FT_PSN_REQUEST = 1,  /* the sender's: SEND, WRITE, ATOMIC of RC, XRC and UC */
    FT_PSN_RESPONSE = 2, /* the peer's: the data that a READ asked for */
    FT_PSN_READ = 4,  /* the sender's: a READ, which takes the numbers of its responses as well */
    FT_PSN_OTHER = 8, /* UD's, RD's: of several queue pairs */
};

/* By opcode. */
extern const uint8_t ft_psn_kinds[256];

/* Here, since it is asked of each sample. */
static inline enum ft_psn_kind ft_psn_kind_of(uint8_t opcode)
{
    return (enum ft_psn_kind)ft_psn_kinds[opcode];
}

/* Whether a packet of data is the first, or the only one, of a message. */
static inline bool ft_bth_starts_message(uint8_t opcode)
{
    const uint32_t starts = UINT32_C(0x00992c71);

    return starts >> (opcode & 0x1f) & 1;
}

/* The AETH's syndrome (IBTA section 9.7.5.2.1). A positive ACK may say how many receives are
 * posted for SENDs and WRITEs with immediate: 0 credits are code 0, and 31 says nothing of them. */
#define FT_AETH_PLAIN                  0x1f
#define FT_AETH_IS_NO_CREDIT(syndrome) ((syndrome) == 0)
#define FT_AETH_IS_RNR(syndrome)       ((syndrome) >> 5 == 1) /* the receiver was not ready */
#define FT_AETH_IS_NAK(syndrome)       ((syndrome) >> 5 == 3)

#endif
