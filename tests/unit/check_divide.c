// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <string.h>

#include "lib/base/partition.h"
#include "lib/topics/divide.h"
#include "proto/columns.h"
#include "proto/record.h"
#include "tests/batch.h"
#include "tests/unit/unit.h"

#define PARTITIONS 7
#define FLOWS      300
#define SECONDS    5

/* What Kafka's own tests say of its hash (UtilsTest.testMurmur2). */
START_TEST(the_hash_is_kafkas)
{
    static const struct {
        const char *text;
        int32_t hash;
    } known[] = {
        {"21", -973932308},
        {"foobar", -790332482},
        {"a-little-bit-long-string", -985981536},
        {"a-little-bit-longer-string", -1486304829},
        {"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971},
        {"abc", 479470107},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        size_t len = strlen(known[i].text);

        ck_assert_int_eq((int32_t)ft_murmur2(known[i].text, len), known[i].hash);
        ck_assert_uint_eq(ft_partition_of_bytes(known[i].text, len, PARTITIONS),
                          (uint32_t)(known[i].hash & INT32_MAX) % PARTITIONS);
    }
}
END_TEST

static struct ft_tuple flow(uint32_t n)
{
    const uint8_t src[4] = {10, 1, (uint8_t)(n >> 8), (uint8_t)n}, dst[4] = {10, 2, 0, (uint8_t)n};

    return (struct ft_tuple){.src = ft_ip4(src),
                             .dst = ft_ip4(dst),
                             .sport = (uint16_t)(49152 + n),
                             .dport = FT_ROCE_PORT,
                             .proto = FT_PROTO_UDP};
}

/* One flow has one partition, and flows are spread over all. */
START_TEST(flows_are_spread)
{
    uint32_t count[PARTITIONS] = {0};

    for (uint32_t n = 0; n < FLOWS; n++) {
        const struct ft_tuple tuple = flow(n);
        uint8_t key[37];

        memcpy(key, tuple.src.b, 16);
        memcpy(key + 16, tuple.dst.b, 16);
        key[32] = (uint8_t)(tuple.sport >> 8);
        key[33] = (uint8_t)tuple.sport;
        key[34] = FT_ROCE_PORT >> 8;
        key[35] = FT_ROCE_PORT & 255;
        key[36] = FT_PROTO_UDP;
        ck_assert_uint_eq(ft_partition_of_flow(&tuple, PARTITIONS),
                          ft_partition_of_bytes(key, sizeof(key), PARTITIONS));
        count[ft_partition_of_flow(&tuple, PARTITIONS)]++;
    }
    for (uint32_t i = 0; i < PARTITIONS; i++)
        ck_assert_msg(count[i] > FLOWS / PARTITIONS / 2, "partition %u: %u", i, count[i]);
}
END_TEST

struct made {
    Fabrictrace__Record record;
    Fabrictrace__Observation o;
    Fabrictrace__FlowReport report;
    Fabrictrace__Flow flow;
    Fabrictrace__Communicator comm;
    Fabrictrace__Loss loss;
    struct ft_tuple tuple;
    struct ft_ip agent;
};

static void make_observation(struct made *m, uint32_t n, uint64_t time_ms)
{
    const uint8_t agent[4] = {192, 0, 2, 1};

    memset(m, 0, sizeof(*m));
    m->tuple = flow(n);
    m->agent = ft_ip4(agent);
    fabrictrace__observation__init(&m->o);
    m->o.has_time_ms = m->o.has_interval_ms = m->o.has_agent = m->o.has_samples = true;
    m->o.has_packets = m->o.has_bytes = m->o.has_first_ms = m->o.has_last_ms = true;
    m->o.time_ms = m->o.first_ms = m->o.last_ms = time_ms;
    m->o.interval_ms = 1000;
    m->o.samples = m->o.data_samples = 1;
    m->o.packets = 2048;
    m->o.bytes = 2048 * (100 + n);
    ft_flow_from_tuple(&m->flow, &m->tuple);
    m->o.flow = &m->flow;
    m->o.agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&m->agent, &m->o.agent.len);
    fabrictrace__record__init(&m->record);
    m->record.kind_case = FABRICTRACE__RECORD__KIND_OBSERVATION;
    m->record.observation = &m->o;
}

