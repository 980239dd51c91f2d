// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_RDMA_QUERY_H
#define FT_AGENT_RDMA_QUERY_H
/*
 * Where the queue pairs of another process send to, asked of their device: the process's own
 * descriptor of the verbs device is duplicated (pidfd_getfd(2)), QUERY_QP is called on it, and it
 * is closed again. Works with every driver and changes nothing, but needs CAP_SYS_PTRACE. Thread:
 * any; a call lasts as long as the driver needs for its queries.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/base/tuple.h"

/* A queue pair with a destination. The device does not report its number. */
struct ft_rdma_queried {
    uint32_t rqpn, sq_psn, rq_psn;
    struct ft_ip dst;
    uint32_t sgid_index;
    uint32_t flow_label;
};

/* The queue pairs of a process on the device with a character device (rdev as in stat(2)) and a
 * driver (enum rdma_driver_id). *count is set to how many were written, at most max. -EPERM without
 * the capability, -ESRCH when the process is gone, -ENOENT when it has no such descriptor. */
int ft_rdma_query(const char *proc, uint32_t pid, uint64_t rdev, uint32_t driver,
                  struct ft_rdma_queried *queried, size_t max, size_t *count);

/* The one that is the queue pair with this peer's number: the only one with it, else the only one
 * that is as far as that was, by its PSNs. Several with the same destination are equivalent: a
 * process may have a descriptor twice. NULL when that does not decide. */
const struct ft_rdma_queried *ft_rdma_query_pick(const struct ft_rdma_queried *queried,
                                                 size_t count, uint32_t rqpn, uint32_t sq_psn,
                                                 uint32_t rq_psn);

#endif
