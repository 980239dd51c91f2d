// SPDX-License-Identifier: Apache-2.0
/*
 * Queue pairs of which the host cannot read the destination: what the table reports of them.
 */
#include "config.h"

#include "tests/unit/rdma_table_rig.h"

static struct ft_rdma_end ends[600];
static size_t end_count, lists;

static void take_ends(void *arg, const struct ft_rdma_device_port *device_port,
                      const struct ft_rdma_end *list, size_t n)
{
    (void)arg;
    ck_assert_str_eq(device_port->netdev, "h1");
    ck_assert_uint_le(n, FT_RDMA_ENDS_MAX);
    memcpy(&ends[end_count], list, n * sizeof(*list));
    end_count += n;
    lists++;
}

static size_t report_at(struct ft_rdma_table *t, int64_t at_s)
{
    end_count = lists = 0;
    ft_rdma_table_ends(t, (struct ft_mono){at_s * S}, take_ends, NULL);
    return end_count;
}

START_TEST(queue_pairs_without_destination_are_reported)
{
    struct ft_rdma_table *t = new_table(RDMA_DRIVER_RXE);
    struct ft_rdma_table_stats stats;
    struct ft_rdma_qp qps[2] = {row(17, 18, 219), row(18, 17, 220)};

    /* Also a port without any, so that it is known to have none. */
    go_round(t, NULL, 0, 1);
    ck_assert_uint_eq(report_at(t, 1), 0);
    ck_assert_uint_eq(lists, 1);
    qps[1].state = 1; /* INIT: no peer yet */
    go_round(t, qps, 2, 2);
    ck_assert_uint_eq(report_at(t, 2), 1);
    ck_assert_uint_eq(ends[0].lqpn, 17);
    ck_assert_uint_eq(ends[0].rqpn, 18);
    ck_assert_uint_eq(ends[0].pid, 219);
    ck_assert(!ends[0].has_dst && ends[0].begun && !ends[0].ended);
    ck_assert_int_eq(ends[0].source, FT_RDMA_COMPUTED);
    ck_assert_uint_eq(ends[0].sport, ft_rdma_sport(0, 17, 18));
    ck_assert_int_eq(ends[0].first_seen.ms, 2000);
    ft_rdma_table_stats(t, &stats);
    ck_assert_uint_eq(stats.connected, 1);
    go_round(t, qps, 2, 3);
    ck_assert_uint_eq(report_at(t, 3), 0);
    ck_assert_uint_eq(lists, 0);
    /* A destination is news. */
    answer(t, 17, "10.2.0.1");
    go_round(t, qps, 2, 4);
    ck_assert_uint_eq(report_at(t, 4), 1);
    ck_assert(ends[0].has_dst);
    ck_assert_uint_eq(report_at(t, 63), 0);
    ck_assert_uint_eq(report_at(t, 64), 1);
    go_round(t, NULL, 0, 65);
    ck_assert_uint_eq(report_at(t, 65), 1);
    ck_assert(ends[0].ended);
    ck_assert_uint_eq(report_at(t, 66), 0);
    ft_rdma_table_free(t);
}
END_TEST

START_TEST(a_number_used_anew_is_another_end)
{
    struct ft_rdma_table *t = new_table(RDMA_DRIVER_BNXT_RE);
    struct ft_rdma_qp qp = row(17, 18, 219);

    go_round(t, &qp, 1, 1);
    ck_assert_uint_eq(report_at(t, 1), 1);
    ck_assert(!ends[0].begun);
    ck_assert_int_eq(ends[0].source, FT_RDMA_UNKNOWN);
    /* Gone for a round and back, by the same process, before anybody was told. */
    go_round(t, NULL, 0, 2);
    go_round(t, &qp, 1, 3);
    ck_assert_uint_eq(report_at(t, 3), 1);
    ck_assert(ends[0].begun && !ends[0].ended);
    ck_assert_int_eq(ends[0].first_seen.ms, 3000);
    /* It leaves its state: no end, though it is listed. */
    qp.state = 6;
    go_round(t, &qp, 1, 4);
    ck_assert_uint_eq(report_at(t, 4), 1);
    ck_assert(ends[0].ended);
    ck_assert_uint_eq(report_at(t, 5), 0);
    /* A cut round tells nothing of what it listed, nor ends what it did not. */
    qp.state = FT_QP_STATE_RTS;
    ft_rdma_table_begin(t);
    ft_rdma_table_qp(t, 0, &qp, (struct ft_wall){5000});
    ck_assert_uint_eq(report_at(t, 5), 0);
    go_round(t, &qp, 1, 6);
    ck_assert_uint_eq(report_at(t, 6), 1);
    ft_rdma_table_free(t);
}
END_TEST

