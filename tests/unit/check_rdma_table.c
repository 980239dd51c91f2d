// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "tests/unit/rdma_table_rig.h"

static void balance(void *arg, const struct ft_rdma_flow *flow)
{
    *(int64_t *)arg += flow->ended ? -1 : 1;
}

static void flow_is(const struct ft_rdma_flow *flow, const char *text, uint32_t lqpn, uint32_t rqpn)
{
    struct ft_tuple tuple;

    ck_assert_int_eq(ft_tuple_parse(text, &tuple), 0);
    ck_assert(ft_tuple_equal(&flow->tuple, &tuple));
    ck_assert(flow->has_qp);
    ck_assert_uint_eq(flow->lqpn, lqpn);
    ck_assert_uint_eq(flow->rqpn, rqpn);
}

START_TEST(a_destination_makes_both_directions)
{
    struct ft_rdma_table *t = new_table(RDMA_DRIVER_RXE);
    const struct ft_rdma_qp qp = row(17, 17, 219);
    struct ft_rdma_table_stats stats;

    go_round(t, &qp, 1, 1);
    report(t, 1);
    ck_assert_uint_eq(count, 0);
    ft_rdma_table_stats(t, &stats);
    ck_assert_uint_eq(stats.no_destination, 1);
    answer(t, 17, "10.2.0.1");
    go_round(t, &qp, 1, 2);
    report(t, 2);
    ck_assert_uint_eq(count, 2);
    flow_is(&got[0], "10.1.0.1:49441-10.2.0.1", 17, 17);
    ck_assert_int_eq(got[0].direction, FT_FLOW_TX);
    ck_assert_int_eq(got[0].source, FT_RDMA_COMPUTED);
    ck_assert_uint_eq(got[0].pid, 219);
    ck_assert_str_eq(got[0].netdev, "h1");
    flow_is(&got[1], "10.2.0.1:49441-10.1.0.1", 17, 17);
    ck_assert_int_eq(got[1].direction, FT_FLOW_RX);
    report(t, 3);
    ck_assert_uint_eq(count, 0);
    report(t, 62);
    ck_assert_uint_eq(count, 2);
    go_round(t, NULL, 0, 63);
    report(t, 63);
    ck_assert_uint_eq(count, 2);
    ck_assert(got[0].ended && got[1].ended);
    report(t, 64);
    ck_assert_uint_eq(count, 0);
    ft_rdma_table_free(t);
}
END_TEST

/* As in the captured packets of the queue pair: micro-SIDs for a path are no part of the name. */
START_TEST(a_destination_that_is_a_path)
{
    struct ft_rdma_table *t = new_table(RDMA_DRIVER_RXE);
    const struct ft_rdma_qp qp = row(17, 17, 219);
    struct ft_usid_blocks blocks = {.local = FT_USID_LOCAL};
    const struct ft_ip stays = ip("fc00:0:105::");

    ck_assert_int_eq(ft_usid_block_parse("fc00::/32", &blocks.list[blocks.count++]), 0);
    ft_rdma_table_take_blocks(t, &blocks);
    go_round(t, &qp, 1, 1);
    answer(t, 17, "fc00:0:11:21:13:105::");
    go_round(t, &qp, 1, 2);
    report(t, 2);
    ck_assert_uint_eq(count, 2);
    ck_assert(ft_ip_equal(&got[0].tuple.dst, &stays));
    ft_rdma_table_free(t);
}
END_TEST

START_TEST(an_unknown_port_is_never_computed)
{
    struct ft_rdma_table *t = new_table(RDMA_DRIVER_BNXT_RE);
    const struct ft_rdma_qp qp = row(17, 17, 219);
    struct ft_rdma_table_stats stats;

    go_round(t, &qp, 1, 1);
    answer(t, 17, "10.2.0.1");
    go_round(t, &qp, 1, 2);
    report(t, 2);
    ck_assert_uint_eq(count, 0);
    ft_rdma_table_stats(t, &stats);
    ck_assert_uint_eq(stats.no_port, 1);
    ft_rdma_table_free(t);
}
END_TEST

