// SPDX-License-Identifier: Apache-2.0
/*
 * The join and the window close at growing numbers of active flows: synthetic observations of a
 * 512-leaf, 32-spine fabric, straight into the pipeline. One thread, so one core.
 *
 * For each size: observations per second while flows are new and once they are known, memory a
 * flow, the time to close and publish a window (every record written as JSON) alone and while
 * ingest goes on between its slices, and the longest that ingest waited for a slice.
 *
 * ANEW ms: the longest step of taking another topology over, after which each flow is judged again.
 *
 * LINKS %: what it costs beside to look at a share of them for links, in percent of the join.
 *
 *   bench_join [--known N] [FLOWS ...]   default: 10000 100000 1000000
 *
 * --known N: how many observations of known flows a step feeds, at most; fewer for callgrind.
 */
#include "config.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/discovery/wiring.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "daemon/publish/publish.h"
#include "lib/base/clock.h"
#include "tests/unit/leafspine.h"

#define LEAVES      512
#define SPINES      32
#define HOSTS       16
#define WINDOW_MS   10000
#define START_MS    (1000 * (int64_t)WINDOW_MS)
#define SLICE_ITEMS 2000
#define BATCH       1000

static uint64_t dice_state = 1;

static uint32_t dice(uint32_t sides)
{
    dice_state = dice_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(dice_state >> 33) % sides;
}

/* A flow's ends and spine follow from its number, so that nothing needs to be kept. */
struct plan {
    uint32_t src_leaf, dst_leaf, src_host, dst_host, spine;
    uint16_t sport, dport;
};

static struct plan plan_of(uint32_t flow)
{
    uint64_t h = (flow + 1) * 0x9e3779b97f4a7c15u;
    struct plan p;

    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9u;
    h ^= h >> 32;
    p.src_leaf = (uint32_t)(h % LEAVES);
    p.dst_leaf = (p.src_leaf + 1 + (uint32_t)((h >> 10) % (LEAVES - 1))) % LEAVES;
    p.src_host = (uint32_t)((h >> 20) % HOSTS);
    p.dst_host = (uint32_t)((h >> 24) % HOSTS);
    p.spine = (uint32_t)((h >> 28) % SPINES);
    /* The two ports together tell all flows apart. */
    p.sport = (uint16_t)(flow & 0xffff);
    p.dport = (uint16_t)(FT_ROCE_PORT + (flow >> 16));
    return p;
}

static struct ft_observation observation(uint32_t flow, uint32_t stage, int64_t ms)
{
    struct plan p = plan_of(flow);
    struct ft_observation o = {.tuple = {.src = leafspine_host_ip(p.src_leaf, p.src_host),
                                         .dst = leafspine_host_ip(p.dst_leaf, p.dst_host),
                                         .sport = p.sport,
                                         .dport = p.dport,
                                         .proto = FT_PROTO_UDP},
                               .first_ms = ms,
                               .last_ms = ms,
                               .samples = 1,
                               .packets = 1000,
                               .data_samples = 1,
                               .bytes = 4096 * 1000};

    if (stage == 0) {
        o.agent = leafspine_switch_ip(p.src_leaf);
        o.in_ifindex = 1 + p.src_host;
        o.out_ifindex = 100 + p.spine;
    } else if (stage == 1) {
        o.agent = leafspine_switch_ip(LEAVES + p.spine);
        o.in_ifindex = 1 + p.src_leaf;
        o.out_ifindex = 1 + p.dst_leaf;
    } else {
        o.agent = leafspine_switch_ip(p.dst_leaf);
        o.in_ifindex = 100 + p.spine;
        o.out_ifindex = 1 + p.dst_host;
    }
    return o;
}

/* Processor time of this thread: other programs on the machine do not count. */
static struct ft_mono busy_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (struct ft_mono){(int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec};
}

static double since_s(struct ft_mono then)
{
    return (double)ft_mono_since_ns(busy_now(), then) / 1e9;
}

/* What the pipeline does beside the join with an observation: the time for all since the last look.
 */
static struct ft_wiring *wiring;
static double wiring_s;
static size_t wiring_bytes;

