// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/packet.h"

#include "tests/unit/packet_bytes.h"

/* An outer IPv4 header from 192.0.2.1 to 192.0.2.2, for a payload of that length. */
static void outer_ip(struct ft_writer *w, uint8_t proto, size_t payload, uint8_t tos)
{
    put_be16(w, (uint16_t)(0x4500 | tos));
    put_be16(w, (uint16_t)(20 + payload));
    ft_write_be32(w, 0);
    ft_write_be32(w, 64u << 24 | (uint32_t)proto << 16);
    ft_write_be32(w, 0xc0000201);
    ft_write_be32(w, 0xc0000202);
}

#define INNER_BYTES (sizeof(ipv4) + sizeof(udp) + sizeof(bth))

static void vxlan(struct ft_writer *w, uint8_t flags, uint8_t tos)
{
    size_t payload = 8 + 8 + sizeof(ethernet) + 2 + INNER_BYTES;

    start(w, 0x0800);
    outer_ip(w, 17, payload, tos);
    ft_write_be32(w, 55555u << 16 | 4789);
    ft_write_be32(w, (uint32_t)payload << 16);
    ft_write_be32(w, (uint32_t)flags << 24);
    ft_write_be32(w, 5001 << 8);
    ADD(w, ethernet);
    put_be16(w, 0x0800);
    ADD(w, ipv4);
    ADD(w, udp);
    ADD(w, bth);
}

static void outer_is(const struct ft_packet *k, const char *text)
{
    char got[FT_TUPLE_TEXT_BYTES];

    ck_assert(k->has_outer);
    ft_tuple_format(&k->outer, got);
    ck_assert_str_eq(got, text);
}

START_TEST(vxlan_shows_both_flows)
{
    struct ft_writer w;
    struct ft_packet k;

    vxlan(&w, 0x08, 2);
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
    tuple_is(&k, "10.0.1.1:49441-10.0.3.1:4791");
    outer_is(&k, "192.0.2.1:55555-192.0.2.2:4789");
    ck_assert(k.has_vni);
    ck_assert_uint_eq(k.vni, 5001);
    ck_assert_int_eq(k.bth, FT_BTH_DATA);
    ck_assert_uint_eq(k.dst_qp, 17);
    ck_assert_uint_eq(k.ecn, 3); /* the inner header's */
    vxlan(&w, 0, 2);             /* no VNI: no VXLAN */
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
    tuple_is(&k, "192.0.2.1:55555-192.0.2.2:4789");
    ck_assert(!k.has_outer);
}
END_TEST

/* Congestion marked on the way is in the outer header. */
START_TEST(a_mark_on_the_tunnel_counts)
{
    struct ft_writer w;
    struct ft_packet k;

    vxlan(&w, 0x08, 3);
    w.bytes[14 + 20 + 8 + 8 + 14 + 1] = 0x02;
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
    ck_assert_uint_eq(k.ecn, 3);
    vxlan(&w, 0x08, 2);
    w.bytes[14 + 20 + 8 + 8 + 14 + 1] = 0x02;
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
    ck_assert_uint_eq(k.ecn, 2);
}
END_TEST

START_TEST(the_ttl_is_the_tunnels)
{
    struct ft_writer w;
    struct ft_packet k;

    vxlan(&w, 0x08, 2);
    w.bytes[14 + 8] = 61;
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
    ck_assert(k.has_outer);
    ck_assert_uint_eq(k.ttl, 61);
}
END_TEST

/* Cut anywhere: the tunnel's own flow, then both; never a wrong one. */
START_TEST(a_cut_tunnel_is_its_outer_flow)
{
    const size_t inner_ports = 14 + 20 + 8 + 8 + 14 + 20 + 4;
    struct ft_writer w;

    vxlan(&w, 0x08, 2);
    for (size_t n = 0; n <= w.len; n++) {
        struct ft_packet k;
        enum ft_packet_status status = decode(FT_LINK_ETHERNET, w.bytes, n, &k);

        if (n < 14 + 20 + 4) {
            ck_assert_int_eq(status, FT_PACKET_SHORT);
            continue;
        }
        ck_assert_int_eq(status, FT_PACKET_OK);
        ck_assert_int_eq(k.has_outer, n >= inner_ports);
        tuple_is(&k, n >= inner_ports ? "10.0.1.1:49441-10.0.3.1:4791"
                                      : "192.0.2.1:55555-192.0.2.2:4789");
    }
    ft_writer_free(&w);
}
END_TEST

