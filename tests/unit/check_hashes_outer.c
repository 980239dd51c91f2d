// SPDX-License-Identifier: Apache-2.0
/*
 * Leaves that hash the header of the tunnel around a flow, the flow's own, or either with a key:
 * what is learnt of each, what is said of it, and which flows are predicted. Each leaf puts its
 * hosts' flows into tunnels whose source port it draws from the flow with a key, so that one header
 * says nothing of the other; the true link of every flow is computed here.
 */
#include "config.h"

#include "daemon/hashes/hashes.h"

#include <string.h>

#include "daemon/join/likely.h"
#include "lib/base/digest.h"
#include "lib/fabric/hash_model.h"
#include "lib/sim/hashed.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define LEAVES    4
#define SPINES    4
#define HOSTS     8
#define WINDOW    100
#define WINDOW_MS 10000
#define START_MS  ((int64_t)WINDOW * WINDOW_MS)
#define LEARNT    4000
#define UNSEEN    1000
#define VXLAN     4789
#define GENEVE    6081

/* What leaves do. */
struct plan {
    const char *name;
    bool outer, keyed; /* they hash the outer header; with a key */
    bool linear_port;  /* its source port is linear in the flow's own header */
    bool geneve;       /* every other flow is in a tunnel of that kind */
    bool named;        /* it is said that they hash the outer header */
    bool linear;       /* and that the model is linear */
};

static const struct plan plans[] = {
    {"outer header", .outer = true, .named = true, .linear = true},
    {"own header", .linear = true},
    {"outer header, keyed", .outer = true, .keyed = true},
    {"own header, keyed", .keyed = true},
    {"outer header, two kinds", .outer = true, .geneve = true, .named = true, .linear = true},
    {"both", .outer = true, .linear_port = true, .linear = true},
};

static struct ft_topology *t;
static struct ft_join *join;
static struct ft_hashes *hashes;

static struct ft_tuple tuple_of(uint32_t n)
{
    uint64_t drawn = ft_digest_bytes(&n, sizeof(n), 77);
    uint32_t from = drawn % LEAVES;

    return (struct ft_tuple){
        .src = leafspine_host_ip(from, drawn / 16 % HOSTS),
        .dst = leafspine_host_ip((from + 1 + drawn / 1024 % (LEAVES - 1)) % LEAVES,
                                 drawn / 65536 % HOSTS),
        .sport = (uint16_t)(0xc000 + (drawn >> 40) % 0x4000),
        .dport = FT_ROCE_PORT,
        .proto = FT_PROTO_UDP,
    };
}

static uint32_t leaf_of(const struct ft_ip *ip)
{
    return ip->b[14];
}

static struct ft_ip tunnel_end(uint32_t leaf)
{
    return ft_ip4((uint8_t[4]){10, 255, 0, (uint8_t)(leaf + 1)});
}

static struct ft_tuple outer_of(const struct plan *plan, const struct ft_tuple *tuple)
{
    uint32_t port = plan->linear_port ? ft_named_hash(FT_HASHED_CRC16, tuple)
                                      : (uint32_t)ft_digest_bytes(tuple, sizeof(*tuple), 5);

    return (struct ft_tuple){
        .src = tunnel_end(leaf_of(&tuple->src)),
        .dst = tunnel_end(leaf_of(&tuple->dst)),
        .sport = (uint16_t)(0xc000 + port % 0x4000),
        .dport = plan->geneve && tuple->sport & 1 ? GENEVE : VXLAN,
        .proto = FT_PROTO_UDP,
    };
}

/* The truth. */
static uint32_t spine_of(const struct plan *plan, const struct ft_tuple *tuple)
{
    struct ft_tuple header = plan->outer ? outer_of(plan, tuple) : *tuple;

    return (plan->keyed ? (uint32_t)ft_digest_bytes(&header, sizeof(header), 7)
                        : ft_named_hash(FT_HASHED_CRC32, &header)) %
           SPINES;
}

/* outer: NULL, in no tunnel. */
static void sample(const struct ft_tuple *tuple, uint32_t at, uint32_t in, uint32_t out,
                   int64_t start_ms, const struct ft_tuple *outer)
{
    struct ft_observed_rest rest = {.has_outer = outer != NULL};
    const struct ft_observation o = {.tuple = *tuple,
                                     .agent = leafspine_switch_ip(at),
                                     .in_ifindex = in,
                                     .out_ifindex = out,
                                     .first_ms = start_ms + 1000,
                                     .last_ms = start_ms + 6000,
                                     .samples = 5,
                                     .data_samples = 5,
                                     .bytes = 1000000,
                                     .rest = &rest};
    uint64_t results[FT_JOIN_RESULTS] = {0};

    if (outer)
        rest.outer = *outer;
    ft_join_observe_batch(join, &o, 1, results);
    ck_assert_uint_eq(results[FT_JOIN_OK], 1);
}

