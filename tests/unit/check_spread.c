// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/dispersion.h"
#include "lib/fabric/effective.h"
#include "lib/fabric/spread.h"

#include <math.h>
#include <string.h>

#include "lib/fabric/metrics.h"
#include "lib/fabric/weights.h"
#include "tests/unit/unit.h"

#define LINKS 32

static struct ft_chance *chance;
static struct ft_spread_link links[FT_SPREAD_LINKS_MAX];
static uint64_t dice_state;

static uint32_t dice(uint32_t sides)
{
    dice_state = dice_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((dice_state >> 33) % sides);
}

static void begin(uint64_t seed)
{
    dice_state = seed;
    memset(links, 0, sizeof(links));
}

static void see(uint32_t link, int64_t ms, bool trial)
{
    struct ft_spread_link *l = &links[link];

    if (l->samples == 0)
        l->first_ms = ms;
    l->last_ms = ms;
    l->samples++;
    l->trials += trial;
}

static struct ft_spread_figures figures(size_t m)
{
    struct ft_spread_figures f;

    ft_spread_figures(links, &(struct ft_link_set){.m = m}, &FT_DISPERSION_NONE, chance, &f);
    return f;
}

/* A queue pair of `count` samples in a second, each link alike but those with less; in flowlets of
 * so many packets, of which one in so many is sampled. */
static void spray(size_t m, uint32_t count, uint32_t dead, uint32_t flowlet, uint32_t one_in)
{
    uint32_t link = 0, left = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t gap = 1 + dice(2 * one_in);

        for (; gap > left; gap -= left, left = flowlet)
            do
                link = dice((uint32_t)m);
            while (link == dead);
        left -= gap;
        see(link, (int64_t)i * 1000 / count, true);
    }
}

START_TEST(packets_and_flowlets_spread_evenly)
{
    const uint32_t flowlets[] = {1, 64, 500};
    unsigned uneven = 0, alternate = 0, least = 0;

    chance = ft_chance_new();
    for (unsigned i = 0; i < 300; i++) {
        struct ft_spread_figures f;
        double p;

        begin(i + 1);
        spray(16, 800, LINKS, flowlets[i % 3], 2000);
        f = figures(16);
        ck_assert_uint_eq(f.seen, 16);
        ck_assert_uint_eq(f.samples, 800);
        ck_assert_double_gt(f.effective, 15.2);
        uneven += f.even_p < 0.05;
        least += f.least_p < 0.05;
        alternate += ft_spread_alternation(links, 16, &p) == FT_ALTERNATION_SPRAYED;
    }
    /* 15 of 300 by chance, with a standard deviation of 3.8; the least of several is no more. */
    ck_assert_uint_ge(uneven, 3);
    ck_assert_uint_le(uneven, 31);
    ck_assert_uint_le(least, 31);
    ck_assert_uint_eq(alternate, 300);
    ft_chance_free(chance);
}
END_TEST

/* m (1 - 1/m)^c by hand: 32 * (31/32)^400 = 0.0000978. */
START_TEST(a_dead_path_of_32_is_found)
{
    struct ft_spread_figures f;

    chance = ft_chance_new();
    begin(5);
    spray(LINKS, 400, 9, 1, 2000);
    f = figures(LINKS);
    ck_assert_uint_eq(f.seen, LINKS - 1);
    ck_assert_uint_eq(f.least, 9);
    ck_assert_double_eq_tol(f.least_p, LINKS * pow(31.0 / 32, 400), 1e-9);
    ck_assert_double_lt(f.least_p, 0.0001);
    /* Few samples say nothing of a link that none of them took. */
    begin(6);
    spray(LINKS, 40, 9, 1, 2000);
    ck_assert_double_eq(figures(LINKS).least_p, 1);
    ft_chance_free(chance);
}
END_TEST

