// SPDX-License-Identifier: Apache-2.0
/* Pairs whose samples are counted out, one bin after the other, so that nothing is by chance. */
#include "config.h"

#include "lib/diagnosis/pair_rate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/task.h"
#include "tests/unit/unit.h"

#define MOST       1024
#define LINKS_MAX  16
#define BLOCK_BINS 60
#define STEP_BINS  12
#define BURST_BINS 4
#define SAMPLES    10 /* in a bin of a pair that sends */
#define BYTES      4096
#define PAST       8

/* Links of six hosts at three leaves under two spines. */
#define UP(leaf, spine)   (2 * (leaf) + (spine))
#define DOWN(spine, leaf) (100 + 3 * (spine) + (leaf))
#define PORT(host)        (200 + (host))

static struct ft_pair_rate *pairs[MOST];
static uint32_t links[MOST][LINKS_MAX];
/* share: of the samples of other pairs; last_bin: of a block, that it sends in. */
static double slower[MOST], share[MOST];
static int last_bin[MOST];
static double dense; /* times as many of all */
static size_t count;
static uint32_t ends;
static int64_t bin;
static enum ft_pair_rate_outcome outcome;
static struct ft_blames blames;

static void begin(void)
{
    for (size_t i = 0; i < count; i++)
        free(pairs[i]);
    ft_blames_free(&blames);
    count = ends = 0;
    dense = 1;
    bin = 1000;
}

static size_t pair(uint32_t from, uint32_t to)
{
    struct ft_pair_rate *p = pairs[count] = calloc(1, sizeof(*p));

    ck_assert(p && count < MOST);
    p->from = p->from_host = from;
    p->to = p->to_host = to;
    p->links = links[count];
    ends = from >= ends ? from + 1 : ends;
    ends = to >= ends ? to + 1 : ends;
    slower[count] = share[count] = 1;
    last_bin[count] = BLOCK_BINS;
    return count++;
}

static size_t find(uint32_t from, uint32_t to)
{
    size_t i = 0;

    while (pairs[i]->from != from || pairs[i]->to != to)
        i++;
    return i;
}

static void crosses(size_t i, uint32_t link)
{
    if (link >= PORT(0) && link < PORT(100))
        pairs[i]->last |= 1U << pairs[i]->link_count;
    links[i][pairs[i]->link_count++] = link;
}

static void block(void)
{
    for (size_t i = 0; i < count; i++)
        for (int b = 0; b < BLOCK_BINS; b++) {
            int64_t ms = (bin + b) * FT_PAIR_RATE_BIN_MS;
            double n = dense * share[i] * SAMPLES / slower[i];

            if (b < last_bin[i] && b % STEP_BINS < BURST_BINS * slower[i])
                ft_pair_rate_take(pairs[i], ms, ms, (uint64_t)n, n * BYTES);
        }
    bin += BLOCK_BINS;
    for (size_t i = 0; i < count; i++) {
        ft_pair_rate_fold(pairs[i], bin * FT_PAIR_RATE_BIN_MS, true);
        ft_pair_rate_choose(pairs[i], 1);
    }
}

static void judge(void)
{
    block();
    ft_blames_free(&blames);
    ck_assert_int_eq(
        ft_pair_rate_judge(pairs, count, ends, BLOCK_BINS, 0.1, true, &outcome, &blames, NULL), 0);
}

static void live_on(void)
{
    for (int i = 0; i < PAST; i++) {
        judge();
        ck_assert_uint_eq(blames.count, 0);
    }
    ck_assert_int_eq(outcome, FT_PAIR_RATE_JUDGED);
}

/* Six hosts at three leaves under two spines, all with all. */
static void fabric(void)
{
    begin();
    for (uint32_t a = 0; a < 6; a++)
        for (uint32_t b = 0; b < 6; b++) {
            uint32_t spine = (a + b / 2) % 2;
            size_t i;

            if (a == b)
                continue;
            i = pair(a, b);
            if (a / 2 != b / 2) {
                crosses(i, UP(a / 2, spine));
                crosses(i, DOWN(spine, b / 2));
            }
            crosses(i, PORT(b));
        }
}

static bool is_over(size_t i, uint32_t link)
{
    for (uint32_t k = 0; k < pairs[i]->link_count; k++)
        if (links[i][k] == link)
            return true;
    return false;
}

static void slow_down(uint32_t link)
{
    for (size_t i = 0; i < count; i++)
        if (is_over(i, link))
            slower[i] = 2.5;
}

