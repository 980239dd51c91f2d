// SPDX-License-Identifier: Apache-2.0
/*
 * Links of flows that nobody samples, predicted by the hash that was learnt from others: three
 * tiers of switches whose hashes are computed here, so that the true path of every flow is known.
 * CRC-32 and CRC-16 are held against the check values of their catalogue (of "123456789").
 */
#include "config.h"

#include "daemon/hashes/hashes.h"

#include <string.h>

#include "daemon/join/likely.h"
#include "lib/fabric/topology.h"
#include "tests/unit/switch_hashes.h"
#include "tests/unit/unit.h"

#define PODS         2
#define LEAVES       2 /* of a pod */
#define PLANES       4 /* aggregation switches of a pod, each with links up to WIDTH cores */
#define WIDTH        4
#define HOSTS        4
#define LEARNT       4000
#define UNSEEN       4000
#define WINDOW       100
#define WINDOW_MS    10000
#define BPS          1000000000u
#define LEAF(pod, l) ((pod)*LEAVES + (l))
#define AGG(pod, a)  (PODS * LEAVES + (pod)*PLANES + (a))
#define CORE(a, c)   (PODS * (LEAVES + PLANES) + (a)*WIDTH + (c))

static struct ft_topology *t;
static struct ft_join *join;
static struct ft_hashes *hashes;
static bool routed; /* flows bear their path */
static bool others; /* every tenth flow is of TCP, to another port */

static struct ft_ip switch_ip(uint32_t id)
{
    return ft_ip4((uint8_t[4]){192, 0, 2, (uint8_t)(1 + id)});
}

static struct ft_ip host_ip(uint32_t leaf, uint32_t host)
{
    return ft_ip4((uint8_t[4]){10, 3, (uint8_t)leaf, (uint8_t)(host + 1)});
}

static void name_of(uint32_t id, char name[16])
{
    snprintf(name, 16, "s%u", id);
}

static void add_link(struct ft_topology_builder *b, struct ft_diag *diag, uint32_t low, uint32_t up,
                     uint32_t high, uint32_t down)
{
    char a[16], z[16], a_port[16], z_port[16];

    name_of(low, a);
    name_of(high, z);
    snprintf(a_port, sizeof(a_port), "up%u", up);
    snprintf(z_port, sizeof(z_port), "down%u", down);
    ck_assert_uint_ne(ft_topology_add_port(b, low, a_port, 100 + up, BPS, diag), FT_NONE);
    ck_assert_uint_ne(ft_topology_add_port(b, high, z_port, 1 + down, BPS, diag), FT_NONE);
    ck_assert_int_eq(ft_topology_add_link(b, a, a_port, z, z_port, diag), 0);
}

static void add_hosts(struct ft_topology_builder *b, struct ft_diag *diag, uint32_t leaf)
{
    char at[16], port[16], host[16];

    name_of(leaf, at);
    for (uint32_t h = 0; h < HOSTS; h++) {
        struct ft_ip ip = host_ip(leaf, h);
        uint32_t nic;

        snprintf(port, sizeof(port), "host%u", h);
        snprintf(host, sizeof(host), "h%u-%u", leaf, h);
        ft_topology_add_port(b, leaf, port, 1 + h, BPS, diag);
        nic = ft_topology_add_nic(b, ft_topology_add_host(b, host, diag), FT_NONE, diag);
        ft_topology_add_nic_address(b, nic, &ip, diag);
        ck_assert_int_eq(ft_topology_attach(b, nic, at, port, diag), 0);
    }
}