static size_t heap_bytes(void)
{
    return mallinfo2().uordblks + mallinfo2().hblkhd;
}

static void cross(const struct ft_observation *batch, uint32_t n, int64_t ms)
{
    size_t before = heap_bytes();
    struct ft_mono begun = busy_now();

    for (uint32_t i = 0; i < n; i++)
        ft_wiring_observe(wiring, &batch[i], 64, ms);
    wiring_s += since_s(begun);
    wiring_bytes += heap_bytes() - before;
}

/* Making the observations is not what is measured: batches are made beforehand, then joined. */
static double feed(struct ft_join *join, uint32_t first, uint32_t count, uint32_t flows,
                   bool in_order, int64_t ms)
{
    static struct ft_observation batch[BATCH];
    uint64_t results[FT_JOIN_RESULTS] = {0};
    double spent = 0;

    for (uint32_t at = first; at < first + count; at += BATCH) {
        uint32_t n = first + count - at < BATCH ? first + count - at : BATCH;
        struct ft_mono begun;

        for (uint32_t i = 0; i < n; i++)
            batch[i] =
                in_order ? observation(at + i, dice(3), ms) : observation(dice(flows), dice(3), ms);
        begun = busy_now();
        for (uint32_t i = 0; i < n; i += FT_JOIN_BATCH)
            ft_join_observe_batch(join, &batch[i], n - i < FT_JOIN_BATCH ? n - i : FT_JOIN_BATCH,
                                  results);
        spent += since_s(begun);
        cross(batch, n, ms);
    }
    if (results[FT_JOIN_OK] != count) {
        fprintf(stderr, "observations were refused\n");
        exit(EXIT_FAILURE);
    }
    return spent;
}

/* A flow's first observation. Never inlined: callgrind collects within it. */
static __attribute__((noinline)) double feed_new(struct ft_join *join, uint32_t flows, int64_t ms)
{
    return feed(join, 0, flows, flows, true, ms);
}

/* Closes the lowest window, with `between` observations of the next one fed after each slice.
 * Returns the time spent in the close alone. */
static double close_window(struct ft_pipeline *p, uint32_t flows, int64_t end_ms, uint32_t between,
                           double *longest, double *feeding, uint64_t *fed)
{
    double spent = 0;
    bool more = true;

    *longest = *feeding = 0;
    *fed = 0;
    while (more) {
        struct ft_mono begun = busy_now();
        double slice;

        more = ft_pipeline_advance(p, end_ms + 3000, SLICE_ITEMS);
        slice = since_s(begun);
        spent += slice;
        if (slice > *longest)
            *longest = slice;
        if (between && more) {
            *feeding += feed(ft_pipeline_stages(p)->join, 0, between, flows, false, end_ms + 100);
            *fed += between;
        }
    }
    return spent;
}

/* Takes a topology over in which nothing is as it was but the names. Returns the longest step. */
static double take_over(struct ft_pipeline *p, int64_t now_ms)
{
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);
    double longest = 0, slice;
    bool more;

    do {
        struct ft_mono begun = busy_now();

        if (t && ft_pipeline_set_topology(p, t))
            exit(EXIT_FAILURE);
        more = t || ft_pipeline_advance(p, now_ms, SLICE_ITEMS);
        t = NULL;
        slice = since_s(begun);
        if (slice > longest)
            longest = slice;
    } while (more);
    return longest;
}

