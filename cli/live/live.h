// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_LIVE_LIVE_H
#define FT_CLI_LIVE_LIVE_H
/*
 * fabrictrace live: a poller and a daemon without any configuration, and where their page is.
 */
#include "cli/args/args.h"

/* Until a signal, or until one of the programs ends by itself. The exit status. */
int ft_live_command(const struct ft_args *args);

#endif
