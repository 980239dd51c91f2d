// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_TOP_TOP_H
#define FT_CLI_TOP_TOP_H
/*
 * fabrictrace top: the overview, lists and what a line is about on a terminal, asked for again and
 * again. Keys move, sort, open and return; they are answered while the daemon is not. Ends with the
 * key q or a signal, and leaves the terminal as it was. Without a terminal it shows the overview
 * once.
 */
#include "cli/args/args.h"

/* The exit status, after a complaint to stderr. */
int ft_top_run(const struct ft_args *args);

#endif