static struct ft_topology *fabric(void)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_topology_builder *b = ft_topology_builder_new("lab");
    struct ft_topology *made;
    char name[16];

    for (uint32_t id = 0; id < CORE(PLANES, 0); id++) {
        struct ft_ip ip = switch_ip(id);

        name_of(id, name);
        ck_assert_uint_eq(ft_topology_add_switch(b, name, FT_TIER_UNKNOWN, diag), id);
        ck_assert_int_eq(ft_topology_add_address(b, id, &ip, diag), 0);
    }
    for (uint32_t pod = 0; pod < PODS; pod++) {
        for (uint32_t l = 0; l < LEAVES; l++)
            for (uint32_t a = 0; a < PLANES; a++)
                add_link(b, diag, LEAF(pod, l), a, AGG(pod, a), l);
        for (uint32_t a = 0; a < PLANES; a++)
            for (uint32_t c = 0; c < WIDTH; c++)
                add_link(b, diag, AGG(pod, a), c, CORE(a, c), pod);
        for (uint32_t l = 0; l < LEAVES; l++)
            add_hosts(b, diag, LEAF(pod, l));
    }
    made = ft_topology_build(b, diag);
    ck_assert_msg(made, "%s", ft_diag_text(diag, 0));
    ft_topology_builder_free(b);
    ft_diag_free(diag);
    return made;
}

struct choice {
    uint32_t (*hash)(const uint8_t *bytes, size_t len, uint32_t seed);
    uint32_t seed, shift;
};

/* How leaves and aggregation switches choose. */
struct plan {
    const char *name;
    struct choice leaf, agg;
    bool linear;
    bool modulo; /* of three links */
    bool alike;  /* both tiers hash alike */
    /* The hash chooses one of so many buckets, dealt to the links in turns, of which one was dealt
     * anew: a resilient table that had a failed link, or lost one. 0: it chooses the link. */
    uint32_t buckets, anew;
};

static const struct plan plans[] = {
    {"CRC-32, two seeds", {crc32, 0, 0}, {crc32, 0x1234567, 3}, true, false, false, 0, 0},
    {"CRC-32, polarised", {crc32, 7, 0}, {crc32, 7, 0}, true, false, true, 0, 0},
    {"CRC-16 over CRC-32", {crc16, 0xffff, 0}, {crc32, 9, 11}, true, false, false, 0, 0},
    {"XOR over CRC-16", {fold, 1, 0}, {crc16, 0, 5}, true, false, false, 0, 0},
    {"keyed", {keyed, 0xdeadbeef, 0}, {keyed, 0x5eed, 0}, false, false, false, 0, 0},
    {"CRC-32 modulo 3", {crc32, 5, 0}, {crc32, 6, 0}, false, true, false, 0, 0},
};

static uint32_t choose(const struct plan *plan, const struct choice *c,
                       const struct ft_tuple *tuple)
{
    uint8_t bytes[13];
    uint32_t h;

    memcpy(bytes, tuple->src.b + 12, 4);
    memcpy(bytes + 4, tuple->dst.b + 12, 4);
    bytes[8] = (uint8_t)(tuple->sport >> 8);
    bytes[9] = (uint8_t)tuple->sport;
    bytes[10] = (uint8_t)(tuple->dport >> 8);
    bytes[11] = (uint8_t)tuple->dport;
    bytes[12] = tuple->proto;
    h = c->hash(bytes, sizeof(bytes), c->seed) >> c->shift;
    if (plan->buckets && h % plan->buckets == plan->anew)
        return (h + 1) % 4;
    return plan->modulo ? h % 3 : h % 4;
}

/* Between any two hosts of different pods, drawn by the number. */
static struct ft_tuple tuple_of(uint32_t n)
{
    uint32_t drawn = keyed((const uint8_t *)&n, sizeof(n), 77);
    uint32_t pod = drawn & 1;
    bool other = others && n % 10 == 0;

    return (struct ft_tuple){
        .src = host_ip(LEAF(pod, drawn >> 1 & 1), drawn >> 2 & 3),
        .dst = host_ip(LEAF(!pod, drawn >> 4 & 1), drawn >> 5 & 3),
        .sport = (uint16_t)(0xc000 + (drawn >> 8 & 0x3fff)),
        .dport = other ? (uint16_t)(2049 + (drawn >> 22)) : FT_ROCE_PORT,
        .proto = other ? 6 : FT_PROTO_UDP,
    };
}

static void sample(const struct ft_tuple *tuple, uint32_t at, uint32_t in, uint32_t out,
                   int64_t start_ms)
{
    const struct ft_observation o = {.tuple = *tuple,
                                     .agent = switch_ip(at),
                                     .source_routed = routed,
                                     .in_ifindex = in,
                                     .out_ifindex = out,
                                     .first_ms = start_ms + 1000,
                                     .last_ms = start_ms + 6000,
                                     .samples = 5,
                                     .data_samples = 5,
                                     .bytes = 1000000};
    uint64_t results[FT_JOIN_RESULTS] = {0};

    ft_join_observe_batch(join, &o, 1, results);
    ck_assert_uint_eq(results[FT_JOIN_OK], 1);
}

