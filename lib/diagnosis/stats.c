// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/stats.h"

#include <math.h>
#include <stdlib.h>

#define POLISH_ROUNDS 10

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

double ft_quantile(double *values, size_t count, double share)
{
    double at;
    size_t low;

    if (count == 0)
        return 0;
    qsort(values, count, sizeof(*values), by_value);
    at = share * (double)(count - 1);
    low = (size_t)at;
    if (low + 1 >= count)
        return values[count - 1];
    return values[low] + (at - (double)low) * (values[low + 1] - values[low]);
}

double ft_spread(double *values, size_t count, double centre)
{
    for (size_t i = 0; i < count; i++)
        values[i] = fabs(values[i] - centre);
    return 1.4826 * ft_median(values, count);
}

void ft_stretch(const double *values, size_t count, double bar, double limit, size_t *first,
                size_t *end)
{
    double sum = 0, best = 0;
    size_t from = 0;

    *first = *end = 0;
    for (size_t i = 0; i < count; i++) {
        double above = values[i] - bar;

        above = above > limit ? limit : above < -limit ? -limit : above;
        if (sum <= 0) {
            sum = 0;
            from = i;
        }
        sum += above;
        if (sum > best) {
            best = sum;
            *first = from;
            *end = i + 1;
        }
    }
}

/* Takes the median out of every line of the matrix into its effect; a line's values are step apart,
 * lines skip apart. */
static void sweep(double *values, size_t lines, size_t skip, size_t length, size_t step,
                  double *effect, double *room)
{
    for (size_t i = 0; i < lines; i++) {
        size_t n = 0;
        double median;

        for (size_t k = 0; k < length; k++)
            if (!isnan(values[i * skip + k * step]))
                room[n++] = values[i * skip + k * step];
        median = ft_median(room, n);
        for (size_t k = 0; k < length; k++)
            values[i * skip + k * step] -= median;
        effect[i] += median;
    }
}

static double centre(double *effect, size_t count, double *room)
{
    double median;

    for (size_t i = 0; i < count; i++)
        room[i] = effect[i];
    median = ft_median(room, count);
    for (size_t i = 0; i < count; i++)
        effect[i] -= median;
    return median;
}

double ft_polish(double *values, size_t rows, size_t columns, double *row, double *column,
                 double *room)
{
    double overall = 0;

    for (size_t i = 0; i < rows; i++)
        row[i] = 0;
    for (size_t i = 0; i < columns; i++)
        column[i] = 0;
    for (int round = 0; round < POLISH_ROUNDS; round++) {
        sweep(values, rows, columns, columns, 1, row, room);
        overall += centre(row, rows, room);
        sweep(values, columns, 1, rows, columns, column, room);
        overall += centre(column, columns, room);
    }
    return overall;
}