START_TEST(a_link_under_slow_pairs_is_named)
{
    static const uint32_t all[] = {UP(0, 0), UP(2, 1), DOWN(1, 1), DOWN(0, 0)};

    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        fabric();
        live_on();
        slow_down(all[k]);
        judge();
        ck_assert_uint_eq(blames.count, 1);
        ck_assert_int_eq(blames.items[0].side, FT_SIDE_PAIR);
        ck_assert_uint_eq(blames.items[0].link, all[k]);
        ck_assert_uint_eq(blames.items[0].slow, 4);
        ck_assert_uint_eq(blames.items[0].all, 4);
        ck_assert(blames.items[0].ratio > 2.2 && blames.items[0].ratio < 3.2);
        for (size_t i = 0; i < count; i++)
            slower[i] = 1;
        judge();
        ck_assert_int_eq(outcome, FT_PAIR_RATE_JUDGED);
        ck_assert_uint_eq(blames.count, 0);
    }
}
END_TEST

/* One of the pairs over it is as fast as ever: it is not the link. */
START_TEST(a_pair_that_is_as_fast_acquits_its_links)
{
    fabric();
    live_on();
    slow_down(UP(0, 0));
    for (size_t i = 0; i < count; i++)
        if (is_over(i, UP(0, 0)) && is_over(i, DOWN(0, 2)))
            slower[i] = 1;
    judge();
    for (size_t i = 0; i < blames.count; i++)
        ck_assert_uint_eq(blames.items[i].link, FT_BLAME_NONE);
}
END_TEST

/* Most of its traffic goes another way: it says nothing of the link, neither for nor against. */
START_TEST(a_pair_that_partly_crosses_a_link_says_nothing_of_it)
{
    for (int partly = 0; partly < 2; partly++) {
        size_t i;

        fabric();
        i = pair(6, 7);
        crosses(i, PORT(7));
        crosses(i, UP(0, 0));
        crosses(i, DOWN(0, 1));
        pairs[i]->partly = partly ? 6 : 0;
        live_on();
        slow_down(UP(0, 0));
        slower[i] = 1;
        judge();
        ck_assert_uint_eq(blames.count, partly);
        if (partly) {
            ck_assert_uint_eq(blames.items[0].link, UP(0, 0));
            ck_assert_uint_eq(blames.items[0].all, 4);
        }
    }
}
END_TEST

/* Of two links that a slow pair alone crosses none is named: one that others cross with a part of
 * theirs, or more slowly than it does, is not acquitted. */
START_TEST(who_could_be_faster_acquits_nothing)
{
    for (int other = 0; other < 3; other++) {
        size_t i, slow;

        fabric();
        slow = find(0, 2);
        pairs[slow]->link_count = 0;
        dense = 4;
        crosses(slow, 500);
        crosses(slow, 501);
        crosses(slow, PORT(2));
        i = pair(6, 7);
        crosses(i, PORT(7));
        crosses(i, 500);
        if (other == 1)
            pairs[i]->partly = 2;
        if (other == 2)
            share[i] = 0.3;
        live_on();
        slower[slow] = 2.5;
        judge();
        ck_assert_uint_eq(blames.count, 1);
        ck_assert_int_eq(blames.items[0].side, FT_SIDE_PAIR);
        ck_assert_uint_eq(blames.items[0].links_open, other ? 2 : 1);
        ck_assert_uint_eq(blames.items[0].link, other ? FT_BLAME_NONE : 501);
    }
}
END_TEST

/* A sender whose other pairs would send less anyhow may be slow as a whole: every link under the
 * pair is clean, and so is its receiver. */
START_TEST(small_pairs_acquit_no_end)
{
    for (int small = 0; small < 2; small++) {
        fabric();
        dense = 4;
        for (uint32_t k = 1; k < 6; k++)
            if (k != 3 && small)
                share[find(0, k)] = 0.3;
        live_on();
        slower[find(0, 3)] = 2.5;
        judge();
        ck_assert_uint_eq(blames.count, 1);
        ck_assert_int_eq(blames.items[0].sender_clean, !small);
        ck_assert_int_eq(blames.items[0].side, small ? FT_SIDE_SENDER : FT_SIDE_PAIR);
    }
}
END_TEST

/* They acquit it not, but it is not said that all of its pairs are slow. */
START_TEST(small_pairs_are_counted)
{
    for (int receiver = 0; receiver < 2; receiver++) {
        fabric();
        dense = 4;
        for (uint32_t k = 1; k < 6; k++)
            share[receiver ? find(k, 0) : find(0, k)] = k > 3 ? 0.3 : 1;
        live_on();
        for (uint32_t k = 1; k <= 3; k++)
            slower[receiver ? find(k, 0) : find(0, k)] = 2.5;
        judge();
        ck_assert_uint_eq(blames.count, 1);
        ck_assert_int_eq(blames.items[0].side, receiver ? FT_SIDE_RECEIVER : FT_SIDE_SENDER);
        ck_assert_uint_eq(blames.items[0].slow, 3);
        ck_assert_uint_eq(blames.items[0].all, 5);
    }
}
END_TEST

