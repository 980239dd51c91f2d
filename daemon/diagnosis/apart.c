// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/apart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/task.h"
#include "lib/diagnosis/offsets.h"
#include "lib/diagnosis/stats.h"

/* Rows of two ranks that are compared, and looked at, the newest. */
#define ROWS   64
#define LOOKED 512
/* Times that differ by more than an hour are no clock's: nothing follows from them. */
#define MOST_NS   3600e9
#define NS_PER_MS 1000000

struct finding {
    const struct ft_recent *recent;
    const struct ft_recent_job *job;
    struct ft_offset *clocks; /* by number of the process */
    struct ft_recent_process **processes;
    double *room;
    size_t count;
    struct ft_task *task;
};

/* Rows of a rank from the newest on: its collectives, or its transfers with a peer. */
struct side {
    const struct ft_recent_rank *rank;
    const char *function; /* NULL: any */
    uint32_t peer;        /* FT_RECENT_NO_PEER: collectives */
    bool numbered;        /* compared by the rank's number, else by NCCL's */
    size_t left;
    size_t least; /* of left: older rows are not looked at */
};

static const struct ft_recent_row *newest(const struct finding *f, struct side *s)
{
    for (; s->left > s->least; s->left--) {
        const struct ft_recent_row *row = ft_recent_row(s->rank, s->left - 1);

        if (!row->launched && row->peer == s->peer &&
            (!s->function ||
             strcmp(ft_recent_function(f->recent, row->function), s->function) == 0))
            return row;
    }
    return NULL;
}

/* The least by which the end of an operation at one rank is after that at the other; false: they
 * have none in common. */
static bool difference(const struct finding *f, struct side a, struct side b, double *ahead_ns)
{
    size_t before = a.left + b.left;
    bool found = false;

    for (int i = 0; i < 2 * ROWS; i++) {
        const struct ft_recent_row *x = newest(f, &a), *y = newest(f, &b);
        uint64_t of_x, of_y;

        if (!x || !y)
            break;
        of_x = a.numbered ? x->number : x->sequence;
        of_y = a.numbered ? y->number : y->sequence;
        if (of_x == of_y) {
            double ns = (double)(int64_t)(x->end_ns - y->end_ns);

            if (fabs(ns) < MOST_NS && (!found || fabs(ns) < fabs(*ahead_ns))) {
                *ahead_ns = ns;
                found = true;
            }
        }
        a.left -= of_x >= of_y;
        b.left -= of_y >= of_x;
    }
    ft_task_spend(f->task, 1 + (before - a.left - b.left) / 8);
    return found;
}

static struct side side_of(const struct ft_recent_rank *r, const char *function, uint32_t peer,
                           bool numbered)
{
    return (struct side){r,        function, peer,
                         numbered, r->count, r->count > LOOKED ? r->count - LOOKED : 0};
}

static bool is_numbered(const struct ft_recent_rank *r)
{
    return r->peer_count == 0 && r->count > 0 && ft_recent_row(r, r->count - 1)->number > 0;
}

static bool differ_in_collectives(const struct finding *f, const struct ft_recent_rank *a,
                                  const struct ft_recent_rank *b, double *ahead_ns)
{
    bool numbered = is_numbered(a) && is_numbered(b);
    struct side x = side_of(a, NULL, FT_RECENT_NO_PEER, numbered);
    struct side y = side_of(b, NULL, FT_RECENT_NO_PEER, numbered);
    const struct ft_recent_row *row = newest(f, &x);

    /* NCCL numbers each function by itself. */
    if (row && !numbered)
        x.function = y.function = ft_recent_function(f->recent, row->function);
    return row && difference(f, x, y, ahead_ns);
}

static bool differ_in_transfers(const struct finding *f, const struct ft_recent_rank *a,
                                const struct ft_recent_rank *b, double *ahead_ns)
{
    return difference(f, side_of(a, "Send", b->rank, false), side_of(b, "Recv", a->rank, false),
                      ahead_ns) ||
           difference(f, side_of(a, "Recv", b->rank, false), side_of(b, "Send", a->rank, false),
                      ahead_ns);
}

/* Ranks of one communicator may be reported as of two jobs: then the other's is not known here. */
static bool is_listed(const struct finding *f, const struct ft_recent_process *process)
{
    return process && process->number < f->count && f->processes[process->number] == process;
}

