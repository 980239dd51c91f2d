// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/fabric/chance.h"
#include "lib/fabric/metrics.h"
#include "lib/fabric/weights.h"
#include "tests/unit/unit.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The known answers are given to 4 digits behind the point at most. */
static void near(double got, double want)
{
    ck_assert_double_eq_tol(got, want, 0.00005 + 1e-12);
}

static void relatively_near(double got, double want, double tolerance)
{
    ck_assert_msg(fabs(got - want) <= tolerance * fabs(want), "%.17g instead of %.17g", got, want);
}

START_TEST(gives_the_known_figures)
{
    static const struct {
        uint64_t load[8];
        size_t m;
        double fim, max_over_mean, cov, jain, effective, chi_square;
    } known[] = {
        {{4, 4, 4, 4}, 4, 0, 1, 0, 1, 4, 0},
        {{16, 0, 0, 0}, 4, 150, 4, 1.7321, 0.25, 1, 48},
        {{8, 4, 4, 0}, 4, 50, 2, 0.7071, 0.6667, 2.8284, 8},
        {{7, 5, 3, 1}, 4, 50, 1.75, 0.5590, 0.7619, 3.3613, 5},
        {{3, 2, 2, 1, 0, 4, 2, 2}, 8, 37.5, 2, 0.5590, 0.7619, 6.5107, 5},
        {{10, 12, 9, 11, 8, 14, 10, 6}, 8, 17.5, 1.4, 0.2291, 0.9501, 7.7880, 4.2},
    };

    for (size_t i = 0; i < COUNT(known); i++) {
        struct ft_figures f;
        double load[8];

        for (size_t k = 0; k < known[i].m; k++)
            load[k] = (double)known[i].load[k];
        ft_figures_of(load, NULL, known[i].m, &f);
        ck_assert(f.some);
        near(f.fim, known[i].fim);
        near(f.max_over_mean, known[i].max_over_mean);
        near(f.cov, known[i].cov);
        near(f.jain, known[i].jain);
        near(f.effective_links, known[i].effective);
        near(ft_chi_square(known[i].load, known[i].m), known[i].chi_square);
    }
}
END_TEST

START_TEST(gives_nothing_for_no_load)
{
    struct ft_figures f = {.some = true, .fim = 3};
    const double none[3] = {0, 0, 0}, one[1] = {7};

    ft_figures_of(none, NULL, 3, &f);
    ck_assert(!f.some);
    ck_assert_double_eq(f.fim, 0);
    ft_figures_of(one, NULL, 1, &f);
    ck_assert(f.some);
    near(f.fim, 0);
    near(f.effective_links, 1);
}
END_TEST

START_TEST(weighs_links_by_their_speed)
{
    const uint64_t speeds[4] = {400, 400, 100, 100}, unknown[4] = {400, 400, 100, 0};
    const double load[4] = {8, 8, 2, 2};
    struct ft_figures f;

    ft_figures_of(load, speeds, 4, &f);
    near(f.fim, 0);
    near(f.effective_links, 4);
    ft_figures_of(load, unknown, 4, &f);
    near(f.fim, 60);
}
END_TEST

START_TEST(expects_the_known_fim_by_chance)
{
    static const struct {
        uint64_t n, m;
        double fim;
    } known[] = {{8, 8, 68.722},  {16, 16, 71.215}, {16, 8, 50.600},  {32, 8, 36.536},
                 {64, 8, 26.109}, {64, 16, 37.829}, {128, 8, 18.560}, {256, 16, 19.213},
                 {16, 4, 33.780}, {8, 2, 27.344}};

    for (size_t i = 0; i < COUNT(known); i++)
        ck_assert_double_eq_tol(ft_fim_expected(known[i].n, known[i].m), known[i].fim, 0.0005);
    /* One flow on two links: always 1 and 0. */
    near(ft_fim_expected(1, 2), 100);
    near(ft_fim_expected(0, 8), 0);
    near(ft_fim_expected(8, 1), 0);
    ck_assert_double_gt(ft_fim_expected(1000000, 32), 0);
}
END_TEST

