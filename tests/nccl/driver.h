// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_NCCL_DRIVER_H
#define FT_TESTS_NCCL_DRIVER_H
/*
 * Drives a profiler plugin as NCCL does: one collective with its proxy operations and steps.
 */
#include <stdint.h>

#include "agent/nccl/abi.h"

struct driver {
    void *library;
    const struct ft_nccl_plugin_v4 *v4;
    const struct ft_nccl_plugin_v5 *v5, *v6;
};

/* The plugin's file; ends the program when it cannot be loaded. */
void driver_load(struct driver *d, const char *file);

/* A transfer of one channel: count steps of bytes each. Returns the calls made. */
uint64_t driver_proxy(const struct ft_nccl_plugin_v5 *p, void *context, void *parent, int peer,
                      int channel, int is_send, int steps, uint32_t bytes);

/* An AllReduce over a ring of ranks with that many channels. Returns the calls made. */
uint64_t driver_ring(const struct ft_nccl_plugin_v5 *p, void *context, int rank, int ranks,
                     uint64_t sequence, int channels, int steps, uint32_t bytes);

#endif
