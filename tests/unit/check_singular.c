// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/singular.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "lib/fabric/chance.h"
#include "tests/unit/unit.h"

enum { ROWS = 40, COLUMNS = 12 };

static double a[ROWS * COLUMNS], us[ROWS * COLUMNS], s[COLUMNS], v[COLUMNS * COLUMNS];

static double dot(const double *x, const double *y, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* A is U S V', U S has orthogonal columns as long as the singular values, which fall, V is
 * orthogonal. */
static void check(size_t rows, size_t columns, double error)
{
    memcpy(us, a, sizeof(a));
    ck_assert_int_eq(ft_singular(us, rows, columns, s, v), 0);
    for (size_t i = 0; i < columns; i++) {
        ck_assert(i == 0 || s[i] <= s[i - 1]);
        for (size_t k = 0; k < columns; k++) {
            ck_assert_double_eq_tol(dot(&v[i * columns], &v[k * columns], columns), i == k, 1e-12);
            ck_assert_double_eq_tol(dot(&us[i * rows], &us[k * rows], rows),
                                    i == k ? s[i] * s[i] : 0, error * s[0] * s[0] + 1e-300);
        }
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) {
            double sum = 0;

            for (size_t k = 0; k < columns; k++)
                sum += us[k * rows + r] * v[k * columns + c];
            ck_assert_double_eq_tol(sum, a[c * rows + r], error * s[0] + 1e-300);
        }
}

START_TEST(random_matrices_are_their_product)
{
    struct ft_random random = {11};

    for (size_t columns = 1; columns <= COLUMNS; columns++)
        for (int run = 0; run < 20; run++) {
            for (size_t i = 0; i < ROWS * columns; i++)
                a[i] = (double)(ft_random_next(&random) >> 11) * 0x1p-53 - 0.5;
            check(ROWS, columns, 1e-12);
        }
}
END_TEST

/* (3 0; 4 5) has the singular values 3 sqrt(5) and sqrt(5) (Golub and Van Loan). */
START_TEST(a_worked_example)
{
    const double example[] = {3, 4, 0, 5};

    memcpy(a, example, sizeof(example));
    check(2, 2, 1e-14);
    ck_assert_double_eq_tol(s[0], 3 * sqrt(5), 1e-13);
    ck_assert_double_eq_tol(s[1], sqrt(5), 1e-13);
}
END_TEST

/* The Hilbert matrix of order 8 has the condition 1.5257575538e10; its columns are nearly alike. */
START_TEST(a_hilbert_matrix_has_its_condition)
{
    for (size_t c = 0; c < 8; c++)
        for (size_t r = 0; r < 8; r++)
            a[c * 8 + r] = 1.0 / (double)(r + c + 1);
    check(8, 8, 1e-14);
    ck_assert_double_eq_tol(s[0] / s[7] / 1.5257575538e10, 1, 1e-6);
}
END_TEST

START_TEST(columns_that_depend_on_others_have_no_value)
{
    for (size_t r = 0; r < ROWS; r++) {
        a[r] = 1 + (double)r;
        a[ROWS + r] = 2 * a[r];
        a[2 * ROWS + r] = 1;
        a[3 * ROWS + r] = a[r] - 3;
    }
    check(ROWS, 4, 1e-12);
    ck_assert(s[1] > 1e-3 * s[0] && s[2] < 1e-13 * s[0] && s[3] < 1e-13 * s[0]);
    memset(a, 0, sizeof(a));
    check(ROWS, 4, 1e-12);
    ck_assert(s[0] == 0);
}
END_TEST

START_TEST(what_is_no_number_is_refused)
{
    memset(a, 0, sizeof(a));
    a[3] = NAN;
    ck_assert_int_eq(ft_singular(a, 4, 2, s, v), -EDOM);
    a[3] = INFINITY;
    ck_assert_int_eq(ft_singular(a, 4, 2, s, v), -EDOM);
}
END_TEST

FT_UNIT_MAIN("singular", random_matrices_are_their_product, a_worked_example,
             a_hilbert_matrix_has_its_condition, columns_that_depend_on_others_have_no_value,
             what_is_no_number_is_refused)