START_TEST(the_connection_manager_tells)
{
    struct ft_rdma_table *t = new_table(RDMA_DRIVER_MLX5);
    const struct ft_rdma_qp qp = row(20, 30, 271);
    struct ft_rdma_cm_id id = {.has_lqpn = true,
                               .lqpn = 20,
                               .src = ip("10.1.0.1"),
                               .dst = ip("10.2.0.1"),
                               .sport = 41918,
                               .dport = 7174};
    uint16_t sport = ft_rdma_sport((41918u * 31 + 7174) & 0xFFFFF, 0, 0);

    /* The same connection from either side has one port. */
    for (int side = 0; side < 2; side++) {
        ft_rdma_table_begin(t);
        ft_rdma_table_qp(t, 0, &qp, (struct ft_wall){0});
        ft_rdma_table_cm_id(t, 0, &id);
        ft_rdma_table_end(t);
        report(t, 1 + side);
        ck_assert_uint_eq(count, side == 0 ? 2 : 0);
        ck_assert_uint_eq(got[0].tuple.sport, sport);
        id.sport = 7174;
        id.dport = 41918;
    }
    /* Between two ephemeral ports nobody knows who connected. */
    id.sport = 40000;
    ft_rdma_table_begin(t);
    ft_rdma_table_qp(t, 0, &qp, (struct ft_wall){0});
    ft_rdma_table_cm_id(t, 0, &id);
    ft_rdma_table_end(t);
    report(t, 5);
    ck_assert_uint_eq(count, 2);
    ck_assert(got[0].ended && got[1].ended);
    ft_rdma_table_free(t);
}
END_TEST

static struct ft_flow_report packet(const char *text, enum ft_flow_direction direction, uint32_t qp)
{
    struct ft_flow_report r = {.direction = direction, .has_dst_qp = true, .dst_qp = qp};

    ck_assert_int_eq(ft_tuple_parse(text, &r.tuple), 0);
    return r;
}

START_TEST(a_captured_flow_is_not_reported_twice)
{
    struct ft_rdma_table *t = new_table(RDMA_DRIVER_RXE);
    const struct ft_rdma_qp qp = row(17, 17, 219);
    struct ft_flow_report seen = packet("10.1.0.1:49441-10.2.0.1", FT_FLOW_TX, 17);
    const struct ft_mono at = {2 * S};
    struct ft_rdma_flow flow;

    go_round(t, &qp, 1, 1);
    /* The packet tells where the queue pair sends to. */
    ck_assert(ft_rdma_table_match(t, &seen, at, &flow));
    flow_is(&flow, "10.1.0.1:49441-10.2.0.1", 17, 17);
    ck_assert_int_eq(flow.source, FT_RDMA_OBSERVED);
    ck_assert_uint_eq(flow.pid, 219);
    go_round(t, &qp, 1, 2);
    report(t, 2);
    /* Only the direction that was not captured. */
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(got[0].direction, FT_FLOW_RX);
    ck_assert_int_eq(got[0].source, FT_RDMA_COMPUTED);
    /* Capture forgets it, the queue pair is still there. */
    seen.ended = true;
    ck_assert(ft_rdma_table_match(t, &seen, (struct ft_mono){9 * S}, &flow));
    report(t, 9);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(got[0].direction, FT_FLOW_TX);
    ck_assert_int_eq(got[0].source, FT_RDMA_OBSERVED);
    ft_rdma_table_free(t);
}
END_TEST

START_TEST(strangers_are_not_matched)
{
    struct ft_rdma_table *t = new_table(RDMA_DRIVER_RXE);
    const struct ft_rdma_qp qps[] = {row(18, 18, 1), row(17, 17, 1)};
    struct ft_flow_report seen = packet("10.1.0.1:49441-10.2.0.1", FT_FLOW_TX, 18);
    const struct ft_mono at = {S};
    struct ft_rdma_flow flow;

    go_round(t, qps, 2, 1);
    ck_assert(!ft_rdma_table_match(t, &seen, at, &flow));
    seen = packet("10.9.0.1:49441-10.2.0.1", FT_FLOW_TX, 17);
    ck_assert(!ft_rdma_table_match(t, &seen, at, &flow));
    seen = packet("10.1.0.1:49441-10.2.0.1", FT_FLOW_UNKNOWN, 17);
    ck_assert(!ft_rdma_table_match(t, &seen, at, &flow));
    ft_rdma_table_free(t);
}
END_TEST

START_TEST(shared_tuples_name_no_queue_pair)
{
    struct ft_rdma_table *t = new_table(RDMA_DRIVER_RXE);
    const struct ft_rdma_qp qps[] = {row(2, 6, 1), row(3, 4, 2)}; /* both products are 12 */

    go_round(t, qps, 2, 1);
    answer(t, 2, "10.2.0.1");
    answer(t, 3, "10.2.0.1");
    go_round(t, qps, 2, 2);
    report(t, 2);
    ck_assert_uint_eq(count, 2);
    ck_assert(!got[0].has_qp && !got[1].has_qp);
    ck_assert_uint_eq(got[0].pid, 0);
    ft_rdma_table_free(t);
}
END_TEST

