// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/singular.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Some six to ten are needed. */
#define SWEEPS_MAX 60
/* Columns are orthogonal when their cosine is below that. */
#define COSINE 1e-14
/* A column that is shorter, as a part of all of the matrix, is nothing but rounding. */
#define ROUNDING 1e-15

static double dot(const double *x, const double *y, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

static void rotate(double *x, double *y, size_t n, double c, double s)
{
    for (size_t i = 0; i < n; i++) {
        double t = x[i];

        x[i] = c * t - s * y[i];
        y[i] = s * t + c * y[i];
    }
}

/* Makes two columns orthogonal; false: they are. least: the square of what is rounding. */
static bool make_orthogonal(double *x, double *y, size_t rows, double *vx, double *vy,
                            size_t columns, double least)
{
    double xx = 0, yy = 0, xy = 0, tau, t, c;

    for (size_t i = 0; i < rows; i++) {
        xx += x[i] * x[i];
        yy += y[i] * y[i];
        xy += x[i] * y[i];
    }
    if (xx <= least || yy <= least || fabs(xy) <= COSINE * sqrt(xx) * sqrt(yy))
        return false;
    tau = (yy - xx) / (2 * xy);
    t = copysign(1, tau) / (fabs(tau) + sqrt(1 + tau * tau));
    c = 1 / sqrt(1 + t * t);
    rotate(x, y, rows, c, c * t);
    rotate(vx, vy, columns, c, c * t);
    return true;
}

static void swap(double *x, double *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double t = x[i];

        x[i] = y[i];
        y[i] = t;
    }
}

static void sort(double *a, size_t rows, size_t columns, double *s, double *v)
{
    for (size_t i = 0; i < columns; i++)
        for (size_t k = i + 1; k < columns; k++)
            if (s[k] > s[i]) {
                swap(&s[i], &s[k], 1);
                swap(&a[i * rows], &a[k * rows], rows);
                swap(&v[i * columns], &v[k * columns], columns);
            }
}

int ft_singular(double *a, size_t rows, size_t columns, double *s, double *v)
{
    double least = ROUNDING * ROUNDING * dot(a, a, rows * columns);
    bool turned = true;

    for (size_t i = 0; i < rows * columns; i++)
        if (!isfinite(a[i]))
            return -EDOM;
    memset(v, 0, columns * columns * sizeof(*v));
    for (size_t i = 0; i < columns; i++)
        v[i * columns + i] = 1;
    for (int sweep = 0; turned && sweep < SWEEPS_MAX; sweep++) {
        turned = false;
        for (size_t i = 0; i < columns; i++)
            for (size_t k = i + 1; k < columns; k++)
                turned |= make_orthogonal(&a[i * rows], &a[k * rows], rows, &v[i * columns],
                                          &v[k * columns], columns, least);
    }
    for (size_t i = 0; i < columns; i++)
        s[i] = sqrt(dot(&a[i * rows], &a[i * rows], rows));
    sort(a, rows, columns, s, v);
    return turned ? -EDOM : 0;
}
