// SPDX-License-Identifier: Apache-2.0
/*
 * Cost of the codecs on one core: sFlow samples decoded, records written as JSON and read back,
 * batches packed and unpacked. Each figure is the best of several rounds; of the observations of a
 * fabric, as of 512 leaves under 32 spines, it also says the bytes of one in its batch.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "proto/batch.h"
#include "proto/columns.h"
#include "proto/record.h"
#include "proto/sflow.h"
#include "tests/batch.h"
#include "tests/put.h"

#define ROUNDS       7
#define ROUND_NS     200000000
#define SAMPLES      8 /* in a datagram of 1,500 bytes */
#define BATCH        500
#define HEADER_BYTES 128

struct bench {
    const char *name;
    const char *unit;
    uint64_t (*run)(void *arg); /* units of work done */
    void *arg;
};

static void measure(const struct bench *b)
{
    double best = 0;

    for (int round = 0; round < ROUNDS; round++) {
        struct ft_mono start = ft_mono_now();
        uint64_t units = 0;
        int64_t spent;

        do {
            units += b->run(b->arg);
            spent = ft_mono_since_ns(ft_mono_now(), start);
        } while (spent < ROUND_NS);
        if (round == 0 || (double)spent / (double)units < best)
            best = (double)spent / (double)units;
    }
    printf("%-42s %9.1f ns/%s  %11.0f %ss/s\n", b->name, best, b->unit, 1e9 / best, b->unit);
}

struct datagram {
    struct ft_writer w;
    uint64_t tuples;
};

static void on_flow(void *arg, const struct ft_sflow_flow *flow)
{
    struct datagram *d = arg;

    d->tuples += flow->has_packet;
}

static uint64_t decode_sflow(void *arg)
{
    struct datagram *d = arg;
    struct ft_sflow_visitor visitor = {.flow = on_flow, .arg = d};
    struct ft_sflow_stats stats = {0};

    d->tuples = 0;
    for (int i = 0; i < 1000; i++)
        ft_sflow_decode(d->w.bytes, d->w.len, &visitor, &stats);
    if (d->tuples != 1000 * SAMPLES) {
        fprintf(stderr, "bench_decode: samples without a tuple\n");
        exit(1);
    }
    return stats.flow_samples;
}

/* What a switch sends for a RoCEv2 packet of 1,082 bytes: 128 bytes of its head. */
static void write_frame(struct ft_writer *w, bool six, uint16_t sport)
{
    size_t start = w->len, end = start + HEADER_BYTES;

    for (int i = 0; i < 12; i++)
        ft_write_u8(w, 2);
    put_be16(w, six ? 0x86dd : 0x0800);
    if (six) {
        ft_write_be32(w, 0x60200000);
        ft_write_be32(w, 1028 << 16 | FT_PROTO_UDP << 8 | 64);
        for (uint64_t i = 1; i <= 2; i++) {
            ft_write_be64(w, 0xfd00000000000000);
            ft_write_be64(w, i);
        }
    } else {
        ft_write_be32(w, 0x45020000 | 1048);
        ft_write_be32(w, 0x00014000);
        ft_write_be32(w, 64 << 24 | FT_PROTO_UDP << 16);
        ft_write_be32(w, 0x0a000101);
        ft_write_be32(w, 0x0a000301);
    }
    put_be16(w, sport);
    put_be16(w, FT_ROCE_PORT);
    ft_write_be32(w, 1028 << 16);
    ft_write_be32(w, 0x0700ffff);
    ft_write_be32(w, 17);
    ft_write_be32(w, 0xb7c540);
    while (w->len < end)
        ft_write_u8(w, 0);
}

static void write_sample(struct ft_writer *w, bool expanded, bool six, uint32_t i)
{
    const uint32_t raw_bytes = 16 + HEADER_BYTES, switch_bytes = 16;

    ft_write_be32(w, expanded ? 3 : 1);
    ft_write_be32(w, (expanded ? 44 : 32) + 8 + raw_bytes + 8 + switch_bytes);
    ft_write_be32(w, i);
    if (expanded)
        ft_write_be32(w, 0);
    ft_write_be32(w, 49);
    ft_write_be32(w, 2048);
    ft_write_be32(w, 1000000 + i);
    ft_write_be32(w, 0);
    for (uint32_t port = 1; port <= 2; port++) {
        if (expanded)
            ft_write_be32(w, 0);
        ft_write_be32(w, port);
    }
    ft_write_be32(w, 2);
    ft_write_be32(w, 1);
    ft_write_be32(w, raw_bytes);
    ft_write_be32(w, 1);
    ft_write_be32(w, 1082);
    ft_write_be32(w, 4);
    ft_write_be32(w, HEADER_BYTES);
    write_frame(w, six, (uint16_t)(49152 + i));
    ft_write_be32(w, 1001); /* extended switch data, as most send along */
    ft_write_be32(w, switch_bytes);
    ft_write_be64(w, 0);
    ft_write_be64(w, 0);
}

