// SPDX-License-Identifier: Apache-2.0
/* The matrix of delay per byte: lib/diagnosis/polish.c and blame.c. */
#include "config.h"

#include "lib/diagnosis/blame.h"

#include <math.h>
#include <string.h>

#include "lib/diagnosis/polish.h"
#include "tests/unit/unit.h"

#define SIDE 6
#define MOST 64

static struct ft_blame_cell cells[MOST];
static uint32_t links[MOST][4];
static size_t count;
static struct ft_blames blames;

static void fresh(void)
{
    count = 0;
    memset(cells, 0, sizeof(cells));
    ft_blames_free(&blames);
}

/* A chance that repeats, within 4 % either way. */
static double ripple(uint32_t from, uint32_t to)
{
    return 0.04 * (((from * 7919 + to * 104729 + from * to * 31) % 1000) / 500.0 - 1);
}

static struct ft_blame_cell *cell(uint32_t from, uint32_t to, double factor)
{
    struct ft_blame_cell *c = &cells[count];

    ck_assert_uint_lt(count, MOST);
    *c = (struct ft_blame_cell){
        .value = log(factor) + ripple(from, to), .from = from, .to = to, .links = links[count]};
    count++;
    return c;
}

static void crosses(struct ft_blame_cell *c, uint32_t link)
{
    links[c - cells][c->link_count++] = link;
}

/* Every rank to every other. */
static void square(double (*factor)(uint32_t from, uint32_t to))
{
    for (uint32_t i = 0; i < SIDE; i++)
        for (uint32_t k = 0; k < SIDE; k++)
            if (i != k)
                cell(i, k, factor(i, k));
}

static void judge(double least, double usual, size_t expected)
{
    ck_assert_int_eq(ft_blame_find(cells, count, MOST, least, usual, &blames, NULL), 0);
    ck_assert_uint_eq(blames.count, expected);
}

static void is(const struct ft_blame *b, enum ft_side side, uint32_t from, uint32_t to,
               double ratio)
{
    ck_assert_int_eq(b->side, side);
    if (side != FT_SIDE_RECEIVER)
        ck_assert_uint_eq(b->from, from);
    if (side != FT_SIDE_SENDER)
        ck_assert_uint_eq(b->to, to);
    ck_assert_double_eq_tol(b->ratio, ratio, ratio * 0.06);
}

static double even(uint32_t from, uint32_t to)
{
    (void)from;
    (void)to;
    return 1;
}

static double slow_row(uint32_t from, uint32_t to)
{
    (void)to;
    return from == 2 ? 3 : 1;
}

static double slow_column(uint32_t from, uint32_t to)
{
    (void)from;
    return to == 3 ? 3 : 1;
}

static double slow_cell(uint32_t from, uint32_t to)
{
    return from == 1 && to == 4 ? 3 : 1;
}

static double row_and_cell(uint32_t from, uint32_t to)
{
    return from == 2 ? 3 : from == 5 && to == 0 ? 4 : 1;
}

static double most_rows(uint32_t from, uint32_t to)
{
    (void)to;
    return from < 4 ? 3 : 1;
}

/* Worked out by hand: rows add 0, 2 and 4, columns -1, 0 and 1, and one cell 10 more. */
START_TEST(a_polish_takes_a_sum_apart)
{
    struct ft_polish_cell all[9];
    struct ft_polish p;

    for (uint32_t i = 0; i < 9; i++)
        all[i] = (struct ft_polish_cell){
            .row = i / 3, .column = i % 3, .value = 5 + 2.0 * (i / 3) + (i % 3) - 1.0};
    all[2].value += 10;
    ck_assert_int_eq(ft_polish_init(&p, all, 9, 3, 3, NULL), 0);
    ck_assert_double_eq_tol(p.centre, 7, 1e-9);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_double_eq_tol(p.rows[i], 2.0 * i - 2, 1e-9);
        ck_assert_double_eq_tol(p.columns[i], i - 1.0, 1e-9);
    }
    for (uint32_t i = 0; i < 9; i++)
        ck_assert_double_eq_tol(all[i].residual, i == 2 ? 10 : 0, 1e-9);
    ft_polish_free(&p);
    ck_assert_int_eq(ft_polish_init(&p, all, 0, 0, 0, NULL), 0);
    ft_polish_free(&p);
}
END_TEST

