// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "lib/fabric/evenness.h"
#include "lib/fabric/hash_model.h"
#include "lib/fabric/weights.h"
#include "tests/unit/switch_hashes.h"
#include "tests/unit/unit.h"

#define FLOWS 1200
#define TRAIN 800

/* What switches compute, bit by bit as their manuals give it: 12 bytes of addresses and ports, and
 * the port of entry. */
struct key {
    uint8_t b[14];
};

static uint32_t by_crc16(const struct key *k)
{
    return crc16(k->b, sizeof(k->b), 0xffff);
}

static uint32_t by_crc32(const struct key *k)
{
    return crc32(k->b, sizeof(k->b), 0x12345678) >> 7;
}

static uint32_t by_fold(const struct key *k)
{
    uint32_t x = 0;

    for (unsigned i = 0; i + 1 < sizeof(k->b); i += 2)
        x ^= (uint32_t)k->b[i] << 8 | k->b[i + 1];
    return x ^ x >> 8;
}

/* Not linear, as Linux' siphash and jhash are not: Knuth's multiplicative hash, mixed. */
static uint32_t mixed(const struct key *k)
{
    uint64_t x = 1;

    for (unsigned i = 0; i < sizeof(k->b); i++)
        x = (x ^ k->b[i]) * UINT64_C(0x9e3779b97f4a7c15) ^ x >> 29;
    return (uint32_t)(x >> 40);
}

static uint32_t always(const struct key *k)
{
    return k->b[0] & 0;
}

/* Only half of the links, as where two tiers use the same hash. */
static uint32_t polarised(const struct key *k)
{
    return by_crc16(k) & 6;
}

/* Resilient tables: 64 buckets by CRC-16, dealt to eight links in turns; what is left when the last
 * one fails, its buckets dealt to the others; and when it has half of them back. */
static uint32_t dealt(const struct key *k)
{
    return by_crc16(k) & 7;
}

static uint32_t dealt_anew(const struct key *k)
{
    uint32_t bucket = by_crc16(k) & 63;

    return bucket % 8 == 7 ? bucket / 8 % 7 : bucket % 8;
}

static uint32_t half_back(const struct key *k)
{
    uint32_t bucket = by_crc16(k) & 63;

    return bucket % 8 == 7 && bucket & 8 ? bucket / 8 % 7 : bucket % 8;
}

struct fabric {
    uint32_t (*hash)(const struct key *k);
    uint32_t members;
    bool ingress;          /* is hashed */
    bool shuffled;         /* the switch lists its links in another order */
    unsigned wrong_one_in; /* 0: none */
};

static uint64_t state;

static uint32_t chance(uint32_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % below;
}

static uint32_t truth(const struct fabric *f, const struct ft_tuple *t, uint32_t entry)
{
    uint32_t index;
    struct key k;

    memcpy(k.b, &t->src.b[12], 4);
    memcpy(k.b + 4, &t->dst.b[12], 4);
    k.b[8] = (uint8_t)(t->sport >> 8);
    k.b[9] = (uint8_t)t->sport;
    k.b[10] = 4791 >> 8;
    k.b[11] = 4791 & 0xff;
    k.b[12] = 0;
    k.b[13] = f->ingress ? (uint8_t)(7 * entry + 3) : 0;
    index = f->hash(&k) % f->members;
    return f->shuffled ? (index * 5 + 3) % f->members : index;
}

static struct ft_tuple tuple_of(uint32_t src, uint32_t dst, uint16_t sport)
{
    struct ft_tuple t = {.sport = sport, .dport = 4791, .proto = 17};

    t.src = ft_ip4((uint8_t[]){10, 1, (uint8_t)src, 1});
    t.dst = ft_ip4((uint8_t[]){10, 2, (uint8_t)(dst / 8), (uint8_t)(dst % 8 + 1)});
    return t;
}

static void make_flow(struct ft_hash_flow *out, const struct fabric *f, uint32_t src, uint32_t dst,
                      uint16_t sport)
{
    struct ft_tuple t = tuple_of(src, dst, sport);

    /* Two NICs a port of entry: that and the address say different things. */
    ft_hash_input(&out->in, &t, src / 2);
    out->member = truth(f, &t, src / 2);
    if (f->wrong_one_in && chance(f->wrong_one_in) == 0)
        out->member = (out->member + 1) % f->members;
}

