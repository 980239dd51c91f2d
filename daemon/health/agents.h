// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_HEALTH_AGENTS_H
#define FT_DAEMON_HEALTH_AGENTS_H
/*
 * What agents report as missing (fabrictrace.host_status.v1), kept for the doctor until an agent
 * has not repeated it for three of its intervals. Capped. Pure; times are Unix milliseconds.
 * Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/publish/findings.h"
#include "proto/fabrictrace.pb-c.h"

struct ft_agents;

/* NULL without memory. */
struct ft_agents *ft_agents_new(size_t cap, size_t bytes_max);
void ft_agents_free(struct ft_agents *agents);

/* -EINVAL: a field that is needed is missing; -ENOSPC over the cap. */
int ft_agents_take(struct ft_agents *agents, const Fabrictrace__HostStatus *status, int64_t now_ms);

/* The status of each agent that still reports, unpacked for the call. index begins at 0; false:
 * that was all. */
bool ft_agents_next(const struct ft_agents *agents, int64_t now_ms, uint32_t *index,
                    void (*each)(void *arg, const Fabrictrace__HostStatus *status), void *arg);

/* Adds a finding for every missing capability of an agent, host by host, and one for the rest where
 * they are many: of one agent a call. The position is zero at first; false: that was all. */
struct ft_agents_position {
    uint32_t index;
    size_t shown, hosts; /* findings, and hosts that are left out */
};

bool ft_agents_find(const struct ft_agents *agents, int64_t now_ms,
                    struct ft_agents_position *position, struct ft_findings *findings);

#endif
