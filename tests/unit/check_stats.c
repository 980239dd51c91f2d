// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "lib/diagnosis/slowness.h"
#include "lib/diagnosis/stats.h"
#include "tests/unit/unit.h"

#define N 40
#define M 1000

START_TEST(quantiles_and_spread)
{
    double values[] = {5, 1, 3, 2, 4}, even[] = {4, 1, 3, 2}, same[] = {7, 7, 7};

    ck_assert_double_eq_tol(ft_median(values, 5), 3, 1e-12);
    ck_assert_double_eq_tol(ft_quantile(values, 5, 0.25), 2, 1e-12);
    ck_assert_double_eq_tol(ft_spread(values, 5, 3), 1.4826, 1e-12);
    ck_assert_double_eq_tol(ft_median(even, 4), 2.5, 1e-12);
    ck_assert_double_eq_tol(ft_spread(same, 3, 7), 0, 1e-12);
    ck_assert_double_eq_tol(ft_median(same, 0), 0, 1e-12);
}
END_TEST

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* As sorting says, of any order of values, with many alike, ascending, and as a search likes least.
 */
START_TEST(the_nth_is_what_sorting_says)
{
    double values[M], sorted[M];
    uint32_t random = 1;

    for (unsigned round = 0; round < 400; round++) {
        size_t count = 1 + round * 7 % M, n;

        for (size_t i = 0; i < count; i++) {
            random = random * 1664525 + 1013904223;
            values[i] = round % 4 == 0   ? (double)i
                        : round % 4 == 1 ? (double)(random >> 29)
                        : round % 4 == 2 ? (double)(random >> 8)
                                         : (double)(i % 2 ? count - i : i);
            sorted[i] = values[i];
        }
        qsort(sorted, count, sizeof(*sorted), by_size);
        n = (random >> 8) % count;
        ck_assert_double_eq(ft_nth(values, count, n), sorted[n]);
        for (size_t i = 0; i < count; i++)
            ck_assert(i < n ? values[i] <= sorted[n] : values[i] >= sorted[n]);
        qsort(values, count, sizeof(*values), by_size);
        ck_assert_mem_eq(values, sorted, count * sizeof(*values));
    }
}
END_TEST

START_TEST(the_stretch_above_a_bar)
{
    double values[] = {0, 0, 9, 0, 0, 0, 2, 3, 0, 2, 2, 0, 0};
    size_t first, end;

    /* One odd value counts no more than the limit. */
    ft_stretch(values, 13, 1, 1, &first, &end);
    ck_assert_uint_eq(first, 6);
    ck_assert_uint_eq(end, 11);
    ft_stretch(values, 2, 1, 1, &first, &end);
    ck_assert_uint_eq(end, 0);
}
END_TEST

/* Work before every other operation, which takes twice as long from one index on: the series has
 * the blocks that it had before. */
START_TEST(a_change_is_no_longer_period)
{
    double values[M], room[M];

    for (size_t from = 40; from <= 200; from += 8) {
        for (size_t i = 0; i < 240; i++)
            values[i] = (i % 2 ? 0.5 : 42 + (double)(i * 7 % 5)) * (i >= from ? 2.5 : 1);
        ck_assert_uint_eq(ft_period(values, 240, 8, room), 2);
    }
}
END_TEST

/* Around 0, by a fixed pattern of 5 %; above from one index on. */
static void series(double *values, size_t from, double above)
{
    for (size_t i = 0; i < N; i++)
        values[i] = 0.05 * sin(7.0 * (double)i * (double)i) + (i >= from ? log(above) : 0);
}

START_TEST(slow_is_beyond_noise_and_past)
{
    double values[N], room[N];
    struct ft_slowness slow;

    series(values, N, 1);
    ck_assert(!ft_slowness_of(values, N, 0, room, &slow));
    series(values, 25, 1.5);
    ck_assert(ft_slowness_of(values, N, 0, room, &slow));
    ck_assert_uint_eq(slow.first, 25);
    ck_assert_uint_eq(slow.end, N);
    ck_assert_double_eq_tol(slow.ratio, 1.5, 0.05);
    /* Where the like of it vary more, it says less. */
    ck_assert(ft_slowness_of(values, N, 0.1, room, &slow));
    ck_assert(!ft_slowness_of(values, N, 0.4, room, &slow));
    series(values, 25, 1.1);
    ck_assert(!ft_slowness_of(values, N, 0, room, &slow));
    /* What was never faster may be built so, but not by half. */
    series(values, 0, 1.3);
    ck_assert(!ft_slowness_of(values, N, 0, room, &slow));
    series(values, 0, 1.8);
    ck_assert(ft_slowness_of(values, N, 0, room, &slow));
    series(values, 37, 5);
    ck_assert(!ft_slowness_of(values, N, 0, room, &slow));
}
END_TEST

FT_UNIT_MAIN("stats", quantiles_and_spread, the_nth_is_what_sorting_says, the_stretch_above_a_bar,
             a_change_is_no_longer_period, slow_is_beyond_noise_and_past)
