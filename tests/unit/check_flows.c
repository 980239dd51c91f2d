// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/capture/flows.h"

#include <errno.h>

#include "tests/unit/unit.h"

#define SECOND      INT64_C(1000000000)
#define REPORTS_MAX 64
#define WALL_ORIGIN 1700000000000

static struct ft_flow_report reports[REPORTS_MAX];
static size_t report_count;

static void keep(void *arg, const struct ft_flow_report *report)
{
    (void)arg;
    ck_assert_uint_lt(report_count, REPORTS_MAX);
    reports[report_count++] = *report;
}

static struct ft_flows *new_flows(size_t flows_max)
{
    const struct ft_flows_config config = {
        .flows_max = flows_max,
        .tick_ns = SECOND,
        .report_ns = 2 * SECOND,
        .refresh_ns = 15 * SECOND,
        .idle_ns = 30 * SECOND,
    };
    struct ft_flows *flows = ft_flows_new(&config, keep, NULL);

    ck_assert_ptr_nonnull(flows);
    report_count = 0;
    return flows;
}

static struct ft_mono at(int64_t ms)
{
    return (struct ft_mono){ms * 1000000};
}

static struct ft_wall wall(int64_t ms)
{
    return (struct ft_wall){WALL_ORIGIN + ms};
}

static struct ft_packet packet(uint16_t sport, enum ft_bth_class bth, uint32_t dst_qp)
{
    struct ft_packet p = {.bth = bth, .dst_qp = dst_qp};

    ck_assert_int_eq(ft_tuple_parse("10.0.1.1:1-10.0.3.1", &p.tuple), 0);
    p.tuple.sport = sport;
    return p;
}

static int send_at(struct ft_flows *flows, int64_t ms, const struct ft_packet *p)
{
    return ft_flows_packet(flows, 0, FT_FLOW_TX, p, 1000, at(ms), wall(ms));
}

static size_t tick(struct ft_flows *flows, int64_t ms)
{
    report_count = 0;
    ft_flows_tick(flows, at(ms), wall(ms));
    return report_count;
}

START_TEST(reports_a_new_flow_at_the_next_tick)
{
    struct ft_flows *flows = new_flows(8);
    struct ft_packet p = packet(49441, FT_BTH_DATA, 17);
    const struct ft_flow_report *r = reports;

    p.ecn = 3;
    ck_assert_int_eq(send_at(flows, 250, &p), 0);
    p.ecn = 2;
    ck_assert_int_eq(send_at(flows, 900, &p), 0);
    ck_assert_uint_eq(tick(flows, 1000), 1);
    ck_assert(ft_tuple_equal(&r->tuple, &p.tuple));
    ck_assert_int_eq(r->direction, FT_FLOW_TX);
    ck_assert_uint_eq(r->counts.data_packets, 2);
    ck_assert_uint_eq(r->counts.ack_packets, 0);
    ck_assert_uint_eq(r->counts.other_packets, 0);
    ck_assert_uint_eq(r->counts.ce_packets, 1);
    ck_assert_uint_eq(r->counts.bytes, 2000);
    ck_assert_int_eq(r->time.ms, WALL_ORIGIN + 1000);
    ck_assert_int_eq(r->first_seen.ms, WALL_ORIGIN + 250);
    ck_assert_int_eq(r->interval_ns, 750 * 1000000);
    ck_assert(r->has_dst_qp && r->dst_qp == 17);
    ck_assert(!r->ended);
    ft_flows_free(flows);
}
END_TEST

START_TEST(reports_differences_every_interval)
{
    struct ft_flows *flows = new_flows(8);
    struct ft_packet p = packet(1, FT_BTH_DATA, 17);
    uint64_t packets = 0;

    /* 100 packets a second for 9 s: reports at 1, 3, 5, 7, 9 s, nothing counted twice. */
    for (int64_t ms = 0; ms < 9000; ms += 10) {
        ck_assert_int_eq(send_at(flows, ms, &p), 0);
        if (ms % 1000 != 990)
            continue;
        ck_assert_uint_eq(tick(flows, ms + 10), (ms / 1000 + 1) % 2);
        if (report_count) {
            ck_assert_uint_eq(reports[0].counts.data_packets, packets ? 200 : 100);
            ck_assert_int_eq(reports[0].interval_ns, (packets ? 2 : 1) * SECOND);
            packets += reports[0].counts.data_packets;
        }
    }
    ck_assert_uint_eq(packets, 900);
    ft_flows_free(flows);
}
END_TEST

