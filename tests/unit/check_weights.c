// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/weights.h"

#include <math.h>
#include <string.h>

#include "lib/fabric/verdict.h"
#include "tests/unit/unit.h"

#define G         UINT64_C(1000000000)
#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))
#define LINKS_MAX 16

static uint64_t state;

static double dice(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) * 0x1p-53;
}

/* n flows over links, each by its share; on none that is dead. */
static void throw_flows(uint64_t n, const double *share, size_t m, size_t dead, uint64_t *count)
{
    memset(count, 0, m * sizeof(*count));
    for (uint64_t k = 0; k < n;) {
        double at = dice();
        size_t i = 0;

        while (i + 1 < m && at >= share[i])
            at -= share[i++];
        if (i == dead)
            continue;
        count[i]++;
        k++;
    }
}

static const struct {
    uint64_t speed[LINKS_MAX];
    uint32_t bundle[LINKS_MAX];
    size_t m;
} sets[] = {
    {{400 * G, 400 * G, 100 * G, 100 * G}, {0, 1, 2, 3}, 4},
    {{400 * G, 100 * G}, {0, 1}, 2},
    {{800 * G, 400 * G, 400 * G, 400 * G, 200 * G, 100 * G, 100 * G, 100 * G},
     {0, 1, 2, 3, 4, 5, 6, 7},
     8},
    /* Three aggregates of four, of which two members of one are gone. */
    {{100 * G, 100 * G, 100 * G, 100 * G, 100 * G, 100 * G, 100 * G, 100 * G, 100 * G, 100 * G},
     {0, 0, 0, 0, 1, 1, 1, 1, 2, 2},
     10},
};

static struct ft_link_set set_of(size_t i)
{
    return (struct ft_link_set){
        .m = sets[i].m, .speed_bps = sets[i].speed, .bundle = sets[i].bundle};
}

/* Even, by speed, by aggregate; false: that is even, too. */
static bool shares_of(const struct ft_link_set *links, int by, double *share)
{
    for (size_t i = 0; i < links->m; i++)
        share[i] = 1 / (double)links->m;
    return by == FT_WEIGHINGS || ft_weigh(links, (enum ft_weighing)by, share);
}

START_TEST(gives_the_shares)
{
    const uint64_t speed[] = {400 * G, 400 * G, 100 * G, 100 * G}, same[] = {G, G, G, G},
                   unknown[] = {G, 0, 2 * G, G};
    const uint32_t lags[] = {7, 7, 9, 4}, pairs[] = {7, 9, 7, 9};
    struct ft_link_set links = {.m = 4, .speed_bps = speed, .bundle = lags};
    double share[4];

    ck_assert(ft_weigh(&links, FT_WEIGHED_BY_SPEED, share));
    ck_assert_double_eq_tol(share[0], 0.4, 1e-12);
    ck_assert_double_eq_tol(share[3], 0.1, 1e-12);
    ck_assert(ft_weigh(&links, FT_WEIGHED_BY_BUNDLE, share));
    ck_assert_double_eq_tol(share[1], 1.0 / 6, 1e-12);
    ck_assert_double_eq_tol(share[2], 1.0 / 3, 1e-12);
    ft_least_shares(&links, share);
    ck_assert_double_eq_tol(share[0], 1.0 / 6, 1e-12);
    ck_assert_double_eq_tol(share[3], 0.1, 1e-12);
    links.bundle = pairs;
    ck_assert(!ft_weigh(&links, FT_WEIGHED_BY_BUNDLE, share));
    links.bundle = NULL;
    ck_assert(!ft_weigh(&links, FT_WEIGHED_BY_BUNDLE, share));
    links.speed_bps = same;
    ck_assert(!ft_weigh(&links, FT_WEIGHED_BY_SPEED, share));
    links.speed_bps = unknown;
    ck_assert(!ft_weigh(&links, FT_WEIGHED_BY_SPEED, share));
    links.speed_bps = NULL;
    ck_assert(!ft_weigh(&links, FT_WEIGHED_BY_SPEED, share));
    ft_least_shares(&links, share);
    ck_assert_double_eq(share[2], 0.25);
}
END_TEST

