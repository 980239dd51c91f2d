// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/sflow/fold.h"

#include <errno.h>

#include "proto/record.h"
#include "tests/unit/unit.h"

#define RECORDS_MAX 64

static Fabrictrace__Record *records[RECORDS_MAX];
static size_t record_count;

/* The record lives on its maker's stack: keep a copy, by way of its packed form. */
static void keep(void *arg, const Fabrictrace__Record *record)
{
    uint8_t bytes[1024];
    size_t len = fabrictrace__record__pack(record, bytes);

    (void)arg;
    ck_assert_uint_lt(record_count, RECORDS_MAX);
    records[record_count++] = fabrictrace__record__unpack(NULL, len, bytes);
}

static const struct ft_record_sink sink = {.emit = keep};

static void drop_records(void)
{
    while (record_count > 0)
        fabrictrace__record__free_unpacked(records[--record_count], NULL);
}

static struct ft_sflow_flow flow_of(uint16_t sport)
{
    struct ft_sflow_flow flow = {
        .source_index = 1,
        .sampling_rate = 1000,
        .in = {FT_SFLOW_IF_INDEX, 1},
        .out = {FT_SFLOW_IF_INDEX, 49},
        .frame_bytes = 1086,
        .has_packet = true,
        .packet = {.bth = FT_BTH_DATA, .dst_qp = 17, .ecn = 2, .syndrome = FT_AETH_PLAIN},
    };

    flow.packet.tuple.src = ft_ip4((const uint8_t[]){10, 0, 1, 1});
    flow.packet.tuple.dst = ft_ip4((const uint8_t[]){10, 0, 3, 1});
    flow.packet.tuple.sport = sport;
    flow.packet.tuple.dport = FT_ROCE_PORT;
    flow.packet.tuple.proto = FT_PROTO_UDP;
    return flow;
}

static struct ft_ip agent_of(uint8_t last)
{
    return ft_ip4((const uint8_t[]){192, 0, 2, last});
}

static void add(struct ft_fold *fold, const struct ft_sflow_flow *flow, int64_t when_ms)
{
    struct ft_ip agent = agent_of(1);

    ft_fold_add(fold, &agent, 0, flow, (struct ft_wall){when_ms});
}

/* The one Observation that the samples given become. */
static const Fabrictrace__Observation *fold_one(const struct ft_sflow_flow *flow)
{
    struct ft_fold *fold = ft_fold_new(16, 0);

    add(fold, flow, 5);
    drop_records();
    ft_fold_flush(fold, (struct ft_wall){0}, 1000, &sink);
    ft_fold_free(fold);
    ck_assert_uint_eq(record_count, 1);
    return records[0]->observation;
}

/* 2^32 - 1 in 2^32 - 1 bytes. */
START_TEST(what_cannot_be_is_cut_and_counted)
{
    struct ft_fold *fold = ft_fold_new(16, 0);
    struct ft_sflow_flow flow = flow_of(49441);

    flow.sampling_rate = flow.frame_bytes = UINT32_MAX;
    for (int i = 0; i < 100; i++)
        add(fold, &flow, 5);
    drop_records();
    ft_fold_flush(fold, (struct ft_wall){0}, 1000, &sink);
    ck_assert_uint_eq(record_count, 1);
    ck_assert_uint_eq(records[0]->observation->bytes, UINT64_C(1) << 52);
    ck_assert_uint_eq(records[0]->observation->packets, UINT64_C(100) << 28);
    ck_assert_uint_eq(ft_fold_implausible(fold), 100);
    flow.sampling_rate = 1 << 24;
    flow.frame_bytes = 9216;
    add(fold, &flow, 5);
    drop_records();
    ft_fold_flush(fold, (struct ft_wall){0}, 1000, &sink);
    ck_assert_uint_eq(records[0]->observation->bytes, UINT64_C(9216) << 24);
    ck_assert_uint_eq(ft_fold_implausible(fold), 100);
    drop_records();
    ft_fold_free(fold);
}
END_TEST

/* A sample of one packet of RC WRITE, or of what opcode says. */
static void add_psn(struct ft_fold *fold, uint8_t opcode, uint32_t psn)
{
    struct ft_sflow_flow flow = flow_of(49441);

    flow.packet.opcode = opcode;
    flow.packet.bth = ft_bth_class_of(opcode);
    flow.packet.psn = psn;
    add(fold, &flow, 5);
}

