// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_FETCH_FOLLOW_H
#define FT_CLI_FETCH_FOLLOW_H
/*
 * fabrictrace events --follow: the active events, then each as it begins or is over, a line each.
 * Asks the daemon every few seconds, also again after it did not answer. Ends with SIGINT or
 * SIGTERM, and when nobody reads standard output any more.
 */
#include "cli/args/args.h"

/* The exit status, after a complaint to stderr. */
int ft_follow_run(const struct ft_args *args);

#endif