static struct ft_hash_flow flows[FLOWS];

static void make_flows(const struct fabric *f)
{
    state = f->members + f->ingress;
    for (unsigned i = 0; i < FLOWS; i++)
        make_flow(&flows[i], f, chance(32), chance(200), (uint16_t)(0xc000 + chance(0x4000)));
}

/* Of held-out flows, those that are predicted, and of these the right ones. */
static void predict(const struct ft_hash_model *m, unsigned *predicted, unsigned *right)
{
    *predicted = *right = 0;
    for (unsigned i = TRAIN; i < FLOWS; i++) {
        uint32_t member = ft_hash_predict(m, &flows[i].in);

        *predicted += member != FT_HASH_MEMBERS_MAX;
        *right += member == flows[i].member;
    }
}

static const struct fabric linear[] = {
    {by_crc16, 2, false, false, 0}, {by_crc16, 4, false, false, 0}, {by_crc16, 8, true, false, 0},
    {by_crc16, 16, false, true, 0}, {by_crc16, 64, true, true, 0},  {by_crc32, 4, true, true, 0},
    {by_crc32, 8, false, false, 0}, {by_crc32, 32, false, true, 0}, {by_crc32, 64, true, false, 0},
    {by_fold, 4, false, false, 0},  {by_fold, 16, true, true, 0},   {by_fold, 64, false, false, 0},
    {always, 4, false, false, 0},   {polarised, 8, false, true, 0},
};

/* As fabrictrace.hash.v1 has it, whatever machine the daemon and the tool run on. */
START_TEST(the_words_of_a_flow_are_those_of_the_contract)
{
    struct ft_tuple t = {.src = ft_ip4((uint8_t[4]){10, 1, 2, 3}), .sport = 0xc123};
    struct ft_hash_input in;

    for (uint8_t i = 0; i < sizeof(t.dst.b); i++)
        t.dst.b[i] = (uint8_t)(0x20 + i);
    ft_hash_input(&in, &t, 2);
    ck_assert_uint_eq(in.word[0], 0);
    ck_assert_uint_eq(in.word[1], UINT64_C(0x0302010affff0000));
    ck_assert_uint_eq(in.word[2], UINT64_C(0x2726252423222120));
    ck_assert_uint_eq(in.word[3], UINT64_C(0x2f2e2d2c2b2a2928));
    ck_assert_uint_eq(in.word[4], UINT64_C(0x4c123));
}
END_TEST

START_TEST(linear_hashes_are_learnt_whatever_seed_and_order)
{
    for (size_t i = 0; i < sizeof(linear) / sizeof(linear[0]); i++) {
        const struct fabric *f = &linear[i];
        unsigned predicted, right;
        struct ft_hash_model m;

        make_flows(f);
        ck_assert_int_eq(ft_hash_learn(&m, flows, TRAIN, f->members), 0);
        ck_assert_msg(m.kind == FT_HASH_LINEAR, "case %zu: kind %d", i, m.kind);
        predict(&m, &predicted, &right);
        ck_assert_uint_ge(predicted, (FLOWS - TRAIN) * 95 / 100);
        ck_assert_uint_eq(right, predicted);
        ft_hash_model_free(&m);
    }
}
END_TEST

static const struct {
    const char *name;
    struct fabric fabric;
} measured[] = {
    {"CRC-16, 4 links", {by_crc16, 4, false, false, 0}},
    {"CRC-16, 8 links, with the port of entry", {by_crc16, 8, true, false, 0}},
    {"CRC-16, 64 links", {by_crc16, 64, false, true, 0}},
    {"CRC-32 with a seed, 4 links, with the port of entry", {by_crc32, 4, true, true, 0}},
    {"CRC-32 with a seed, 16 links", {by_crc32, 16, false, false, 0}},
    {"CRC-32 with a seed, 64 links, with the port of entry", {by_crc32, 64, true, false, 0}},
    {"XOR, 4 links", {by_fold, 4, false, false, 0}},
    {"XOR, 16 links, with the port of entry", {by_fold, 16, true, true, 0}},
    {"XOR, 64 links", {by_fold, 64, false, false, 0}},
    {"resilient table, 8 links", {dealt, 8, false, true, 0}},
    {"CRC-16, 8 links, of which 4 are never chosen", {polarised, 8, false, true, 0}},
};

