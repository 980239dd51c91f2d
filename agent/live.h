// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_LIVE_H
#define FT_AGENT_LIVE_H
/*
 * The agent at work: loop, captures, connection to the daemon, HTTP, signals, privileges.
 */
#include "agent/settings.h"

struct ft_live_config {
    /* Taken over, also when the agent does not start. */
    struct ft_agent_settings *settings;
    const char *output; /* NDJSON file, "-": standard output; NULL: to the daemon */
    /* A new configuration for a reload, NULL (with the complaints logged) when it is no good. */
    struct ft_agent_settings *(*reload)(void *arg);
    void *arg;
};

/* Runs until SIGTERM or SIGINT; sends what is left before it returns. Logs what goes wrong; returns
 * an exit code of sysexits.h. */
int ft_agent_live(const struct ft_live_config *config);

#endif
