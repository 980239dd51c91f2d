// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/diagnosis/delays.h"
#include "daemon/diagnosis/recent.h"
#include "lib/base/task.h"
#include "lib/diagnosis/slowness.h"
#include "lib/diagnosis/stats.h"

#define FRESH_MS   20000
#define VALUES_MIN 3
#define LIKE       4 /* pairs of a kind that a reference is made of */
#define PAST_MIN   6 /* looks that know what is usual */
#define PAST_MAX   20
/* Agents give a median to within a fifth: what is only that much apart may be equal. */
#define LEAST   1.5
#define CHANGED 1.2
#define ALWAYS  2.0 /* where it was never otherwise: it may be built so */
/* Where hosts have no time, all pairs come and go. What few of them do is not noise: they are who
 * is looked for. */
#define MOST     0.6
#define NOISES   3.0 /* the bar */
#define FEW      3.0 /* looks have seen little of what comes and goes */
#define LASTS_MS 8000
#define FORGETS  0.98 /* a look, some seconds */
#define ALL      0.25 /* so few have changed by less: all have changed by that */

/* A cell of the job's matrix, of one kind. */
struct entry {
    struct ft_delays_cell *cell;
    const struct ft_recent_rank *rank, *peer;
    double value; /* over what is usual for its kind */
    double raw;
    uint32_t from, to; /* processes */
    bool alone;        /* in relation to its own past */
};

struct table {
    struct entry *entries;
    struct ft_blame_cell *cells; /* a pair once, as the entries are in order */
    uint32_t *entry_of;          /* of a cell: the entry that stands for it */
    double *room;
    size_t entry_count, cell_count;
    uint32_t process_count;
    struct ft_task *task;
};

/* The median of the recent values; false: too few. */
static bool value_of(const struct ft_delays_cell *cell, int64_t now_ms, double *value)
{
    double values[FT_DELAYS_VALUES];
    size_t n = 0;

    for (uint32_t i = 0; i < cell->count; i++)
        if (now_ms - cell->times_ms[i] < FRESH_MS && cell->times_ms[i] <= now_ms)
            values[n++] = (double)cell->values[i];
    if (n < VALUES_MIN)
        return false;
    *value = ft_median(values, n);
    return true;
}

static size_t cells_of(const struct ft_recent_job *job)
{
    size_t n = 0;

    for (const struct ft_recent_rank *r = job->first; r; r = r->next)
        n += r->delays.count;
    return n;
}

static uint32_t index_of(struct table *t, struct ft_recent_process *p)
{
    if (p->index == UINT32_MAX)
        p->index = t->process_count++;
    return p->index;
}

static void list(struct table *t, const struct ft_recent *recent, const struct ft_recent_job *job,
                 int64_t now_ms, size_t room)
{
    for (const struct ft_recent_rank *r = job->first; r; r = r->next) {
        ft_task_spend(t->task, 1);
        if (r->process) {
            r->process->index = UINT32_MAX;
            r->process->sends_well = r->process->receives_well = false;
        }
        for (uint32_t i = 0; i < r->delays.count; i++) {
            const struct ft_recent_rank *peer =
                ft_recent_find(recent, r->comm_id, r->delays.cells[i].peer);

            if (peer && peer->process)
                peer->process->index = UINT32_MAX;
        }
    }
    for (const struct ft_recent_rank *r = job->first; r; r = r->next) {
        for (uint32_t i = 0; t->entry_count < room && r->process && i < r->delays.count; i++) {
            struct ft_delays_cell *cell = &r->delays.cells[i];
            const struct ft_recent_rank *peer = ft_recent_find(recent, r->comm_id, cell->peer);
            struct entry *e = &t->entries[t->entry_count];

            ft_task_spend(t->task, 2);
            if (!peer || !peer->process || peer->process == r->process ||
                !value_of(cell, now_ms, &e->raw))
                continue;
            e->cell = cell;
            e->rank = r;
            e->peer = peer;
            e->from = index_of(t, r->process);
            e->to = index_of(t, peer->process);
            t->entry_count++;
        }
    }
}

static int by_kind(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->cell->kind != y->cell->kind)
        return x->cell->kind < y->cell->kind ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

