// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/sflow.h"

#include <string.h>

#include "tests/unit/sflow_bytes.h"
#include "tests/unit/unit.h"

START_TEST(head_and_compact_flow)
{
    struct ft_sflow_stats stats;
    struct ft_writer w;
    struct seen seen;
    char agent[FT_IP_TEXT_BYTES];
    const struct ft_sflow_flow *f = &seen.flow[0];

    datagram(&w, 1);
    roce_sample(&w, 1, 49);
    decode_ok(&w, &seen, &stats);
    ft_ip_format(&seen.head.agent, agent);
    ck_assert_str_eq(agent, "192.0.2.11");
    ck_assert_uint_eq(seen.head.sub_agent, 3);
    ck_assert_uint_eq(seen.head.sequence, 1000);
    ck_assert_uint_eq(seen.head.uptime_ms, 60000);
    ck_assert_uint_eq(seen.head.samples, 1);
    ck_assert_uint_eq(seen.flows, 1);
    ck_assert_uint_eq(f->sequence, 77);
    ck_assert_uint_eq(f->source_type, 2);
    ck_assert_uint_eq(f->source_index, 49);
    ck_assert_uint_eq(f->sampling_rate, 2048);
    ck_assert_uint_eq(f->sample_pool, 100000);
    ck_assert_uint_eq(f->drops, 5);
    ck_assert_int_eq(f->in.kind, FT_SFLOW_IF_INDEX);
    ck_assert_uint_eq(f->in.value, 1);
    ck_assert_int_eq(f->out.kind, FT_SFLOW_IF_INDEX);
    ck_assert_uint_eq(f->out.value, 49);
    ck_assert_uint_eq(f->frame_bytes, 1082);
    tuple_is(f, HEAD4_TEXT);
    ck_assert_uint_eq(f->packet.dst_qp, 17);
    ck_assert_uint_eq(f->packet.ecn, 2);
    ck_assert_uint_eq(stats.trailing, 0);
}
END_TEST

START_TEST(expanded_flow)
{
    static const uint32_t in[2] = {0, 0x7fffffff}, out[2] = {0, 0x01000002};
    struct ft_sflow_stats stats;
    struct ft_writer w;
    struct seen seen;
    size_t at;

    datagram(&w, 1);
    at = open_flow_expanded(&w, in, out, 1);
    raw_header(&w, 1, head4, sizeof(head4));
    close_part(&w, at);
    decode_ok(&w, &seen, &stats);
    ck_assert_uint_eq(seen.flow[0].source_type, 0);
    ck_assert_uint_eq(seen.flow[0].source_index, 0x01000031);
    ck_assert_uint_eq(seen.flow[0].in.value, 0x7fffffff);
    ck_assert_uint_eq(seen.flow[0].out.value, 0x01000002);
    tuple_is(&seen.flow[0], HEAD4_TEXT);
}
END_TEST

static void interface_is(const struct ft_sflow_interface *i, enum ft_sflow_if kind, uint32_t value)
{
    ck_assert_int_eq(i->kind, kind);
    ck_assert_uint_eq(i->value, value);
}

