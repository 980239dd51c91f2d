// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/narrow.h"

#include <math.h>
#include <string.h>

#include "lib/fabric/chance.h"
#include "lib/fabric/verdict.h"
#include "tests/unit/unit.h"

enum { M = 5, NONE = M };

/* The first link alone is not behind the others' switches; those that lack it choose among four. */
static const uint32_t alike[M] = {0, 1, 1, 1, 1};

static struct ft_random random_state;

static void throw_flows(uint64_t n, size_t first, size_t dead, uint64_t count[M])
{
    memset(count, 0, M * sizeof(*count));
    while (n > 0) {
        size_t i = first + ft_random_next(&random_state) % (M - first);

        if (i == dead)
            continue;
        count[i]++;
        n--;
    }
}

static struct ft_choices drawn(uint64_t all, uint64_t narrow, size_t dead, uint64_t count[2][M])
{
    throw_flows(all, 0, dead, count[0]);
    throw_flows(narrow, 1, dead, count[1]);
    return (struct ft_choices){count[0], count[1], alike};
}

START_TEST(without_narrow_flows_it_is_the_same)
{
    const uint64_t all[M] = {7, 5, 3, 1, 2}, none[M] = {0};
    const struct ft_link_set links = {.m = M};
    struct ft_chance *chance = ft_chance_new();
    struct ft_by_chance of = ft_by_chance_of(chance, all, &links);

    for (int i = 0; i < 2; i++) {
        const struct ft_choices choices = {all, i ? none : NULL, alike};
        struct ft_by_chance among = ft_by_chance_among(chance, &choices, &links);

        ck_assert(among.judged && of.judged);
        ck_assert_double_eq(among.p, of.p);
        ck_assert_double_eq(among.fim_expected, of.fim_expected);
    }
    ft_chance_free(chance);
}
END_TEST

/* How many have a choice is not known of a link that is like no other. */
START_TEST(one_link_alone_is_no_choice)
{
    const uint64_t none[M] = {0}, narrow[M] = {9, 0, 0, 0, 0};
    const struct ft_choices choices = {none, narrow, alike};
    const struct ft_link_set links = {.m = M};
    struct ft_chance *chance = ft_chance_new();
    struct ft_by_chance among = ft_by_chance_among(chance, &choices, &links);

    ck_assert(!among.judged);
    ck_assert_double_eq(among.p, 1);
    /* All of them are there for certain: (9 - 1.8 + 4 * 1.8) / 1.8 / 5. */
    ck_assert_double_eq_tol(among.fim_expected, 160, 1e-9);
    ft_chance_free(chance);
}
END_TEST

START_TEST(chance_is_no_fault_and_its_fim_is_expected)
{
    enum { TRIALS = 2000 };
    static const uint64_t flows[][2] = {{0, 40}, {20, 20}, {20, 400}, {400, 20}, {400, 400}};
    const struct ft_link_set links = {.m = M};
    struct ft_chance *chance = ft_chance_new();

    random_state.state = 31;
    for (size_t f = 0; f < sizeof(flows) / sizeof(flows[0]); f++) {
        double low = 0, expected = 0, came = 0;

        for (int i = 0; i < TRIALS; i++) {
            uint64_t count[2][M];
            double load[M];
            struct ft_figures figures;
            struct ft_choices choices = drawn(flows[f][0], flows[f][1], NONE, count);
            struct ft_by_chance among = ft_by_chance_among(chance, &choices, &links);

            ck_assert(among.judged);
            low += among.p < 0.05 ? 1.0 / TRIALS : 0;
            expected += among.fim_expected / TRIALS;
            for (int k = 0; k < M; k++)
                load[k] = (double)(count[0][k] + count[1][k]);
            ft_figures_of(load, NULL, M, &figures);
            came += figures.fim / TRIALS;
        }
        printf("%d and %d flows: p < 0.05 in %.3f, FIM %.2f, expected %.2f\n", (int)flows[f][0],
               (int)flows[f][1], low, came, expected);
        /* 0.05, and three standard deviations of 2000 trials. */
        ck_assert_double_le(low, 0.065);
        ck_assert_double_eq_tol(came / expected, 1, 0.04);
    }
    ft_chance_free(chance);
}
END_TEST

START_TEST(a_dead_link_is_a_fault)
{
    const struct ft_link_set links = {.m = M};
    struct ft_chance *chance = ft_chance_new();
    uint64_t count[2][M];

    random_state.state = 32;
    for (size_t dead = 0; dead < M; dead++) {
        struct ft_choices choices = drawn(200, 200, dead, count);

        ck_assert_double_lt(ft_by_chance_among(chance, &choices, &links).p, FT_VERDICT_FAULT_BELOW);
        if (dead == 0)
            continue;
        choices = drawn(0, 200, dead, count);
        ck_assert_double_lt(ft_by_chance_among(chance, &choices, &links).p, FT_VERDICT_FAULT_BELOW);
    }
    ft_chance_free(chance);
}
END_TEST

START_TEST(a_union_compares_links_that_are_alike)
{
    enum { TRIALS = 300, GROUPS = 8 };
    const struct ft_link_set links = {.m = M};
    struct ft_chance *chance = ft_chance_new();
    struct ft_union *u = ft_union_new();

    random_state.state = 33;
    for (int dead = 0; dead < 2; dead++) {
        unsigned low = 0;

        for (int i = 0; i < TRIALS; i++) {
            ft_union_reset(u);
            for (int g = 0; g < GROUPS; g++) {
                uint64_t count[2][M];
                double load[M];
                struct ft_choices choices = drawn(10, 80, dead && g == 3 ? 2 : NONE, count);

                for (int k = 0; k < M; k++)
                    load[k] = (double)(count[0][k] + count[1][k]);
                ck_assert_int_eq(ft_union_add(u, load, count[0], &links, 30), 0);
                ck_assert_int_eq(ft_union_add_narrow(u, &choices, &links), 0);
            }
            low += ft_union_p_value(u, chance) < 0.05;
        }
        /* 15 of 300, with a standard deviation of 4. */
        if (dead)
            ck_assert_uint_ge(low, TRIALS / 2);
        else
            ck_assert_uint_le(low, 28);
    }
    ft_union_free(u);
    ft_chance_free(chance);
}
END_TEST

FT_UNIT_MAIN("narrow", without_narrow_flows_it_is_the_same, one_link_alone_is_no_choice,
             chance_is_no_fault_and_its_fim_is_expected, a_dead_link_is_a_fault,
             a_union_compares_links_that_are_alike)
