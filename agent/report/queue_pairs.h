// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_REPORT_QUEUE_PAIRS_H
#define FT_AGENT_REPORT_QUEUE_PAIRS_H
/*
 * From a list of queue pairs to a record of fabrictrace.proto. Pure; nothing is allocated.
 */
#include "agent/rdma/rdma.h"
#include "proto/fabrictrace.pb-c.h"

/* A record and everything it points to: stays where it is while it is used. */
struct ft_queue_pairs_record {
    Fabrictrace__Record record;
    Fabrictrace__QueuePairs list;
    Fabrictrace__QueuePair pairs[FT_RDMA_ENDS_MAX];
    Fabrictrace__QueuePair *pair_list[FT_RDMA_ENDS_MAX];
    ProtobufCBinaryData addresses[FT_RDMA_GIDS_MAX];
};

/* Fills *out; names and addresses are borrowed from the report. */
void ft_report_queue_pairs(const struct ft_rdma_ends_report *report, const char *host,
                           const char *source, struct ft_queue_pairs_record *out);

#endif