static void make_datagram(struct datagram *d, bool expanded, bool six)
{
    struct ft_writer *w = &d->w;

    ft_writer_init(w, 65536);
    ft_write_be32(w, 5);
    ft_write_be32(w, 1);
    ft_write_be32(w, 0xc000020b);
    ft_write_be32(w, 0);
    ft_write_be32(w, 1);
    ft_write_be32(w, 1);
    ft_write_be32(w, SAMPLES);
    for (uint32_t i = 0; i < SAMPLES; i++)
        write_sample(w, expanded, six, i);
}

static const char observation[] =
    "{\"schema\":\"fabrictrace.observation.v1\",\"time_ms\":1700000000000,\"interval_ms\":1000,"
    "\"first_ms\":1700000000012,\"last_ms\":1700000000951,\"agent\":\"192.0.2.11\",\"flow\":{"
    "\"src\":\"10.0.1.1\",\"dst\":\"10.0.3.1\",\"sport\":49441,\"dport\":4791,\"proto\":17},"
    "\"in_ifindex\":1,\"out_ifindex\":49,\"point\":\"ingress\",\"samples\":3,\"packets\":6144,"
    "\"bytes\":6647808,\"data_samples\":3,\"dst_qp\":17}";

static const char path[] =
    "{\"schema\":\"fabrictrace.path.v1\",\"window_start_ms\":1700000000000,"
    "\"window_end_ms\":1700000010000,\"fabric\":\"lab\",\"flow\":{\"src\":\"10.0.1.1\","
    "\"dst\":\"10.0.3.1\",\"sport\":49441,\"dport\":4791,\"proto\":17},\"role\":\"data\","
    "\"state\":\"resolved\",\"hops\":[{\"switch\":\"leaf1\",\"in\":\"Ethernet1\","
    "\"out\":\"Ethernet51\",\"samples\":118,\"share\":1,\"share_lo\":0.968477},"
    "{\"switch\":\"spine1\",\"in\":\"Ethernet1\",\"out\":\"Ethernet4\",\"samples\":97,\"share\":1,"
    "\"share_lo\":0.961911},{\"switch\":\"leaf4\",\"in\":\"Ethernet51\",\"out\":\"Ethernet2\","
    "\"samples\":103,\"share\":1,\"share_lo\":0.964045}],\"candidates\":1,\"rate_bps\":24100000000,"
    "\"rate_lo_bps\":22000000000,\"rate_hi_bps\":26300000000,\"rate_source\":\"sflow\","
    "\"bytes\":30125000000,\"src_host\":\"gpu01\",\"dst_host\":\"gpu07\","
    "\"first_seen_ms\":1699999990000,\"path_since_ms\":1699999990000}";

struct records {
    const char *text;
    Fabrictrace__Record *one;
    Fabrictrace__Record *batch[BATCH];
    struct ft_writer w;
    uint64_t applied;
};

static Fabrictrace__Record *parse(const char *text)
{
    Fabrictrace__Record *r;
    char error[200];

    if (ft_record_from_json(text, strlen(text), &r, error, sizeof(error))) {
        fprintf(stderr, "bench_decode: %s\n", error);
        exit(1);
    }
    return r;
}

static void make_records(struct records *r, const char *text)
{
    r->text = text;
    r->one = parse(text);
    for (size_t i = 0; i < BATCH; i++)
        r->batch[i] = r->one;
    ft_writer_init(&r->w, 64u << 20);
}

static uint64_t write_json(void *arg)
{
    struct records *r = arg;

    ft_writer_reset(&r->w);
    for (int i = 0; i < 1000; i++)
        if (ft_record_to_json(r->one, &r->w))
            exit(1);
    return 1000;
}

