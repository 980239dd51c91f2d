// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_RDMA_DEVICES_H
#define FT_AGENT_RDMA_DEVICES_H
/*
 * The RDMA devices that are looked at: those of the kernel's list that the configuration names, or
 * all. A list is taken in rounds; a device that a complete round did not name is gone. Pure. Owner:
 * the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/rdma/nldev.h"

#define FT_RDMA_DEVICES_MAX 64

struct ft_rdma_known {
    struct ft_rdma_device info;
    uint64_t rdev;   /* of its character device; 0: not known */
    uint32_t driver; /* enum rdma_driver_id */
    uint32_t round;
};

struct ft_rdma_devices {
    char *const *names; /* of those to look at, borrowed; none: all */
    size_t name_count;
    size_t count;
    uint64_t refused; /* over the cap, in the last round */
    uint32_t round;
    struct ft_rdma_known list[FT_RDMA_DEVICES_MAX];
};

/* Begins a list. */
void ft_rdma_devices_begin(struct ft_rdma_devices *devices);

/* Takes one of the list; true when it was not there before and is to be looked at. */
bool ft_rdma_devices_take(struct ft_rdma_devices *devices, const struct ft_rdma_device *info);

/* Ends a list that was complete; true when a device is gone. */
bool ft_rdma_devices_end(struct ft_rdma_devices *devices);

/* By the kernel's index; NULL. */
const struct ft_rdma_known *ft_rdma_devices_find(const struct ft_rdma_devices *devices,
                                                 uint32_t index);

#endif