START_TEST(an_even_matrix_blames_nobody)
{
    fresh();
    square(even);
    judge(log(1.1), NAN, 0);
}
END_TEST

START_TEST(a_row_is_its_sender)
{
    fresh();
    square(slow_row);
    judge(log(1.1), NAN, 1);
    is(&blames.items[0], FT_SIDE_SENDER, 2, 0, 3);
    ck_assert_uint_eq(blames.items[0].slow, SIDE - 1);
}
END_TEST

START_TEST(a_column_is_its_receiver)
{
    fresh();
    square(slow_column);
    judge(log(1.1), NAN, 1);
    is(&blames.items[0], FT_SIDE_RECEIVER, 0, 3, 3);
}
END_TEST

START_TEST(a_cell_is_its_pair)
{
    fresh();
    square(slow_cell);
    judge(log(1.1), NAN, 1);
    is(&blames.items[0], FT_SIDE_PAIR, 1, 4, 3);
}
END_TEST

START_TEST(two_faults_are_two)
{
    fresh();
    square(row_and_cell);
    judge(log(1.1), NAN, 2);
    is(&blames.items[0], FT_SIDE_PAIR, 5, 0, 4);
    is(&blames.items[1], FT_SIDE_SENDER, 2, 0, 3);
}
END_TEST

/* Where most are slow they look usual, but for what was usual before. */
START_TEST(most_rows_are_slow_against_their_past)
{
    fresh();
    square(most_rows);
    judge(log(1.1), 0, 4);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(blames.items[i].side, FT_SIDE_SENDER);
        ck_assert_uint_lt(blames.items[i].from, 4);
        ck_assert_double_eq_tol(blames.items[i].ratio, 3, 0.2);
    }
}
END_TEST

/* One cell a row and column: nothing tells the three apart. */
START_TEST(a_ring_alone_leaves_all_three)
{
    fresh();
    for (uint32_t i = 0; i < 8; i++)
        cell(i, (i + 1) % 8, i == 3 ? 3 : 1);
    judge(log(1.1), NAN, 1);
    is(&blames.items[0], FT_SIDE_ANY, 3, 4, 3);
    ck_assert(!blames.items[0].sender_clean && !blames.items[0].receiver_clean);
}
END_TEST

/* Pairs that are not slow acquit the links that they cross; 3 -> 4 alone crosses link 50. */
START_TEST(links_vote_in_a_ring)
{
    fresh();
    for (uint32_t i = 0; i < 8; i++) {
        struct ft_blame_cell *c = cell(i, (i + 1) % 8, i == 3 ? 3 : 1);

        crosses(c, 40);
        crosses(c, i == 3 ? 50 : 51);
    }
    judge(log(1.1), NAN, 1);
    is(&blames.items[0], FT_SIDE_ANY, 3, 4, 3);
    ck_assert_uint_eq(blames.items[0].links_open, 1);
    ck_assert_uint_eq(blames.items[0].link, 50);
}
END_TEST

/* What was measured before says nothing of a link that has failed since. */
START_TEST(older_measures_acquit_no_link)
{
    fresh();
    for (uint32_t i = 0; i < 8; i++) {
        struct ft_blame_cell *c = cell(i, (i + 1) % 8, i == 3 ? 3 : 1);

        crosses(c, 40 + i % 2);
        crosses(c, i == 3 ? 50 : 51);
        c->before = i % 2 == 1 && i != 3;
    }
    judge(log(1.1), NAN, 1);
    is(&blames.items[0], FT_SIDE_ANY, 3, 4, 3);
    ck_assert_uint_eq(blames.items[0].links_open, 2);
    ck_assert_uint_eq(blames.items[0].link, FT_BLAME_NONE);
}
END_TEST

