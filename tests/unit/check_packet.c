// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/packet.h"

#include "tests/unit/packet_bytes.h"

START_TEST(roce_over_ipv4)
{
    struct ft_writer w;
    struct ft_packet k;

    roce4(&w);
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
    tuple_is(&k, "10.0.1.1:49441-10.0.3.1:4791");
    ck_assert_uint_eq(k.dscp, 26);
    ck_assert_uint_eq(k.ecn, 3);
    ck_assert_uint_eq(k.ip_bytes, 64);
    ck_assert_uint_eq(k.ttl, ipv4[8]);
    ck_assert_int_eq(k.bth, FT_BTH_DATA);
    ck_assert_uint_eq(k.opcode, 6);
    ck_assert_uint_eq(k.dst_qp, 17);
    ck_assert_uint_eq(k.psn, 0xb7c540);
}
END_TEST

START_TEST(roce_over_ipv6)
{
    struct ft_writer w;
    struct ft_packet k;

    roce6(&w);
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
    tuple_is(&k, "[fd00::1]:49441-[fd00::2]:4791");
    ck_assert_uint_eq(k.dscp, 26);
    ck_assert_uint_eq(k.ecn, 3);
    ck_assert_uint_eq(k.ip_bytes, 84);
    ck_assert_uint_eq(k.ttl, 64);
    ck_assert_uint_eq(k.flow_label, 0xabcde);
    ck_assert_int_eq(k.bth, FT_BTH_DATA);
    ck_assert_uint_eq(k.dst_qp, 17);
}
END_TEST

START_TEST(vlan_tags)
{
    static const uint8_t tag[] = {0x81, 0, 0, 100}, outer[] = {0x88, 0xa8, 0, 7},
                         old[] = {0x91, 0, 0, 7};
    static const uint8_t type[] = {0x08, 0x00};
    struct ft_writer w;
    struct ft_packet k;

    for (int i = 0; i < 3; i++) {
        ft_writer_init(&w, 4096);
        ADD(&w, ethernet);
        if (i == 1)
            ADD(&w, outer);
        if (i == 2)
            ADD(&w, old);
        ADD(&w, tag);
        ADD(&w, type);
        ADD(&w, ipv4);
        ADD(&w, udp);
        ADD(&w, bth);
        ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
        tuple_is(&k, "10.0.1.1:49441-10.0.3.1:4791");
        ck_assert_uint_eq(k.dst_qp, 17);
    }
}
END_TEST

START_TEST(other_links)
{
    static const uint8_t sll[16] = {[14] = 0x08}, sll2[20] = {0x08};
    struct ft_writer w;
    struct ft_packet k;

    roce4(&w);
    ck_assert_int_eq(decode(FT_LINK_IPV4, w.bytes + 14, w.len - 14, &k), FT_PACKET_OK);
    ck_assert_int_eq(decode(FT_LINK_RAW, w.bytes + 14, w.len - 14, &k), FT_PACKET_OK);
    tuple_is(&k, "10.0.1.1:49441-10.0.3.1:4791");
    ck_assert_int_eq(decode(FT_LINK_IPV6, w.bytes + 14, w.len - 14, &k), FT_PACKET_BAD);
    ck_assert_int_eq(decode(FT_LINK_RAW, w.bytes, w.len, &k), FT_PACKET_UNKNOWN);
    ft_writer_free(&w);
    roce6(&w);
    ck_assert_int_eq(decode(FT_LINK_RAW, w.bytes + 14, w.len - 14, &k), FT_PACKET_OK);
    tuple_is(&k, "[fd00::1]:49441-[fd00::2]:4791");
    ck_assert_int_eq(decode(FT_LINK_IPV4, w.bytes + 14, w.len - 14, &k), FT_PACKET_BAD);
    ft_writer_free(&w);

    for (int i = 0; i < 2; i++) {
        ft_writer_init(&w, 4096);
        ft_write_bytes(&w, i ? sll2 : sll, i ? sizeof(sll2) : sizeof(sll));
        ADD(&w, ipv4);
        ADD(&w, udp);
        ADD(&w, bth);
        ck_assert_int_eq(decode(i ? FT_LINK_COOKED2 : FT_LINK_COOKED, w.bytes, w.len, &k),
                         FT_PACKET_OK);
        tuple_is(&k, "10.0.1.1:49441-10.0.3.1:4791");
        ft_writer_free(&w);
    }
}
END_TEST

