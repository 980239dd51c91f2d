// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <string.h>

#include "agent/rdma/nldev.h"
#include "agent/rdma/qpc.h"
#include "agent/rdma/table.h"
#include "tests/fuzz/fuzz.h"

/* The first byte picks the parser, the rest is an answer of the kernel. Rows go on into a table. */
#define QPS_MAX 64

static uint64_t rows;

static void take_qp(void *arg, const struct ft_rdma_qp *qp)
{
    ft_fuzz_assert(qp->lqpn < 1u << 24 && qp->rqpn < 1u << 24, "a number has 24 bits");
    ft_rdma_table_qp(arg, 0, qp, (struct ft_wall){1});
    rows++;
}

static void take_cm_id(void *arg, const struct ft_rdma_cm_id *id)
{
    ft_rdma_table_cm_id(arg, 0, id);
    rows++;
}

static void take_flow(void *arg, const struct ft_rdma_flow *flow)
{
    (void)arg;
    ft_fuzz_assert(flow->tuple.sport >= 0xC000, "a computed port is in its range");
}

static int parse(uint8_t which, const uint8_t *bytes, size_t len, struct ft_rdma_table *table)
{
    struct ft_rdma_device device;
    struct ft_rdma_port port;
    struct ft_rdma_chardev chardev;
    struct ft_rdma_event event;
    struct ft_rdma_qpc qpc;
    bool monitors;
    int rc;

    switch (which % 8) {
    case 0:
        return ft_nldev_device(bytes, len, &device);
    case 1:
        return ft_nldev_port(bytes, len, &port);
    case 2:
        return ft_nldev_qps(bytes, len, take_qp, table);
    case 3:
        return ft_nldev_cm_ids(bytes, len, take_cm_id, table);
    case 4:
        return ft_nldev_chardev(bytes, len, &chardev);
    case 6:
        rc = ft_nldev_event(bytes, len, &event);
        ft_fuzz_assert(rc || (strlen(event.device) < sizeof(event.device) &&
                              strlen(event.netdev) < sizeof(event.netdev)),
                       "names end");
        return rc;
    case 7:
        return ft_nldev_monitors(bytes, len, &monitors);
    default:
        return ft_rdma_qpc_message(bytes, len, 17, &qpc);
    }
}

/* A queue pair that was there before the message. */
static const struct ft_rdma_qp before = {.lqpn = 0xfffffe,
                                         .has_rqpn = true,
                                         .rqpn = 0xfffffd,
                                         .port = 1,
                                         .has_type = true,
                                         .type = FT_QP_TYPE_RC,
                                         .has_state = true,
                                         .state = FT_QP_STATE_RTS};
static bool found;

static void take_ends(void *arg, const struct ft_rdma_device_port *device_port,
                      const struct ft_rdma_end *ends, size_t count)
{
    (void)arg;
    (void)device_port;
    for (size_t i = 0; i < count; i++)
        found |= ends[i].lqpn == before.lqpn && !ends[i].ended;
}

static bool knows(struct ft_rdma_table *table)
{
    found = false;
    ft_rdma_table_ends(table, (struct ft_mono){1}, take_ends, NULL);
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const struct ft_rdma_table_config config = {.qps_max = QPS_MAX, .refresh_ns = 1};
    struct ft_rdma_device_port device_port = {.port = 1, .driver = 1, .netdev = "h1"};
    struct ft_rdma_table_stats stats;
    struct ft_rdma_table *table;
    bool whole;
    int rc;

    if (len == 0)
        return 0;
    table = ft_rdma_table_new(&config);
    if (!table)
        return 0;
    ft_rdma_table_add_port(table, &device_port);
    device_port.device = 1;
    ft_rdma_table_add_port(table, &device_port);
    rows = 0;
    ft_rdma_table_begin(table);
    ft_rdma_table_qp(table, 1, &before, (struct ft_wall){1});
    ft_rdma_table_end(table);
    ft_rdma_table_begin(table);
    rc = parse(bytes[0], bytes + 1, len - 1, table);
    ft_fuzz_assert(rc == 0 || rc == -EBADMSG || rc == -ENOENT, "a known result");
    /* One row that cannot be read costs itself: the others are taken, and the message is odd. */
    ft_fuzz_assert(rc != -ENOENT || rows == 0, "an answer without a list has no rows");
    whole = ft_rdma_table_may_end(table, rc != 0);
    if (whole)
        ft_rdma_table_end(table);
    else
        ft_fuzz_assert(knows(table), "an odd message ends no flow");
    ft_rdma_table_report(table, (struct ft_mono){1}, take_flow, NULL);
    ft_rdma_table_stats(table, &stats);
    ft_fuzz_assert(!whole || stats.listed == stats.resolved + stats.unconnected +
                                                 stats.no_destination + stats.no_port +
                                                 stats.refused,
                   "every queue pair is counted once");
    ft_rdma_table_free(table);
    return 0;
}
