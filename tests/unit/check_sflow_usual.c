// SPDX-License-Identifier: Apache-2.0
/* The short cut of proto/sflow.c says of a sample what the general way says. */
#include "config.h"

#include "proto/sflow.h"

#include <endian.h>
#include <string.h>

#include "lib/base/writer.h"
#include "tests/put.h"
#include "tests/unit/unit.h"

#define COUNT(a)     (sizeof(a) / sizeof((a)[0]))
#define HEADER_BYTES 54
#define SAMPLE_BYTES (32 + 8 + 16 + HEADER_BYTES + 2 + 8 + 16)

/* Ethernet, IPv4 10.0.1.1 to 10.0.3.1, UDP 49441 to 4791, BTH: WRITE_FIRST to QP 17. */
static const uint8_t frame[HEADER_BYTES] = {
    2,    0,    0,    0,    0,    2,    2,    0,    0,    0,    0,    1,    0x08, 0x00,
    0x45, 0x02, 4,    0,    0,    1,    0x40, 0,    64,   17,   0,    0,    10,   0,
    1,    1,    10,   0,    3,    1,    0xc1, 0x21, 0x12, 0xb7, 0x03, 0xec, 0,    0,
    0x06, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x11, 0x00, 0xb7, 0xc5, 0x40};

static void put(struct ft_writer *w, const uint32_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ft_write_be32(w, words[i]);
}

static void set_be32(struct ft_writer *w, size_t at, uint32_t v)
{
    v = htobe32(v);
    memcpy(w->bytes + at, &v, sizeof(v));
}

static void on_flow(void *arg, const struct ft_sflow_flow *flow)
{
    *(struct ft_sflow_flow *)arg = *flow;
}

/* Decodes a copy of exactly its bytes, so that a read past the end is seen. */
static enum ft_sflow_status decode(const struct ft_writer *w, struct ft_sflow_flow *flow,
                                   struct ft_sflow_stats *stats)
{
    const struct ft_sflow_visitor visitor = {.flow = on_flow, .arg = flow};
    uint8_t *copy = malloc(w->len);
    enum ft_sflow_status status;

    memcpy(copy, w->bytes, w->len);
    status = ft_sflow_decode(copy, w->len, &visitor, stats);
    free(copy);
    return status;
}

static void same_flow(const struct ft_sflow_flow *a, const struct ft_sflow_flow *b)
{
    ck_assert_uint_eq(a->sequence, b->sequence);
    ck_assert_uint_eq(a->source_type, b->source_type);
    ck_assert_uint_eq(a->source_index, b->source_index);
    ck_assert_uint_eq(a->sampling_rate, b->sampling_rate);
    ck_assert_uint_eq(a->sample_pool, b->sample_pool);
    ck_assert_uint_eq(a->drops, b->drops);
    ck_assert_int_eq(a->in.kind, b->in.kind);
    ck_assert_uint_eq(a->in.value, b->in.value);
    ck_assert_int_eq(a->out.kind, b->out.kind);
    ck_assert_uint_eq(a->out.value, b->out.value);
    ck_assert_uint_eq(a->frame_bytes, b->frame_bytes);
    ck_assert_int_eq(a->has_packet, b->has_packet);
    ck_assert(!a->has_packet || ft_tuple_equal(&a->packet.tuple, &b->packet.tuple));
    ck_assert(!a->has_packet || a->packet.dst_qp == b->packet.dst_qp);
    ck_assert_int_eq(a->discarded, b->discarded);
    ck_assert_uint_eq(a->extended.has, b->extended.has);
    if (a->extended.has & FT_SFLOW_HAS_VLANS) {
        ck_assert_uint_eq(a->extended.in_vlan, b->extended.in_vlan);
        ck_assert_uint_eq(a->extended.out_vlan, b->extended.out_vlan);
    }
}

/* The same sample with an empty record of no meaning ahead of the others, which bars the short cut
 * for samples that begin with a raw header. */
static void with_other_record_first(const struct ft_writer *from, size_t sample_at,
                                    struct ft_writer *to)
{
    size_t records_at = sample_at + 28;
    uint32_t records;

    memcpy(&records, from->bytes + records_at, sizeof(records));
    ft_writer_init(to, 65536);
    ft_write_bytes(to, from->bytes, records_at + 4);
    ft_write_be32(to, 4095);
    ft_write_be32(to, 0);
    ft_write_bytes(to, from->bytes + records_at + 4, from->len - records_at - 4);
    set_be32(to, sample_at - 4, (uint32_t)(to->len - sample_at));
    set_be32(to, records_at, be32toh(records) + 1);
}

static void by_both_decoders(const struct ft_writer *w, size_t sample_at)
{
    struct ft_sflow_flow flow = {0}, general = {0};
    struct ft_sflow_stats stats = {0}, general_stats = {0};
    struct ft_writer other;

    with_other_record_first(w, sample_at, &other);
    ck_assert_int_eq(decode(w, &flow, &stats), FT_SFLOW_OK);
    ck_assert_int_eq(decode(&other, &general, &general_stats), FT_SFLOW_OK);
    ft_writer_free(&other);
    ck_assert_uint_eq(general_stats.records[FT_SFLOW_RECORD_UNKNOWN],
                      stats.records[FT_SFLOW_RECORD_UNKNOWN] + 1);
    general_stats.records[FT_SFLOW_RECORD_UNKNOWN]--;
    ck_assert(memcmp(&stats, &general_stats, sizeof(stats)) == 0);
    if (stats.flow_samples)
        same_flow(&flow, &general);
}

/* One compact flow sample of a RoCEv2 frame with extended switch data. Returns where it begins. */
static size_t usual_sample(struct ft_writer *w)
{
    static const uint32_t head[] = {5, 1, 0xc000020b, 3, 1000, 60000, 1};
    static const uint32_t sample[] = {1, SAMPLE_BYTES, 77, 0x02000031, 2048, 100000, 5, 49, 50, 2};
    static const uint32_t raw[] = {1, 16 + HEADER_BYTES + 2, 1, 1082, 4, HEADER_BYTES};
    static const uint32_t vlans[] = {1001, 16, 7, 0, 8, 0};

    ft_writer_init(w, 65536);
    put(w, head, COUNT(head));
    put(w, sample, COUNT(sample));
    put(w, raw, COUNT(raw));
    ft_write_bytes(w, frame, sizeof(frame));
    put_be16(w, 0);
    put(w, vlans, COUNT(vlans));
    return (COUNT(head) + 2) * 4;
}

START_TEST(usual_samples_are_no_special_case)
{
    struct ft_writer w;
    size_t at = usual_sample(&w);

    ck_assert_uint_eq(w.len, at + SAMPLE_BYTES);
    by_both_decoders(&w, at);
    for (size_t i = at; i < w.len; i++)
        for (unsigned v = 0; v <= UINT8_MAX; v++) {
            uint8_t was = w.bytes[i];

            w.bytes[i] = (uint8_t)v;
            by_both_decoders(&w, at);
            w.bytes[i] = was;
        }
    ft_writer_free(&w);
}
END_TEST

FT_UNIT_MAIN("sflow_usual", usual_samples_are_no_special_case)