/* However much is cut off: the right tuple or none, and the right BTH or none. */
static void cut_everywhere(struct ft_writer *w, size_t tuple_at, size_t bth_at)
{
    struct ft_packet whole, k;

    ck_assert_int_eq(decode(FT_LINK_ETHERNET, w->bytes, w->len, &whole), FT_PACKET_OK);
    for (size_t n = 0; n <= w->len; n++) {
        enum ft_packet_status status;

        memset(&k, 0xee, sizeof(k));
        status = decode(FT_LINK_ETHERNET, w->bytes, n, &k);
        ck_assert_int_eq(status, n < tuple_at ? FT_PACKET_SHORT : FT_PACKET_OK);
        if (status != FT_PACKET_OK) {
            for (size_t i = 0; i < sizeof(k); i++)
                ck_assert_uint_eq(((uint8_t *)&k)[i], 0xee);
            continue;
        }
        ck_assert(ft_tuple_equal(&k.tuple, &whole.tuple));
        ck_assert_uint_eq(k.ip_bytes, whole.ip_bytes);
        ck_assert_int_eq(k.bth, n < bth_at ? FT_BTH_NONE : FT_BTH_DATA);
        ck_assert_uint_eq(k.dst_qp, n < bth_at ? 0 : 17);
    }
    ft_writer_free(w);
}

START_TEST(cut_heads)
{
    struct ft_writer w;

    roce4(&w);
    cut_everywhere(&w, 14 + 20 + 4, 14 + 20 + 8 + 12);
    roce6(&w);
    cut_everywhere(&w, 14 + 40 + 4, 14 + 40 + 8 + 12);
}
END_TEST

/* Where it is cut off, or there is none, nothing is said of credits. */
START_TEST(syndromes_of_acks)
{
    static const uint8_t opcodes[] = {0x11, 0xb1, 0x06, 0x10, 0x81};
    const size_t bth_at = 14 + 20 + 8;
    struct ft_writer w;
    struct ft_packet k;

    for (size_t i = 0; i < sizeof(opcodes); i++)
        for (unsigned syndrome = 0; syndrome < 256; syndrome++) {
            bool ack = i < 2;

            roce4(&w);
            w.bytes[bth_at] = opcodes[i];
            w.bytes[bth_at + 12] = (uint8_t)syndrome;
            ck_assert_int_eq(decode(FT_LINK_ETHERNET, w.bytes, bth_at + 12, &k), FT_PACKET_OK);
            ck_assert(k.bth != FT_BTH_NONE && k.syndrome == FT_AETH_PLAIN);
            ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
            ck_assert_uint_eq(k.syndrome, ack ? syndrome : FT_AETH_PLAIN);
            ck_assert(FT_AETH_IS_NO_CREDIT(k.syndrome) == (ack && syndrome == 0));
        }
}
END_TEST

START_TEST(ipv4_options)
{
    struct ft_writer w;
    struct ft_packet k;

    start(&w, 0x0800);
    ADD(&w, ipv4);
    ft_write_be32(&w, 0x94040000); /* router alert */
    ADD(&w, udp);
    ADD(&w, bth);
    w.bytes[14] = 0x46;
    w.bytes[14 + 3] = 0x44;
    cut_everywhere(&w, 14 + 24 + 4, 14 + 24 + 8 + 12);

    roce4(&w);
    w.bytes[14] = 0x44; /* less than a header */
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_BAD);
}
END_TEST

START_TEST(fragments)
{
    struct ft_writer w;
    struct ft_packet k;

    roce4(&w); /* the first one: the UDP length counts what is in the others */
    w.bytes[14 + 6] = 0x20;
    w.bytes[14 + 20 + 4] = 0x20;
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
    tuple_is(&k, "10.0.1.1:49441-10.0.3.1:4791");
    ck_assert_uint_eq(k.dst_qp, 17);

    roce4(&w); /* a later one: its first bytes are no ports */
    w.bytes[14 + 7] = 8;
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_UNKNOWN);

    for (int later = 0; later < 2; later++) {
        static const uint8_t fragment[] = {17, 0, 0, 1, 0, 0, 0, 9};

        start(&w, 0x86dd);
        ADD(&w, ipv6);
        ADD(&w, fragment);
        ADD(&w, udp);
        ADD(&w, bth);
        w.bytes[14 + 5] = 0x34;
        w.bytes[14 + 6] = 44;
        w.bytes[14 + 40 + 8 + 4] = 0x20;
        w.bytes[14 + 40 + 3] = later ? 8 : 1;
        if (!later) {
            ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
            tuple_is(&k, "[fd00::1]:49441-[fd00::2]:4791");
        } else {
            ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_UNKNOWN);
        }
    }
}
END_TEST

