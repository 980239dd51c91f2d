// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/lossy.h"

#include <stdlib.h>

#include "lib/fabric/chance.h"
#include "tests/unit/unit.h"

enum { LEAVES = 8, SPINES = 4, LINKS = 2 * LEAVES * SPINES, GROUPS = 2 * LEAVES };

static uint32_t group_of[LINKS];
static struct ft_random rng;

/* Links of a leaf up to each spine are a group, and those from each spine down to it. */
static uint32_t up(uint32_t leaf, uint32_t spine)
{
    return leaf * SPINES + spine;
}
static uint32_t down(uint32_t spine, uint32_t leaf)
{
    return (LEAVES + leaf) * SPINES + spine;
}

static double drawn(void)
{
    return (double)(ft_random_next(&rng) >> 11) * 0x1p-53;
}

static uint32_t one_of(uint32_t n)
{
    return (uint32_t)(drawn() * n);
}

static struct ft_lossy *make(uint64_t seed)
{
    struct ft_lossy *l;

    rng = (struct ft_random){seed};
    for (uint32_t i = 0; i < LINKS; i++)
        group_of[i] = i / SPINES;
    l = ft_lossy_new(group_of, LINKS, GROUPS);
    ck_assert_ptr_nonnull(l);
    return l;
}

/* How likely a flow sends again by what it crosses. */
struct fabric {
    double always;           /* whatever it crosses */
    uint32_t link[2];        /* data over these */
    uint32_t answers;        /* answers over this one */
    double lost[2], unheard; /* how often then */
    uint32_t leaf;           /* flows to this leaf, UINT32_MAX: none */
    uint32_t from, to;       /* flows between two leaves alone, UINT32_MAX: all */
    uint32_t often;          /* flows over this link are sampled as often as that */
    uint32_t times;
};

/* The flows that were added since the last look, by id. */
enum { ADDED_MAX = 8000 };
static uint32_t crossed[ADDED_MAX][2], added;
static bool sent_again[ADDED_MAX];

static const struct fabric well = {.always = 0.02,
                                   .link = {UINT32_MAX, UINT32_MAX},
                                   .answers = UINT32_MAX,
                                   .leaf = UINT32_MAX,
                                   .from = UINT32_MAX,
                                   .to = UINT32_MAX,
                                   .often = UINT32_MAX};

static void add(struct ft_lossy *l, const struct fabric *f)
{
    uint32_t from = f->from == UINT32_MAX ? one_of(LEAVES) : f->from;
    uint32_t to = f->to == UINT32_MAX ? (from + 1 + one_of(LEAVES - 1)) % LEAVES : f->to;
    uint32_t there = one_of(SPINES), back = one_of(SPINES);
    uint32_t links[] = {up(from, there), down(there, to)};
    uint32_t answers[] = {up(to, back), down(back, from)};
    struct ft_lossy_flow flow = {links, answers, 2, 2, 20, drawn() < f->always, added};

    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 2; k++)
            flow.again |= links[i] == f->link[k] && drawn() < f->lost[k];
        flow.again |= answers[i] == f->answers && drawn() < f->unheard;
        if (links[i] == f->often)
            flow.samples *= f->times;
    }
    flow.again |= to == f->leaf && drawn() < 0.9;
    crossed[added][0] = links[0];
    crossed[added][1] = links[1];
    sent_again[added++] = flow.again;
    ft_lossy_add(l, &flow);
}

static size_t look(struct ft_lossy *l, const struct fabric *f, uint32_t flows,
                   struct ft_lossy_found *found)
{
    size_t n;

    ft_lossy_reset(l);
    added = 0;
    for (uint32_t i = 0; i < flows; i++)
        add(l, f);
    n = ft_lossy_find(l, found, 8);
    return n;
}

/* Each crosses it and sent again, none is of two links, and there are as many as is told. */
static void check_flows(const struct ft_lossy *l, const struct ft_lossy_found *found, size_t n)
{
    static uint32_t ids[ADDED_MAX];
    bool of_one[ADDED_MAX] = {false};

    for (size_t k = 0; k < n; k++) {
        const size_t count = ft_lossy_flows(l, found[k].link, ids, ADDED_MAX);

        ck_assert_uint_eq(count, found[k].again);
        ck_assert_uint_eq(ft_lossy_flows(l, found[k].link, ids, 2), 2);
        for (size_t i = 0; i < count; i++) {
            ck_assert_uint_lt(ids[i], added);
            ck_assert(sent_again[ids[i]] && !of_one[ids[i]]);
            ck_assert(crossed[ids[i]][0] == found[k].link || crossed[ids[i]][1] == found[k].link);
            of_one[ids[i]] = true;
        }
    }
}