#define WRITE_FIRST   0x06
#define WRITE_MIDDLE  0x07
#define WRITE_ONLY    0x0a
#define READ_REQUEST  0x0c
#define READ_RESPONSE 0x0e
#define UD_SEND_ONLY  0x64

static const Fabrictrace__Observation *flush_one(struct ft_fold *fold)
{
    drop_records();
    ft_fold_flush(fold, (struct ft_wall){0}, 1000, &sink);
    ck_assert_uint_eq(record_count, 1);
    return records[0]->observation;
}

START_TEST(packet_numbers_span_from_the_lowest_to_the_highest)
{
    struct ft_fold *fold = ft_fold_new(16, 0);
    const Fabrictrace__Observation *o;

    /* Twice around, once back; the second begins lower than the first. */
    add_psn(fold, WRITE_FIRST, 0xfffff0);
    add_psn(fold, WRITE_MIDDLE, 0xffffe0);
    for (uint32_t n = 0; n < 2; n++)
        for (uint32_t k = 0; k < 16; k++)
            add_psn(fold, WRITE_MIDDLE, k << 20);
    add_psn(fold, WRITE_ONLY, 0xeffff0);
    o = flush_one(fold);
    ck_assert(o->has_psn && o->has_psn_span && o->has_psn_back_samples);
    ck_assert_uint_eq(o->psn, 0xffffe0);
    ck_assert_uint_eq(o->psn_span, 0x20 + 0x1f00000);
    ck_assert_uint_eq(o->psn_back_samples, 2);
    ck_assert_uint_eq(o->message_starts, 2);
    ck_assert_uint_eq(o->frame_min_bytes, 1086);
    ck_assert_uint_eq(o->frame_max_bytes, 1086);
    drop_records();
    ft_fold_free(fold);
}
END_TEST

/* What is sampled together, whether its numbers are of one row, and whether there were answers to
 * READs, and READs. */
static const struct {
    uint8_t opcodes[2];
    bool numbered, responses, reads;
} mixtures[] = {
    {{WRITE_MIDDLE, WRITE_ONLY}, true, false, false},
    {{READ_RESPONSE, READ_RESPONSE}, true, true, false},
    {{WRITE_MIDDLE, READ_REQUEST}, false, false, true},
    {{WRITE_MIDDLE, READ_RESPONSE}, false, true, false},
    {{READ_RESPONSE, READ_REQUEST}, false, true, true},
    {{READ_REQUEST, READ_REQUEST}, false, false, true},
    {{UD_SEND_ONLY, UD_SEND_ONLY}, false, false, false},
    {{WRITE_MIDDLE, 0x11}, true, false, false},
};

START_TEST(numbers_of_several_rows_are_not_reported)
{
    struct ft_fold *fold = ft_fold_new(16, 0);

    for (size_t i = 0; i < sizeof(mixtures) / sizeof(mixtures[0]); i++) {
        const Fabrictrace__Observation *o;

        add_psn(fold, mixtures[i].opcodes[0], 100);
        add_psn(fold, mixtures[i].opcodes[1], 200);
        o = flush_one(fold);
        ck_assert(o->has_psn == mixtures[i].numbered);
        ck_assert(o->read_responses == mixtures[i].responses);
        ck_assert(o->read_requests == mixtures[i].reads);
    }
    drop_records();
    ft_fold_free(fold);
}
END_TEST

START_TEST(refusals_are_counted_by_their_syndrome)
{
    struct ft_fold *fold = ft_fold_new(16, 0);
    struct ft_sflow_flow flow = flow_of(49441);
    const uint8_t syndromes[] = {0x00, 0x00, 0x01, 0x1f, 0x20, 0x40, 0x60, 0x61, 0x64, 0x80};
    const Fabrictrace__Observation *o;

    flow.packet.opcode = 0x11;
    flow.packet.bth = FT_BTH_ACK;
    for (size_t i = 0; i < sizeof(syndromes); i++) {
        flow.packet.syndrome = syndromes[i];
        add(fold, &flow, 5);
    }
    o = flush_one(fold);
    ck_assert_uint_eq(o->ack_samples, 10);
    ck_assert_uint_eq(o->rnr_samples, 1);
    ck_assert_uint_eq(o->nak_samples, 3);
    ck_assert_uint_eq(o->no_credit_samples, 2);
    ck_assert(!o->has_psn && !o->has_message_starts);
    drop_records();
    ft_fold_free(fold);
}
END_TEST