START_TEST(gre_and_ip_in_ip)
{
    static const struct {
        uint16_t flags, type;
        size_t fields;
        enum ft_packet_status status;
    } gre[] = {{0, 0x0800, 0, FT_PACKET_OK},       {0x2000, 0x0800, 4, FT_PACKET_OK},
               {0xb000, 0x0800, 12, FT_PACKET_OK}, {0, 0x6558, 14, FT_PACKET_OK},
               {1, 0x0800, 0, FT_PACKET_UNKNOWN},  {0x4000, 0x0800, 0, FT_PACKET_UNKNOWN},
               {0, 0x880b, 0, FT_PACKET_UNKNOWN}};
    struct ft_writer w;
    struct ft_packet k;

    for (size_t i = 0; i < COUNT(gre); i++) {
        start(&w, 0x0800);
        outer_ip(&w, 47, 4 + gre[i].fields + INNER_BYTES, 0);
        put_be16(&w, gre[i].flags);
        put_be16(&w, gre[i].type);
        for (size_t n = 2; n < gre[i].fields; n++)
            ft_write_u8(&w, 0);
        if (gre[i].fields)
            put_be16(&w, 0x0800);
        ADD(&w, ipv4);
        ADD(&w, udp);
        ADD(&w, bth);
        ck_assert_int_eq(decode_frame(&w, &k), gre[i].status);
        if (gre[i].status != FT_PACKET_OK)
            continue;
        tuple_is(&k, "10.0.1.1:49441-10.0.3.1:4791");
        outer_is(&k, "192.0.2.1:0-192.0.2.2:0/47");
    }
    start(&w, 0x0800);
    outer_ip(&w, 4, INNER_BYTES, 0);
    ADD(&w, ipv4);
    ADD(&w, udp);
    ADD(&w, bth);
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
    outer_is(&k, "192.0.2.1:0-192.0.2.2:0/4");
    start(&w, 0x0800);
    outer_ip(&w, 41, sizeof(ipv6) + sizeof(udp) + sizeof(bth), 0);
    ADD(&w, ipv6);
    ADD(&w, udp);
    ADD(&w, bth);
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
    tuple_is(&k, "[fd00::1]:49441-[fd00::2]:4791");
    /* a tunnel in a tunnel is opened, one in that is not */
    for (size_t depth = 2; depth < 4; depth++) {
        start(&w, 0x0800);
        for (size_t left = depth; left > 0; left--)
            outer_ip(&w, 4, (left - 1) * 20 + INNER_BYTES, 0);
        ADD(&w, ipv4);
        ADD(&w, udp);
        ADD(&w, bth);
        ck_assert_int_eq(decode_frame(&w, &k), depth == 2 ? FT_PACKET_OK : FT_PACKET_UNKNOWN);
    }
}
END_TEST

/* An outer UDP flow from 192.0.2.1:55555 to a port of 192.0.2.2. */
static void outer_udp(struct ft_writer *w, uint16_t port, size_t payload, uint8_t tos)
{
    outer_ip(w, 17, 8 + payload, tos);
    put_be16(w, 55555);
    put_be16(w, port);
    ft_write_be32(w, (uint32_t)(8 + payload) << 16);
}

static void bridged(struct ft_writer *w)
{
    ADD(w, ethernet);
    put_be16(w, 0x0800);
}

static void roce_inside(struct ft_writer *w)
{
    ADD(w, ipv4);
    ADD(w, udp);
    ADD(w, bth);
}

