// SPDX-License-Identifier: Apache-2.0
/*
 * Collectives that are slow: counted from when all ranks had entered, which is their length at the
 * last to enter. Where hosts call ahead it is also what was queued before it, and only who leaves
 * later than the others counts. They are compared with those of communicators of like shape, or
 * with the communicator's own past. Which rank makes one slow shows in who leaves it later than the
 * others, or by the one rank that all slow communicators have in common.
 */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/task.h"
#include "lib/diagnosis/ahead.h"
#include "lib/diagnosis/found.h"
#include "lib/diagnosis/series.h"
#include "lib/diagnosis/slowness.h"
#include "lib/diagnosis/stats.h"

#define LIKE       4     /* communicators that a reference is made of */
#define APART_MAX  512   /* series of one shape that are compared each with those apart from it */
#define NOTICED    0.005 /* at all */
#define FIRST      6     /* collectives that say what was usual where most are slow */
#define SOON_RATIO 1.4   /* which are that much slower, */
#define OFTEN      0.9   /* as good as all of them */
#define DOUBTFUL   0.5   /* confidence where it may be the ranks' own work */
#define ALONE      0.6   /* where nothing is there to compare it with */
#define OVER       3     /* so many that follow are fast again */

static int by_series(const void *a, const void *b)
{
    const struct ft_series_entry *x = a, *y = b;

    if (x->comm != y->comm)
        return x->comm < y->comm ? -1 : 1;
    if (x->function != y->function)
        return x->function < y->function ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static int by_shape(const void *a, const void *b)
{
    const struct ft_series *x = a, *y = b;

    if (x->function != y->function)
        return x->function < y->function ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    if (x->members != y->members)
        return x->members < y->members ? -1 : 1;
    if (x->hosts != y->hosts)
        return x->hosts < y->hosts ? -1 : 1;
    return x->comm < y->comm ? -1 : x->comm > y->comm;
}

static uint32_t hosts_of(const struct ft_matched *m, uint32_t comm)
{
    uint32_t hosts = 0;

    /* Ranks of one host usually follow each other; a count that is too large is one all the same
     * for communicators of like shape. */
    for (size_t i = m->comm_members[comm]; i < m->comm_members[comm + 1]; i++)
        hosts += i == m->comm_members[comm] || m->process[m->members[i].process].host !=
                                                   m->process[m->members[i - 1].process].host;
    return hosts;
}

static void collect(struct ft_series_survey *s)
{
    const struct ft_matched *m = s->m;

    for (size_t g = 0; g < m->group_count; g++) {
        const struct ft_gathering *group = &m->groups[g];
        const struct ft_operation *first = &m->op[m->order[group->first]];
        double least = INFINITY;

        ft_task_spend(m->task, 1 + group->count / 4);
        if (group->unfinished || group->count < 2 || group->count < ft_matched_size(m, group->comm))
            continue;
        for (size_t i = 0; i < group->count; i++)
            least = fmin(least, (double)ft_ahead_length(m, g, i) + 1);
        s->entries[s->entry_count++] = (struct ft_series_entry){.comm = group->comm,
                                                                .function = first->function,
                                                                .group = (uint32_t)g,
                                                                .bytes = first->bytes,
                                                                .start_ns = group->start_ns,
                                                                .ns = least};
    }
    ft_task_sort(s->m->task, s->entries, s->entry_count, sizeof(*s->entries), by_series);
}

static void make_series(struct ft_series_survey *s)
{
    for (size_t i = 0, n; i < s->entry_count; i += n) {
        const struct ft_series_entry *e = &s->entries[i];
        struct ft_series *series;

        for (n = 0; i + n < s->entry_count && e[n].comm == e->comm &&
                    e[n].function == e->function && e[n].bytes == e->bytes;
             n++)
            s->room[n] = e[n].ns;
        if (n < FT_SERIES_MIN)
            continue;
        series = &s->series[s->series_count++];
        *series = (struct ft_series){.comm = e->comm,
                                     .function = e->function,
                                     .bytes = e->bytes,
                                     .first = i,
                                     .count = n,
                                     .hosts = hosts_of(s->m, e->comm),
                                     .members = (uint32_t)ft_matched_size(s->m, e->comm),
                                     .process = FT_OPERATIONS_NONE};
        ft_task_spend(s->m->task, 1 + n / 2 + series->members / 16);
        series->usual = series->past = ft_quantile(s->room, n, FT_SLOWNESS_PAST);
        series->median = ft_median(s->room, n);
    }
    ft_task_sort(s->m->task, s->series, s->series_count, sizeof(*s->series), by_shape);
}

static bool like(const struct ft_series *x, const struct ft_series *y)
{
    return x->function == y->function && x->bytes == y->bytes && x->members == y->members &&
           x->hosts == y->hosts;
}

/* Marks the members of a series; how many are marked so already. */
static size_t mark(struct ft_series_survey *s, const struct ft_series *series, size_t as)
{
    const struct ft_matched *m = s->m;
    size_t marked = 0;

    ft_task_spend(m->task, 1 + series->members / 16);
    for (size_t k = m->comm_members[series->comm]; k < m->comm_members[series->comm + 1]; k++) {
        marked += s->count_of[m->members[k].process] == as;
        s->count_of[m->members[k].process] = as;
    }
    return marked;
}

static bool is_marked(const struct ft_series_survey *s, const struct ft_series *series, size_t as)
{
    const struct ft_matched *m = s->m;

    ft_task_spend(m->task, 1 + series->members / 16);
    for (size_t k = m->comm_members[series->comm]; k < m->comm_members[series->comm + 1]; k++)
        if (s->count_of[m->members[k].process] == as)
            return true;
    return false;
}

/* Communicators of one purpose divide the ranks: those with a rank in common have two, which may
 * happen to be of one shape. Each is compared with those that share none of its ranks. */
static void refer_apart(struct ft_series_survey *s, struct ft_series *series, size_t count)
{
    for (size_t k = 0; k < count && count <= APART_MAX; k++) {
        size_t n = 0;

        mark(s, &series[k], 2 + k);
        for (size_t i = 0; i < count; i++)
            if (i == k || !is_marked(s, &series[i], 2 + k))
                s->room[n++] = series[i].median;
        if (n >= LIKE)
            series[k].usual = ft_median(s->room, n);
    }
}

/* With enough of its like, they say what is usual. */
static void refer(struct ft_series_survey *s)
{
    for (size_t i = 0, n; i < s->series_count; i += n) {
        size_t shared = 0;
        double usual;

        memset(s->count_of, 0, s->m->process_count * sizeof(*s->count_of));
        for (n = 0; i + n < s->series_count && like(&s->series[i], &s->series[i + n]); n++) {
            s->room[n] = s->series[i + n].median;
            shared += mark(s, &s->series[i + n], 1);
        }
        if (n >= LIKE && shared)
            refer_apart(s, &s->series[i], n);
        usual = n >= LIKE && !shared ? ft_median(s->room, n) : 0;
        for (size_t k = 0; usual > 0 && k < n; k++)
            s->series[i + k].usual = usual;
    }
    memset(s->count_of, 0, s->m->process_count * sizeof(*s->count_of));
}

/* Where nothing else is there to compare it with: whether a series became slow soon after it began,
 * so that most of it is slow, and has been since. Its first collectives say what was usual. */
static bool slow_soon(struct ft_series_survey *s, struct ft_series *series)
{
    const struct ft_series_entry *e = &s->entries[series->first];
    double usual, half;
    size_t first;

    if (!s->lone || s->ahead || series->count < 2 * FT_SERIES_MIN)
        return false;
    for (size_t k = 0; k < FIRST; k++)
        s->room[k] = e[k].ns;
    usual = ft_median(s->room, FIRST);
    for (size_t k = 0; k < series->count; k++)
        s->values[k] = log(e[k].ns / usual);
    ft_task_spend(s->m->task, 1 + series->count / 4);
    if (!ft_slowness_of(s->values, series->count, 0, s->room, &series->slow) ||
        series->slow.ratio < SOON_RATIO || series->slow.first < FIRST ||
        series->slow.end + 1 < series->count)
        return false;
    first = series->slow.first;
    half = log(series->slow.ratio) / 2;
    memcpy(s->room, s->values, series->count * sizeof(*s->room));
    if (ft_quantile(s->room, first, 1) > half ||
        ft_quantile(s->room + first, series->slow.end - first, 1 - OFTEN) < half)
        return false;
    series->usual = usual;
    return true;
}

/* With nothing to compare it with, all of the network may have become slow: what is over, and of
 * which nobody left late, may have been another job. */
static bool has_passed(struct ft_series_survey *s, const struct ft_series *series)
{
    return s->lone && series->slow.end + OVER <= series->count &&
           ft_series_late_leaver(s, series) == FT_OPERATIONS_NONE;
}

static void judge_series(struct ft_series_survey *s, struct ft_series *series)
{
    const struct ft_series_entry *e = &s->entries[series->first];

    ft_task_spend(s->m->task, 1 + series->count / 4);
    for (size_t k = 0; k < series->count; k++)
        s->values[k] = log(e[k].ns / series->usual);
    series->is_slow =
        (!s->ahead && ft_slowness_of(s->values, series->count, 0, s->room, &series->slow) &&
         !has_passed(s, series)) ||
        slow_soon(s, series);
    /* One that takes no time to speak of slows nobody down. */
    if (series->is_slow &&
        (series->slow.ratio - 1) * series->usual < NOTICED * ft_series_between(s, series))
        series->is_slow = false;
    else if (series->is_slow)
        series->process = ft_series_late_leaver(s, series);
    else if (ft_series_leave_together(s, series))
        ft_series_find_tail(s, series);
    if (!series->is_slow)
        return;
    series->since_ns = e[series->slow.first].start_ns;
}

/* Those that are slow as others are, and of which nobody in particular leaves late. */
static void leave_common(struct ft_series_survey *s)
{
    for (size_t i = 0; i < s->series_count; i++) {
        struct ft_series *series = &s->series[i];

        if (series->is_slow && series->process == FT_OPERATIONS_NONE)
            series->is_slow = ft_series_stands_out(s, series);
    }
}

/* The only process that all slow communicators have in common; NONE. */
static uint32_t in_common(struct ft_series_survey *s)
{
    const struct ft_matched *m = s->m;
    uint32_t process = FT_OPERATIONS_NONE, last = FT_OPERATIONS_NONE;
    size_t comms = 0;

    for (size_t i = 0; i < s->series_count; i++) {
        bool again = false;

        ft_task_spend(m->task, 1 + i / 64);
        for (size_t k = 0; k < i && !again; k++)
            again = s->series[k].is_slow && s->series[k].comm == s->series[i].comm;
        if (!s->series[i].is_slow || again)
            continue;
        last = s->series[i].comm;
        comms++;
        ft_task_spend(m->task, 1 + ft_matched_size(m, last) / 64);
        for (size_t k = m->comm_members[last]; k < m->comm_members[last + 1]; k++)
            s->count_of[m->members[k].process]++;
    }
    for (uint32_t p = 0; p < m->process_count && comms > 1; p++) {
        if (s->count_of[p] < comms)
            continue;
        if (process != FT_OPERATIONS_NONE)
            return FT_OPERATIONS_NONE;
        process = p;
    }
    return process;
}

/* Slow communicators of a process, and all. */
static size_t slow_of(const struct ft_series_survey *s, uint32_t process, size_t *all)
{
    size_t slow = 0;

    *all = 0;
    ft_task_spend(s->m->task, 1 + s->series_count / 8);
    for (size_t i = 0; i < s->series_count; i++) {
        if (ft_matched_position(s->m, s->series[i].comm, process) == FT_OPERATIONS_NONE)
            continue;
        ++*all;
        slow += s->series[i].is_slow;
    }
    return slow;
}

/* Where a pair is slow and its ends could not be distinguished, the collectives may: those of one
 * end are slow, those of the other are not. */
static void vote(const struct ft_series_survey *s)
{
    for (size_t i = 0; i < s->found->count; i++) {
        struct ft_diagnosis *d = &s->found->items[i];
        size_t from, to, all_from, all_to;

        if (d->syndrome != FT_SYNDROME_COMM_SLOW || d->side != FT_SIDE_ANY ||
            d->peer == FT_OPERATIONS_NONE)
            continue;
        from = slow_of(s, d->process, &all_from);
        to = slow_of(s, d->peer, &all_to);
        if ((from > 0) == (to > 0) || all_from == 0 || all_to == 0)
            continue;
        d->side = from ? FT_SIDE_SENDER : FT_SIDE_RECEIVER;
        if (to) {
            uint32_t sender = d->process;

            d->process = d->peer;
            d->peer = sender;
        }
        d->confidence = 0.85;
        ft_texts_add(&d->reasons,
                     "collectives of rank %u are slow as well, those of rank %u are not",
                     s->m->process[d->process].rank, s->m->process[d->peer].rank);
    }
}

/* What a found culprit explains already. */
static bool explained(const struct ft_series_survey *s, const struct ft_series *series)
{
    ft_task_spend(s->m->task, 1 + s->found->count / 8);
    for (size_t i = 0; i < s->found->count; i++) {
        const struct ft_diagnosis *d = &s->found->items[i];

        if (d->syndrome != FT_SYNDROME_COMM_SLOW)
            continue;
        if ((d->process != FT_OPERATIONS_NONE &&
             ft_matched_position(s->m, series->comm, d->process) != FT_OPERATIONS_NONE) ||
            (d->peer != FT_OPERATIONS_NONE && d->side == FT_SIDE_ANY &&
             ft_matched_position(s->m, series->comm, d->peer) != FT_OPERATIONS_NONE))
            return true;
    }
    return false;
}

static int describe(struct ft_series_survey *s, const struct ft_series *series, uint32_t process,
                    const char *why, size_t others)
{
    struct ft_diagnosis *d = ft_diagnoses_add(s->found, FT_SYNDROME_COMM_SLOW);
    const struct ft_matched *m = s->m;

    if (!d)
        return -ENOMEM;
    d->comm = series->comm;
    d->function = series->function;
    d->process = process;
    d->side = FT_SIDE_ANY;
    d->since_ns = series->since_ns;
    d->slowdown = series->slow.ratio;
    d->confidence = process == FT_OPERATIONS_NONE ? 0.7 : 0.85;
    ft_texts_add(
        &d->reasons,
        "%s of communicator %s takes %.2f times as long as usual once all have entered, in "
        "%zu operations",
        ft_operations_function(m->ops, d->function), ft_operations_comm(m->ops, d->comm),
        d->slowdown, series->slow.end - series->slow.first);
    if (process == FT_OPERATIONS_NONE)
        ft_texts_add(&d->doubts, "all ranks leave together: which of them is slow does not show");
    else
        ft_texts_add(&d->reasons, "%s", why);
    if (process == FT_OPERATIONS_NONE && series->alone) {
        d->confidence = ALONE;
        ft_texts_add(&d->doubts,
                     "nothing else was sent at the same time to compare it with: all of "
                     "the network may have become slow");
    }
    if (process == FT_OPERATIONS_NONE && ft_work_may_be_inside(m)) {
        d->confidence = DOUBTFUL;
        ft_texts_add(&d->doubts, "ranks are in operations all of their time: their own work may be "
                                 "in it, and have become longer");
    }
    if (others)
        ft_texts_add(&d->reasons, "%zu more series of operations are slow with it", others);
    return 0;
}

static int describe_all(struct ft_series_survey *s)
{
    const struct ft_series *worst = NULL;
    size_t slow = 0;
    int rc = 0;

    vote(s);
    for (size_t i = 0; i < s->series_count && rc == 0; i++) {
        struct ft_series *series = &s->series[i];

        if (series->is_slow && series->process != FT_OPERATIONS_NONE && !explained(s, series))
            rc = describe(s, series, series->process,
                          "it leaves them later than the others by as much", 0);
    }
    for (size_t i = 0; i < s->series_count; i++) {
        struct ft_series *series = &s->series[i];

        series->is_slow = series->is_slow && !explained(s, series);
        slow += series->is_slow;
        if (series->is_slow && (!worst || worst->slow.ratio < series->slow.ratio))
            worst = series;
    }
    if (rc || !worst)
        return rc;
    return describe(s, worst, in_common(s),
                    "it is the one rank that all slow communicators have in common", slow - 1);
}

int ft_find_slow_groups(const struct ft_matched *m, struct ft_diagnoses *found)
{
    struct ft_series_survey s = {
        .m = m, .ahead = ft_called_ahead(m), .lone = m->pair_count == 0, .found = found};
    size_t room = m->group_count + m->process_count + m->pair_count;
    int rc = -ENOMEM;

    s.entries = calloc(m->group_count + 1, sizeof(*s.entries));
    s.series = calloc(m->group_count + 1, sizeof(*s.series));
    s.values = calloc(room + 1, sizeof(*s.values));
    s.room = calloc(room + 1, sizeof(*s.room));
    s.middle = calloc(room + 1, sizeof(*s.middle));
    s.count_of = calloc(m->process_count + 1, sizeof(*s.count_of));
    if (s.entries && s.series && s.values && s.room && s.middle && s.count_of) {
        collect(&s);
        make_series(&s);
        refer(&s);
        for (size_t i = 0; i < s.series_count; i++)
            s.lone = s.lone && s.series[i].comm == s.series[0].comm;
        for (size_t i = 0; i < s.series_count; i++)
            judge_series(&s, &s.series[i]);
        leave_common(&s);
        rc = describe_all(&s);
    }
    free(s.entries);
    free(s.series);
    free(s.values);
    free(s.room);
    free(s.middle);
    free(s.count_of);
    return rc;
}
