// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_PLANS_PLAN_REPORT_H
#define FT_AGENT_PLANS_PLAN_REPORT_H
/*
 * Records of what became of plans and of their ports, so many a second. Owner: the caller. Thread:
 * one.
 */
#include <stdint.h>
#include <sys/types.h>

#include "agent/plans/ask.h"
#include "agent/plans/kept.h"
#include "agent/report/uplink.h"
#include "lib/base/clock.h"
#include "proto/withdrawal.h"

/* All borrowed. */
struct ft_plan_reports {
    struct ft_uplink *uplink;
    const char *host, *source;
    uint64_t *unreported; /* too many in a second */
    struct ft_mono second;
    uint32_t count; /* in it */
};

/* A plan is over. */
void ft_plan_report_end(struct ft_plan_reports *reports, const struct ft_withdrawal *of,
                        Fabrictrace__PlanOutcome outcome);

/* What a process says of a port that it was given. */
void ft_plan_report_port(struct ft_plan_reports *reports, uint32_t pid,
                         const struct ft_plan_ask *ask, const struct ft_kept *kept,
                         const struct ft_plan_entry *entry);

#endif
