// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_PLAN_PLAN_JOB_H
#define FT_CLI_PLAN_PLAN_JOB_H
/*
 * `plan JOB`: source ports for the queue pairs of a job, such that its flows collide less, from
 * what the daemon sees and has learnt of the switches' hashes. Nothing is applied but by --apply
 * (cli/plan/plan_files.h).
 *
 * It is refused, with the reasons, where a source port does not determine the path: the hash of a
 * switch is not known, is not linear, leaves out the port, or errs in more than one flow of a
 * hundred; a flow has several paths at once, changes its path, or runs in a tunnel; or present
 * links of the job's flows are not as predicted. Flows of other jobs stay, and count with their
 * demand. Switches with a command (--oracle, cli/inputs/asked.h) are asked instead: what they say
 * of the job's present flows has to be as samples show it.
 */
#include "cli/inputs/asked.h"
#include "lib/base/writer.h"
#include "lib/sim/reassign.h"
#include "lib/whatif/captured.h"
#include "lib/whatif/error.h"
#include "lib/whatif/learnt.h"
#include "lib/whatif/measure.h"
#include "lib/whatif/times.h"

#define FT_PLAN_REASONS_MAX 32
#define FT_PLAN_REASON      256

struct ft_plan_texts {
    char text[FT_PLAN_REASONS_MAX][FT_PLAN_REASON];
    uint32_t count;
};

struct ft_plan_state {
    struct ft_measured measured;
    double step_s; /* below 0: no collective was captured */
};

struct ft_plan_job {
    const char *job;
    struct ft_captured captured;
    struct ft_hashes_list hashes;
    struct ft_asked *asked; /* NULL: nobody is */
    struct ft_times times;
    struct ft_model_error error;
    bool *dead;
    struct ft_plan_texts refused, unknown;
    uint32_t flows, movable; /* of the job */
    double accuracy;         /* least of the hashes and answers relied on; 1 where none is */
    uint32_t *first;         /* candidates by flow */
    struct ft_path *candidates;
    struct ft_reassign result;
    uint16_t *sport;       /* by flow that moves */
    struct ft_path *paths; /* of all flows, as planned */
    struct ft_plan_state before, after;
};

/* The exit status: 0; FT_EXIT_NOT_FOUND: the job has no flows; EX_DATAERR: it is refused. */
int ft_plan_job_run(const struct ft_args *args);

/* Shows a plan as a record or a table. -ENOMEM. */
int ft_plan_job_print(const struct ft_plan_job *p, bool json);

/* The plan for the agent of a host, as a line: moves and keeps of queue pairs there. Returns how
 * many these are; -ENOMEM. */
int ft_plan_job_of_host(const struct ft_plan_job *p, const char *host, struct ft_writer *w);

#endif