static uint64_t read_json(void *arg)
{
    struct records *r = arg;

    for (int i = 0; i < 1000; i++)
        ft_record_free(parse(r->text));
    return 1000;
}

static uint64_t pack(void *arg)
{
    struct records *r = arg;

    ft_writer_reset(&r->w);
    if (ft_batch_pack(r->batch, BATCH, &r->w))
        exit(1);
    return BATCH;
}

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    struct records *r = arg;

    r->applied += record->kind_case == r->one->kind_case;
}

static uint64_t unpack(void *arg)
{
    struct records *r = arg;
    uint64_t known, unknown;

    if (ft_batch_unpack(r->w.bytes, r->w.len, on_record, r, &known, &unknown) || known != BATCH)
        exit(1);
    return BATCH;
}

#define FABRIC_ROWS  50000
#define FABRIC_HOSTS 8192

/* What a poller of a large fabric sends of a second: each flow was sampled once at each hop. */
struct fabric {
    struct made {
        Fabrictrace__Observation o;
        Fabrictrace__Flow flow;
        struct ft_tuple tuple;
        struct ft_ip agent;
        Fabrictrace__Record record;
    } * made;
    Fabrictrace__Record **records;
    struct ft_columns *columns;
    struct ft_writer single, packed;
    uint64_t seen;
};

static uint32_t dice(uint32_t sides)
{
    static uint64_t state = 1;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % sides;
}

static struct ft_ip address(uint32_t net, uint32_t n)
{
    const uint8_t four[4] = {10, (uint8_t)net, (uint8_t)(n >> 8), (uint8_t)n};

    return ft_ip4(four);
}

static void make_one(struct made *m, uint32_t n)
{
    uint32_t src = dice(FABRIC_HOSTS), dst = dice(FABRIC_HOSTS), spine = dice(32), hop = dice(3);
    uint32_t leaf = (hop == 0 ? src : dst) / 16;
    Fabrictrace__Observation *o = &m->o;

    m->tuple = (struct ft_tuple){.src = address(1, src),
                                 .dst = address(1, dst),
                                 .sport = (uint16_t)(49152 + dice(16384)),
                                 .dport = FT_ROCE_PORT,
                                 .proto = FT_PROTO_UDP};
    m->agent = address(2, hop == 1 ? 512 + spine : leaf);
    fabrictrace__observation__init(o);
    ft_flow_from_tuple(&m->flow, &m->tuple);
    o->flow = &m->flow;
    o->agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&m->agent, &o->agent.len);
    o->has_time_ms = o->has_interval_ms = o->has_first_ms = o->has_last_ms = o->has_agent = true;
    o->has_in_ifindex = o->has_out_ifindex = o->has_point = o->has_fate = o->has_sub_agent = true;
    o->has_samples = o->has_packets = o->has_bytes = o->has_ce_samples = true;
    o->has_data_samples = o->has_ack_samples = o->has_dst_qp = o->has_ttl = true;
    o->time_ms = 1700000000000;
    o->interval_ms = 1000;
    o->first_ms = o->last_ms = o->time_ms + (uint64_t)n * 1000 / FABRIC_ROWS;
    o->in_ifindex = hop == 0 ? 1 + src % 16 : hop == 1 ? 1 + src / 16 : 100 + spine;
    o->out_ifindex = hop == 0 ? 100 + spine : 1 + (hop == 1 ? dst / 16 : dst % 16);
    o->point = FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_INGRESS;
    o->samples = o->data_samples = 1;
    o->packets = 2048;
    o->bytes = 2048 * (dice(4) ? 4170 : 64 + dice(4000));
    o->dst_qp = dice(1u << 24);
    o->ttl = 64 - hop;
    fabrictrace__record__init(&m->record);
    m->record.kind_case = FABRICTRACE__RECORD__KIND_OBSERVATION;
    m->record.observation = o;
}

static uint64_t pack_columns(void *arg)
{
    struct fabric *f = arg;

    ft_writer_reset(&f->packed);
    for (uint32_t i = 0; i < FABRIC_ROWS; i++)
        if (ft_columns_add(f->columns, &f->made[i].o))
            exit(1);
    if (ft_columns_pack(f->columns, &f->packed))
        exit(1);
    return FABRIC_ROWS;
}

