// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_JOB_FIGURES_H
#define FT_DAEMON_API_JOB_FIGURES_H
/*
 * Training jobs in figures, for the metrics page: the largest of those that run, from the ranks
 * that agents announce and the collisions that stand. Pure. Thread: the loop's.
 */
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

/* Families of jobs, at most jobs_max, on a page of ft_daemon_metrics. Without memory there are no
 * jobs on it. */
void ft_job_figures_write(const struct ft_job_sources *sources, size_t jobs_max,
                          struct ft_prom *page);

#endif
