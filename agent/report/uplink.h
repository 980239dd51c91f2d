// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_REPORT_UPLINK_H
#define FT_AGENT_REPORT_UPLINK_H
/*
 * Where records go: to the daemon in acknowledged batches, or as NDJSON into a file.
 *
 * Flow records gather until ft_uplink_flush() or until a batch is full. Every record ends as
 * processed, pending or dropped in the account. Owner: the caller, who keeps the sender alive.
 * Thread: the loop's.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/capture/flows.h"
#include "agent/rdma/ports.h"
#include "lib/base/account.h"
#include "lib/base/clock.h"
#include "lib/io/transport/transport.h"
#include "proto/fabrictrace.pb-c.h"

struct ft_uplink;
struct ft_status;

/* Strings are copied. */
struct ft_uplink_config {
    const char *host;      /* name of this host in flow records */
    const char *source_id; /* of this program in loss records */
};

/* NULL without memory. */
struct ft_uplink *ft_uplink_to_daemon(const struct ft_uplink_config *config,
                                      struct ft_sender *sender);

/* NDJSON into a file that is made or emptied; "-" is standard output. NULL with a complaint. */
struct ft_uplink *ft_uplink_to_file(const struct ft_uplink_config *config, const char *file,
                                    char *error, size_t error_bytes);

/* Unflushed records are lost. */
void ft_uplink_free(struct ft_uplink *uplink);

/* interface and the names of members must stay where they are until the next flush. */
void ft_uplink_flow(struct ft_uplink *uplink, const struct ft_flow_report *report,
                    const char *interface);

/* Sends a record as it is, behind the flow records so far. */
void ft_uplink_record(struct ft_uplink *uplink, const Fabrictrace__Record *record);

/* Sends a port's counters behind the flow records so far. */
void ft_uplink_host(struct ft_uplink *uplink, const struct ft_rdma_port_report *report);

/* Sends a list of queue pairs behind the flow records so far. */
struct ft_rdma_ends_report;
void ft_uplink_queue_pairs(struct ft_uplink *uplink, const struct ft_rdma_ends_report *report);

/* Sends what is seen of the host behind the flow records so far; host and source are filled in. */
void ft_uplink_status(struct ft_uplink *uplink, struct ft_status *status);

/* Sends a loss record behind the flow records so far. */
void ft_uplink_loss(struct ft_uplink *uplink, const struct ft_account *account, struct ft_wall now);

/* Hands on what was gathered. 0, or the -errno of the first write into the file that failed since
 * the start: what came after it was dropped. */
int ft_uplink_flush(struct ft_uplink *uplink);

/* Adds the stage "transport" or "output". */
void ft_uplink_account(const struct ft_uplink *uplink, struct ft_account *account);

#endif