/* Values of an independent computation with 30 digits. */
START_TEST(gives_the_known_tails_of_chi_square)
{
    static const struct {
        double x, dof, q;
    } known[] = {
        {3.841458820694124, 1, 0.0500000000000001},
        {15.50731305586545, 8, 0.05},
        {48, 3, 2.12948095360334e-10},
        {1, 3, 0.801251956901201},
        {5, 3, 0.171797144296733},
        {4.2, 7, 0.756474730737708},
        {0.001, 1, 0.97477287936996},
        {1000, 1000, 0.49405285382924},
        {1200, 1000, 1.22559423306229e-5},
        {900, 1000, 0.98928276190871},
        {31744, 31744, 0.498944463791492},
        {32500, 31744, 0.00144347544448223},
        {500, 10, 4.41473609991373e-101},
        {2.5, 7.5, 0.946836846987701},
    };

    for (size_t i = 0; i < COUNT(known); i++)
        relatively_near(ft_chi_square_tail(known[i].x, known[i].dof), known[i].q, 1e-9);
    /* Two degrees: an exponential. */
    for (double x = 0.1; x < 200; x *= 1.3)
        relatively_near(ft_chi_square_tail(x, 2), exp(-x / 2), 1e-12);
    near(ft_chi_square_tail(0, 3), 1);
    near(ft_chi_square_tail(-1, 3), 1);
    near(ft_chi_square_tail(1e6, 3), 0);
}
END_TEST

START_TEST(gives_exact_p_values_where_flows_are_few)
{
    static const struct {
        uint64_t count[8];
        size_t m;
        double p;
    } known[] = {
        {{16, 0, 0, 0}, 4, 9.31322574615479e-10},
        {{7, 5, 3, 1}, 4, 0.182892510667443},
        {{8, 4, 4, 0}, 4, 0.0433452893048525},
        {{9, 1, 5, 3}, 4, 0.0507022708188742},
        {{3, 2, 2, 1, 0, 4, 2, 2}, 8, 0.732218090969127},
        {{4, 4, 4, 4}, 4, 1},
        {{2, 0}, 2, 0.5},
        {{1, 1, 0}, 3, 1},
        {{1, 0, 0}, 3, 1},
    };
    struct ft_chance *chance = ft_chance_new();
    const uint64_t none[2] = {0, 0}, all_on_one[4] = {16, 0, 0, 0}, one[1] = {9};

    for (size_t i = 0; i < COUNT(known); i++)
        relatively_near(ft_p_value(chance, known[i].count, known[i].m), known[i].p, 1e-9);
    ck_assert_double_lt(ft_p_value(chance, all_on_one, 4), 1e-6);
    ck_assert_double_eq(ft_p_value(chance, none, 2), 1);
    ck_assert_double_eq(ft_p_value(chance, one, 1), 1);
    ft_chance_free(chance);
}
END_TEST

START_TEST(uses_chi_square_from_5_flows_a_link)
{
    const uint64_t count[8] = {10, 12, 9, 11, 8, 14, 10, 6};
    struct ft_chance *chance = ft_chance_new();

    relatively_near(ft_p_value(chance, count, 8), 0.756474730737708, 1e-9);
    ft_chance_free(chance);
}
END_TEST

/* Another generator than the code's. */
static uint32_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 32);
}

/* Throws n flows on m links and returns the pairs, filling count. */
static uint64_t throw_once(uint64_t *state, uint64_t n, uint64_t m, uint64_t *count)
{
    uint64_t pairs = 0;

    memset(count, 0, m * sizeof(*count));
    for (uint64_t i = 0; i < n; i++)
        pairs += count[next_random(state) % m]++;
    return pairs;
}

/* Tables agree with plain throwing, within 5 standard errors at every point. */
static void compare_with_throwing(struct ft_chance *chance, uint64_t n, uint64_t m, bool exact)
{
    enum { THROWS = 40000 };
    const struct ft_tail *tail = ft_chance_tail(chance, n, m);
    static uint64_t count[64];
    static uint32_t at_least[1000];
    uint64_t state = 88172645463325252;

    ck_assert_ptr_nonnull(tail);
    ck_assert(tail->exact == exact);
    memset(at_least, 0, sizeof(at_least));
    for (int i = 0; i < THROWS; i++) {
        uint64_t pairs = throw_once(&state, n, m, count);

        ck_assert_uint_ge(pairs, tail->least);
        for (uint64_t k = 0; k <= pairs - tail->least; k++)
            at_least[k]++;
    }
    for (uint32_t k = 0; k < tail->width && k < COUNT(at_least); k++) {
        double p = tail->tail[k];
        double error = sqrt((p * (1 - p) + 1e-4) * (1.0 / THROWS + (exact ? 0 : 1.0 / FT_DRAWS)));

        ck_assert_msg(fabs((double)at_least[k] / THROWS - p) < 5 * error,
                      "n %u, m %u, pairs %u: %g, thrown %g", (unsigned)n, (unsigned)m,
                      (unsigned)(tail->least + k), p, (double)at_least[k] / THROWS);
    }
}

