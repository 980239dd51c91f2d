// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_PLAN_PREVIOUS_H
#define FT_CLI_PLAN_PREVIOUS_H
/*
 * The plan before: fabrictrace.planned_flow.v1 records as `plan --json` prints them.
 */
#include <stddef.h>

#include "cli/inputs/inputs.h"
#include "lib/base/diag.h"
#include "lib/fabric/paths.h"

/* Reads a file of them and fills paths[flows->count]: the path of a flow there, the n-th of the
 * same src and dst for the n-th. hop_count is 0 where there is none, or where it takes a port that
 * the topology no longer has. -EINVAL after a complaint "FILE:LINE: ...", -ENOMEM, -errno of the
 * file. */
int ft_previous_load(const char *file, const struct ft_inputs *inputs, struct ft_diag *diag,
                     struct ft_path *paths);

#endif