/* All switches sample what comes in: a leaf sees the flow before it puts it into a tunnel. */
static void show(const struct plan *plan, const struct ft_tuple *tuple, int64_t start_ms)
{
    uint32_t from = leaf_of(&tuple->src), to = leaf_of(&tuple->dst), spine = spine_of(plan, tuple);
    struct ft_tuple outer = outer_of(plan, tuple);

    sample(tuple, from, tuple->src.b[15], 100 + spine, start_ms, NULL);
    sample(tuple, LEAVES + spine, 1 + from, 1 + to, start_ms, &outer);
    sample(tuple, to, 100 + spine, tuple->dst.b[15], start_ms, &outer);
}

/* The last leaf alone, which does not say by which link: the flow may have crossed any spine. */
static void hint_at(const struct ft_tuple *tuple, int64_t start_ms, const struct ft_tuple *outer)
{
    sample(tuple, leaf_of(&tuple->dst), 0, tuple->dst.b[15], start_ms, outer);
}

static void report(const struct ft_tuple *tuple, int64_t start_ms)
{
    const struct ft_host_report r = {.tuple = *tuple,
                                     .time_ms = start_ms + 9000,
                                     .interval_ms = 8000,
                                     .sending = true,
                                     .host = "h",
                                     .bytes = 1000000,
                                     .data_packets = 250,
                                     .qp_local = FT_NONE,
                                     .qp_remote = FT_NONE};

    ck_assert_int_eq(ft_join_report(join, &r), FT_JOIN_OK);
}

/* What the record of a leaf says. */
struct said {
    char at[16];
    unsigned records;
    bool linear, outer, has_outer, trusted, function, contradicted;
    double accuracy;
    uint64_t predicted;
    char inputs[64];
};

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    const Fabrictrace__Hash *h = record->hash;
    struct said *said = arg;

    if (strcmp(h->switch_, said->at) != 0)
        return;
    said->records++;
    said->linear = h->model == FABRICTRACE__HASH_MODEL__HASH_MODEL_LINEAR;
    said->has_outer = h->has_hashes_outer;
    said->outer = h->hashes_outer;
    said->trusted = h->trusted;
    said->function = h->function != NULL;
    said->contradicted = h->contradicted > 0;
    said->accuracy = h->accuracy;
    said->predicted = h->predicted;
    said->inputs[0] = 0;
    for (size_t i = 0; i < h->n_inputs; i++)
        snprintf(said->inputs + strlen(said->inputs), sizeof(said->inputs) - strlen(said->inputs),
                 "%s ", h->inputs[i]);
}

/* What a window's close does with the hashes; said: is published. */
static void learn(uint32_t window, struct said *said)
{
    const struct ft_emitter emitter = {on_record, said};
    int64_t start_ms = (int64_t)window * WINDOW_MS;

    ft_join_seal(join);
    ft_hashes_begin(hashes, t, start_ms + WINDOW_MS);
    for (uint32_t i = 0; i < ft_join_limit(join); i++) {
        struct ft_flow *flow = ft_join_at(join, i);

        if (flow && ft_join_age(join, flow, window, start_ms + WINDOW_MS))
            ft_hashes_flow(hashes, join, flow, start_ms);
    }
    while (ft_hashes_step(hashes, "lab", start_ms + WINDOW_MS, &emitter))
        ;
    ft_join_close(join);
    ft_hashes_begin(hashes, t, start_ms + WINDOW_MS);
}

static bool predict(void *arg, const struct ft_join *of, const struct ft_flow *flow, uint32_t in,
                    struct ft_hint *hint)
{
    return ft_hashes_predict(arg, of, flow, in, hint);
}

/* How many records of leaf0 are published. */
static unsigned begin(const struct plan *plan, uint32_t count)
{
    const struct ft_join_config config = {.flows_max = 20000,
                                          .window_ms = WINDOW_MS,
                                          .evidence_ms = 30000,
                                          .idle_ms = 60000,
                                          .trust_topology = true,
                                          .policy = {.hold_down_ms = 2000, .tolerance_ms = 2000}};
    struct said said = {.at = "leaf0"};

    t = leafspine(LEAVES, SPINES, HOSTS);
    join = ft_join_new(&config, t, &(struct ft_join_hooks){.arg = NULL});
    hashes = ft_hashes_new(1000, 1);
    ck_assert(join && hashes);
    ft_join_set_predictor(join, &(struct ft_join_predictor){.predict = predict, .arg = hashes});
    ft_join_open(join, WINDOW);
    for (uint32_t n = 0; n < count; n++) {
        struct ft_tuple tuple = tuple_of(n);

        show(plan, &tuple, START_MS);
    }
    learn(WINDOW, &said);
    return said.records;
}

