// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_LIVE_H
#define FT_AGENT_LIVE_H
/*
 * The agent at work: loop, captures, connection to the daemon, HTTP, signals, privileges.
 */
#include "lib/base/diag.h"
#include "lib/config/program.h"

/* Runs until SIGTERM or SIGINT; sends what is left before it returns. output is an NDJSON file, "-"
 * standard output, NULL the daemon. check complains about a reloaded configuration that has a
 * mistake. Logs what goes wrong; returns an exit code of sysexits.h. */
int ft_agent_live(struct ft_run *run, const char *output,
                  void (*check)(const struct ft_run *run, struct ft_diag *diag));

#endif
