// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/job_figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/metrics.h"
#include "daemon/api/sorted.h"
#include "lib/base/table.h"

/* Of one step. */
#define RANKS  5000
#define EVENTS 500

struct job {
    char name[FT_RANKS_NAME];
    uint64_t ranks, hosts, communicators, slow, collisions;
    uint64_t event; /* that was counted last */
    double slowness;
};

/* A host or a communicator of a job, counted once. */
struct part {
    char job[FT_RANKS_NAME];
    char name[FT_RANKS_NAME];
    bool is_host;
};

enum phase {
    OF_RANKS,
    OF_EVENTS,
    CHOOSING,
    OF_FAMILIES,
};

struct ft_job_figures {
    struct ft_job_sources sources;
    struct ft_table *jobs, *parts;
    struct ft_sorted largest;
    enum phase phase;
    uint32_t index;
    uint64_t events;
    int metric;
};

/* Also what is announced while the ranks are looked at. */
#define MORE 1000

size_t ft_job_figures_bytes(const struct ft_ranks *ranks)
{
    return ft_ranks_members(ranks) * (sizeof(struct job) + 2 * sizeof(struct part));
}

struct item {
    uint64_t ranks;
    char name[FT_RANKS_NAME];
};

static int largest_first(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    if (x->ranks != y->ranks)
        return x->ranks < y->ranks ? 1 : -1;
    return strncmp(x->name, y->name, sizeof(x->name));
}

static enum ft_sorted_found look_at_job(const struct ft_view *view, const void *jobs,
                                        uint32_t *index, void *to)
{
    const struct job *job = ft_table_next(jobs, index);
    struct item *item = to;

    (void)view;
    if (!job)
        return FT_SORTED_END;
    item->ranks = job->ranks;
    memcpy(item->name, job->name, sizeof(item->name));
    return FT_SORTED_MATCH;
}

static const struct ft_sorted_kind order = {
    .name = "jobs",
    .item_bytes = sizeof(struct item),
    .order = largest_first,
    .look = look_at_job,
};

struct ft_job_figures *ft_job_figures_new(const struct ft_job_sources *sources, size_t jobs_max,
                                          uint64_t seed)
{
    size_t members = ft_ranks_members(sources->ranks) + MORE;
    struct ft_job_figures *f = calloc(1, sizeof(*f));

    if (!f)
        return NULL;
    f->sources = *sources;
    f->metric = FT_METRIC_JOB_RANKS;
    f->jobs = ft_table_new(sizeof(struct job), FT_RANKS_NAME, members, seed);
    f->parts = ft_table_new(sizeof(struct part), sizeof(struct part), 2 * members, seed);
    ft_sorted_init(&f->largest, &order, f->jobs, jobs_max);
    if (f->jobs && f->parts)
        return f;
    ft_job_figures_free(f);
    return NULL;
}

void ft_job_figures_free(struct ft_job_figures *f)
{
    if (!f)
        return;
    ft_table_free(f->jobs);
    ft_table_free(f->parts);
    ft_sorted_free(&f->largest);
    free(f);
}

static bool is_new_part(struct ft_job_figures *f, const char *job, const char *name, bool is_host)
{
    struct part part;
    bool fresh = false;

    memset(&part, 0, sizeof(part));
    snprintf(part.job, sizeof(part.job), "%s", job);
    snprintf(part.name, sizeof(part.name), "%s", name);
    part.is_host = is_host;
    return ft_table_insert(f->parts, &part, &fresh) && fresh;
}

/* Those that run; a rank whose job is not known is in none. */
static void take_rank(struct ft_job_figures *f, const struct ft_rank_member *m)
{
    const struct ft_slowest_last *last;
    char name[FT_RANKS_NAME] = "";
    struct job *job;
    bool fresh;

    if (m->closed || !m->job[0])
        return;
    snprintf(name, sizeof(name), "%s", m->job);
    job = ft_table_insert(f->jobs, name, &fresh);
    if (!job)
        return;
    if (fresh)
        job->slowness = 1;
    job->ranks++;
    job->hosts += is_new_part(f, name, m->host, true);
    job->communicators += is_new_part(f, name, m->comm_id, false);
    last = ft_slowest_of(f->sources.slowest, m->comm_id, m->rank);
    if (!last || !last->named || last->others_median_ns == 0)
        return;
    job->slow++;
    job->slowness =
        fmax(job->slowness, (double)last->step_median_ns / (double)last->others_median_ns);
}

static void take_event(void *arg, const Fabrictrace__Event *event)
{
    struct ft_job_figures *f = arg;

    if (event->kind != FABRICTRACE__KIND__KIND_COLLISION || !event->evidence)
        return;
    f->events++;
    for (size_t i = 0; i < event->evidence->n_victims; i++) {
        const char *name = event->evidence->victims[i]->job;
        char key[FT_RANKS_NAME] = "";
        struct job *job;

        snprintf(key, sizeof(key), "%s", name ? name : "");
        job = ft_table_find(f->jobs, key);
        if (!job || job->event == f->events)
            continue;
        job->event = f->events;
        job->collisions++;
    }
}

static bool look_at_ranks(struct ft_job_figures *f)
{
    for (int i = 0; i < RANKS; i++) {
        const struct ft_rank_member *m = ft_ranks_next_member(f->sources.ranks, &f->index);

        if (!m)
            return false;
        take_rank(f, m);
    }
    return true;
}

static bool look_at_events(struct ft_job_figures *f)
{
    for (int i = 0; i < EVENTS; i++)
        if (!ft_events_next(f->sources.events, &f->index, take_event, f))
            return false;
    return true;
}

static double figure_of(const struct job *job, int metric)
{
    switch (metric) {
    case FT_METRIC_JOB_RANKS:
        return (double)job->ranks;
    case FT_METRIC_JOB_HOSTS:
        return (double)job->hosts;
    case FT_METRIC_JOB_COMMUNICATORS:
        return (double)job->communicators;
    case FT_METRIC_JOB_SLOW_RANKS:
        return (double)job->slow;
    case FT_METRIC_JOB_SLOWNESS:
        return job->slowness;
    default:
        return (double)job->collisions;
    }
}

/* A family a step: they are of jobs_max series. */
static bool write_family(struct ft_job_figures *f, struct ft_prom *p)
{
    ft_prom_family(p, (size_t)f->metric);
    for (size_t i = 0; i < f->largest.count; i++) {
        const struct job *job =
            ft_table_find(f->jobs, ((const struct item *)ft_sorted_item(&f->largest, i))->name);

        ft_prom_double(p, FT_PROM_LABELS(job->name), figure_of(job, f->metric));
    }
    if (f->metric++ < FT_METRIC_JOB_COLLISIONS)
        return true;
    ft_prom_one(p, FT_METRIC_JOBS_OMITTED, ft_table_count(f->jobs) - f->largest.count);
    return false;
}

bool ft_job_figures_step(struct ft_job_figures *f, struct ft_prom *p)
{
    bool more;

    if (f->phase == OF_FAMILIES)
        return write_family(f, p);
    if (f->phase == CHOOSING)
        /* Without memory those are shown that it found. */
        more = ft_sorted_gather(&f->largest, NULL) > 0;
    else
        more = f->phase == OF_RANKS ? look_at_ranks(f) : look_at_events(f);
    if (!more) {
        f->phase++;
        f->index = 0;
    }
    return true;
}