static void end(void)
{
    ft_join_free(join);
    ft_hashes_free(hashes);
    ft_topology_free(t);
}

static struct said said_of(uint32_t leaf, bool function)
{
    struct said said = {.records = 0};
    const struct ft_emitter emitter = {on_record, &said};
    uint32_t index = 0;

    snprintf(said.at, sizeof(said.at), "leaf%u", leaf);
    while (ft_hashes_next(hashes, &index, function, "lab", 0, &emitter))
        ;
    return said;
}

struct score {
    uint32_t flows, right, wrong;
};

static void judge(const struct plan *plan, const struct ft_tuple *tuple, struct score *score)
{
    const struct ft_flow *flow = ft_join_find(join, tuple);
    uint32_t truth = ft_topology_port_at(t, leaf_of(&tuple->src), 100 + spine_of(plan, tuple));
    struct ft_hinted hinted;

    ck_assert_ptr_nonnull(flow);
    ck_assert_int_ne(flow->state, FT_PATH_RESOLVED);
    score->flows++;
    if (!ft_flow_likely(join, flow, &hinted) || hinted.path.hops[0].out == FT_NONE)
        return;
    ck_assert_uint_eq(hinted.by[0], FT_BY_PREDICTION);
    score->right += hinted.path.hops[0].out == truth;
    score->wrong += hinted.path.hops[0].out != truth;
}

/* Flows that were not seen before, each shown by `how` in the next window. */
static struct score score_of(const struct plan *plan,
                             void (*how)(const struct plan *plan, const struct ft_tuple *tuple))
{
    struct score score = {0};

    for (uint32_t n = LEARNT; n < LEARNT + UNSEEN; n++) {
        struct ft_tuple tuple = tuple_of(n);

        if (ft_join_find(join, &tuple))
            continue;
        how(plan, &tuple);
        judge(plan, &tuple, &score);
    }
    ck_assert_uint_gt(score.flows, UNSEEN / 2);
    return score;
}

static void by_its_tunnel(const struct plan *plan, const struct ft_tuple *tuple)
{
    struct ft_tuple outer = outer_of(plan, tuple);

    hint_at(tuple, START_MS + WINDOW_MS, &outer);
}

static void by_its_host(const struct plan *plan, const struct ft_tuple *tuple)
{
    (void)plan;
    report(tuple, START_MS + WINDOW_MS);
}

static void without_its_tunnel(const struct plan *plan, const struct ft_tuple *tuple)
{
    (void)plan;
    hint_at(tuple, START_MS + WINDOW_MS, NULL);
}

/* It was in another tunnel before, which is what would be hashed if that were taken for the
 * present. */
static void by_another_before(const struct plan *plan, const struct ft_tuple *tuple)
{
    struct ft_tuple outer = outer_of(plan, tuple), other = outer;

    other.sport ^= 0x155;
    hint_at(tuple, START_MS + WINDOW_MS - 1000, &other);
    hint_at(tuple, START_MS + WINDOW_MS, &outer);
}

/* The tunnel of the other side of a gateway: its ends are not those that the leaf sends from. */
static void behind_a_gateway(const struct plan *plan, const struct ft_tuple *tuple)
{
    struct ft_tuple outer = outer_of(plan, tuple);

    outer.src = tunnel_end(LEAVES + 1);
    hint_at(tuple, START_MS + WINDOW_MS, &outer);
}

static void judge_records(const struct plan *plan)
{
    for (uint32_t leaf = 0; leaf < LEAVES; leaf++) {
        struct said said = said_of(leaf, false), with = said_of(leaf, true);

        printf("%s, leaf%u: %s, outer %d, %.4f of %llu, %s\n", plan->name, leaf,
               said.linear ? "linear" : "not linear", said.outer, said.accuracy,
               (unsigned long long)said.predicted, said.inputs);
        ck_assert_uint_eq(said.records, 1);
        ck_assert_int_eq(said.linear, plan->linear);
        ck_assert_int_eq(said.outer, plan->named);
        ck_assert_int_eq(said.has_outer, plan->named);
        ck_assert_int_eq(said.trusted, plan->linear);
        /* Who asks for a function has flows without tunnels. */
        ck_assert_int_eq(with.function, plan->linear && !plan->named);
        if (plan->linear) {
            ck_assert_double_eq(said.accuracy, 1);
            ck_assert_uint_ge(said.predicted, 64);
        }
        if (plan->named)
            ck_assert_str_eq(said.inputs, "outer_dst outer_sport ");
    }
    ck_assert_uint_eq(ft_hashes_trusted(hashes), plan->linear ? LEAVES : 0);
}