/* Worked out by hand: of 4 flows each takes the first link with 0.8. None on it: 0.2^4, twice. Two:
 * P(at most 2) = 0.1808, twice. All: P(4) = 0.4096, twice. */
START_TEST(knows_two_links_by_hand)
{
    const double share[] = {0.8, 0.2};
    const uint64_t none[] = {0, 4}, two[] = {2, 2}, all[] = {4, 0}, nothing[] = {0, 0};
    struct ft_chance *chance = ft_chance_new();

    ck_assert_double_eq_tol(ft_weighted_p_value(chance, none, share, 2), 0.0032, 1e-12);
    ck_assert_double_eq_tol(ft_weighted_p_value(chance, two, share, 2), 0.3616, 1e-12);
    ck_assert_double_eq_tol(ft_weighted_p_value(chance, all, share, 2), 0.8192, 1e-12);
    ck_assert_double_eq(ft_weighted_p_value(chance, nothing, share, 2), 1);
    ft_chance_free(chance);
}
END_TEST

/* Of all ways that 6 flows fall on 0.4, 0.4, 0.1, 0.1, those with p below some value are no more
 * than that in probability. */
START_TEST(p_is_never_too_small)
{
    enum { N = 6 };
    const double share[] = {0.4, 0.4, 0.1, 0.1};
    static const double below[] = {0.5, 0.2, 0.05, 0.01, 0.001, 1e-4};
    struct ft_chance *chance = ft_chance_new();
    double mass[COUNT(below)] = {0}, sum = 0;

    for (uint64_t a = 0; a <= N; a++)
        for (uint64_t b = 0; a + b <= N; b++)
            for (uint64_t c = 0; a + b + c <= N; c++) {
                const uint64_t count[] = {a, b, c, N - a - b - c};
                double ways = lgamma(N + 1), p = ft_weighted_p_value(chance, count, share, 4);

                for (int i = 0; i < 4; i++)
                    ways += (double)count[i] * log(share[i]) - lgamma((double)count[i] + 1);
                sum += exp(ways);
                for (size_t k = 0; k < COUNT(below); k++)
                    mass[k] += p <= below[k] ? exp(ways) : 0;
            }
    ck_assert_double_eq_tol(sum, 1, 1e-9);
    for (size_t k = 0; k < COUNT(below); k++)
        ck_assert_msg(mass[k] <= below[k], "p <= %g with probability %g", below[k], mass[k]);
    ck_assert_double_gt(mass[0], 0.2);
    ft_chance_free(chance);
}
END_TEST

/* Each way of choosing gives a p below 0.05 in one of twenty windows at most, and not in hardly any
 * by its own shares. */
START_TEST(no_weighing_is_called_a_fault)
{
    enum { TRIALS = 2000 };
    static const uint64_t flows[] = {10, 40, 200, 2000};
    struct ft_chance *chance = ft_chance_new();

    state = 20;
    for (size_t s = 0; s < COUNT(sets); s++)
        for (size_t f = 0; f < COUNT(flows); f++)
            for (int by = 0; by <= FT_WEIGHINGS; by++) {
                const struct ft_link_set links = set_of(s);
                double share[LINKS_MAX], low = 0, own_low = 0, own_mean = 0;
                uint64_t count[LINKS_MAX];

                if (!shares_of(&links, by, share))
                    continue;
                for (int i = 0; i < TRIALS; i++) {
                    double own;

                    throw_flows(flows[f], share, links.m, links.m, count);
                    low += ft_by_chance_of(chance, count, &links).p < 0.05 ? 1.0 / TRIALS : 0;
                    own = ft_weighted_p_value(chance, count, share, links.m);
                    own_low += own < 0.05 ? 1.0 / TRIALS : 0;
                    own_mean += own / TRIALS;
                }
                /* 0.05, and three standard deviations of 2000 trials. */
                ck_assert_msg(low <= 0.065, "set %zu, %d, %d flows: %g", s, by, (int)flows[f], low);
                ck_assert_msg(own_low <= 0.065, "set %zu, %d, %d flows: own %g", s, by,
                              (int)flows[f], own_low);
                if (flows[f] >= 200)
                    ck_assert_msg(own_low >= 0.025 && fabs(own_mean - 0.5) < 0.06,
                                  "set %zu, %d, %d flows: own %g, mean %g", s, by, (int)flows[f],
                                  own_low, own_mean);
            }
    ft_chance_free(chance);
}
END_TEST

