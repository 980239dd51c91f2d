// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_TRACES_ASTRA_H
#define FT_CLI_TRACES_ASTRA_H
/*
 * `whatif --chakra`: when each rank of a Chakra trace ends, by our model of ASTRA-sim's analytical
 * networks (lib/sim/astra.h).
 */
#include "cli/args/args.h"

/* Prints to standard output. The exit status: 0, EX_DATAERR, EX_NOINPUT, EX_OSERR. */
int ft_astra_command(const struct ft_args *args);

#endif