/* A link that gets half of what the others get. */
START_TEST(a_slow_path_is_found)
{
    struct ft_spread_figures f;

    chance = ft_chance_new();
    begin(7);
    for (uint32_t i = 0; i < 2000; i++) {
        uint32_t link = dice(16);

        see(link == 3 && dice(2) ? dice(16) : link, i, true);
    }
    f = figures(16);
    ck_assert_uint_eq(f.least, 3);
    ck_assert_double_lt(f.least_p, 0.0001);
    ck_assert_double_lt(f.even_p, 0.001);
    ft_chance_free(chance);
}
END_TEST

/* Two links of 400 and two of 100, sprayed by these shares: of none too few, and a dead one is
 * named. */
START_TEST(weights_by_speed_accuse_no_link)
{
    static const uint64_t speed[] = {400, 400, 100, 100};
    static const uint32_t first[2][4] = {{25, 50, 75, 100}, {40, 80, 90, 100}};
    const struct ft_link_set set = {.m = 4, .speed_bps = speed};
    unsigned uneven = 0, least = 0;

    chance = ft_chance_new();
    for (uint32_t i = 0; i < 400; i++) {
        struct ft_spread_figures f;
        uint32_t dead = i < 300 ? 4 : i % 4;

        begin(i + 1);
        for (int k = 0; k < 400; k++) {
            uint32_t link, at;

            do
                for (link = 0, at = dice(100); at >= first[i / 4 % 2][link]; link++)
                    ;
            while (link == dead);
            see(link, k, true);
        }
        ft_spread_figures(links, &set, &FT_DISPERSION_NONE, chance, &f);
        if (dead == 4) {
            uneven += f.even_p < 0.05;
            least += f.least_p < 0.05;
            continue;
        }
        ck_assert_double_lt(f.even_p, 1e-6);
        ck_assert_uint_eq(f.least, dead);
        ck_assert_double_lt(f.least_p, 1e-6);
        for (uint32_t k = 0; k < 4; k++)
            ck_assert(k == dead || f.few_p[k] > 0.001);
    }
    /* 15 of 300 at most, with a standard deviation of 3.8. */
    ck_assert_uint_le(uneven, 26);
    ck_assert_uint_le(least, 26);
    ft_chance_free(chance);
}
END_TEST

/* 256 queue pairs of one connection, each on one path: each is one trial, however much it sends. */
START_TEST(queue_pairs_that_stay_are_trials)
{
    unsigned uneven = 0;

    chance = ft_chance_new();
    for (unsigned i = 0; i < 200; i++) {
        struct ft_spread_figures f;

        begin(i + 1);
        for (unsigned qp = 0; qp < 256; qp++) {
            uint32_t link = dice(16), sent = 1 + dice(50);

            for (uint32_t k = 0; k < sent; k++)
                see(link, k, k == 0);
        }
        f = figures(16);
        ck_assert_double_eq(f.trials, 256);
        uneven += f.even_p < 0.05;
    }
    ck_assert_uint_ge(uneven, 1);
    ck_assert_uint_le(uneven, 22);
    ft_chance_free(chance);
}
END_TEST

/* One change of route makes two runs; a change while it is sprayed leaves links that overlap. */
START_TEST(a_change_of_route_is_no_spraying)
{
    double p;

    begin(1);
    for (int64_t ms = 0; ms < 1000; ms += 50)
        see(ms < 400 ? 2 : 7, ms, true);
    ck_assert_int_eq(ft_spread_alternation(links, 8, &p), FT_ALTERNATION_MOVED);
    /* 2 / C(20, 8) */
    ck_assert_double_eq_tol(p, 2.0 / 125970, 1e-9);
    begin(1);
    for (int64_t ms = 0; ms < 1000; ms += 10)
        see(ms < 400 ? dice(4) : 4 + dice(4), ms, true);
    ck_assert_int_eq(ft_spread_alternation(links, 8, &p), FT_ALTERNATION_SPRAYED);
    begin(1);
    see(0, 10, true);
    see(1, 20, true);
    ck_assert_int_eq(ft_spread_alternation(links, 8, &p), FT_ALTERNATION_UNKNOWN);
    begin(1);
    for (int64_t ms = 0; ms < 1000; ms += 50)
        see(2, ms, true);
    ck_assert_int_eq(ft_spread_alternation(links, 8, &p), FT_ALTERNATION_UNKNOWN);
}
END_TEST

