// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/sflow/ingest.h"

#include <errno.h>
#include <string.h>

#include "lib/base/writer.h"
#include "switchpoll/metrics.h"
#include "switchpoll/output/loss.h"
#include "switchpoll/sflow/telemetry.h"
#include "tests/unit/unit.h"

static struct ft_ingest *in;
static uint64_t observed;  /* samples in the Observations emitted */
static uint64_t intervals; /* Observations emitted */
static uint64_t last_start_ms;
static uint64_t counters;

static void check_stages(const Fabrictrace__Loss *loss)
{
    ck_assert_uint_eq(loss->n_stages, 6);
    for (size_t i = 0; i < loss->n_stages; i++) {
        const Fabrictrace__Stage *s = loss->stages[i];
        uint64_t out = s->processed + s->pending;

        for (size_t d = 0; d < s->n_drops; d++)
            out += s->drops[d]->count;
        ck_assert_msg(s->received == out, "stage %s: received %lu, out %lu", s->name,
                      (unsigned long)s->received, (unsigned long)out);
    }
}

static void count(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    switch (record->kind_case) {
    case FABRICTRACE__RECORD__KIND_OBSERVATION:
        observed += record->observation->samples;
        last_start_ms = record->observation->time_ms;
        intervals++;
        break;
    case FABRICTRACE__RECORD__KIND_COUNTERS:
        counters++;
        break;
    case FABRICTRACE__RECORD__KIND_LOSS:
        check_stages(record->loss);
        break;
    default:
        ck_abort_msg("no such record here");
    }
}

static const struct ft_record_sink sink = {.emit = count};

static void begin(uint64_t sums_max)
{
    const struct ft_ingest_config config = {
        .interval_ms = 1000,
        .sums_max = sums_max,
        .ports_max = 2,
        .exporters_max = 2,
        .sources_max = 2,
        .sink = sink,
    };

    in = ft_ingest_new(&config);
    observed = intervals = last_start_ms = counters = 0;
}

/* Whatever has come in: every stage balances, and what left is what the stages say. */
static struct ft_ingest_stats balanced(void)
{
    struct ft_loss_facts facts = {.source_id = "test"};

    ft_ingest_stats(in, &facts.ingest);
    ft_loss_emit(&facts, (struct ft_wall){0}, &sink);
    ck_assert_uint_eq(facts.ingest.observations, intervals);
    return facts.ingest;
}

static size_t begin_sample(struct ft_writer *w, uint32_t form)
{
    ft_write_be32(w, form);
    ft_write_be32(w, 0);
    return w->len;
}

static void end_sample(struct ft_writer *w, size_t start)
{
    uint32_t len = (uint32_t)(w->len - start);

    for (int i = 0; i < 4; i++)
        w->bytes[start - 4 + (size_t)i] = (uint8_t)(len >> (24 - 8 * i));
}

static void put_flow(struct ft_writer *w, uint32_t sequence, uint16_t sport)
{
    static const uint8_t head[] = {
        0,    0,  0,    0,    0, 0,   0,    0, 0,    0,  0,    0,    0x08, 0x00, /* Ethernet */
        0x45, 2,  0,    132,  0, 0,   0x40, 0, 64,   17, 0,    0,    10,   0,
        1,    1,  10,   0,    3, 1, /* IPv4 */
        0,    0,  0x12, 0xb7, 0, 112, 0,    0, 0x0a, 0,  0xff, 0xff, 0,    0,
        0,    17, 0,    0,    0, 1 /* UDP, BTH */
    };
    uint8_t frame[sizeof(head)];
    size_t start = begin_sample(w, 1);

    memcpy(frame, head, sizeof(head));
    frame[34] = (uint8_t)(sport >> 8);
    frame[35] = (uint8_t)sport;
    for (int i = 0; i < 8; i++)
        ft_write_be32(w, (const uint32_t[]){sequence, 1, 1000, 0, 0, 1, 49, 1}[i]);
    ft_write_be32(w, 1);
    ft_write_be32(w, 16 + (sizeof(frame) + 3) / 4 * 4);
    for (int i = 0; i < 3; i++)
        ft_write_be32(w, (const uint32_t[]){1, 150, 4}[i]);
    ft_write_be32(w, sizeof(frame));
    ft_write_bytes(w, frame, sizeof(frame));
    while (w->len % 4)
        ft_write_u8(w, 0);
    end_sample(w, start);
}

