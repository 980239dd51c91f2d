// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/rdma/sysfs.h"

#include <limits.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdio.h>
#include <string.h>

#include "agent/rdma/ports.h"
#include "agent/report/host.h"
#include "tests/unit/unit.h"

static char root[64];

/* A line of a file under a port of the device mlx5_0; "": an empty file. */
static void put(const char *name, const char *line)
{
    char command[PATH_MAX];

    snprintf(command, sizeof(command),
             "f='%s/mlx5_0/ports/1/%s'; mkdir -p \"${f%%/*}\" && printf '%%s\\n' '%s' >\"$f\"",
             root, name, line);
    ck_assert_int_eq(system(command), 0);
}

static void make(void)
{
    snprintf(root, sizeof(root), "/tmp/fabrictrace-sysfs-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void drop(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(only_roce_v2_addresses_count)
{
    struct ft_rdma_gid gids[8];
    char text[FT_IP_TEXT_BYTES];

    make();
    put("gids/0", "fe80:0000:0000:0000:0000:00ff:fe00:0001");
    put("gid_attrs/types/0", "IB/RoCE v1");
    put("gids/3", "0000:0000:0000:0000:0000:ffff:0a01:0001");
    put("gid_attrs/types/3", "RoCE v2");
    put("gid_attrs/ndevs/3", "enp1s0");
    put("gids/1", "fd00:0000:0000:0000:0000:0000:0000:0001");
    put("gid_attrs/types/1", "RoCE v2");
    put("gids/4", "0000:0000:0000:0000:0000:0000:0000:0000");
    put("gid_attrs/types/4", "RoCE v2");
    put("gid_attrs/types/5", "RoCE v2"); /* no address */
    ck_assert_uint_eq(ft_rdma_gids(root, "mlx5_0", 1, gids, 8), 2);
    ck_assert_uint_eq(gids[0].index, 1);
    ck_assert_uint_eq(gids[1].index, 3);
    ft_ip_format(&gids[1].ip, text);
    ck_assert_str_eq(text, "10.1.0.1");
    ck_assert_str_eq(gids[1].netdev, "enp1s0");
    /* Those that there is no room for are told. */
    gids[1].index = 99;
    ck_assert_uint_eq(ft_rdma_gids(root, "mlx5_0", 1, gids, 1), 2);
    ck_assert_uint_eq(gids[1].index, 99);
    ck_assert_uint_eq(ft_rdma_gids(root, "mlx5_1", 1, gids, 8), 0);
    drop();
}
END_TEST

START_TEST(counters_are_what_is_there)
{
    struct ft_rdma_counter counters[8];

    make();
    put("hw_counters/np_cnp_sent", "17");
    put("hw_counters/lifespan", "10");
    put("hw_counters/broken", "N/A (no PMA)");
    put("counters/port_xmit_data", "18446744073709551615");
    put("rate", "400 Gb/sec (4X NDR)");
    ck_assert_uint_eq(ft_rdma_counters(root, "mlx5_0", 1, counters, 8), 2);
    ck_assert_str_eq(counters[0].name, "np_cnp_sent");
    ck_assert_uint_eq(counters[0].value, 17);
    ck_assert_uint_eq(counters[1].value, UINT64_MAX);
    ck_assert_uint_eq(ft_rdma_speed_bps(root, "mlx5_0", 1), 400000000000);
    ck_assert_uint_eq(ft_rdma_speed_bps(root, "mlx5_1", 1), 0);
    drop();
}
END_TEST

START_TEST(congestion_is_drawn_from_what_a_driver_has)
{
    static const struct ft_rdma_counter counters[] = {
        {"local_ack_timeout_err", 9}, {"np_cnp_sent", 100}, {"rp_cnp_handled", 7}};
    static const uint64_t growth[] = {2, 30, 0};
    struct ft_rdma_port_report report = {.device = "mlx5_0",
                                         .port = 1,
                                         .netdev = "enp1s0",
                                         .driver = RDMA_DRIVER_MLX5,
                                         .time = {5000},
                                         .interval_ns = 10000000000,
                                         .count = 3,
                                         .counters = counters,
                                         .growth = growth};
    struct ft_host_record out;

    ft_report_host(&report, "gpu01", "gpu01", &out);
    ck_assert_str_eq(out.host.driver, "mlx5");
    ck_assert_uint_eq(out.host.interval_ms, 10000);
    ck_assert(out.host.has_cnp_sent && out.host.has_cnp_handled && out.host.has_timeouts);
    ck_assert_uint_eq(out.host.cnp_sent, 30);
    ck_assert_uint_eq(out.host.cnp_handled, 0);
    ck_assert_uint_eq(out.host.timeouts, 2);
    ck_assert(!out.host.has_ecn_marked && !out.host.has_out_of_sequence && !out.host.has_active);
    ck_assert_uint_eq(out.host.n_counters, 3);
    ck_assert_uint_eq(out.host.counters[1]->growth, 30);
    report.interval_ns = 0;
    ft_report_host(&report, "gpu01", "gpu01", &out);
    ck_assert(!out.host.has_cnp_sent && !out.host.has_interval_ms);
    ck_assert(!out.host.counters[1]->has_growth);
}
END_TEST

/* Growth of the six signs: CNPs sent and handled, ECN marks, out of sequence, retransmissions,
 * timeouts; -1: the driver does not count it. */
#define SIGNS 6

/* Files of hw_counters/ as drivers have them, the first with 1, the next with 2 and so on: mlx5 of
 * Linux 6.1; bnxt_re of 6.1 and as renamed after 6.17; irdma of 6.1 and its third generation of
 * 6.18 (both cut down to what could be mistaken for a sign); rxe of 6.1. */
static const struct {
    uint32_t driver;
    const char *files[24];
    int64_t signs[SIGNS];
} drivers[] = {
    {RDMA_DRIVER_MLX5,
     {"duplicate_request", "implied_nak_seq_err", "local_ack_timeout_err", "np_cnp_sent",
      "np_ecn_marked_roce_packets", "out_of_buffer", "out_of_sequence", "packet_seq_err",
      "req_cqe_error", "rnr_nak_retry_err", "roce_adp_retrans", "roce_adp_retrans_to",
      "roce_slow_restart", "rp_cnp_handled", "rp_cnp_ignored", "rx_write_requests"},
     {4, 14, 5, 7, 8, 3}},
    {RDMA_DRIVER_BNXT_RE,
     {"active_qps", "recoverable_errors", "tx_roce_errors", "rx_roce_discards", "to_retransmits",
      "seq_err_naks_rcvd", "max_retry_exceeded", "rnr_naks_rcvd", "missing_resp", "dup_req",
      "oos_drop_count", "tx_roce_only_pkts", "rx_out_of_buffer", "tx_cnp_pkts", "rx_cnp_pkts",
      "rx_ecn_marked_pkts", "pacing_alerts"},
     {14, 15, 16, 11, 6, 5}},
    {RDMA_DRIVER_BNXT_RE,
     {"active_qps", "local_ack_timeout_err", "packet_seq_err", "max_retry_exceeded",
      "rnr_nak_retry_err", "implied_nak_seq_err", "duplicate_request", "out_of_sequence",
      "out_of_buffer", "np_cnp_pkts", "rp_cnp_handled", "np_ecn_marked_roce_packets"},
     {10, 11, 12, 8, 3, 2}},
    {RDMA_DRIVER_IRDMA,
     {"ip4InDiscards", "ip4OutNoRoutes", "tcpRetransSegs", "tcpInProtoErrors", "iwOutRdmaWrites",
      "cnpHandled", "cnpIgnored", "cnpSent", "RxUDP", "RxECNMrkd"},
     {8, 6, 10, -1, -1, -1}},
    {RDMA_DRIVER_IRDMA,
     {"cnpHandled", "cnpIgnored", "cnpSent", "RxECNMrkd", "RetransSegs", "RNR sent", "RNR received",
      "Nak Sequence Error", "Nak Sequence Error Implied", "RTO", "Rcvd Out of order packets",
      "CRC errors"},
     {3, 1, 4, 11, 8, 10}},
    {RDMA_DRIVER_RXE,
     {"ack_deferred", "completer_retry_err", "duplicate_request", "link_downed", "lifespan",
      "out_of_seq_request", "rcvd_pkts", "rcvd_rnr_err", "rcvd_seq_err", "rdma_recvs", "rdma_sends",
      "retry_exceeded_err", "retry_rnr_exceeded_err", "send_err", "send_rnr_err", "sent_pkts"},
     {-1, -1, -1, 6, 2, -1}},
};

static void keep_picture(void *arg, const struct ft_rdma_port_report *report)
{
    ft_report_host(report, "gpu01", "gpu01", arg);
}

/* The record after two reports of a port, in the second of which the files have grown. */
static void picture(size_t driver, struct ft_host_record *out)
{
    const struct ft_rdma_port port = {.number = 1};
    struct ft_rdma_ports *ports = ft_rdma_ports_new(root);
    char name[80], value[16];

    ck_assert_ptr_nonnull(ports);
    ft_rdma_ports_look(ports);
    ft_rdma_ports_note(ports, "mlx5_0", drivers[driver].driver, &port, "enp1s0");
    for (int round = 0; round < 2; round++) {
        for (int i = 0; drivers[driver].files[i]; i++) {
            snprintf(name, sizeof(name), "hw_counters/%s", drivers[driver].files[i]);
            snprintf(value, sizeof(value), "%d", 1000 + round * (i + 1));
            put(name, value);
        }
        ft_rdma_ports_report(ports, (struct ft_mono){round * INT64_C(1000000000)},
                             (struct ft_wall){0}, keep_picture, out);
    }
    ft_rdma_ports_free(ports);
}

START_TEST(the_picture_of_each_driver)
{
    struct ft_host_record out;
    const Fabrictrace__HostCounters *m = &out.host;

    for (size_t d = 0; d < sizeof(drivers) / sizeof(drivers[0]); d++) {
        make();
        picture(d, &out);
        drop();
        const int64_t got[SIGNS] = {
            m->has_cnp_sent ? (int64_t)m->cnp_sent : -1,
            m->has_cnp_handled ? (int64_t)m->cnp_handled : -1,
            m->has_ecn_marked ? (int64_t)m->ecn_marked : -1,
            m->has_out_of_sequence ? (int64_t)m->out_of_sequence : -1,
            m->has_retransmissions ? (int64_t)m->retransmissions : -1,
            m->has_timeouts ? (int64_t)m->timeouts : -1,
        };
        for (int i = 0; i < SIGNS; i++)
            ck_assert_msg(got[i] == drivers[d].signs[i], "driver %zu, sign %d: %lld", d, i,
                          (long long)got[i]);
    }
}
END_TEST

static struct {
    size_t count;
    int64_t interval_ns;
    uint64_t growth;
    char netdev[16];
} reported;

static void take(void *arg, const struct ft_rdma_port_report *report)
{
    (void)arg;
    reported.count++;
    reported.interval_ns = report->interval_ns;
    reported.growth = report->growth[0];
    snprintf(reported.netdev, sizeof(reported.netdev), "%.15s", report->netdev);
    ck_assert(report->has_state && report->active);
}

START_TEST(growth_is_since_the_report_before)
{
    const struct ft_rdma_port port = {.number = 1, .has_state = true, .state = 4};
    struct ft_rdma_ports *ports;

    make();
    ports = ft_rdma_ports_new(root);
    ck_assert_ptr_nonnull(ports);
    put("hw_counters/np_cnp_sent", "17");
    ft_rdma_ports_look(ports);
    ft_rdma_ports_note(ports, "mlx5_0", RDMA_DRIVER_MLX5, &port, "enp1s0");
    ft_rdma_ports_report(ports, (struct ft_mono){0}, (struct ft_wall){0}, take, NULL);
    ck_assert_uint_eq(reported.count, 1);
    ck_assert_int_eq(reported.interval_ns, 0);
    ck_assert_str_eq(reported.netdev, "enp1s0");
    put("hw_counters/np_cnp_sent", "20");
    ft_rdma_ports_report(ports, (struct ft_mono){5}, (struct ft_wall){0}, take, NULL);
    ck_assert_int_eq(reported.interval_ns, 5);
    ck_assert_uint_eq(reported.growth, 3);
    /* A driver that was loaded anew counts from 0. */
    put("hw_counters/np_cnp_sent", "1");
    ft_rdma_ports_report(ports, (struct ft_mono){6}, (struct ft_wall){0}, take, NULL);
    ck_assert_uint_eq(reported.growth, 0);
    /* One of 32 bits begins again. */
    put("hw_counters/np_cnp_sent", "4294967290");
    ft_rdma_ports_report(ports, (struct ft_mono){6}, (struct ft_wall){0}, take, NULL);
    put("hw_counters/np_cnp_sent", "6");
    ft_rdma_ports_report(ports, (struct ft_mono){6}, (struct ft_wall){0}, take, NULL);
    ck_assert_uint_eq(reported.growth, 12);
    put("hw_counters/np_cnp_sent", "4294967297");
    ft_rdma_ports_report(ports, (struct ft_mono){6}, (struct ft_wall){0}, take, NULL);
    put("hw_counters/np_cnp_sent", "3");
    ft_rdma_ports_report(ports, (struct ft_mono){6}, (struct ft_wall){0}, take, NULL);
    ck_assert_uint_eq(reported.growth, 0);
    /* With another set of counters nothing can be compared. */
    put("hw_counters/new", "1");
    ft_rdma_ports_report(ports, (struct ft_mono){7}, (struct ft_wall){0}, take, NULL);
    ck_assert_int_eq(reported.interval_ns, 0);
    ck_assert_uint_eq(reported.count, 8);
    ft_rdma_ports_look(ports);
    ft_rdma_ports_report(ports, (struct ft_mono){8}, (struct ft_wall){0}, take, NULL);
    ck_assert_uint_eq(reported.count, 8);
    ft_rdma_ports_free(ports);
    drop();
}
END_TEST

FT_UNIT_MAIN("rdma_sysfs", only_roce_v2_addresses_count, counters_are_what_is_there,
             congestion_is_drawn_from_what_a_driver_has, the_picture_of_each_driver,
             growth_is_since_the_report_before)
