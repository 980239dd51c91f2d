// SPDX-License-Identifier: Apache-2.0
#include "config.h"

/*
 * What the daemon does seldom, at its limits: the longest step that keeps its loop from all else.
 * Congested ports of 20,000 hosts, what a member of a group says of 512 leaves and 32 spines and of
 * as many elephants as are kept, whether all hosts list their queue pairs, and a clock that is set
 * back with a million flows. bench_steps [FLOWS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "daemon/discovery/attach.h"
#include "daemon/health/congestion.h"
#include "daemon/window/partial.h"
#include "lib/fabric/crossings.h"
#include "tests/unit/leafspine.h"

#define HOSTS     20000
#define PORTS     16 /* a host */
#define EVENTS    7000
#define LEAVES    512
#define SPINES    32
#define ELEPHANTS 100000
#define SLICE     2000
#define FLOWS     1000000
#define ADDRESSES 280000
#define PORTS_MAX 88000
#define START_MS  INT64_C(1000000000)
#define WINDOW_MS 10000

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void ignore(void *arg, const Fabrictrace__Record *record)
{
    *(uint64_t *)arg += record->kind_case;
}

static uint64_t records;
static const struct ft_emitter emitter = {ignore, &records};

static void say(const char *what, double all, double longest)
{
    printf("%s: %.1f ms, the longest step %.2f ms\n", what, all * 1e3, longest * 1e3);
}

/* Steps of so much work together as the loop does at once. */
struct slices {
    double all, longest, start; /* s */
    uint32_t spent;
};

static void spend(struct slices *s, uint32_t work, bool more)
{
    double took;

    s->spent += work;
    if (more && s->spent < SLICE)
        return;
    took = cpu_s() - s->start;
    s->all += took;
    s->longest = took > s->longest ? took : s->longest;
    s->spent = 0;
    s->start = cpu_s();
}

static void feel(struct ft_congestion *c, uint32_t host, uint32_t port)
{
    Fabrictrace__HostCounters h = FABRICTRACE__HOST_COUNTERS__INIT;
    char name[32];

    snprintf(name, sizeof(name), "gpu%05u.example.com", host);
    h.host = name;
    h.device = (char *)(uintptr_t) "mlx5_0";
    h.port = port;
    h.has_time_ms = h.has_interval_ms = h.has_timeouts = true;
    h.time_ms = START_MS;
    h.interval_ms = 10000;
    h.timeouts = 1000;
    ft_congestion_take(c, &h, START_MS);
}

static void raise_all(const struct ft_congestion *c, struct ft_events *events, const char *what)
{
    struct slices s = {.start = cpu_s()};
    uint32_t index = 0, work;
    bool more = true;

    while (more) {
        more = ft_congestion_raise(c, &index, events, 1, START_MS, "lab", &work);
        spend(&s, work, more);
    }
    say(what, s.all, s.longest);
}

static void bench_congestion(void)
{
    struct ft_congestion *c = ft_congestion_new((size_t)HOSTS * PORTS);
    struct ft_events *events = ft_events_new(EVENTS, &emitter);
    struct ft_congestion_felt felt;
    struct slices s = {.all = 0};
    uint32_t index = 0, work;
    double start;

    if (!c || !events)
        abort();
    for (uint32_t host = 0; host < HOSTS; host++)
        for (uint32_t port = 0; port < PORTS; port++)
            feel(c, host, port);
    raise_all(c, events, "320,000 congested ports are raised");
    raise_all(c, events, "320,000 congested ports are raised again");
    start = cpu_s();
    for (uint32_t host = 0; host < 100; host++) {
        char name[32];

        snprintf(name, sizeof(name), "gpu%05u.example.com", host * 199);
        if (!ft_congestion_of(c, name, START_MS, &felt) || felt.timeouts != 1000 * PORTS)
            abort();
    }
    printf("what the ports of a host felt: %.4f ms\n", (cpu_s() - start) * 10);
    s.start = cpu_s();
    for (bool more = true; more; spend(&s, work, more))
        more = ft_events_sweep_step(events, &index, 2, START_MS, &work);
    say("7,000 events are swept out", s.all, s.longest);
    ft_congestion_free(c);
    ft_events_free(events);
}

static void observe(struct ft_join *join, uint32_t i, int64_t ms)
{
    struct ft_observation o = {
        .tuple = {.src = leafspine_host_ip(i % LEAVES, 0),
                  .dst = leafspine_host_ip((i / LEAVES + 1 + i) % LEAVES, 0),
                  .sport = (uint16_t)(i / LEAVES),
                  .dport = (uint16_t)(4791 + i / LEAVES / 65536),
                  .proto = FT_PROTO_UDP},
        .agent = leafspine_switch_ip(i % LEAVES),
        .in_ifindex = 1,
        .out_ifindex = 100 + i % SPINES,
        .first_ms = ms,
        .last_ms = ms,
        .samples = 1,
        .bytes = 1000000,
    };

    static uint64_t results[FT_JOIN_RESULTS];

    ft_join_observe_batch(join, &o, 1, results);
}

