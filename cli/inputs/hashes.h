// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_INPUTS_HASHES_H
#define FT_CLI_INPUTS_HASHES_H
/*
 * What the daemon has learnt of switches' hashes. Owner: the caller. Thread: one.
 */
#include "cli/args/args.h"
#include "lib/whatif/learnt.h"

/* The exit status: 0, or another after complaints to standard error. */
int ft_hashes_load(const struct ft_args *args, const char *command, struct ft_hashes_list *list);

#endif
