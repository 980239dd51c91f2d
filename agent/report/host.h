// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_REPORT_HOST_H
#define FT_AGENT_REPORT_HOST_H
/*
 * From a port's counters to a record of fabrictrace.proto, with a picture of congestion that is the
 * same for every driver. Pure; nothing is allocated.
 */
#include "agent/rdma/ports.h"
#include "proto/fabrictrace.pb-c.h"

/* A record and everything it points to: stays where it is while it is used. */
struct ft_host_record {
    Fabrictrace__Record record;
    Fabrictrace__HostCounters host;
    Fabrictrace__Counter counters[FT_RDMA_COUNTERS_MAX];
    Fabrictrace__Counter *list[FT_RDMA_COUNTERS_MAX];
};

/* Fills *out; all names are borrowed. What a driver does not count is absent from the picture, and
 * so is growth in a first report. */
void ft_report_host(const struct ft_rdma_port_report *report, const char *host, const char *source,
                    struct ft_host_record *out);

#endif
