// SPDX-License-Identifier: Apache-2.0
/*
 * What a host with many queue pairs costs the agent: netlink messages as the kernel writes them for
 * so many queue pairs, through the real parser, the table and the reports, one round after another.
 * The kernel's own part (writing its lists) is not in it.
 *
 *   bench_rdma [QUEUE_PAIRS ...]       default: 1000 10000
 */
#include "config.h"

#include <inttypes.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/rdma/nldev.h"
#include "agent/rdma/owners.h"
#include "agent/rdma/table.h"
#include "tests/unit/nldev_bytes.h"

#define ROUNDS      100
#define MESSAGE_QPS 80 /* what fits into the kernel's messages of 8 KiB */
#define PROCESSES   8
#define NS_PER_S    INT64_C(1000000000)

struct bench {
    struct ft_rdma_table *table;
    struct ft_owners *owners;
    uint64_t flows;
};

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long rss_kib(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long pages = 0;

    if (!f)
        return 0;
    if (fscanf(f, "%*s %ld", &pages) != 1)
        pages = 0;
    fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void take_qp(void *arg, const struct ft_rdma_qp *qp)
{
    struct bench *b = arg;

    ft_rdma_table_qp(b->table, 0, qp, (struct ft_wall){1});
}

static void take_flow(void *arg, const struct ft_rdma_flow *flow)
{
    struct bench *b = arg;

    if (flow->pid)
        ft_owners_get(b->owners, flow->pid);
    b->flows++;
}

static void take_ends(void *arg, const struct ft_rdma_device_port *device_port,
                      const struct ft_rdma_end *ends, size_t count)
{
    struct bench *b = arg;

    (void)device_port;
    for (size_t i = 0; i < count; i++)
        ft_owners_get(b->owners, ends[i].pid);
}

static struct nl_bytes *write_messages(uint32_t qps, size_t *count)
{
    size_t n = (qps + MESSAGE_QPS - 1) / MESSAGE_QPS, list = 0;
    struct nl_bytes *messages = calloc(n, sizeof(*messages));

    if (!messages)
        exit(1);
    for (uint32_t i = 0; i < qps; i++) {
        struct nl_bytes *m = &messages[i / MESSAGE_QPS];

        if (i % MESSAGE_QPS == 0) {
            nl_u32(m, RDMA_NLDEV_ATTR_DEV_INDEX, 0);
            nl_text(m, RDMA_NLDEV_ATTR_DEV_NAME, "mlx5_0");
            list = nl_begin(m, RDMA_NLDEV_ATTR_RES_QP);
        }
        nl_qp(m, 256 + i, 4096 + i % 9973, (uint32_t)getpid());
        nl_end(m, list);
    }
    *count = n;
    return messages;
}

/* Each process is this one: what counts is the reading of /proc. */
static void one_round(struct bench *b, const struct nl_bytes *messages, size_t count, int64_t at_s)
{
    for (uint32_t i = 0; i < PROCESSES; i++) {
        ft_owners_round(b->owners, UINT64_MAX);
        ft_owners_get(b->owners, (uint32_t)getpid());
    }
    ft_rdma_table_begin(b->table);
    for (size_t i = 0; i < count; i++)
        if (ft_nldev_qps(messages[i].b, messages[i].len, take_qp, b))
            abort();
    ft_rdma_table_end(b->table);
    ft_rdma_table_report(b->table, (struct ft_mono){at_s * NS_PER_S}, take_flow, b);
    ft_rdma_table_ends(b->table, (struct ft_mono){at_s * NS_PER_S}, take_ends, b);
}

static void answer_all(struct bench *b, uint32_t qps)
{
    for (uint32_t i = 0; i < qps; i++) {
        struct ft_rdma_answer answer = {.sgid_index = 3};
        char text[FT_IP_TEXT_BYTES];

        snprintf(text, sizeof(text), "10.2.%u.%u", i / 250 % 250, 1 + i % 250);
        if (ft_ip_parse(text, &answer.dst))
            abort();
        ft_rdma_table_answer(b->table, 0, 256 + i, &answer);
    }
}

static void run(uint32_t qps)
{
    const struct ft_rdma_table_config config = {.qps_max = 65536, .refresh_ns = 60 * NS_PER_S};
    const struct ft_owners_config owners = {.root = "/proc", .owners_max = 1024};
    struct ft_rdma_device_port device_port = {
        .port = 1, .driver = RDMA_DRIVER_MLX5, .netdev = "enp1s0", .gid_count = 1};
    long before_kib = rss_kib();
    struct ft_rdma_table_stats stats;
    struct nl_bytes *messages;
    struct bench b = {0};
    long messages_kib;
    double start, used;
    size_t count;

    messages = write_messages(qps, &count);
    messages_kib = rss_kib() - before_kib;
    device_port.gids[0].index = 3;
    if (ft_ip_parse("10.1.0.1", &device_port.gids[0].ip))
        abort();
    b.table = ft_rdma_table_new(&config);
    b.owners = ft_owners_new(&owners);
    if (!b.table || !b.owners)
        exit(1);
    ft_rdma_table_add_port(b.table, &device_port);
    one_round(&b, messages, count, 0);
    answer_all(&b, qps);
    start = cpu_seconds();
    for (int i = 1; i <= ROUNDS; i++)
        one_round(&b, messages, count, i);
    used = cpu_seconds() - start;
    ft_rdma_table_stats(b.table, &stats);
    printf("%7" PRIu32 " queue pairs: %6.2f ms a round, that is %.2f %% of a core once a second; "
           "%.1f MiB; %" PRIu64 " resolved, %" PRIu64 " reports\n",
           qps, used * 1000 / ROUNDS, used * 100 / ROUNDS,
           (double)(rss_kib() - before_kib - messages_kib) / 1024, stats.resolved, b.flows);
    ft_owners_free(b.owners);
    ft_rdma_table_free(b.table);
    free(messages);
}

int main(int argc, char **argv)
{
    static const uint32_t sizes[] = {1000, 10000};

    for (int i = 1; i < argc; i++)
        run((uint32_t)strtoul(argv[i], NULL, 10));
    for (size_t i = 0; argc == 1 && i < sizeof(sizes) / sizeof(sizes[0]); i++)
        run(sizes[i]);
    return 0;
}