START_TEST(agrees_with_throwing_flows)
{
    struct ft_chance *chance = ft_chance_new();

    compare_with_throwing(chance, 16, 4, true);
    compare_with_throwing(chance, 31, 8, true);
    compare_with_throwing(chance, 40, 16, true);
    compare_with_throwing(chance, 70, 16, false);
    compare_with_throwing(chance, 100, 32, false);
    compare_with_throwing(chance, 250, 32, false);
    ft_chance_free(chance);
}
END_TEST

/* Exact values of the same distribution, from an independent computation. */
START_TEST(draws_agree_with_the_exact_method)
{
    static const struct {
        uint64_t pairs;
        double p;
    } known[] = {{140, 0.83864258322}, {150, 0.49871496762}, {160, 0.21337510734},
                 {170, 0.07241173642}, {180, 0.02121861026}, {195, 0.00290849473}};
    struct ft_chance *chance = ft_chance_new();
    const struct ft_tail *tail = ft_chance_tail(chance, 70, 16);

    ck_assert(!tail->exact);
    for (size_t i = 0; i < COUNT(known); i++) {
        double got = tail->tail[known[i].pairs - tail->least];

        ck_assert_double_le(fabs(got - known[i].p),
                            4 * sqrt(known[i].p * (1 - known[i].p) / FT_DRAWS));
    }
    ft_chance_free(chance);
}
END_TEST

/* Against the exact distribution: never below it, and not far above. */
START_TEST(bounds_what_draws_do_not_reach)
{
    struct ft_chance *chance = ft_chance_new();
    const struct ft_tail *tail = ft_chance_tail(chance, 32, 16);
    unsigned compared = 0;

    ck_assert(tail->exact);
    for (uint64_t q = 60; q < tail->width; q += 20) {
        double exact = tail->tail[q], bound = ft_chance_bound(32, 16, q);

        if (exact < 1e-30)
            break;
        /* Once it is small enough, it is not made smaller. */
        ck_assert_msg(bound >= exact && (bound < 1000 * exact || bound < 1e-9),
                      "%g for %g at %" PRIu64, bound, exact, q);
        compared++;
    }
    ck_assert_uint_gt(compared, 5);
    ft_chance_free(chance);
}
END_TEST

START_TEST(a_wide_group_on_few_links_is_no_luck)
{
    struct ft_chance *chance = ft_chance_new();
    uint64_t one[32] = {64}, half[32], even[32];

    for (int i = 0; i < 32; i++) {
        half[i] = i % 2 ? 0 : 6 + i % 4 / 2;
        even[i] = 3;
    }
    ck_assert_double_lt(ft_p_value(chance, one, 32), 1e-9);
    ck_assert_double_lt(ft_p_value(chance, half, 32), 1e-6);
    ck_assert_double_gt(ft_p_value(chance, even, 32), 0.999);
    ft_chance_free(chance);
}
END_TEST

START_TEST(does_not_depend_on_what_was_asked_before)
{
    struct ft_chance *a = ft_chance_new(), *b = ft_chance_new();
    uint64_t count[300] = {0}, state = 99;

    for (uint64_t m = 2; m < 60; m++)
        ck_assert_ptr_nonnull(ft_chance_tail(a, 4 * m, m));
    throw_once(&state, 100, 32, count);
    ck_assert_double_eq(ft_p_value(a, count, 32), ft_p_value(b, count, 32));
    throw_once(&state, 155, 32, count);
    ck_assert_double_eq(ft_p_value(a, count, 32), ft_p_value(b, count, 32));
    throw_once(&state, 700, 300, count);
    ck_assert_double_eq(ft_p_value(a, count, 300), ft_p_value(b, count, 300));
    ft_chance_free(a);
    ft_chance_free(b);
}
END_TEST

