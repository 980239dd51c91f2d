// SPDX-License-Identifier: Apache-2.0
/* Which link makes operations stall by chance: lib/diagnosis/stalls.c. */
#include "config.h"

#include "lib/diagnosis/stalls.h"

#include <math.h>
#include <string.h>

#include "lib/diagnosis/blame.h"
#include "tests/unit/unit.h"

#define LEAVES 4
#define SPINES 4
#define RANKS  32 /* two hosts a leaf, four ranks a host */
#define PEERS  3
#define PAIRS  (RANKS * PEERS)
#define RUNS   300

static struct ft_stalls_pair pairs[PAIRS];
static uint32_t links[PAIRS][3], answers[PAIRS][3];
static struct ft_stalls_found found;
static uint64_t state;

/* A chance that repeats. */
static double uniform(void)
{
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (double)(state >> 11) / 9007199254740992.0;
}

static uint32_t leaf_of(uint32_t rank)
{
    return rank / 4 / 2;
}

/* A leaf's links to spines, then those of spines to leaves, then to ranks. */
static void route(uint32_t from, uint32_t to, uint32_t path[3])
{
    uint32_t spine = (uint32_t)(uniform() * SPINES);

    path[0] = leaf_of(from) * SPINES + spine;
    path[1] = 100 + spine * LEAVES + leaf_of(to);
    path[2] = 200 + to;
}

/* Each rank sends to three, on other leaves. */
static void build(uint64_t seed)
{
    static const uint32_t ahead[PEERS] = {8, 16, 24};

    state = seed * 977 + 13;
    memset(pairs, 0, sizeof(pairs));
    for (uint32_t i = 0; i < PAIRS; i++) {
        uint32_t from = i / PEERS, to = (from + ahead[i % PEERS]) % RANKS;

        route(from, to, links[i]);
        route(to, from, answers[i]);
        pairs[i] = (struct ft_stalls_pair){.from = from,
                                           .to = to,
                                           .from_host = from / 4,
                                           .to_host = to / 4,
                                           .links = links[i],
                                           .answers = answers[i],
                                           .link_count = 3,
                                           .answer_count = 3};
    }
}

static bool crosses(const uint32_t path[3], uint32_t link)
{
    return path[0] == link || path[1] == link;
}

/* Each pair has so many operations. */
static void stall(uint32_t i, uint32_t operations, double chance)
{
    pairs[i].operations += operations;
    for (uint32_t k = 0; k < operations; k++)
        pairs[i].stalled += uniform() < chance;
}

static int find(void)
{
    int rc = ft_stalls_find(pairs, PAIRS, &found, NULL);

    ck_assert_int_ge(rc, 0);
    return rc;
}

/* The link that most pairs cross. */
static uint32_t busiest(void)
{
    uint32_t best = 0, most = 0;

    for (uint32_t link = 0; link < 200; link++) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < PAIRS; i++)
            n += crosses(links[i], link);
        if (n > most) {
            most = n;
            best = link;
        }
    }
    return best;
}

/* Half of the operations over the link lose nothing, and there are pairs that lost nothing at all:
 * by the matrix they acquit it. A fifth of those whose answers cross it stall as well. */
START_TEST(a_link_is_named_though_some_of_its_pairs_never_stalled)
{
    static struct ft_blame_cell cells[PAIRS];
    uint32_t named = 0, clean = 0, blamed = 0;

    for (uint64_t seed = 0; seed < RUNS; seed++) {
        struct ft_blames blames;
        uint32_t link;

        build(seed);
        link = busiest();
        for (uint32_t i = 0; i < PAIRS; i++) {
            stall(i, 4, crosses(links[i], link) ? 0.4 : crosses(answers[i], link) ? 0.15 : 0.002);
            clean += crosses(links[i], link) && !pairs[i].stalled;
            cells[i] = (struct ft_blame_cell){.value = pairs[i].stalled > 2 ? 3 : 0,
                                              .from = pairs[i].from,
                                              .to = pairs[i].to,
                                              .links = links[i],
                                              .link_count = 3};
        }
        if (find()) {
            ck_assert_uint_eq(found.link, link);
            ck_assert_uint_ge(found.pairs_stalled, 3);
            ck_assert_uint_le(found.pairs_stalled, found.pairs);
            named++;
        }
        ck_assert_int_eq(ft_blame_find(cells, PAIRS, RANKS, 0.5, NAN, &blames, NULL), 0);
        for (size_t i = 0; i < blames.count; i++)
            blamed += blames.items[i].link == link;
        ft_blames_free(&blames);
    }
    ck_assert_uint_gt(clean, RUNS / 2);
    ck_assert_msg(named >= 0.8 * RUNS, "named in %u of %u", named, RUNS);
    ck_assert_msg(blamed < named / 2, "the matrix names it in %u of %u", blamed, RUNS);
}
END_TEST

