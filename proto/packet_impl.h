// SPDX-License-Identifier: Apache-2.0
#ifndef FT_PROTO_PACKET_IMPL_H
#define FT_PROTO_PACKET_IMPL_H
/*
 * Shared by proto/packet.c, which opens tunnels, and proto/packet_link.c, which reads from a link's
 * header to the ports and knows no tunnel.
 */
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
#define PROTO_ETHERNET    143 /* RFC 8986 section 10.1 */

#define IPV4_HEAD_BYTES 20
#define IPV6_HEAD_BYTES 40
#define UDP_HEAD_BYTES  8

/* Each leaves body on what follows the UDP header, which is empty where the head ends before, or on
 * the payload of a protocol without ports. */
enum ft_packet_status ft_packet_link(enum ft_link_type link, struct ft_reader *r,
                                     struct ft_packet *k, struct ft_reader *body);
/* From a link's protocol field on. */
enum ft_packet_status ft_packet_ethertype(uint16_t type, struct ft_reader *r, struct ft_packet *k,
                                          struct ft_reader *body);
enum ft_packet_status ft_packet_ip(bool six, struct ft_reader *r, struct ft_packet *k,
                                   struct ft_reader *body);

#endif