/* Pairs together, what stands out the most first. */
static int by_pair(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    return x->value > y->value ? -1 : x->value < y->value;
}

/* Puts each value in relation to its kind. Where neither its like nor its past is known, it is as
 * it ever was. */
static void relate(struct table *t)
{
    struct entry *e = t->entries;

    ft_task_sort(t->task, e, t->entry_count, sizeof(*e), by_kind);
    for (size_t i = 0, n; i < t->entry_count; i += n) {
        double usual;

        for (n = 0; i + n < t->entry_count && e[i + n].cell->kind == e[i].cell->kind; n++)
            t->room[n] = e[i + n].raw;
        ft_task_spend(t->task, 1 + n / 4);
        usual = ft_median(t->room, n);
        for (size_t k = i; k < i + n; k++) {
            e[k].alone = n < LIKE;
            if (n >= LIKE)
                e[k].value = e[k].raw - usual;
            else
                e[k].value = e[k].cell->usual_count >= PAST_MIN ? e[k].raw - e[k].cell->usual : 0;
        }
    }
    ft_task_sort(t->task, e, t->entry_count, sizeof(*e), by_pair);
}

/* Of the values from the newest back: since when they are all nearer to the newest than to what
 * was usual. */
static int64_t slow_since_ms(const struct entry *e)
{
    const struct ft_delays_cell *cell = e->cell;
    double bar = e->raw - e->value / 2;
    int64_t since_ms = 0;

    for (uint32_t i = 0; i < cell->count; i++) {
        uint32_t at = (cell->next + FT_DELAYS_VALUES - 1 - i) % FT_DELAYS_VALUES;

        if ((double)cell->values[at] < bar && i > 0)
            break;
        since_ms = cell->times_ms[at];
    }
    return since_ms;
}

static int64_t newest_ms(const struct ft_delays_cell *cell)
{
    return cell->times_ms[(cell->next + FT_DELAYS_VALUES - 1) % FT_DELAYS_VALUES];
}

/* Since when the first of what is slow now is; INT64_MAX: nothing is. */
static int64_t first_slow_ms(const struct table *t)
{
    int64_t first = INT64_MAX;

    for (size_t i = 0; i < t->entry_count; i++) {
        const struct entry *e = &t->entries[i];
        int64_t since_ms;

        if (e->value <= log(LEAST))
            continue;
        since_ms = slow_since_ms(e);
        first = since_ms < first ? since_ms : first;
    }
    return first;
}

static void make_cells(struct table *t, const struct ft_delays_paths *paths)
{
    int64_t first_ms = first_slow_ms(t);

    for (size_t i = 0; i < t->entry_count; i++) {
        const struct entry *e = &t->entries[i];
        struct ft_blame_cell *cell = &t->cells[t->cell_count];

        ft_task_spend(t->task, 1);
        if (i > 0 && e->from == e[-1].from && e->to == e[-1].to)
            continue;
        *cell = (struct ft_blame_cell){.value = e->value,
                                       .from = e->from,
                                       .to = e->to,
                                       .before =
                                           first_ms != INT64_MAX && newest_ms(e->cell) < first_ms};
        paths->of(paths->arg, e->rank, e->cell->peer, cell);
        t->entry_of[t->cell_count++] = (uint32_t)i;
    }
}

/* What the centre of the matrix was before, where that is known of most pairs; else NAN. What all
 * have become slower by is not the fault of any: it counts as if it had always been so. */
static double past_of(struct table *t)
{
    double middle;
    size_t n = 0;

    for (size_t i = 0; i < t->cell_count; i++) {
        const struct entry *e = &t->entries[t->entry_of[i]];

        if (!e->alone && e->cell->usual_count >= PAST_MIN)
            t->room[n++] = e->raw - e->cell->usual;
    }
    ft_task_spend(t->task, 1 + n / 4);
    if (n == 0 || 2 * n < t->cell_count)
        return NAN;
    middle = ft_median(t->room, n);
    return fmax(ft_quantile(t->room, n, ALL), 0) - middle;
}

/* How far most pairs were from what is usual for them lately, at most, beside what all were. NAN:
 * of too few it is known what is usual. */
