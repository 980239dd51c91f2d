// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_RDMA_TABLE_RIG_H
#define FT_TESTS_RDMA_TABLE_RIG_H
/*
 * Rounds of queue pairs as the kernel lists them, and the flows that a table reports.
 */
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdio.h>
#include <string.h>

#include "agent/rdma/sport.h"
#include "agent/rdma/table.h"
#include "tests/unit/unit.h"

#define S INT64_C(1000000000)

static struct ft_rdma_flow got[64];
static size_t count;

static inline void take(void *arg, const struct ft_rdma_flow *flow)
{
    (void)arg;
    ck_assert_uint_lt(count, 64);
    got[count++] = *flow;
}

static inline struct ft_ip ip(const char *text)
{
    struct ft_ip out;

    ck_assert_int_eq(ft_ip_parse(text, &out), 0);
    return out;
}

static inline struct ft_rdma_table *new_table(uint32_t driver)
{
    const struct ft_rdma_table_config config = {.qps_max = 8, .refresh_ns = 60 * S};
    struct ft_rdma_table *t = ft_rdma_table_new(&config);
    static struct ft_rdma_device_port device_port;

    ck_assert_ptr_nonnull(t);
    device_port = (struct ft_rdma_device_port){
        .device = 0, .port = 1, .driver = driver, .netdev = "h1", .gid_count = 2};
    device_port.gids[0] = (struct ft_rdma_gid){.index = 0, .ip = ip("fe80::1")};
    device_port.gids[1] = (struct ft_rdma_gid){.index = 1, .ip = ip("10.1.0.1")};
    ck_assert_int_eq(ft_rdma_table_add_port(t, &device_port), 0);
    return t;
}

static inline struct ft_rdma_qp row(uint32_t lqpn, uint32_t rqpn, uint32_t pid)
{
    return (struct ft_rdma_qp){.port = 1,
                               .lqpn = lqpn,
                               .has_rqpn = true,
                               .rqpn = rqpn,
                               .has_type = true,
                               .type = FT_QP_TYPE_RC,
                               .has_state = true,
                               .state = FT_QP_STATE_RTS,
                               .pid = pid};
}

/* A round with these queue pairs at a time in seconds. */
static inline void go_round(struct ft_rdma_table *t, const struct ft_rdma_qp *qps, size_t n,
                            int64_t at_s)
{
    ft_rdma_table_begin(t);
    for (size_t i = 0; i < n; i++)
        ft_rdma_table_qp(t, 0, &qps[i], (struct ft_wall){1000 * at_s});
    ft_rdma_table_end(t);
}

static inline void report(struct ft_rdma_table *t, int64_t at_s)
{
    count = 0;
    ft_rdma_table_report(t, (struct ft_mono){at_s * S}, take, NULL);
}

static inline void answer(struct ft_rdma_table *t, uint32_t lqpn, const char *dst)
{
    const struct ft_rdma_answer a = {.dst = ip(dst), .sgid_index = 1};

    ft_rdma_table_answer(t, 0, lqpn, &a);
}

#endif
