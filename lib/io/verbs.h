// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_VERBS_H
#define FT_IO_VERBS_H
/*
 * What libibverbs reports of an RDMA device that may be opened. The device is closed again before
 * the call returns: an open one would hold up its removal. Thread: any.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/base/tuple.h"

/* A RoCEv2 entry of a GID table (InfiniBand Architecture Specification, annex A17). */
struct ft_verbs_gid {
    uint32_t index;
    struct ft_ip ip;
};

/* The RoCEv2 entries of a port, by index, as they stand at one moment; *count of them, of which max
 * at most are written.
 * -ENOTSUP in a build without libibverbs, -ENODEV when there is no such device, or none that
 * libibverbs has a driver for, -EACCES and others when it may not be opened or asked. */
int ft_verbs_gids(const char *device, uint32_t port, struct ft_verbs_gid *gids, size_t max,
                  size_t *count);

#endif