START_TEST(ipv6_extensions)
{
    static const uint8_t hop[8] = {60, 0}, destination[16] = {43, 1}, routing[8] = {51, 0},
                         ah[12] = {17, 1};
    struct ft_writer w;
    struct ft_packet k;

    start(&w, 0x86dd);
    ADD(&w, ipv6);
    ADD(&w, hop);
    ADD(&w, destination);
    ADD(&w, routing);
    ADD(&w, ah);
    ADD(&w, udp);
    ADD(&w, bth);
    w.bytes[14 + 5] = 44 + 44;
    w.bytes[14 + 6] = 0;
    cut_everywhere(&w, 14 + 40 + 44 + 4, 14 + 40 + 44 + 8 + 12);

    /* an extension longer than the packet */
    start(&w, 0x86dd);
    ADD(&w, ipv6);
    ADD(&w, destination);
    ADD(&w, udp);
    w.bytes[14 + 5] = 24;
    w.bytes[14 + 6] = 60;
    w.bytes[14 + 40 + 1] = 9;
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_BAD);

    /* one after the other without end: bounded by the packet */
    start(&w, 0x86dd);
    ADD(&w, ipv6);
    for (int i = 0; i < 100; i++) {
        ft_write_be32(&w, 0x3c000000);
        ft_write_be32(&w, 0);
    }
    w.bytes[14 + 4] = 800 >> 8;
    w.bytes[14 + 5] = 800 & 0xff;
    w.bytes[14 + 6] = 60;
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_BAD);
}
END_TEST

START_TEST(padding_is_not_ports)
{
    struct ft_writer w;
    struct ft_packet k;

    roce4(&w); /* the IP header states 22 bytes: half a port, then padding */
    w.bytes[14 + 3] = 22;
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_BAD);
    roce4(&w); /* a UDP datagram of 8 bytes: what follows is no BTH */
    w.bytes[14 + 3] = 28;
    w.bytes[14 + 20 + 5] = 8;
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
    ck_assert_int_eq(k.bth, FT_BTH_NONE);
}
END_TEST

START_TEST(contradictions)
{
    struct ft_writer w;
    struct ft_packet k;

    roce4(&w);
    w.bytes[14] = 0x65;
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_BAD);
    roce4(&w);
    w.bytes[14 + 3] = 19; /* less than its header */
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_BAD);
    roce4(&w);
    w.bytes[14 + 20 + 5] = 7; /* UDP less than its header */
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_BAD);
    roce4(&w);
    w.bytes[14 + 20 + 5] = 0x2d; /* UDP more than IP */
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_BAD);
    roce6(&w);
    w.bytes[14] = 0x46;
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_BAD);
}
END_TEST

START_TEST(other_protocols)
{
    struct ft_writer w;
    struct ft_packet k;

    start(&w, 0x0806);
    ft_write_be64(&w, 0);
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_UNKNOWN);
    roce4(&w);
    w.bytes[14 + 9] = 1; /* ICMP */
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_UNKNOWN);
    roce6(&w);
    w.bytes[14 + 6] = 59; /* nothing follows */
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_UNKNOWN);
    roce4(&w);
    w.bytes[14 + 9] = 6;
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
    tuple_is(&k, "10.0.1.1:49441-10.0.3.1:4791/6");
    ck_assert_int_eq(k.bth, FT_BTH_NONE);
    roce4(&w);
    w.bytes[14 + 20 + 3]++; /* port 4792 */
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
    ck_assert_int_eq(k.bth, FT_BTH_NONE);
    ck_assert_uint_eq(k.dst_qp, 0);
    roce4(&w);
    w.bytes[14 + 28 + 1] = 1; /* a BTH of another version */
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
    ck_assert_int_eq(k.bth, FT_BTH_NONE);
}
END_TEST