/* Without knowing whose answers cross it, too. */
START_TEST(without_answers_more_is_left_open)
{
    uint32_t named = 0;

    for (uint64_t seed = 0; seed < RUNS; seed++) {
        uint32_t link;

        build(seed);
        link = busiest();
        for (uint32_t i = 0; i < PAIRS; i++) {
            pairs[i].answer_count = 0;
            stall(i, 6, crosses(links[i], link) ? 0.7 : 0.01);
        }
        if (!find())
            continue;
        ck_assert_uint_eq(found.link, link);
        named++;
    }
    ck_assert_msg(named >= 0.9 * RUNS, "named in %u of %u", named, RUNS);
}
END_TEST

/* What else it may be: nothing, hosts, ranks, one pair, all links of a leaf. */
static double other(int what, uint32_t i)
{
    switch (what) {
    case 0:
        return 0.2;
    case 1:
        return pairs[i].from_host == 3 ? 0.5 : 0.02;
    case 2:
        return pairs[i].to_host == 3 ? 0.5 : 0.02;
    case 3:
        return pairs[i].from == 7 ? 0.9 : 0.01;
    case 4:
        return pairs[i].to == 7 ? 0.9 : 0.01;
    case 5:
        return i == 11 ? 1 : 0.01;
    default:
        return leaf_of(pairs[i].from) == 2 ? 0.5 : 0.02;
    }
}

START_TEST(nothing_else_is_taken_for_a_link)
{
    uint32_t wrong = 0;

    for (int what = 0; what < 7; what++)
        for (uint64_t seed = 0; seed < RUNS; seed++) {
            build(seed + 1000 * (uint64_t)what);
            for (uint32_t i = 0; i < PAIRS; i++)
                stall(i, 10, other(what, i));
            wrong += find() > 0;
        }
    ck_assert_uint_le(wrong, 2);
}
END_TEST

/* The same pairs cross both. */
START_TEST(two_links_of_the_same_pairs_are_not_chosen_from)
{
    uint32_t link;

    build(5);
    link = busiest();
    for (uint32_t i = 0; i < PAIRS; i++)
        stall(i, 10, crosses(links[i], link) ? 0.6 : 0);
    ck_assert_int_eq(find(), 1);
    ck_assert_uint_eq(found.link, link);
    ck_assert_double_gt(found.odds, 6.9);
    ck_assert_uint_eq(found.others_stalled, 0);
    for (uint32_t i = 0; i < PAIRS; i++)
        links[i][2] = crosses(links[i], link) ? 999 : links[i][2];
    ck_assert_int_eq(find(), 0);
}
END_TEST

START_TEST(what_is_not_known_counts_for_nothing)
{
    build(5);
    ck_assert_int_eq(find(), 0);
    for (uint32_t i = 0; i < PAIRS; i++) {
        stall(i, 10, 0.5);
        pairs[i].link_count = 0;
    }
    ck_assert_int_eq(find(), 0);
    ck_assert_int_eq(ft_stalls_find(pairs, 0, &found, NULL), 0);
}
END_TEST

FT_UNIT_MAIN("stalls", a_link_is_named_though_some_of_its_pairs_never_stalled,
             without_answers_more_is_left_open, nothing_else_is_taken_for_a_link,
             two_links_of_the_same_pairs_are_not_chosen_from, what_is_not_known_counts_for_nothing)