START_TEST(special_interfaces)
{
    static const struct {
        uint32_t compact;
        uint32_t expanded[2];
        enum ft_sflow_if in, out;
        uint32_t value;
    } rows[] = {
        {0, {0, 0}, FT_SFLOW_IF_UNKNOWN, FT_SFLOW_IF_UNKNOWN, 0},
        {1, {0, 1}, FT_SFLOW_IF_INDEX, FT_SFLOW_IF_INDEX, 1},
        {0x3ffffffe, {0, 0x3ffffffe}, FT_SFLOW_IF_INDEX, FT_SFLOW_IF_INDEX, 0x3ffffffe},
        {0x3fffffff, {0, 0x3fffffff}, FT_SFLOW_IF_INTERNAL, FT_SFLOW_IF_INTERNAL, 0},
        {0x3fffffff, {0, 0xffffffff}, FT_SFLOW_IF_INTERNAL, FT_SFLOW_IF_INTERNAL, 0},
        {0x40000102, {1, 0x102}, FT_SFLOW_IF_UNKNOWN, FT_SFLOW_IF_DISCARD, 0x102},
        {0x40000000, {1, 0}, FT_SFLOW_IF_UNKNOWN, FT_SFLOW_IF_DISCARD, 0},
        {0x80000007, {2, 7}, FT_SFLOW_IF_UNKNOWN, FT_SFLOW_IF_MULTIPLE, 7},
        {0x80000000, {2, 0}, FT_SFLOW_IF_UNKNOWN, FT_SFLOW_IF_MULTIPLE, 0},
        {0xc0000005, {3, 5}, FT_SFLOW_IF_UNKNOWN, FT_SFLOW_IF_UNKNOWN, 0},
        {0xffffffff, {9, 5}, FT_SFLOW_IF_UNKNOWN, FT_SFLOW_IF_UNKNOWN, 0},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct ft_sflow_stats stats;
        struct ft_writer w;
        struct seen seen;

        datagram(&w, 2);
        close_part(&w, open_flow(&w, rows[i].compact, rows[i].compact, 0));
        close_part(&w, open_flow_expanded(&w, rows[i].expanded, rows[i].expanded, 0));
        decode_ok(&w, &seen, &stats);
        ck_assert_uint_eq(seen.flows, 2);
        for (int k = 0; k < 2; k++) {
            interface_is(&seen.flow[k].in, rows[i].in,
                         rows[i].in == FT_SFLOW_IF_INDEX ? rows[i].value : 0);
            interface_is(&seen.flow[k].out, rows[i].out, rows[i].value);
            ck_assert(!seen.flow[k].has_packet);
            ck_assert_uint_eq(seen.flow[k].frame_bytes, 0);
        }
        ck_assert_uint_eq(stats.headers_unknown, 2);
    }
}
END_TEST

START_TEST(header_protocols)
{
    struct ft_sflow_stats stats;
    struct ft_writer w;
    struct seen seen;
    size_t at;

    datagram(&w, 4);
    at = open_flow(&w, 1, 2, 1);
    raw_header(&w, 11, head4 + 14, sizeof(head4) - 14);
    close_part(&w, at);
    at = open_flow(&w, 1, 2, 1);
    raw_header(&w, 12, head4 + 14, sizeof(head4) - 14); /* says IPv6, is IPv4 */
    close_part(&w, at);
    at = open_flow(&w, 1, 2, 1);
    raw_header(&w, 7, head4, sizeof(head4)); /* PPP */
    close_part(&w, at);
    at = open_flow(&w, 1, 2, 1);
    raw_header(&w, 1, head4, 37); /* cut inside the ports, padded by 3 */
    close_part(&w, at);
    decode_ok(&w, &seen, &stats);
    ck_assert_uint_eq(seen.flows, 4);
    tuple_is(&seen.flow[0], HEAD4_TEXT);
    for (int i = 1; i < 4; i++) {
        ck_assert(!seen.flow[i].has_packet);
        ck_assert_uint_eq(seen.flow[i].frame_bytes, 1082);
    }
    ck_assert_uint_eq(stats.headers_bad, 1);
    ck_assert_uint_eq(stats.headers_unknown, 1);
    ck_assert_uint_eq(stats.headers_short, 1);
    ck_assert_uint_eq(stats.trailing, 0);
}
END_TEST

