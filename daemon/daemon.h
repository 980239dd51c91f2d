// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DAEMON_H
#define FT_DAEMON_DAEMON_H
/*
 * fabrictraced: the stages wired together, live or in a replay. Thread: the loop's.
 */

/* Runs the program; the process's exit code (sysexits(3)). */
int ft_daemon_main(int argc, char **argv);

#endif
