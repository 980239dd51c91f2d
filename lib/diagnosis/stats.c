// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/stats.h"

#include <math.h>
#include <stdlib.h>

#define PERIOD_MAX 64
#define STEADY     0.5  /* change of the sums of a period, as a share of their median */
#define SORTED     16   /* values: fewer are sorted */
#define ROUNDS     64   /* of a search, which some order of values would make long */
#define RARE       0.15 /* of the changes: the largest are left out */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double middle_of(double a, double b, double c)
{
    double low = a < b ? a : b, high = a < b ? b : a;

    return c < low ? low : c > high ? high : c;
}

/* Puts what is smaller than some value before what is larger; the last of the first part. */
static size_t divide(double *values, size_t low, size_t high)
{
    double pivot = middle_of(values[low], values[low + (high - low) / 2], values[high]), kept;
    size_t i = low, j = high;

    for (;; i++, j--) {
        while (values[i] < pivot)
            i++;
        while (values[j] > pivot)
            j--;
        if (i >= j)
            return j;
        kept = values[i];
        values[i] = values[j];
        values[j] = kept;
    }
}

static void sort_few(double *values, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        double value = values[i];
        size_t at = i;

        for (; at > 0 && values[at - 1] > value; at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
}

double ft_nth(double *values, size_t count, size_t n)
{
    size_t low = 0, high = count - 1;

    for (unsigned round = 0; high - low >= SORTED && round < ROUNDS; round++) {
        size_t last = divide(values, low, high);

        if (n <= last)
            high = last;
        else
            low = last + 1;
    }
    if (high - low < SORTED)
        sort_few(values + low, high - low + 1);
    else
        qsort(values + low, high - low + 1, sizeof(*values), by_value);
    return values[n];
}

double ft_quantile(double *values, size_t count, double share)
{
    double at, value, next = INFINITY;
    size_t low;

    if (count == 0)
        return 0;
    at = share * (double)(count - 1);
    low = (size_t)at;
    if (low + 1 >= count)
        return ft_nth(values, count, count - 1);
    value = ft_nth(values, count, low);
    for (size_t i = low + 1; i < count; i++)
        next = values[i] < next ? values[i] : next;
    return value + (at - (double)low) * (next - value);
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

/* Returns their number. */
static size_t sum_blocks(const double *values, size_t count, size_t period, double *sums)
{
    size_t n = count / period;

    for (size_t b = 0; b < n; b++) {
        sums[b] = 0;
        for (size_t k = 0; k < period; k++)
            sums[b] += values[b * period + k];
    }
    return n;
}

/* From one block to the next, without the largest: a series that changes once has the blocks that
 * it had before. */
static double change_of(const double *values, size_t count, size_t period, double *room)
{
    size_t n = sum_blocks(values, count, period, room);

    for (size_t b = 1; b < n; b++)
        room[b - 1] = fabs(room[b] - room[b - 1]);
    return n > 1 ? ft_quantile(room, n - 1, 1 - RARE) : 0;
}

size_t ft_period(const double *values, size_t count, size_t blocks_min, double *room)
{
    double least = INFINITY;
    size_t best = 1;

    for (size_t period = 1; period <= PERIOD_MAX && count / period >= blocks_min; period++) {
        double median = ft_median(room, sum_blocks(values, count, period, room));
        double change = median > 0 ? change_of(values, count, period, room) / median : INFINITY;

        if (change >= least)
            continue;
        least = change;
        best = period;
        if (change < STEADY)
            break;
    }
    return best;
}
