// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_FETCH_RECORD_H
#define FT_CLI_FETCH_RECORD_H
/*
 * fabrictrace record: the file of an incident from a running daemon. It gets its name only once it
 * was read back, so that what is there is complete.
 */
#include "cli/args/args.h"

/* The exit status, after a complaint to stderr. */
int ft_record_command(const struct ft_args *args);

#endif