/* The true path: the plane and the core in it. */
static void path_of(const struct plan *plan, const struct ft_tuple *tuple, uint32_t *a, uint32_t *c)
{
    *a = choose(plan, &plan->leaf, tuple);
    *c = choose(plan, &plan->agg, tuple);
}

/* Samples at every switch of its path. */
static void show(const struct ft_tuple *tuple, uint32_t a, uint32_t c, int64_t start_ms)
{
    uint32_t from = tuple->src.b[14], to = tuple->dst.b[14];
    uint32_t pod = from / LEAVES, other = to / LEAVES;

    sample(tuple, from, tuple->src.b[15], 100 + a, start_ms);
    sample(tuple, AGG(pod, a), 1 + from % LEAVES, 100 + c, start_ms);
    sample(tuple, CORE(a, c), 1 + pod, 1 + other, start_ms);
    sample(tuple, AGG(other, a), 100 + c, 1 + to % LEAVES, start_ms);
    sample(tuple, to, 100 + a, tuple->dst.b[15], start_ms);
}

static void report(const struct ft_tuple *tuple, int64_t start_ms)
{
    char host[16];
    const struct ft_host_report r = {.tuple = *tuple,
                                     .time_ms = start_ms + 9000,
                                     .interval_ms = 8000,
                                     .sending = true,
                                     .source_routed = routed,
                                     .host = host,
                                     .bytes = 1000000,
                                     .data_packets = 250,
                                     .qp_local = FT_NONE,
                                     .qp_remote = FT_NONE};

    snprintf(host, sizeof(host), "h%u-%u", tuple->src.b[14], tuple->src.b[15] - 1u);
    ck_assert_int_eq(ft_join_report(join, &r), FT_JOIN_OK);
}

static void ignore(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    (void)record;
}

/* What a window's close does with the hashes. */
static void learn(uint32_t window)
{
    static const struct ft_emitter nobody = {.record = ignore};
    int64_t start_ms = (int64_t)window * WINDOW_MS;

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
    /* As the next window's begin does. */
    ft_hashes_begin(hashes, t, start_ms + WINDOW_MS);
}

static bool predict(void *arg, const struct ft_join *of, const struct ft_flow *flow, uint32_t in,
                    struct ft_hint *hint)
{
    return ft_hashes_predict(arg, of, flow, in, hint);
}

/* A fabric whose flows 0 .. count - 1 were sampled in a window, and learnt from. */
static void begin(const struct plan *plan, uint32_t count)
{
    const struct ft_join_config config = {.flows_max = 20000,
                                          .window_ms = WINDOW_MS,
                                          .evidence_ms = 30000,
                                          .idle_ms = 60000,
                                          .trust_topology = true,
                                          .policy = {.hold_down_ms = 2000, .tolerance_ms = 2000}};

    t = fabric();
    join = ft_join_new(&config, t, &(struct ft_join_hooks){.arg = NULL});
    hashes = ft_hashes_new(1000, 1);
    ck_assert(join && hashes);
    ft_join_set_predictor(join, &(struct ft_join_predictor){.predict = predict, .arg = hashes});
    ft_join_open(join, WINDOW);
    for (uint32_t n = 0; n < count; n++) {
        struct ft_tuple tuple = tuple_of(n);
        uint32_t a, c;

        path_of(plan, &tuple, &a, &c);
        show(&tuple, a, c, (int64_t)WINDOW * WINDOW_MS);
    }
    learn(WINDOW);
}

static void end(void)
{
    ft_join_free(join);
    ft_hashes_free(hashes);
    ft_topology_free(t);
}

struct score {
    uint32_t hops, right, wrong, complete;
};

