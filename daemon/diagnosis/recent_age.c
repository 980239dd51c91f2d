// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <string.h>

#include "daemon/diagnosis/recent_impl.h"

#define SILENT_MS FT_RECENT_SILENT_MS
#define GONE_MS   3600000 /* of a process that died, which others may wait for */
#define SWEEP_MS  10000
/* An agent repeats where a rank stands every 5 s while an operation is in flight or the process is
 * stopped, and else every 60 s. */
#define AGAIN_MS 8000
#define IDLE_MS  65000
/* Work of forgetting one, in ranks that are looked at; and of so many rows. */
#define WORK_A_RANK 8
#define ROWS_A_WORK 64

/* Jobs whose last rank left need not wait for a sweep. */
static void end_left(struct ft_recent *r, void (*over)(void *arg, const struct ft_recent_job *job),
                     void *arg)
{
    struct ft_recent_job *job;

    while ((job = r->left)) {
        r->left = job->next_left;
        job->has_left = false;
        if (job->first)
            continue;
        if (r->sweep.job == job)
            r->sweep.job = NULL;
        over(arg, job);
        ft_table_remove(r->jobs, (char *)(void *)job - offsetof(struct ft_recent_job_entry, j));
    }
}

static bool next_job(struct ft_recent *r)
{
    struct ft_recent_sweep *s = &r->sweep;
    struct ft_recent_job_entry *e = ft_table_next(r->jobs, &s->index);

    s->job = e ? &e->j : NULL;
    if (!e)
        return false;
    s->at = e->j.first;
    s->gone_ms = SILENT_MS;
    s->weighed = false;
    return true;
}

/* A process that died is remembered as long as any other of the job may wait for it: the next rank
 * on the way to one that may. */
static void weigh(struct ft_recent_sweep *s)
{
    struct ft_recent_rank *rank = s->at;

    if (rank && !ft_recent_is_gone(rank) && s->now_ms - rank->heard_ms <= SILENT_MS) {
        s->gone_ms = GONE_MS;
        rank = NULL;
    }
    s->weighed = !rank;
    s->at = rank ? rank->next : s->job->first;
}

/* Forgets the next rank if it is silent. What it took. */
static uint32_t age_rank(struct ft_recent *r)
{
    struct ft_recent_sweep *s = &r->sweep;
    struct ft_recent_rank *rank = s->at;
    uint32_t work = WORK_A_RANK + (uint32_t)(rank->count / ROWS_A_WORK);

    s->at = rank->next;
    /* This host's clock was set back. */
    if (rank->heard_ms > s->now_ms)
        rank->heard_ms = s->now_ms;
    if (s->now_ms - rank->heard_ms <= (ft_recent_is_gone(rank) ? s->gone_ms : SILENT_MS)) {
        if (rank->progress.in_flight)
            s->kept[rank->progress.row.function] = true;
        return 1;
    }
    ft_recent_forget(r, rank);
    return work;
}

static void end_job(struct ft_recent *r, void (*over)(void *arg, const struct ft_recent_job *job),
                    void *arg)
{
    struct ft_recent_job *job = r->sweep.job;

    r->sweep.job = NULL;
    if (job->first || job->has_left)
        return;
    over(arg, job);
    ft_table_remove(r->jobs, (char *)(void *)job - offsetof(struct ft_recent_job_entry, j));
}

static bool sweep(struct ft_recent *r, uint64_t work,
                  void (*over)(void *arg, const struct ft_recent_job *job), void *arg)
{
    struct ft_recent_sweep *s = &r->sweep;
    uint64_t spent = 0;

    while (spent < work) {
        if (!s->job && !next_job(r)) {
            ft_functions_age(&r->functions, s->kept);
            s->on = false;
            return false;
        }
        if (!s->weighed) {
            weigh(s);
            spent++;
        } else if (s->at) {
            spent += age_rank(r);
        } else {
            end_job(r, over, arg);
            spent += WORK_A_RANK;
        }
    }
    return true;
}

bool ft_recent_age(struct ft_recent *r, int64_t now_ms, uint64_t work,
                   void (*over)(void *arg, const struct ft_recent_job *job), void *arg)
{
    end_left(r, over, arg);
    if (!r->sweep.on) {
        if (now_ms >= r->sweep.begun_ms && now_ms - r->sweep.begun_ms < SWEEP_MS)
            return false;
        r->sweep = (struct ft_recent_sweep){.begun_ms = now_ms, .on = true};
    }
    r->sweep.now_ms = now_ms;
    return sweep(r, work, over, arg);
}

static bool is_outdated(const struct ft_recent_rank *rank)
{
    const struct ft_recent_progress *p = &rank->progress;
    bool often = p->state == FABRICTRACE__OPERATION_STATE__OPERATION_STATE_IN_FLIGHT ||
                 p->process == FABRICTRACE__PROCESS_STATE__PROCESS_STATE_STOPPED;

    return p->heard_ms && !ft_recent_is_gone(rank) && (p->standing || p->in_flight) &&
           rank->process->heard_ms - p->heard_ms > (often ? AGAIN_MS : IDLE_MS);
}

void ft_recent_doubt(struct ft_recent *r, const struct ft_recent_job *job)
{
    for (struct ft_recent_rank *rank = job->first; rank; rank = rank->next) {
        struct ft_recent_progress *p = &rank->progress;

        if (!rank->process || !is_outdated(rank))
            continue;
        r->outdated += p->standing;
        *p = (struct ft_recent_progress){
            .heard_ms = p->heard_ms, .begun = p->begun, .finished = p->finished};
    }
}