START_TEST(many_ends_come_in_several_lists)
{
    const struct ft_rdma_table_config config = {.qps_max = 600, .refresh_ns = 60 * S};
    struct ft_rdma_table *t = ft_rdma_table_new(&config);
    struct ft_rdma_device_port device_port = {.device = 0, .port = 1, .netdev = "h1"};
    static struct ft_rdma_qp qps[600];

    ck_assert_int_eq(ft_rdma_table_add_port(t, &device_port), 0);
    for (uint32_t i = 0; i < 600; i++)
        qps[i] = row(17 + i, 17, 219);
    go_round(t, qps, 600, 1);
    ck_assert_uint_eq(report_at(t, 1), 600);
    ck_assert_uint_eq(lists, 3);
    /* The queue pairs of a device port that is gone are not reported any more. */
    ft_rdma_table_clear_ports(t);
    go_round(t, NULL, 0, 2);
    ck_assert_uint_eq(report_at(t, 2), 0);
    go_round(t, qps, 600, 3);
    ft_rdma_table_free(t);
}
END_TEST

/* The protection domain tells a number used anew by the same process; a thread that is gone is not
 * named any more. */
START_TEST(domains_tell_queue_pairs_apart)
{
    struct ft_rdma_table *t = new_table(RDMA_DRIVER_RXE);
    struct ft_rdma_qp qp = row(17, 17, 219);

    qp.has_domain = true;
    qp.domain = 3;
    go_round(t, &qp, 1, 1);
    answer(t, 17, "10.2.0.1");
    go_round(t, &qp, 1, 2);
    report(t, 2);
    ck_assert_uint_eq(count, 2);
    qp.pid = 0;
    go_round(t, &qp, 1, 3);
    report(t, 200);
    ck_assert_uint_eq(count, 2);
    ck_assert(!got[0].ended && !got[1].ended);
    ck_assert_uint_eq(got[0].pid, 0);
    /* Whoever is named now made another one. */
    qp.pid = 219;
    go_round(t, &qp, 1, 4);
    report(t, 201);
    ck_assert_uint_eq(count, 2);
    ck_assert(got[0].ended && got[1].ended);
    answer(t, 17, "10.2.0.1");
    go_round(t, &qp, 1, 5);
    report(t, 202);
    ck_assert_uint_eq(count, 2);
    qp.domain = 4;
    go_round(t, &qp, 1, 6);
    report(t, 203);
    ck_assert_uint_eq(count, 2);
    ck_assert(got[0].ended && got[1].ended);
    ft_rdma_table_free(t);
}
END_TEST

/* A device over a bond: the kernel names one member as its port's interface, its addresses are the
 * bond's, with and without a VLAN. */
START_TEST(the_interface_is_the_one_with_the_address)
{
    static const char *const sources[] = {"10.1.0.1", "10.1.7.1", "10.1.8.1"};
    static const char *const names[] = {"bond0", "bond0.7", "eth0"};
    const struct ft_rdma_table_config config = {.qps_max = 8, .refresh_ns = 60 * S};
    struct ft_rdma_table *t = ft_rdma_table_new(&config);
    static struct ft_rdma_device_port device_port;
    struct ft_rdma_qp qps[3];

    ck_assert_ptr_nonnull(t);
    device_port = (struct ft_rdma_device_port){
        .device = 0, .port = 1, .driver = RDMA_DRIVER_MLX5, .netdev = "eth0", .gid_count = 4};
    for (uint32_t i = 0; i < 3; i++) {
        device_port.gids[i] = (struct ft_rdma_gid){.index = i, .ip = ip(sources[i])};
        snprintf(device_port.gids[i].netdev, sizeof(device_port.gids[i].netdev), "%s", names[i]);
        qps[i] = row(17 + i, 17, 219);
    }
    /* One address on two interfaces: the port's own has to do. */
    snprintf(device_port.gids[2].netdev, sizeof(device_port.gids[2].netdev), "bond0.8");
    device_port.gids[3] =
        (struct ft_rdma_gid){.index = 3, .ip = ip(sources[2]), .netdev = "bond0.9"};
    ck_assert_int_eq(ft_rdma_table_add_port(t, &device_port), 0);
    go_round(t, qps, 3, 1);
    for (uint32_t i = 0; i < 3; i++) {
        const struct ft_rdma_answer a = {.dst = ip("10.2.0.1"), .sgid_index = i};

        ft_rdma_table_answer(t, 0, 17 + i, &a);
    }
    go_round(t, qps, 3, 2);
    report(t, 2);
    ck_assert_uint_eq(count, 6);
    for (size_t i = 0; i < count; i++)
        ck_assert_str_eq(got[i].netdev, names[got[i].lqpn - 17]);
    ft_rdma_table_free(t);
}
END_TEST

FT_UNIT_MAIN("rdma_table, ends", queue_pairs_without_destination_are_reported,
             a_number_used_anew_is_another_end, many_ends_come_in_several_lists,
             domains_tell_queue_pairs_apart, the_interface_is_the_one_with_the_address)