/* The last switch has nothing left to read: one sample before it is enough. */
START_TEST(a_path_in_one_sample_is_reported)
{
    struct ft_fold *fold = ft_fold_new(16, 0);
    struct ft_sflow_flow flow = flow_of(49441);

    add(fold, &flow, 5);
    ck_assert(!flush_one(fold)->has_source_routed);
    add(fold, &flow, 5);
    flow.packet.source_routed = true;
    add(fold, &flow, 6);
    flow.packet.source_routed = false;
    add(fold, &flow, 7);
    ck_assert(flush_one(fold)->source_routed);
    drop_records();
    ft_fold_free(fold);
}
END_TEST

START_TEST(notifications_are_distinguished)
{
    struct ft_sflow_flow flow = flow_of(49441);
    const Fabrictrace__Observation *o;

    flow.packet.bth = FT_BTH_CNP;
    o = fold_one(&flow);
    ck_assert_uint_eq(o->ack_samples, 1);
    ck_assert(o->has_cnp_samples);
    ck_assert_uint_eq(o->cnp_samples, 1);
    flow.packet.bth = FT_BTH_ACK;
    o = fold_one(&flow);
    ck_assert_uint_eq(o->ack_samples, 1);
    ck_assert(!o->has_cnp_samples);
    drop_records();
}
END_TEST

START_TEST(sums_what_agrees)
{
    struct ft_fold *fold = ft_fold_new(16, 0);
    struct ft_sflow_flow flow = flow_of(49441);
    const Fabrictrace__Observation *o;
    struct ft_tuple tuple;

    add(fold, &flow, 1700000000300);
    flow.packet.ecn = 3;
    flow.sampling_rate = 2000;
    flow.frame_bytes = 100;
    flow.packet.bth = FT_BTH_ACK;
    add(fold, &flow, 1700000000100);
    flow.packet.bth = FT_BTH_NONE;
    flow.packet.dst_qp = 0;
    add(fold, &flow, 1700000000900);
    ck_assert_uint_eq(ft_fold_pending(fold), 3);
    ck_assert_uint_eq(ft_fold_flush(fold, (struct ft_wall){1700000000000}, 1000, &sink), 3);
    ck_assert_uint_eq(ft_fold_pending(fold), 0);
    ck_assert_uint_eq(ft_fold_sums(fold), 0);
    ck_assert_uint_eq(record_count, 1);
    o = records[0]->observation;
    ck_assert_uint_eq(o->time_ms, 1700000000000);
    ck_assert_uint_eq(o->interval_ms, 1000);
    ck_assert_uint_eq(o->first_ms, 1700000000100);
    ck_assert_uint_eq(o->last_ms, 1700000000900);
    ck_assert_uint_eq(o->samples, 3);
    ck_assert_uint_eq(o->packets, 5000);
    ck_assert_uint_eq(o->bytes, 1000 * 1086 + 2 * 2000 * 100);
    ck_assert_uint_eq(o->ce_samples, 2);
    ck_assert_uint_eq(o->data_samples, 1);
    ck_assert_uint_eq(o->ack_samples, 1);
    ck_assert_int_eq(o->has_dst_qp, true);
    ck_assert_uint_eq(o->dst_qp, 17);
    ck_assert_uint_eq(o->agent.len, 4);
    ck_assert_int_eq(ft_flow_to_tuple(o->flow, &tuple), 0);
    ck_assert(ft_tuple_equal(&tuple, &flow.packet.tuple));
    drop_records();
    ft_fold_free(fold);
}
END_TEST

/* The newest sample's, in whatever order they come. */
START_TEST(the_newest_ttl_is_reported)
{
    struct ft_fold *fold = ft_fold_new(16, 0);
    struct ft_sflow_flow flow = flow_of(49441);

    ck_assert_int_eq(fold_one(&flow)->has_ttl, false);
    flow.packet.ttl = 63;
    add(fold, &flow, 1700000000500);
    flow.packet.ttl = 62;
    add(fold, &flow, 1700000000900);
    flow.packet.ttl = 61;
    add(fold, &flow, 1700000000100);
    drop_records();
    ft_fold_flush(fold, (struct ft_wall){1700000000000}, 1000, &sink);
    ck_assert_uint_eq(records[0]->observation->ttl, 62);
    ck_assert_uint_eq(records[0]->observation->last_ms, 1700000000900);
    drop_records();
    ft_fold_free(fold);
}
END_TEST

