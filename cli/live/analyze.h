// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_LIVE_ANALYZE_H
#define FT_CLI_LIVE_ANALYZE_H
/*
 * fabrictrace analyze: a capture of sFlow through poller and daemon in its own time, and what
 * matters of what they publish.
 */
#include "cli/args/args.h"

/* The exit status: EX_NOINPUT for files that cannot be read, EX_DATAERR for what is not a capture,
 * is cut off, or holds no sFlow. */
int ft_analyze_command(const struct ft_args *args);

#endif
