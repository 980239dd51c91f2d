// SPDX-License-Identifier: Apache-2.0
#ifndef FT_PROTO_TTL_ANSWER_H
#define FT_PROTO_TTL_ANSWER_H
/*
 * What a router answers to a packet whose TTL ended there: ICMP time exceeded in transit (RFC 792,
 * type 11 code 0; RFC 4443, type 3 code 0), with the beginning of that packet. Anybody can send
 * one: what it quotes has to be compared with what was sent. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/tuple.h"

/* The packet that is quoted. */
struct ft_ttl_answer {
    struct ft_tuple tuple;
    uint16_t id;           /* IPv4's identification; of IPv6 0 */
    uint16_t udp_checksum; /* as it was sent */
    bool has_nonce;        /* the answer quotes so far */
    uint64_t nonce;        /* 8 bytes behind the base transport header */
};

/* An ICMP message as a raw socket hands it over: of IPv4 with the IP header before it, of IPv6
 * without. -EBADMSG: it is something else, is cut off before the ports, or its checksum is wrong
 * (IPv4; that of IPv6 the kernel checks). *answer is written on success alone. */
int ft_ttl_answer_decode4(const uint8_t *bytes, size_t len, struct ft_ttl_answer *answer);
int ft_ttl_answer_decode6(const uint8_t *bytes, size_t len, struct ft_ttl_answer *answer);

#endif
