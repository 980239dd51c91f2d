// SPDX-License-Identifier: Apache-2.0
/*
 * A rank that was late once, and is not any more: it was in no operation for long, then entered one
 * in which others had waited for it that long. Had the table ended before, it would be said to
 * hang.
 *
 * Lengths are compared that one clock measured. What happens again at the same rank is its habit,
 * as are checkpoints that one rank writes; where two ranks were late by about as much, stalls are
 * usual in the job. Of the first rank nothing is said, as it is the one that saves and prints for
 * all, nor where hosts call ahead, nor where others stood still as well (halted.h). Nor of several
 * at once that are not all of their host: others of it only wait, as all of the job may that
 * paused.
 */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/task.h"
#include "lib/diagnosis/ahead.h"
#include "lib/diagnosis/clocks.h"
#include "lib/diagnosis/found.h"
#include "lib/diagnosis/halted.h"
#include "lib/diagnosis/stats.h"
#include "lib/diagnosis/waits.h"

#define LEAST_NS 5e8
#define BRIEF_NS 5e7 /* where it stands out by far, and from a table's length */
#define BY_FAR   10
#define OF_TABLE 0.01
#define STANDOUT 3   /* times what others wait for anybody else, and what it usually takes itself */
#define SOON     0.5 /* of a gap: within it what follows is still late because of it */
#define MOST     0.75 /* of a gap, that others wait: they were at hand */
#define ROWS_MIN 8
#define HABITUAL 0.25 /* of the ranks: where more are late again and again, stalls are usual */

/* How long others waited because a process was in no operation before a row, and in which
 * operation they did. */
struct stall {
    double ns;
    uint32_t felt; /* row */
};

struct search {
    const struct ft_matched *m;
    uint32_t *gap;        /* of a row: the one before which its process was away; NONE */
    struct stall *stalls; /* of such a row */
    uint32_t first;       /* process of the lowest rank */
    bool *excepted;       /* processes of which nothing is said */
    size_t habitual;      /* of these, those that are late again and again */
    double *room;
    uint64_t *clocks; /* of each process, at one moment */
};

static double gap_before(const struct ft_matched *m, size_t row)
{
    return (double)(m->own_ns[row] - m->own_ns[row - 1]);
}

/* What a process was away before lately, of each of its rows. */
static void find_gaps(struct search *s, uint32_t process)
{
    const struct ft_matched *m = s->m;
    size_t first = m->first[process], end = m->first[process + 1];
    uint32_t last = FT_OPERATIONS_NONE;
    double longest = 0;

    ft_task_spend(m->task, 1 + (end - first) / 8);
    for (size_t i = first; i < end; i++) {
        double gap = i > first ? gap_before(m, i) : 0;

        if (last == FT_OPERATIONS_NONE || gap >= longest ||
            (double)(m->op[i].start_ns - m->op[last].start_ns) > SOON * longest) {
            last = (uint32_t)i;
            longest = gap;
        }
        s->gap[i] = last;
    }
}

/* In an operation others waited so long for the process of a row. */
static void note(struct search *s, uint32_t row, double late)
{
    uint32_t at = s->gap[row];
    double gap = at > s->m->first[s->m->op[row].process] ? gap_before(s->m, at) : 0;

    if (late < MOST * gap)
        return;
    late = fmin(late, gap);
    if (late > s->stalls[at].ns)
        s->stalls[at] = (struct stall){late, row};
}

static double length_of(const struct ft_matched *m, uint32_t row)
{
    return (double)(m->op[row].end_ns - m->op[row].start_ns);
}

static void note_group(struct search *s, const struct ft_gathering *group)
{
    const uint32_t *row = &s->m->order[group->first];
    double median;

    if (group->unfinished > 0 || group->count < 2)
        return;
    ft_task_spend(s->m->task, 1 + group->count / 4);
    for (size_t i = 0; i < group->count; i++)
        s->room[i] = length_of(s->m, row[i]);
    /* Of two it is the longer one. */
    median = ft_nth(s->room, group->count, group->count / 2);
    for (size_t i = 0; i < group->count; i++)
        note(s, row[i], median - length_of(s->m, row[i]));
}