/* From fd00::1 to an address; source port 50000, a BTH. With an IPv6 header around it, to `around`.
 */
static void put_datagram6(struct ft_writer *w, uint32_t sequence, const char *dst,
                          const char *around)
{
    static const uint8_t tail[] = {0xc3, 0x50, 0x12, 0xb7, 0, 20, 0, 0, 0x0a, 0,
                                   0xff, 0xff, 0,    0,    0, 17, 0, 0, 0,    1};
    const char *const to[] = {around ? around : dst, dst};
    const size_t heads = around ? 2 : 1, frame = 14 + heads * 40 + sizeof(tail);
    struct ft_ip ip;
    size_t start;

    ft_writer_reset(w);
    for (int i = 0; i < 7; i++)
        ft_write_be32(w, (const uint32_t[]){5, 1, 0xc0000201, 0, sequence, 1000, 1}[i]);
    start = begin_sample(w, 1);
    for (int i = 0; i < 8; i++)
        ft_write_be32(w, (const uint32_t[]){sequence, 1, 1000, 0, 0, 1, 49, 1}[i]);
    ft_write_be32(w, 1);
    ft_write_be32(w, (uint32_t)(16 + (frame + 3) / 4 * 4));
    for (int i = 0; i < 3; i++)
        ft_write_be32(w, (const uint32_t[]){1, 150, 4}[i]);
    ft_write_be32(w, (uint32_t)frame);
    for (int i = 0; i < 12; i++)
        ft_write_u8(w, 0);
    ft_write_u8(w, 0x86);
    ft_write_u8(w, 0xdd);
    for (size_t i = 0; i < heads; i++) {
        bool outside = i + 1 < heads;

        ft_write_be32(w, 0x60000000);
        ft_write_be32(w, (uint32_t)(sizeof(tail) + (outside ? 40 : 0)) << 16 |
                             (outside ? 41u : 17u) << 8 | 64);
        ck_assert_int_eq(ft_ip_parse("fd00::1", &ip), 0);
        ft_write_bytes(w, ip.b, 16);
        ck_assert_int_eq(ft_ip_parse(to[i], &ip), 0);
        ft_write_bytes(w, ip.b, 16);
    }
    ft_write_bytes(w, tail, sizeof(tail));
    while (w->len % 4)
        ft_write_u8(w, 0);
    end_sample(w, start);
}

static void put_counters(struct ft_writer *w, uint32_t sequence, uint32_t ifindex)
{
    size_t start = begin_sample(w, 2);

    for (int i = 0; i < 6; i++)
        ft_write_be32(w, (const uint32_t[]){sequence, ifindex, 1, 1, 88, ifindex}[i]);
    for (int i = 0; i < 21; i++)
        ft_write_be32(w, (uint32_t)i);
    end_sample(w, start);
}

/* A datagram of two flow samples, an unknown sample between them, and counters. */
static void put_datagram(struct ft_writer *w, uint8_t agent, uint32_t sequence, uint16_t sport)
{
    size_t start;

    ft_writer_reset(w);
    for (int i = 0; i < 7; i++)
        ft_write_be32(
            w, (const uint32_t[]){5, 1, 0xc0000200u | agent, 0, sequence, sequence * 10, 4}[i]);
    put_flow(w, sequence * 2, sport);
    start = begin_sample(w, 4413 << 12 | 9);
    ft_write_be64(w, 0);
    end_sample(w, start);
    put_flow(w, sequence * 2 + 1, sport);
    put_counters(w, sequence, 1);
    ck_assert(ft_writer_ok(w));
}