START_TEST(the_header_that_is_hashed_is_named)
{
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        const struct plan *plan = &plans[i];
        struct score score;

        /* What is learnt of tunnels is no news where the flows' own header is named. */
        ck_assert_uint_eq(begin(plan, LEARNT), plan->named ? 2 : 1);
        judge_records(plan);
        score = score_of(plan, by_its_tunnel);
        printf("%s: %u of %u flows right, %u wrong\n", plan->name, score.right, score.flows,
               score.wrong);
        ck_assert_uint_eq(score.wrong, 0);
        if (plan->linear)
            ck_assert_uint_gt(score.right, score.flows * 9 / 10);
        else
            ck_assert_uint_eq(score.right, 0);
        end();
    }
}
END_TEST

/* By its own header a flow is predicted, where that is hashed, whatever its tunnel; but where the
 * outer one may be, which is right as well, not one in another tunnel than those learnt from. */
START_TEST(no_flow_is_predicted_whose_tunnel_is_not_known)
{
    static const struct {
        void (*how)(const struct plan *plan, const struct ft_tuple *tuple);
        bool tunnel; /* seen in one */
    } ways[] = {{by_its_host, false},
                {without_its_tunnel, false},
                {by_another_before, true},
                {behind_a_gateway, true}};

    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        for (size_t k = 0; k < sizeof(ways) / sizeof(ways[0]); k++) {
            bool predicted =
                plans[i].linear && !plans[i].named && !(ways[k].tunnel && plans[i].linear_port);
            struct score score;

            begin(&plans[i], LEARNT);
            score = score_of(&plans[i], ways[k].how);
            ck_assert_uint_eq(score.wrong, 0);
            ck_assert_msg((score.right > 0) == predicted, "%s, way %zu: %u of %u", plans[i].name, k,
                          score.right, score.flows);
            end();
        }
    }
}
END_TEST

/* Flow n of 31 sources, four a port of entry, of which the last of one port is not seen. */
static struct ft_hash_flow of_source(uint32_t n, uint32_t source)
{
    const struct ft_tuple tuple = {.src = tunnel_end(source),
                                   .dst = tunnel_end(64 + n % 40),
                                   .sport = (uint16_t)ft_digest_bytes(&n, sizeof(n), 3)};
    struct ft_hash_flow flow = {.member = ft_named_hash(FT_HASHED_CRC32, &tuple) % SPINES};

    ft_hash_input(&flow.in, &tuple, source / 4);
    return flow;
}

START_TEST(ends_that_were_not_seen_are_not_predicted)
{
    enum { COUNT = 800, HIDDEN = 6 };
    static struct ft_hash_flow flows[COUNT];
    struct ft_hash_flow hidden = of_source(COUNT, HIDDEN), other = of_source(COUNT, HIDDEN + 2);
    struct ft_hash_model m;

    for (uint32_t n = 0; n < COUNT; n++)
        flows[n] = of_source(n, n % 31 + (n % 31 >= HIDDEN));
    ck_assert_int_eq(ft_hash_learn(&m, flows, COUNT, SPINES), 0);
    ck_assert_int_eq(m.kind, FT_HASH_LINEAR);
    ck_assert_uint_eq(ft_hash_predict(&m, &hidden.in), hidden.member);
    ft_hash_model_free(&m);
    ck_assert_int_eq(ft_hash_learn_seen(&m, flows, COUNT, SPINES,
                                        1u << FT_HASH_PART_FROM | 1u << FT_HASH_PART_TO),
                     0);
    ck_assert_int_eq(m.kind, FT_HASH_LINEAR);
    ck_assert_uint_eq(ft_hash_predict(&m, &hidden.in), FT_HASH_MEMBERS_MAX);
    ck_assert_uint_eq(ft_hash_predict(&m, &other.in), other.member);
    ft_hash_model_free(&m);
}
END_TEST

FT_UNIT_MAIN("hashes_outer", the_header_that_is_hashed_is_named,
             no_flow_is_predicted_whose_tunnel_is_not_known,
             ends_that_were_not_seen_are_not_predicted)