START_TEST(opcode_classes)
{
    static const struct {
        uint8_t first, last;
        enum ft_bth_class class;
    } rows[] = {
        {0x00, 0x0b, FT_BTH_DATA}, {0x0c, 0x0c, FT_BTH_ACK},  {0x0d, 0x10, FT_BTH_DATA},
        {0x11, 0x12, FT_BTH_ACK},  {0x13, 0x14, FT_BTH_DATA}, {0x15, 0x15, FT_BTH_NONE},
        {0x16, 0x17, FT_BTH_DATA}, {0x18, 0x1b, FT_BTH_NONE}, {0x1c, 0x1c, FT_BTH_ACK},
        {0x1d, 0x1d, FT_BTH_DATA}, {0x1e, 0x1f, FT_BTH_NONE}, {0x20, 0x2b, FT_BTH_DATA},
        {0x2c, 0x3f, FT_BTH_NONE}, {0x40, 0x4b, FT_BTH_DATA}, {0x4c, 0x4c, FT_BTH_ACK},
        {0x51, 0x52, FT_BTH_ACK},  {0x60, 0x63, FT_BTH_NONE}, {0x64, 0x65, FT_BTH_DATA},
        {0x66, 0x80, FT_BTH_NONE}, {0x81, 0x81, FT_BTH_CNP},  {0x82, 0x9f, FT_BTH_NONE},
        {0xa0, 0xab, FT_BTH_DATA}, {0xac, 0xac, FT_BTH_ACK},  {0xb1, 0xb2, FT_BTH_ACK},
        {0xc0, 0xff, FT_BTH_NONE},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        for (unsigned op = rows[i].first; op <= rows[i].last; op++)
            ck_assert_msg(ft_bth_class_of((uint8_t)op) == rows[i].class, "opcode 0x%02x", op);
}
END_TEST

/* IBTA section 9.7.1: of RC, UC and XRC the sender's, a READ's and the peer's; of RD and UD they
 * are of several queue pairs. */
START_TEST(whose_packet_numbers)
{
    static const struct {
        uint8_t first, last;
        enum ft_psn_kind kind;
    } rows[] = {
        {0x00, 0x0b, FT_PSN_REQUEST}, {0x0c, 0x0c, FT_PSN_READ},    {0x0d, 0x10, FT_PSN_RESPONSE},
        {0x11, 0x12, FT_PSN_NONE},    {0x13, 0x14, FT_PSN_REQUEST}, {0x15, 0x15, FT_PSN_NONE},
        {0x16, 0x17, FT_PSN_REQUEST}, {0x18, 0x1c, FT_PSN_NONE},    {0x1d, 0x1d, FT_PSN_REQUEST},
        {0x1e, 0x1f, FT_PSN_NONE},    {0x20, 0x2b, FT_PSN_REQUEST}, {0x31, 0x3f, FT_PSN_NONE},
        {0x40, 0x4b, FT_PSN_OTHER},   {0x4c, 0x4c, FT_PSN_NONE},    {0x4d, 0x50, FT_PSN_OTHER},
        {0x60, 0x63, FT_PSN_NONE},    {0x64, 0x65, FT_PSN_OTHER},   {0x66, 0x9f, FT_PSN_NONE},
        {0xa0, 0xab, FT_PSN_REQUEST}, {0xac, 0xac, FT_PSN_READ},    {0xad, 0xb0, FT_PSN_RESPONSE},
        {0xb1, 0xb2, FT_PSN_NONE},    {0xc0, 0xff, FT_PSN_NONE},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        for (unsigned op = rows[i].first; op <= rows[i].last; op++)
            ck_assert_msg(ft_psn_kind_of((uint8_t)op) == rows[i].kind, "opcode 0x%02x", op);
}
END_TEST

START_TEST(udp_payload)
{
    struct ft_writer w;
    struct ft_packet k;
    struct ft_reader r, payload;

    roce4(&w);
    ADD(&w, ethernet); /* padding behind the datagram */
    ft_reader_init(&r, w.bytes, w.len);
    ck_assert_int_eq(ft_packet_udp_payload(FT_LINK_ETHERNET, &r, &k, &payload), FT_PACKET_OK);
    tuple_is(&k, "10.0.1.1:49441-10.0.3.1:4791");
    ck_assert_uint_eq(ft_reader_left(&payload), sizeof(bth));
    ck_assert_mem_eq(payload.pos, bth, sizeof(bth));

    ft_reader_init(&r, w.bytes, 14 + 28 + 5); /* cut off */
    ck_assert_int_eq(ft_packet_udp_payload(FT_LINK_ETHERNET, &r, &k, &payload), FT_PACKET_OK);
    ck_assert_uint_eq(ft_reader_left(&payload), 5);

    w.bytes[14 + 9] = 6;
    ft_reader_init(&r, w.bytes, w.len);
    ck_assert_int_eq(ft_packet_udp_payload(FT_LINK_ETHERNET, &r, &k, &payload), FT_PACKET_UNKNOWN);
    ft_writer_free(&w);
}
END_TEST

START_TEST(mpls_label_stacks)
{
    static const uint8_t control[] = {0, 0, 0, 7}, type[] = {0x08, 0}, again[] = {0x88, 0x47};
    struct ft_writer w;
    struct ft_packet k;

    for (int labels = 0; labels < 4; labels++) {
        start(&w, labels & 1 ? 0x8847 : 0x8848);
        for (int i = 0; i < labels; i++)
            ADD(&w, label);
        ADD(&w, bottom);
        ADD(&w, ipv4);
        ADD(&w, udp);
        ADD(&w, bth);
        ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_OK);
        tuple_is(&k, "10.0.1.1:49441-10.0.3.1:4791");
        ck_assert_uint_eq(k.dst_qp, 17);
        ck_assert(!k.has_outer);
    }
    for (int nested = 0; nested < 2; nested++) { /* a pseudowire, and one within another */
        start(&w, 0x8847);
        ADD(&w, bottom);
        ADD(&w, control);
        ADD(&w, ethernet);
        if (nested) {
            ADD(&w, again);
            ADD(&w, bottom);
        } else {
            ADD(&w, type);
        }
        ADD(&w, ipv4);
        ADD(&w, udp);
        ck_assert_int_eq(decode_frame(&w, &k), nested ? FT_PACKET_UNKNOWN : FT_PACKET_OK);
    }
    start(&w, 0x8847); /* no bottom */
    ADD(&w, label);
    ADD(&w, label);
    ck_assert_int_eq(decode_frame(&w, &k), FT_PACKET_SHORT);
}
END_TEST

static void same_packet(const struct ft_packet *a, const struct ft_packet *b)
{
    ck_assert(ft_tuple_equal(&a->tuple, &b->tuple));
    ck_assert_uint_eq(a->ecn, b->ecn);
    ck_assert_uint_eq(a->dscp, b->dscp);
    ck_assert_uint_eq(a->ttl, b->ttl);
    ck_assert_uint_eq(a->ip_bytes, b->ip_bytes);
    ck_assert_uint_eq(a->flow_label, b->flow_label);
    ck_assert_int_eq(a->bth, b->bth);
    ck_assert_uint_eq(a->opcode, b->opcode);
    ck_assert_uint_eq(a->dst_qp, b->dst_qp);
    ck_assert_uint_eq(a->psn, b->psn);
    ck_assert_int_eq(a->has_outer, b->has_outer);
    ck_assert_int_eq(a->has_vni, b->has_vni);
}

/* The short cut for plain frames is taken behind an Ethernet head only: without the head the
 * general way must say the same. */
static void by_both_decoders(const uint8_t *bytes, size_t len)
{
    struct ft_packet k, general;
    struct ft_reader r, payload, general_payload;
    enum ft_packet_status status = decode(FT_LINK_ETHERNET, bytes, len, &k);

    ck_assert_int_eq(decode(FT_LINK_IPV4, bytes + 14, len - 14, &general), status);
    if (status == FT_PACKET_OK)
        same_packet(&k, &general);
    ft_reader_init(&r, bytes, len);
    status = ft_packet_udp_payload(FT_LINK_ETHERNET, &r, &k, &payload);
    ft_reader_init(&r, bytes + 14, len - 14);
    ck_assert_int_eq(ft_packet_udp_payload(FT_LINK_IPV4, &r, &general, &general_payload), status);
    if (status != FT_PACKET_OK)
        return;
    same_packet(&k, &general);
    ck_assert_uint_eq(ft_reader_left(&payload), ft_reader_left(&general_payload));
    ck_assert(ft_reader_left(&payload) == 0 || payload.pos == general_payload.pos);
}

START_TEST(plain_frames_are_no_special_case)
{
    struct ft_writer w;

    roce4(&w);
    for (size_t at = 14; at < w.len; at++)
        for (unsigned v = 0; v <= UINT8_MAX; v++) {
            uint8_t was = w.bytes[at];

            w.bytes[at] = (uint8_t)v;
            by_both_decoders(w.bytes, w.len);
            w.bytes[at] = was;
        }
    for (size_t len = 14; len <= w.len; len++)
        by_both_decoders(w.bytes, len);
    ft_writer_free(&w);
}
END_TEST

FT_UNIT_MAIN("packet", plain_frames_are_no_special_case, mpls_label_stacks, roce_over_ipv4,
             roce_over_ipv6, vlan_tags, other_links, cut_heads, ipv4_options, fragments,
             ipv6_extensions, padding_is_not_ports, contradictions, other_protocols,
             syndromes_of_acks, opcode_classes, whose_packet_numbers, udp_payload)
