// SPDX-License-Identifier: Apache-2.0
/* What is learnt of a group of links that has become larger, where most flows stay on theirs. */
#include "config.h"

#include "daemon/hashes/hashes.h"

#include "daemon/join/likely.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define SPINES    4
#define HOSTS     8
#define BUCKETS   256
#define FLOWS     4000
#define UNSEEN    1000
#define WINDOW    100
#define WINDOW_MS 10000

static struct ft_topology *less, *all;
static struct ft_join *join;
static struct ft_hashes *hashes;
static uint32_t table[BUCKETS]; /* of a resilient table the spine of each bucket */

/* Bob Jenkins' one-at-a-time: not linear. */
static uint32_t keyed(const uint8_t *bytes, size_t len, uint32_t seed)
{
    for (size_t i = 0; i < len; i++) {
        seed += bytes[i];
        seed += seed << 10;
        seed ^= seed >> 6;
    }
    seed += seed << 3;
    seed ^= seed >> 11;
    return seed + (seed << 15);
}

static struct ft_tuple tuple_of(uint32_t n)
{
    uint32_t drawn = keyed((const uint8_t *)&n, sizeof(n), 77);

    return (struct ft_tuple){.src = leafspine_host_ip(0, drawn % HOSTS),
                             .dst = leafspine_host_ip(1, drawn / HOSTS % HOSTS),
                             .sport = (uint16_t)(0xc000 + (drawn >> 8 & 0x3fff)),
                             .dport = FT_ROCE_PORT,
                             .proto = FT_PROTO_UDP};
}

static uint32_t spine_of(const struct ft_tuple *tuple)
{
    const uint8_t bytes[] = {tuple->src.b[15], tuple->dst.b[15], (uint8_t)(tuple->sport >> 8),
                             (uint8_t)tuple->sport};

    return table[keyed(bytes, sizeof(bytes), 5) % BUCKETS];
}

static void sample(const struct ft_tuple *tuple, uint32_t at, uint32_t in, uint32_t out,
                   int64_t start_ms)
{
    const struct ft_observation o = {.tuple = *tuple,
                                     .agent = leafspine_switch_ip(at),
                                     .in_ifindex = in,
                                     .out_ifindex = out,
                                     .first_ms = start_ms + 1000,
                                     .last_ms = start_ms + 9000,
                                     .samples = 5,
                                     .data_samples = 5,
                                     .bytes = 1000000};
    uint64_t results[FT_JOIN_RESULTS] = {0};

    ft_join_observe_batch(join, &o, 1, results);
    ck_assert_uint_eq(results[FT_JOIN_OK], 1);
}

static void ignore(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    (void)record;
}

/* A window in which all flows were sampled, and what its close does with the hashes. */
static void pass(uint32_t window, const struct ft_topology *t)
{
    static const struct ft_emitter nobody = {.record = ignore};
    int64_t start_ms = (int64_t)window * WINDOW_MS;

    ft_join_open(join, window);
    for (uint32_t n = 0; n < FLOWS; n++) {
        struct ft_tuple tuple = tuple_of(n);
        uint32_t spine = spine_of(&tuple);

        sample(&tuple, 0, tuple.src.b[15], 100 + spine, start_ms);
        sample(&tuple, 2 + spine, 1, 2, start_ms);
        sample(&tuple, 1, 100 + spine, tuple.dst.b[15], start_ms);
    }
    ft_join_seal(join);
    ft_hashes_begin(hashes, t, start_ms + WINDOW_MS);
    for (uint32_t i = 0; i < ft_join_limit(join); i++) {
        struct ft_flow *flow = ft_join_at(join, i);

        if (flow && ft_join_age(join, flow, window, start_ms + WINDOW_MS))
            ft_hashes_flow(hashes, join, flow, start_ms);
    }
    while (ft_hashes_step(hashes, "lab", start_ms + WINDOW_MS, &nobody))
        ;
    ft_join_close(join);
    ft_hashes_begin(hashes, t, start_ms + WINDOW_MS);
}