/* Holds what is said of a flow that only its host reports against its true path. */
static void judge(const struct plan *plan, const struct ft_tuple *tuple, struct score *score)
{
    struct ft_flow *flow = ft_join_find(join, tuple);
    struct ft_hinted hinted;
    uint32_t a, c, truth[2], right = 0;

    ck_assert_ptr_nonnull(flow);
    ck_assert_int_eq(flow->state, FT_PATH_UNRESOLVED);
    score->hops += 2;
    if (!ft_flow_likely(join, flow, &hinted))
        return;
    path_of(plan, tuple, &a, &c);
    truth[0] = ft_topology_port_at(t, tuple->src.b[14], 100 + a);
    truth[1] = ft_topology_port_at(t, AGG(tuple->src.b[14] / LEAVES, a), 100 + c);
    ck_assert(hinted.accuracy >= 0.99F && hinted.accuracy <= 1);
    for (uint32_t h = 0; h < 2; h++) {
        if (hinted.path.hops[h].out == FT_NONE)
            continue;
        ck_assert_uint_eq(hinted.by[h], FT_BY_PREDICTION);
        right += hinted.path.hops[h].out == truth[h];
        score->wrong += hinted.path.hops[h].out != truth[h];
    }
    score->right += right;
    score->complete += right == 2 && hinted.by[2] == FT_BY_PREDICTION;
}

START_TEST(hashes_are_those_of_the_catalogue)
{
    ck_assert_uint_eq(crc32((const uint8_t *)"123456789", 9, 0), 0xcbf43926);
    ck_assert_uint_eq(crc16((const uint8_t *)"123456789", 9, 0xffff), 0x29b1);
    ck_assert_uint_eq(crc16((const uint8_t *)"123456789", 9, 0), 0x31c3);
}
END_TEST

/* What the record of a switch says of how evenly it chooses. */
struct even {
    char at[16];
    double effective, by_chance;
    unsigned records;
};

static void on_even(void *arg, const Fabrictrace__Record *record)
{
    struct even *e = arg;

    if (strcmp(record->hash->switch_, e->at) != 0 || record->hash->n_members != WIDTH)
        return;
    e->records++;
    e->effective = record->hash->effective_links;
    e->by_chance = record->hash->effective_by_chance;
}

/* Where both tiers hash alike, each aggregation switch leaves out all of its links but one. */
static void judge_never(const struct plan *plan, uint32_t id)
{
    uint32_t ports[WIDTH], up = ft_topology_find_port(t, id, "up0");
    const struct ft_group *group = ft_topology_group(t, ft_topology_port(t, up)->group);

    ck_assert_uint_eq(ft_hashes_never(hashes, t, group, ports, WIDTH), plan->alike ? WIDTH - 1 : 0);
}

/* Where both tiers hash alike, what a leaf chose is what an aggregation switch chooses; else it
 * chooses as evenly as chance does. */
static void judge_evenness(const struct plan *plan)
{
    for (uint32_t a = 0; a < (plan->modulo ? 0 : PLANES); a++) {
        struct even e = {.records = 0};
        const struct ft_emitter emitter = {on_even, &e};
        uint32_t index = 0;

        name_of(AGG(0, a), e.at);
        while (ft_hashes_next(hashes, &index, false, "lab", 0, &emitter))
            ;
        ck_assert_uint_eq(e.records, 1);
        printf("%s: %.2f of %.2f links\n", e.at, e.effective, e.by_chance);
        judge_never(plan, AGG(0, a));
        ck_assert_double_gt(e.by_chance, 3.8);
        if (plan->alike)
            ck_assert_double_eq_tol(e.effective, 1, 1e-9);
        else
            ck_assert_double_gt(e.effective, 0.9 * e.by_chance);
    }
}

static void predict_unseen(const struct plan *plan)
{
    struct score score = {0};

    begin(plan, LEARNT);
    judge_evenness(plan);
    for (uint32_t n = LEARNT; n < LEARNT + UNSEEN; n++) {
        struct ft_tuple tuple = tuple_of(n);

        if (ft_join_find(join, &tuple))
            continue; /* drawn twice */
        report(&tuple, (int64_t)(WINDOW + 1) * WINDOW_MS);
        judge(plan, &tuple, &score);
    }
    printf("%s: of %u hops without samples %u predicted rightly, %u wrongly; %u complete paths\n",
           plan->name, score.hops, score.right, score.wrong, score.complete);
    ck_assert_uint_ge(score.hops, 2 * UNSEEN * 9 / 10);
    ck_assert_uint_eq(score.wrong, 0);
    if (plan->linear)
        ck_assert_uint_ge(score.right * 100, score.hops * 95);
    else
        ck_assert_uint_eq(score.right, 0);
    end();
}

