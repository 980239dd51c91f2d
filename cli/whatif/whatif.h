// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_WHATIF_WHATIF_H
#define FT_CLI_WHATIF_WHATIF_H
/*
 * `whatif --topology --flows`: what other policies would do to the flows of a file, worked out
 * here, without a daemon.
 */
#include "cli/args/args.h"

/* Prints to standard output. The exit status: 0, EX_USAGE, EX_DATAERR, EX_NOINPUT, EX_OSERR. */
int ft_whatif_command(const struct ft_args *args);

#endif
