// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_PLAN_PLAN_FILES_H
#define FT_CLI_PLAN_PLAN_FILES_H
/*
 * Lays a plan down in a folder, a file for the agent of each host (proto/plan_name.h), and takes it
 * away again. The files belong to who runs the tool, and agents give their ports to processes of
 * that user alone.
 */
#include "cli/plan/plan_job.h"

/* With args->apply; says what was done, or with args->dry_run would be. The exit status. Nothing is
 * written where one of the hosts has a name that no file can have, or where the plan would make the
 * fullest link carry more. */
int ft_plan_files_apply(const struct ft_plan_job *p, const struct ft_args *args);

/* `plan JOB --withdraw FOLDER`. The exit status: FT_EXIT_NOT_FOUND where there is no such plan. */
int ft_plan_files_withdraw(const struct ft_args *args);

#endif