/* Of linear hashes nearly all, none wrong; of others nothing at all. */
START_TEST(unseen_flows_are_predicted_rightly_or_not_at_all)
{
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
        predict_unseen(&plans[i]);
}
END_TEST

/* Of a table with one bucket of 64 dealt anew a linear function says 98.4 % of flows rightly, and
 * by chance more of those that are held out. Whatever was learnt from, no flow is predicted
 * wrongly, and those of the links that have no such bucket are predicted. */
START_TEST(a_bucket_that_was_dealt_anew_is_predicted_by_nobody)
{
    struct plan plan = {"resilient", {crc32, 0, 0}, {crc16, 0xffff, 0}, false, false, false, 64, 0};
    struct score all = {0};

    for (uint32_t i = 0; i < 12; i++) {
        struct score score = {0};

        plan.anew = 5 * i;
        plan.leaf.seed = 100 + i;
        begin(&plan, 1000 + 250 * i);
        for (uint32_t n = LEARNT; n < LEARNT + UNSEEN / 2; n++) {
            struct ft_tuple tuple = tuple_of(n);

            if (ft_join_find(join, &tuple))
                continue;
            report(&tuple, (int64_t)(WINDOW + 1) * WINDOW_MS);
            judge(&plan, &tuple, &score);
        }
        printf("bucket %u anew, %u flows: %u of %u hops right, %u wrong\n", plan.anew,
               1000 + 250 * i, score.right, score.hops, score.wrong);
        ck_assert_uint_eq(score.wrong, 0);
        all.right += score.right;
        end();
    }
    ck_assert_uint_gt(all.right, 0);
}
END_TEST

/* Switches hash the protocol and the port of destination, too. What flows of TCP do says nothing of
 * those of RoCEv2, which are predicted beside them as without, nor the other way round. */
START_TEST(of_other_protocols_nothing_is_learnt_nor_said)
{
    const uint32_t count = LEARNT + LEARNT / 4; /* of them LEARNT and more are of RoCEv2 */
    struct score own = {0}, other = {0};

    others = true;
    begin(&plans[0], count);
    for (uint32_t n = count; n < count + UNSEEN; n++) {
        struct ft_tuple tuple = tuple_of(n);

        if (ft_join_find(join, &tuple))
            continue;
        report(&tuple, (int64_t)(WINDOW + 1) * WINDOW_MS);
        judge(&plans[0], &tuple, tuple.proto == FT_PROTO_UDP ? &own : &other);
    }
    printf("of RoCEv2 %u of %u hops right, %u wrong; of TCP %u of %u, %u wrong\n", own.right,
           own.hops, own.wrong, other.right, other.hops, other.wrong);
    others = false;
    end();
    ck_assert_uint_eq(own.wrong, 0);
    ck_assert_uint_ge(own.right * 100, own.hops * 95);
    ck_assert_uint_gt(other.hops, 0);
    ck_assert_uint_eq(other.right + other.wrong, 0);
}
END_TEST

/* A model of few flows may be right, and is not used. */
START_TEST(few_flows_give_no_prediction)
{
    struct score score = {0};

    begin(&plans[0], 200);
    for (uint32_t n = LEARNT; n < LEARNT + 200; n++) {
        struct ft_tuple tuple = tuple_of(n);

        report(&tuple, (int64_t)(WINDOW + 1) * WINDOW_MS);
        judge(&plans[0], &tuple, &score);
    }
    ck_assert_uint_eq(score.right + score.wrong, 0);
    ck_assert_uint_eq(ft_hashes_trusted(hashes), 0);
    end();
}
END_TEST

/* Their links are nobody's choice but their senders': no hash is learnt of them, and none that was
 * learnt of others says where they go. */
