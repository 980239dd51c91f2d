// SPDX-License-Identifier: Apache-2.0
#include "config.h"

/*
 * bench_pairing [HOSTS]: what queue pairs without destination cost the daemon: their lists taken in
 * and announced again, the search for pairs, addresses that change, and samples. Hosts with 8 queue
 * pairs each, 12,500 of them, in communicators of 8 hosts that all use the same numbers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/pairing/pairing.h"

#define QPS        8
#define RANKS      8
#define FIRST_QPN  17
#define REFRESH_MS 15000
#define SLICE      2000 /* as the daemon's */
#define MOVES      100  /* hosts whose addresses change */

static uint32_t hosts = 12500;
static uint64_t reported;

static void on_report(void *arg, const struct ft_host_report *report)
{
    (void)arg;
    (void)report;
    reported++;
}

static void on_withdraw(void *arg, const struct ft_tuple *tuple)
{
    (void)arg;
    (void)tuple;
}

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void name_of(uint32_t host, char *name)
{
    snprintf(name, 32, "host%05u", host);
}

static bool moved;

static void address_of(uint32_t host, uint8_t ip[4])
{
    ip[0] = moved ? 11 : 10;
    ip[1] = (uint8_t)(host >> 16);
    ip[2] = (uint8_t)(host >> 8);
    ip[3] = (uint8_t)host;
}

static uint32_t peer_of(uint32_t host, uint32_t k)
{
    uint32_t comm = host / RANKS, rank = host % RANKS;

    return comm * RANKS + (rank ^ (k % 7 + 1)) % RANKS;
}

static uint32_t number_of(uint32_t host, uint32_t k)
{
    return FIRST_QPN + (host < peer_of(host, k) ? k : QPS + k) + host % RANKS * 2 * QPS;
}

static void list(struct ft_pairing *p, uint32_t host, int64_t now_ms)
{
    Fabrictrace__QueuePairs l = FABRICTRACE__QUEUE_PAIRS__INIT;
    Fabrictrace__QueuePair pairs[QPS], *pointers[QPS];
    ProtobufCBinaryData address;
    uint8_t ip[4];
    char name[32];

    name_of(host, name);
    address_of(host, ip);
    address.data = ip;
    address.len = 4;
    for (uint32_t k = 0; k < QPS; k++) {
        Fabrictrace__QueuePair *q = &pairs[k];

        fabrictrace__queue_pair__init(q);
        q->has_local = q->has_remote = q->has_pid = q->has_since_ms = q->has_begun = true;
        q->local = number_of(host, k);
        q->remote = number_of(peer_of(host, k), k);
        q->pid = 100;
        q->since_ms = 1000000;
        q->begun = true;
        q->has_sport = true;
        q->sport = 0xC000 + (q->local * q->remote) % 16384;
        q->comm = (char *)(uintptr_t) "train.py";
        pointers[k] = q;
    }
    l.has_time_ms = l.has_interval_ms = l.has_port = l.has_listed = true;
    l.time_ms = (uint64_t)now_ms;
    l.interval_ms = REFRESH_MS;
    l.host = name;
    l.device = (char *)(uintptr_t) "mlx5_0";
    l.port = 1;
    l.listed = QPS;
    l.addresses = &address;
    l.n_addresses = 1;
    l.queue_pairs = pointers;
    l.n_queue_pairs = QPS;
    if (ft_pairing_list(p, &l, now_ms))
        abort();
}

static void members(struct ft_pairing *p, int64_t now_ms)
{
    char name[32], comm[17];

    for (uint32_t host = 0; host < hosts; host++) {
        Fabrictrace__Communicator c = FABRICTRACE__COMMUNICATOR__INIT;

        name_of(host, name);
        snprintf(comm, sizeof(comm), "%016x", host / RANKS);
        c.comm_id = comm;
        c.has_rank = c.has_ranks = c.has_pid = true;
        c.rank = host % RANKS;
        c.ranks = host / RANKS == hosts / RANKS ? hosts % RANKS : RANKS;
        c.host = name;
        c.pid = 100;
        ft_pairing_communicator(p, &c, now_ms);
    }
}

static void sample(struct ft_pairing *p, uint32_t host, uint32_t k, int64_t now_ms)
{
    uint32_t peer = peer_of(host, k);
    uint32_t local = number_of(host, k), remote = number_of(peer, k);
    struct ft_observed o = {.first_ms = (uint64_t)now_ms, .dst_qp = remote, .has_dst_qp = true};
    uint8_t src[4], dst[4];

    address_of(host, src);
    address_of(peer, dst);
    o.tuple = (struct ft_tuple){.src = ft_ip4(src),
                                .dst = ft_ip4(dst),
                                .sport = (uint16_t)(0xC000 + (local * remote) % 16384),
                                .dport = FT_ROCE_PORT,
                                .proto = FT_PROTO_UDP};
    ft_pairing_observe(p, &o, now_ms);
}

