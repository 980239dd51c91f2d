// SPDX-License-Identifier: Apache-2.0
/* Which rank leaves collectives later than the others. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/task.h"
#include "lib/diagnosis/series.h"
#include "lib/diagnosis/stats.h"

#define TAIL       0.5
#define PAST_MIN   5 /* collectives */
#define TAIL_RATIO 1.4
#define RELEVANT   0.03 /* of the time between two operations */

typedef double at_fn(const struct ft_matched *m, const struct ft_gathering *group, size_t position);

static double length_at(const struct ft_matched *m, const struct ft_gathering *group,
                        size_t position)
{
    const struct ft_operation *op = &m->op[m->order[group->first + position]];

    return (double)(op->end_ns - op->start_ns);
}

/* After the group began, so that it is exact. */
static double end_at(const struct ft_matched *m, const struct ft_gathering *group, size_t position)
{
    return (double)(int64_t)(m->op[m->order[group->first + position]].end_ns - group->start_ns);
}

/* What members are at in each collective of a series, the median: their lengths or their ends. */
static void find_middles(struct ft_series_survey *s, const struct ft_series *series, at_fn *at)
{
    for (size_t k = 0; k < series->count; k++) {
        const struct ft_gathering *group = &s->m->groups[s->entries[series->first + k].group];

        ft_task_spend(s->m->task, 1 + group->count / 2);
        for (size_t i = 0; i < group->count; i++)
            s->room[i] = at(s->m, group, i);
        s->middle[k] = ft_median(s->room, group->count);
    }
}

/* By how much a member exceeds that, the median over a stretch: its ends by its own clock. */
static double tail_of(struct ft_series_survey *s, const struct ft_series *series, size_t position,
                      size_t first, size_t end, at_fn *at)
{
    const struct ft_matched *m = s->m;
    size_t n = 0;

    ft_task_spend(m->task, 1 + (end - first) / 4);
    for (size_t k = first; k < end; k++) {
        const struct ft_gathering *group = &m->groups[s->entries[series->first + k].group];

        s->values[n++] = at(m, group, position) - s->middle[k];
    }
    return ft_median(s->values, n);
}

/* Of a Broadcast or Reduce some leave before others have entered: who leaves last may have waited
 * for one of these. */
bool ft_series_leave_together(const struct ft_series_survey *s, const struct ft_series *series)
{
    return s->m->kinds[series->function] == FT_OPERATION_TOGETHER;
}

/* The member whose ends, or lengths, exceed the others' by more than `best`: while the series is
 * slow, against its earlier or later self where that is known. */
static uint32_t most_of(struct ft_series_survey *s, const struct ft_series *series, double best,
                        at_fn *at)
{
    size_t before = series->slow.first, after = series->count - series->slow.end;
    uint32_t position = FT_OPERATIONS_NONE;

    find_middles(s, series, at);
    for (uint32_t i = 0; i < series->members; i++) {
        double tail = tail_of(s, series, i, series->slow.first, series->slow.end, at);

        if (before >= PAST_MIN)
            tail -= tail_of(s, series, i, 0, before, at);
        else if (after >= PAST_MIN)
            tail -= tail_of(s, series, i, series->slow.end, series->count, at);
        if (tail > best) {
            best = tail;
            position = i;
        }
    }
    return position;
}

/* Where it was never otherwise, clocks of hosts may differ by as much as it is late: then its
 * operations have to take longer than those of all others, too. */
uint32_t ft_series_late_leaver(struct ft_series_survey *s, const struct ft_series *series)
{
    double best = TAIL * series->usual * (series->slow.ratio - 1);
    uint32_t position = FT_OPERATIONS_NONE;

    if (ft_series_leave_together(s, series) && series->members > 2)
        position = most_of(s, series, best, end_at);
    if (position != FT_OPERATIONS_NONE && series->slow.first < PAST_MIN &&
        series->count - series->slow.end < PAST_MIN &&
        most_of(s, series, best, length_at) != position)
        position = FT_OPERATIONS_NONE;
    return position == FT_OPERATIONS_NONE
               ? position
               : s->m->members[s->m->comm_members[series->comm] + position].process;
}