START_TEST(a_lossy_link_is_found)
{
    struct ft_lossy *l = make(1);
    struct ft_lossy_found found[8];
    struct fabric f = well;
    uint32_t flows, again;
    size_t told = 0, n;

    for (int i = 0; i < 200; i++) {
        f.link[0] = one_of(LINKS);
        f.lost[0] = 0.7;
        n = look(l, &f, 800, found);
        ck_assert_uint_le(n, 1);
        told += n;
        check_flows(l, found, n);
        if (n == 0)
            continue;
        ck_assert_uint_eq(found[0].link, f.link[0]);
        ck_assert_uint_gt(5 * found[0].again, 2 * found[0].flows);
        ck_assert_uint_gt(found[0].others_flows, found[0].flows);
        ck_assert_uint_lt(10 * found[0].others_again, found[0].others_flows * 2);
        ck_assert_double_lt(found[0].p, 1e-6);
    }
    /* Chance made some of few flows, of which few sent again. */
    ck_assert_uint_ge(told, 185);
    ft_lossy_reset(l);
    ft_lossy_count(l, found[0].link, &flows, &again);
    ck_assert_uint_eq(flows, 0);
    for (int i = 0; i < 400; i++)
        add(l, &f);
    ft_lossy_count(l, f.link[0], &flows, &again);
    ck_assert_uint_gt(flows, 5);
    ck_assert_uint_gt(again, 2);
    ft_lossy_count(l, LINKS, &flows, &again);
    ck_assert_uint_eq(flows + again, 0);
    ft_lossy_free(l);
}
END_TEST

/* Of two links that lose packets the one does not hide the other, and none is named for them. */
START_TEST(two_lossy_links_are_found)
{
    struct ft_lossy *l = make(2);
    struct ft_lossy_found found[8];
    struct fabric f = well;
    int both = 0;

    for (int i = 0; i < 200; i++) {
        size_t n;

        f.link[0] = one_of(LINKS / 2);
        f.link[1] = LINKS / 2 + one_of(LINKS / 2);
        f.lost[0] = f.lost[1] = 0.6;
        n = look(l, &f, 1500, found);
        for (size_t k = 0; k < n; k++)
            ck_assert(found[k].link == f.link[0] || found[k].link == f.link[1]);
        check_flows(l, found, n);
        both += n == 2;
    }
    ck_assert_int_ge(both, 195);
    ft_lossy_free(l);
}
END_TEST

/* A receiver, a host, a fabric that all send again, answers that are lost, and chance. */
START_TEST(what_is_no_link_of_data_names_none)
{
    static const double always[] = {0.001, 0.02, 0.2, 0.6, 0.97};
    struct ft_lossy *l = make(3);
    struct ft_lossy_found found[8];

    for (int i = 0; i < 1000; i++) {
        struct fabric f = well;

        f.always = always[i % 5];
        ck_assert_uint_eq(look(l, &f, 400, found), 0);
        f.leaf = one_of(LEAVES);
        ck_assert_uint_eq(look(l, &f, 400, found), 0);
        f.leaf = UINT32_MAX;
        f.answers = one_of(LINKS);
        f.unheard = 0.8;
        ck_assert_uint_eq(look(l, &f, 400, found), 0);
    }
    ft_lossy_free(l);
}
END_TEST

/* All flows go from one leaf to another: the link up and the link down carry the same. And samples
 * that are taken more often on one link show more of the same. */
START_TEST(what_cannot_be_told_apart_names_none)
{
    struct ft_lossy *l = make(4);
    struct ft_lossy_found found[8];
    struct fabric f = well;

    f.from = 2;
    f.to = 5;
    f.link[0] = up(2, 1);
    f.lost[0] = 0.9;
    for (int i = 0; i < 100; i++)
        ck_assert_uint_eq(look(l, &f, 400, found), 0);
    f = well;
    f.link[0] = f.often = down(3, 6);
    f.lost[0] = 0.9;
    f.times = 4;
    for (int i = 0; i < 100; i++)
        ck_assert_uint_eq(look(l, &f, 800, found), 0);
    f.times = 1;
    ck_assert_uint_eq(look(l, &f, 800, found), 1);
    ft_lossy_free(l);
}
END_TEST

/* 9 of 10 here, 1 of 30 there: (C(10,9) C(30,1) + C(10,10)) / C(40,10). */
START_TEST(the_test_is_fishers)
{
    static const uint32_t one_group[] = {0, 0};
    struct ft_lossy *l = ft_lossy_new(one_group, 2, 1);
    struct ft_lossy_found found[8];

    ck_assert_ptr_nonnull(l);
    for (uint32_t i = 0; i < 40; i++) {
        const uint32_t link = i >= 10;
        const struct ft_lossy_flow flow = {&link, NULL, 1, 0, 9, i < 9 || i == 39, i};

        ft_lossy_add(l, &flow);
    }
    ck_assert_uint_eq(ft_lossy_find(l, found, 8), 1);
    ck_assert_uint_eq(found[0].link, 0);
    ck_assert_double_eq_tol(found[0].p, 3.551e-7, 1e-10);
    ft_lossy_free(l);
}
END_TEST

FT_UNIT_MAIN("lossy", a_lossy_link_is_found, two_lossy_links_are_found,
             what_is_no_link_of_data_names_none, what_cannot_be_told_apart_names_none,
             the_test_is_fishers)