/* Geneve (RFC 8926 section 3.4): version and length of options, flags, protocol, network. */
START_TEST(geneve)
{
    static const struct {
        uint32_t head;
        size_t options, ethernet;
        bool opened;
    } cases[] = {
        {0x00006558, 0, 14, true}, {0x03006558, 12, 14, true},
        {0x02400800, 8, 0, true},  {0x00800800, 0, 0, false}, /* control */
        {0x40000800, 0, 0, false},                            /* another version */
        {0x0000abcd, 0, 0, false},                            /* carries what is not read */
        {0x3f000800, 8, 0, false},                            /* options beyond the end */
    };
    struct ft_writer w;
    struct ft_packet k;

    for (size_t i = 0; i < COUNT(cases); i++) {
        start(&w, 0x0800);
        outer_udp(&w, 6081, 8 + cases[i].options + cases[i].ethernet + INNER_BYTES, 0);
        ft_write_be32(&w, cases[i].head);
        ft_write_be32(&w, 5001 << 8);
        for (size_t n = 0; n < cases[i].options; n++)
            ft_write_u8(&w, 0xff);
        if (cases[i].ethernet)
            bridged(&w);
        roce_inside(&w);
        ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
        ck_assert_int_eq(k.has_outer, cases[i].opened);
        if (!cases[i].opened) {
            tuple_is(&k, "192.0.2.1:55555-192.0.2.2:6081");
            continue;
        }
        tuple_is(&k, "10.0.1.1:49441-10.0.3.1:4791");
        outer_is(&k, "192.0.2.1:55555-192.0.2.2:6081");
        ck_assert(k.has_vni);
        ck_assert_uint_eq(k.vni, 5001);
        ck_assert_uint_eq(k.dst_qp, 17);
    }
}
END_TEST

/* draft-ietf-nvo3-vxlan-gpe section 3: flags R R Ver Ver I P B O, then a protocol. */
START_TEST(vxlan_gpe)
{
    static const struct {
        uint32_t head;
        bool ethernet, opened, vni;
    } cases[] = {
        {0x0c000003, true, true, true},    {0x0c000001, false, true, true},
        {0x04000001, false, true, false},  {0x08000000, true, true, true},
        {0x0d000001, false, false, false}, /* OAM */
        {0x1c000001, false, false, false}, /* another version */
        {0x0c000004, false, false, false}, /* NSH */
        {0x0c0000ff, false, false, false},
    };
    struct ft_writer w;
    struct ft_packet k;

    for (size_t i = 0; i < COUNT(cases); i++) {
        start(&w, 0x0800);
        outer_udp(&w, 4790, 8 + (cases[i].ethernet ? 14 : 0) + INNER_BYTES, 0);
        ft_write_be32(&w, cases[i].head);
        ft_write_be32(&w, 77 << 8);
        if (cases[i].ethernet)
            bridged(&w);
        roce_inside(&w);
        ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
        ck_assert_int_eq(k.has_outer, cases[i].opened);
        ck_assert_int_eq(k.has_vni, cases[i].vni);
        ck_assert_uint_eq(k.vni, cases[i].vni ? 77 : 0);
    }
}
END_TEST

START_TEST(mpls_in_udp_and_vxlan_of_linux)
{
    struct ft_writer w;
    struct ft_packet k;

    start(&w, 0x0800);
    outer_udp(&w, 6635, 8 + INNER_BYTES, 0);
    ADD(&w, label);
    ADD(&w, bottom);
    roce_inside(&w);
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
    tuple_is(&k, "10.0.1.1:49441-10.0.3.1:4791");
    outer_is(&k, "192.0.2.1:55555-192.0.2.2:6635");
    for (uint32_t odd = 0; odd < 3; odd++) {
        start(&w, 0x0800);
        outer_udp(&w, 8472, 8 + 14 + INNER_BYTES, 0);
        ft_write_be32(&w, 0x08000000 | (odd == 1));
        ft_write_be32(&w, 5 << 8 | (odd == 2));
        bridged(&w);
        roce_inside(&w);
        ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
        ck_assert_int_eq(k.has_outer, odd == 0);
    }
}
END_TEST

