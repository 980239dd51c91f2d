// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_TOP_H
#define FT_CLI_TOP_H
/*
 * fabrictrace top: asks the daemon again and again and keeps the picture on the terminal fresh.
 * Ends with the key q or a signal, and leaves the terminal as it was. Without a terminal it shows
 * the picture once.
 */
#include "cli/args.h"

/* The exit status, after a complaint to stderr. */
int ft_top_run(const struct ft_args *args);

#endif