START_TEST(a_queue_pair_is_reported_only_when_samples_agree)
{
    struct ft_fold *fold = ft_fold_new(16, 0);
    struct ft_sflow_flow flow = flow_of(49441);

    add(fold, &flow, 1);
    flow.packet.dst_qp = 18;
    add(fold, &flow, 2);
    flow.packet.dst_qp = 17;
    add(fold, &flow, 3);
    ft_fold_flush(fold, (struct ft_wall){0}, 1000, &sink);
    ck_assert_int_eq(records[0]->observation->has_dst_qp, false);
    drop_records();
    ft_fold_free(fold);
    flow.packet.bth = FT_BTH_NONE;
    ck_assert_int_eq(fold_one(&flow)->has_dst_qp, false);
    drop_records();
}
END_TEST

START_TEST(the_data_source_says_where_a_sample_was_taken)
{
    static const struct {
        uint32_t type, source, in, out;
        Fabrictrace__SamplingPoint point;
    } cases[] = {
        {0, 1, 1, 49, FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_INGRESS},
        {0, 49, 1, 49, FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_EGRESS},
        {0, 7, 1, 49, FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_UNKNOWN},
        {0, 7, 7, 7, FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_UNKNOWN},
        {2, 1, 1, 49, FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_UNKNOWN},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ft_sflow_flow flow = flow_of(49441);

        flow.source_type = cases[i].type;
        flow.source_index = cases[i].source;
        flow.in.value = cases[i].in;
        flow.out.value = cases[i].out;
        ck_assert_int_eq(fold_one(&flow)->point, cases[i].point);
    }
    drop_records();
}
END_TEST

START_TEST(special_interface_values_are_no_ports)
{
    struct ft_sflow_flow flow = flow_of(49441);
    const Fabrictrace__Observation *o;

    flow.in = (struct ft_sflow_interface){.kind = FT_SFLOW_IF_INTERNAL};
    flow.out = (struct ft_sflow_interface){.kind = FT_SFLOW_IF_UNKNOWN};
    o = fold_one(&flow);
    ck_assert(!o->has_in_ifindex && !o->has_out_ifindex && !o->has_discard_reason);
    ck_assert_int_eq(o->fate, FABRICTRACE__FATE__FATE_FORWARDED);
    /* A reason of 0 is a reason: net unreachable. */
    flow.out = (struct ft_sflow_interface){.kind = FT_SFLOW_IF_DISCARD, .value = 0};
    o = fold_one(&flow);
    ck_assert_int_eq(o->fate, FABRICTRACE__FATE__FATE_DISCARDED);
    ck_assert(o->has_discard_reason && !o->has_out_ifindex);
    /* The number of copies is no port, even where a port has that number. */
    flow.in = (struct ft_sflow_interface){FT_SFLOW_IF_INDEX, 3};
    flow.source_index = 2;
    flow.out = (struct ft_sflow_interface){.kind = FT_SFLOW_IF_MULTIPLE, .value = 2};
    o = fold_one(&flow);
    ck_assert_int_eq(o->fate, FABRICTRACE__FATE__FATE_MULTIPLE);
    ck_assert_int_eq(o->point, FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_UNKNOWN);
    ck_assert(!o->has_out_ifindex);
    drop_records();
}
END_TEST

START_TEST(whatever_differs_stays_apart)
{
    struct ft_fold *fold = ft_fold_new(16, 0);
    struct ft_ip other = agent_of(2);
    struct ft_sflow_flow flow = flow_of(49441);

    add(fold, &flow, 1);
    ft_fold_add(fold, &other, 0, &flow, (struct ft_wall){1});
    flow.source_index = 49;
    add(fold, &flow, 1);
    flow.out.value = 50;
    add(fold, &flow, 1);
    flow.in.value = 2;
    add(fold, &flow, 1);
    flow.packet.tuple.sport++;
    add(fold, &flow, 1);
    flow.out = (struct ft_sflow_interface){.kind = FT_SFLOW_IF_DISCARD, .value = 1};
    add(fold, &flow, 1);
    flow.out.value = 2;
    add(fold, &flow, 1);
    ft_fold_apply(fold);
    ck_assert_uint_eq(ft_fold_sums(fold), 8);
    ft_fold_free(fold);
}
END_TEST