/* What counts is the less of rate and time, and what is said the middle of both. */
START_TEST(an_end_is_as_slow_as_its_pairs_in_the_middle)
{
    for (int receiver = 0; receiver < 2; receiver++) {
        fabric();
        live_on();
        for (uint32_t k = 0; k < 6; k++)
            if (k != 2) {
                size_t i = receiver ? find(k, 2) : find(2, k);

                slower[i] = 2;
                share[i] = 0.8;
            }
        judge();
        ck_assert_uint_eq(blames.count, 1);
        ck_assert_int_eq(blames.items[0].side, receiver ? FT_SIDE_RECEIVER : FT_SIDE_SENDER);
        ck_assert_uint_eq(receiver ? blames.items[0].to : blames.items[0].from, 2);
        /* 4 samples in a bin instead of 10, in 8 bins instead of 4. */
        ck_assert_double_eq_tol(blames.items[0].ratio, sqrt(3 * 2.4), 0.01);
        for (size_t i = 0; i < count; i++)
            ck_assert_int_eq(pairs[i]->state,
                             slower[i] > 1 ? FT_PAIR_RATE_SLOW : FT_PAIR_RATE_EVEN);
    }
}
END_TEST

/* It takes on what a slow one brings, or may: which of both is slow does not show. One that brings
 * next to nothing passes nothing on. */
START_TEST(who_may_pass_on_is_not_named)
{
    static const struct {
        int bins; /* of 10 samples, where others have 20 of them */
        double slower;
        bool before, named;
    } cases[] = {{60, 2.5, false, false}, {60, 2.5, true, false}, {60, 1, false, true},
                 {60, 1, true, true},     {13, 1, false, false},  {13, 1, true, false},
                 {2, 1, false, false},    {1, 1, false, true},    {1, 1, true, true}};

    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        size_t i;

        fabric();
        i = cases[k].before ? pair(6, 0) : pair(3, 7);
        last_bin[i] = cases[k].bins;
        live_on();
        slower[find(0, 3)] = 2.5;
        slower[i] = cases[k].slower;
        judge();
        ck_assert_msg(blames.count == cases[k].named, "case %zu: %zu", k, blames.count);
    }
}
END_TEST

/* In a ring all wait for the slowest: nobody is named, whoever it is. */
START_TEST(of_a_ring_none_is_named)
{
    for (uint32_t hosts = 4; hosts <= 8; hosts++) {
        begin();
        for (uint32_t a = 0; a < hosts; a++)
            pair(a, (a + 1) % hosts);
        live_on();
        for (uint32_t slow = 1; slow <= hosts; slow++) {
            for (uint32_t a = 0; a < hosts; a++)
                slower[a] = a < slow ? 2.5 : 1;
            judge();
            if (slow > 1)
                ck_assert_uint_eq(blames.count, 0);
            if (2 * slow > hosts + 1)
                ck_assert_int_eq(outcome, FT_PAIR_RATE_OTHER_WORK);
        }
    }
}
END_TEST

/* The middle of all has changed, by a quarter: it is other work. */
START_TEST(other_work_is_not_judged)
{
    for (int samples = 8; samples <= 9; samples++) {
        fabric();
        live_on();
        for (size_t i = 0; i < count; i++)
            share[i] = samples / 10.0;
        slower[find(0, 3)] = 2.5;
        judge();
        ck_assert_int_eq(outcome, samples == 8 ? FT_PAIR_RATE_OTHER_WORK : FT_PAIR_RATE_JUDGED);
        ck_assert_uint_eq(blames.count, samples != 8);
        ck_assert_uint_eq(pairs[0]->known, samples == 8 ? PAST : PAST + 1);
    }
}
END_TEST

/* Five blocks of four pairs are a past. */
START_TEST(without_a_past_nothing_is_judged)
{
    for (uint32_t n = 3; n <= 4; n++) {
        begin();
        for (uint32_t i = 0; i < n; i++)
            pair(i, 10 + i);
        for (uint32_t k = 1; k <= 7; k++) {
            judge();
            ck_assert_int_eq(outcome,
                             n == 4 && k > 5 ? FT_PAIR_RATE_JUDGED : FT_PAIR_RATE_NOT_JUDGED);
        }
    }
}
END_TEST

/* Poisson's counts: the rate is by pairs of samples, the time by them and by their number. */
START_TEST(chance_is_known)
{
    begin();
    pair(0, 1);
    judge();
    ck_assert_double_eq_tol(pairs[0]->noise, sqrt(2.0 / (20 * 90) + 1.0 / 200), 1e-6);
    ck_assert_double_eq_tol(pairs[0]->rate, log(9.0 * BYTES), 1e-6);
    ck_assert_double_eq_tol(pairs[0]->share, log(200.0 * 200 / (20 * 90) / BLOCK_BINS), 1e-6);
}
END_TEST

