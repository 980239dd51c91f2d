// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/sflow/ports.h"

#include <errno.h>
#include <string.h>

#include "lib/base/writer.h"
#include "proto/record.h"
#include "tests/unit/unit.h"

/* Counters of a port and of a processor, from the words of a datagram to the records. */
#define RECORDS_MAX 8

static struct ft_ports *ports;
static struct ft_sflow_stats stats;
static Fabrictrace__Record *records[RECORDS_MAX];
static size_t record_count;
static struct ft_writer w;
static size_t sample_at;

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

static void setup(uint64_t max)
{
    ports = ft_ports_new(max, 0);
    ck_assert_ptr_nonnull(ports);
    memset(&stats, 0, sizeof(stats));
}

static void teardown(void)
{
    while (record_count > 0)
        fabrictrace__record__free_unpacked(records[--record_count], NULL);
    ft_ports_free(ports);
}

static void words(const uint32_t *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ft_write_be32(&w, list[i]);
}

#define WORDS(...)                                                                                 \
    words((const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* A datagram of one counter sample of the data source 0:49 (sFlow v5 sections 5.1 and 5.2.2). */
static void begin(uint32_t count)
{
    ft_writer_init(&w, 65536);
    WORDS(5, 1, 0xc000020b, 7, 1, 1000, 1);
    sample_at = w.len;
    WORDS(2, 0, 1, 49, count);
}

static void record(uint32_t format, const uint32_t *list, size_t count)
{
    WORDS(format, (uint32_t)count * 4);
    words(list, count);
}

/* Generic interface counters, 88 bytes; the port counted ifindex bytes. */
static void generic(uint32_t ifindex)
{
    record(1, (const uint32_t[22]){ifindex, 6, 0, 1000000000, 1, 3, 0, ifindex}, 22);
}

static const struct ft_ip agent = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 11}};

static void on_counters(void *arg, const struct ft_sflow_counters *c)
{
    (void)arg;
    ft_ports_put(ports, &agent, c, (struct ft_wall){5000});
}

static void on_processor(void *arg, const struct ft_sflow_processor *p)
{
    (void)arg;
    ft_ports_put_processor(ports, &agent, 7, p, (struct ft_wall){6000});
}

/* Ends the datagram, and decodes and flushes it. */
static void finish(void)
{
    const struct ft_sflow_visitor visitor = {.counters = on_counters, .processor = on_processor};
    uint32_t len = (uint32_t)(w.len - sample_at - 8);

    for (int i = 0; i < 4; i++)
        w.bytes[sample_at + 4 + (size_t)i] = (uint8_t)(len >> (24 - 8 * i));
    ck_assert_int_eq(ft_sflow_decode(w.bytes, w.len, &visitor, &stats), FT_SFLOW_OK);
    ck_assert_uint_eq(stats.broken_samples, 0);
    ft_writer_free(&w);
    ft_ports_flush(ports, &sink);
}

/* Before the generic record or behind it: exporters do either. */
START_TEST(what_belongs_to_a_port_goes_with_it)
{
    const Fabrictrace__PortCounters *c;

    setup(8);
    begin(3);
    record(2, (const uint32_t[]){100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112},
           13);
    generic(49);
    record(7,
           (const uint32_t[]){0x11111111, 0x22220000, 0x33333333, 0x44440000, 1000, 0x053d073f, 40,
                              2, 3, 4, 5, 60, 7, 8},
           14);
    finish();
    ck_assert_uint_eq(record_count, 1);
    c = records[0]->counters;
    ck_assert_uint_eq(c->ifindex, 49);
    ck_assert_uint_eq(c->in_bytes, 49);
    ck_assert(c->ethernet && c->lag);
    ck_assert_uint_eq(c->ethernet->alignment_errors, 100);
    ck_assert_uint_eq(c->ethernet->fcs_errors, 101);
    ck_assert_uint_eq(c->ethernet->deferred, 105);
    ck_assert_uint_eq(c->ethernet->out_mac_errors, 108);
    ck_assert_uint_eq(c->ethernet->carrier_errors, 109);
    ck_assert_uint_eq(c->ethernet->too_long, 110);
    ck_assert_uint_eq(c->ethernet->in_mac_errors, 111);
    ck_assert_uint_eq(c->ethernet->symbol_errors, 112);
    ck_assert_uint_eq(c->lag->ifindex, 1000);
    ck_assert_uint_eq(c->lag->state, 0x3d);
    ck_assert_uint_eq(c->lag->partner_state, 0x3f);
    ck_assert_uint_eq(c->lag->lacp_in, 40);
    ck_assert_uint_eq(c->lag->lacp_bad, 9);
    ck_assert_uint_eq(c->lag->lacp_out, 60);
    teardown();
}
END_TEST

