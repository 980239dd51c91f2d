// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_METRICS_H
#define FT_AGENT_METRICS_H
/*
 * The agent's own state as a Prometheus page (text format 0.0.4). Labels are interfaces, stages and
 * reasons, never flows.
 */
#include <stdbool.h>

#include "agent/capture/capture.h"
#include "agent/capture/flows.h"
#include "agent/rdma/rdma.h"
#include "lib/base/account.h"
#include "lib/base/writer.h"

/* sender: whether there is a connection to speak of, and whether it is up. */
struct ft_agent_metrics {
    const struct ft_account *account;
    struct ft_capture *capture;
    const struct ft_flows *flows;
    const struct ft_rdma *rdma; /* NULL: off */
    bool sender;
    bool connected;
};

void ft_agent_metrics_write(struct ft_writer *w, const struct ft_agent_metrics *metrics);

#endif
