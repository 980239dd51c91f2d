// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/sflow.h"

#include "tests/unit/sflow_bytes.h"
#include "tests/unit/unit.h"

/* Ethernet, VLAN, LAG and processor counters are known by kind, and told when too short. */
START_TEST(other_counters)
{
    static const struct {
        uint32_t format;
        size_t bytes;
        enum ft_sflow_record kind;
    } kinds[] = {{2, 52, FT_SFLOW_RECORD_ETHERNET_COUNTERS}, {5, 28, FT_SFLOW_RECORD_VLAN_COUNTERS},
                 {7, 56, FT_SFLOW_RECORD_LAG_COUNTERS},      {1001, 28, FT_SFLOW_RECORD_PROCESSOR},
                 {10, 20, FT_SFLOW_RECORD_OPTICS},           {11, 20, FT_SFLOW_RECORD_PFC_COUNTERS},
                 {1005, 4, FT_SFLOW_RECORD_PORT_NAME}};

    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct ft_sflow_stats stats;
        struct ft_writer w;
        struct seen seen;
        size_t at;

        datagram(&w, 1);
        at = open_counters(&w, false, 3);
        words(&w, kinds[i].format, (const uint32_t[20]){0}, kinds[i].bytes / 4);
        words(&w, kinds[i].format, (const uint32_t[20]){0}, kinds[i].bytes / 4 - 1);
        generic(&w, 49);
        close_part(&w, at);
        decode_ok(&w, &seen, &stats);
        ck_assert_uint_eq(stats.records[kinds[i].kind], 2);
        ck_assert_uint_eq(stats.broken_records, 1);
        ck_assert_uint_eq(seen.counters, 1);
        ck_assert_uint_eq(stats.counters_other, 0);
    }
}
END_TEST

/* Ethernet errors as on the wire: the number of each word, 13 of them. */
static void ethernet(struct ft_writer *w, uint32_t base)
{
    uint32_t v[13];

    for (uint32_t i = 0; i < 13; i++)
        v[i] = base + i;
    words(w, 2, v, 13);
}

static void port_name(struct ft_writer *w, const char *name, uint32_t stated)
{
    size_t at = open_part(w, 1005);

    ft_write_be32(w, stated);
    ft_write_str(w, name);
    while (w->len % 4)
        ft_write_u8(w, 0);
    close_part(w, at);
}

/* As draft_sflow_pfc.txt has it; and as hsflowd sends it, which is known by the name beside and by
 * what it does not count. */
START_TEST(priority_flow_control)
{
    static const struct {
        uint32_t paused;
        bool name;
        uint64_t requests;
    } cases[] = {{0, false, 5}, {UINT32_MAX, false, 5}, {0, true, 5}, {UINT32_MAX, true, 700}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct ft_sflow_stats stats;
        struct ft_writer w;
        struct seen seen;
        size_t at;

        datagram(&w, 1);
        at = open_counters(&w, false, cases[i].name ? 3 : 2);
        WORDS(&w, 11, 5, 700, cases[i].paused, UINT32_MAX, UINT32_MAX);
        if (cases[i].name)
            port_name(&w, "Ethernet4\033", 10);
        generic(&w, 49);
        close_part(&w, at);
        decode_ok(&w, &seen, &stats);
        ck_assert(seen.counter[0].has_pfc);
        ck_assert_uint_eq(seen.counter[0].pfc.requests, cases[i].requests);
        ck_assert_uint_eq(seen.counter[0].pfc.indications, 705 - cases[i].requests);
        ck_assert_str_eq(seen.counter[0].port, cases[i].name ? "Ethernet4?" : "");
        ck_assert_uint_eq(stats.broken_records, 0);
    }
}
END_TEST

