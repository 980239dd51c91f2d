// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_REPLAY_H
#define FT_AGENT_REPLAY_H
/*
 * A capture file through the agent, in virtual time: the capture's time is the clock, the option
 * "addresses" names the local addresses. The same file gives the same bytes.
 */
#include "agent/settings.h"

/* Reads file ("-": standard input) and writes NDJSON to output ("-": standard output). Without a
 * filter in the settings only RoCEv2 packets count. Logs what goes wrong; returns an exit code of
 * sysexits.h. */
int ft_agent_replay(const struct ft_agent_settings *settings, const char *file, const char *output);

#endif
