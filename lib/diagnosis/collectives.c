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
#include "lib/diagnosis/slowness.h"
#include "lib/diagnosis/stats.h"

#define GROUPS_MIN 10
#define LIKE       4 /* communicators that a reference is made of */
#define EVEN       1.1
#define OTHERS_MAX 64 /* series that one is compared with while it is slow */
#define TAIL       0.5
#define TAIL_RATIO 1.4
#define RELEVANT   0.03  /* of the time between two operations: at one rank */
#define NOTICED    0.005 /* at all */
#define DOUBTFUL   0.5   /* confidence where it may be the ranks' own work */

/* The collectives of one communicator, function and size, in order of time. */
struct series {
    uint32_t comm, function, hosts, members;
    uint64_t bytes;
    size_t first, count; /* of entries */
    double median, usual;
    struct ft_slowness slow;
    bool is_slow;
    uint32_t process; /* that leaves late, NONE */
    uint64_t since_ns;
};

struct entry {
    uint32_t comm, function, group;
    uint64_t bytes, start_ns;
    double ns;
};

struct survey {
    const struct ft_matched *m;
    struct entry *entries;
    struct series *series;
    double *values, *room;
    double *middle;   /* of each collective of a series: when its members left, their median */
    size_t *count_of; /* slow communicators of each process */
    size_t entry_count, series_count;
    bool ahead; /* hosts call ahead: lengths say nothing */
    struct ft_diagnoses *found;
};

static int by_series(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

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
    const struct series *x = a, *y = b;

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

static void collect(struct survey *s)
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
        s->entries[s->entry_count++] = (struct entry){.comm = group->comm,
                                                      .function = first->function,
                                                      .group = (uint32_t)g,
                                                      .bytes = first->bytes,
                                                      .start_ns = group->start_ns,
                                                      .ns = least};
    }
    ft_task_sort(s->m->task, s->entries, s->entry_count, sizeof(*s->entries), by_series);
}

static void make_series(struct survey *s)
{
    for (size_t i = 0, n; i < s->entry_count; i += n) {
        const struct entry *e = &s->entries[i];
        struct series *series;

        for (n = 0; i + n < s->entry_count && e[n].comm == e->comm &&
                    e[n].function == e->function && e[n].bytes == e->bytes;
             n++)
            s->room[n] = e[n].ns;
        if (n < GROUPS_MIN)
            continue;
        series = &s->series[s->series_count++];
        *series = (struct series){.comm = e->comm,
                                  .function = e->function,
                                  .bytes = e->bytes,
                                  .first = i,
                                  .count = n,
                                  .hosts = hosts_of(s->m, e->comm),
                                  .members = (uint32_t)ft_matched_size(s->m, e->comm),
                                  .process = FT_OPERATIONS_NONE};
        ft_task_spend(s->m->task, 1 + n / 2 + series->members / 16);
        series->usual = ft_quantile(s->room, n, FT_SLOWNESS_PAST);
        series->median = ft_median(s->room, n);
    }
    ft_task_sort(s->m->task, s->series, s->series_count, sizeof(*s->series), by_shape);
}

static bool like(const struct series *x, const struct series *y)
{
    return x->function == y->function && x->bytes == y->bytes && x->members == y->members &&
           x->hosts == y->hosts;
}

/* With enough of its like, they say what is usual. */
static void refer(struct survey *s)
{
    for (size_t i = 0, n; i < s->series_count; i += n) {
        for (n = 0; i + n < s->series_count && like(&s->series[i], &s->series[i + n]); n++)
            s->room[n] = s->series[i + n].median;
        for (size_t k = 0; n >= LIKE && k < n; k++)
            s->series[i + k].usual = ft_median(s->room, n);
    }
}

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

static void find_middles(struct survey *s, const struct series *series)
{
    for (size_t k = 0; k < series->count; k++) {
        const struct ft_gathering *group = &s->m->groups[s->entries[series->first + k].group];

        ft_task_spend(s->m->task, 1 + group->count / 2);
        for (size_t i = 0; i < group->count; i++)
            s->room[i] = end_at(s->m, group, i);
        s->middle[k] = ft_median(s->room, group->count);
    }
}