/* Of the first n flows: whether they are called linear, and the part of others that is predicted;
 * all of them rightly. */
static double learnt_from(size_t i, size_t n, bool *called)
{
    unsigned predicted, right;
    struct ft_hash_model m;

    ck_assert_int_eq(ft_hash_learn(&m, flows, n, measured[i].fabric.members), 0);
    *called = m.kind == FT_HASH_LINEAR;
    predict(&m, &predicted, &right);
    ck_assert_msg(right == predicted, "%s, %zu flows: %u of %u", measured[i].name, n, right,
                  predicted);
    ft_hash_model_free(&m);
    return (double)predicted / (FLOWS - TRAIN);
}

/* How many flows of 32 hosts to 200 others have to be seen: the table of tests/bench/README.md. */
START_TEST(a_few_hundred_flows_are_enough)
{
    for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
        size_t linear_from = 0, most_from = 0;

        make_flows(&measured[i].fabric);
        for (size_t n = 8; n <= 320 && !most_from; n += 4) {
            bool called;
            double part = learnt_from(i, n, &called);

            if (called && !linear_from)
                linear_from = n;
            if (part >= 0.95)
                most_from = n;
        }
        printf("%s: linear from %zu flows on, 95 %% of others predicted from %zu on\n",
               measured[i].name, linear_from, most_from);
        ck_assert_uint_gt(linear_from, 0);
        ck_assert_uint_gt(most_from, 0);
        ck_assert_uint_le(most_from, 256);
    }
}
END_TEST

static const struct fabric other[] = {
    {mixed, 4, false, false, 0},      {mixed, 2, false, false, 0},
    {mixed, 64, true, false, 0},      {by_crc16, 6, false, false, 0},
    {by_crc32, 3, false, false, 0},   {by_crc32, 48, false, false, 0},
    {dealt_anew, 7, false, false, 0}, {half_back, 8, false, false, 0},
};

START_TEST(what_is_not_linear_is_refused)
{
    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
        const struct fabric *f = &other[i];
        struct ft_hash_model m;

        make_flows(f);
        ck_assert_int_eq(ft_hash_learn(&m, flows, TRAIN, f->members), 0);
        ck_assert_int_eq(m.kind, FT_HASH_TABLE);
        ck_assert_uint_eq(ft_hash_predict(&m, &flows[0].in), FT_HASH_MEMBERS_MAX);
        ft_hash_model_free(&m);
    }
}
END_TEST

/* However few flows there are, nothing is made of them that is not so. (Of the last, 15 of 16 flows
 * are as a linear hash has them: that it is none shows in more.) */
START_TEST(few_flows_are_not_enough)
{
    for (size_t i = 0; i + 1 < sizeof(other) / sizeof(other[0]); i++) {
        struct ft_hash_model m;

        make_flows(&other[i]);
        for (size_t n = 0; n <= 100; n++) {
            ck_assert_int_eq(ft_hash_learn(&m, flows, n, other[i].members), 0);
            ck_assert_msg(m.kind != FT_HASH_LINEAR, "case %zu, %zu flows", i, n);
            ck_assert(n > 24 || m.kind == FT_HASH_UNKNOWN);
            ft_hash_model_free(&m);
        }
    }
}
END_TEST

/* Bytes of the key that a keyed hash is of: all else chooses nothing. */
struct alone {
    const char *name;
    uint8_t from, to; /* of what it is: the last byte is not in it */
};

static const struct alone alone[] = {
    {"addresses", 0, 8}, {"src", 0, 4}, {"dst", 4, 8}, {"sport", 8, 10}};

/* Like mixed(), of a part alone: Linux hashes so by fib_multipath_hash_policy 0 and 3. */
static uint32_t keyed_alone(const struct alone *a, const struct ft_tuple *t, uint64_t key)
{
    struct key k;

    memcpy(k.b, &t->src.b[12], 4);
    memcpy(k.b + 4, &t->dst.b[12], 4);
    k.b[8] = (uint8_t)(t->sport >> 8);
    k.b[9] = (uint8_t)t->sport;
    for (unsigned i = a->from; i < a->to; i++)
        key = (key ^ k.b[i]) * UINT64_C(0x9e3779b97f4a7c15) ^ key >> 29;
    return (uint32_t)(key >> 40);
}

/* Of few hosts or ports any function is linear, however many flows there are between them: one that
 * is keyed is not called so, and what was not seen is not predicted. */