/* How far ahead of the others a member's clock is, by when it leaves: as the promptest member of
 * its host does, or where it is alone there as it does itself at its best. */
static double ahead_of(struct ft_series_survey *s, const struct ft_series *series, size_t position,
                       const double *leaves)
{
    const struct ft_matched *m = s->m;
    const struct ft_member *member = &m->members[m->comm_members[series->comm]];
    double least = INFINITY;
    size_t of_host = 0;

    for (size_t i = 0; i < series->members; i++) {
        if (i % 64 == 0)
            ft_task_spend(m->task, 1);
        if (m->process[member[i].process].host != m->process[member[position].process].host)
            continue;
        ft_task_spend(m->task, 1 + series->count / 8);
        of_host++;
        memcpy(s->room, leaves + i * series->count, series->count * sizeof(*leaves));
        least = fmin(least, ft_median(s->room, series->count));
    }
    if (of_host > 1)
        return least;
    memcpy(s->room, leaves + position * series->count, series->count * sizeof(*leaves));
    return ft_quantile(s->room, series->count, FT_SLOWNESS_PAST);
}

double ft_series_between(const struct ft_series_survey *s, const struct ft_series *series)
{
    const struct ft_series_entry *e = &s->entries[series->first];

    return (double)(e[series->count - 1].start_ns - e->start_ns) / (double)(series->count - 1);
}

/* Of each member and group, after the median of all members: when it left, and its length. */
static void fill_tails(struct ft_series_survey *s, const struct ft_series *series, double *leaves,
                       double *lengths)
{
    const struct ft_series_entry *e = &s->entries[series->first];

    for (size_t k = 0; k < series->count; k++) {
        const struct ft_gathering *group = &s->m->groups[e[k].group];
        double length, end;

        ft_task_spend(s->m->task, 1 + group->count);
        for (size_t i = 0; i < group->count; i++)
            s->room[i] = length_at(s->m, group, i);
        length = ft_median(s->room, group->count);
        for (size_t i = 0; i < group->count; i++)
            s->room[i] = end_at(s->m, group, i);
        end = ft_median(s->room, group->count);
        for (size_t i = 0; i < group->count; i++) {
            leaves[i * series->count + k] = end_at(s->m, group, i) - end;
            lengths[i * series->count + k] = length_at(s->m, group, i) - length;
        }
    }
}

/* A member whose own operations last longer at their end, though the others need not wait for it
 * afterwards. */
void ft_series_find_tail(struct ft_series_survey *s, struct ft_series *series)
{
    const struct ft_matched *m = s->m;
    double *leaves = calloc(series->count * series->members, sizeof(*leaves));
    double *lengths = calloc(series->count * series->members, sizeof(*lengths));
    struct ft_slowness slow;
    size_t found = 0;

    if (leaves && lengths)
        fill_tails(s, series, leaves, lengths);
    for (size_t i = 0; leaves && lengths && i < series->members && series->members > 2; i++) {
        double ahead = ahead_of(s, series, i, leaves);

        ft_task_spend(s->m->task, 1 + series->count / 4);
        for (size_t k = 0; k < series->count; k++) {
            double tail =
                fmin(leaves[i * series->count + k] - ahead, lengths[i * series->count + k]);

            s->values[k] = log(1 + fmax(tail, 0) / series->usual);
        }
        if (!ft_slowness_of(s->values, series->count, 0, s->room, &slow) ||
            slow.ratio < TAIL_RATIO ||
            (slow.ratio - 1) * series->usual < RELEVANT * ft_series_between(s, series))
            continue;
        found++;
        series->slow = slow;
        series->process = m->members[m->comm_members[series->comm] + i].process;
    }
    free(leaves);
    free(lengths);
    series->is_slow = found == 1;
}
