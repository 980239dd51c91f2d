// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/stalled.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/diagnosis/answers.h"
#include "lib/base/task.h"
#include "lib/diagnosis/stats.h"

#define FRESH_MS 30000
#define LASTS_MS 8000 /* what is over sooner was no link */
#define STALLS   4.0  /* times as long as the longest step of an operation usually is */
#define LIKE     4    /* pairs of a kind that a reference is made of */
#define PAST_MIN 6    /* looks that know what is usual */
#define PORTS    8    /* that answers cross, at most */
#define SHOWN    0.25 /* of what stalls is shorter than what others have to show */

/* Operations of one kind between two ranks. */
struct entry {
    const struct ft_recent_rank *rank, *peer;
    const struct ft_delays_cell *cell;
    double least; /* a longest step above that stalls; a logarithm */
    uint32_t answers[PORTS];
};

struct table {
    struct entry *entries;
    struct ft_stalls_pair *pairs;
    double *values, *longest;
    size_t count;
    uint32_t process_count;
    int64_t now_ms, since_ms; /* since_ms: of the first that stalls */
    double size;              /* of what stalls: a logarithm of nanoseconds */
    struct ft_task *task;
};

static bool is_fresh(const struct table *t, const struct ft_delays_cell *cell, uint32_t i)
{
    return cell->times_ms[i] <= t->now_ms && t->now_ms - cell->times_ms[i] < FRESH_MS;
}

static bool stalls(const struct table *t, const struct entry *e, uint32_t i)
{
    return is_fresh(t, e->cell, i) && (double)e->cell->longest[i] > e->least;
}

/* Of each process, which has no number of the job where no communicator has all of them. */
static uint32_t index_of(struct table *t, struct ft_recent_process *p)
{
    if (p->index == UINT32_MAX)
        p->index = t->process_count++;
    return p->index;
}

static void forget_indices(struct table *t, const struct ft_recent *recent,
                           const struct ft_recent_job *job)
{
    for (const struct ft_recent_rank *r = job->first; r; r = r->next) {
        ft_task_spend(t->task, 1 + r->delays.count / 2);
        if (r->process)
            r->process->index = UINT32_MAX;
        for (uint32_t i = 0; i < r->delays.count; i++) {
            const struct ft_recent_rank *peer =
                ft_recent_find(recent, r->comm_id, r->delays.cells[i].peer);

            if (peer && peer->process)
                peer->process->index = UINT32_MAX;
        }
    }
}

static void list(struct table *t, const struct ft_recent *recent, const struct ft_recent_job *job,
                 size_t room)
{
    forget_indices(t, recent, job);
    for (const struct ft_recent_rank *r = job->first; r; r = r->next) {
        ft_task_spend(t->task, 1);
        for (uint32_t i = 0; r->process && t->count < room && i < r->delays.count; i++) {
            const struct ft_recent_rank *peer =
                ft_recent_find(recent, r->comm_id, r->delays.cells[i].peer);

            ft_task_spend(t->task, 1);
            if (peer && peer->process && peer->process != r->process)
                t->entries[t->count++] =
                    (struct entry){.rank = r, .peer = peer, .cell = &r->delays.cells[i]};
        }
    }
}

static int by_kind(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->cell->kind != y->cell->kind)
        return x->cell->kind < y->cell->kind ? -1 : 1;
    /* Cells of a rank lie in order; ranks do not. */
    if (x->rank->process->number != y->rank->process->number)
        return x->rank->process->number < y->rank->process->number ? -1 : 1;
    if (strcmp(x->rank->comm_id, y->rank->comm_id) != 0)
        return strcmp(x->rank->comm_id, y->rank->comm_id);
    if (x->rank->rank != y->rank->rank)
        return x->rank->rank < y->rank->rank ? -1 : 1;
    return x->peer->rank < y->peer->rank ? -1 : x->peer->rank > y->peer->rank;
}