START_TEST(forgives_ticks_that_come_early)
{
    struct ft_flows *flows = new_flows(8);
    struct ft_packet p = packet(1, FT_BTH_DATA, 17);

    send_at(flows, 0, &p);
    ck_assert_uint_eq(tick(flows, 1003), 1);
    send_at(flows, 1500, &p);
    ck_assert_uint_eq(tick(flows, 2001), 0);
    ck_assert_uint_eq(tick(flows, 2999), 1);
    ft_flows_free(flows);
}
END_TEST

START_TEST(refreshes_a_quiet_flow_then_ends_it)
{
    struct ft_flows *flows = new_flows(8);
    struct ft_packet p = packet(1, FT_BTH_ACK, 17);
    struct ft_flows_stats stats;

    send_at(flows, 500, &p);
    ck_assert_uint_eq(tick(flows, 1000), 1);
    for (int64_t s = 2; s < 31; s++) {
        ck_assert_uint_eq(tick(flows, s * 1000), s == 16);
        if (s == 16) {
            ck_assert_uint_eq(reports[0].counts.ack_packets, 0);
            ck_assert_uint_eq(reports[0].counts.bytes, 0);
            ck_assert_int_eq(reports[0].interval_ns, 15 * SECOND);
            ck_assert_int_eq(reports[0].first_seen.ms, WALL_ORIGIN + 500);
            ck_assert(reports[0].has_dst_qp && !reports[0].ended);
        }
    }
    ck_assert_uint_eq(tick(flows, 31000), 1);
    ck_assert(reports[0].ended);
    ck_assert_uint_eq(tick(flows, 60000), 0);
    ft_flows_stats(flows, &stats);
    ck_assert_uint_eq(stats.created, 1);
    ck_assert_uint_eq(stats.ended, 1);
    ck_assert_uint_eq(stats.active, 0);

    /* The same tuple later is a new flow. */
    send_at(flows, 60500, &p);
    ck_assert_uint_eq(tick(flows, 61000), 1);
    ck_assert_int_eq(reports[0].first_seen.ms, WALL_ORIGIN + 60500);
    ft_flows_free(flows);
}
END_TEST

START_TEST(last_report_holds_what_was_left)
{
    struct ft_flows *flows = new_flows(8);
    struct ft_packet p = packet(1, FT_BTH_DATA, 17);

    send_at(flows, 0, &p);
    send_at(flows, 1, &p);
    /* No tick for a long while: the first report is the last one. */
    ck_assert_uint_eq(tick(flows, 40000), 1);
    ck_assert(reports[0].ended);
    ck_assert_uint_eq(reports[0].counts.data_packets, 2);
    ft_flows_free(flows);
}
END_TEST

START_TEST(keeps_directions_and_interfaces_apart)
{
    struct ft_flows *flows = new_flows(8);
    struct ft_packet p = packet(1, FT_BTH_DATA, 17);

    ck_assert_int_eq(ft_flows_packet(flows, 0, FT_FLOW_TX, &p, 100, at(0), wall(0)), 0);
    ck_assert_int_eq(ft_flows_packet(flows, 0, FT_FLOW_RX, &p, 200, at(0), wall(0)), 0);
    ck_assert_int_eq(ft_flows_packet(flows, 3, FT_FLOW_RX, &p, 400, at(0), wall(0)), 0);
    ck_assert_int_eq(ft_flows_packet(flows, 0, FT_FLOW_TX, &p, 800, at(0), wall(0)), 0);
    ck_assert_uint_eq(tick(flows, 1000), 3);
    ck_assert_int_eq(reports[0].direction, FT_FLOW_TX);
    ck_assert_uint_eq(reports[0].counts.bytes, 900);
    ck_assert_int_eq(reports[1].direction, FT_FLOW_RX);
    ck_assert_uint_eq(reports[1].counts.bytes, 200);
    ck_assert_uint_eq(reports[2].interface, 3);
    ck_assert_uint_eq(reports[2].counts.bytes, 400);
    ft_flows_free(flows);
}
END_TEST

