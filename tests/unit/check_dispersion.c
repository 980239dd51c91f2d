// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/dispersion.h"

#include <string.h>

#include "lib/fabric/metrics.h"
#include "lib/fabric/spread.h"
#include "lib/fabric/weights.h"
#include "tests/unit/unit.h"

#define SECONDS 10
#define RUNS    200

static struct ft_chance *chance;
static uint64_t dice_state;

static double dice(void)
{
    uint64_t z = dice_state += UINT64_C(0x9e3779b97f4a7c15); /* SplitMix64 */

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

static double wait(double mean)
{
    return -mean * log1p(-dice());
}

/* A flow whose flowlets last so long at the mean, each of which takes any link: samples at random
 * moments of its time. */
struct sprayed {
    uint32_t m;
    double rate, flowlet_s; /* 0: each packet chooses */
    double share;           /* how often the first link is drawn, next to each other */
    struct ft_spread_link links[FT_SPREAD_LINKS_MAX];
    uint64_t counts[FT_SPREAD_LINKS_MAX];
    struct ft_clumps clumps;
};

static uint32_t draw(const struct sprayed *s)
{
    double at = dice() * (s->m - 1 + s->share);

    return at < s->share ? 0 : 1 + (uint32_t)(at - s->share);
}

static void run(struct sprayed *s)
{
    double at = wait(1 / s->rate), until = 0;
    uint32_t link = 0;

    memset(s->links, 0, sizeof(s->links));
    s->clumps = (struct ft_clumps){.seconds = SECONDS};
    for (int second = 0; second < SECONDS; second++) {
        uint64_t cell[FT_SPREAD_LINKS_MAX] = {0}, n = 0;

        for (; at < second + 1; at += wait(1 / s->rate), n++) {
            if (at >= until) {
                link = draw(s);
                until = at + wait(s->flowlet_s);
            }
            cell[link]++;
        }
        s->clumps.samples += n;
        s->clumps.pairs += n ? n * (n - 1) : 0;
        for (uint32_t i = 0; i < s->m; i++) {
            s->clumps.same += cell[i] ? cell[i] * (cell[i] - 1) : 0;
            s->links[i].samples = s->links[i].trials += cell[i];
            s->counts[i] = s->links[i].samples;
        }
    }
}

static struct ft_spread_figures figures(struct sprayed *s)
{
    struct ft_dispersion d;
    struct ft_spread_figures f;

    run(s);
    ck_assert(ft_dispersion_of(&s->clumps, s->counts, s->m, SECONDS, 1, &d));
    ft_spread_figures(s->links, &(struct ft_link_set){.m = s->m}, &d, chance, &f);
    return f;
}

/* Even choice, by flowlets from none to 200 ms: p-values are below 0.01 and 0.05 as often as that,
 * and nothing is dead. Of each kind, and of all. */
START_TEST(flowlets_that_are_even_are_not_uneven)
{
    static const double ms[] = {0, 1, 2, 5, 10, 20, 50, 200};
    static const double rate[] = {5, 60, 400};
    static const uint32_t m[] = {4, 32, 64};
    unsigned all[2] = {0}, least = 0, kinds = 0;

    chance = ft_chance_new();
    dice_state = 1;
    for (unsigned k = 0; k < 3 * 3 * 8; k++, kinds++) {
        struct sprayed s = {m[k % 3], rate[k / 3 % 3], ms[k / 9] / 1000, .share = 1};
        unsigned below[2] = {0};

        for (unsigned i = 0; i < RUNS; i++) {
            struct ft_spread_figures f = figures(&s);

            below[0] += f.even_p < 0.01;
            below[1] += f.even_p < 0.05;
            least += f.least_p < 0.01;
            for (uint32_t j = 0; j < s.m; j++)
                ck_assert(s.counts[j] || f.few_p[j] >= 1e-4);
        }
        /* 2 and 10, with standard deviations of 1.4 and 3.1, in 72 kinds. */
        ck_assert_uint_le(below[0], 8);
        ck_assert_uint_le(below[1], 22);
        all[0] += below[0];
        all[1] += below[1];
    }
    /* 144 and 720 of 14,400, with 12 and 26. */
    ck_assert_uint_le(all[0], 180);
    ck_assert_uint_le(all[1], 800);
    ck_assert_uint_ge(all[1], 400);
    ck_assert_uint_le(least, 180);
    ft_chance_free(chance);
}
END_TEST

/* What the same counts say when each sample is taken for a choice. */
START_TEST(each_sample_is_no_choice)
{
    struct sprayed s = {32, 400, 0.005, .share = 1};
    unsigned below = 0;

    chance = ft_chance_new();
    dice_state = 2;
    for (unsigned i = 0; i < RUNS; i++) {
        run(&s);
        below += ft_p_value(chance, s.counts, s.m) < 0.01;
    }
    ck_assert_uint_ge(below, RUNS * 95 / 100);
    ft_chance_free(chance);
}
END_TEST

/* Packets by themselves: one path with double share, and a dead one, are found as before. */
START_TEST(uneven_spray_is_found)
{
    struct sprayed twice = {32, 120, 0, .share = 2}, dead = {32, 60, 0, .share = 0};
    unsigned found[2] = {0}, before = 0;

    chance = ft_chance_new();
    dice_state = 3;
    for (unsigned i = 0; i < RUNS; i++) {
        struct ft_spread_figures f = figures(&twice);

        found[0] += f.even_p < 0.01;
        before += ft_p_value(chance, twice.counts, twice.m) < 0.01;
        f = figures(&dead);
        ck_assert_uint_eq(f.least, 0);
        found[1] += f.few_p[0] < 0.001;
    }
    ck_assert_uint_ge(found[0], before * 85 / 100);
    ck_assert_uint_ge(before, RUNS / 2);
    ck_assert_uint_ge(found[1], RUNS * 95 / 100);
    ft_chance_free(chance);
}
END_TEST

/* Flowlets of 5 ms over a path with double share, and without one: found where there are enough. */
START_TEST(uneven_flowlets_are_found)
{
    struct sprayed twice = {8, 400, 0.005, .share = 2}, dead = {16, 400, 0.005, .share = 0};
    unsigned found[2] = {0};

    chance = ft_chance_new();
    dice_state = 4;
    for (unsigned i = 0; i < RUNS; i++) {
        struct ft_spread_figures f = figures(&twice);

        found[0] += f.even_p < 0.01;
        f = figures(&dead);
        found[1] += f.few_p[0] < 0.001;
    }
    ck_assert_uint_ge(found[0], RUNS * 95 / 100);
    ck_assert_uint_ge(found[1], RUNS * 95 / 100);
    ft_chance_free(chance);
}
END_TEST

/* Four samples in each of ten seconds, always together, two seconds on a link of five: pairs agree
 * in 120 of 120, those of any time in 280 of 1560. */
START_TEST(the_factor_is_what_keeps_together)
{
    const uint64_t counts[] = {8, 8, 8, 8, 8};
    const uint64_t even[] = {10, 10, 10, 10};
    struct ft_dispersion d, behind;

    ck_assert(ft_dispersion_of(&(struct ft_clumps){40, 120, 120, 10}, counts, 5, 10, 1, &d));
    ck_assert_double_ge(d.factor, 4);
    /* As many agree as of any: each chooses. 10 * 9 * 4 of 40 * 39 agree, of 120 so 27.7. */
    ck_assert(ft_dispersion_of(&(struct ft_clumps){40, 120, 27, 10}, even, 4, 10, 1, &d));
    ck_assert_double_eq(d.factor, 1);
    /* 3 links' worth of 9 intervals, by hand: (4 - 1) * (13 - 1) * (1 - 1/13) of 13 in effect. */
    ck_assert_double_eq_tol(d.freedom, 40 * 40 / 120.0 * 12 / 13 * 3, 1e-9);
    /* Behind one of four links more of what came keeps together. */
    ck_assert(ft_dispersion_of(&(struct ft_clumps){40, 120, 60, 10}, even, 4, 10, 1, &d));
    ck_assert(ft_dispersion_of(&(struct ft_clumps){40, 120, 60, 10}, even, 4, 10, 0.25, &behind));
    ck_assert_double_gt(behind.factor, d.factor);
    /* Of half of the time, but for a second: the other half is alike. */
    ck_assert(ft_dispersion_of(&(struct ft_clumps){20, 60, 30, 4}, even, 4, 10, 1, &behind));
    ck_assert_double_eq_tol(behind.factor, d.factor, 0.15);
    /* One interval that has all ten seconds says nothing, also of half of the samples. */
    ck_assert(!ft_dispersion_of(&(struct ft_clumps){20, 380, 85, 10}, even, 4, 10, 1, &d));
    /* One interval, one sample, one link. */
    ck_assert(!ft_dispersion_of(&(struct ft_clumps){40, 40 * 39, 400, 10}, even, 4, 10, 1, &d));
    ck_assert(!ft_dispersion_of(&(struct ft_clumps){1, 0, 0, 10}, even, 4, 10, 1, &d));
    ck_assert(
        !ft_dispersion_of(&(struct ft_clumps){40, 120, 120, 10}, &(uint64_t){40}, 1, 10, 1, &d));
}
END_TEST

/* Tables: F(4, 10) and F(31, 120) at 0.01 are 5.9943 and 1.8 (F(30, 120): 1.8600); Student's 3.169
 * with 10 degrees at 0.005 to one side; binomials by hand. */
START_TEST(tails_are_those_of_tables)
{
    ck_assert_double_eq_tol(ft_dispersed_chi_square_tail(4 * 5.9943, 4, 10), 0.01, 1e-6);
    ck_assert_double_eq_tol(ft_dispersed_chi_square_tail(30 * 1.8600, 30, 120), 0.01, 2e-5);
    ck_assert_double_eq_tol(ft_dispersed_chi_square_tail(11.345, 3, (double)INFINITY), 0.01, 1e-5);
    ck_assert_double_eq_tol(ft_dispersed_binomial_tail(2, 4, 0.5, (double)INFINITY), 11 / 16.0,
                            1e-12);
    ck_assert_double_eq_tol(ft_dispersed_binomial_tail(0, 400, 1 / 32.0, (double)INFINITY),
                            pow(31 / 32.0, 400), 1e-15);
    ck_assert_double_eq_tol(ft_dispersed_binomial_tail(3, 50, 0.25, (double)INFINITY),
                            ft_binomial_tail(3, 50, 0.25), 1e-14);
    ck_assert_double_eq(ft_dispersed_binomial_tail(4, 4, 0.5, 10), 1);
    /* As rare as 3.169 standard deviations below the mean, 7.65e-4: log(7.65e-4) / log(31/32). */
    ck_assert_double_eq_tol(
        ft_dispersed_binomial_tail(0, log(7.6486e-4) / log(31 / 32.0), 1 / 32.0, 10), 0.005, 1e-5);
}
END_TEST

FT_UNIT_MAIN("dispersion", the_factor_is_what_keeps_together, tails_are_those_of_tables,
             flowlets_that_are_even_are_not_uneven, each_sample_is_no_choice, uneven_spray_is_found,
             uneven_flowlets_are_found)