START_TEST(names_of_ports_are_bounded)
{
    struct ft_sflow_stats stats;
    struct ft_writer w;
    struct seen seen;
    char longest[300];
    size_t at;

    memset(longest, 'n', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    datagram(&w, 2);
    at = open_counters(&w, false, 2);
    port_name(&w, longest, sizeof(longest) - 1);
    generic(&w, 49);
    close_part(&w, at);
    at = open_counters(&w, false, 2);
    port_name(&w, "short", 4000000000);
    generic(&w, 49);
    close_part(&w, at);
    decode_ok(&w, &seen, &stats);
    ck_assert_uint_eq(strlen(seen.counter[0].port), FT_SFLOW_PORT_BYTES - 1);
    ck_assert_str_eq(seen.counter[1].port, "");
    ck_assert_uint_eq(stats.broken_records, 1);
}
END_TEST

/* Two lanes of ten words; limits of the second are missed, those of 0 or unknown are none. */
START_TEST(optical_modules)
{
    struct ft_sflow_stats stats;
    struct ft_writer w;
    struct seen seen;
    const struct ft_sflow_optics *o = &seen.counter[0].optics;
    size_t at;

    datagram(&w, 2);
    at = open_counters(&w, false, 2);
    WORDS(&w, 10, 7, 4, 3300, (uint32_t)-1500, 4,              /* module */
          1, 6000, 900, 300, 2000, 1310, 800, 100, 2000, 1310, /* fine */
          2, 6000, 900, 300, 2000, 1310, 40, 100, 2000, 1310,  /* dim */
          3, 6000, 900, 300, 2000, 1310, 3000, 0, 2000, 1310,  /* glaring */
          4, 6000, 900, 300, 2000, 1310, UINT32_MAX, 100, 2000, 1310);
    generic(&w, 49);
    close_part(&w, at);
    /* More lanes than there are bytes. */
    at = open_counters(&w, false, 2);
    WORDS(&w, 10, 7, 4, 3300, 0, 0x10000000, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
    generic(&w, 50);
    close_part(&w, at);
    decode_ok(&w, &seen, &stats);
    ck_assert(seen.counter[0].has_optics);
    ck_assert_int_eq(o->temperature_mc, -1500);
    ck_assert_uint_eq(o->supply_mv, 3300);
    ck_assert_uint_eq(o->lanes, 4);
    ck_assert_uint_eq(o->lanes_low, 1);
    ck_assert_uint_eq(o->lanes_high, 1);
    ck_assert_uint_eq(o->rx_power_least_uw, 40);
    ck_assert(!seen.counter[1].has_optics);
    ck_assert_uint_eq(stats.broken_records, 1);
}
END_TEST

START_TEST(counters_that_belong_to_a_port)
{
    static const uint32_t lag[14] = {
        0x11111111, 0x22220000, 0x33333333, 0x44440000, 1000, 0x053d073f, 40, 2, 3, 4, 5, 60, 7, 8};
    const struct ft_sflow_counters *c;
    struct ft_sflow_stats stats;
    struct ft_writer w;
    struct seen seen;
    size_t at;

    datagram(&w, 2);
    /* Before the generic record or behind it: exporters do either. */
    at = open_counters(&w, false, 3);
    ethernet(&w, 100);
    generic(&w, 49);
    words(&w, 7, lag, 14);
    close_part(&w, at);
    /* Of several ports it is the data source's, 49, which is no longer the only one. */
    at = open_counters(&w, false, 4);
    generic(&w, 50);
    generic(&w, 49);
    words(&w, 2, (const uint32_t[13]){[1] = UINT32_MAX, [12] = 9}, 13);
    generic(&w, 51);
    close_part(&w, at);
    decode_ok(&w, &seen, &stats);
    ck_assert_uint_eq(seen.counters, 4);
    c = &seen.counter[0];
    ck_assert(c->has_ethernet && c->has_lag);
    ck_assert_uint_eq(c->ethernet.alignment_errors, 100);
    ck_assert_uint_eq(c->ethernet.fcs_errors, 101);
    ck_assert_uint_eq(c->ethernet.deferred, 105);
    ck_assert_uint_eq(c->ethernet.out_mac_errors, 108);
    ck_assert_uint_eq(c->ethernet.carrier_errors, 109);
    ck_assert_uint_eq(c->ethernet.too_long, 110);
    ck_assert_uint_eq(c->ethernet.in_mac_errors, 111);
    ck_assert_uint_eq(c->ethernet.symbol_errors, 112);
    ck_assert_uint_eq(c->lag.ifindex, 1000);
    ck_assert_uint_eq(c->lag.actor_state, 0x3d);
    ck_assert_uint_eq(c->lag.partner_state, 0x3f);
    ck_assert_uint_eq(c->lag.lacp_in, 40);
    ck_assert_uint_eq(c->lag.lacp_bad, 9);
    ck_assert_uint_eq(c->lag.lacp_out, 60);
    ck_assert(!seen.counter[1].has_ethernet && !seen.counter[3].has_ethernet);
    ck_assert(seen.counter[2].has_ethernet && !seen.counter[2].has_lag);
    ck_assert(seen.counter[2].ethernet.fcs_errors == FT_SFLOW_NO_COUNT);
    ck_assert_uint_eq(seen.counter[2].ethernet.symbol_errors, 9);
}
END_TEST

START_TEST(processor_load)
{
    struct ft_sflow_stats stats;
    struct ft_writer w;
    struct seen seen;
    size_t at;

    datagram(&w, 2);
    at = open_counters(&w, true, 1);
    words(&w, 1001, (const uint32_t[7]){9950, 4200, UINT32_MAX, 2, 0, 0, 1 << 20}, 7);
    close_part(&w, at);
    at = open_counters(&w, true, 1);
    words(&w, 5, (const uint32_t[7]){1}, 7);
    close_part(&w, at);
    decode_ok(&w, &seen, &stats);
    ck_assert_uint_eq(seen.processors, 1);
    ck_assert_uint_eq(seen.counters, 0);
    ck_assert_uint_eq(seen.processor.cpu_5s, 9950);
    ck_assert_uint_eq(seen.processor.cpu_1m, 4200);
    ck_assert_uint_eq(seen.processor.cpu_5m, UINT32_MAX);
    ck_assert_uint_eq(seen.processor.memory_bytes, UINT64_C(2) << 32);
    ck_assert_uint_eq(seen.processor.memory_free_bytes, 1 << 20);
    ck_assert_uint_eq(seen.processor.source_index, 49);
    /* VLAN counters alone are handed on to nobody, and counted. */
    ck_assert_uint_eq(stats.counter_samples, 2);
    ck_assert_uint_eq(stats.counters_other, 1);
}
END_TEST

START_TEST(counters)
{
    struct ft_sflow_stats stats;
    struct ft_writer w;
    struct seen seen;
    size_t at;
    const struct ft_sflow_counters *c = &seen.counter[0];

    datagram(&w, 3);
    at = open_counters(&w, false, 1);
    generic(&w, 49);
    close_part(&w, at);
    at = open_counters(&w, true, 2);
    generic(&w, 50);
    generic(&w, 51);
    close_part(&w, at);
    at = open_counters(&w, true, 1);
    unknown_record(&w, 2);
    close_part(&w, at);
    decode_ok(&w, &seen, &stats);
    ck_assert_uint_eq(seen.counters, 3);
    ck_assert_uint_eq(stats.counter_samples, 3);
    ck_assert_uint_eq(stats.counters_other, 1);
    ck_assert_uint_eq(c->sequence, 78);
    ck_assert_uint_eq(c->source_index, 49);
    ck_assert_uint_eq(c->ifindex, 49);
    ck_assert_uint_eq(c->speed_bps, 400000000000);
    ck_assert(c->oper_up);
    ck_assert_uint_eq(c->in_bytes, 0x123456789a);
    ck_assert_uint_eq(c->in_packets, 60);
    ck_assert_uint_eq(c->in_discards, 7);
    ck_assert_uint_eq(c->in_errors, 8);
    ck_assert_uint_eq(c->out_bytes, 0xa987654321);
    ck_assert_uint_eq(c->out_packets, 400);
    ck_assert(c->out_discards == FT_SFLOW_NO_COUNT);
    ck_assert_uint_eq(c->out_errors, 11);
    ck_assert_uint_eq(seen.counter[1].ifindex, 50);
    ck_assert_uint_eq(seen.counter[2].ifindex, 51);
}
END_TEST

START_TEST(states_of_ports)
{
    struct ft_sflow_stats stats;
    struct ft_writer w;
    struct seen seen;
    size_t at;

    datagram(&w, 1);
    at = open_counters(&w, true, 4);
    for (uint32_t status = 0; status < 4; status++)
        generic_as(&w, 50 + status, status);
    close_part(&w, at);
    decode_ok(&w, &seen, &stats);
    ck_assert_uint_eq(seen.counters, 4);
    for (uint32_t status = 0; status < 4; status++) {
        ck_assert_int_eq(seen.counter[status].admin_up, (status & IF_ADMIN_UP) != 0);
        ck_assert_int_eq(seen.counter[status].oper_up, (status & IF_OPER_UP) != 0);
    }
}
END_TEST

FT_UNIT_MAIN("sflow_counters", priority_flow_control, names_of_ports_are_bounded, optical_modules,
             other_counters, counters_that_belong_to_a_port, processor_load, counters,
             states_of_ports)