static void note_pair(struct search *s, const struct ft_pair *pair)
{
    const struct ft_operation *op = s->m->op;
    double send, recv;

    if (pair->send == FT_OPERATIONS_NONE || pair->recv == FT_OPERATIONS_NONE ||
        op[pair->send].end_ns == FT_OPERATIONS_NEVER ||
        op[pair->recv].end_ns == FT_OPERATIONS_NEVER)
        return;
    send = length_of(s->m, pair->send);
    recv = length_of(s->m, pair->recv);
    note(s, pair->send, recv - send);
    note(s, pair->recv, send - recv);
}

/* The longest of all processes but those that are excepted. */
static uint32_t longest_of(const struct search *s)
{
    uint32_t longest = FT_OPERATIONS_NONE;

    ft_task_spend(s->m->task, 1 + s->m->op_count / 16);
    for (size_t i = 0; i < s->m->op_count; i++)
        if (s->stalls[i].ns > 0 && !s->excepted[s->m->op[i].process] &&
            s->m->op[i].process != s->first &&
            (longest == FT_OPERATIONS_NONE || s->stalls[i].ns > s->stalls[longest].ns))
            longest = (uint32_t)i;
    return longest;
}

/* How often a process was late by about as much. */
static size_t times_of(const struct search *s, uint32_t process, double ns)
{
    size_t times = 0;

    ft_task_spend(s->m->task, 1 + (s->m->first[process + 1] - s->m->first[process]) / 16);
    for (size_t i = s->m->first[process]; i < s->m->first[process + 1]; i++)
        times += s->stalls[i].ns * STANDOUT >= ns;
    return times;
}

static bool same_stall(const struct ft_matched *m, uint32_t a, uint32_t b, double ns)
{
    double apart = (double)m->op[a].start_ns - (double)m->op[b].start_ns;

    return m->process[m->op[a].process].host == m->process[m->op[b].process].host &&
           fabs(apart) <= ns;
}

/* A process is excepted that is late again and again. */
static bool has_habit(struct search *s, uint32_t process, double ns)
{
    if (times_of(s, process, ns) < 2)
        return false;
    s->excepted[process] = true;
    s->habitual++;
    return true;
}

/* Whether nobody else was late by about as much, but for some who are again and again. more: ranks
 * of its host that were late with it; next: the longest of all others. */
static bool is_single(struct search *s, uint32_t row, uint32_t *more, double *next)
{
    const struct ft_matched *m = s->m;
    double ns = s->stalls[row].ns;

    *more = 0;
    *next = 0;
    for (size_t i = 0; i < m->op_count; i++) {
        if (i == row || s->stalls[i].ns <= *next || s->excepted[m->op[i].process])
            continue;
        if (s->stalls[i].ns * STANDOUT < ns)
            *next = s->stalls[i].ns;
        else if (has_habit(s, m->op[i].process, ns))
            continue;
        else if (same_stall(m, row, (uint32_t)i, ns))
            ++*more;
        else
            return false;
    }
    return (double)s->habitual <= fmax(1, HABITUAL * (double)m->process_count);
}

static uint32_t first_rank(const struct ft_matched *m)
{
    uint32_t first = 0;

    for (uint32_t p = 1; p < m->process_count; p++)
        if (m->process[p].rank < m->process[first].rank)
            first = p;
    return first;
}

static int describe(const struct search *s, uint32_t row, uint32_t more, double next,
                    struct ft_diagnoses *found)
{
    const struct ft_matched *m = s->m;
    const struct stall *stall = &s->stalls[row];
    const struct ft_operation *felt = &m->op[stall->felt];
    double gap = gap_before(m, row), usual = (double)ft_habits_own(m, felt->process, row);
    double ns = stall->ns;
    struct ft_diagnosis *d;