/* Two ranks of a communicator, unless it is known what their clocks differ by. */
static void connect(const struct finding *f, const struct ft_recent_rank *a, uint32_t rank,
                    bool (*differ)(const struct finding *f, const struct ft_recent_rank *a,
                                   const struct ft_recent_rank *b, double *ahead_ns))
{
    const struct ft_recent_rank *b = ft_recent_find(f->recent, a->comm_id, rank);
    double ahead_ns = 0;

    if (!b || !is_listed(f, b->process) ||
        ft_offsets_root(f->clocks, a->process->number, &ahead_ns) ==
            ft_offsets_root(f->clocks, b->process->number, &ahead_ns))
        return;
    if (strcmp(a->process->host, b->process->host) == 0)
        ft_offsets_unite(f->clocks, a->process->number, b->process->number, 0);
    else if (differ(f, a, b, &ahead_ns))
        ft_offsets_unite(f->clocks, a->process->number, b->process->number, ahead_ns);
}

static void connect_all(const struct finding *f)
{
    for (const struct ft_recent_rank *r = f->job->first; r; r = r->next) {
        ft_task_spend(f->task, 1);
        if (!r->process)
            continue;
        connect(f, r, 0, differ_in_collectives);
        if (r->rank > 0)
            connect(f, r, r->rank - 1, differ_in_collectives);
        for (uint32_t i = 0; i < r->peer_count; i++)
            connect(f, r, r->peers[i].peer, differ_in_transfers);
    }
}

/* By how much each clock is ahead of what most of those connected with it show. */
static void measure(struct finding *f)
{
    for (uint32_t c = 0; c < f->count; c++) {
        double ahead, middle;
        size_t n = 0;

        if (f->clocks[c].parent != c || !f->clocks[c].connected)
            continue;
        ft_task_spend(f->task, 1 + f->count / 16);
        for (uint32_t p = 0; p < f->count; p++)
            if (ft_offsets_root(f->clocks, p, &ahead) == c)
                f->room[n++] = ahead;
        middle = ft_median(f->room, n);
        for (uint32_t p = 0; p < f->count; p++)
            if (ft_offsets_root(f->clocks, p, &ahead) == c && fabs(ahead - middle) >= FT_APART_NS)
                f->processes[p]->ahead_ns = (int64_t)(ahead - middle);
    }
}

/* Numbers the processes; none of them is ahead. */
static void list_processes(struct finding *f)
{
    for (const struct ft_recent_rank *r = f->job->first; r; r = r->next)
        if (r->process)
            r->process->number = UINT32_MAX;
    ft_task_spend(f->task, 1 + f->job->ranks / 16);
    for (const struct ft_recent_rank *r = f->job->first; r; r = r->next) {
        if (!r->process || r->process->number != UINT32_MAX)
            continue;
        r->process->ahead_ns = 0;
        r->process->number = (uint32_t)f->count;
        f->processes[f->count] = r->process;
        f->clocks[f->count] = (struct ft_offset){.parent = (uint32_t)f->count, .weight = 1};
        f->count++;
    }
}

void ft_apart_find(const struct ft_recent *recent, const struct ft_recent_job *job,
                   struct ft_task *task)
{
    struct finding f = {.recent = recent, .job = job, .task = task};

    f.clocks = calloc(job->ranks + 1, sizeof(*f.clocks));
    f.processes = calloc(job->ranks + 1, sizeof(*f.processes));
    f.room = calloc(job->ranks + 1, sizeof(*f.room));
    if (f.clocks && f.processes && f.room) {
        list_processes(&f);
        connect_all(&f);
        measure(&f);
    }
    free(f.clocks);
    free(f.processes);
    free(f.room);
}

int64_t ft_apart_lag_ms(const struct ft_recent_job *job, struct ft_task *task)
{
    double *lags = calloc(job->ranks + 1, sizeof(*lags)), lag_ms = 0;
    size_t n = 0;

    for (const struct ft_recent_rank *r = job->first; lags && r; r = r->next) {
        if (n % 16 == 0)
            ft_task_spend(task, 1);
        if (r->process && r->process->lag_known)
            lags[n++] = (double)(r->process->lag_ms + r->process->ahead_ns / NS_PER_MS);
    }
    ft_task_spend(task, 1 + n / 16);
    if (n > 0)
        lag_ms = ft_median(lags, n);
    free(lags);
    return fabs(lag_ms) > FT_LAG_MS ? (int64_t)lag_ms : 0;
}
