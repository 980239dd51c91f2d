// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_FETCH_PROBE_H
#define FT_CLI_FETCH_PROBE_H
/*
 * Has a flow of this host probed by its agent. How many switches are on its paths the daemon says,
 * so that no probe reaches the other host.
 */
#include "cli/args/args.h"

/* The exit status; FT_EXIT_NOT_FOUND where no switch answered. */
int ft_probe_command(const struct ft_args *args);

#endif