static double noise_of(struct table *t)
{
    double common;
    size_t n = 0;

    for (size_t i = 0; i < t->entry_count; i++)
        if (t->entries[i].cell->usual_count >= PAST_MIN)
            t->room[n++] = t->entries[i].raw - t->entries[i].cell->usual;
    if (n == 0 || (double)n < MOST * (double)t->entry_count)
        return NAN;
    ft_task_spend(t->task, 1 + n / 4);
    common = ft_median(t->room, n);
    n = 0;
    for (size_t i = 0; i < t->entry_count; i++) {
        struct ft_delays_cell *cell = t->entries[i].cell;

        if (cell->usual_count < PAST_MIN)
            continue;
        cell->wobble = fmaxf((float)FORGETS * cell->wobble,
                             (float)fabs(t->entries[i].raw - cell->usual - common));
        t->room[n++] = (double)cell->wobble * (1 + FEW / (cell->usual_count - PAST_MIN + 1.0));
    }
    ft_task_spend(t->task, 1 + n / 4);
    return ft_quantile(t->room, n, MOST);
}

static void learn(struct table *t, const struct ft_blames *blames, int64_t now_ms)
{
    for (size_t i = 0; i < t->entry_count; i++) {
        struct ft_delays_cell *cell = t->entries[i].cell;
        double value = t->entries[i].value, raw = t->entries[i].raw;

        if (i % 8 == 0)
            ft_task_spend(t->task, 1);
        cell->judged_ms = now_ms;
        cell->known = cell->usual_count >= PAST_MIN;
        cell->off = (float)(raw - cell->usual);
        cell->even = !t->entries[i].alone && value <= log(LEAST) &&
                     (cell->usual_count < PAST_MIN || raw - cell->usual <= log(LEAST));
        /* What is above the bar is not learnt, whoever is to blame. */
        if (value > (blames->bar > 0 ? blames->bar : log(LEAST)) ||
            (cell->usual_count >= PAST_MIN && raw - cell->usual > log(LEAST)))
            continue;
        cell->slow_ms = 0;
        cell->usual_count += cell->usual_count < PAST_MAX;
        cell->usual += (raw - cell->usual) / cell->usual_count;
    }
}

/* The middle of what a pair took since then; false: it has not sent. */
static bool middle_since(const struct ft_delays_cell *cell, int64_t since_ms, int64_t now_ms,
                         double *middle)
{
    double values[FT_DELAYS_VALUES];
    size_t n = 0;

    for (uint32_t i = 0; i < cell->count; i++)
        if (cell->times_ms[i] >= since_ms && cell->times_ms[i] <= now_ms)
            values[n++] = (double)cell->values[i];
    if (n == 0)
        return false;
    *middle = ft_median(values, n);
    return true;
}

/* What one has to have become slower by since then to stand out from others that are not slow, and
 * what these became slower by: they differ as well. Medians of the last seconds follow late what
 * changes: what others took since then shows that it is not one pair that does. */
static double changed_bar(struct table *t, const struct ft_blames *blames, int64_t since_ms,
                          int64_t now_ms, double *common)
{
    double middle;
    size_t n = 0;

    for (size_t i = 0; i < t->cell_count; i++) {
        const struct entry *e = &t->entries[t->entry_of[i]];

        if (!blames->slow[i] && e->cell->usual_count >= PAST_MIN &&
            middle_since(e->cell, since_ms, now_ms, &middle))
            t->room[n++] = middle - e->cell->usual;
    }
    ft_task_spend(t->task, 1 + t->cell_count / 2);
    *common = n ? fmax(ft_median(t->room, n), 0) : 0;
    return ft_slowness_bar(t->room, n, 0);
}

/* What one has to be slower by to stand out from them where it was never otherwise. */
static double always_bar(struct table *t, const struct ft_blames *blames)
{
    size_t n = 0;

    for (size_t i = 0; i < t->cell_count; i++)
        if (!blames->slow[i])
            t->room[n++] = t->entries[t->entry_of[i]].value;
    ft_task_spend(t->task, 1 + t->cell_count / 4);
    return fmax(log(ALWAYS), ft_slowness_bar(t->room, n, 0));
}

/* Whether a pair that is blamed may be named: it was otherwise before, beside what others became
 * slower by meanwhile, or it is far off. */
