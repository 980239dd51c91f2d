// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_RDMA_MONITOR_H
#define FT_AGENT_RDMA_MONITOR_H
/*
 * Hears from the kernel that an RDMA device came or went, got or lost a network interface, or was
 * renamed (Linux 6.12 and later, no privilege needed). What changed is not worked out from the
 * messages: they are the sign to look anew, and one that is lost does no harm.
 * Owner: the caller, who keeps the loop alive. Thread: the loop's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/io/loop.h"
#include "lib/io/netlink.h"

struct ft_rdma_monitor;

/* messages = malformed + those that were taken; lost: how often the kernel had no room for some. */
struct ft_rdma_monitor_stats {
    uint64_t messages, malformed, lost;
};

/* changed is called soon after a message, once for all that come within a tenth of a second. NULL
 * without memory. */
struct ft_rdma_monitor *ft_rdma_monitor_new(struct ft_loop *loop, void (*changed)(void *arg),
                                            void *arg);
void ft_rdma_monitor_free(struct ft_rdma_monitor *monitor);

/* Asks over netlink whether the kernel reports changes, and listens if so. -EOPNOTSUPP when it
 * reports nothing, or -errno. Stop takes one that does not listen. */
int ft_rdma_monitor_start(struct ft_rdma_monitor *monitor, struct ft_netlink *netlink);
void ft_rdma_monitor_stop(struct ft_rdma_monitor *monitor);
bool ft_rdma_monitor_listens(const struct ft_rdma_monitor *monitor);

/* A message of the kernel's, as the listener hands it on. */
void ft_rdma_monitor_message(struct ft_rdma_monitor *monitor, uint16_t type, const uint8_t *bytes,
                             size_t len);

void ft_rdma_monitor_stats(const struct ft_rdma_monitor *monitor,
                           struct ft_rdma_monitor_stats *stats);

#endif
