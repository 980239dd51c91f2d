// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/rdma/nldev.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "agent/rdma/sport.h"
#include "tests/unit/nldev_bytes.h"
#include "tests/unit/unit.h"

static struct ft_rdma_qp qps[64];
static struct ft_rdma_cm_id cm_ids[8];
static size_t rows;

static void take_qp(void *arg, const struct ft_rdma_qp *qp)
{
    (void)arg;
    qps[rows++] = *qp;
}

static void take_cm_id(void *arg, const struct ft_rdma_cm_id *id)
{
    (void)arg;
    cm_ids[rows++] = *id;
}

static void write_qps(struct nl_bytes *n)
{
    size_t list, entry;

    n->len = 0;
    nl_u32(n, RDMA_NLDEV_ATTR_DEV_INDEX, 0);
    nl_text(n, RDMA_NLDEV_ATTR_DEV_NAME, "rxe_h11");
    list = nl_begin(n, RDMA_NLDEV_ATTR_RES_QP);
    nl_qp(n, 20, 17, 219);
    nl_qp(n, 21, 18, 0);
    entry = nl_begin(n, RDMA_NLDEV_ATTR_RES_QP_ENTRY);
    nl_u32(n, RDMA_NLDEV_ATTR_RES_LQPN, 1);
    nl_u8(n, RDMA_NLDEV_ATTR_RES_TYPE, 1);
    nl_u8(n, RDMA_NLDEV_ATTR_RES_STATE, 3);
    nl_text(n, RDMA_NLDEV_ATTR_RES_KERN_NAME, "ib_core");
    nl_u32(n, 999, 7); /* of a kernel to come */
    nl_end(n, entry);
    nl_end(n, list);
}

START_TEST(queue_pairs_are_read)
{
    struct nl_bytes n;

    rows = 0;
    write_qps(&n);
    ck_assert_int_eq(ft_nldev_qps(n.b, n.len, take_qp, NULL), 0);
    ck_assert_uint_eq(rows, 3);
    ck_assert_uint_eq(qps[0].port, 1);
    ck_assert_uint_eq(qps[0].lqpn, 20);
    ck_assert(qps[0].has_rqpn);
    ck_assert_uint_eq(qps[0].rqpn, 17);
    ck_assert_uint_eq(qps[0].type, FT_QP_TYPE_RC);
    ck_assert_uint_eq(qps[0].state, FT_QP_STATE_RTS);
    ck_assert_uint_eq(qps[0].pid, 219);
    ck_assert_uint_eq(qps[0].rq_psn, 9740078);
    ck_assert_uint_eq(qps[0].sq_psn, 4481030);
    ck_assert_uint_eq(qps[1].pid, 0);
    ck_assert(!qps[2].has_rqpn);
    ck_assert_str_eq(qps[2].kernel_name, "ib_core");
}
END_TEST

START_TEST(a_cut_list_has_no_rows)
{
    struct nl_bytes n;

    write_qps(&n);
    for (size_t len = 0; len < n.len; len++) {
        int rc;

        rows = 0;
        rc = ft_nldev_qps(n.b, len, take_qp, NULL);
        /* Cut between two attributes of the outer level it is a shorter message, not a broken one.
         */
        ck_assert(rc == 0 || rc == -EBADMSG);
        ck_assert_uint_eq(rows, 0);
    }
}
END_TEST

/* The others are live queue pairs, whose flows must not end by it. */
START_TEST(a_bad_row_costs_itself)
{
    struct nl_bytes n;
    size_t list, entry;

    for (int fault = 0; fault < 4; fault++) {
        uint64_t wide = 20;

        n.len = 0;
        rows = 0;
        list = nl_begin(&n, RDMA_NLDEV_ATTR_RES_QP);
        nl_qp(&n, 20, 17, 219);
        entry = nl_begin(&n, RDMA_NLDEV_ATTR_RES_QP_ENTRY);
        if (fault == 0)
            nl_u8(&n, RDMA_NLDEV_ATTR_RES_TYPE, 2); /* and no number */
        else if (fault == 1)
            nl_u32(&n, RDMA_NLDEV_ATTR_RES_LQPN, 1u << 24);
        else if (fault == 2)
            nl_put(&n, RDMA_NLDEV_ATTR_RES_LQPN, &wide, sizeof(wide));
        else
            nl_put(&n, RDMA_NLDEV_ATTR_RES_LQPN, NULL, 0);
        nl_end(&n, entry);
        nl_qp(&n, 21, 18, 219);
        nl_end(&n, list);
        ck_assert_int_eq(ft_nldev_qps(n.b, n.len, take_qp, NULL), -EBADMSG);
        ck_assert_uint_eq(rows, 2);
        ck_assert_uint_eq(qps[0].lqpn, 20);
        ck_assert_uint_eq(qps[1].lqpn, 21);
    }
}
END_TEST

static void put_address(struct nl_bytes *n, uint16_t type, const char *text, uint16_t port)
{
    struct sockaddr_storage storage = {0};
    struct ft_ip ip;

    ck_assert_int_eq(ft_ip_parse(text, &ip), 0);
    if (ft_ip_is4(&ip)) {
        struct sockaddr_in *in = (struct sockaddr_in *)&storage;

        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        memcpy(&in->sin_addr, ip.b + 12, 4);
    } else {
        struct sockaddr_in6 *in = (struct sockaddr_in6 *)&storage;

        in->sin6_family = AF_INET6;
        in->sin6_port = htons(port);
        memcpy(&in->sin6_addr, ip.b, 16);
    }
    nl_put(n, type, &storage, sizeof(storage));
}