START_TEST(sampled_ip_stands_in)
{
    struct ft_sflow_stats stats;
    struct ft_writer w;
    struct seen seen;
    size_t at;

    datagram(&w, 5);
    at = open_flow(&w, 1, 2, 1);
    sampled_ip(&w, false, 17, 50000);
    close_part(&w, at);
    at = open_flow(&w, 1, 2, 1);
    sampled_ip(&w, true, 6, 50001);
    close_part(&w, at);
    at = open_flow(&w, 1, 2, 2); /* a header counts for more */
    sampled_ip(&w, false, 17, 50000);
    raw_header(&w, 1, head4, sizeof(head4));
    close_part(&w, at);
    at = open_flow(&w, 1, 2, 2); /* but not a header without a tuple */
    raw_header(&w, 1, head4, 20);
    sampled_ip(&w, false, 17, 50000);
    close_part(&w, at);
    at = open_flow(&w, 1, 2, 1); /* ICMP */
    sampled_ip(&w, false, 1, 50000);
    close_part(&w, at);
    decode_ok(&w, &seen, &stats);
    tuple_is(&seen.flow[0], "10.0.1.1:50000-10.0.3.1:4791");
    ck_assert_uint_eq(seen.flow[0].frame_bytes, 1024);
    ck_assert_uint_eq(seen.flow[0].packet.ip_bytes, 1024);
    ck_assert_uint_eq(seen.flow[0].packet.dscp, 26);
    ck_assert_uint_eq(seen.flow[0].packet.ecn, 3);
    ck_assert_int_eq(seen.flow[0].packet.bth, FT_BTH_NONE);
    tuple_is(&seen.flow[1], "[fd00::1]:50001-[fd00::2]:4791/6");
    tuple_is(&seen.flow[2], HEAD4_TEXT);
    ck_assert_uint_eq(seen.flow[2].frame_bytes, 1082);
    tuple_is(&seen.flow[3], "10.0.1.1:50000-10.0.3.1:4791");
    ck_assert_uint_eq(seen.flow[3].frame_bytes, 1082);
    ck_assert(!seen.flow[4].has_packet);
    ck_assert_uint_eq(stats.headers_unknown, 1);
    ck_assert_uint_eq(stats.headers_short, 0);
    ck_assert_uint_eq(stats.records[FT_SFLOW_RECORD_UNKNOWN], 0);
}
END_TEST

START_TEST(unknown_costs_only_itself)
{
    struct ft_sflow_stats stats;
    struct ft_writer w;
    struct seen seen;
    size_t at;

    datagram(&w, 5);
    at = open_flow(&w, 1, 49, 4);
    unknown_record(&w, 1099);
    unknown_record(&w, 8800 << 12 | 1); /* another enterprise's format 1 */
    raw_header(&w, 1, head4, sizeof(head4));
    unknown_record(&w, 0xffffffff);
    close_part(&w, at);
    at = open_part(&w, 6); /* a sample format of later years */
    ft_write_be64(&w, 0);
    close_part(&w, at);
    at = open_part(&w, 4413 << 12 | 1); /* another enterprise's */
    ft_write_be32(&w, 0);
    close_part(&w, at);
    at = open_counters(&w, false, 2);
    unknown_record(&w, 1004);
    generic(&w, 49);
    close_part(&w, at);
    roce_sample(&w, 2, 50);
    decode_ok(&w, &seen, &stats);
    ck_assert_uint_eq(seen.flows, 2);
    ck_assert_uint_eq(seen.counters, 1);
    tuple_is(&seen.flow[0], HEAD4_TEXT);
    tuple_is(&seen.flow[1], HEAD4_TEXT);
    ck_assert_uint_eq(seen.flow[1].out.value, 50);
    ck_assert_uint_eq(stats.unknown_samples, 2);
    ck_assert_uint_eq(stats.records[FT_SFLOW_RECORD_UNKNOWN], 4);
    ck_assert_uint_eq(stats.counter_samples, 1);
    ck_assert_uint_eq(stats.counters_other, 0);
}
END_TEST

START_TEST(discarded_packets)
{
    struct ft_sflow_stats stats;
    struct ft_writer w;
    struct seen seen;
    size_t at;

    datagram(&w, 3);
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t fixed[] = {90 + i, 0, 1, 4, 1, i ? 0 : 49, 258 + i, 2};

        at = open_part(&w, 5);
        for (size_t n = 0; n < COUNT(fixed); n++)
            ft_write_be32(&w, fixed[n]);
        WORDS(&w, 1037, 3, 0x6163, 2);
        raw_header(&w, 1, head4, sizeof(head4));
        close_part(&w, at);
    }
    at = open_part(&w, 5); /* shorter than its fixed part */
    ft_write_be64(&w, 0);
    close_part(&w, at);
    decode_ok(&w, &seen, &stats);
    ck_assert_uint_eq(seen.flows, 2);
    ck_assert_uint_eq(stats.discards, 2);
    ck_assert_uint_eq(stats.broken_samples, 1);
    ck_assert_uint_eq(stats.records[FT_SFLOW_RECORD_ACL], 2);
    for (unsigned i = 0; i < 2; i++) {
        tuple_is(&seen.flow[i], HEAD4_TEXT);
        ck_assert(seen.flow[i].discarded);
        ck_assert_uint_eq(seen.flow[i].discard_reason, 258 + i);
        ck_assert_uint_eq(seen.flow[i].sampling_rate, 1);
        ck_assert_uint_eq(seen.flow[i].sequence, 90 + i);
        ck_assert_uint_eq(seen.flow[i].drops, 4);
        ck_assert_int_eq(seen.flow[i].in.kind, FT_SFLOW_IF_INDEX);
    }
    ck_assert_uint_eq(seen.flow[0].out.value, 49);
    ck_assert_int_eq(seen.flow[1].out.kind, FT_SFLOW_IF_UNKNOWN);
}
END_TEST

