// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/capture/capture.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/balanced.h"
#include "tests/unit/unit.h"

/* RDMA WRITE ONLY to queue pair 17, 10.0.0.1:49441 to 10.0.0.2:4791, and 8 bytes of payload. */
static const uint8_t frame[] = {
    0x02, 0,    0,    0,    0,    2,    0x02, 0,    0, 0, 0,    1, 0x08, 0,    0x45, 0x02,
    0,    0x30, 0,    0,    0x40, 0,    64,   17,   0, 0, 10,   0, 0,    1,    10,   0,
    0,    2,    0xc1, 0x21, 0x12, 0xb7, 0,    0x1c, 0, 0, 0x0a, 0, 0xff, 0xff, 0,    0,
    0,    0x11, 0,    0,    0,    1,    1,    2,    3, 4, 5,    6, 7,    8,
};
#define TUPLE_BYTES 38 /* up to the ports */

static struct ft_interfaces *interfaces;
static struct ft_flows *flows;
static struct ft_capture *capture;
static uint64_t reports;
static char reported[FT_TUPLE_TEXT_BYTES]; /* the last one */
static enum ft_flow_direction direction;
static bool source_routed;

static void emit(void *arg, const struct ft_flow_report *report)
{
    (void)arg;
    ft_tuple_format(&report->tuple, reported);
    direction = report->direction;
    source_routed = report->source_routed;
    reports++;
}

static void set_up(size_t flows_max)
{
    const struct ft_flows_config config = {
        .flows_max = flows_max, .tick_ns = 1, .report_ns = 1, .refresh_ns = 1, .idle_ns = 1000};
    uint32_t number;

    interfaces = ft_interfaces_new();
    flows = ft_flows_new(&config, emit, NULL);
    capture = ft_capture_new(interfaces, flows);
    ck_assert_ptr_nonnull(capture);
    ck_assert_int_eq(ft_interfaces_intern(interfaces, "eth0", &number), 0);
    reports = 0;
}

static void tear_down(void)
{
    ft_capture_free(capture);
    ft_flows_free(flows);
    ft_interfaces_free(interfaces);
}

/* The bytes are copied to a block of exactly their size, so that a sanitizer sees a read behind. */
static void feed(enum ft_pcap_link link, const uint8_t *bytes, size_t len, bool only_roce)
{
    uint8_t *copy = malloc(len ? len : 1);
    const struct ft_pcap_packet packet = {
        .link = link, .bytes = copy, .captured = (uint32_t)len, .wire = (uint32_t)len + 1000};

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, len);
    ft_capture_packet(capture, 0, &packet, only_roce, (struct ft_mono){0});
    free(copy);
}

/* From fd00:a::1 to this address, else the same packet. */
static void feed6(const char *dst)
{
    uint8_t bytes[sizeof(frame) + 20] = {0};
    const size_t behind = 14 + 20; /* of the header of IPv4 */
    struct ft_ip ip;

    memcpy(bytes, frame, 14);
    bytes[12] = 0x86;
    bytes[13] = 0xdd;
    bytes[14] = 0x60;
    bytes[19] = (uint8_t)(sizeof(frame) - behind);
    bytes[20] = 17;
    bytes[21] = 64;
    ck_assert_int_eq(ft_ip_parse("fd00:a::1", &ip), 0);
    memcpy(bytes + 22, ip.b, sizeof(ip.b));
    ck_assert_int_eq(ft_ip_parse(dst, &ip), 0);
    memcpy(bytes + 38, ip.b, sizeof(ip.b));
    memcpy(bytes + 54, frame + behind, sizeof(frame) - behind);
    feed(FT_PCAP_ETHERNET, bytes, sizeof(bytes), true);
}

static uint64_t flow_count(void)
{
    struct ft_flows_stats stats;

    ft_flows_stats(flows, &stats);
    return stats.created;
}

static struct ft_account_stage balanced(void)
{
    struct ft_account account = {0};

    ft_capture_account(capture, &account);
    ck_assert_uint_eq(account.stage_count, 1);
    ck_assert(ft_account_balanced(&account.stages[0]));
    return account.stages[0];
}

