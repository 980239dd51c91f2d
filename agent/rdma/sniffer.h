// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_RDMA_SNIFFER_H
#define FT_AGENT_RDMA_SNIFFER_H
/*
 * Capturing on an RDMA device instead of a network interface: libpcap's RDMA sniffer, where libpcap
 * was built with it (Debian's is not) and the device can be sniffed (mlx5). It shows what the card
 * sends and receives by itself, as Ethernet frames. Owner and thread: the caller's.
 */
#include <stdbool.h>

#include "agent/capture/interfaces.h"

enum ft_sniffer_choice {
    FT_SNIFFER_NONE,    /* no RDMA device: libpcap decides */
    FT_SNIFFER_USED,    /* an RDMA device that libpcap lists */
    FT_SNIFFER_MISSING, /* an RDMA device, and a libpcap without the sniffer */
};

/* What a name stands for, "mlx5_0" or with its port "mlx5_0:1"; a network interface of that name
 * comes first. The roots are "/sys/class/net" and "/sys/class/infiniband" but in tests; listed says
 * whether libpcap lists a device. */
enum ft_sniffer_choice ft_sniffer_choose(const char *interface, const char *net_root,
                                         const char *rdma_root, bool (*listed)(const char *device));

/* Adds the RoCEv2 addresses of an RDMA device's port as those of the interface; does nothing for
 * other interfaces. 0, -ENOSPC, -ENOMEM. */
int ft_sniffer_add_addresses(const char *interface, const char *rdma_root,
                             struct ft_interfaces *interfaces);

#endif