/* A link that no flow takes is a fault whichever way the others are chosen, and so are weights of 3
 * to 1 between links of one speed. */
START_TEST(a_dead_link_is_a_fault)
{
    const uint64_t same[] = {400 * G, 400 * G, 100 * G, 100 * G};
    const double by_hand[] = {0.6, 0.2, 0.1, 0.1};
    struct ft_chance *chance = ft_chance_new();
    uint64_t count[LINKS_MAX];

    state = 21;
    for (size_t s = 0; s < COUNT(sets); s++)
        for (int by = 0; by <= FT_WEIGHINGS; by++) {
            const struct ft_link_set links = set_of(s);
            double share[LINKS_MAX];

            if (!shares_of(&links, by, share))
                continue;
            for (size_t dead = 0; dead < links.m; dead++) {
                throw_flows(2000, share, links.m, dead, count);
                ck_assert_msg(ft_by_chance_of(chance, count, &links).p < FT_VERDICT_FAULT_BELOW,
                              "set %zu, %d, link %zu", s, by, dead);
            }
        }
    throw_flows(800, by_hand, 4, 4, count);
    ck_assert_double_lt(
        ft_by_chance_of(chance, count, &(struct ft_link_set){.m = 4, .speed_bps = same}).p,
        FT_VERDICT_FAULT_BELOW);
    ft_chance_free(chance);
}
END_TEST

/* What is said to be expected is what comes on average, of the choice that explains it best. */
START_TEST(expects_the_fim_that_comes)
{
    enum { TRIALS = 4000 };
    static const uint64_t flows[] = {20, 100, 1000};
    struct ft_chance *chance = ft_chance_new();

    state = 22;
    for (size_t s = 0; s < COUNT(sets); s++)
        for (size_t f = 0; f < COUNT(flows); f++)
            for (int by = 0; by <= FT_WEIGHINGS; by++) {
                const struct ft_link_set links = set_of(s);
                double share[LINKS_MAX], mean = 0, want, load[LINKS_MAX];
                uint64_t count[LINKS_MAX];
                struct ft_figures figures;

                if (!shares_of(&links, by, share))
                    continue;
                for (int i = 0; i < TRIALS; i++) {
                    throw_flows(flows[f], share, links.m, links.m, count);
                    for (size_t k = 0; k < links.m; k++)
                        load[k] = (double)count[k];
                    ft_figures_of(load, links.speed_bps, links.m, &figures);
                    mean += figures.fim / TRIALS;
                }
                want = ft_weighted_fim_expected(flows[f], share, links.speed_bps, links.m);
                ck_assert_msg(fabs(mean / want - 1) < (flows[f] > 20 ? 0.03 : 0.12),
                              "set %zu, %d, %d flows: %g, expected %g", s, by, (int)flows[f], mean,
                              want);
            }
    ft_chance_free(chance);
}
END_TEST