START_TEST(is_fast_with_its_tables)
{
    enum { GROUPS = 1024, LINKS = 32 };
    static uint64_t count[GROUPS][LINKS];
    struct ft_chance *chance = ft_chance_new();
    double seconds[2], sum[2] = {0, 0};
    uint64_t state = 4711;

    for (int g = 0; g < GROUPS; g++)
        throw_once(&state, 80 + (uint64_t)g % 41, LINKS, count[g]);
    for (int i = 0; i < 2; i++) {
        struct ft_mono start = ft_mono_now();

        for (int g = 0; g < GROUPS; g++)
            sum[i] += ft_p_value(chance, count[g], LINKS);
        seconds[i] = (double)ft_mono_since_ns(ft_mono_now(), start) / 1e9;
    }
    printf("p of 1024 groups of 32 links, 80 to 120 flows: %.4f s first, %.6f s then\n", seconds[0],
           seconds[1]);
    ck_assert_double_eq(sum[0], sum[1]);
    /* Uniform p on average, if the flows are thrown evenly. */
    ck_assert_double_eq_tol(sum[0] / GROUPS, 0.5, 0.05);
    ck_assert_double_lt(seconds[1], 0.3);
    ft_chance_free(chance);
}
END_TEST

static void add_counts(struct ft_union *u, const uint64_t *count, size_t m)
{
    double load[64];
    uint64_t n = 0;

    for (size_t i = 0; i < m; i++) {
        load[i] = (double)count[i];
        n += count[i];
    }
    ck_assert_int_eq(
        ft_union_add(u, load, count, &(struct ft_link_set){.m = m}, ft_fim_expected(n, m)), 0);
}

START_TEST(unites_groups_each_by_its_own_mean)
{
    const uint64_t busy[4] = {160, 0, 0, 0}, even[2] = {3, 3}, idle[4] = {0}, single[1] = {5};
    struct ft_union *u = ft_union_new();
    struct ft_figures f;

    add_counts(u, busy, 4);
    add_counts(u, even, 2);
    add_counts(u, idle, 4);
    add_counts(u, single, 1);
    ck_assert_uint_eq(ft_union_idle(u), 1);
    ck_assert_uint_eq(ft_union_links(u), 6);
    ft_union_figures(u, &f);
    /* 4 0 0 0 1 1 around 1: away by 6 over 6 links. */
    near(f.fim, 100);
    near(f.max_over_mean, 4);
    near(f.cov, sqrt(2));
    near(ft_union_fim_expected(u), (4 * ft_fim_expected(160, 4) + 2 * ft_fim_expected(6, 2)) / 6);
    ft_union_reset(u);
    ck_assert_uint_eq(ft_union_links(u), 0);
    ft_union_figures(u, &f);
    ck_assert(!f.some);
    ck_assert_double_eq(ft_union_fim_expected(u), 0);
    ft_union_free(u);
}
END_TEST

START_TEST(judges_a_union_by_all_its_groups)
{
    const uint64_t dense[4] = {30, 26, 19, 25}, sparse[4] = {7, 5, 3, 1}, bad[4] = {16, 0, 0, 0};
    const uint64_t lone[4] = {1, 0, 0, 0};
    struct ft_chance *chance = ft_chance_new();
    struct ft_union *u = ft_union_new();
    double x;

    ck_assert_double_eq(ft_union_p_value(u, chance), 1);
    ck_assert(!ft_union_is_judged(u));
    add_counts(u, lone, 4);
    ck_assert_double_eq(ft_union_p_value(u, chance), 1);
    ck_assert(ft_union_is_judged(u));
    ft_union_reset(u);
    add_counts(u, dense, 4);
    add_counts(u, dense, 4);
    x = 2 * ft_chi_square(dense, 4);
    relatively_near(ft_union_p_value(u, chance), ft_chi_square_tail(x, 6), 1e-12);
    ft_union_reset(u);
    /* One group alone is what it is, by draws. */
    add_counts(u, sparse, 4);
    ck_assert_double_eq_tol(ft_union_p_value(u, chance), 0.1828925, 0.011);
    add_counts(u, sparse, 4);
    add_counts(u, bad, 4);
    add_counts(u, dense, 4);
    /* Four groups, one of them impossible. */
    ck_assert_double_lt(ft_union_p_value(u, chance), 0.001);
    ft_union_free(u);
    ft_chance_free(chance);
}
END_TEST