    if (gap < STANDOUT * usual || (ns < LEAST_NS && ns < BY_FAR * next) ||
        ft_halted_with(m, s->clocks, row, gap))
        return 0;
    d = ft_diagnoses_add(found, FT_SYNDROME_NONCOMM_SLOW);
    if (!d)
        return -ENOMEM;
    d->process = felt->process;
    d->comm = felt->comm;
    d->function = felt->function;
    d->sequence = felt->sequence;
    d->others = more;
    d->since_ns = m->op[row].start_ns - (uint64_t)gap;
    d->slowdown = gap / fmax(usual, 1e6);
    d->confidence = 0.8;
    ft_texts_add(&d->reasons, "once it was in no operation for %.3f s, usually for %.3f s",
                 gap / 1e9, usual / 1e9);
    ft_texts_add(&d->reasons,
                 "others waited for it %.3f s in %s %llu of communicator %s, and at other times "
                 "%.3f s at most for anybody",
                 stall->ns / 1e9, ft_operations_function(m->ops, felt->function),
                 (unsigned long long)felt->sequence, ft_operations_comm(m->ops, felt->comm),
                 next / 1e9);
    if (more)
        ft_texts_add(&d->reasons, "%u more ranks of its host were late with it", more);
    ft_texts_add(&d->doubts, "it is over: a rank that saves or prints alone looks the same");
    return 0;
}

/* What is worth a word: less than half a second in a table that is as short. */
static double least_of(const struct search *s, uint32_t process)
{
    const struct ft_operation *op = s->m->op;
    size_t first = s->m->first[process], last = s->m->first[process + 1] - 1;

    return fmin(LEAST_NS,
                fmax(BRIEF_NS, OF_TABLE * (double)(op[last].start_ns - op[first].start_ns)));
}

static int find(struct search *s, struct ft_diagnoses *found)
{
    const struct ft_matched *m = s->m;
    uint32_t row, process, more;
    double next;

    for (uint32_t p = 0; p < m->process_count; p++)
        find_gaps(s, p);
    for (size_t g = 0; g < m->group_count; g++)
        note_group(s, &m->groups[g]);
    for (size_t i = 0; i < m->pair_count; i++)
        note_pair(s, &m->pairs[i]);
    ft_task_spend(m->task, 1 + (m->pair_count + m->op_count) / 8);
    s->first = first_rank(m);
    do {
        row = longest_of(s);
        if (row == FT_OPERATIONS_NONE || s->stalls[row].ns < least_of(s, m->op[row].process))
            return 0;
        process = m->op[row].process;
    } while (has_habit(s, process, s->stalls[row].ns));
    if (row - m->first[process] < ROWS_MIN || !is_single(s, row, &more, &next) ||
        (more > 0 && (m->process[process].host == m->process[s->first].host ||
                      more + 1 < ft_habits_host_ranks(m, process))))
        return 0;
    return describe(s, row, more, next, found);
}

int ft_find_late_once(const struct ft_matched *m, struct ft_diagnoses *found)
{
    struct search s = {.m = m,
                       .gap = calloc(m->op_count + 1, sizeof(*s.gap)),
                       .stalls = calloc(m->op_count + 1, sizeof(*s.stalls)),
                       .excepted = calloc(m->process_count + 1, sizeof(*s.excepted)),
                       .room = calloc(m->process_count + 1, sizeof(*s.room)),
                       .clocks = ft_clocks_end(m, ft_operations_newest_ns(m->ops))};
    int rc = s.gap && s.stalls && s.excepted && s.room && s.clocks ? 0 : -ENOMEM;

    if (rc == 0 && m->process_count > 1 && !ft_starts_are_calls(m))
        rc = find(&s, found);
    free(s.gap);
    free(s.stalls);
    free(s.excepted);
    free(s.room);
    free(s.clocks);
    return rc;
}