static uint64_t pack_singles(void *arg)
{
    struct fabric *f = arg;

    ft_writer_reset(&f->single);
    if (ft_batch_pack(f->records, FABRIC_ROWS, &f->single))
        exit(1);
    return FABRIC_ROWS;
}

static void take_single(void *arg, const Fabrictrace__Record *record)
{
    struct fabric *f = arg;
    struct ft_observed o;

    if (ft_observed_from(record->observation, &o))
        exit(1);
    f->seen += o.samples;
}

static void take_row(void *arg, const struct ft_observed *o)
{
    struct fabric *f = arg;

    f->seen += o->samples;
}

static uint64_t unpack_fabric(struct fabric *f, const struct ft_writer *w)
{
    const struct ft_batch_sink sink = {take_single, take_row, f};
    struct ft_batch *batch = ft_batch_new(w->len);

    f->seen = 0;
    while (ft_batch_step(batch, w->bytes, 64, &sink) > 0)
        ;
    ft_batch_free(batch);
    if (f->seen != FABRIC_ROWS)
        exit(1);
    return FABRIC_ROWS;
}

static uint64_t unpack_columns(void *arg)
{
    struct fabric *f = arg;

    return unpack_fabric(f, &f->packed);
}

static uint64_t unpack_singles(void *arg)
{
    struct fabric *f = arg;

    return unpack_fabric(f, &f->single);
}

static void measure_fabric(void)
{
    struct fabric f = {.made = calloc(FABRIC_ROWS, sizeof(*f.made)),
                       .records = calloc(FABRIC_ROWS, sizeof(*f.records)),
                       .columns = ft_columns_new(2u << 20)};
    const struct bench benches[] = {
        {"a fabric's observations packed", "record", pack_singles, &f},
        {"a fabric's observations unpacked", "record", unpack_singles, &f},
        {"the same in columns packed", "record", pack_columns, &f},
        {"the same in columns unpacked", "record", unpack_columns, &f},
    };

    if (!f.made || !f.records || !f.columns)
        exit(1);
    ft_writer_init(&f.single, 64u << 20);
    ft_writer_init(&f.packed, 64u << 20);
    for (uint32_t i = 0; i < FABRIC_ROWS; i++) {
        make_one(&f.made[i], i);
        f.records[i] = &f.made[i].record;
    }
    for (size_t i = 0; i < sizeof(benches) / sizeof(benches[0]); i++)
        measure(&benches[i]);
    printf("%-42s %9.1f bytes, in columns %.1f\n", "an observation in its batch",
           (double)f.single.len / FABRIC_ROWS, (double)f.packed.len / FABRIC_ROWS);
    free(f.made);
    free(f.records);
    ft_columns_free(f.columns);
    ft_writer_free(&f.single);
    ft_writer_free(&f.packed);
}

int main(void)
{
    static struct datagram compact4, compact6, expanded4;
    static struct records observations, paths;
    const struct bench benches[] = {
        {"sFlow decode, compact, IPv4 RoCEv2", "sample", decode_sflow, &compact4},
        {"sFlow decode, compact, IPv6 RoCEv2", "sample", decode_sflow, &compact6},
        {"sFlow decode, expanded, IPv4 RoCEv2", "sample", decode_sflow, &expanded4},
        {"observation to JSON", "record", write_json, &observations},
        {"observation from JSON", "record", read_json, &observations},
        {"observations packed", "record", pack, &observations},
        {"observations unpacked", "record", unpack, &observations},
        {"path to JSON", "record", write_json, &paths},
        {"path from JSON", "record", read_json, &paths},
        {"paths packed", "record", pack, &paths},
        {"paths unpacked", "record", unpack, &paths},
    };

    make_datagram(&compact4, false, false);
    make_datagram(&compact6, false, true);
    make_datagram(&expanded4, true, false);
    make_records(&observations, observation);
    make_records(&paths, path);
    for (size_t i = 0; i < sizeof(benches) / sizeof(benches[0]); i++)
        measure(&benches[i]);
    measure_fabric();
    ft_writer_free(&compact4.w);
    ft_writer_free(&compact6.w);
    ft_writer_free(&expanded4.w);
    ft_record_free(observations.one);
    ft_record_free(paths.one);
    ft_writer_free(&observations.w);
    ft_writer_free(&paths.w);
    return 0;
}