/* Two that may have sampled the same packets, of which the data source does not tell the point. */
START_TEST(sources_stay_apart_and_are_named)
{
    static const struct {
        uint32_t sub_agent, type, index;
    } sources[] = {{1, 0, 7}, {2, 0, 7}, {1, 0, 8}, {1, 2, 7}};
    struct ft_ip agent = agent_of(1);
    struct ft_fold *fold = ft_fold_new(16, 0);
    struct ft_sflow_flow flow = flow_of(49441);

    for (size_t i = 0; i < 4; i++) {
        flow.source_type = sources[i].type;
        flow.source_index = sources[i].index;
        ft_fold_add(fold, &agent, sources[i].sub_agent, &flow, (struct ft_wall){1});
    }
    drop_records();
    ft_fold_flush(fold, (struct ft_wall){0}, 1000, &sink);
    ft_fold_free(fold);
    ck_assert_uint_eq(record_count, 4);
    for (size_t i = 0; i < 4; i++) {
        const Fabrictrace__Observation *o = records[i]->observation;

        ck_assert(o->has_sub_agent && o->has_source_type && o->has_source_index);
        ck_assert_uint_eq(o->sub_agent, sources[i].sub_agent);
        ck_assert_uint_eq(o->source_type, sources[i].type);
        ck_assert_uint_eq(o->source_index, sources[i].index);
        ck_assert_uint_eq(o->samples, 1);
    }
    /* The port in or out says it already. */
    flow = flow_of(49441);
    ck_assert(!fold_one(&flow)->has_source_index && records[0]->observation->has_sub_agent);
    drop_records();
}
END_TEST

START_TEST(flushes_in_the_order_of_arrival_whatever_the_hash)
{
    for (uint64_t seed = 0; seed < 5; seed++) {
        struct ft_fold *fold = ft_fold_new(64, seed * 7919);

        /* Twice, so that the second interval uses entries again. */
        for (int round = 0; round < 2; round++) {
            for (uint16_t i = 0; i < 40; i++) {
                struct ft_sflow_flow flow = flow_of(50000 + i);

                add(fold, &flow, i);
            }
            ft_fold_flush(fold, (struct ft_wall){0}, 1000, &sink);
            ck_assert_uint_eq(record_count, 40);
            for (uint32_t i = 0; i < 40; i++)
                ck_assert_uint_eq(records[i]->observation->flow->sport, 50000 + i);
            drop_records();
        }
        ft_fold_free(fold);
    }
}
END_TEST

START_TEST(a_full_table_refuses_new_sums_and_goes_on_with_old_ones)
{
    struct ft_fold *fold = ft_fold_new(4, 0);

    /* More than a batch, so that some are refused before the last are added. */
    for (uint16_t i = 0; i < 40; i++) {
        struct ft_sflow_flow flow = flow_of(50000 + i);

        add(fold, &flow, 1);
    }
    for (uint16_t i = 0; i < 4; i++) {
        struct ft_sflow_flow flow = flow_of(50000 + i);

        add(fold, &flow, 2);
    }
    ck_assert_uint_eq(ft_fold_pending(fold) + ft_fold_refused(fold), 44);
    ft_fold_apply(fold);
    ck_assert_uint_eq(ft_fold_refused(fold), 36);
    ck_assert_uint_eq(ft_fold_pending(fold), 8);
    ft_fold_free(fold);
}
END_TEST