static void bench_join(struct ft_topology *t, uint32_t flows)
{
    const struct ft_join_config config = {.flows_max = flows,
                                          .window_ms = WINDOW_MS,
                                          .evidence_ms = 30000,
                                          .idle_ms = 60000,
                                          .trust_topology = true};
    struct ft_join *join = ft_join_new(&config, t, &(struct ft_join_hooks){.arg = NULL});
    double start, took, all = 0, longest = 0;

    if (!join)
        abort();
    for (uint32_t i = 0; i < flows; i++)
        observe(join, i, START_MS);
    printf("%zu flows\n", ft_join_flows(join));
    for (bool more = true; more; all += took) {
        start = cpu_s();
        more = ft_join_forget(join, SLICE);
        took = cpu_s() - start;
        longest = took > longest ? took : longest;
    }
    start = cpu_s();
    ft_join_restart(join, 1);
    took = cpu_s() - start;
    say("a clock is set back", all + took, took > longest ? took : longest);
    ft_join_free(join);
}

/* Addresses that samples found, and ports between which they found links. */
static void bench_learnt(void)
{
    const struct ft_crossings_config config = {
        .flows_max = 32768, .ports_max = PORTS_MAX, .rate_max = UINT32_MAX};
    struct ft_attach *attach = ft_attach_new(ADDRESSES);
    struct ft_crossings *crossings = ft_crossings_new(&config);
    struct slices s;
    uint32_t index = 0;
    double start, took;

    if (!attach || !crossings)
        abort();
    for (uint32_t i = 0; i < 4 * ADDRESSES; i++) {
        const struct ft_ip address = leafspine_host_ip(i / 4 / 250, i / 4 % 250);
        const struct ft_ip agent = leafspine_switch_ip(i % LEAVES);

        ft_attach_entered(attach, &address, &agent, i % 64, START_MS + i % 4, false);
    }
    for (uint32_t i = 0; i < PORTS_MAX; i++) {
        const struct ft_crossing c = {.agent = leafspine_switch_ip(i / 128),
                                      .in = 1 + i % 128,
                                      .out = 1 + (i + 1) % 128,
                                      .flow = i % 30000,
                                      .first_ms = START_MS,
                                      .last_ms = START_MS,
                                      .samples = 1,
                                      .ttl = 64,
                                      .listed = true};

        ft_crossings_observe(crossings, &c);
    }
    s = (struct slices){.start = cpu_s()};
    for (bool more = true; more; spend(&s, SLICE, more))
        more = ft_attach_set_back(attach, START_MS - 100000, &index, SLICE);
    say("280,000 addresses are set back", s.all, s.longest);
    start = cpu_s();
    ft_crossings_restart(crossings);
    took = cpu_s() - start;
    say("what was found of 88,000 ports is forgotten", took, took);
    ft_attach_free(attach);
    ft_crossings_free(crossings);
}

static void emit(struct ft_partial_said *said)
{
    struct slices s = {.start = cpu_s()};
    uint32_t work;
    bool more = said;

    while (more) {
        more = ft_partial_say_step(said, &work);
        spend(&s, work, more);
    }
    ft_partial_said_free(said);
    say("a member says its loads of 33,000 links and 100,000 elephants", s.all, s.longest);
}

static void bench_partial(struct ft_topology *t)
{
    const struct ft_join_config config = {
        .flows_max = ELEPHANTS, .window_ms = WINDOW_MS, .trust_topology = true};
    struct ft_join *join = ft_join_new(&config, t, &(struct ft_join_hooks){.arg = NULL});
    const struct ft_span span = {START_MS, START_MS + WINDOW_MS};
    const uint32_t partition = 0;
    const struct ft_partial_origin origin = {
        .source = "a", .partitions = &partition, .partition_count = 1, .partitions_all = 2};
    struct ft_loads loads = {.link = NULL};

    if (!join || ft_loads_init(&loads, t))
        abort();
    for (uint32_t i = 0; i < ft_topology_ports(t); i++) {
        loads.link[i].flows = 10;
        loads.link[i].bytes = 1e6;
    }
    loads.elephants = calloc(ELEPHANTS, sizeof(*loads.elephants));
    for (uint32_t i = 0; loads.elephants && i < ELEPHANTS; i++) {
        observe(join, i, START_MS);
        loads.elephants[i].flow = i;
        loads.elephants[i].lo_bps = 1000000000;
        loads.elephants[i].port = i % ft_topology_ports(t);
    }
    loads.elephant_count = loads.elephant_size = ELEPHANTS;
    printf("%zu flows\n", ft_join_flows(join));
    emit(ft_partial_say(&origin, &loads, join, START_MS / WINDOW_MS, &span, false, &emitter));
    ft_loads_free(&loads);
    ft_join_free(join);
}

int main(int argc, char **argv)
{
    struct ft_topology *t = leafspine(LEAVES, SPINES, 1);

    bench_congestion();
    bench_learnt();
    bench_partial(t);
    bench_join(t, argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : FLOWS);
    ft_topology_free(t);
    return 0;
}
