// SPDX-License-Identifier: Apache-2.0
/* Words for imbalances at their thresholds, and the procedure of Benjamini and Hochberg worked out
 * by hand. */
#include "config.h"

#include "lib/fabric/verdict.h"

#include <math.h>

#include "tests/unit/unit.h"

START_TEST(alone)
{
    ck_assert_int_eq(ft_verdict_of(0), FT_VERDICT_FAULT);
    ck_assert_int_eq(ft_verdict_of(0.9 * FT_VERDICT_FAULT_BELOW), FT_VERDICT_FAULT);
    ck_assert_int_eq(ft_verdict_of(FT_VERDICT_FAULT_BELOW), FT_VERDICT_UNEVEN);
    ck_assert_int_eq(ft_verdict_of(0.049), FT_VERDICT_UNEVEN);
    ck_assert_int_eq(ft_verdict_of(FT_VERDICT_UNEVEN_BELOW), FT_VERDICT_EVEN);
    ck_assert_int_eq(ft_verdict_of(1), FT_VERDICT_EVEN);
    ck_assert_int_eq(ft_verdict_of(NAN), FT_VERDICT_EVEN);
}
END_TEST

START_TEST(among_others)
{
    ck_assert_int_eq(ft_verdict_among(0.9 * FT_VERDICT_FAULT_BELOW, 0), FT_VERDICT_FAULT);
    ck_assert_int_eq(ft_verdict_among(FT_VERDICT_FAULT_BELOW, 0), FT_VERDICT_EVEN);
    ck_assert_int_eq(ft_verdict_among(FT_VERDICT_FAULT_BELOW, 0.03), FT_VERDICT_UNEVEN);
    ck_assert_int_eq(ft_verdict_among(0.03, 0.03), FT_VERDICT_UNEVEN);
    ck_assert_int_eq(ft_verdict_among(0.031, 0.03), FT_VERDICT_EVEN);
    ck_assert_int_eq(ft_verdict_among(NAN, 0.03), FT_VERDICT_EVEN);
}
END_TEST

START_TEST(threshold)
{
    /* The third of four may be up to 3/4 of 0.05. */
    double three[] = {0.03, 0.9, 0.01, 0.02};
    /* All may be up to 0.05, though each but the last is over its own share. */
    double all[] = {0.045, 0.04};
    double first[] = {0.2, 0.02};
    double none[] = {0.2, 0.03};
    double limit[] = {FT_VERDICT_UNEVEN_BELOW};
    double equal[] = {0.01, 0.01, 0.01};

    ck_assert_double_eq(ft_verdict_threshold(three, 4), 0.03);
    ck_assert_double_eq(three[0], 0.01);
    ck_assert_double_eq(three[3], 0.9);
    ck_assert_double_eq(ft_verdict_threshold(all, 2), 0.045);
    ck_assert_double_eq(ft_verdict_threshold(first, 2), 0.02);
    ck_assert_double_eq(ft_verdict_threshold(none, 2), 0);
    ck_assert_double_eq(ft_verdict_threshold(limit, 1), 0);
    ck_assert_double_eq(ft_verdict_threshold(equal, 3), 0.01);
    ck_assert_double_eq(ft_verdict_threshold(NULL, 0), 0);
}
END_TEST

START_TEST(names)
{
    ck_assert_str_eq(ft_verdict_name(FT_VERDICT_EVEN), "even");
    ck_assert_str_eq(ft_verdict_name(FT_VERDICT_UNEVEN), "uneven");
    ck_assert_str_eq(ft_verdict_name(FT_VERDICT_FAULT), "fault");
}
END_TEST

FT_UNIT_MAIN("verdict", alone, among_others, threshold, names)
