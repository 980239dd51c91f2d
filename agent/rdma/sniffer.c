// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/rdma/sniffer.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/rdma/sysfs.h"

#define PATH_BYTES 320

static bool exists(const char *root, const char *name)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof(path), "%s/%s", root, name);
    return access(path, F_OK) == 0;
}

/* A name without a port means the first one, as for libpcap. */
static bool split(const char *interface, char device[FT_RDMA_NAME_BYTES], uint32_t *port)
{
    size_t len = strcspn(interface, ":");
    const char *number = interface + len;
    char *end;

    if (len == 0 || len >= FT_RDMA_NAME_BYTES || strchr(interface, '/') || interface[0] == '.')
        return false;
    memcpy(device, interface, len);
    device[len] = '\0';
    *port = 1;
    if (!*number)
        return true;
    *port = (uint32_t)strtoul(number + 1, &end, 10);
    return number[1] >= '1' && number[1] <= '9' && !*end;
}

enum ft_sniffer_choice ft_sniffer_choose(const char *interface, const char *net_root,
                                         const char *rdma_root, bool (*listed)(const char *device))
{
    char device[FT_RDMA_NAME_BYTES];
    uint32_t port;

    if (!split(interface, device, &port) || exists(net_root, interface) ||
        !exists(rdma_root, device))
        return FT_SNIFFER_NONE;
    return listed(device) ? FT_SNIFFER_USED : FT_SNIFFER_MISSING;
}

int ft_sniffer_add_addresses(const char *interface, const char *rdma_root,
                             struct ft_interfaces *interfaces)
{
    struct ft_rdma_gid gids[FT_RDMA_GIDS_MAX];
    char device[FT_RDMA_NAME_BYTES];
    uint32_t port, number;
    size_t count;
    int err;

    if (!split(interface, device, &port))
        return 0;
    count = ft_rdma_gids(rdma_root, device, port, gids, FT_RDMA_GIDS_MAX);
    if (count > FT_RDMA_GIDS_MAX)
        count = FT_RDMA_GIDS_MAX;
    err = count > 0 ? ft_interfaces_intern(interfaces, interface, &number) : 0;
    for (size_t i = 0; !err && i < count; i++)
        err = ft_interfaces_add(interfaces, number, &gids[i].ip);
    return err;
}