START_TEST(even_links_are_what_they_were)
{
    static const uint64_t count[] = {7, 5, 3, 1};
    static const double share[] = {0.25, 0.25, 0.25, 0.25};
    const struct ft_link_set links = {.m = 4};
    struct ft_chance *chance = ft_chance_new();
    struct ft_by_chance c = ft_by_chance_of(chance, count, &links);

    ck_assert_double_eq(c.p, ft_p_value(chance, count, 4));
    ck_assert_double_eq(c.fim_expected, ft_fim_expected(16, 4));
    ck_assert_double_eq_tol(ft_weighted_fim_expected(16, share, NULL, 4), c.fim_expected, 1e-9);
    ck_assert_double_eq_tol(ft_weighted_fim_expected(9, share, NULL, 4), ft_fim_expected(9, 4),
                            1e-9);
    ck_assert_double_eq_tol(ft_weighted_p_value(chance, count, share, 4), c.p, 1e-12);
    ck_assert_double_eq(ft_weighted_fim_expected(0, share, NULL, 4), 0);
    ft_chance_free(chance);
}
END_TEST

/* Two flows on 0.8 and 0.2 share two links, each with one half, with probability 0.32. */
START_TEST(knows_the_entropy_of_two_flows)
{
    const double share[] = {0.8, 0.2};

    ck_assert_double_eq_tol(ft_weighted_entropy(2, share, 2), 0.32 * log(2), 1e-12);
    ck_assert_double_eq(ft_weighted_entropy(1, share, 2), 0);
}
END_TEST

START_TEST(knows_binomial_tails)
{
    ck_assert_double_eq_tol(ft_binomial_tail(2, 4, 0.8), 0.1808, 1e-12);
    ck_assert_double_eq_tol(ft_binomial_tail(3, 4, 0.8), 1 - 0.4096, 1e-12);
    ck_assert_double_eq(ft_binomial_tail(4, 4, 0.8), 1);
    ck_assert_double_eq_tol(ft_binomial_tail(0, 1000, 0.5) / 0x1p-1000, 1, 1e-9);
    /* The median of an even number, with half of P(the middle). */
    ck_assert_double_eq_tol(ft_binomial_tail(500000, 1000000, 0.5), 0.5 + 0.5 * 7.978844e-4, 1e-9);
}
END_TEST

/* The union of groups that switches weigh by speed is as even as chance, and one of them with a
 * dead link is not. */
START_TEST(a_union_compares_links_of_one_speed)
{
    enum { TRIALS = 200, GROUPS = 8 };
    const double *shares[] = {(const double[]){0.4, 0.4, 0.1, 0.1},
                              (const double[]){0.25, 0.25, 0.25, 0.25}};
    struct ft_chance *chance = ft_chance_new();
    struct ft_union *u = ft_union_new();

    state = 23;
    for (int by = 0; by < 2; by++)
        for (int dead = 0; dead < 2; dead++) {
            unsigned low = 0;

            for (int i = 0; i < TRIALS; i++) {
                ft_union_reset(u);
                for (int g = 0; g < GROUPS; g++) {
                    const struct ft_link_set links = set_of(0);
                    uint64_t count[4];
                    double load[4];

                    throw_flows(40, shares[by], 4, dead && g == 3 ? 1 : 4, count);
                    for (int k = 0; k < 4; k++)
                        load[k] = (double)count[k];
                    ck_assert_int_eq(ft_union_add(u, load, count, &links, 30), 0);
                }
                ck_assert_uint_eq(ft_union_links(u), 4 * GROUPS);
                ck_assert_double_eq_tol(ft_union_fim_expected(u), 30, 1e-9);
                low += ft_union_p_value(u, chance) < 0.05;
            }
            /* 10 of 200, with a standard deviation of 3. */
            if (dead)
                ck_assert_uint_ge(low, TRIALS / 2);
            else
                ck_assert_uint_le(low, 20);
        }
    ft_union_free(u);
    ft_chance_free(chance);
}
END_TEST

FT_UNIT_MAIN("weights", gives_the_shares, knows_two_links_by_hand, p_is_never_too_small,
             no_weighing_is_called_a_fault, a_dead_link_is_a_fault, expects_the_fim_that_comes,
             even_links_are_what_they_were, knows_the_entropy_of_two_flows, knows_binomial_tails,
             a_union_compares_links_of_one_speed)