START_TEST(connections_are_read)
{
    struct sockaddr_storage none = {0};
    struct nl_bytes n = {.len = 0};
    size_t list = nl_begin(&n, RDMA_NLDEV_ATTR_RES_CM_ID);
    size_t entry = nl_begin(&n, RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY);
    char text[FT_IP_TEXT_BYTES];

    nl_u32(&n, RDMA_NLDEV_ATTR_RES_LQPN, 30);
    nl_u32(&n, RDMA_NLDEV_ATTR_RES_PID, 271);
    put_address(&n, RDMA_NLDEV_ATTR_RES_SRC_ADDR, "10.1.2.1", 41918);
    put_address(&n, RDMA_NLDEV_ATTR_RES_DST_ADDR, "10.2.2.1", 7174);
    nl_end(&n, entry);
    entry = nl_begin(&n, RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY);
    put_address(&n, RDMA_NLDEV_ATTR_RES_SRC_ADDR, "fd00::2", 7174);
    nl_put(&n, RDMA_NLDEV_ATTR_RES_DST_ADDR, &none, sizeof(none));
    nl_end(&n, entry);
    nl_end(&n, list);
    rows = 0;
    ck_assert_int_eq(ft_nldev_cm_ids(n.b, n.len, take_cm_id, NULL), 0);
    ck_assert_uint_eq(rows, 2);
    ck_assert_uint_eq(cm_ids[0].lqpn, 30);
    ck_assert_uint_eq(cm_ids[0].pid, 271);
    ck_assert_uint_eq(cm_ids[0].sport, 41918);
    ck_assert_uint_eq(cm_ids[0].dport, 7174);
    ft_ip_format(&cm_ids[0].dst, text);
    ck_assert_str_eq(text, "10.2.2.1");
    ck_assert(!cm_ids[1].has_lqpn);
    ft_ip_format(&cm_ids[1].src, text);
    ck_assert_str_eq(text, "fd00::2");
    ck_assert_uint_eq(cm_ids[1].dport, 0);
}
END_TEST

START_TEST(devices_and_ports_are_read)
{
    struct nl_bytes n = {.len = 0};
    struct ft_rdma_device device;
    struct ft_rdma_port port;
    struct ft_rdma_chardev chardev;
    uint64_t rdev = 231 << 8 | 192;

    nl_u32(&n, RDMA_NLDEV_ATTR_DEV_INDEX, 3);
    ck_assert_int_eq(ft_nldev_device(n.b, n.len, &device), -EBADMSG);
    nl_text(&n, RDMA_NLDEV_ATTR_DEV_NAME, "mlx5_3");
    nl_u32(&n, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
    ck_assert_int_eq(ft_nldev_device(n.b, n.len, &device), 0);
    ck_assert_uint_eq(device.index, 3);
    ck_assert_uint_eq(device.ports, 1);
    ck_assert_str_eq(device.name, "mlx5_3");
    nl_u8(&n, RDMA_NLDEV_ATTR_PORT_STATE, 4);
    nl_text(&n, RDMA_NLDEV_ATTR_NDEV_NAME, "enp1s0f0np0");
    ck_assert_int_eq(ft_nldev_port(n.b, n.len, &port), 0);
    ck_assert_uint_eq(port.number, 1);
    ck_assert_uint_eq(port.state, 4);
    ck_assert_str_eq(port.netdev, "enp1s0f0np0");
    ck_assert_int_eq(ft_nldev_chardev(n.b, n.len, &chardev), -EBADMSG);
    nl_put(&n, RDMA_NLDEV_ATTR_CHARDEV, &rdev, sizeof(rdev));
    nl_u32(&n, RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID, 1);
    ck_assert_int_eq(ft_nldev_chardev(n.b, n.len, &chardev), 0);
    ck_assert_uint_eq(chardev.rdev, rdev);
    ck_assert_uint_eq(chardev.driver, 1);
}
END_TEST

/* Ports that were captured from queue pairs of these numbers. */
START_TEST(source_ports_follow_the_formula)
{
    ck_assert_uint_eq(ft_rdma_sport(0, 17, 17), 49441);
    ck_assert_uint_eq(ft_rdma_sport(0, 18, 18), 49476);
    ck_assert_uint_eq(ft_rdma_sport(0, 19, 19), 49513);
    for (uint32_t l = 1; l < 1u << 24; l += 99991) {
        ck_assert_uint_eq(ft_rdma_sport(0, l, 777), ft_rdma_sport(0, 777, l));
        ck_assert_uint_ge(ft_rdma_sport(l, 1, 2), 0xC000);
    }
    /* All 20 bits of a flow label count, none beyond them. */
    ck_assert_uint_eq(ft_rdma_sport(0x80000, 0, 0), 0xC000 | 0x20);
    ck_assert_uint_eq(ft_rdma_sport(0x100001, 5, 5), 0xC001);
}
END_TEST

FT_UNIT_MAIN("rdma_nldev", queue_pairs_are_read, a_cut_list_has_no_rows, a_bad_row_costs_itself,
             connections_are_read, devices_and_ports_are_read, source_ports_follow_the_formula)
