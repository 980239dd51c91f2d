// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_CLI_H
#define FT_CLI_CLI_H
/*
 * The program fabrictrace(1): one command in, text or JSON out.
 */

/* Returns the exit status: 0, 1 for a flow that is not known, or one of sysexits.h. */
int ft_cli_run(int argc, char **argv);

#endif
