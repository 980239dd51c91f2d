// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_DOCTOR_H
#define FT_DAEMON_API_DOCTOR_H
/*
 * What the daemon does not see, each with what to do: switches and ports without reports, samples
 * or counters, ids that name no port, sources that contradict each other, losses on the way here,
 * clocks that are off. Pure. Thread: the pipeline's.
 */
#include "daemon/publish/findings.h"

struct ft_pipeline;

/* Adds everything to findings (a list of the caller's own). */
void ft_doctor_look(struct ft_pipeline *pipeline, struct ft_findings *findings);

#endif