/* What came out: for each flow how many, and the newest. */
struct seen {
    uint32_t observed[FLOWS], reports[FLOWS];
    uint64_t newest_ms[FLOWS];
    uint32_t partition, states, losses, stated;
    char key[400];
};

static uint32_t number_of(const struct ft_tuple *tuple)
{
    return (uint32_t)tuple->sport - 49152;
}

static void see_row(void *arg, const struct ft_observed *o)
{
    struct seen *s = arg;
    uint32_t n = number_of(&o->tuple);

    ck_assert_uint_eq(ft_partition_of_flow(&o->tuple, PARTITIONS), s->partition);
    ck_assert_uint_lt(n, FLOWS);
    ck_assert_uint_gt(o->time_ms, s->newest_ms[n]);
    ck_assert_uint_eq(o->bytes, 2048 * (100 + n));
    s->newest_ms[n] = o->time_ms;
    s->observed[n]++;
}

static void see_record(void *arg, const Fabrictrace__Record *record)
{
    struct seen *s = arg;
    struct ft_observed row;
    struct ft_tuple tuple;

    switch (record->kind_case) {
    case FABRICTRACE__RECORD__KIND_OBSERVATION:
        ck_assert_int_eq(ft_observed_from(record->observation, &row), 0);
        see_row(s, &row);
        return;
    case FABRICTRACE__RECORD__KIND_FLOW:
        ck_assert_int_eq(ft_flow_to_tuple(record->flow->flow, &tuple), 0);
        ck_assert_uint_eq(ft_partition_of_flow(&tuple, PARTITIONS), s->partition);
        /* In the order of the batch: behind the observation of its flow. */
        ck_assert_uint_eq(s->newest_ms[number_of(&tuple)], record->flow->time_ms);
        s->reports[number_of(&tuple)]++;
        return;
    case FABRICTRACE__RECORD__KIND_COMMUNICATOR:
        s->states++;
        return;
    case FABRICTRACE__RECORD__KIND_LOSS:
        s->losses++;
        return;
    default:
        ck_abort_msg("kind %d", (int)record->kind_case);
    }
}

static void see_part(void *arg, const struct ft_divided *part)
{
    const struct ft_batch_sink sink = {see_record, see_row, arg};
    struct ft_batch *batch = ft_batch_new(part->len);
    struct seen *s = arg;
    uint32_t states = s->states, losses = s->losses;

    s->partition = part->partition;
    s->stated += part->records;
    while (ft_batch_step(batch, part->batch, SIZE_MAX, &sink) > 0)
        ;
    ft_batch_free(batch);
    ck_assert_int_eq(s->states - states, part->topic == FT_INGEST_STATE);
    ck_assert_int_eq(s->losses - losses, part->topic == FT_INGEST_REPORTS);
    if (part->topic == FT_INGEST_STATE)
        snprintf(s->key, sizeof(s->key), "%s", part->key);
    else
        ck_assert_str_eq(part->key, "");
}