static bool holds(struct table *t, const struct ft_blames *blames, const struct ft_blame *b,
                  int64_t now_ms, bool *changed)
{
    const struct entry *e = &t->entries[t->entry_of[b->cell]];
    double off = e->raw - e->cell->usual, common, bar;

    *changed = false;
    if (e->cell->usual_count >= PAST_MIN) {
        bar = changed_bar(t, blames, e->cell->slow_ms ? e->cell->slow_ms : slow_since_ms(e), now_ms,
                          &common);
        *changed = off >= bar && off - common > log(CHANGED);
        if (!*changed && off - common > log(CHANGED))
            return false;
    }
    return *changed || (!e->alone && log(b->ratio) >= always_bar(t, blames));
}

static void add_found(struct table *t, const struct ft_blames *blames, int64_t now_ms,
                      struct ft_delays_noise *noise,
                      struct ft_delays_verdict out[FT_DELAYS_VERDICTS], size_t *count)
{
    for (size_t i = 0; i < blames->count && *count < FT_DELAYS_VERDICTS; i++) {
        const struct ft_blame *b = &blames->items[i];
        struct entry *e = &t->entries[t->entry_of[b->cell]];
        struct ft_delays_verdict *v = &out[*count];
        bool changed;

        if (!holds(t, blames, b, now_ms, &changed))
            continue;
        if (!e->cell->slow_ms)
            e->cell->slow_ms = slow_since_ms(e);
        /* It may pass; and nobody knows yet how much comes and goes. */
        if (isnan(noise->bar) || now_ms - e->cell->slow_ms < LASTS_MS) {
            noise->pending = true;
            continue;
        }
        *v = (struct ft_delays_verdict){.blame = *b,
                                        .from = e->rank,
                                        .to = e->peer,
                                        .since_ms = e->cell->slow_ms,
                                        .pairs = (uint32_t)t->cell_count,
                                        .changed = changed};
        ++*count;
    }
}

/* Only where something is slow: else nobody needs it. */
static void note_acquitted(const struct ft_recent_job *job, const struct ft_blames *blames)
{
    for (const struct ft_recent_rank *r = job->first; r; r = r->next) {
        struct ft_recent_process *p = r->process;

        if (!blames->acquitted || !p || p->index == UINT32_MAX)
            continue;
        p->sends_well = blames->acquitted[2 * (size_t)p->index];
        p->receives_well = blames->acquitted[2 * (size_t)p->index + 1];
    }
}

int ft_delays_judge(const struct ft_recent *recent, const struct ft_recent_job *job, int64_t now_ms,
                    const struct ft_delays_paths *paths, struct ft_task *task,
                    struct ft_delays_verdict out[FT_DELAYS_VERDICTS], size_t *count,
                    struct ft_delays_noise *noise, uint64_t *left_out)
{
    size_t all = cells_of(job), room = all < FT_DELAYS_JUDGED ? all : FT_DELAYS_JUDGED;
    struct ft_blames blames = {0};
    struct table t = {.task = task};
    int rc = -ENOMEM;

    *count = 0;
    *noise = (struct ft_delays_noise){.bar = NAN};
    *left_out += all - room;
    if (room == 0)
        return 0;
    t.entries = calloc(room, sizeof(*t.entries));
    t.cells = calloc(room, sizeof(*t.cells));
    t.entry_of = calloc(room, sizeof(*t.entry_of));
    t.room = calloc(room, sizeof(*t.room));
    if (t.entries && t.cells && t.entry_of && t.room) {
        list(&t, recent, job, now_ms, room);
        relate(&t);
        noise->bar = NOISES * noise_of(&t);
        noise->pending = isnan(noise->bar) && t.entry_count > 0;
        make_cells(&t, paths);
        rc = ft_blame_find(t.cells, t.cell_count, t.process_count, fmax(log(LEAST), noise->bar),
                           past_of(&t), &blames, task);
    }
    if (rc == 0) {
        add_found(&t, &blames, now_ms, noise, out, count);
        note_acquitted(job, &blames);
        learn(&t, &blames, now_ms);
    }
    ft_blames_free(&blames);
    free(t.entries);
    free(t.cells);
    free(t.entry_of);
    free(t.room);
    return rc;
}