static double median_of(const float values[FT_DELAYS_VALUES], uint32_t count)
{
    double room[FT_DELAYS_VALUES];

    for (uint32_t i = 0; i < count; i++)
        room[i] = (double)values[i];
    return ft_median(room, count);
}

/* What is usual, of the kind and of the pair's own past: some pairs are built slower. */
static void refer(struct table *t)
{
    struct entry *e = t->entries;

    ft_task_sort(t->task, e, t->count, sizeof(*e), by_kind);
    for (size_t i = 0, n; i < t->count; i += n) {
        double usual, longest;

        for (n = 0; i + n < t->count && e[i + n].cell->kind == e[i].cell->kind; n++) {
            t->values[n] = median_of(e[i + n].cell->values, e[i + n].cell->count);
            t->longest[n] = median_of(e[i + n].cell->longest, e[i + n].cell->count);
        }
        ft_task_spend(t->task, 1 + n);
        usual = ft_median(t->values, n);
        longest = ft_median(t->longest, n);
        for (size_t k = i; k < i + n; k++) {
            double over = e[k].cell->usual_count >= PAST_MIN ? e[k].cell->usual - usual : 0;

            e[k].least = n < LIKE ? INFINITY : longest + fmax(over, 0) + log(STALLS);
        }
    }
}

/* Since when something stalls: what was before says nothing of it. */
static size_t find_since(struct table *t)
{
    size_t found = 0, pairs = 0;

    t->since_ms = INT64_MAX;
    for (size_t i = 0; i < t->count; i++) {
        const struct ft_delays_cell *cell = t->entries[i].cell;
        double size = 0;
        size_t its = 0;

        for (uint32_t k = 0; k < cell->count; k++) {
            if (!stalls(t, &t->entries[i], k))
                continue;
            its++;
            size += (double)cell->longest[k] + ft_delays_step(cell);
            if (cell->times_ms[k] < t->since_ms)
                t->since_ms = cell->times_ms[k];
        }
        if (its)
            t->values[pairs++] = size / (double)its;
        found += its;
    }
    ft_task_spend(t->task, 1 + t->count / 2);
    t->size = ft_quantile(t->values, pairs, SHOWN);
    return found;
}

/* Whether its steps would have shown what stalls: those of some functions differ by as much at any
 * time, and say nothing of a link that delays all that cross it. */
static bool would_show(const struct table *t, const struct entry *e)
{
    return isfinite(e->least) && e->least + ft_delays_step(e->cell) < t->size;
}

static uint32_t digest(const char *text)
{
    uint32_t sum = 2166136261U;

    for (; *text; text++)
        sum = (sum ^ (unsigned char)*text) * 16777619U;
    return sum;
}

static void make_pairs(struct table *t, const struct ft_witnesses *w)
{
    for (size_t i = 0; i < t->count; i++) {
        struct entry *e = &t->entries[i];
        struct ft_stalls_pair *p = &t->pairs[i];
        struct ft_pair_path path;
        struct ft_tuple tuple;

        ft_task_spend(t->task, 2);
        if (!would_show(t, e) || !w->pairs ||
            !ft_pair_links_path(w->pairs, e->rank->comm_id, e->rank->rank, e->peer->rank, &path) ||
            path.unsure)
            continue;
        p->links = path.ports;
        p->link_count = path.count;
        p->answers = e->answers;
        p->answer_count = ft_answers_path(w, e->rank, e->peer, e->answers, PORTS, &tuple);
        p->from = index_of(t, e->rank->process);
        p->to = index_of(t, e->peer->process);
        p->from_host = digest(e->rank->process->host);
        p->to_host = digest(e->peer->process->host);
        for (uint32_t k = 0; k < e->cell->count; k++) {
            if (!is_fresh(t, e->cell, k) || e->cell->times_ms[k] < t->since_ms)
                continue;
            p->operations++;
            p->stalled += stalls(t, e, k);
        }
    }
}