/* Each flow twice: the last samples are in another order than the first ones. */
START_TEST(long_intervals_are_flushed_by_their_last_samples)
{
    static const int64_t first_ms[] = {100, 200, 300, 400}, last_ms[] = {9999, 500, 20000, 1200};
    static const uint16_t by_first[] = {1, 2, 3, 4}, by_last[] = {2, 4, 1, 3};

    for (int longer = 0; longer < 2; longer++) {
        const uint16_t *order = longer ? by_last : by_first;
        struct ft_fold *fold = ft_fold_new(16, 0);

        for (uint16_t i = 0; i < 4; i++) {
            struct ft_sflow_flow flow = flow_of((uint16_t)(1 + i));

            add(fold, &flow, 5000 + first_ms[i]);
            add(fold, &flow, 5000 + last_ms[i]);
        }
        drop_records();
        ck_assert_uint_eq(ft_fold_flush(fold, (struct ft_wall){5000}, longer ? 10000 : 1000, &sink),
                          8);
        ck_assert_uint_eq(record_count, 4);
        for (uint16_t i = 0; i < 4; i++)
            ck_assert_uint_eq(records[i]->observation->flow->sport, order[i]);
        /* An empty one is no more. */
        drop_records();
        ck_assert_uint_eq(ft_fold_flush(fold, (struct ft_wall){15000}, 10000, &sink), 0);
        ck_assert_uint_eq(record_count, 0);
        ft_fold_free(fold);
    }
}
END_TEST

#define MICE      800
#define ELEPHANTS 10
#define PART      8

static unsigned sent_of[MICE + ELEPHANTS];

static void count_sent(void *arg, const Fabrictrace__Record *record)
{
    uint64_t *samples = arg;

    sent_of[record->observation->flow->sport - 1]++;
    *samples += record->observation->samples;
}

/* What is left out is no batch of the same flows: each has its turn, at all switches at once, and
 * those with many samples are always there. */
START_TEST(flows_that_are_left_out_take_turns)
{
    struct ft_fold *fold = ft_fold_new(4 * (MICE + ELEPHANTS), 0);
    uint64_t sent = 0, given = 0, returned = 0, sums;
    const struct ft_record_sink counts = {count_sent, &sent};

    memset(sent_of, 0, sizeof(sent_of));
    ft_fold_thin(fold, PART);
    for (int64_t round = 0; round < PART; round++) {
        uint64_t before = given, was_sent = sent;

        for (uint16_t i = 0; i < MICE + ELEPHANTS; i++) {
            struct ft_sflow_flow flow = flow_of((uint16_t)(1 + i));

            for (int n = 0; n < (i < MICE ? 2 : 40); n++, given++) {
                /* At two switches in turns: sums of one flow that belong together. */
                flow.in.value = 1 + (uint32_t)n % 2;
                add(fold, &flow, 10000 * round + 10 * n);
            }
        }
        returned += ft_fold_flush(fold, (struct ft_wall){10000 * round}, 10000, &counts);
        /* An eighth of the mice, by chance some more or less. */
        ck_assert_uint_ge(sent - was_sent, ELEPHANTS * 40 + MICE * 2 / PART / 2);
        ck_assert_uint_le(sent - was_sent, ELEPHANTS * 40 + MICE * 2 / PART * 2);
        ck_assert_uint_eq(ft_fold_thinned(fold, &sums) + returned, given);
        ck_assert_uint_gt(given, before);
    }
    ck_assert_uint_eq(returned, sent);
    ck_assert_uint_eq(ft_fold_thinned(fold, &sums), (PART - 1) * MICE * 2);
    ck_assert_uint_eq(sums, (PART - 1) * MICE * 2);
    for (size_t i = 0; i < MICE + ELEPHANTS; i++)
        ck_assert_uint_eq(sent_of[i], 2 * (i < MICE ? 1 : PART));
    ft_fold_free(fold);
}
END_TEST

FT_UNIT_MAIN("fold", a_path_in_one_sample_is_reported, flows_that_are_left_out_take_turns,
             long_intervals_are_flushed_by_their_last_samples,
             packet_numbers_span_from_the_lowest_to_the_highest,
             numbers_of_several_rows_are_not_reported, refusals_are_counted_by_their_syndrome,
             notifications_are_distinguished, what_cannot_be_is_cut_and_counted, sums_what_agrees,
             the_newest_ttl_is_reported, a_queue_pair_is_reported_only_when_samples_agree,
             the_data_source_says_where_a_sample_was_taken, special_interface_values_are_no_ports,
             whatever_differs_stays_apart, sources_stay_apart_and_are_named,
             flushes_in_the_order_of_arrival_whatever_the_hash,
             a_full_table_refuses_new_sums_and_goes_on_with_old_ones)
