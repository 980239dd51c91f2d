// SPDX-License-Identifier: Apache-2.0
#include "config.h"

/*
 * What it costs to learn how the switches of a 512-leaf, 32-spine fabric choose their uplinks: time
 * to take flows in and to learn, the longest step, and memory. 480 resolved flows a leaf, which
 * CRC-16 spreads, or with --keyed a hash that is not linear.
 *
 * usage: bench_hashes [--keyed] [LEAVES]
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/hashes/hashes.h"
#include "lib/base/digest.h"
#include "lib/fabric/chance.h"
#include "lib/sim/hashed.h"
#include "tests/unit/leafspine.h"

enum { SPINES = 32, HOSTS = 32, FLOWS = 480, WINDOW = 100, WINDOW_MS = 10000 };

static bool keyed;
static uint64_t published;

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    (void)record;
    published++;
}

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void must(bool fine, const char *what)
{
    if (fine)
        return;
    fprintf(stderr, "bench_hashes: %s\n", what);
    exit(1);
}

static uint32_t spine_of(const struct ft_tuple *tuple)
{
    return (uint32_t)((keyed ? ft_digest_bytes(tuple, sizeof(*tuple), 7)
                             : ft_named_hash(FT_HASHED_CRC16, tuple)) %
                      SPINES);
}

static void observe(struct ft_join *join, uint32_t leaf, uint32_t leaves, struct ft_random *random)
{
    uint32_t host = (uint32_t)(ft_random_next(random) >> 32) % HOSTS;
    int64_t start_ms = (int64_t)WINDOW * WINDOW_MS;
    uint64_t results[FT_JOIN_RESULTS] = {0};
    struct ft_observation o = {.agent = leafspine_switch_ip(leaf),
                               .in_ifindex = 1 + host,
                               .first_ms = start_ms + 1000,
                               .last_ms = start_ms + 6000,
                               .samples = 20,
                               .data_samples = 20,
                               .bytes = 100000000};

    memset(&o.tuple, 0, sizeof(o.tuple));
    o.tuple.src = leafspine_host_ip(leaf, host);
    o.tuple.dst = leafspine_host_ip(
        (leaf + 1 + (uint32_t)(ft_random_next(random) >> 32) % (leaves - 1)) % leaves,
        (uint32_t)(ft_random_next(random) >> 32) % HOSTS);
    o.tuple.sport = (uint16_t)(0xc000 | (ft_random_next(random) >> 32 & 0x3fff));
    o.tuple.dport = FT_ROCE_PORT;
    o.tuple.proto = FT_PROTO_UDP;
    o.out_ifindex = 100 + spine_of(&o.tuple);
    ft_join_observe_batch(join, &o, 1, results);
    must(results[FT_JOIN_OK] == 1, "an observation was refused");
}

static size_t heap(void)
{
    struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

int main(int argc, char **argv)
{
    struct ft_join_config config = {.window_ms = WINDOW_MS,
                                    .evidence_ms = 30000,
                                    .idle_ms = 60000,
                                    .trust_topology = true,
                                    .policy = {.hold_down_ms = 2000, .tolerance_ms = 2000}};
    const struct ft_emitter emitter = {on_record, NULL};
    double taken_s = 0, learnt_s = 0, longest_s = 0;
    uint32_t leaves, windows = 0;
    struct ft_topology *t;
    struct ft_hashes *h;
    struct ft_join *join;
    struct ft_random random = {1};
    bool more = true;
    size_t before;

    keyed = argc > 1 && strcmp(argv[1], "--keyed") == 0;
    leaves = argc > 1 + keyed ? (uint32_t)strtoul(argv[1 + keyed], NULL, 10) : 512;
    must(leaves >= 2 && leaves <= 4096, "2 to 4096 leaves");
    t = leafspine(leaves, SPINES, HOSTS);
    config.flows_max = (size_t)leaves * FLOWS * 2;
    join = ft_join_new(&config, t, &(struct ft_join_hooks){.arg = NULL});
    must(join, "no memory");
    ft_join_open(join, WINDOW);
    for (uint32_t l = 0; l < leaves; l++)
        for (uint32_t i = 0; i < FLOWS; i++)
            observe(join, l, leaves, &random);
    ft_join_seal(join);
    for (uint32_t i = 0; i < ft_join_limit(join); i++)
        if (ft_join_at(join, i))
            ft_join_age(join, ft_join_at(join, i), WINDOW, (int64_t)(WINDOW + 1) * WINDOW_MS);
    before = heap();
    h = ft_hashes_new(leaves, 1);
    must(h, "no memory");
    while (more) {
        double from = cpu_s();
        size_t count = 0;

        ft_hashes_begin(h, t, (int64_t)WINDOW * WINDOW_MS);
        for (uint32_t i = 0; i < ft_join_limit(join); i++) {
            struct ft_flow *flow = ft_join_at(join, i);

            if (!flow || flow->learnt)
                continue;
            ft_hashes_flow(h, join, flow, (int64_t)WINDOW * WINDOW_MS);
            count += flow->learnt;
        }
        taken_s += cpu_s() - from;
        more = count > 0;
        windows += more;
        for (bool going = true; going;) {
            double step_s = cpu_s();

            going = ft_hashes_step(h, "bench", WINDOW * WINDOW_MS, &emitter);
            step_s = cpu_s() - step_s;
            learnt_s += step_s;
            longest_s = step_s > longest_s ? step_s : longest_s;
        }
    }
    ft_hashes_begin(h, t, (int64_t)WINDOW * WINDOW_MS);
    printf("%s hash, %u leaves, %zu flows, %u windows: taken in %.2f s, learnt in %.2f s, longest "
           "step %.1f ms; %zu sets, %u trusted, %.1f KiB a set, %llu records\n",
           keyed ? "keyed" : "linear", leaves, ft_join_flows(join), windows, taken_s, learnt_s,
           longest_s * 1e3, ft_hashes_count(h), ft_hashes_trusted(h),
           (double)(heap() - before) / 1024 / (double)ft_hashes_count(h),
           (unsigned long long)published);
    ft_hashes_free(h);
    ft_join_free(join);
    ft_topology_free(t);
    return 0;
}