static bool feed(const void *bytes, size_t len, int64_t when_ms)
{
    return ft_ingest_datagram(in, bytes, len, (struct ft_wall){when_ms});
}

START_TEST(an_interval_closes_with_the_next_datagram_or_the_clock)
{
    struct ft_writer w;

    ft_writer_init(&w, 4096);
    begin(16);
    put_datagram(&w, 1, 1, 50000);
    ck_assert(!feed(w.bytes, w.len, 10400));
    put_datagram(&w, 1, 2, 50000);
    ck_assert(!feed(w.bytes, w.len, 10999));
    ck_assert_uint_eq(balanced().samples_pending, 4);
    put_datagram(&w, 1, 3, 50000);
    ck_assert(feed(w.bytes, w.len, 11000));
    ck_assert_uint_eq(observed, 4);
    ck_assert_uint_eq(last_start_ms, 10000);
    /* The clock waits a quarter of the interval for datagrams that are under way. */
    ck_assert(!ft_ingest_tick(in, (struct ft_wall){12249}));
    ck_assert(ft_ingest_tick(in, (struct ft_wall){12250}));
    ck_assert_uint_eq(observed, 6);
    ck_assert_uint_eq(last_start_ms, 11000);
    ck_assert(!ft_ingest_tick(in, (struct ft_wall){99999}));
    ck_assert_uint_eq(counters, 2);
    ck_assert_uint_eq(balanced().ports.superseded, 1);
    ft_ingest_free(in);
    ft_writer_free(&w);
}
END_TEST

/* What came before the clock was set back does not wait until it is there again. */
START_TEST(a_clock_that_is_set_back_ends_the_interval)
{
    struct ft_writer w;

    ft_writer_init(&w, 4096);
    begin(16);
    put_datagram(&w, 1, 1, 50000);
    feed(w.bytes, w.len, 3600400);
    ck_assert(!ft_ingest_tick(in, (struct ft_wall){3590000}));
    ck_assert(ft_ingest_tick(in, (struct ft_wall){3589999}));
    ck_assert_uint_eq(observed, 2);
    ck_assert_uint_eq(balanced().samples_pending, 0);
    ft_ingest_free(in);
    ft_writer_free(&w);
}
END_TEST

/* A longer interval begins and ends at its multiples, and not a quarter of itself later. */
START_TEST(longer_intervals_end_with_the_windows)
{
    struct ft_writer w;

    ft_writer_init(&w, 4096);
    begin(16);
    put_datagram(&w, 1, 1, 50000);
    feed(w.bytes, w.len, 13200);
    ft_ingest_set_interval(in, 1000, 5000);
    ck_assert_uint_eq(observed, 2);
    put_datagram(&w, 1, 2, 50000);
    ck_assert(!feed(w.bytes, w.len, 13300));
    put_datagram(&w, 1, 3, 50000);
    ck_assert(!feed(w.bytes, w.len, 14999));
    ck_assert(!ft_ingest_tick(in, (struct ft_wall){15249}));
    ck_assert(ft_ingest_tick(in, (struct ft_wall){15250}));
    ck_assert_uint_eq(intervals, 2);
    ck_assert_uint_eq(observed, 6);
    ck_assert_uint_eq(last_start_ms, 10000);
    balanced();
    ft_ingest_free(in);
    ft_writer_free(&w);
}
END_TEST