START_TEST(extended_records)
{
    const struct ft_sflow_extended *e;
    struct ft_sflow_stats stats;
    char hop[FT_IP_TEXT_BYTES];
    struct ft_writer w;
    struct seen seen;
    size_t at;

    datagram(&w, 2);
    at = open_flow(&w, 1, 49, 11);
    WORDS(&w, 1001, 100, 0, 200, 0);
    WORDS(&w, 1003, 1, 0x0a0000fe, 65000, 65001, 65002, 2, 2, 2, 64512, 64513, 1, 1, 64514, 1, 7,
          100);
    WORDS(&w, 1002, 1, 0xc0a80001, 24, 16);
    WORDS(&w, 1006, 0, 1, 0x10100, 0);
    WORDS(&w, 1036, 7);
    WORDS(&w, 1039, 839660);
    WORDS(&w, 1040, 11354112);
    WORDS(&w, 1043, 0x18000000, 5);
    WORDS(&w, 1029, 5001);
    WORDS(&w, 1002, 1, 0xc0a80001); /* cut: its own loss only */
    raw_header(&w, 1, head4, sizeof(head4));
    close_part(&w, at);
    roce_sample(&w, 2, 50);
    decode_ok(&w, &seen, &stats);
    ck_assert_uint_eq(seen.flows, 2);
    e = &seen.flow[0].extended;
    ck_assert_uint_eq(e->has, FT_SFLOW_HAS_VLANS | FT_SFLOW_HAS_NEXT_HOP | FT_SFLOW_HAS_QUEUE |
                                  FT_SFLOW_HAS_QUEUE_DEPTH | FT_SFLOW_HAS_TRANSIT |
                                  FT_SFLOW_HAS_VNI | FT_SFLOW_HAS_TIMESTAMP);
    ck_assert_uint_eq(e->timestamp_ns, UINT64_C(0x1800000000000005));
    ck_assert_uint_eq(e->in_vlan, 100);
    ck_assert_uint_eq(e->out_vlan, 200);
    ck_assert_uint_eq(e->queue, 7);
    ck_assert_uint_eq(e->queue_bytes, 11354112);
    ck_assert_uint_eq(e->transit_ns, 839660);
    ck_assert_uint_eq(e->vni, 5001);
    ft_ip_format(&e->next_hop, hop);
    ck_assert_str_eq(hop, "192.168.0.1"); /* the router's, not the gateway's */
    tuple_is(&seen.flow[0], HEAD4_TEXT);
    ck_assert_uint_eq(stats.records[FT_SFLOW_RECORD_ROUTER], 2);
    ck_assert_uint_eq(stats.records[FT_SFLOW_RECORD_QUEUE], 2);
    ck_assert_uint_eq(stats.records[FT_SFLOW_RECORD_UNKNOWN], 0);
    ck_assert_uint_eq(stats.broken_records, 1);
    ck_assert_uint_eq(seen.flow[1].extended.has, 0);
}
END_TEST