START_TEST(flow_control_optics_and_names)
{
    const Fabrictrace__PortCounters *c;

    setup(8);
    begin(4);
    record(11, (const uint32_t[]){5, 700, 1, UINT32_MAX, UINT32_MAX}, 5);
    record(10,
           (const uint32_t[]){7, 1, 3300, 41500, 1, 1, 6000, 900, 300, 2000, 1310, 40, 100, 2000,
                              1310},
           15);
    record(1005, (const uint32_t[]){4, 0x73777031}, 2);
    generic(49);
    finish();
    c = records[0]->counters;
    ck_assert(c->has_in_pfc && c->has_out_pfc && c->optics);
    ck_assert_uint_eq(c->out_pfc, 5);
    ck_assert_uint_eq(c->in_pfc, 700);
    ck_assert_str_eq(c->port, "swp1");
    ck_assert_double_eq(c->optics->temperature_celsius, 41.5);
    ck_assert_uint_eq(c->optics->supply_millivolts, 3300);
    ck_assert_uint_eq(c->optics->lanes, 1);
    ck_assert_uint_eq(c->optics->lanes_low, 1);
    ck_assert_uint_eq(c->optics->lanes_high, 0);
    ck_assert_uint_eq(c->optics->rx_power_least_microwatts, 40);
    teardown();
}
END_TEST

/* In a sample of several ports they are the data source's; what is not counted is absent. */
START_TEST(of_several_ports_the_data_source_is_meant)
{
    setup(8);
    begin(4);
    generic(50);
    generic(49);
    record(2, (const uint32_t[13]){[1] = UINT32_MAX, [12] = 9}, 13);
    generic(51);
    finish();
    ck_assert_uint_eq(record_count, 3);
    for (size_t i = 0; i < 3; i++)
        ck_assert(!records[i]->counters->ethernet == (records[i]->counters->ifindex != 49));
    ck_assert(!records[1]->counters->ethernet->has_fcs_errors);
    ck_assert_uint_eq(records[1]->counters->ethernet->symbol_errors, 9);
    ck_assert(!records[1]->counters->lag);
    teardown();
}
END_TEST

START_TEST(a_processor_is_a_record_of_its_own)
{
    const Fabrictrace__Processor *p;

    setup(8);
    begin(1);
    record(1001, (const uint32_t[]){9950, 4200, UINT32_MAX, 2, 0, 0, 1 << 20}, 7);
    finish();
    ck_assert_uint_eq(record_count, 1);
    ck_assert_int_eq(records[0]->kind_case, FABRICTRACE__RECORD__KIND_PROCESSOR);
    p = records[0]->processor;
    ck_assert_uint_eq(p->time_ms, 6000);
    ck_assert_uint_eq(p->sub_agent, 7);
    ck_assert_uint_eq(p->source_index, 49);
    ck_assert_double_eq_tol(p->cpu_5s_percent, 99.5, 1e-9);
    ck_assert_double_eq_tol(p->cpu_1m_percent, 42, 1e-9);
    ck_assert(!p->has_cpu_5m_percent);
    ck_assert_uint_eq(p->memory_bytes, UINT64_C(2) << 32);
    ck_assert_uint_eq(p->memory_free_bytes, 1 << 20);
    ck_assert_uint_eq(stats.counters_other, 0);
    teardown();
}
END_TEST

START_TEST(vlans_are_counted_and_not_handed_on)
{
    setup(8);
    begin(1);
    record(5, (const uint32_t[7]){100}, 7);
    finish();
    ck_assert_uint_eq(record_count, 0);
    ck_assert_uint_eq(stats.records[FT_SFLOW_RECORD_VLAN_COUNTERS], 1);
    ck_assert_uint_eq(stats.counters_other, 1);
    teardown();
}
END_TEST

START_TEST(caps_hold_and_all_is_accounted_for)
{
    struct ft_sflow_processor load = {.source_type = 2};
    struct ft_sflow_counters c = {.ifindex = 1};
    struct ft_ports_stats s;

    setup(2);
    for (uint32_t i = 0; i < 8; i++) {
        c.ifindex = 1 + i / 2;
        load.source_index = 1 + i / 2;
        ck_assert_int_eq(ft_ports_put(ports, &agent, &c, (struct ft_wall){1}),
                         i < 4 ? 0 : -ENOBUFS);
        ck_assert_int_eq(ft_ports_put_processor(ports, &agent, 0, &load, (struct ft_wall){1}),
                         i < 4 ? 0 : -ENOBUFS);
    }
    ft_ports_stats(ports, &s);
    ck_assert_uint_eq(s.pending, 4);
    ft_ports_flush(ports, &sink);
    ft_ports_stats(ports, &s);
    ck_assert_uint_eq(record_count, 4);
    ck_assert_uint_eq(s.received, 16);
    ck_assert_uint_eq(s.emitted, 4);
    ck_assert_uint_eq(s.superseded, 4);
    ck_assert_uint_eq(s.refused, 8);
    ck_assert_uint_eq(s.pending, 0);
    teardown();
}
END_TEST

FT_UNIT_MAIN("ports", flow_control_optics_and_names, what_belongs_to_a_port_goes_with_it,
             of_several_ports_the_data_source_is_meant, a_processor_is_a_record_of_its_own,
             vlans_are_counted_and_not_handed_on, caps_hold_and_all_is_accounted_for)
