// SPDX-License-Identifier: Apache-2.0
/* What is kept of the samples of one pair: bins, and spans of them. */
#include "config.h"

#include "lib/diagnosis/pair_rate.h"
#include "tests/unit/unit.h"

#define BYTES 4096

static int64_t bin;

static void put(struct ft_pair_rate *p, int bins, uint64_t samples)
{
    for (int i = 0; i < bins; i++, bin++)
        ft_pair_rate_take(p, bin * FT_PAIR_RATE_BIN_MS, bin * FT_PAIR_RATE_BIN_MS, samples,
                          (double)samples * BYTES);
}

static void choose(struct ft_pair_rate *p)
{
    ft_pair_rate_fold(p, bin * FT_PAIR_RATE_BIN_MS, true);
    ft_pair_rate_choose(p, 1);
}

/* 60 samples, and 200 of them that have another one in the same bin, counted from both sides. */
START_TEST(so_many_samples_are_enough)
{
    static const struct {
        int bins, more_bins;
        uint64_t samples, more;
        bool enough;
    } cases[] = {{12, 0, 5, 0, true},  {11, 1, 5, 4, false}, {15, 0, 4, 0, false},
                 {10, 10, 5, 1, true}, {9, 15, 5, 1, false}, {10, 9, 5, 1, false},
                 {60, 0, 1, 0, false}};

    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct ft_pair_rate p = {.first_bin = 0};

        bin = 1000;
        put(&p, cases[k].bins, cases[k].samples);
        put(&p, cases[k].more_bins, cases[k].more);
        choose(&p);
        ck_assert_msg(ft_pair_rate_suffices(&p) == cases[k].enough, "case %zu", k);
    }
}
END_TEST

/* Samples between two moments are anywhere there, but for the first and the last. */
START_TEST(samples_of_a_time_are_spread_over_it)
{
    struct ft_pair_rate p = {.first_bin = 0};

    bin = 1002;
    ft_pair_rate_take(&p, 1000 * FT_PAIR_RATE_BIN_MS, 1001 * FT_PAIR_RATE_BIN_MS, 10, 10);
    choose(&p);
    ck_assert_uint_eq(p.samples, 10);
    ck_assert_double_eq_tol(p.sum, 10, 1e-6);
    /* In each bin 5, of which 4 are there by half. */
    ck_assert_double_eq_tol(p.products, 2 * (25 - 3), 1e-6);
    p = (struct ft_pair_rate){.first_bin = 0};
    ft_pair_rate_take(&p, 1000 * FT_PAIR_RATE_BIN_MS, 1001 * FT_PAIR_RATE_BIN_MS, 2, 2);
    choose(&p);
    ck_assert_double_eq_tol(p.sum, 2, 1e-6);
    ck_assert_double_eq_tol(p.products, 0, 1e-6);
}
END_TEST

/* Of a pair that is newer than the time that is judged each span counts once. */
START_TEST(a_new_pair_has_fewer_spans)
{
    for (uint32_t spans = 1; spans <= 2 * FT_PAIR_RATE_SPANS; spans++) {
        uint32_t kept = spans < FT_PAIR_RATE_SPANS ? spans : FT_PAIR_RATE_SPANS;
        struct ft_pair_rate p = {.first_bin = 0};

        bin = 1000;
        for (uint32_t i = 0; i < spans; i++) {
            put(&p, 1, 10);
            ft_pair_rate_fold(&p, bin * FT_PAIR_RATE_BIN_MS, true);
        }
        for (uint32_t chosen = 1; chosen <= FT_PAIR_RATE_SPANS; chosen++) {
            ft_pair_rate_choose(&p, chosen);
            ck_assert_uint_eq(p.samples, 10 * (chosen < kept ? chosen : kept));
        }
    }
}
END_TEST

/* What comes out of order by ten seconds counts, what is older or too far ahead does not, nor
 * twice. */
START_TEST(samples_come_out_of_order)
{
    static const struct {
        int64_t at;
        bool counts;
    } cases[] = {{980, true}, {979, false}, {1107, true}, {1108, false}};

    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct ft_pair_rate p = {.first_bin = 0};
        int64_t ms = cases[k].at * FT_PAIR_RATE_BIN_MS;

        bin = 1000;
        put(&p, 1, 3);
        ft_pair_rate_take(&p, ms, ms, 5, 5 * BYTES);
        bin = 1200;
        choose(&p);
        ck_assert_uint_eq(p.samples, cases[k].counts ? 8 : 3);
        ck_assert_double_eq_tol(p.sum, (double)p.samples * BYTES, 1e-6);
        choose(&p);
        ck_assert_uint_eq(p.samples, 0);
        ft_pair_rate_choose(&p, 2);
        ck_assert_uint_eq(p.samples, cases[k].counts ? 8 : 3);
    }
}
END_TEST

FT_UNIT_MAIN("pair_rate_spans", so_many_samples_are_enough, samples_of_a_time_are_spread_over_it,
             a_new_pair_has_fewer_spans, samples_come_out_of_order)
