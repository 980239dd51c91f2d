// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_SERVICES_H
#define FT_AGENT_SERVICES_H
/*
 * What the agent does at Unix sockets for processes of its host: NCCL's plugin, jobs that ask for
 * ports of plans, and requests for probes, which the daemon may make too; and what second sources
 * say of its jobs. Each is off unless it is configured. Thread: the loop's.
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/engine.h"
#include "agent/jobs/jobs.h"
#include "agent/plans/plans.h"
#include "agent/probe/probes.h"
#include "agent/settings.h"
#include "agent/states/states.h"

/* NULL: off. Begins as zeros. */
struct ft_services {
    struct ft_local_users *users;
    struct ft_jobs *jobs;
    struct ft_plans *plans;
    struct ft_probes *probes;
    struct ft_states *states;
};

/* What they are made with; all of it outlives them. */
struct ft_services_from {
    const struct ft_agent_settings *settings;
    struct ft_loop *loop;
    struct ft_uplink *uplink;
    struct ft_engine *engine;
    const char *host;
    const char *source; /* id of the agent; NULL: no daemon speaks to it */
    uint64_t seed;
};

/* An exit code of sysexits.h, after a message. */
int ft_services_start(struct ft_services *s, const struct ft_services_from *from);
void ft_services_free(struct ft_services *s);

/* No record comes from here any more but from plans and probes that are asked for. */
void ft_services_end(struct ft_services *s);

/* Hands on what the daemon says. */
void ft_services_notice(const struct ft_services *s, const uint8_t *payload, size_t len);

#endif