START_TEST(a_keyed_hash_of_a_part_is_never_linear)
{
    for (unsigned round = 0; round < 4 * 40; round++) {
        const struct alone *a = &alone[round % 4];
        uint32_t members = 2u << round / 4 % 3, hosts = 2 + round / 16 % 4, ports = 4 + round % 9;
        struct ft_hash_model m;

        state = round;
        for (unsigned i = 0; i < 300; i++) {
            struct ft_tuple t = tuple_of(
                chance(hosts), chance(2 * hosts),
                (uint16_t)(0xc000 + (a->from == 8 ? chance(ports) * 1291 : chance(0x4000))));

            ft_hash_input(&flows[i].in, &t, 0);
            flows[i].member = keyed_alone(a, &t, round) % members;
        }
        ck_assert_int_eq(ft_hash_learn(&m, flows, 300, members), 0);
        ck_assert_msg(m.kind != FT_HASH_LINEAR, "round %u: %u links by %s of %u hosts", round,
                      members, a->name, hosts);
        ft_hash_model_free(&m);
    }
}
END_TEST

/* The sum of both addresses, then CRC: the same choice in both directions. It is linear in the
 * source port, not in addresses: only pairs that were seen are predicted, and rightly. */
START_TEST(what_is_linear_in_a_part_is_predicted_for_what_was_seen)
{
    /* Of the last one's address each bit is the sum of the others'. */
    static const uint32_t to[] = {0, 1, 3, 6};
    const struct fabric f = {by_crc32, 8, false, false, 0};
    unsigned predicted = 0, fresh = 0;
    struct ft_hash_model m;

    state = 3;
    for (unsigned i = 0; i < FLOWS; i++) {
        uint32_t dst = to[chance(i < TRAIN ? 3 : 4)];
        struct ft_tuple t = tuple_of(205, dst, (uint16_t)(0xc000 + chance(0x4000))), summed = t;

        summed.src.b[14] = (uint8_t)(t.src.b[14] + t.dst.b[15]);
        summed.dst.b[15] = 0;
        ft_hash_input(&flows[i].in, &t, 0);
        flows[i].member = truth(&f, &summed, 0);
    }
    ck_assert_int_eq(ft_hash_learn(&m, flows, TRAIN, 8), 0);
    ck_assert_int_eq(m.kind, FT_HASH_LINEAR);
    for (unsigned i = TRAIN; i < FLOWS; i++) {
        uint32_t member = ft_hash_predict(&m, &flows[i].in);

        fresh += member == FT_HASH_MEMBERS_MAX;
        predicted += member != FT_HASH_MEMBERS_MAX;
        ck_assert(member == FT_HASH_MEMBERS_MAX || member == flows[i].member);
    }
    ck_assert_uint_gt(predicted, 100);
    ck_assert_uint_gt(fresh, 100);
    ft_hash_model_free(&m);
}
END_TEST

START_TEST(one_pair_needs_two_dozen_flows)
{
    const struct fabric f = {by_crc16, 16, false, true, 0};
    struct ft_hash_model m;

    state = 1;
    for (unsigned i = 0; i < 120; i++)
        make_flow(&flows[i], &f, 1, 2, (uint16_t)(0xc000 + chance(0x4000)));
    ck_assert_int_eq(ft_hash_learn(&m, flows, 60, f.members), 0);
    ck_assert_int_eq(m.kind, FT_HASH_LINEAR);
    for (unsigned i = 60; i < 120; i++) {
        uint32_t member = ft_hash_predict(&m, &flows[i].in);

        ck_assert_uint_eq(member, flows[i].member);
    }
    ft_hash_model_free(&m);
}
END_TEST

/* The linear part holds for other destinations too: one flow to each gives the rest. */
START_TEST(one_flow_to_another_destination_is_enough)
{
    const struct fabric f = {by_crc32, 8, false, false, 0};
    struct ft_hash_flow fresh;
    struct ft_hash_model m;

    state = 2;
    for (unsigned i = 0; i < 200; i++)
        make_flow(&flows[i], &f, 1, 2, (uint16_t)(0xc000 + chance(0x4000)));
    make_flow(&fresh, &f, 1, 77, 0xc123);
    ck_assert_int_eq(ft_hash_learn(&m, flows, 200, f.members), 0);
    ck_assert_uint_eq(ft_hash_predict(&m, &fresh.in), FT_HASH_MEMBERS_MAX);
    ft_hash_model_free(&m);
    flows[200] = fresh;
    ck_assert_int_eq(ft_hash_learn(&m, flows, 201, f.members), 0);
    for (unsigned i = 0; i < 200; i++) {
        make_flow(&fresh, &f, 1, 77, (uint16_t)(0xc000 + chance(0x4000)));
        ck_assert_uint_eq(ft_hash_predict(&m, &fresh.in), fresh.member);
    }
    ft_hash_model_free(&m);
}
END_TEST

