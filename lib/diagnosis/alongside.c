// SPDX-License-Identifier: Apache-2.0
/* What a slow series of collectives is compared with: what others took at the same time. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "lib/base/task.h"
#include "lib/diagnosis/series.h"
#include "lib/diagnosis/stats.h"

#define LIKE       4 /* others that say how much they differ */
#define EVEN       1.1
#define SENDS_MIN  4
#define OTHERS_MAX 64 /* series that one is compared with while it is slow, and pairs */

/* Of a series from one time to another: the median, and how much chance moves that. NAN: none. */
static double middle_of(struct ft_series_survey *s, const struct ft_series *x, uint64_t since_ns,
                        uint64_t until_ns, double *chance)
{
    const struct ft_series_entry *e = &s->entries[x->first];
    /* Where all of them are slow most of the time, so is what is usual of like ones. */
    double middle, usual = fmin(x->usual, x->past);
    size_t n = 0;

    ft_task_spend(s->m->task, 1 + x->count / 8);
    for (size_t k = 0; k < x->count; k++)
        if ((int64_t)(e[k].start_ns - since_ns) >= 0 && (int64_t)(until_ns - e[k].start_ns) >= 0)
            s->room[n++] = log(e[k].ns / usual);
    middle = ft_median(s->room, n);
    *chance = ft_spread(s->room, n, middle) / sqrt((double)n);
    return n ? middle : NAN;
}

/* How long the sends of a pair, of which there are so many, took in a part of the table, over what
 * is usual for it; NAN: not known. Waiting is not in the shorter side. */
static double sends_of(struct ft_series_survey *s, const struct ft_pair *pair, size_t count,
                       const struct ft_series *series)
{
    size_t first = series->slow.first * count / series->count;
    size_t end = series->slow.end * count / series->count, in = 0, n = 0;
    const struct ft_operation *op = s->m->op;
    double usual;

    ft_task_spend(s->m->task, 1 + count / 4);
    for (size_t k = 0; k < count; k++) {
        double send, recv;

        if (pair[k].send == FT_OPERATIONS_NONE || pair[k].recv == FT_OPERATIONS_NONE ||
            op[pair[k].send].end_ns == FT_OPERATIONS_NEVER ||
            op[pair[k].recv].end_ns == FT_OPERATIONS_NEVER)
            continue;
        send = (double)(op[pair[k].send].end_ns - op[pair[k].send].start_ns);
        recv = (double)(op[pair[k].recv].end_ns - op[pair[k].recv].start_ns);
        s->room[n] = log(fmin(send, recv) + 1);
        if (k >= first && k < end)
            s->middle[in++] = s->room[n];
        n++;
    }
    if (in < SENDS_MIN)
        return NAN;
    usual = ft_quantile(s->room, n, FT_SLOWNESS_PAST);
    return ft_median(s->middle, in) - usual;
}

/* Of sends, as far as there are, at the same time; clocks differ, so that this is a part of them.
 */
static size_t add_sends(struct ft_series_survey *s, const struct ft_series *series, double *values)
{
    const struct ft_pair *pair = s->m->pairs;
    size_t count = s->m->pair_count, taken = 0, cells = 0, step;

    for (size_t i = 0; i < count; i++)
        cells += i == 0 || !ft_pair_same(&pair[i], &pair[i - 1]);
    step = cells / OTHERS_MAX + 1;
    for (size_t i = 0, n, cell = 0; i < count; i += n, cell++) {
        double middle = NAN;

        for (n = 1; i + n < count && ft_pair_same(&pair[i], &pair[i + n]);)
            n++;
        if (cell % step == 0)
            middle = sends_of(s, &pair[i], n, series);
        if (!isnan(middle))
            values[taken++] = middle;
    }
    ft_task_spend(s->m->task, 1 + count / 8);
    return taken;
}

bool ft_series_stands_out(struct ft_series_survey *s, struct ft_series *series)
{
    const struct ft_series_entry *e = &s->entries[series->first];
    uint64_t half_ns =
        (uint64_t)ft_series_between(s, series) / 2; /* those of one step begin apart */
    uint64_t since_ns = series->since_ns - half_ns;
    uint64_t until_ns = e[series->slow.end - 1].start_ns + half_ns;
    size_t step = s->series_count / OTHERS_MAX + 1, n = 0;
    double chance = 0, its;

    for (size_t i = 0; i < s->series_count; i += step) {
        const struct ft_series *other = &s->series[i];
        double middle = NAN;

        if (other->comm != series->comm)
            middle = middle_of(s, other, since_ns, until_ns, &its);
        if (!isnan(middle))
            s->values[n++] = middle;
    }
    n += add_sends(s, series, s->values + n);
    series->alone = n == 0;
    /* Few do not say how much they differ: then one of them has to be as fast as ever. */
    if (n > 0 && n < LIKE && ft_nth(s->values, n, 0) >= log(EVEN))
        return false;
    middle_of(s, series, since_ns, until_ns, &chance);
    return n == 0 || log(series->slow.ratio) >= ft_slowness_bar(s->values, n, chance);
}
