// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/gather.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/diagnosis/apart.h"
#include "daemon/diagnosis/gather_parts.h"
#include "daemon/diagnosis/stand.h"
#include "lib/base/task.h"

/* Operations in sums count against a job for so long. */
#define FOLDED_MS 60000
/* Launches that were kept for so long are enough to look at. */
#define LAUNCHES_NS UINT64_C(30000000000)

static int by_comm(const void *a, const void *b)
{
    const struct ft_gather_source *x = a, *y = b;
    int order = strcmp(x->rank->comm_id, y->rank->comm_id);

    if (order)
        return order;
    return x->rank->rank < y->rank->rank ? -1 : x->rank->rank > y->rank->rank;
}

static int by_operation(const void *a, const void *b)
{
    const struct ft_gather_item *x = a, *y = b;

    if (x->source->comm != y->source->comm)
        return x->source->comm < y->source->comm ? -1 : 1;
    if (x->function != y->function)
        return x->function < y->function ? -1 : 1;
    if (x->sequence != y->sequence)
        return x->sequence < y->sequence ? -1 : 1;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static bool is_pair(const struct ft_gather_job *g, const struct ft_recent_row *row)
{
    const char *name = ft_recent_function(g->recent, row->function);

    return strcmp(name, "Send") == 0 || strcmp(name, "Recv") == 0;
}

/* The newest of each rank's rows. */
static void list_sources(struct ft_gather_job *g, size_t each, int64_t now_ms)
{
    for (const struct ft_recent_rank *r = g->job->first; r; r = r->next) {
        ft_task_spend(g->task, 1);
        if (!r->process)
            continue;
        if (r->folded_ms && now_ms - r->folded_ms < FOLDED_MS)
            g->out->folded = true;
        g->sources[g->source_count++] =
            (struct ft_gather_source){.rank = r, .from = r->count > each ? r->count - each : 0};
    }
    ft_task_sort(g->task, g->sources, g->source_count, sizeof(*g->sources), by_comm);
    for (size_t i = 0; i < g->source_count; i++) {
        struct ft_gather_source *s = &g->sources[i];

        if (i % 8 == 0)
            ft_task_spend(g->task, 1);
        if (i > 0 && strcmp(s->rank->comm_id, s[-1].rank->comm_id) != 0)
            g->comm_count++;
        s->comm = (uint32_t)g->comm_count;
        g->members[s->comm]++;
    }
    g->comm_count += g->source_count > 0;
}

/* The ranks of a communicator number its operations alike unless some of them are between two. */
static void find_numbers(struct ft_gather_job *g)
{
    for (size_t i = 0; i < g->comm_count; i++)
        g->numbered[i] = true;
    for (size_t i = 0; i < g->source_count; i++) {
        const struct ft_recent_rank *r = g->sources[i].rank;

        ft_task_spend(g->task, 1 + r->count / 16);
        if (r->peer_count || (r->progress.in_flight && r->progress.row.number == 0))
            g->numbered[g->sources[i].comm] = false;
        for (size_t k = 0; k < r->count && g->numbered[g->sources[i].comm]; k++)
            g->numbered[g->sources[i].comm] = ft_recent_row(r, k)->number > 0;
    }
}

static void add_item(struct ft_gather_job *g, const struct ft_gather_source *s,
                     const struct ft_recent_row *row, bool flies)
{
    bool numbered = g->numbered[s->comm];

    g->items[g->item_count++] = (struct ft_gather_item){
        .row = row,
        .source = s,
        .sequence = numbered ? row->number : row->sequence,
        .end_ns = row->end_ns,
        .function = numbered ? FT_OPERATIONS_NONE : row->function,
        .flies = flies,
    };
}

/* Whether what was said of the operation in progress was not overtaken by the record of its end. */
static bool stands_in(const struct ft_recent_rank *r)
{
    size_t n = r->count;

    while (n > 0 && ft_recent_row(r, n - 1)->launched)
        n--;
    return r->progress.in_flight &&
           (n == 0 || ft_recent_row(r, n - 1)->number < r->progress.row.number);
}

static bool same(const struct ft_gather_item *x, const struct ft_gather_item *y)
{
    return x->source->comm == y->source->comm && x->function == y->function &&
           x->sequence == y->sequence;
}

/* NCCL's number of a collective stands still in a CUDA graph: it has the rank's then, which is the
 * same at all of them where they send and receive as often. */
static void number_repeated(struct ft_gather_job *g)
{
    bool any = false;

    for (size_t i = 0; i < g->comm_count; i++)
        g->repeated[i] = false;
    for (size_t i = 1; i < g->item_count; i++) {
        const struct ft_gather_item *item = &g->items[i];

        if (item->source == item[-1].source && same(item, &item[-1]) && !is_pair(g, item->row))
            any = g->repeated[item->source->comm] = true;
    }
    for (size_t i = 0; i < g->item_count && any; i++) {
        struct ft_gather_item *item = &g->items[i];

        if (g->repeated[item->source->comm] && !is_pair(g, item->row))
            item->sequence = item->row->number;
    }
    if (any)
        ft_task_sort(g->task, g->items, g->item_count, sizeof(*g->items), by_operation);
}

static void list_items(struct ft_gather_job *g)
{
    for (size_t i = 0; i < g->source_count; i++) {
        const struct ft_gather_source *s = &g->sources[i];
        bool stands = stands_in(s->rank);

        ft_task_spend(g->task, 1 + (s->rank->count - s->from) / 8);
        for (size_t k = s->from; k < s->rank->count; k++) {
            const struct ft_recent_row *row = ft_recent_row(s->rank, k);

            if (!row->launched || !stands || row->number < s->rank->progress.row.number)
                add_item(g, s, row, false);
        }
        if (stands)
            add_item(g, s, &s->rank->progress.row,
                     s->rank->progress.state ==
                         FABRICTRACE__OPERATION_STATE__OPERATION_STATE_IN_FLIGHT);
    }
    ft_task_sort(g->task, g->items, g->item_count, sizeof(*g->items), by_operation);
    number_repeated(g);
}

/* Rows of one operation. complete: of all members; of a send or receive it is one. flies: some are
 * not over. */
static size_t operation_size(const struct ft_gather_job *g, size_t first, bool *complete,
                             bool *flies)
{
    size_t n = 1;

    ft_task_spend(g->task, 1);
    *flies = g->items[first].flies;
    if (is_pair(g, g->items[first].row)) {
        *complete = true;
        return 1;
    }
    while (first + n < g->item_count && same(&g->items[first], &g->items[first + n]))
        *flies |= g->items[first + n++].flies;
    ft_task_spend(g->task, n / 16);
    *complete = n == g->members[g->items[first].source->comm];
    return n;
}

static uint64_t ends_at(const struct ft_gather_item *item)
{
    return ft_apart_at(item->source->rank->process, item->row->end_ns);
}

static void bounds_of(const struct ft_gather_job *g, size_t first, size_t n, uint64_t *start_ns,
                      uint64_t *end_ns)
{
    *start_ns = UINT64_MAX;
    *end_ns = 0;
    ft_task_spend(g->task, n / 8);
    for (size_t i = first; i < first + n; i++) {
        uint64_t from_ns = ft_gather_starts_at(&g->items[i]), until_ns = ends_at(&g->items[i]);

        *start_ns = from_ns < *start_ns ? from_ns : *start_ns;
        *end_ns = until_ns > *end_ns ? until_ns : *end_ns;
    }
}

/* Whether nothing of an operation was in the network. */
static bool is_local(const struct ft_gather_job *g, size_t first, size_t n)
{
    for (size_t i = first; i < first + n; i++)
        if (!g->items[i].row->launched)
            return false;
    return true;
}

/* Of an operation that all have entered: nobody left it before the last one came, and those of
 * which that is not known left it with the first of the others. */
static void end_launched(struct ft_gather_job *g, size_t first, size_t n)
{
    uint64_t entered_ns = 0, left_ns = UINT64_MAX;

    for (size_t i = first; i < first + n; i++) {
        uint64_t from_ns = ft_gather_starts_at(&g->items[i]), until_ns = ends_at(&g->items[i]);

        entered_ns = from_ns > entered_ns ? from_ns : entered_ns;
        if (!g->items[i].row->launched && until_ns < left_ns)
            left_ns = until_ns;
    }
    if (left_ns == UINT64_MAX || left_ns < entered_ns)
        left_ns = entered_ns;
    for (size_t i = first; i < first + n; i++)
        if (g->items[i].row->launched)
            g->items[i].end_ns = left_ns + (uint64_t)g->items[i].source->rank->process->ahead_ns;
}

/* Whether what was before a row of a rank is not looked at. Of operations within a host as few may
 * be kept as make up part of a step: then the others are looked at without them. */
static bool limits(const struct ft_recent_rank *r, size_t from)
{
    const struct ft_recent_row *row = ft_recent_row(r, from);

    return !row->launched || r->process->newest_ns > row->start_ns + LAUNCHES_NS;
}

/* Whether some of its communicator have done what it has not reported yet. */
static bool is_behind(const struct ft_gather_job *g, const struct ft_gather_source *s)
{
    const struct ft_recent_rank *r = s->rank;

    if (g->numbered[s->comm] && r->count > 0)
        return ft_recent_row(r, r->count - 1)->number < g->newest[s->comm];
    return ft_apart_reported(r->process) < g->newest[s->comm];
}

/* From when on every rank's rows are there, and until when every process has reported any. */
static void find_span(struct ft_gather_job *g)
{
    struct ft_gathered *out = g->out;

    out->until_ns = UINT64_MAX;
    for (size_t i = 0; i < g->item_count; i++) {
        const struct ft_gather_item *item = &g->items[i];
        uint64_t at = g->numbered[item->source->comm] ? item->sequence : ft_gather_starts_at(item);

        if (i % 16 == 0)
            ft_task_spend(g->task, 1);
        if (g->newest[item->source->comm] < at)
            g->newest[item->source->comm] = at;
    }
    for (size_t i = 0; i < g->source_count; i++) {
        const struct ft_gather_source *s = &g->sources[i];
        const struct ft_recent_rank *r = s->rank;

        if (i % 8 == 0)
            ft_task_spend(g->task, 1);
        /* Of a process that is not known there is this communicator alone, which may rest while
         * others do not: it has reported all that its members did. */
        if (ft_apart_reported(r->process) < out->until_ns && (r->process->pid || is_behind(g, s)))
            out->until_ns = ft_apart_reported(r->process);
        if ((r->wrapped || s->from > 0) && s->from < r->count && limits(r, s->from) &&
            out->from_ns < ft_apart_at(r->process, ft_recent_row(r, s->from)->start_ns))
            out->from_ns = ft_apart_at(r->process, ft_recent_row(r, s->from)->start_ns);
    }
    for (size_t i = 0, n; i < g->item_count; i += n) {
        uint64_t start_ns, end_ns;
        bool complete, flies;

        n = operation_size(g, i, &complete, &flies);
        bounds_of(g, i, n, &start_ns, &end_ns);
        if (complete || flies || end_ns > out->until_ns || start_ns < out->from_ns ||
            is_local(g, i, n))
            continue;
        out->gaps++;
        out->from_ns = end_ns;
    }
}

/* Whether a rank has a row in an operation; to be asked of ranks in their order. */
static bool has_row(const struct ft_gather_job *g, const struct ft_gather_source *s, size_t *at,
                    size_t end)
{
    while (*at < end && g->items[*at].source < s)
        (*at)++;
    return *at < end && g->items[*at].source == s;
}

/* A rank that is past an operation though no record says so did not stay away from it. */
static void add_passed(struct ft_gather_job *g, size_t first, size_t n)
{
    const struct ft_gather_item *some = &g->items[first];
    size_t at = first;

    if (!g->numbered[some->source->comm])
        return;
    for (size_t i = 0; i < g->source_count; i++) {
        const struct ft_gather_source *s = &g->sources[i];
        struct ft_recent_row *row = &g->passed[g->passed_count];

        if (i % 16 == 0)
            ft_task_spend(g->task, 1);
        if (s->comm != some->source->comm || has_row(g, s, &at, first + n))
            continue;
        if (s->rank->progress.finished < some->sequence || g->passed_count == g->job->ranks)
            continue;
        *row = *some->row;
        row->start_ns = row->end_ns = s->rank->process->newest_ns;
        g->items[g->item_count] = *some;
        g->items[g->item_count].row = row;
        g->items[g->item_count].source = s;
        g->items[g->item_count].flies = false;
        g->items[g->item_count++].chosen = true;
        g->passed_count++;
    }
}

/* Of an operation within a host nothing shows that it stands but that some have not begun it: those
 * that have wait for them. */
static bool is_held(const struct ft_gather_job *g, size_t first, size_t n)
{
    const struct ft_gather_item *some = &g->items[first];
    size_t at = first;

    if (!g->numbered[some->source->comm] || is_pair(g, some->row))
        return false;
    for (size_t i = first; i < first + n; i++)
        if (!g->items[i].row->launched && g->items[i].row->end_ns != UINT64_MAX)
            return false;
    for (size_t i = 0; i < g->source_count; i++) {
        const struct ft_gather_source *s = &g->sources[i];

        if (s->comm != some->source->comm || has_row(g, s, &at, first + n))
            continue;
        /* One that does not run is reported at once, and begins nothing any more. */
        if ((!s->rank->progress.standing && !ft_stand_is_stopped(s->rank)) ||
            s->rank->progress.begun >= some->sequence)
            return false;
    }
    return true;
}

static void find_partly(struct ft_gather_job *g)
{
    for (size_t i = 0; i < g->source_count; i++) {
        const struct ft_gather_source *s = &g->sources[i];

        g->partly[s->comm] |=
            (s->rank->wrapped || s->from > 0) && s->from < s->rank->count &&
            ft_recent_row(s->rank, s->from)->launched &&
            ft_apart_at(s->rank->process, ft_recent_row(s->rank, s->from)->start_ns) >
                g->out->from_ns;
    }
}

/* What a peer stands in that did its part: without it, that peer would seem to wait for this rank.
 * Whoever ended later than others have reported is looked at all the same, with those before it:
 * none of one pair is missing among others. */
static bool is_awaited(const struct ft_gather_job *g, const struct ft_gather_item *item, bool late)
{
    const struct ft_recent_row *row = item->row, *other;
    const struct ft_recent_rank *rank = item->source->rank, *peer;

    if (row->peer == FT_RECENT_NO_PEER)
        return false;
    peer = ft_recent_find(g->recent, rank->comm_id, row->peer);
    if (!peer || !peer->process || !stands_in(peer))
        return false;
    other = &peer->progress.row;
    return other->peer == rank->rank && other->function != row->function &&
           (late ? other->sequence >= row->sequence : other->sequence == row->sequence);
}

static void choose(struct ft_gather_job *g)
{
    size_t count = g->item_count;

    find_partly(g);
    for (size_t i = 0, n; i < count; i += n) {
        uint64_t start_ns, end_ns;
        bool complete, flies;

        n = operation_size(g, i, &complete, &flies);
        bounds_of(g, i, n, &start_ns, &end_ns);
        if (!flies && !complete && is_held(g, i, n)) {
            flies = true;
            for (size_t k = i; k < i + n; k++)
                g->items[k].end_ns = UINT64_MAX;
        }
        if (!flies &&
            (!complete || start_ns < g->out->from_ns || end_ns > g->out->until_ns ||
             (g->partly[g->items[i].source->comm] && is_local(g, i, n))) &&
            !is_awaited(g, &g->items[i], start_ns >= g->out->from_ns))
            continue;
        g->out->flying += flies;
        if (flies && !complete)
            add_passed(g, i, n);
        if (complete && !flies)
            end_launched(g, i, n);
        for (size_t k = i; k < i + n; k++)
            g->items[k].chosen = true;
    }
}

static size_t rows_at_most(const struct ft_recent_job *job, size_t each)
{
    size_t rows = 0;

    for (const struct ft_recent_rank *r = job->first; r; r = r->next)
        rows += (r->count < each ? r->count : each) + 2;
    return rows;
}

int ft_gather(const struct ft_recent *recent, const struct ft_recent_job *job, size_t rows_max,
              int64_t now_ms, struct ft_task *task, struct ft_gathered *out)
{
    struct ft_gather_job g = {.recent = recent, .job = job, .out = out, .task = task};
    size_t each = rows_max / (job->ranks ? job->ranks : 1);
    int rc = -ENOMEM;

    *out = (struct ft_gathered){.ops = ft_operations_new()};
    g.sources = calloc(job->ranks + 1, sizeof(*g.sources));
    g.members = calloc(job->ranks + 1, sizeof(*g.members));
    g.numbered = calloc(job->ranks + 1, sizeof(*g.numbered));
    g.repeated = calloc(job->ranks + 1, sizeof(*g.repeated));
    g.newest = calloc(job->ranks + 1, sizeof(*g.newest));
    g.partly = calloc(job->ranks + 1, sizeof(*g.partly));
    g.passed = calloc(job->ranks + 1, sizeof(*g.passed));
    g.items = calloc(rows_at_most(job, each) + 1, sizeof(*g.items));
    if (out->ops && g.sources && g.members && g.numbered && g.repeated && g.newest && g.partly &&
        g.passed && g.items) {
        ft_operations_pace(out->ops, task);
        ft_apart_find(recent, job, task);
        list_sources(&g, each, now_ms);
        find_numbers(&g);
        list_items(&g);
        find_span(&g);
        choose(&g);
        ft_gather_number(&g);
        rc = out->folded ? 0 : ft_gather_add_rows(&g);
        if (rc == 0)
            rc = ft_operations_finish(out->ops);
        if (rc == 0)
            ft_gather_say_members(&g);
    }
    free(g.sources);
    free(g.members);
    free(g.numbered);
    free(g.repeated);
    free(g.newest);
    free(g.partly);
    free(g.passed);
    free(g.items);
    if (rc == 0)
        return 0;
    ft_operations_free(out->ops);
    out->ops = NULL;
    return -ENOMEM;
}

const struct ft_recent_rank *ft_gathered_rank(const struct ft_gathered *g,
                                              const struct ft_recent *recent,
                                              const struct ft_recent_job *job, const char *comm_id,
                                              uint32_t rank)
{
    if (!g->numbered)
        return comm_id ? ft_recent_find(recent, comm_id, rank) : NULL;
    for (const struct ft_recent_rank *r = job->first; r; r = r->next)
        if (r->process && r->process->number == rank &&
            (!comm_id || strcmp(r->comm_id, comm_id) == 0))
            return r;
    return NULL;
}