START_TEST(a_flow_in_a_hundred_on_another_link_is_seen_through)
{
    const struct fabric f = {by_crc16, 8, true, false, 100};
    unsigned predicted, right;
    struct ft_hash_model m;

    make_flows(&f);
    ck_assert_int_eq(ft_hash_learn(&m, flows, TRAIN, f.members), 0);
    ck_assert_int_eq(m.kind, FT_HASH_LINEAR);
    predict(&m, &predicted, &right);
    ck_assert_uint_gt(predicted, 350);
    ck_assert_uint_ge(right, predicted * 97 / 100);
    for (unsigned i = TRAIN; i < FLOWS; i++) {
        const struct fabric clean = {by_crc16, 8, true, false, 0};

        make_flow(&flows[i], &clean, chance(32), chance(200), (uint16_t)(0xc000 + chance(0x4000)));
    }
    predict(&m, &predicted, &right);
    ck_assert_uint_eq(right, predicted);
    ft_hash_model_free(&m);
}
END_TEST

static uint32_t ports_only(const struct key *k)
{
    return k->b[9] ^ k->b[8] >> 1;
}

START_TEST(what_is_hashed_is_reported)
{
    const struct fabric with = {by_crc16, 8, true, false, 0},
                        without = {by_crc16, 8, false, false, 0},
                        ports = {ports_only, 8, false, false, 0};
    const struct {
        const struct fabric *fabric;
        bool uses[FT_HASH_FIELDS];
    } cases[] = {
        {&with, {true, true, true, true}},
        {&without, {true, true, true, false}},
        {&ports, {false, false, true, false}},
    };

    for (unsigned c = 0; c < 3; c++) {
        struct ft_hash_model m;

        make_flows(cases[c].fabric);
        /* Each NIC by either of two ports, or that port is known by the address. */
        for (unsigned i = 0; i < TRAIN; i++) {
            uint32_t src = chance(32), entry = chance(16);
            struct ft_tuple t = tuple_of(src, chance(200), (uint16_t)(0xc000 + chance(0x4000)));

            ft_hash_input(&flows[i].in, &t, entry);
            flows[i].member = truth(cases[c].fabric, &t, entry);
        }
        ck_assert_int_eq(ft_hash_learn(&m, flows, TRAIN, 8), 0);
        ck_assert_int_eq(m.kind, FT_HASH_LINEAR);
        for (unsigned field = 0; field < FT_HASH_FIELDS; field++) {
            bool uses;

            ck_assert_int_eq(ft_hash_uses(&m, field, &uses), 0);
            ck_assert_msg(uses == cases[c].uses[field], "case %u: %s", c,
                          ft_hash_field_name(field));
        }
        ft_hash_model_free(&m);
    }
}
END_TEST

/* By hand: two flows on two links are on one or on both, each in half of all cases: half of ln 2.
 */
START_TEST(evenness_is_that_of_each_port_of_entry)
{
    struct ft_hash_flow of[8] = {{.member = 0}};
    struct ft_tuple t = tuple_of(1, 2, 0xc123);
    static const uint64_t speeds[] = {400, 100};
    const struct ft_link_set two = {.m = 2}, weighed = {.m = 2, .speed_bps = speeds};
    struct ft_evenness even;

    for (uint32_t i = 0; i < 8; i++)
        ft_hash_input(&of[i].in, &t, i < 4 ? 0 : 1);
    for (uint32_t i = 0; i < 4; i++)
        of[4 + i].member = 1;
    ck_assert_int_eq(ft_evenness(of, 8, 2, &two, &even), 0);
    ck_assert_double_eq_tol(even.effective, 1, 1e-9); /* each port has a link of its own */
    ck_assert_int_eq(ft_evenness(of, 8, 0, &two, &even), 0);
    ck_assert_double_eq_tol(even.effective, 2, 1e-9); /* together they are even */
    ck_assert_int_eq(ft_evenness(of, 1, 2, &(struct ft_link_set){.m = 1}, &even), 0);
    ck_assert_double_eq_tol(even.by_chance, 1, 1e-9);
    of[1].member = 1;
    ck_assert_int_eq(ft_evenness(of, 2, 1, &two, &even), 0);
    ck_assert_double_eq_tol(even.effective, 2, 1e-9);
    ck_assert_double_eq_tol(even.by_chance, exp(0.5 * log(2)), 1e-9);
    /* By speed 0.8 and 0.2: on both in 0.32 of all cases. */
    ck_assert_int_eq(ft_evenness(of, 2, 1, &weighed, &even), 0);
    ck_assert_double_eq_tol(even.by_chance, exp(0.32 * log(2)), 1e-9);
}
END_TEST

