// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_PROBE_SOCKETS_H
#define FT_AGENT_PROBE_SOCKETS_H
/*
 * Raw sockets for probes: two that send IP packets with their header, two that receive ICMP time
 * exceeded alone, which the kernel filters. Opening them needs CAP_NET_RAW, using them nothing. A
 * host without IPv6 has half of them. Thread: any.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/base/tuple.h"

/* Descriptors; below 0: none. */
struct ft_probe_sockets {
    int send4, send6, receive4, receive6;
};

/* -errno with all of them closed. */
int ft_probe_sockets_open(struct ft_probe_sockets *s);
void ft_probe_sockets_close(struct ft_probe_sockets *s);

/* Sends a packet with its IP header, by the route that its source address has. -errno. */
int ft_probe_sockets_send(const struct ft_probe_sockets *s, const struct ft_ip *src,
                          const struct ft_ip *dst, const uint8_t *bytes, size_t len);

/* Receives from one of the two: the length, and who sent it; -errno. */
long ft_probe_sockets_receive(int fd, uint8_t *bytes, size_t size, struct ft_ip *from);

#endif