/* How much later than the others a member left, by its clock; median over a stretch of a series. */
static double tail_of(struct survey *s, const struct series *series, size_t position, size_t first,
                      size_t end)
{
    const struct ft_matched *m = s->m;
    size_t n = 0;

    ft_task_spend(m->task, 1 + (end - first) / 4);
    for (size_t k = first; k < end; k++) {
        const struct ft_gathering *group = &m->groups[s->entries[series->first + k].group];

        s->values[n++] = end_at(m, group, position) - s->middle[k];
    }
    return ft_median(s->values, n);
}

/* Of a Broadcast or Reduce some leave before others have entered: who leaves last may have waited
 * for one of these. */
static bool leave_together(const struct survey *s, const struct series *series)
{
    return s->m->kinds[series->function] == FT_OPERATION_TOGETHER;
}

/* The member that leaves late through the stretch: by its own clock against its earlier self, or
 * where it was never otherwise, against the others. */
static uint32_t late_leaver(struct survey *s, const struct series *series)
{
    const struct ft_matched *m = s->m;
    double extra = series->usual * (series->slow.ratio - 1), best = TAIL * extra;
    uint32_t process = FT_OPERATIONS_NONE;

    if (!leave_together(s, series))
        return process;
    find_middles(s, series);
    for (size_t i = 0; i < series->members && series->members > 2; i++) {
        double tail = tail_of(s, series, i, series->slow.first, series->slow.end);
        size_t before = series->slow.first;

        if (before >= GROUPS_MIN / 2)
            tail -= tail_of(s, series, i, 0, before);
        if (tail > best) {
            best = tail;
            process = m->members[m->comm_members[series->comm] + i].process;
        }
    }
    return process;
}

/* How far ahead of the others a member's clock is, by when it leaves: as the promptest member of
 * its host does, or where it is alone there as it does itself at its best. */
static double ahead_of(struct survey *s, const struct series *series, size_t position,
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

static double between(const struct survey *s, const struct series *series)
{
    const struct entry *e = &s->entries[series->first];

    return (double)(e[series->count - 1].start_ns - e->start_ns) / (double)(series->count - 1);
}

/* Of each member and group, after the median of all members: when it left, and its length. */
static void fill_tails(struct survey *s, const struct series *series, double *leaves,
                       double *lengths)
{
    const struct entry *e = &s->entries[series->first];

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
static void find_tail(struct survey *s, struct series *series)
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
            (slow.ratio - 1) * series->usual < RELEVANT * between(s, series))
            continue;
        found++;
        series->slow = slow;
        series->process = m->members[m->comm_members[series->comm] + i].process;
    }
    free(leaves);
    free(lengths);
    series->is_slow = found == 1;
}

static void judge_series(struct survey *s, struct series *series)
{
    const struct entry *e = &s->entries[series->first];

    ft_task_spend(s->m->task, 1 + series->count / 4);
    for (size_t k = 0; k < series->count; k++)
        s->values[k] = log(e[k].ns / series->usual);
    series->is_slow =
        !s->ahead && ft_slowness_of(s->values, series->count, 0, s->room, &series->slow);
    /* One that takes no time to speak of slows nobody down. */
    if (series->is_slow && (series->slow.ratio - 1) * series->usual < NOTICED * between(s, series))
        series->is_slow = false;
    else if (series->is_slow)
        series->process = late_leaver(s, series);
    else if (leave_together(s, series))
        find_tail(s, series);
    if (!series->is_slow)
        return;
    series->since_ns = e[series->slow.first].start_ns;
}

/* Of a series from one time to another: the median, and how much chance moves that. NAN: none. */
static double middle_of(struct survey *s, const struct series *x, uint64_t since_ns,
                        uint64_t until_ns, double *chance)
{
    const struct entry *e = &s->entries[x->first];
    double middle;
    size_t n = 0;

    ft_task_spend(s->m->task, 1 + x->count / 8);
    for (size_t k = 0; k < x->count; k++)
        if ((int64_t)(e[k].start_ns - since_ns) >= 0 && (int64_t)(until_ns - e[k].start_ns) >= 0)
            s->room[n++] = log(e[k].ns / x->usual);
    middle = ft_median(s->room, n);
    *chance = ft_spread(s->room, n, middle) / sqrt((double)n);
    return n ? middle : NAN;
}

