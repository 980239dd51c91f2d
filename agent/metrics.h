// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_METRICS_H
#define FT_AGENT_METRICS_H
/*
 * The agent's own state as a Prometheus page, from one table. Labels are interfaces, stages and
 * reasons, never flows.
 */
#include "agent/capture/capture.h"
#include "agent/capture/flows.h"
#include "agent/jobs/jobs.h"
#include "agent/plans/plans.h"
#include "agent/probe/probes.h"
#include "agent/rdma/rdma.h"
#include "agent/settings.h"
#include "agent/states/states.h"
#include "lib/io/http/common_metrics.h"
#include "lib/io/transport/transport.h"

struct ft_agent_metrics {
    struct ft_common_facts common;
    const struct ft_agent_settings *settings;
    struct ft_capture *capture;
    const struct ft_flows *flows;
    const struct ft_rdma *rdma;           /* NULL: off */
    const struct ft_jobs *jobs;           /* NULL: off */
    const struct ft_plans *plans;         /* NULL: off */
    const struct ft_probes *probes;       /* NULL: off */
    const struct ft_states *states;       /* NULL: off */
    const struct ft_sender_stats *sender; /* NULL: records go to no daemon */
};

extern const struct ft_prom_table ft_agent_metrics_table;

void ft_agent_metrics_write(struct ft_writer *w, const struct ft_agent_metrics *metrics);

/* At most so many series, for --check. */
void ft_agent_metrics_print_size(const struct ft_agent_settings *settings, FILE *out);

#endif
