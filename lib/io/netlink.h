// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_NETLINK_H
#define FT_IO_NETLINK_H
/*
 * Requests to the kernel over netlink (libmnl), answered before the call returns: the kernel writes
 * its answer while it is read, so a dump takes as long as the kernel needs to list what it has, and
 * never waits for a peer; and notifications of the kernel to a multicast group. Payloads are
 * opaque bytes; who asks decodes them.
 * Owner: the caller. Thread: one, a listener's is the loop's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/io/loop.h"

struct ft_netlink;

/* One message of the answer without its header; the bytes live until it returns. */
typedef void (*ft_netlink_message)(void *arg, const uint8_t *bytes, size_t len);

/* Opens a socket of a netlink protocol (NETLINK_RDMA, ...). -errno: -EPROTONOSUPPORT where the
 * kernel has no such family. */
int ft_netlink_new(int protocol, struct ft_netlink **netlink);
void ft_netlink_free(struct ft_netlink *netlink);

/* Sends a request of a type with its attributes; dump asks for all objects instead of one. 0 when
 * the answer is complete; -errno as the kernel gives it (-ENODEV, -EPERM, ...), -EINTR when the
 * list changed while it was written, so that rows may be missing, -ETIMEDOUT, -ENOBUFS. Messages
 * that came before an error were handed on. */
int ft_netlink_request(struct ft_netlink *netlink, uint16_t type, bool dump, const void *attributes,
                       size_t attribute_bytes, ft_netlink_message message, void *arg);

struct ft_netlink_listener;

struct ft_netlink_listener_config {
    int protocol;
    unsigned group; /* of the protocol's multicast groups, from 1 */
    /* A message without its header; the bytes live until it returns. */
    void (*message)(void *arg, uint16_t type, const uint8_t *bytes, size_t len);
    /* The kernel had no room for messages: what they said has to be asked for. */
    void (*lost)(void *arg);
    void *arg;
};

/* Joins a group and hands on every message that the kernel sends to it. -errno: -EPERM where the
 * protocol keeps its groups for root, -ENOENT where there is no such group. A kernel may take the
 * number of a group that it never sends to. */
int ft_netlink_listen(struct ft_loop *loop, const struct ft_netlink_listener_config *config,
                      struct ft_netlink_listener **listener);
void ft_netlink_listener_free(struct ft_netlink_listener *listener);

#endif