START_TEST(flows_that_bear_their_path_are_kept_apart)
{
    struct score score = {0};

    routed = true;
    begin(&plans[0], 600);
    ck_assert_uint_eq(ft_hashes_count(hashes), 0);
    end();
    routed = false;
    begin(&plans[0], LEARNT);
    ck_assert_uint_gt(ft_hashes_trusted(hashes), 0);
    routed = true;
    for (uint32_t n = LEARNT; n < LEARNT + 200; n++) {
        struct ft_tuple tuple = tuple_of(n);

        report(&tuple, (int64_t)(WINDOW + 1) * WINDOW_MS);
        judge(&plans[0], &tuple, &score);
    }
    ck_assert_uint_eq(score.right + score.wrong, 0);
    routed = false;
    end();
}
END_TEST

/* One sample is enough for its flow; two flows, and the model is not trusted with any. */
START_TEST(samples_withdraw_predictions)
{
    const int64_t start_ms = (int64_t)(WINDOW + 1) * WINDOW_MS;
    struct ft_topology_builder *b = ft_topology_builder_new("elsewhere");
    struct ft_diag *diag = ft_diag_new();
    struct ft_topology *elsewhere;
    uint64_t confirmed, contradicted, kept[2];
    uint32_t at[2] = {0}, trusted;
    struct score before = {0}, after = {0};

    begin(&plans[0], LEARNT);
    trusted = ft_hashes_trusted(hashes);
    ck_assert_uint_gt(trusted, 0);
    ft_hashes_checked(hashes, &confirmed, &contradicted);
    ck_assert_uint_eq(contradicted, 0);
    for (uint32_t n = LEARNT; n < LEARNT + 600; n++) {
        struct ft_tuple tuple = tuple_of(n);

        report(&tuple, start_ms);
        judge(&plans[0], &tuple, &before);
    }
    ck_assert_uint_eq(before.right, before.hops);
    /* Flows of one leaf turn out to be in another plane than was predicted. */
    for (uint32_t n = LEARNT, i = 0; i < 2; n++) {
        struct ft_tuple tuple = tuple_of(n);
        struct ft_hinted hinted;
        uint32_t a, c;

        if (tuple.src.b[14] != 0)
            continue;
        at[i++] = n;
        path_of(&plans[0], &tuple, &a, &c);
        show(&tuple, (a + 1) % PLANES, c, start_ms);
        ck_assert_int_eq(ft_join_find(join, &tuple)->state, FT_PATH_RESOLVED);
        ck_assert(!ft_flow_likely(join, ft_join_find(join, &tuple), &hinted));
    }
    learn(WINDOW + 1);
    ft_hashes_checked(hashes, &confirmed, &contradicted);
    ck_assert_uint_ge(contradicted, 2);
    ck_assert_uint_lt(ft_hashes_trusted(hashes), trusted);
    for (uint32_t n = LEARNT; n < LEARNT + 600; n++) {
        struct ft_tuple tuple = tuple_of(n);

        if (tuple.src.b[14] == 0 && n != at[0] && n != at[1])
            judge(&plans[0], &tuple, &after);
    }
    ck_assert_uint_gt(after.hops, 0);
    ck_assert_uint_eq(after.right + after.wrong, 0);
    /* That is counted on when they are forgotten. */
    ft_topology_add_switch(b, "other", FT_TIER_LEAF, diag);
    elsewhere = ft_topology_build(b, diag);
    for (int64_t day = 0; day < 2; day++)
        ft_hashes_begin(hashes, elsewhere, start_ms + day * FT_HASHES_GONE_MS);
    ck_assert_uint_eq(ft_hashes_count(hashes), 0);
    ft_hashes_checked(hashes, &kept[0], &kept[1]);
    ck_assert(kept[0] == confirmed && kept[1] == contradicted);
    ft_topology_free(elsewhere);
    ft_topology_builder_free(b);
    ft_diag_free(diag);
    end();
}
END_TEST

FT_UNIT_MAIN("hashes", hashes_are_those_of_the_catalogue,
             unseen_flows_are_predicted_rightly_or_not_at_all,
             a_bucket_that_was_dealt_anew_is_predicted_by_nobody,
             of_other_protocols_nothing_is_learnt_nor_said, few_flows_give_no_prediction,
             samples_withdraw_predictions, flows_that_bear_their_path_are_kept_apart)