/* Two links, 3 to 1; behind the first two more alike, behind the other nothing: shares of 3/8, 3/8
 * and 1/4, whose entropy is 1.0822 by hand. What samples leave out is 1/800 and, by the share, 3/4
 * of 1/400. */
START_TEST(tiers_add_up)
{
    struct ft_entropy_link top[] = {{.samples = 300, .behind_id = 1},
                                    {.samples = 100, .behind_id = 2, .behind = FT_ENTROPY_NONE}};
    const struct ft_entropy_link low[] = {{.samples = 100, .behind = FT_ENTROPY_NONE},
                                          {.samples = 100, .behind = FT_ENTROPY_NONE}};
    struct ft_entropy e;
    struct ft_effective out;

    ck_assert(ft_entropy_of(low, 2, &top[0].behind));
    ck_assert_double_eq_tol(top[0].behind.nats, log(2) + 1 / 400.0, 1e-12);
    ck_assert(ft_entropy_of(top, 2, &e));
    ck_assert_double_eq_tol(e.paths, 3, 1e-12);
    ck_assert_double_eq_tol(e.nats, 1.0822 + 1 / 800.0 + 0.75 / 400, 1e-4);
    ft_effective(&e, &out);
    ck_assert_double_eq_tol(out.paths, exp(e.nats), 1e-12);
    ck_assert(out.lo < out.paths && out.paths < out.hi && out.hi <= 3);
}
END_TEST

/* 400 samples over 8 links in 10 seconds: each of them chose, also where the shares differ; they
 * took a link for a second each; they went to and fro between two links. */
START_TEST(samples_that_keep_together_choose_seldom)
{
    begin(7);
    for (unsigned i = 0; i < 8; i++)
        links[i] = (struct ft_spread_link){.samples = i < 7 ? 56 : 8, .seconds = i < 7 ? 10 : 6};
    ck_assert_double_eq(ft_spread_choosing(links, 8, 10), 1);
    for (unsigned i = 0; i < 8; i++)
        links[i] = (struct ft_spread_link){.samples = 40 * (1 + i % 2), .seconds = 1 + i % 2};
    ck_assert_double_lt(ft_spread_choosing(links, 8, 10), 0.05);
    begin(7);
    links[2] = links[5] = (struct ft_spread_link){.samples = 200, .seconds = 6};
    ck_assert_double_eq_tol(ft_spread_choosing(links, 8, 10), -10 * log(0.4) / 200, 1e-6);
    ck_assert_double_eq(ft_spread_choosing(links, 8, 0), 1);
}
END_TEST

/* Nothing sampled; four samples of one link; four links of which each has a few. */
START_TEST(few_samples_say_nothing_of_tiers)
{
    struct ft_entropy_link few[4] = {{.behind = FT_ENTROPY_NONE},
                                     {.behind = FT_ENTROPY_NONE},
                                     {.behind = FT_ENTROPY_NONE},
                                     {.behind = FT_ENTROPY_NONE}};
    struct ft_entropy e;

    ck_assert(!ft_entropy_of(few, 4, &e));
    few[0].samples = 4;
    ck_assert(!ft_entropy_of(few, 4, &e));
    for (unsigned i = 0; i < 4; i++)
        few[i].samples = 4;
    ck_assert(!ft_entropy_of(few, 4, &e));
    few[2].samples = 8;
    ck_assert(ft_entropy_of(few, 4, &e));
}
END_TEST

FT_UNIT_MAIN("spread", tiers_add_up, few_samples_say_nothing_of_tiers,
             packets_and_flowlets_spread_evenly, a_dead_path_of_32_is_found, a_slow_path_is_found,
             queue_pairs_that_stay_are_trials, weights_by_speed_accuse_no_link,
             samples_that_keep_together_choose_seldom, a_change_of_route_is_no_spraying)
