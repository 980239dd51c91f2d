// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_RDMA_SYSFS_H
#define FT_AGENT_RDMA_SYSFS_H
/*
 * What sysfs reports of an RDMA device's port: its RoCEv2 addresses, its speed and its counters
 * (Linux Documentation/ABI/stable/sysfs-class-infiniband). Read anew at each call; what a driver
 * does not have is simply not there. Thread: any.
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/rdma/nldev.h"
#include "lib/base/tuple.h"

#define FT_RDMA_GIDS_MAX     64
#define FT_RDMA_COUNTERS_MAX 96

/* A RoCEv2 entry of the GID table. Of several with one address (VLANs) all are listed. */
struct ft_rdma_gid {
    uint32_t index;
    struct ft_ip ip;
    char netdev[FT_RDMA_NAME_BYTES];
};

struct ft_rdma_counter {
    char name[FT_RDMA_NAME_BYTES];
    uint64_t value;
};

/* Folders below root, which is "/sys/class/infiniband" but in tests. Returns how many there are, of
 * which it wrote max at most. */
size_t ft_rdma_gids(const char *root, const char *device, uint32_t port, struct ft_rdma_gid *gids,
                    size_t max);

/* The interface of an entry of the GID table, "" when it has none. */
void ft_rdma_gid_netdev(const char *root, const char *device, uint32_t port, uint32_t index,
                        char netdev[FT_RDMA_NAME_BYTES]);

/* Counters of counters/ and hw_counters/, by name. Returns how many it wrote, at most max. */
size_t ft_rdma_counters(const char *root, const char *device, uint32_t port,
                        struct ft_rdma_counter *counters, size_t max);

/* Signalling rate in bits per second, 0 when not reported. */
uint64_t ft_rdma_speed_bps(const char *root, const char *device, uint32_t port);

#endif