START_TEST(a_port_read_from_the_device_is_observed)
{
    struct ft_rdma_table *t = new_table(RDMA_DRIVER_MLX5);
    const struct ft_rdma_qp qps[] = {row(17, 17, 1), row(18, 18, 1)};
    struct ft_rdma_answer a = {.dst = ip("10.2.0.1"), .sgid_index = 1, .sport = 49441};

    go_round(t, qps, 2, 1);
    ft_rdma_table_answer(t, 0, 17, &a);
    a.sport = 50000; /* rewritten by its program: the peer need not have done so */
    ft_rdma_table_answer(t, 0, 18, &a);
    go_round(t, qps, 2, 2);
    report(t, 2);
    ck_assert_uint_eq(count, 3);
    flow_is(&got[0], "10.1.0.1:49441-10.2.0.1", 17, 17);
    ck_assert_int_eq(got[0].source, FT_RDMA_OBSERVED);
    ck_assert_int_eq(got[1].direction, FT_FLOW_RX);
    ck_assert_int_eq(got[1].source, FT_RDMA_COMPUTED);
    flow_is(&got[2], "10.1.0.1:50000-10.2.0.1", 18, 18);
    ft_rdma_table_free(t);
}
END_TEST

/* Queue pairs come and go, numbers are used anew, processes change: the flows told of and not yet
 * ended are those of the queue pairs that are there. */
START_TEST(churn_leaves_nothing_behind)
{
    const struct ft_rdma_table_config config = {.qps_max = 256, .refresh_ns = 1000000 * S};
    struct ft_rdma_table *t = ft_rdma_table_new(&config);
    const struct ft_rdma_device_port device_port = {
        .port = 1, .driver = RDMA_DRIVER_RXE, .gid_count = 1, .gids = {{1, ip("10.1.0.1"), "h1"}}};
    struct ft_rdma_qp qps[32];
    int64_t open = 0;
    uint32_t dice = 1;

    ft_rdma_table_add_port(t, &device_port);
    for (int round = 0; round < 3000; round++) {
        size_t n = 0;

        for (uint32_t lqpn = 100; lqpn < 132; lqpn++) {
            dice = dice * 1664525 + 1013904223;
            if (dice >> 30)
                qps[n++] = row(lqpn, 1000 + (dice >> 26 & 3) * 64 + lqpn, 1 + (dice >> 28 & 1));
        }
        if (round == 2999)
            n = 0;
        go_round(t, qps, n, round);
        for (size_t i = 0; i < n; i++)
            answer(t, qps[i].lqpn, "10.2.0.1");
        go_round(t, qps, n, round);
        count = 0;
        ft_rdma_table_report(t, (struct ft_mono){round * S}, balance, &open);
        ck_assert_int_eq(open, 2 * (int64_t)n);
    }
    ft_rdma_table_free(t);
}
END_TEST

/* Some cannot be asked about, since nobody knows their process: that keeps no other from it. */
START_TEST(questions_go_round)
{
    struct ft_rdma_table *t = new_table(RDMA_DRIVER_RXE);
    struct ft_rdma_qp qps[3] = {row(17, 17, 219), row(18, 17, 219), row(19, 17, 220)};
    struct ft_rdma_asked_for wanted[2];
    bool asked[3] = {false};

    for (int round = 1; round <= 2; round++) {
        size_t n;

        go_round(t, qps, 3, round);
        n = ft_rdma_table_to_query(t, (struct ft_mono){0}, wanted, 2);
        ck_assert_uint_eq(n, 2);
        for (size_t i = 0; i < n; i++)
            asked[wanted[i].lqpn - 17] = true;
    }
    ck_assert(asked[0] && asked[1] && asked[2]);
    ft_rdma_table_free(t);
}
END_TEST

START_TEST(a_number_used_anew_forgets_the_destination)
{
    struct ft_rdma_table *t = new_table(RDMA_DRIVER_RXE);
    struct ft_rdma_qp qp = row(17, 17, 219);
    struct ft_rdma_asked_for wanted[4];

    go_round(t, &qp, 1, 1);
    ck_assert_uint_eq(ft_rdma_table_to_query(t, (struct ft_mono){0}, wanted, 4), 1);
    ft_rdma_table_asked(t, &wanted[0], (struct ft_mono){S});
    ck_assert_uint_eq(ft_rdma_table_to_query(t, (struct ft_mono){0}, wanted, 4), 0);
    answer(t, 17, "10.2.0.1");
    go_round(t, &qp, 1, 2);
    report(t, 2);
    ck_assert_uint_eq(count, 2);
    qp.pid = 220;
    go_round(t, &qp, 1, 3);
    report(t, 3);
    ck_assert_uint_eq(count, 2);
    ck_assert(got[0].ended && got[1].ended);
    ck_assert_uint_eq(ft_rdma_table_to_query(t, (struct ft_mono){0}, wanted, 4), 1);
    ck_assert_uint_eq(wanted[0].pid, 220);
    ft_rdma_table_free(t);
}
END_TEST

