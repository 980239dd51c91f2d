// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/packet.h"

#include "tests/unit/packet_bytes.h"

/* Packets that go by SRv6: the addresses are spelled out here, as RFC 8754, 8986 and 9800 have
 * them at each hop. */

enum { NEXT_IPV4 = 4, NEXT_UDP = 17, NEXT_IPV6 = 41, NEXT_ROUTING = 43, NEXT_ETHERNET = 143 };

#define INNER_BYTES (sizeof(udp) + sizeof(bth))
#define SRH_BYTES   (8 + 3 * 16)
#define HEAD_BYTES  (14 + 40)

static void put_ip(struct ft_writer *w, const char *text)
{
    struct ft_ip ip;

    ck_assert_int_eq(ft_ip_parse(text, &ip), 0);
    ft_write_bytes(w, ip.b, sizeof(ip.b));
}

static void head(struct ft_writer *w, uint8_t next, size_t payload, const char *dst)
{
    start(w, 0x86dd);
    ft_write_be32(w, 0x60000000);
    put_be16(w, (uint16_t)payload);
    ft_write_u8(w, next);
    ft_write_u8(w, 61);
    put_ip(w, "fd00:a::1");
    put_ip(w, dst);
}

/* Three segments, the last one first: RFC 8754 section 2. */
static void routing(struct ft_writer *w, uint8_t next, uint8_t segments_left)
{
    const uint8_t fixed[8] = {next, (SRH_BYTES - 8) / 8, 4, segments_left, 2};

    ADD(w, fixed);
    put_ip(w, "fd00:b::3");
    put_ip(w, "fd00:b::2");
    put_ip(w, "fd00:b::1");
}

static void inside(struct ft_writer *w, uint8_t next)
{
    if (next == NEXT_ETHERNET) {
        ADD(w, ethernet);
        put_be16(w, 0x86dd);
    }
    if (next == NEXT_IPV4)
        ADD(w, ipv4);
    else if (next != NEXT_UDP)
        ADD(w, ipv6);
    ADD(w, udp);
    ADD(w, bth);
}

static size_t inside_bytes(uint8_t next)
{
    const size_t heads[] = {[NEXT_IPV4] = sizeof(ipv4),
                            [NEXT_IPV6] = sizeof(ipv6),
                            [NEXT_ETHERNET] = 14 + sizeof(ipv6)};

    return INNER_BYTES + heads[next];
}

static void outer_is(const struct ft_packet *k, const char *text)
{
    char got[FT_TUPLE_TEXT_BYTES];

    ck_assert(k->has_outer);
    ft_tuple_format(&k->outer, got);
    ck_assert_str_eq(got, text);
}

/* A micro-SID container in the address, and no more (RFC 8986 section 5.2, RFC 9800 section 4.1):
 * switches shift it, the flow inside stays. */
START_TEST(a_container_around_a_flow)
{
    static const struct {
        const char *dst, *outer;
    } hops[] = {
        {"fc00:0:11:21:13:e001::", "[fd00:a::1]:0-[fc00:0:11:21:13:e001::]:0/"},
        {"fc00:0:21:13:e001::", "[fd00:a::1]:0-[fc00:0:21:13:e001::]:0/"},
        {"fc00:0:13:e001::", "[fd00:a::1]:0-[fc00:0:13:e001::]:0/"},
    };
    static const uint8_t nexts[] = {NEXT_IPV4, NEXT_IPV6, NEXT_ETHERNET};

    for (size_t i = 0; i < COUNT(hops) * COUNT(nexts); i++) {
        uint8_t next = nexts[i % COUNT(nexts)];
        char outer[FT_TUPLE_TEXT_BYTES];
        struct ft_writer w;
        struct ft_packet k;

        head(&w, next, inside_bytes(next), hops[i / COUNT(nexts)].dst);
        inside(&w, next);
        ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
        tuple_is(&k, next == NEXT_IPV4 ? "10.0.1.1:49441-10.0.3.1:4791"
                                       : "[fd00::1]:49441-[fd00::2]:4791");
        snprintf(outer, sizeof(outer), "%s%u", hops[i / COUNT(nexts)].outer, next);
        outer_is(&k, outer);
        ck_assert_int_eq(k.bth, FT_BTH_DATA);
        ck_assert_uint_eq(k.dst_qp, 17);
        ck_assert_uint_eq(k.ttl, 61);
    }
}
END_TEST

/* The same address as a flow's own, at each hop: one flow. In a header around a flow it names
 * nothing. */
START_TEST(a_container_of_a_flow)
{
    static const char *const hops[] = {"fc00:0:11:21:13:105::", "fc00:0:13:105::", "fc00:0:105::"};
    struct ft_usid_blocks blocks = {.local = FT_USID_LOCAL}, none = {.count = 0};
    struct ft_packet k;
    struct ft_writer w;

    ck_assert_int_eq(ft_usid_block_parse("fc00::/32", &blocks.list[blocks.count++]), 0);
    for (size_t i = 0; i < COUNT(hops); i++) {
        char own[FT_TUPLE_TEXT_BYTES];

        head(&w, NEXT_UDP, INNER_BYTES, hops[i]);
        inside(&w, NEXT_UDP);
        ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
        snprintf(own, sizeof(own), "[fd00:a::1]:49441-[%s]:4791", hops[i]);
        ck_assert_int_eq(ft_packet_name(&none, &k), FT_USID_NONE);
        tuple_is(&k, own);
        ck_assert(!k.source_routed);
        ck_assert_int_eq(ft_packet_name(&blocks, &k), FT_USID_KNOWN);
        ck_assert(k.source_routed == (i < 2)); /* as it arrives it may be either */
        tuple_is(&k, "[fd00:a::1]:49441-[fc00:0:105::]:4791");
    }
    head(&w, NEXT_IPV6, inside_bytes(NEXT_IPV6), hops[0]);
    inside(&w, NEXT_IPV6);
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
    ck_assert_int_eq(ft_packet_name(&blocks, &k), FT_USID_NONE);
    tuple_is(&k, "[fd00::1]:49441-[fd00::2]:4791");
}
END_TEST