/* A tenant's VXLAN in the provider's: the inmost flow, beside what switches hash by. */
START_TEST(a_second_vxlan_is_opened)
{
    size_t inner = 8 + 14 + INNER_BYTES, second = 14 + 20 + 8 + inner;
    struct ft_writer w;

    start(&w, 0x0800);
    outer_udp(&w, 4789, 8 + second, 3);
    ft_write_be32(&w, 0x08000000);
    ft_write_be32(&w, 1 << 8);
    bridged(&w);
    outer_ip(&w, 17, 8 + inner, 0);
    w.bytes[w.len - 1] = 9;
    put_be16(&w, 44444);
    put_be16(&w, 4789);
    ft_write_be32(&w, (uint32_t)(8 + inner) << 16);
    ft_write_be32(&w, 0x08000000);
    ft_write_be32(&w, 2 << 8);
    bridged(&w);
    roce_inside(&w);
    for (size_t n = 14 + 20 + 4; n <= w.len; n++) {
        struct ft_packet k;

        ck_assert_int_eq(decode(FT_LINK_ETHERNET, w.bytes, n, &k), FT_PACKET_OK);
        if (n < 14 + 20 + 8 + 8 + 14 + 20 + 4) {
            tuple_is(&k, "192.0.2.1:55555-192.0.2.2:4789");
            ck_assert(!k.has_outer);
            continue;
        }
        outer_is(&k, "192.0.2.1:55555-192.0.2.2:4789");
        ck_assert_uint_eq(k.ecn, 3);
        if (n < w.len - sizeof(bth) - sizeof(udp) + 4) {
            tuple_is(&k, "192.0.2.1:44444-192.0.2.9:4789");
            ck_assert_uint_eq(k.vni, 1);
        } else {
            tuple_is(&k, "10.0.1.1:49441-10.0.3.1:4791");
            ck_assert_uint_eq(k.vni, 2);
        }
    }
    ft_writer_free(&w);
}
END_TEST

/* RFC 4302: two words and more, before UDP. */
START_TEST(authentication_headers_of_ipv4)
{
    static const uint8_t ah[16] = {17, 2, 0, 0, 0, 0, 1, 0};
    const size_t ports = 14 + 20 + sizeof(ah) + 4;
    struct ft_writer w;

    start(&w, 0x0800);
    ADD(&w, ipv4);
    ADD(&w, ah);
    ADD(&w, udp);
    ADD(&w, bth);
    w.bytes[14 + 3] = (uint8_t)(w.bytes[14 + 3] + sizeof(ah));
    w.bytes[14 + 9] = 51;
    for (size_t n = 14 + 20; n <= w.len; n++) {
        struct ft_packet k;

        ck_assert_int_eq(decode(FT_LINK_ETHERNET, w.bytes, n, &k),
                         n < ports ? FT_PACKET_SHORT : FT_PACKET_OK);
        if (n < ports)
            continue;
        tuple_is(&k, "10.0.1.1:49441-10.0.3.1:4791");
        ck_assert_uint_eq(k.dst_qp, n < ports + 4 + 12 ? 0 : 17);
    }
    w.bytes[14 + 20 + 1] = 200; /* longer than the packet */
    {
        struct ft_packet k;

        ck_assert_int_eq(decode(FT_LINK_ETHERNET, w.bytes, w.len, &k), FT_PACKET_BAD);
    }
    ft_writer_free(&w);
}
END_TEST

FT_UNIT_MAIN("tunnels", vxlan_shows_both_flows, a_mark_on_the_tunnel_counts, the_ttl_is_the_tunnels,
             a_cut_tunnel_is_its_outer_flow, gre_and_ip_in_ip, geneve, vxlan_gpe,
             mpls_in_udp_and_vxlan_of_linux, a_second_vxlan_is_opened,
             authentication_headers_of_ipv4)