START_TEST(links_that_no_flow_can_take_are_named)
{
    const struct fabric f = {polarised, 8, false, false, 0}, whole = {by_crc16, 8, false, false, 0};
    struct ft_hash_model m;

    make_flows(&f);
    ck_assert_int_eq(ft_hash_learn(&m, flows, TRAIN, 8), 0);
    for (uint32_t i = 0; i < 8; i++)
        ck_assert_int_eq(ft_hash_never_chooses(&m, i), i & 1);
    ft_hash_model_free(&m);
    make_flows(&whole);
    ck_assert_int_eq(ft_hash_learn(&m, flows, TRAIN, 8), 0);
    for (uint32_t i = 0; i < 8; i++)
        ck_assert(!ft_hash_never_chooses(&m, i));
    ft_hash_model_free(&m);
}
END_TEST

/* Queue pairs of 8 bits that vary, each in its flow; that follow from the source port; all the
 * same. */
START_TEST(queue_pairs_are_hashed_or_apart)
{
    static const struct fabric f = {by_crc16, 8, false, false, 0};
    struct ft_hash_qps qps;
    bool takes;

    for (unsigned kind = 0; kind < 3; kind++) {
        state = 23;
        make_flows(&f);
        for (unsigned i = 0; i < FLOWS; i++)
            flows[i].qp = kind == 0   ? 0x4200 + chance(256)
                          : kind == 1 ? (uint32_t)flows[i].in.word[4] % 65536 ^ 0x10000
                                      : 0x11;
        ck_assert_int_eq(ft_hash_qps(flows, FLOWS, &qps), 0);
        ck_assert_uint_eq(qps.known, FLOWS);
        ck_assert_uint_eq(qps.apart, kind == 0 ? 8 : 0);
        /* What the header says, and the parity of some of the queue pair's bits. */
        for (unsigned i = 0; i < FLOWS; i++)
            flows[i].member ^= __builtin_parity(flows[i].qp & 0x2c) ? 5 : 0;
        ck_assert_int_eq(ft_hash_takes_qp(flows, FLOWS, 8, &takes), 0);
        ck_assert(takes);
        for (unsigned i = 0; i < FLOWS; i++)
            flows[i].member = chance(8);
        ck_assert_int_eq(ft_hash_takes_qp(flows, FLOWS, 8, &takes), 0);
        ck_assert(!takes);
        flows[0].qp = 0;
        ck_assert_int_eq(ft_hash_qps(flows, 1, &qps), 0);
        ck_assert_uint_eq(qps.known + qps.apart, 0);
    }
}
END_TEST

FT_UNIT_MAIN("hash_model", queue_pairs_are_hashed_or_apart,
             the_words_of_a_flow_are_those_of_the_contract,
             linear_hashes_are_learnt_whatever_seed_and_order, what_is_not_linear_is_refused,
             few_flows_are_not_enough, a_few_hundred_flows_are_enough,
             a_keyed_hash_of_a_part_is_never_linear,
             what_is_linear_in_a_part_is_predicted_for_what_was_seen,
             a_keyed_hash_of_a_part_is_never_linear,
             what_is_linear_in_a_part_is_predicted_for_what_was_seen,
             one_pair_needs_two_dozen_flows, one_flow_to_another_destination_is_enough,
             a_flow_in_a_hundred_on_another_link_is_seen_through, what_is_hashed_is_reported,
             links_that_no_flow_can_take_are_named, evenness_is_that_of_each_port_of_entry)