START_TEST(rows_past_the_cap_are_counted)
{
    struct ft_rdma_table *t = new_table(RDMA_DRIVER_RXE);
    struct ft_rdma_qp qps[11];
    struct ft_rdma_table_stats stats;

    for (uint32_t i = 0; i < 11; i++)
        qps[i] = row(100 + i, 200 + i, 1);
    qps[0].type = FT_QP_TYPE_UD;
    go_round(t, qps, 11, 1);
    ft_rdma_table_stats(t, &stats);
    ck_assert_uint_eq(stats.listed, 11);
    ck_assert_uint_eq(stats.refused, 3);
    ck_assert_uint_eq(stats.unconnected, 1);
    ck_assert_uint_eq(stats.listed, stats.resolved + stats.unconnected + stats.no_destination +
                                        stats.no_port + stats.refused);
    ft_rdma_table_free(t);
}
END_TEST

/* A round that was cut short (begun, never ended) forgets nothing. */
START_TEST(a_cut_round_ends_no_flow)
{
    struct ft_rdma_table *t = new_table(RDMA_DRIVER_RXE);
    const struct ft_rdma_qp qp = row(17, 17, 219);

    go_round(t, &qp, 1, 1);
    answer(t, 17, "10.2.0.1");
    go_round(t, &qp, 1, 2);
    report(t, 2);
    ck_assert_uint_eq(count, 2);
    ft_rdma_table_begin(t);
    report(t, 3);
    ck_assert_uint_eq(count, 0);
    ft_rdma_table_free(t);
}
END_TEST

/* A round of which a row could not be read, where the other one is listed. */
static bool go_odd_round(struct ft_rdma_table *t, const struct ft_rdma_qp *listed, int64_t at_s)
{
    bool may_end;

    ft_rdma_table_begin(t);
    ft_rdma_table_qp(t, 0, listed, (struct ft_wall){1000 * at_s});
    may_end = ft_rdma_table_may_end(t, true);
    if (may_end)
        ft_rdma_table_end(t);
    return may_end;
}

/* The row may be that of a queue pair that lives: its flows go on for three rounds. */
START_TEST(an_odd_row_ends_no_flow)
{
    struct ft_rdma_table *t = new_table(RDMA_DRIVER_RXE);
    const struct ft_rdma_qp both[] = {row(17, 17, 219), row(18, 18, 219)};

    ck_assert(ft_rdma_table_may_end(t, false));
    go_round(t, both, 2, 1);
    answer(t, 17, "10.2.0.1");
    answer(t, 18, "10.2.0.1");
    go_round(t, both, 2, 2);
    report(t, 2);
    ck_assert_uint_eq(count, 4);
    for (int64_t round = 0; round < 3; round++) {
        ck_assert(!go_odd_round(t, &both[0], 3 + round));
        report(t, 3 + round);
        for (size_t i = 0; i < count; i++)
            ck_assert(!got[i].ended);
    }
    /* A good one begins the count anew. */
    ck_assert(ft_rdma_table_may_end(t, false));
    go_round(t, both, 2, 6);
    for (int64_t round = 0; round < 3; round++)
        ck_assert(!go_odd_round(t, &both[0], 7 + round));
    /* What is gone does not stay because some other row is odd for ever. */
    ck_assert(go_odd_round(t, &both[0], 10));
    report(t, 10);
    ck_assert_uint_ge(count, 2);
    for (size_t i = 0; i < count; i++)
        ck_assert(got[i].lqpn == 17 || got[i].ended);
    ft_rdma_table_free(t);
}
END_TEST

FT_UNIT_MAIN("rdma_table", an_odd_row_ends_no_flow, a_destination_makes_both_directions,
             a_destination_that_is_a_path, an_unknown_port_is_never_computed,
             the_connection_manager_tells, a_captured_flow_is_not_reported_twice,
             strangers_are_not_matched, shared_tuples_name_no_queue_pair,
             a_port_read_from_the_device_is_observed, churn_leaves_nothing_behind,
             a_number_used_anew_forgets_the_destination, questions_go_round,
             rows_past_the_cap_are_counted, a_cut_round_ends_no_flow)