/* Behind a segment routing header, cut anywhere: the flow inside, or none. */
START_TEST(segments_around_a_flow)
{
    const size_t ports = HEAD_BYTES + SRH_BYTES + sizeof(ipv6) + 4;
    struct ft_writer w;

    head(&w, NEXT_ROUTING, SRH_BYTES + inside_bytes(NEXT_IPV6), "fd00:b::2");
    routing(&w, NEXT_IPV6, 1);
    inside(&w, NEXT_IPV6);
    for (size_t n = HEAD_BYTES; n <= w.len; n++) {
        struct ft_packet k;
        enum ft_packet_status status = decode(FT_LINK_ETHERNET, w.bytes, n, &k);

        if (n < ports) {
            ck_assert_int_ne(status, FT_PACKET_OK);
            ck_assert_int_ne(status, FT_PACKET_BAD);
            continue;
        }
        ck_assert_int_eq(status, FT_PACKET_OK);
        tuple_is(&k, "[fd00::1]:49441-[fd00::2]:4791");
        outer_is(&k, "[fd00:a::1]:0-[fd00:b::2]:0/41"); /* what switches on the way hash */
        ck_assert_uint_eq(k.dst_qp, n < ports + 4 + 12 ? 0 : 17);
    }
    ft_writer_free(&w);
}
END_TEST

/* A flow with segments of its own is one and the same at every hop. */
START_TEST(segments_of_a_flow)
{
    static const char *const at[] = {"fd00:b::3", "fd00:b::2", "fd00:b::1", "fd00:b::9"};
    const size_t ports = HEAD_BYTES + SRH_BYTES + 4;

    /* 3 segments left of 3: the first one's is not in the list, as in H.Encaps.Red */
    for (uint8_t left = 0; left < COUNT(at); left++) {
        struct ft_writer w;

        head(&w, NEXT_ROUTING, SRH_BYTES + INNER_BYTES, at[left]);
        routing(&w, NEXT_UDP, left);
        inside(&w, NEXT_UDP);
        for (size_t n = HEAD_BYTES; n <= w.len; n++) {
            struct ft_packet k;

            ck_assert_int_eq(decode(FT_LINK_ETHERNET, w.bytes, n, &k),
                             n < ports ? FT_PACKET_SHORT : FT_PACKET_OK);
            if (n < ports)
                continue;
            tuple_is(&k, "[fd00:a::1]:49441-[fd00:b::3]:4791");
            ck_assert(!k.has_outer);
        }
        ft_writer_free(&w);
    }
}
END_TEST

/* No router forwards these (RFC 8754 section 4.3.1.1); of other types the destination is that of
 * the header. */
START_TEST(headers_that_cannot_be)
{
    static const struct {
        uint8_t words, type, left, last;
        enum ft_packet_status status;
    } cases[] = {
        {6, 4, 4, 2, FT_PACKET_BAD}, /* more left than there are */
        {6, 4, 1, 3, FT_PACKET_BAD}, /* more than the header holds */
        {6, 4, 1, 255, FT_PACKET_BAD}, {6, 4, 255, 255, FT_PACKET_BAD},
        {6, 4, 1, 0, FT_PACKET_OK}, /* one, and a TLV */
        {6, 3, 4, 2, FT_PACKET_OK},    {6, 0, 1, 0, FT_PACKET_OK},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct ft_writer w;
        struct ft_packet k;

        head(&w, NEXT_ROUTING, SRH_BYTES + INNER_BYTES, "fd00:b::7");
        routing(&w, NEXT_UDP, cases[i].left);
        w.bytes[HEAD_BYTES + 1] = cases[i].words;
        w.bytes[HEAD_BYTES + 2] = cases[i].type;
        w.bytes[HEAD_BYTES + 4] = cases[i].last;
        inside(&w, NEXT_UDP);
        ck_assert_int_eq(decode_frame(&w, &k), cases[i].status);
        if (cases[i].status == FT_PACKET_OK)
            tuple_is(&k, cases[i].type == 4 ? "[fd00:a::1]:49441-[fd00:b::3]:4791"
                                            : "[fd00:a::1]:49441-[fd00:b::7]:4791");
    }
    /* no room for a segment */
    {
        const uint8_t empty[8] = {NEXT_UDP, 0, 4, 1};
        struct ft_writer w;
        struct ft_packet k;

        head(&w, NEXT_ROUTING, sizeof(empty) + INNER_BYTES, "fd00:b::7");
        ADD(&w, empty);
        inside(&w, NEXT_UDP);
        ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_BAD);
    }
}
END_TEST

FT_UNIT_MAIN("srv6", a_container_around_a_flow, a_container_of_a_flow, segments_around_a_flow,
             segments_of_a_flow, headers_that_cannot_be)