/* All links are acquitted, and the sender is: the receiver it is. */
START_TEST(what_is_acquitted_leaves_the_other)
{
    fresh();
    for (uint32_t i = 0; i < 8; i++)
        crosses(cell(i, (i + 1) % 8, i == 3 ? 3 : 1), 40);
    crosses(cell(3, 6, 1), 40);
    judge(log(1.1), NAN, 1);
    is(&blames.items[0], FT_SIDE_RECEIVER, 3, 4, 3);
    ck_assert(blames.items[0].sender_clean);
    ck_assert_uint_eq(blames.items[0].links_open, 0);
}
END_TEST

/* Of 12 pairs the three over link 7 are slow, of three senders and receivers. */
START_TEST(a_link_under_several_pairs_is_named)
{
    fresh();
    for (uint32_t i = 0; i < 12; i++) {
        bool slow = i % 4 == 1;
        struct ft_blame_cell *c = cell(i, (i + 1) % 12, i == 5 ? 3 : slow ? 2.5 : 1);

        crosses(c, 3);
        crosses(c, slow ? 7 : 8);
    }
    judge(log(1.1), NAN, 1);
    ck_assert_int_eq(blames.items[0].side, FT_SIDE_PAIR);
    ck_assert_uint_eq(blames.items[0].link, 7);
    ck_assert_uint_eq(blames.items[0].from, 5);
    ck_assert_uint_eq(blames.items[0].to, 6);
    ck_assert_uint_eq(blames.items[0].slow, 3);
    ck_assert_double_eq_tol(blames.items[0].ratio, 2.5, 0.1);
}
END_TEST

/* Two links that the same pairs cross stay both possible. */
START_TEST(links_that_no_pair_separates_are_not_chosen_from)
{
    fresh();
    for (uint32_t i = 0; i < 12; i++) {
        struct ft_blame_cell *c = cell(i, (i + 1) % 12, i % 4 == 1 ? 2.5 : 1);

        crosses(c, i % 4 == 1 ? 7 : 8);
        crosses(c, i % 4 == 1 ? 17 : 18);
    }
    judge(log(1.1), NAN, 1);
    ck_assert_uint_eq(blames.items[0].link, FT_BLAME_NONE);
    ck_assert_uint_eq(blames.items[0].links_open, 2);
}
END_TEST

/* Eight pairs from several hosts to several cross link 7, all but one of them slow; over another
 * link there are more slow ones, or fewer and none that is fast, or as many beside fast ones. */
START_TEST(a_link_with_a_fast_pair_is_named_where_no_other_may_be_it)
{
    for (int rival = 0; rival < 5; rival++) {
        bool open = rival == 1 || rival == 2;

        fresh();
        for (uint32_t i = 0; i < 27; i++) {
            bool over = i % 3 == 1 && i < 24, slow = (over && i != 10) || i == 26;
            struct ft_blame_cell *c = cell(i, (i + 1) % 27, slow ? 2.5 : 1);
            bool other = rival == 1   ? slow || i == 2 || i == 5 || i == 8
                         : rival == 2 ? over && slow && i > 1
                         : rival == 3 ? over && slow && i > 4
                                      : (over && slow) || i == 2 || i == 5;

            crosses(c, over ? 7 : 8);
            if (rival)
                crosses(c, other ? 17 : 18);
        }
        judge(log(1.1), NAN, 2);
        for (size_t i = 0; i < blames.count; i++) {
            if (blames.items[i].slow == 1)
                continue;
            ck_assert_int_eq(blames.items[i].side, FT_SIDE_PAIR);
            ck_assert_uint_eq(blames.items[i].link, open ? FT_BLAME_NONE : 7);
            if (open)
                continue;
            ck_assert_uint_eq(blames.items[i].slow, 7);
            ck_assert_uint_eq(blames.items[i].all, 8);
            ck_assert_uint_eq(blames.items[i].open, 1);
        }
    }
}
END_TEST

/* Two pairs of two ranks, one of them slow. */
START_TEST(of_two_ranks_the_slow_direction_is_reported)
{
    fresh();
    cell(0, 1, 2);
    cell(1, 0, 1);
    judge(log(1.5), NAN, 1);
    is(&blames.items[0], FT_SIDE_ANY, 0, 1, 2);
}
END_TEST