/* Of 64 sums 48 are enough; at the configured interval the table fills up and counts. */
START_TEST(longer_intervals_lose_nothing_for_want_of_room)
{
    struct ft_writer w;

    ft_writer_init(&w, 4096);
    begin(64);
    ft_ingest_set_interval(in, 1000, 10000);
    for (uint32_t i = 1; i <= 150; i++) {
        put_datagram(&w, 1, i, (uint16_t)(50000 + i));
        feed(w.bytes, w.len, 10000 + i);
    }
    ck_assert_uint_eq(balanced().ended_early, 3);
    ck_assert_uint_eq(balanced().table_full, 0);
    ck_assert_uint_eq(observed, 2 * 144);
    ft_ingest_set_interval(in, 1000, 1000);
    for (uint32_t i = 151; i <= 230; i++) {
        put_datagram(&w, 1, i, (uint16_t)(50000 + i));
        feed(w.bytes, w.len, 30000 + i);
    }
    ft_ingest_flush(in);
    ck_assert_uint_eq(balanced().ended_early, 3);
    ck_assert_uint_eq(balanced().table_full, 2 * 16);
    ft_ingest_free(in);
    ft_writer_free(&w);
}
END_TEST

START_TEST(time_that_goes_back_loses_nothing)
{
    struct ft_writer w;

    ft_writer_init(&w, 4096);
    begin(16);
    put_datagram(&w, 1, 1, 50000);
    feed(w.bytes, w.len, 60500);
    put_datagram(&w, 1, 2, 50000);
    ck_assert(!feed(w.bytes, w.len, 59900));
    put_datagram(&w, 1, 3, 50000);
    ck_assert(feed(w.bytes, w.len, 20100));
    ck_assert_uint_eq(last_start_ms, 60000);
    ck_assert_uint_eq(observed, 4);
    ft_ingest_flush(in);
    ck_assert_uint_eq(last_start_ms, 20000);
    ck_assert_uint_eq(observed, 6);
    balanced();
    ft_ingest_free(in);
    ft_writer_free(&w);
}
END_TEST

