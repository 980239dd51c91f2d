// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_TUPLE_H
#define FT_BASE_TUPLE_H
/*
 * IP addresses and the canonical 5-tuple: the key that everything is joined on.
 *
 * An address is 16 bytes; IPv4 is stored as IPv4-mapped IPv6 (RFC 4291 section 2.5.5.2), which no
 * packet carries on the wire, so the two families never collide. A tuple has no padding that is not
 * zero: it may be hashed and compared as bytes.
 */
#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FT_ROCE_PORT 4791 /* UDP destination port of RoCEv2 (IBTA annex A17) */
#define FT_PROTO_UDP 17

#define FT_IP_TEXT_BYTES 46
/* "[src]:sport-[dst]:dport/proto" with IPv6 addresses */
#define FT_TUPLE_TEXT_BYTES 128

struct ft_ip {
    uint8_t b[16];
};

struct ft_tuple {
    struct ft_ip src;
    struct ft_ip dst;
    uint16_t sport;
    uint16_t dport;
    uint8_t proto;
    uint8_t zero[3];
};

/* Made in one piece: a copy of an address that was just stored in parts waits for the parts. */
static inline struct ft_ip ft_ip4(const uint8_t bytes[4])
{
    typedef uint64_t words __attribute__((vector_size(16)));
    words mapped = {0};
    uint32_t v4;
    struct ft_ip ip;

    memcpy(&v4, bytes, sizeof(v4));
    mapped[1] = htobe64(UINT64_C(0xffff00000000) | be32toh(v4));
    memcpy(ip.b, &mapped, sizeof(ip.b));
    return ip;
}

static inline struct ft_ip ft_ip6(const uint8_t bytes[16])
{
    struct ft_ip ip;

    memcpy(ip.b, bytes, sizeof(ip.b));
    return ip;
}

bool ft_ip_is4(const struct ft_ip *ip);

/* From 4 or 16 bytes in network order; -EINVAL for another length. */
int ft_ip_from_bytes(const uint8_t *bytes, size_t len, struct ft_ip *ip);

/* The 4 or 16 significant bytes, borrowed from ip. */
const uint8_t *ft_ip_bytes(const struct ft_ip *ip, size_t *len);

/* -EINVAL when the text is not an address. */
int ft_ip_parse(const char *text, struct ft_ip *ip);
void ft_ip_format(const struct ft_ip *ip, char text[FT_IP_TEXT_BYTES]);

static inline bool ft_ip_equal(const struct ft_ip *a, const struct ft_ip *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

static inline bool ft_tuple_equal(const struct ft_tuple *a, const struct ft_tuple *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* As a person writes a flow: "10.0.1.1:49441-10.0.3.1", "[fd00::1]:49441-[fd00::2]:4791"; the
 * destination port may be left out (4791), and so may the protocol (UDP), as in
 * "10.0.1.1:49441-10.0.3.1:80/6". Also takes the Kafka key "src,dst,sport,dport,proto". -EINVAL
 * when the text is neither. */
int ft_tuple_parse(const char *text, struct ft_tuple *tuple);

/* "10.0.1.1:49441-10.0.3.1:4791"; a protocol other than UDP follows as "/6". */
void ft_tuple_format(const struct ft_tuple *tuple, char text[FT_TUPLE_TEXT_BYTES]);

/* The Kafka key of a flow: "src,dst,sport,dport,proto". */
void ft_tuple_format_key(const struct ft_tuple *tuple, char text[FT_TUPLE_TEXT_BYTES]);

#endif