START_TEST(accounts_a_packet_cut_at_every_byte)
{
    set_up(100);
    for (size_t len = 0; len <= sizeof(frame); len++) {
        uint64_t processed = balanced().processed;

        feed(FT_PCAP_ETHERNET, frame, len, true);
        ck_assert_uint_eq(balanced().processed - processed, len >= TUPLE_BYTES);
    }
    ck_assert_uint_eq(balanced().received, sizeof(frame) + 1);
    ft_flows_tick(flows, (struct ft_mono){1}, (struct ft_wall){0});
    ck_assert_uint_eq(reports, 1);
    tear_down();
}
END_TEST

START_TEST(accounts_garbage)
{
    enum { PACKETS = 20000 };
    uint32_t state = 12345;
    uint8_t bytes[128];

    set_up(50);
    for (int i = 0; i < PACKETS; i++) {
        memcpy(bytes, frame, sizeof(frame));
        /* Half of them only nearly right, so that every layer is reached. */
        for (size_t b = 0; b < sizeof(bytes); b++) {
            state = state * 1664525 + 1013904223;
            if (b >= sizeof(frame) || i % 2 || state >> 27 == 0)
                bytes[b] = (uint8_t)(state >> 16);
        }
        feed((enum ft_pcap_link)(i / 2 % 4), bytes, state % (sizeof(bytes) + 1), i % 3 == 0);
    }
    ck_assert_uint_eq(balanced().received, PACKETS);
    ck_assert_uint_gt(balanced().processed, 0);
    ck_assert_uint_lt(balanced().processed, PACKETS);
    tear_down();
}
END_TEST

START_TEST(reopens_nothing_that_was_never_open)
{
    const struct ft_capture_config config = {
        .interfaces = (char *[]){"no-such-interface"}, .interface_count = 1, .snap_bytes = 128};
    struct ft_capture_stats stats;
    struct ft_loop *loop = ft_loop_new();
    char error[512] = "";

    set_up(10);
    ck_assert_int_lt(ft_capture_open(capture, loop, &config, error, sizeof(error)), 0);
    ck_assert_msg(strstr(error, "no-such-interface") != NULL, "%s", error);
    ft_capture_retry(capture);
    ck_assert(ft_capture_stats(capture, 0, &stats));
    ck_assert(!stats.configured && !stats.open);
    ck_assert(!ft_capture_stats(capture, 1, &stats));
    tear_down();
    ft_loop_free(loop);
}
END_TEST

/* Micro-SIDs for several paths, as the sender writes them: one flow, sent by who sends it. */
START_TEST(a_path_in_the_address)
{
    struct ft_usid_blocks blocks = {.local = FT_USID_LOCAL}, none = {.count = 0};
    struct ft_ip ip;

    set_up(100);
    ck_assert_int_eq(ft_usid_block_parse("fc00::/32", &blocks.list[blocks.count++]), 0);
    ck_assert_int_eq(ft_ip_parse("fc00:0:105::", &ip), 0);
    ck_assert_int_eq(ft_interfaces_add(interfaces, 0, &ip), 0);
    ft_capture_take_blocks(capture, &blocks);
    feed6("fc00:0:11:21:13:105::");
    feed6("fc00:0:11:22:13:105::");
    feed6("fc00:0:105::");
    ck_assert_uint_eq(flow_count(), 1);
    ft_flows_tick(flows, (struct ft_mono){1}, (struct ft_wall){0});
    ck_assert_ptr_nonnull(strstr(reported, "-[fc00:0:105::]:4791"));
    ck_assert_int_eq(direction, FT_FLOW_RX);
    ck_assert(source_routed);
    feed6("fc00:0:e001::");
    feed6("fd00::1");
    ck_assert_uint_eq(ft_capture_usids(capture).known, 3);
    ck_assert_uint_eq(ft_capture_usids(capture).unknown, 1);
    ck_assert_uint_eq(flow_count(), 3);
    ft_capture_take_blocks(capture, &none);
    feed6("fc00:0:11:21:13:105::");
    feed6("fc00:0:11:22:13:105::");
    ck_assert_uint_eq(flow_count(), 5);
    ck_assert_uint_eq(balanced().processed, 7);
    tear_down();
}
END_TEST

FT_UNIT_MAIN("capture", accounts_a_packet_cut_at_every_byte, accounts_garbage,
             a_path_in_the_address, reopens_nothing_that_was_never_open)