START_TEST(unknown_and_broken_parts_cost_only_themselves)
{
    struct ft_ingest_stats s;
    struct ft_writer w;

    ft_writer_init(&w, 4096);
    begin(16);
    put_datagram(&w, 1, 1, 50000);
    feed(w.bytes, w.len, 1000);
    feed(w.bytes, w.len, 1001);
    feed(w.bytes, w.len - 1, 1002);
    feed("\0\0\0\4", 4, 1003);
    feed("", 0, 1004);
    feed("\0\0\0\5\0\0\0\3aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 44, 1005);
    ft_ingest_flush(in);
    s = balanced();
    ck_assert_uint_eq(s.datagrams, 6);
    ck_assert_uint_eq(s.datagrams_processed, 1);
    ck_assert_uint_eq(s.duplicate, 1);
    ck_assert_uint_eq(s.truncated + s.not_sflow_v5, 3);
    ck_assert_uint_eq(s.malformed, 1);
    ck_assert_uint_eq(s.samples, 4);
    ck_assert_uint_eq(s.samples_processed, 3);
    ck_assert_uint_eq(s.unknown_format, 1);
    ck_assert_uint_eq(observed, 2);
    ft_ingest_free(in);
    ft_writer_free(&w);
}
END_TEST

/* Two processes that both call themselves by one agent's address, with like sequences and uptimes.
 */
START_TEST(only_the_same_bytes_are_a_duplicate)
{
    struct ft_writer w;

    ft_writer_init(&w, 4096);
    begin(16);
    for (uint16_t i = 0; i < 4; i++) {
        put_datagram(&w, 1, 9, 50000 + i);
        feed(w.bytes, w.len, 1000);
        feed(w.bytes, w.len, 1000);
    }
    ck_assert_uint_eq(balanced().duplicate, 4);
    ck_assert_uint_eq(balanced().datagrams_processed, 4);
    ft_ingest_free(in);
    ft_writer_free(&w);
}
END_TEST

START_TEST(caps_are_counted)
{
    struct ft_ingest_stats s;
    struct ft_writer w;

    ft_writer_init(&w, 4096);
    begin(3);
    for (uint8_t i = 0; i < 5; i++) {
        put_datagram(&w, i, 1, (uint16_t)(50000 + i));
        feed(w.bytes, w.len, 1000);
    }
    ck_assert_uint_eq(balanced().samples_pending, 10); /* not yet at the table */
    ft_ingest_tick(in, (struct ft_wall){1000});
    s = balanced();
    ck_assert_uint_eq(s.table_full, 4);
    ck_assert_uint_eq(s.samples_pending, 6);
    ck_assert_uint_eq(s.ports.refused, 3);
    ck_assert_uint_eq(s.exporters.untracked, 3);
    ck_assert_uint_eq(s.datagrams_processed, 5);
    ft_ingest_free(in);
    ft_writer_free(&w);
}
END_TEST

/* Truncation at every byte, and bytes changed at random: the balance holds after each datagram. */
START_TEST(exporters_that_are_not_listed_take_no_room)
{
    char *texts[] = {"192.0.2.4/31", "2001:db8::1"}, *bad[] = {"192.0.2.9", "leaf1"};
    const struct ft_strings listed = {texts, 2}, wrong = {bad, 2}, none = {NULL, 0};
    struct ft_ingest_stats s;
    struct ft_writer w;

    ft_writer_init(&w, 4096);
    begin(100);
    ck_assert_int_eq(ft_ingest_take_exporters(in, &listed), 0);
    ck_assert_int_eq(ft_ingest_take_exporters(in, &wrong), -EINVAL);
    /* Strangers first: there is room for two exporters. */
    for (uint8_t agent = 1; agent < 10; agent++) {
        put_datagram(&w, agent, 1, 50000);
        feed(w.bytes, w.len, 100);
    }
    ft_ingest_flush(in);
    s = balanced();
    ck_assert_uint_eq(s.datagrams, 9);
    ck_assert_uint_eq(s.datagrams_processed, 2);
    ck_assert_uint_eq(s.unlisted, 7);
    ck_assert_uint_eq(s.exporters.exporters, 2);
    ck_assert_uint_eq(s.exporters.untracked, 0);
    ck_assert_uint_eq(s.samples, 8);
    ck_assert_int_eq(ft_ingest_take_exporters(in, &none), 0);
    put_datagram(&w, 9, 2, 50000);
    feed(w.bytes, w.len, 200);
    ck_assert_uint_eq(balanced().datagrams_processed, 3);
    ft_writer_free(&w);
    ft_ingest_free(in);
}
END_TEST

/* Containers are one flow; of other destinations, and of a flow inside a header with one, nothing
 * changes. */
START_TEST(destinations_that_are_a_path)
{
    static const struct {
        const char *dst, *around;
    } packets[] = {{"fc00:0:11:21:13:105::", NULL},
                   {"fc00:0:21:13:105::", NULL},
                   {"fc00:0:105::", NULL},
                   {"fc00:0:e001::", NULL},
                   {"fd00::105", NULL},
                   {"fc00:0:13:105::", "fc00:0:11:13::"},
                   {"fc00:0:13:105::", "fc00:0:13::"}};
    char *texts[] = {"fc00:0::/32"}, *bad[] = {"fc00:0::/32", "fc00:1::/33"};
    const struct ft_strings blocks = {texts, 1}, wrong = {bad, 2}, none = {NULL, 0};
    struct ft_ingest_stats s;
    struct ft_writer w;

    ft_writer_init(&w, 4096);
    begin(100);
    ck_assert_int_eq(ft_ingest_take_blocks(in, &blocks, 0xe000), 0);
    ck_assert_int_eq(ft_ingest_take_blocks(in, &wrong, 0xe000), -EINVAL);
    for (uint32_t i = 0; i < 14; i++) {
        put_datagram6(&w, i + 1, packets[i % 7].dst, packets[i % 7].around);
        feed(w.bytes, w.len, 100);
        if (i == 6) {
            ft_ingest_flush(in);
            s = balanced();
            ck_assert_uint_eq(s.usid_known, 3);
            ck_assert_uint_eq(s.usid_unknown, 1);
            ck_assert_uint_eq(intervals, 4);
            ck_assert_int_eq(ft_ingest_take_blocks(in, &none, 0xe000), 0);
        }
    }
    ft_ingest_flush(in);
    s = balanced();
    ck_assert_uint_eq(s.usid_known + s.usid_unknown, 4);
    ck_assert_uint_eq(intervals, 4 + 6);
    ft_writer_free(&w);
    ft_ingest_free(in);
}
END_TEST

START_TEST(garbage_is_accounted_for)
{
    struct ft_ingest_stats s;
    struct ft_writer w;
    uint64_t fed = 0;

    ft_writer_init(&w, 4096);
    begin(64);
    put_datagram(&w, 1, 1, 50000);
    for (size_t len = 0; len <= w.len; len++, fed++) {
        feed(w.bytes, len, 1000);
        s = balanced();
    }
    ck_assert_uint_eq(s.datagrams_processed, 1);
    srandom(1);
    for (uint32_t i = 0; i < 20000; i++, fed++) {
        put_datagram(&w, (uint8_t)random(), (uint32_t)random() % 100, (uint16_t)random());
        for (int n = (int)(random() % 4); n > 0; n--)
            w.bytes[(size_t)random() % w.len] = (uint8_t)random();
        feed(w.bytes, w.len - (random() % 8 ? 0 : (size_t)random() % w.len), 1000 + i);
        s = balanced();
    }
    ft_ingest_flush(in);
    s = balanced();
    ck_assert_uint_eq(s.datagrams, fed);
    ck_assert_uint_eq(s.samples_pending, 0);
    ck_assert_uint_gt(s.malformed_samples, 0);
    ck_assert_uint_eq(observed + s.ports.received, s.samples_processed);
    ft_ingest_free(in);
    ft_writer_free(&w);
}
END_TEST

START_TEST(metrics_tell_the_same)
{
    const struct ft_sflow_exporters *tables[1];
    struct ft_telemetry t = {.facts = {.kernel_drops = 5}};
    struct ft_writer w;
    struct ft_prom page = {&w, &ft_poll_metrics, NULL};
    const char *text;

    ft_writer_init(&w, 65536);
    begin(16);
    put_datagram(&w, 7, 1, 50000);
    feed(w.bytes, w.len, 1000);
    put_datagram(&w, 7, 4, 50000);
    feed(w.bytes, w.len, 1500);
    ft_ingest_stats(in, &t.facts.ingest);
    tables[0] = ft_ingest_exporters(in);
    t.exporters = tables;
    t.exporter_tables = 1;
    ft_writer_reset(&w);
    ft_telemetry_write(&t, &page);
    ft_write_u8(&w, 0);
    ck_assert(ft_writer_ok(&w));
    text = (const char *)w.bytes;
#define HAS(line) ck_assert_msg(strstr(text, "\nfabrictrace_switchpoll_" line "\n"), "%s", text)
    HAS("datagrams_received_total 7");
    HAS("datagrams_processed_total 2");
    HAS("datagrams_dropped_total{reason=\"kernel_buffer\"} 5");
    HAS("network_datagrams_missing_total 2");
    HAS("exporter_datagrams_missing_total{agent=\"192.0.2.7\",sub_agent=\"0\"} 2");
    HAS("samples_pending 4");
    HAS("samples_dropped_total{reason=\"unknown_format\"} 2");
#undef HAS
    ck_assert_ptr_null(strstr(text, "50000"));
    ft_ingest_free(in);
    ft_writer_free(&w);
}
END_TEST

FT_UNIT_MAIN("ingest", a_clock_that_is_set_back_ends_the_interval,
             an_interval_closes_with_the_next_datagram_or_the_clock,
             longer_intervals_end_with_the_windows, longer_intervals_lose_nothing_for_want_of_room,
             time_that_goes_back_loses_nothing, unknown_and_broken_parts_cost_only_themselves,
             only_the_same_bytes_are_a_duplicate, caps_are_counted,
             exporters_that_are_not_listed_take_no_room, destinations_that_are_a_path,
             garbage_is_accounted_for, metrics_tell_the_same)
