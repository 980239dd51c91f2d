// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_AGENT_H
#define FT_AGENT_AGENT_H
/*
 * The program fabrictrace-agent: from its command line to its exit code.
 */

/* Returns an exit code of sysexits.h. */
int ft_agent_main(int argc, char **argv);

#endif