/* What slows down all of the network, or all hosts, is the fault of none: whether a series is
 * slower than those of other communicators at the same time, by more than these differ. */
static bool stands_out(struct survey *s, const struct series *series)
{
    const struct entry *e = &s->entries[series->first];
    uint64_t half_ns = (uint64_t)between(s, series) / 2; /* those of one step begin apart */
    uint64_t since_ns = series->since_ns - half_ns;
    uint64_t until_ns = e[series->slow.end - 1].start_ns + half_ns;
    size_t step = s->series_count / OTHERS_MAX + 1, n = 0;
    double chance = 0, its;

    for (size_t i = 0; i < s->series_count; i += step) {
        const struct series *other = &s->series[i];
        double middle = NAN;

        if (other->comm != series->comm)
            middle = middle_of(s, other, since_ns, until_ns, &its);
        if (!isnan(middle))
            s->values[n++] = middle;
    }
    /* Few do not say how much they differ: then one of them has to be as fast as ever. */
    if (n > 0 && n < LIKE && ft_nth(s->values, n, 0) >= log(EVEN))
        return false;
    middle_of(s, series, since_ns, until_ns, &chance);
    return n == 0 || log(series->slow.ratio) >= ft_slowness_bar(s->values, n, chance);
}

/* Those that are slow as others are, and of which nobody in particular leaves late. */
static void leave_common(struct survey *s)
{
    for (size_t i = 0; i < s->series_count; i++) {
        struct series *series = &s->series[i];

        if (series->is_slow && series->process == FT_OPERATIONS_NONE)
            series->is_slow = stands_out(s, series);
    }
}

/* The only process that all slow communicators have in common; NONE. */
static uint32_t in_common(struct survey *s)
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
static size_t slow_of(const struct survey *s, uint32_t process, size_t *all)
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
static void vote(const struct survey *s)
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
static bool explained(const struct survey *s, const struct series *series)
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

static int describe(struct survey *s, const struct series *series, uint32_t process,
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
    if (process == FT_OPERATIONS_NONE && ft_work_may_be_inside(m)) {
        d->confidence = DOUBTFUL;
        ft_texts_add(&d->doubts, "ranks are in operations all of their time: their own work may be "
                                 "in it, and have become longer");
    }
    if (others)
        ft_texts_add(&d->reasons, "%zu more series of operations are slow with it", others);
    return 0;
}

static int describe_all(struct survey *s)
{
    const struct series *worst = NULL;
    size_t slow = 0;
    int rc = 0;

    vote(s);
    for (size_t i = 0; i < s->series_count && rc == 0; i++) {
        struct series *series = &s->series[i];

        if (series->is_slow && series->process != FT_OPERATIONS_NONE && !explained(s, series))
            rc = describe(s, series, series->process,
                          "it leaves them later than the others by as much", 0);
    }
    for (size_t i = 0; i < s->series_count; i++) {
        struct series *series = &s->series[i];

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
    struct survey s = {.m = m, .ahead = ft_called_ahead(m), .found = found};
    size_t room = m->group_count > m->process_count ? m->group_count : m->process_count;
    int rc = -ENOMEM;

    s.entries = calloc(m->group_count + 1, sizeof(*s.entries));
    s.series = calloc(m->group_count + 1, sizeof(*s.series));
    s.values = calloc(room + 1, sizeof(*s.values));
    s.room = calloc(room + 1, sizeof(*s.room));
    s.middle = calloc(m->group_count + 1, sizeof(*s.middle));
    s.count_of = calloc(m->process_count + 1, sizeof(*s.count_of));
    if (s.entries && s.series && s.values && s.room && s.middle && s.count_of) {
        collect(&s);
        make_series(&s);
        refer(&s);
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