/* p of what chance throws is uniform, whichever method a union of that size takes. */
static double mean_p(struct ft_chance *chance, size_t groups, uint64_t flows, size_t links,
                     double *below_5_percent)
{
    enum { TRIALS = 60 };
    struct ft_union *u = ft_union_new();
    uint64_t count[64], state = 31337;
    double sum = 0;

    *below_5_percent = 0;
    for (int i = 0; i < TRIALS; i++) {
        double p;

        ft_union_reset(u);
        for (size_t g = 0; g < groups; g++) {
            throw_once(&state, flows + g % 3, links, count);
            add_counts(u, count, links);
        }
        p = ft_union_p_value(u, chance);
        sum += p / TRIALS;
        *below_5_percent += p < 0.05 ? 1.0 / TRIALS : 0;
    }
    ft_union_free(u);
    return sum;
}

START_TEST(union_p_is_uniform_under_chance)
{
    struct ft_chance *chance = ft_chance_new();
    static const size_t groups[] = {2, 16, 64, 65, 500};

    for (size_t i = 0; i < COUNT(groups); i++) {
        double low, mean = mean_p(chance, groups[i], 12, 4, &low);

        /* 3.5 standard errors of 60 uniform values; discrete ones lie a little higher. */
        ck_assert_msg(fabs(mean - 0.5) < 0.14, "%zu groups: mean p %g", groups[i], mean);
        ck_assert_msg(low < 0.17, "%zu groups: %g below 0.05", groups[i], low);
    }
    ft_chance_free(chance);
}
END_TEST

START_TEST(gives_wilson_intervals)
{
    double lo, hi;

    ft_wilson(0, 0, &lo, &hi);
    near(lo, 0);
    near(hi, 1);
    ft_wilson(8, 10, &lo, &hi);
    near(lo, 0.4902);
    near(hi, 0.9433);
    ft_wilson(10, 10, &lo, &hi);
    near(lo, 0.7225);
    near(hi, 1);
    ft_wilson(0, 10, &lo, &hi);
    near(lo, 0);
    near(hi, 0.2775);
}
END_TEST

/* The sum of a tail is the mean number of pairs, n (n - 1) / 2m: for each number of flows for which
 * there is a table, the first and the last that are drawn among them, and none beyond. */
START_TEST(each_table_has_the_mean_of_its_pairs)
{
    static const uint64_t links[] = {2, 3, 8, 16};

    for (size_t k = 0; k < COUNT(links); k++) {
        uint64_t m = links[k], limit = ft_chance_limit(m);
        struct ft_chance *chance = ft_chance_new();

        ck_assert_ptr_null(ft_chance_tail(chance, 0, m));
        ck_assert_ptr_null(ft_chance_tail(chance, limit + 1, m));
        for (uint64_t n = 1; n <= limit; n++) {
            const struct ft_tail *tail = ft_chance_tail(chance, n, m);
            double all = (double)n * (double)(n - 1) / 2, p = 1 / (double)m, mean, sigma;

            ck_assert_ptr_nonnull(tail);
            ck_assert_uint_gt(tail->width, 0);
            mean = (double)tail->least;
            for (uint32_t i = 1; i < tail->width; i++)
                mean += tail->tail[i];
            sigma = tail->exact ? 1e-9 * all : sqrt(all * p * (1 - p) / FT_DRAWS);
            ck_assert_double_eq_tol(mean, all * p, 5 * sigma + 1e-12);
        }
        ft_chance_free(chance);
    }
}
END_TEST

FT_UNIT_MAIN("metrics", gives_the_known_figures, gives_nothing_for_no_load,
             weighs_links_by_their_speed, expects_the_known_fim_by_chance,
             gives_the_known_tails_of_chi_square, gives_exact_p_values_where_flows_are_few,
             uses_chi_square_from_5_flows_a_link, agrees_with_throwing_flows,
             draws_agree_with_the_exact_method, bounds_what_draws_do_not_reach,
             a_wide_group_on_few_links_is_no_luck, does_not_depend_on_what_was_asked_before,
             is_fast_with_its_tables, unites_groups_each_by_its_own_mean,
             judges_a_union_by_all_its_groups, union_p_is_uniform_under_chance,
             gives_wilson_intervals, each_table_has_the_mean_of_its_pairs)