/* Observations in columns and alone, reports of flows, and records of no flow. */
static uint32_t write_batch(struct ft_writer *w, uint64_t time_ms)
{
    struct ft_columns *columns = ft_columns_new(1 << 20);
    Fabrictrace__Record *one;
    struct made m;
    uint32_t records = 0;

    for (uint32_t n = 0; n < FLOWS; n++) {
        make_observation(&m, n, time_ms);
        one = &m.record;
        if (n % 3)
            ck_assert_int_eq(ft_columns_add(columns, &m.o), 0);
        else
            ck_assert_int_eq(ft_batch_pack(&one, 1, w), 0);
        records++;
    }
    ck_assert_int_eq(ft_columns_pack(columns, w), 0);
    ft_columns_free(columns);
    for (uint32_t n = 0; n < FLOWS; n += 2) {
        make_observation(&m, n, time_ms);
        one = &m.record;
        fabrictrace__flow_report__init(&m.report);
        m.report.has_time_ms = true;
        m.report.time_ms = time_ms;
        m.report.flow = &m.flow;
        m.record.kind_case = FABRICTRACE__RECORD__KIND_FLOW;
        m.record.flow = &m.report;
        ck_assert_int_eq(ft_batch_pack(&one, 1, w), 0);
        records++;
    }
    fabrictrace__communicator__init(&m.comm);
    m.comm.comm_id = (char *)(uintptr_t) "c1";
    m.comm.host = (char *)(uintptr_t) "h1";
    m.record.kind_case = FABRICTRACE__RECORD__KIND_COMMUNICATOR;
    m.record.communicator = &m.comm;
    one = &m.record;
    ck_assert_int_eq(ft_batch_pack(&one, 1, w), 0);
    fabrictrace__loss__init(&m.loss);
    m.loss.source = (char *)(uintptr_t) "h1";
    m.record.kind_case = FABRICTRACE__RECORD__KIND_LOSS;
    m.record.loss = &m.loss;
    ck_assert_int_eq(ft_batch_pack(&one, 1, w), 0);
    return records + 2;
}

static void divide_in_parts_of(size_t bytes)
{
    struct ft_divide *divide = ft_divide_new(PARTITIONS, bytes);
    struct seen seen = {.states = 0};
    const struct ft_divide_sink sink = {see_part, &seen};
    struct ft_writer w;
    uint32_t records = 0;

    ck_assert_ptr_nonnull(divide);
    for (uint64_t s = 1; s <= SECONDS; s++) {
        ft_writer_init(&w, 16 << 20);
        records += write_batch(&w, UINT64_C(1700000000000) + 1000 * s);
        ck_assert_int_eq(ft_divide_batch(divide, w.bytes, w.len, &sink), 0);
        ft_writer_free(&w);
    }
    for (uint32_t n = 0; n < FLOWS; n++) {
        ck_assert_uint_eq(seen.observed[n], SECONDS);
        ck_assert_uint_eq(seen.reports[n], n % 2 ? 0 : SECONDS);
    }
    ck_assert_uint_eq(seen.states, SECONDS);
    ck_assert_uint_eq(seen.losses, SECONDS);
    ck_assert_uint_eq(seen.stated, records);
    ck_assert_str_eq(seen.key, "fabrictrace.communicator.v1/c1/h1");
    ft_divide_free(divide);
}

/* Whatever the size of the parts: each record once, in its partition, in its order. */
START_TEST(each_record_is_in_one_part)
{
    divide_in_parts_of(1000);
    divide_in_parts_of(5000);
    divide_in_parts_of(1 << 20);
}
END_TEST

static void count_part(void *arg, const struct ft_divided *part)
{
    (void)part;
    ++*(int *)arg;
}

static int parts_of(const struct ft_writer *w, size_t bytes)
{
    struct ft_divide *divide = ft_divide_new(PARTITIONS, bytes);
    int parts = 0;
    const struct ft_divide_sink sink = {count_part, &parts};

    ck_assert_int_eq(ft_divide_batch(divide, w->bytes, w->len, &sink), 0);
    ft_divide_free(divide);
    return parts;
}

/* Reports of a batch go in one message, or in as few as their size asks for; of state each goes
 * alone, under its own key. */
START_TEST(reports_go_together)
{
    struct made m = {0};
    Fabrictrace__Record *one = &m.record;
    struct ft_writer w;

    ft_writer_init(&w, 16 << 20);
    fabrictrace__record__init(&m.record);
    fabrictrace__loss__init(&m.loss);
    m.loss.source = (char *)(uintptr_t) "h1";
    m.record.kind_case = FABRICTRACE__RECORD__KIND_LOSS;
    m.record.loss = &m.loss;
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(ft_batch_pack(&one, 1, &w), 0);
    ck_assert_int_eq(parts_of(&w, 1 << 20), 1);
    ck_assert_int_eq(parts_of(&w, w.len / 4), 4);
    ft_writer_reset(&w);
    fabrictrace__communicator__init(&m.comm);
    m.record.kind_case = FABRICTRACE__RECORD__KIND_COMMUNICATOR;
    m.record.communicator = &m.comm;
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(ft_batch_pack(&one, 1, &w), 0);
    ck_assert_int_eq(parts_of(&w, 1 << 20), 100);
    ft_writer_free(&w);
}
END_TEST

