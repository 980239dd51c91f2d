// SPDX-License-Identifier: Apache-2.0
/* What a tier chooses behind one that hashes alike: each port of entry leaves it some of its links,
 * and which ones follows from the order in which the switch before lists its own. */
#include "config.h"

#include <string.h>

#include "lib/fabric/hash_model.h"
#include "tests/unit/switch_hashes.h"
#include "tests/unit/unit.h"

#define FLOWS 1200
#define TRAIN 800

static struct ft_hash_flow flows[FLOWS];
static uint64_t state;

static uint32_t chance(uint32_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % below;
}

/* Of the links that an entry leaves, one by CRC-16, or by a hash with a key. */
static uint32_t link_of(const struct ft_tuple *t, uint32_t of_each, bool is_keyed)
{
    uint8_t key[10];
    uint64_t x = 1;

    memcpy(key, &t->src.b[12], 4);
    memcpy(key + 4, &t->dst.b[12], 4);
    key[8] = (uint8_t)(t->sport >> 8);
    key[9] = (uint8_t)t->sport;
    for (unsigned i = 0; i < sizeof(key); i++)
        x = (x ^ key[i]) * UINT64_C(0x9e3779b97f4a7c15) ^ x >> 29;
    return (is_keyed ? (uint32_t)(x >> 40) : crc16(key, sizeof(key), 0) >> 2) % of_each;
}

static void make(struct ft_hash_flow *out, uint32_t entry, uint32_t of_each, bool is_keyed)
{
    struct ft_tuple t = {
        .sport = (uint16_t)(0xc000 + chance(0x4000)), .dport = 4791, .proto = FT_PROTO_UDP};

    t.src = ft_ip4((uint8_t[]){10, 1, (uint8_t)entry, (uint8_t)chance(8)});
    t.dst = ft_ip4((uint8_t[]){10, 2, (uint8_t)chance(8), (uint8_t)chance(8)});
    ft_hash_input(&out->in, &t, entry);
    out->member = entry * of_each + link_of(&t, of_each, is_keyed);
}

static void learn(struct ft_hash_model *m, uint32_t entries, uint32_t of_each, bool is_keyed)
{
    state = entries;
    for (unsigned i = 0; i < FLOWS; i++)
        make(&flows[i], chance(entries), of_each, is_keyed);
    ck_assert_int_eq(ft_hash_learn(m, flows, TRAIN, entries * of_each), 0);
}

START_TEST(links_that_each_entry_leaves_are_learnt)
{
    static const uint32_t cases[][2] = {{2, 2}, {4, 2}, {4, 4}, {4, 1}, {8, 1}};

    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct ft_hash_flow elsewhere;
        struct ft_hash_model m;

        learn(&m, cases[c][0], cases[c][1], false);
        ck_assert_msg(m.kind == FT_HASH_LINEAR, "case %zu", c);
        for (unsigned i = TRAIN; i < FLOWS; i++)
            ck_assert_uint_eq(ft_hash_predict(&m, &flows[i].in), flows[i].member);
        /* By another port others are left. */
        make(&elsewhere, cases[c][0], cases[c][1], false);
        ck_assert_uint_eq(ft_hash_predict(&m, &elsewhere.in), FT_HASH_MEMBERS_MAX);
        ft_hash_model_free(&m);
    }
}
END_TEST

/* Nor is what takes more bits than an index has. */
START_TEST(a_keyed_hash_behind_is_not)
{
    struct ft_hash_model m;

    for (uint32_t entries = 2; entries <= 8; entries *= 2) {
        learn(&m, entries, 2, true);
        ck_assert_int_eq(m.kind, FT_HASH_TABLE);
        ft_hash_model_free(&m);
    }
    learn(&m, 9, 1, false);
    ck_assert_int_ne(m.kind, FT_HASH_LINEAR);
    ft_hash_model_free(&m);
}
END_TEST

/* That links need fewer bits makes no proof of those that are more. */
START_TEST(chance_has_no_more_bits_than_links)
{
    const struct ft_hash_model none = {.index_bits = 0}, few = {.index_bits = 2},
                               more = {.index_bits = 7};

    ck_assert_double_eq(ft_hash_chance_bits(&none, 8), 3);
    ck_assert_double_eq(ft_hash_chance_bits(&few, 8), 2);
    ck_assert_double_eq(ft_hash_chance_bits(&more, 8), 3);
    ck_assert_double_eq(ft_hash_chance_bits(&more, 6), 3);
}
END_TEST

FT_UNIT_MAIN("hash_behind", links_that_each_entry_leaves_are_learnt, a_keyed_hash_behind_is_not,
             chance_has_no_more_bits_than_links)
