// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_REPORT_FLOW_H
#define FT_AGENT_REPORT_FLOW_H
/*
 * From plain reports to records of fabrictrace.proto. Pure; nothing is allocated.
 */
#include "agent/capture/flows.h"
#include "agent/rdma/owners.h"
#include "lib/base/clock.h"
#include "proto/record.h"

/* A record and everything it points to. */
struct ft_flow_record {
    Fabrictrace__Record record;
    Fabrictrace__FlowReport report;
    Fabrictrace__Flow flow;
    Fabrictrace__Qp qp;
    struct ft_tuple tuple;
    char comm[FT_OWNER_TEXT_BYTES], job[FT_OWNER_TEXT_BYTES];
};

/* Fills *out, which stays where it is while the record is used. The owner's texts are copied,
 * since he may be forgotten while the report waits, and his entry be another's. Other names are
 * borrowed; an empty interface (a capture file has none) is left out. The queue pair that packets
 * name is the remote one of what the host sends, the local one of what it receives, and the remote
 * one as the source sees it where the direction is not known. */
void ft_report_flow(const struct ft_flow_report *report, const char *host, const char *interface,
                    struct ft_flow_record *out);

#endif
