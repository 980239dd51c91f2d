// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_REPORT_STATUS_H
#define FT_AGENT_REPORT_STATUS_H
/*
 * From what the agent sees and its missing capabilities to a record of fabrictrace.proto. Pure;
 * nothing is allocated.
 */
#include "agent/capture/aggregates.h"
#include "agent/rdma/rdma.h"
#include "agent/report/missing.h"
#include "lib/base/clock.h"
#include "proto/fabrictrace.pb-c.h"

#define FT_STATUS_CAPABILITIES 3
#define FT_STATUS_AGGREGATES   16 /* those beyond are not listed */

/* What the record is made of; strings are borrowed. */
struct ft_status {
    const char *host, *source, *user;
    struct ft_wall time;
    int64_t interval_ns;
    unsigned held; /* enum ft_privilege */
    size_t missing_count;
    const struct ft_missing *missing_capabilities;
    const struct ft_rdma *rdma;             /* NULL: not asked for */
    const struct ft_aggregates *aggregates; /* NULL: none */
    bool probes;                            /* the daemon may ask for them */
};

/* A record and everything it points to: stays where it is while it is used. */
struct ft_status_record {
    Fabrictrace__Record record;
    Fabrictrace__HostStatus status;
    char *capabilities[FT_STATUS_CAPABILITIES];
    Fabrictrace__MissingCapability missing_capabilities[FT_MISSING_MAX],
        *missing_list[FT_MISSING_MAX];
    struct ft_rdma_port_view views[FT_RDMA_DEVICE_PORTS_MAX];
    Fabrictrace__RdmaPort ports[FT_RDMA_DEVICE_PORTS_MAX], *port_list[FT_RDMA_DEVICE_PORTS_MAX];
    Fabrictrace__Aggregate aggregates[FT_STATUS_AGGREGATES], *aggregate_list[FT_STATUS_AGGREGATES];
    Fabrictrace__Member members[FT_STATUS_AGGREGATES][FT_AGGREGATE_MEMBERS],
        *member_list[FT_STATUS_AGGREGATES][FT_AGGREGATE_MEMBERS];
};

void ft_report_status(const struct ft_status *status, struct ft_status_record *out);

#endif