static bool has(const uint32_t *ports, uint32_t count, uint32_t port)
{
    for (uint32_t i = 0; i < count; i++)
        if (ports[i] == port)
            return true;
    return false;
}

static bool was_named(const struct ft_recent_job *job, const struct entry *e)
{
    return strcmp(job->stalled.comm_id, e->rank->comm_id) == 0 &&
           job->stalled.from == e->rank->rank && job->stalled.to == e->peer->rank;
}

/* Since when, by how much, and who is named for it: who was before, as long as its steps stall. */
static bool describe(struct table *t, struct ft_stalled *s, struct ft_recent_job *job)
{
    int64_t first_ms = INT64_MAX, last_ms = INT64_MIN;
    const struct entry *named = NULL;
    size_t n = 0;

    for (size_t i = 0; i < t->count; i++) {
        const struct entry *e = &t->entries[i];
        double sum = 0;
        uint32_t own = 0;

        if (!has(t->pairs[i].links, t->pairs[i].link_count, s->what.link) || !t->pairs[i].stalled)
            continue;
        if (!named || was_named(job, e))
            named = e;
        for (uint32_t k = 0; k < e->cell->count; k++) {
            if (!stalls(t, e, k))
                continue;
            first_ms = e->cell->times_ms[k] < first_ms ? e->cell->times_ms[k] : first_ms;
            last_ms = e->cell->times_ms[k] > last_ms ? e->cell->times_ms[k] : last_ms;
            sum += (double)e->cell->longest[k] - e->least + log(STALLS);
            own++;
        }
        t->values[n++] = sum / own;
    }
    if (!named || last_ms - first_ms < LASTS_MS)
        return false;
    s->from = named->rank;
    s->to = named->peer;
    s->since_ms = first_ms;
    s->ratio = exp(ft_median(t->values, n));
    snprintf(job->stalled.comm_id, sizeof(job->stalled.comm_id), "%s", s->from->comm_id);
    job->stalled.from = s->from->rank;
    job->stalled.to = s->to->rank;
    return true;
}

void ft_stalled_find(struct ft_stalled *s, const struct ft_recent *recent,
                     struct ft_recent_job *job, int64_t now_ms, const struct ft_witnesses *w,
                     struct ft_task *task)
{
    struct table t = {.now_ms = now_ms, .task = task};
    size_t all = 0, room;

    *s = (struct ft_stalled){.found = false};
    for (const struct ft_recent_rank *r = job->first; r; r = r->next)
        all += r->delays.count;
    room = all < FT_STALLED_PAIRS ? all : FT_STALLED_PAIRS;
    if (room == 0)
        return;
    t.entries = calloc(room, sizeof(*t.entries));
    t.pairs = calloc(room, sizeof(*t.pairs));
    t.values = calloc(room, sizeof(*t.values));
    t.longest = calloc(room, sizeof(*t.longest));
    if (t.entries && t.pairs && t.values && t.longest) {
        list(&t, recent, job, room);
        refer(&t);
        if (find_since(&t) > 0) {
            make_pairs(&t, w);
            s->found = ft_stalls_find(t.pairs, t.count, &s->what, task) > 0 && describe(&t, s, job);
        }
    }
    free(t.entries);
    free(t.pairs);
    free(t.values);
    free(t.longest);
}

bool ft_stalled_explains(const struct ft_stalled *s, const struct ft_witnesses *w,
                         const struct ft_recent_rank *from, const struct ft_recent_rank *to)
{
    uint32_t answers[PORTS];
    struct ft_pair_path path;
    struct ft_tuple tuple;

    if (!s->found || !w->pairs ||
        !ft_pair_links_path(w->pairs, from->comm_id, from->rank, to->rank, &path) || path.unsure)
        return false;
    return has(path.ports, path.count, s->what.link) ||
           has(answers, ft_answers_path(w, from, to, answers, PORTS, &tuple), s->what.link);
}
