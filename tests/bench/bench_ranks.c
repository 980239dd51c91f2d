// SPDX-License-Identifier: Apache-2.0
#include "config.h"

/*
 * What ageing costs with as many ranks as there is room for: 65,536 in eight communicators, each of
 * which sends to four others. All are there, all have fallen silent, and all are forgotten.
 * Then the same of what diagnosis keeps of them, with 16 operations each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "daemon/diagnosis/recent.h"
#include "daemon/jobs/ranks.h"

#define RANKS    65536
#define OF_COMM  8192
#define PEERS    4
#define ROWS     16
#define SLICE    2000 /* as the daemon's */
#define START_MS 1000000

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void join(struct ft_ranks *r, uint32_t i)
{
    Fabrictrace__Communicator c = FABRICTRACE__COMMUNICATOR__INIT;
    char comm[FT_RANKS_ID], host[32];

    snprintf(comm, sizeof(comm), "%016x", i / OF_COMM);
    snprintf(host, sizeof(host), "host%u", i);
    c.comm_id = comm;
    c.has_rank = c.has_ranks = c.has_pid = true;
    c.rank = i % OF_COMM;
    c.ranks = OF_COMM;
    c.pid = 1;
    c.host = host;
    if (ft_ranks_communicator(r, &c))
        abort();
}

static void send(struct ft_ranks *r, uint32_t i)
{
    Fabrictrace__Collective c = FABRICTRACE__COLLECTIVE__INIT;
    Fabrictrace__PeerTraffic peers[PEERS], *list[PEERS];
    char comm[FT_RANKS_ID], host[32];
    uint32_t qps[PEERS];

    snprintf(comm, sizeof(comm), "%016x", i / OF_COMM);
    snprintf(host, sizeof(host), "host%u", i);
    c.comm_id = comm;
    c.has_rank = true;
    c.rank = i % OF_COMM;
    c.host = host;
    c.op = (char *)(uintptr_t) "AllReduce";
    c.peers = list;
    c.n_peers = PEERS;
    for (uint32_t k = 0; k < PEERS; k++) {
        list[k] = &peers[k];
        fabrictrace__peer_traffic__init(&peers[k]);
        peers[k].has_peer = peers[k].has_sent_messages = true;
        peers[k].peer = (i + 1 + 7 * k) % OF_COMM;
        peers[k].local_qps = &qps[k];
        peers[k].n_local_qps = 1;
        qps[k] = k;
    }
    ft_ranks_collective(r, &c);
}

static void age(struct ft_ranks *r, const char *what, int64_t now_ms)
{
    double all = 0, longest = 0;
    bool more = true;

    while (more) {
        double start = cpu_s(), took;

        more = ft_ranks_age(r, now_ms, SLICE);
        took = cpu_s() - start;
        all += took;
        longest = took > longest ? took : longest;
    }
    printf("%s: %.0f ms, the longest step %.1f ms\n", what, all * 1e3, longest * 1e3);
}

static void end(struct ft_recent *r, uint32_t i, uint32_t number)
{
    Fabrictrace__Collective c = FABRICTRACE__COLLECTIVE__INIT;
    Fabrictrace__PeerTraffic peer = FABRICTRACE__PEER_TRAFFIC__INIT, *list[] = {&peer};
    char comm[FT_RECENT_ID], host[32];

    snprintf(comm, sizeof(comm), "%016x", i / OF_COMM);
    snprintf(host, sizeof(host), "host%u", i);
    c.comm_id = comm;
    c.has_rank = c.has_pid = c.has_start_ms = c.has_duration_us = true;
    c.rank = i % OF_COMM;
    c.pid = 1;
    c.host = host;
    c.op = (char *)(uintptr_t) "AllReduce";
    c.operations = 1;
    c.sequence = c.number = number + 1;
    c.start_ms = START_MS + number;
    c.peers = list;
    c.n_peers = 1;
    if (ft_recent_collective(r, &c, START_MS))
        abort();
}

static void on_over(void *arg, const struct ft_recent_job *job)
{
    (void)job;
    ++*(unsigned *)arg;
}

static void age_recent(struct ft_recent *r, const char *what, int64_t now_ms)
{
    double all = 0, longest = 0;
    unsigned over = 0;
    bool more = true;

    while (more) {
        double start = cpu_s(), took;

        more = ft_recent_age(r, now_ms, SLICE, on_over, &over);
        took = cpu_s() - start;
        all += took;
        longest = took > longest ? took : longest;
    }
    printf("diagnosis, %s: %.0f ms, the longest step %.1f ms\n", what, all * 1e3, longest * 1e3);
}

static int bench_recent(void)
{
    const struct ft_recent_config config = {.ranks_max = RANKS, .rows_max = RANKS * ROWS};
    struct ft_recent *r = ft_recent_new(&config);

    if (!r)
        return 1;
    for (uint32_t number = 0; number < ROWS; number++)
        for (uint32_t i = 0; i < RANKS; i++)
            end(r, i, number);
    age_recent(r, "all are there", START_MS + 20000);
    age_recent(r, "all are silent for two hours, and forgotten", START_MS + 7200000);
    ft_recent_free(r);
    return 0;
}

int main(void)
{
    const struct ft_ranks_config config = {.members_max = RANKS, .edges_max = PEERS * RANKS};
    struct ft_ranks *r = ft_ranks_new(&config);

    if (!r)
        return 1;
    ft_ranks_at(r, START_MS);
    for (uint32_t i = 0; i < RANKS; i++)
        join(r, i);
    for (uint32_t i = 0; i < RANKS; i++)
        send(r, i);
    printf("%u ranks, %zu pairs\n", RANKS, ft_ranks_edges(r));
    age(r, "all are there", START_MS + 20000);
    age(r, "all are silent for two hours, and forgotten", START_MS + 7200000);
    ft_ranks_free(r);
    return bench_recent();
}
