// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_PLAN_PLAN_H
#define FT_CLI_PLAN_PLAN_H
/*
 * `plan`: paths for the flows of a file, worked out here, without a daemon.
 */
#include "cli/args/args.h"

/* Prints to standard output. The exit status: 0, EX_DATAERR, EX_NOINPUT, EX_OSERR. */
int ft_plan_run(const struct ft_args *args);

#endif
