// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_INPUTS_CAPTURED_LOAD_H
#define FT_CLI_INPUTS_CAPTURED_LOAD_H
/*
 * Captured traffic from a daemon, or from the records that it wrote. Owner: the caller. Thread:
 * one.
 */
#include "cli/args/args.h"
#include "lib/whatif/captured.h"

/* The records and the topology alone: what a window is of is not looked at. */
int ft_captured_read(const struct ft_args *args, const char *command, struct ft_captured *c);

/* From the daemon, or with --records from a file and --topology. The exit status: 0, or another
 * after complaints to standard error. */
int ft_captured_load(const struct ft_args *args, const char *command, struct ft_captured *c);

#endif
