// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/job_figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/metrics.h"

struct job {
    const char *name;
    uint64_t ranks, hosts, communicators, slow, collisions;
    double slowness;
};

struct jobs {
    struct job *list; /* by name until they are cut to the largest */
    size_t count;
};

static int by_job(const void *a, const void *b)
{
    const struct ft_rank_member *x = *(const struct ft_rank_member *const *)a;
    const struct ft_rank_member *y = *(const struct ft_rank_member *const *)b;
    int order = strcmp(x->job, y->job);

    return order ? order : strcmp(x->comm_id, y->comm_id);
}

static int by_host(const void *a, const void *b)
{
    return strcmp((*(const struct ft_rank_member *const *)a)->host,
                  (*(const struct ft_rank_member *const *)b)->host);
}

static int largest_first(const void *a, const void *b)
{
    const struct job *x = a, *y = b;

    if (x->ranks != y->ranks)
        return x->ranks < y->ranks ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* The members of one job; puts them in the order of their hosts. */
static struct job look_at(const struct ft_rank_member **members, size_t count,
                          const struct ft_slowest *slowest)
{
    struct job job = {.name = members[0]->job, .ranks = count, .slowness = 1};

    for (size_t i = 0; i < count; i++) {
        const struct ft_slowest_last *last =
            ft_slowest_of(slowest, members[i]->comm_id, members[i]->rank);

        job.communicators += i == 0 || strcmp(members[i]->comm_id, members[i - 1]->comm_id) != 0;
        if (!last || !last->named || last->others_median_ns == 0)
            continue;
        job.slow++;
        job.slowness =
            fmax(job.slowness, (double)last->step_median_ns / (double)last->others_median_ns);
    }
    qsort(members, count, sizeof(*members), by_host);
    for (size_t i = 0; i < count; i++)
        job.hosts += i == 0 || strcmp(members[i]->host, members[i - 1]->host) != 0;
    return job;
}

/* Those that run, in the caller's list; a rank whose job is not known is in none. */
static const struct ft_rank_member **list_members(const struct ft_ranks *ranks, size_t *count)
{
    const struct ft_rank_member **list, *m;
    size_t all = 0;

    for (uint32_t index = 0; ft_ranks_next_member(ranks, &index);)
        all++;
    list = calloc(all ? all : 1, sizeof(*list));
    *count = 0;
    for (uint32_t index = 0; list && (m = ft_ranks_next_member(ranks, &index));)
        if (!m->closed && m->job[0])
            list[(*count)++] = m;
    if (list)
        qsort(list, *count, sizeof(*list), by_job);
    return list;
}

static void gather(struct jobs *jobs, const struct ft_job_sources *sources)
{
    size_t members, n;
    const struct ft_rank_member **list = list_members(sources->ranks, &members);

    jobs->list = list ? calloc(members ? members : 1, sizeof(*jobs->list)) : NULL;
    for (size_t i = 0; jobs->list && i < members; i += n) {
        for (n = 1; i + n < members && strcmp(list[i]->job, list[i + n]->job) == 0;)
            n++;
        jobs->list[jobs->count++] = look_at(list + i, n, sources->slowest);
    }
    free(list);
}

static void count_collision(void *arg, const Fabrictrace__Event *event)
{
    struct jobs *jobs = arg;

    if (event->kind != FABRICTRACE__KIND__KIND_COLLISION || !event->evidence)
        return;
    for (size_t j = 0; j < jobs->count; j++) {
        bool hit = false;

        for (size_t i = 0; i < event->evidence->n_victims && !hit; i++) {
            const char *job = event->evidence->victims[i]->job;

            hit = job && strcmp(job, jobs->list[j].name) == 0;
        }
        jobs->list[j].collisions += hit;
    }
}

static double figure_of(const struct job *job, enum ft_daemon_metric metric)
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

void ft_job_figures_write(const struct ft_job_sources *sources, size_t jobs_max, struct ft_prom *p)
{
    struct jobs jobs = {NULL, 0};
    size_t all;

    gather(&jobs, sources);
    all = jobs.count;
    if (jobs.list)
        qsort(jobs.list, jobs.count, sizeof(*jobs.list), largest_first);
    jobs.count = all < jobs_max ? all : jobs_max;
    ft_events_each(sources->events, count_collision, &jobs);
    for (int m = FT_METRIC_JOB_RANKS; m <= FT_METRIC_JOB_COLLISIONS; m++) {
        ft_prom_family(p, (size_t)m);
        for (size_t i = 0; i < jobs.count; i++)
            ft_prom_double(p, FT_PROM_LABELS(jobs.list[i].name),
                           figure_of(&jobs.list[i], (enum ft_daemon_metric)m));
    }
    ft_prom_one(p, FT_METRIC_JOBS_UNTOLD, all - jobs.count);
    free(jobs.list);
}