START_TEST(where_half_of_a_ring_is_slow_nobody_is_blamed)
{
    fresh();
    for (uint32_t i = 0; i < 16; i++)
        cell(i, (i + 1) % 16, i % 2 ? 2 : 1);
    judge(log(1.1), NAN, 0);
}
END_TEST

/* Medians of three make a row of two slow pairs; an end that is slow would make all three slow. */
START_TEST(a_pair_that_is_not_slow_acquits_its_ends)
{
    for (int clean = 0; clean < 2; clean++) {
        bool blamed = false;

        fresh();
        for (uint32_t i = 0; i < 12; i++)
            for (uint32_t k = 1; k < 4; k++)
                cell(i, (i + k) % 12, i == 2 && (k < 3 || !clean) ? 3 : 1);
        judge(log(1.1), NAN, clean ? 2 : 1);
        for (size_t i = 0; i < blames.count; i++)
            blamed |= blames.items[i].side == FT_SIDE_SENDER;
        ck_assert_int_eq(blamed, !clean);
        ck_assert_int_eq(blames.acquitted[2 * 2], clean);
        ck_assert(blames.acquitted[2 * 1]);
    }
}
END_TEST

/* Two senders have one peer each, the same; both pairs cross link 7, and its last port is 9. */
START_TEST(a_receiver_or_the_link_before_it)
{
    for (int other = 0; other < 2; other++) {
        fresh();
        for (uint32_t i = 0; i < 2; i++) {
            struct ft_blame_cell *c = cell(i, 5, 3);

            crosses(c, 10 + i);
            crosses(c, 7);
            crosses(c, 9);
            c->last = 1U << 2;
        }
        for (uint32_t i = 6; i < 14; i++)
            cell(i, i + 8, 1);
        /* Somebody else crosses it without delay. */
        if (other)
            crosses(&cells[count - 1], 7);
        judge(log(1.1), NAN, other ? 1 : 2);
        if (other)
            is(&blames.items[0], FT_SIDE_RECEIVER, 0, 5, 3);
        for (size_t i = 0; i < blames.count && !other; i++) {
            ck_assert_int_eq(blames.items[i].side, FT_SIDE_ANY);
            ck_assert(blames.items[i].receiver_or_link);
            ck_assert(!blames.items[i].sender_or_link);
        }
    }
}
END_TEST

/* Its pairs cross its port 9 with all of their traffic, other links with parts; or two ports, each
 * with a part. */
START_TEST(a_receiver_behind_links_that_pairs_cross_partly)
{
    for (int ports = 1; ports < 3; ports++) {
        fresh();
        for (uint32_t i = 0; i < 3; i++) {
            struct ft_blame_cell *c = cell(i, 5, 3);

            crosses(c, 9);
            if (ports > 1)
                crosses(c, 8);
            crosses(c, 10 + 2 * i);
            crosses(c, 11 + 2 * i);
            c->last = (1U << ports) - 1;
            c->partly = ports > 1 ? 0xf : 6;
        }
        for (uint32_t i = 6; i < 14; i++)
            cell(i, i + 8, 1);
        judge(log(1.1), NAN, 1);
        is(&blames.items[0], FT_SIDE_RECEIVER, 0, 5, 3);
        ck_assert_uint_eq(blames.items[0].slow, 3);
    }
}
END_TEST

FT_UNIT_MAIN("blame", a_receiver_behind_links_that_pairs_cross_partly,
             a_pair_that_is_not_slow_acquits_its_ends, a_receiver_or_the_link_before_it,
             a_polish_takes_a_sum_apart, an_even_matrix_blames_nobody, a_row_is_its_sender,
             a_column_is_its_receiver, a_cell_is_its_pair, two_faults_are_two,
             most_rows_are_slow_against_their_past, a_ring_alone_leaves_all_three,
             links_vote_in_a_ring, older_measures_acquit_no_link,
             what_is_acquitted_leaves_the_other, a_link_under_several_pairs_is_named,
             links_that_no_pair_separates_are_not_chosen_from,
             a_link_with_a_fast_pair_is_named_where_no_other_may_be_it,
             of_two_ranks_the_slow_direction_is_reported,
             where_half_of_a_ring_is_slow_nobody_is_blamed)