/* Of a batch that is none, nothing is handed over. */
START_TEST(a_broken_batch_gives_nothing)
{
    struct ft_divide *divide = ft_divide_new(PARTITIONS, 1000);
    int parts = 0;
    const struct ft_divide_sink sink = {count_part, &parts};
    struct ft_writer w;

    ft_writer_init(&w, 16 << 20);
    write_batch(&w, UINT64_C(1700000000000));
    ck_assert_int_eq(ft_divide_batch(divide, w.bytes, w.len - 1, &sink), -EBADMSG);
    ck_assert_int_eq(parts, 0);
    ck_assert_int_eq(ft_divide_batch(divide, w.bytes, w.len, &sink), 0);
    ck_assert_int_gt(parts, 0);
    ft_writer_free(&w);
    ft_divide_free(divide);
}
END_TEST

static void fill_envelope(Fabrictrace__Envelope *e)
{
    fabrictrace__envelope__init(e);
    e->program = (char *)(uintptr_t) "fabrictrace-agent";
    e->source = (char *)(uintptr_t) "h1";
    e->has_boot_id = e->has_sequence = e->has_record_last = e->has_records = true;
    e->has_partitions = e->has_batch = true;
    e->boot_id = UINT64_MAX;
    e->sequence = 3;
    e->record_last = 40;
    e->records = 10;
    e->partitions = PARTITIONS;
    e->batch.data = (uint8_t *)(uintptr_t) "batch";
    e->batch.len = 5;
}

static bool reads(const Fabrictrace__Envelope *e)
{
    struct ft_writer w;
    Fabrictrace__Envelope *read;
    bool good;

    ft_writer_init(&w, 1 << 20);
    ck_assert_int_eq(ft_envelope_write(&w, e), 0);
    read = ft_envelope_read(w.bytes, w.len);
    good = read && strcmp(read->source, e->source) == 0 && read->boot_id == e->boot_id &&
           read->batch.len == e->batch.len;
    ft_envelope_free(read);
    ft_writer_free(&w);
    return good;
}

/* What cannot be is no envelope: the numbers of one are added to those of others. */
START_TEST(an_envelope_says_what_can_be)
{
    Fabrictrace__Envelope e;

    fill_envelope(&e);
    ck_assert(reads(&e));
    e.records = 41;
    ck_assert(!reads(&e));
    fill_envelope(&e);
    e.sequence = 0;
    ck_assert(!reads(&e));
    fill_envelope(&e);
    e.record_last = UINT64_MAX;
    ck_assert(!reads(&e));
    fill_envelope(&e);
    e.partitions = 0;
    ck_assert(!reads(&e));
    fill_envelope(&e);
    e.source = (char *)(uintptr_t) "two words";
    ck_assert(!reads(&e));
    fill_envelope(&e);
    e.program = (char *)(uintptr_t) "";
    ck_assert(!reads(&e));
    fill_envelope(&e);
    e.has_batch = false;
    ck_assert(!reads(&e));
}
END_TEST

START_TEST(an_envelope_cut_anywhere_is_none)
{
    Fabrictrace__Envelope e;
    struct ft_writer w;

    fill_envelope(&e);
    ft_writer_init(&w, 1 << 20);
    ck_assert_int_eq(ft_envelope_write(&w, &e), 0);
    for (size_t len = 0; len < w.len; len++)
        ck_assert_ptr_null(ft_envelope_read(w.bytes, len));
    ft_writer_free(&w);
}
END_TEST

FT_UNIT_MAIN("divide", the_hash_is_kafkas, flows_are_spread, each_record_is_in_one_part,
             reports_go_together, a_broken_batch_gives_nothing, an_envelope_says_what_can_be,
             an_envelope_cut_anywhere_is_none)