/* Twice as slow, by 72 samples: five times what chance does is more. */
START_TEST(what_chance_may_do_is_not_slow)
{
    size_t i;

    fabric();
    i = find(0, 3);
    share[i] = 0.8;
    last_bin[i] = 26;
    live_on();
    slower[i] = 2;
    judge();
    ck_assert_int_eq(pairs[i]->state, FT_PAIR_RATE_UNDECIDED);
    ck_assert_uint_eq(blames.count, 0);
}
END_TEST

/* 32 hosts, all with all, over many links; some of the pairs are slow, that have no more than one
 * of these in common, so that each is looked at by itself. */
static void large(bool many)
{
    begin();
    for (uint32_t a = 0; a < 32; a++)
        for (uint32_t b = 0; b < 32; b++) {
            size_t i;

            if (a == b)
                continue;
            i = pair(a, b);
            for (uint32_t k = 0; k < LINKS_MAX; k++)
                crosses(i, (a * 7 + b * 13 + k * 29) % 64 + 64 * k);
        }
    live_on();
    for (size_t i = 0; i < count; i++)
        slower[i] = many ? pairs[i]->from < 16 && pairs[i]->to >= 16 && i * 7919 % 100 < 40
                         : pairs[i]->from + 16 == pairs[i]->to;
    for (size_t i = 0; i < count; i++)
        slower[i] = slower[i] > 0 ? 2.5 : 1;
    block();
    ft_blames_free(&blames);
}

struct work {
    struct ft_task *task;
};

static void run(void *arg)
{
    struct work *w = arg;

    ck_assert_int_eq(
        ft_pair_rate_judge(pairs, count, ends, BLOCK_BINS, 0.1, true, &outcome, &blames, w->task),
        0);
}

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* In so many steps; the longest, in time of the processor. */
static unsigned judge_in_steps(bool many, uint64_t work, double *longest_s)
{
    struct work w = {NULL};
    unsigned steps = 0;
    bool more = true;

    large(many);
    w.task = ft_task_new(run, &w);
    ck_assert_ptr_nonnull(w.task);
    *longest_s = 0;
    for (; more; steps++) {
        double before = cpu_s();

        more = ft_task_step(w.task, work);
        *longest_s = fmax(*longest_s, cpu_s() - before);
        /* What comes meanwhile is for the next time. */
        ft_pair_rate_take(pairs[0], bin * FT_PAIR_RATE_BIN_MS, bin * FT_PAIR_RATE_BIN_MS, 1, 1e9);
    }
    ft_task_free(w.task);
    return steps;
}

/* Of what is found in steps, and in one. */
START_TEST(what_is_taken_between_steps_changes_nothing)
{
    struct ft_blames in_one;
    double s;

    ck_assert_uint_eq(judge_in_steps(false, UINT64_MAX, &s), 1);
    in_one = blames;
    blames = (struct ft_blames){0};
    ck_assert_uint_ge(judge_in_steps(false, 100, &s), 20);
    ck_assert_uint_eq(blames.count, 16);
    ck_assert_uint_eq(in_one.count, 16);
    for (size_t i = 0; i < 16; i++) {
        ck_assert_uint_eq(blames.items[i].cell, in_one.items[i].cell);
        ck_assert_double_eq(blames.items[i].ratio, in_one.items[i].ratio);
    }
    ft_blames_free(&in_one);
    begin();
}
END_TEST

/* By the time of the processor, and against the same in one step: of several tries the best, for
 * what else the processor does is not the look's. */
START_TEST(no_step_of_a_look_is_long)
{
    double whole_s, longest_s, least = 1;

    for (int i = 0; i < 5 && least > 0.1; i++) {
        ck_assert_uint_eq(judge_in_steps(true, UINT64_MAX, &whole_s), 1);
        ck_assert_uint_ge(judge_in_steps(true, 1000, &longest_s), 20);
        least = fmin(least, longest_s / whole_s);
    }
    ck_assert_double_le(least, 0.1);
    begin();
}
END_TEST

FT_UNIT_MAIN("pair_rate", a_link_under_slow_pairs_is_named,
             a_pair_that_is_as_fast_acquits_its_links,
             a_pair_that_partly_crosses_a_link_says_nothing_of_it,
             who_could_be_faster_acquits_nothing, small_pairs_acquit_no_end,
             small_pairs_are_counted, an_end_is_as_slow_as_its_pairs_in_the_middle,
             who_may_pass_on_is_not_named, of_a_ring_none_is_named, other_work_is_not_judged,
             without_a_past_nothing_is_judged, chance_is_known, what_chance_may_do_is_not_slow,
             what_is_taken_between_steps_changes_nothing, no_step_of_a_look_is_long)