/* As the pipeline does. */
static void on_moved(void *arg, struct ft_flow *flow, const struct ft_path *before, int64_t now_ms)
{
    (void)arg;
    (void)before;
    (void)now_ms;
    flow->learnt = false;
}

static bool predict(void *arg, const struct ft_join *of, const struct ft_flow *flow, uint32_t in,
                    struct ft_hint *hint)
{
    return ft_hashes_predict(arg, of, flow, in, hint);
}

static void begin(void)
{
    const struct ft_join_config config = {.flows_max = 20000,
                                          .window_ms = WINDOW_MS,
                                          .evidence_ms = 30000,
                                          .idle_ms = 60000,
                                          .trust_topology = true,
                                          .policy = {.hold_down_ms = 2000, .tolerance_ms = 2000}};

    less = leafspine_without(2, SPINES, HOSTS, 0, SPINES - 1);
    all = leafspine(2, SPINES, HOSTS);
    join = ft_join_new(&config, less, &(struct ft_join_hooks){.moved = on_moved});
    hashes = ft_hashes_new(1000, 1);
    ck_assert(join && hashes);
    ft_join_set_predictor(join, &(struct ft_join_predictor){.predict = predict, .arg = hashes});
    for (uint32_t i = 0; i < BUCKETS; i++)
        table[i] = i % (SPINES - 1);
}

static void end(void)
{
    ft_join_free(join);
    ft_hashes_free(hashes);
    ft_topology_free(less);
    ft_topology_free(all);
}

/* Of flows that only their hosts report. */
static void predict_unseen(uint32_t window, uint32_t *right, uint32_t *wrong)
{
    for (uint32_t n = FLOWS; n < FLOWS + UNSEEN; n++) {
        const struct ft_host_report r = {.tuple = tuple_of(n),
                                         .time_ms = (int64_t)window * WINDOW_MS + 9000,
                                         .interval_ms = 8000,
                                         .sending = true,
                                         .host = "h0-0",
                                         .bytes = 1000000,
                                         .data_packets = 250,
                                         .qp_local = FT_NONE,
                                         .qp_remote = FT_NONE};
        struct ft_hinted hinted;

        if (ft_join_find(join, &r.tuple))
            continue;
        ck_assert_int_eq(ft_join_report(join, &r), FT_JOIN_OK);
        if (!ft_flow_likely(join, ft_join_find(join, &r.tuple), &hinted))
            continue;
        if (hinted.path.hops[0].out == ft_topology_port_at(all, 0, 100 + spine_of(&r.tuple)))
            ++*right;
        else
            ++*wrong;
    }
}

/* Those that stay are of the larger group, too: of those that moved alone it seems that all flows
 * take the new link. */
START_TEST(flows_that_stay_count_in_a_group_that_grew)
{
    uint32_t right = 0, wrong = 0;

    begin();
    pass(WINDOW, less);
    for (uint32_t i = 0; i < BUCKETS; i++)
        if (keyed((const uint8_t *)&i, sizeof(i), 9) % SPINES == 0)
            table[i] = SPINES - 1;
    ck_assert_int_eq(ft_join_set_topology(join, all, (int64_t)(WINDOW + 1) * WINDOW_MS), 0);
    while (ft_join_judge_step(join, 1000))
        ;
    pass(WINDOW + 1, all);
    pass(WINDOW + 2, all);
    predict_unseen(WINDOW + 3, &right, &wrong);
    printf("%u sets, %u trusted; %u right, %u wrong\n", (unsigned)ft_hashes_count(hashes),
           (unsigned)ft_hashes_trusted(hashes), right, wrong);
    ck_assert_uint_eq(ft_hashes_count(hashes), 2);
    ck_assert_uint_eq(right + wrong, 0);
    end();
}
END_TEST

FT_UNIT_MAIN("hashes_grown", flows_that_stay_count_in_a_group_that_grew)