/* Counts inside gateway and MPLS records that claim more than there is. */
START_TEST(extended_records_that_lie)
{
    static const uint32_t formats[] = {1003, 1003, 1003, 1006};
    static const uint32_t lists[][8] = {
        {1, 1, 65000, 65001, 65002, 0xffffffff, 2, 0xffffffff},
        {1, 1, 65000, 65001, 65002, 1, 2, 0x40000000},
        {2, 0, 0, 0, 1, 65000, 65001, 65002},
        {1, 1, 0x3fffffff, 0, 0, 0, 0, 0},
    };
    struct ft_sflow_stats stats;
    struct ft_writer w;
    struct seen seen;
    size_t at;

    datagram(&w, 1);
    at = open_flow(&w, 1, 49, COUNT(lists) + 1);
    for (size_t i = 0; i < COUNT(lists); i++)
        words(&w, formats[i], lists[i], COUNT(lists[i]));
    raw_header(&w, 1, head4, sizeof(head4));
    close_part(&w, at);
    decode_ok(&w, &seen, &stats);
    ck_assert_uint_eq(stats.broken_records, COUNT(lists));
    ck_assert_uint_eq(seen.flow[0].extended.has, 0);
    tuple_is(&seen.flow[0], HEAD4_TEXT);
}
END_TEST

START_TEST(broken_sample_costs_only_itself)
{
    struct ft_sflow_stats stats;
    struct ft_writer w;
    struct seen seen;
    size_t at, record;

    datagram(&w, 6);
    roce_sample(&w, 1, 49);
    at = open_flow(&w, 1, 2, 2); /* one record fewer than stated */
    raw_header(&w, 1, head4, sizeof(head4));
    close_part(&w, at);
    at = open_flow(&w, 1, 2, 1); /* a header longer than its record */
    record = w.len;
    raw_header(&w, 1, head4, sizeof(head4));
    set_be32(&w, record + 20, 0xfffffffd);
    close_part(&w, at);
    at = open_flow(&w, 1, 2, 1); /* a record longer than its sample */
    record = w.len;
    raw_header(&w, 1, head4, sizeof(head4));
    set_be32(&w, record + 4, 4000);
    close_part(&w, at);
    at = open_counters(&w, false, 2); /* the second one cut: the first does not count either */
    generic(&w, 49);
    generic(&w, 50);
    w.len -= 4;
    close_part(&w, at);
    roce_sample(&w, 2, 50);
    decode_ok(&w, &seen, &stats);
    ck_assert_uint_eq(seen.flows, 2);
    ck_assert_uint_eq(seen.counters, 0);
    ck_assert_uint_eq(stats.broken_samples, 4);
    ck_assert_uint_eq(seen.flow[1].out.value, 50);
    tuple_is(&seen.flow[1], HEAD4_TEXT);
}
END_TEST

START_TEST(cut_everywhere)
{
    struct ft_sflow_stats stats = {0};
    struct ft_writer w;
    struct seen seen = {0};
    size_t at;

    datagram(&w, 4);
    roce_sample(&w, 1, 49);
    at = open_counters(&w, false, 1);
    generic(&w, 49);
    close_part(&w, at);
    at = open_part(&w, 77);
    ft_write_be32(&w, 0);
    close_part(&w, at);
    roce_sample(&w, 2, 50);
    for (size_t n = 0; n < w.len; n++) {
        ck_assert_msg(decode(w.bytes, n, &seen, &stats) == FT_SFLOW_SHORT, "%zu bytes", n);
        ck_assert_uint_eq(seen.heads + seen.flows + seen.counters, 0);
    }
    ck_assert_int_eq(decode(w.bytes, w.len, &seen, &stats), FT_SFLOW_OK);
    ck_assert_uint_eq(seen.flows, 2);
    ft_writer_free(&w);
}
END_TEST

/* A head cut by the exporter: never a wrong tuple. */
START_TEST(cut_headers)
{
    for (size_t n = 0; n <= sizeof(head4); n++) {
        struct ft_sflow_stats stats;
        struct ft_writer w;
        struct seen seen;
        size_t at;

        datagram(&w, 1);
        at = open_flow(&w, 1, 2, 1);
        raw_header(&w, 1, head4, n);
        close_part(&w, at);
        decode_ok(&w, &seen, &stats);
        ck_assert_uint_eq(seen.flows, 1);
        if (n < 38)
            ck_assert_uint_eq(stats.headers_short, 1);
        else
            tuple_is(&seen.flow[0], HEAD4_TEXT);
    }
}
END_TEST