static void run(uint32_t flows, uint32_t known_max)
{
    struct ft_pipeline_config config = {
        .join = {.flows_max = flows,
                 .window_ms = WINDOW_MS,
                 .evidence_ms = 30000,
                 .idle_ms = 60000,
                 .seed = 42,
                 .policy = {.hold_down_ms = 2000, .tolerance_ms = 2000}},
        .window = {.loads = {.window_ms = WINDOW_MS,
                             .floor_share = 0.001,
                             .elephant_share = 0.1,
                             .elephants_max = flows},
                   .refresh_ms = 60000,
                   .victims_max = 32},
        .news_max = 20000, /* as the program */
        .grace_ms = 3000,
        .events_max = 10000,
        .sources_max = 10,
        .source_id = "bench",
    };
    const struct ft_crossings_config crossings = {
        .flows_max = 32768, .ports_max = 131072, .rate_max = 10000};
    struct ft_topology *t = leafspine(LEAVES, SPINES, HOSTS);
    struct ft_publisher *publisher = ft_publisher_new();
    struct ft_sink *sink = ft_sink_file_new("/dev/null", (char[64]){0}, 64);
    struct ft_emitter emitter = {ft_publisher_record, publisher};
    struct ft_pipeline *p;
    struct ft_wiring *w = ft_wiring_new(&crossings, t);
    size_t heap = heap_bytes();
    double fresh_s, known_s, first_s, close_s, busy_s, longest, feeding, anew_s;
    uint32_t known = flows > known_max ? flows : known_max;
    int64_t second_ms = START_MS + WINDOW_MS;
    uint64_t fed;
    double held, wiring_known_s;

    if (!publisher || !sink || ft_publisher_take(publisher, sink))
        exit(EXIT_FAILURE);
    p = ft_pipeline_new(&config, t, &emitter);
    wiring = w;
    wiring_bytes = 0;
    if (!p || !w)
        exit(EXIT_FAILURE);
    fresh_s = feed_new(ft_pipeline_stages(p)->join, flows, START_MS + 100);
    /* Every switch on a flow's way has seen it: the evidence is as large as it gets. */
    for (int i = 0; i < 4; i++)
        feed(ft_pipeline_stages(p)->join, 0, flows, flows, true, START_MS + 200);
    wiring_s = 0;
    known_s = feed(ft_pipeline_stages(p)->join, 0, known, flows, false, START_MS + 300);
    wiring_known_s = wiring_s;
    held = (double)(heap_bytes() - heap - wiring_bytes);
    first_s = close_window(p, flows, second_ms, 0, &longest, &feeding, &fed);
    feed(ft_pipeline_stages(p)->join, 0, known, flows, false, second_ms + 50);
    close_s = close_window(p, flows, second_ms + WINDOW_MS, 0, &longest, &feeding, &fed);
    feed(ft_pipeline_stages(p)->join, 0, known, flows, false, second_ms + WINDOW_MS + 50);
    busy_s = close_window(p, flows, second_ms + 2 * WINDOW_MS, 2000, &longest, &feeding, &fed);
    anew_s = take_over(p, second_ms + 2 * WINDOW_MS);
    printf("%9u %13.2f %13.2f %12.0f %13.2f %11.2f %11.2f %16.2f %13.1f %8.1f %8.1f\n", flows,
           flows / fresh_s / 1e6, known / known_s / 1e6, held / flows, first_s, close_s, busy_s,
           fed ? (double)fed / feeding / 1e6 : 0.0, longest * 1e3, anew_s * 1e3,
           100 * wiring_known_s / known_s);
    fflush(stdout);
    ft_wiring_free(wiring);
    ft_pipeline_free(p);
    ft_publisher_free(publisher);
}

int main(int argc, char **argv)
{
    static const char *const standard[] = {"bench_join", "10000", "100000", "1000000", NULL};
    bool has_known = argc > 2 && strcmp(argv[1], "--known") == 0;
    uint32_t known = has_known ? (uint32_t)strtoul(argv[2], NULL, 10) : 2000000;
    int at = has_known ? 2 : 0;
    const char *const *sizes = argc > at + 1 ? (const char *const *)argv + at : standard;

    printf("join and window close, %d leaves x %d spines, records as JSON to /dev/null\n", LEAVES,
           SPINES);
    printf("%9s %13s %13s %12s %13s %11s %11s %16s %13s %8s %8s\n", "FLOWS", "NEW Mobs/s",
           "KNOWN Mobs/s", "BYTES/FLOW", "1ST CLOSE s", "CLOSE s", "BUSY s", "INGEST MEANWHILE",
           "LONGEST ms", "ANEW ms", "LINKS %");
    for (size_t i = 1; sizes[i]; i++)
        run((uint32_t)strtoul(sizes[i], NULL, 10), known);
    return EXIT_SUCCESS;
}
