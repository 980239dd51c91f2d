// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_JOB_FIGURES_H
#define FT_DAEMON_API_JOB_FIGURES_H
/*
 * Training jobs in figures, for the metrics page: the largest of those that run, from the ranks
 * that agents announce and the collisions that stand. Made in steps of a few milliseconds. Pure.
 * Owner: the caller. Thread: the loop's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/jobs/ranks.h"
#include "daemon/jobs/slowest.h"
#include "daemon/publish/events.h"
#include "lib/base/prometheus.h"

struct ft_job_sources {
    const struct ft_ranks *ranks;
    const struct ft_slowest *slowest;
    const struct ft_events *events;
};

struct ft_job_figures;

/* Of at most jobs_max jobs. NULL without memory. */
struct ft_job_figures *ft_job_figures_new(const struct ft_job_sources *sources, size_t jobs_max,
                                          uint64_t seed);
void ft_job_figures_free(struct ft_job_figures *figures);

/* A step of looking or, at last, of writing families on a page of ft_daemon_metrics; false: that
 * was all. */
bool ft_job_figures_step(struct ft_job_figures *figures, struct ft_prom *page);

/* What it takes of memory, at most. */
size_t ft_job_figures_bytes(const struct ft_ranks *ranks);

#endif
