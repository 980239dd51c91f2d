// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_LIVE_REPLAY_H
#define FT_CLI_LIVE_REPLAY_H
/*
 * fabrictrace replay: a daemon as a child, which reads the file of an incident and answers from it,
 * for the page or for one other command.
 */
#include "cli/args/args.h"
#include "lib/base/clock.h"

/* Runs a command line of this program at a moment that times count back from: the end of what is
 * replayed. Its exit status. */
typedef int ft_replay_run(int argc, char **argv, struct ft_wall now);

/* The exit status: that of the command, if there is one. */
int ft_replay_command(const struct ft_args *args, ft_replay_run *command);

#endif
