// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOIN_FLOW_HOST_H
#define FT_DAEMON_JOIN_FLOW_HOST_H
/* The host's side of a flow: what its hosts and the pairing said of it. Pure. Thread: one. */
#include <stdbool.h>

#include "daemon/join/join.h"
#include "daemon/join/names.h"

/* Takes a report. Whether it is news whose flow it is. */
bool ft_flow_host_take(struct ft_flow_host *host, struct ft_names *names,
                       const struct ft_host_report *r);

/* Adds what the source sent, to the report's window and to the one before if that is not an older
 * than `open`, the first that still takes. */
void ft_flow_host_add_sent(struct ft_flow_host *host, const struct ft_host_report *r,
                           uint32_t window, uint32_t open, int64_t window_ms);

/* Forgets all that was said but for volumes. */
void ft_flow_host_withdraw(struct ft_flow_host *host);

/* Says which names are held (daemon/join/names.h). */
void ft_flow_host_use_names(const struct ft_flow_host *host, struct ft_names *names);

#endif