START_TEST(sorts_packets_by_role)
{
    struct ft_flows *flows = new_flows(8);
    struct ft_packet data = packet(1, FT_BTH_DATA, 17);
    struct ft_packet ack = packet(1, FT_BTH_ACK, 17);
    struct ft_packet other = packet(1, FT_BTH_NONE, 99);

    send_at(flows, 0, &data);
    send_at(flows, 1, &ack);
    send_at(flows, 2, &ack);
    for (int i = 0; i < 3; i++)
        send_at(flows, 3, &other);
    ck_assert_uint_eq(tick(flows, 1000), 1);
    ck_assert_uint_eq(reports[0].counts.data_packets, 1);
    ck_assert_uint_eq(reports[0].counts.ack_packets, 2);
    ck_assert_uint_eq(reports[0].counts.other_packets, 3);
    /* Without a BTH there is no queue pair to disagree. */
    ck_assert(reports[0].has_dst_qp && reports[0].dst_qp == 17);
    ft_flows_free(flows);
}
END_TEST

START_TEST(names_no_queue_pair_when_packets_disagree)
{
    struct ft_flows *flows = new_flows(8);
    struct ft_packet one = packet(1, FT_BTH_DATA, 17);
    struct ft_packet two = packet(1, FT_BTH_DATA, 18);

    send_at(flows, 0, &one);
    send_at(flows, 1, &two);
    send_at(flows, 2, &one);
    tick(flows, 1000);
    ck_assert(!reports[0].has_dst_qp);
    ft_flows_free(flows);
}
END_TEST

START_TEST(refuses_flows_over_the_cap_and_takes_them_later)
{
    struct ft_flows *flows = new_flows(4);
    struct ft_flows_stats stats;
    struct ft_packet p;

    for (uint16_t sport = 0; sport < 6; sport++) {
        p = packet(sport, FT_BTH_DATA, 17);
        ck_assert_int_eq(send_at(flows, 0, &p), sport < 4 ? 0 : -ENOSPC);
    }
    p = packet(3, FT_BTH_DATA, 17);
    ck_assert_int_eq(send_at(flows, 0, &p), 0);
    ft_flows_stats(flows, &stats);
    ck_assert_uint_eq(stats.created, 4);
    ck_assert_uint_eq(stats.active, 4);
    ck_assert_uint_eq(tick(flows, 30000), 4);
    p = packet(5, FT_BTH_DATA, 17);
    ck_assert_int_eq(send_at(flows, 30000, &p), 0);
    ft_flows_free(flows);
}
END_TEST

START_TEST(flush_reports_what_is_left_and_ends_nothing)
{
    struct ft_flows *flows = new_flows(8);
    struct ft_packet p = packet(1, FT_BTH_DATA, 17);
    struct ft_packet quiet = packet(2, FT_BTH_DATA, 17);

    send_at(flows, 0, &quiet);
    ck_assert_uint_eq(tick(flows, 1000), 1);
    send_at(flows, 1200, &p);
    report_count = 0;
    ft_flows_flush(flows, at(1300), wall(1300));
    ck_assert_uint_eq(report_count, 1);
    ck_assert_uint_eq(reports[0].tuple.sport, 1);
    ck_assert_int_eq(reports[0].interval_ns, 100 * 1000000);
    ck_assert(!reports[0].ended);
    ft_flows_free(flows);
}
END_TEST

START_TEST(takes_over_new_intervals)
{
    struct ft_flows *flows = new_flows(8);
    const struct ft_flows_config faster = {
        .tick_ns = SECOND,
        .report_ns = SECOND,
        .refresh_ns = 2 * SECOND,
        .idle_ns = 5 * SECOND,
    };
    struct ft_packet p = packet(1, FT_BTH_DATA, 17);

    send_at(flows, 0, &p);
    ck_assert_uint_eq(tick(flows, 1000), 1);
    ft_flows_configure(flows, &faster);
    ck_assert_uint_eq(tick(flows, 2000), 0);
    ck_assert_uint_eq(tick(flows, 3000), 1);
    ck_assert_uint_eq(tick(flows, 5000), 1);
    ck_assert(reports[0].ended);
    ft_flows_free(flows);
}
END_TEST

FT_UNIT_MAIN("flows", reports_a_new_flow_at_the_next_tick, reports_differences_every_interval,
             forgives_ticks_that_come_early, refreshes_a_quiet_flow_then_ends_it,
             last_report_holds_what_was_left, keeps_directions_and_interfaces_apart,
             sorts_packets_by_role, names_no_queue_pair_when_packets_disagree,
             refuses_flows_over_the_cap_and_takes_them_later,
             flush_reports_what_is_left_and_ends_nothing, takes_over_new_intervals)