/* Every byte of a datagram flipped: what comes out is never more than what is stated. */
START_TEST(flipped_bytes)
{
    struct ft_sflow_stats stats = {0};
    struct ft_writer w;
    size_t at;

    datagram(&w, 3);
    roce_sample(&w, 1, 49);
    at = open_counters(&w, true, 1);
    generic(&w, 49);
    close_part(&w, at);
    roce_sample(&w, 2, 50);
    for (size_t i = 0; i < w.len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            struct seen seen = {0};

            w.bytes[i] ^= (uint8_t)(1 << bit);
            if (decode(w.bytes, w.len, &seen, &stats) != FT_SFLOW_OK)
                ck_assert_uint_eq(seen.heads + seen.flows + seen.counters, 0);
            ck_assert_uint_le(seen.flows + seen.counters, 3);
            w.bytes[i] ^= (uint8_t)(1 << bit);
        }
    }
    ft_writer_free(&w);
}
END_TEST

START_TEST(refused_datagrams)
{
    struct ft_sflow_stats stats = {0}, none = {0};
    struct ft_writer w;
    struct seen seen = {0};

    datagram(&w, 1);
    roce_sample(&w, 1, 49);
    set_be32(&w, 0, 4);
    ck_assert_int_eq(decode(w.bytes, w.len, &seen, &stats), FT_SFLOW_UNKNOWN);
    set_be32(&w, 0, 5);
    set_be32(&w, 4, 0);
    ck_assert_int_eq(decode(w.bytes, w.len, &seen, &stats), FT_SFLOW_BAD);
    set_be32(&w, 4, 1);
    set_be32(&w, 24, 2); /* more samples than there are */
    ck_assert_int_eq(decode(w.bytes, w.len, &seen, &stats), FT_SFLOW_SHORT);
    set_be32(&w, 24, 0xffffffff);
    ck_assert_int_eq(decode(w.bytes, w.len, &seen, &stats), FT_SFLOW_SHORT);
    set_be32(&w, 24, 1);
    set_be32(&w, 32, 0xffffffff); /* a sample longer than the datagram */
    ck_assert_int_eq(decode(w.bytes, w.len, &seen, &stats), FT_SFLOW_SHORT);
    ck_assert_uint_eq(seen.heads, 0);
    ck_assert_mem_eq(&stats, &none, sizeof(stats));
    ft_writer_free(&w);
}
END_TEST

START_TEST(ipv6_agent_and_trailing_bytes)
{
    struct ft_sflow_stats stats;
    struct ft_writer w;
    struct seen seen;
    char agent[FT_IP_TEXT_BYTES];
    size_t at;

    ft_writer_init(&w, 65536);
    ft_write_be32(&w, 5);
    ft_write_be32(&w, 2);
    ft_write_be64(&w, 0x20010db800000000);
    ft_write_be64(&w, 0x11);
    for (int i = 0; i < 3; i++)
        ft_write_be32(&w, 0);
    ft_write_be32(&w, 1);
    at = open_flow(&w, 1, 2, 1);
    raw_header(&w, 1, head4, sizeof(head4));
    ft_write_be32(&w, 0); /* behind the records */
    close_part(&w, at);
    ft_write_be32(&w, 0); /* behind the samples */
    decode_ok(&w, &seen, &stats);
    ft_ip_format(&seen.head.agent, agent);
    ck_assert_str_eq(agent, "2001:db8::11");
    tuple_is(&seen.flow[0], HEAD4_TEXT);
    ck_assert_uint_eq(stats.trailing, 2);
}
END_TEST

START_TEST(skipped_datagram)
{
    struct ft_sflow_stats stats = {0};
    struct ft_writer w;
    struct seen seen = {.skip = true};

    datagram(&w, 1);
    roce_sample(&w, 1, 49);
    ck_assert_int_eq(decode(w.bytes, w.len, &seen, &stats), FT_SFLOW_OK);
    ck_assert_uint_eq(seen.heads, 1);
    ck_assert_uint_eq(seen.flows, 0);
    ck_assert_uint_eq(stats.flow_samples, 0);
    ft_writer_free(&w);
}
END_TEST

FT_UNIT_MAIN("sflow", head_and_compact_flow, expanded_flow, special_interfaces, header_protocols,
             sampled_ip_stands_in, unknown_costs_only_itself, discarded_packets, extended_records,
             extended_records_that_lie, broken_sample_costs_only_itself, cut_everywhere,
             cut_headers, flipped_bytes, refused_datagrams, ipv6_agent_and_trailing_bytes,
             skipped_datagram)