/* All of a sweep: its time, and that of its longest step. */
struct swept {
    double all, longest;
};

static struct swept sweep(struct ft_pairing *p, int64_t now_ms)
{
    struct swept out = {0, 0};
    bool more = true;

    while (more) {
        double start = cpu_s(), took;

        more = ft_pairing_sweep(p, now_ms, SLICE);
        took = cpu_s() - start;
        out.all += took;
        out.longest = took > out.longest ? took : out.longest;
    }
    return out;
}

/* Hosts have other addresses, and those of before again. Seconds a change. */
static double move(struct ft_pairing *p, int64_t now_ms)
{
    double start = cpu_s();

    for (uint32_t host = 0; host < MOVES; host++) {
        moved = true;
        list(p, host, now_ms);
        moved = false;
        list(p, host, now_ms);
    }
    return (cpu_s() - start) / 2 / MOVES;
}

static uint32_t in_state(const struct ft_pairing *p, enum ft_pair_state state)
{
    struct ft_pairing_end end;
    uint32_t index = 0, n = 0;

    while (ft_pairing_next(p, &index, &end))
        n += end.state == state;
    return n;
}

int main(int argc, char **argv)
{
    const struct ft_pairing_hooks hooks = {.report = on_report, .withdraw = on_withdraw};
    struct ft_pairing_config config;
    struct ft_pairing *p;
    struct swept unpaired, steady;
    int64_t now_ms = 1000000, apart_ms;
    double start, first, again, moves, samples[2], ends, all = 0, longest = 0;

    if (argc > 1)
        hosts = (uint32_t)strtoul(argv[1], NULL, 10);
    ends = (double)hosts * QPS;
    apart_ms = 1000 + hosts * QPS / 50;
    config = (struct ft_pairing_config){.ends_max = (size_t)2 * hosts * QPS,
                                        .ports_max = (size_t)2 * hosts,
                                        .members_max = (size_t)2 * hosts};
    p = ft_pairing_new(&config, &hooks);
    if (!p)
        return 1;
    members(p, now_ms);
    start = cpu_s();
    for (uint32_t host = 0; host < hosts; host++)
        list(p, host, now_ms);
    first = cpu_s() - start;
    unpaired = sweep(p, now_ms + 1000);
    now_ms += 1000 + (apart_ms > REFRESH_MS ? apart_ms : REFRESH_MS);
    members(p, now_ms);
    start = cpu_s();
    for (uint32_t host = 0; host < hosts; host++)
        list(p, host, now_ms);
    again = cpu_s() - start;
    sweep(p, now_ms);
    steady = sweep(p, now_ms + apart_ms);
    for (int round = 0; round < 2; round++) {
        start = cpu_s();
        for (uint32_t host = 0; host < hosts; host++)
            for (uint32_t k = 0; k < QPS; k++)
                sample(p, host, k, now_ms + 10000);
        samples[round] = cpu_s() - start;
    }
    printf("%.0f ends of %u hosts: first list %.2f us an end, again %.2f us\n", ends, hosts,
           first / ends * 1e6, again / ends * 1e6);
    printf("sweep: %.1f ms with no pair, %.1f ms with %u paired; one every %.0f s\n",
           unpaired.all * 1e3, steady.all * 1e3, in_state(p, FT_PAIR_PAIRED),
           (double)apart_ms / 1e3);
    printf("its longest step: %.1f ms and %.1f ms\n", unpaired.longest * 1e3, steady.longest * 1e3);
    printf("share of a core: %.2f %%; first sample of an end %.2f us, any further %.2f us\n",
           100 * (again / (REFRESH_MS / 1000.0) + unpaired.all / ((double)apart_ms / 1000.0)),
           samples[0] / ends * 1e6, samples[1] / ends * 1e6);
    moves = move(p, now_ms + 10000);
    printf("a host's address changes: %.3f ms; %.0f bytes an end\n", moves * 1e3,
           (double)ft_pairing_bytes(p) / ends);
    first = cpu_s();
    for (bool more = true; more; first = again) {
        more = ft_pairing_free_step(p);
        again = cpu_s();
        all += again - first;
        longest = again - first > longest ? again - first : longest;
    }
    printf("it is freed: %.1f ms, the longest step %.2f ms\n", all * 1e3, longest * 1e3);
    return 0;
}
