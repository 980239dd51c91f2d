// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_CAPTURE_INTERFACES_H
#define FT_AGENT_CAPTURE_INTERFACES_H
/*
 * The host's interfaces and addresses: gives names small numbers, and derives from a packet's
 * addresses whether it leaves or arrives.
 *
 * An address of the capturing interface itself says more than one of another interface: between two
 * NICs of one host both ends are local, yet each NIC sees only one direction.
 * Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/capture/flows.h"
#include "lib/base/tuple.h"

#define FT_INTERFACES_MAX      64
#define FT_INTERFACE_NONE      UINT32_MAX
#define FT_INTERFACE_ADDRESSES 4096

struct ft_interfaces;
struct ifaddrs;

/* NULL without memory. */
struct ft_interfaces *ft_interfaces_new(void);
void ft_interfaces_free(struct ft_interfaces *interfaces);

/* The number of a name, given at its first use and kept for good. -ENOSPC past FT_INTERFACES_MAX
 * names, -ENOMEM. */
int ft_interfaces_intern(struct ft_interfaces *interfaces, const char *name, uint32_t *number);
const char *ft_interfaces_name(const struct ft_interfaces *interfaces, uint32_t number);

/* An address of an interface, or of the host at large with FT_INTERFACE_NONE. It lasts until the
 * next ft_interfaces_forget(). -ENOSPC past FT_INTERFACE_ADDRESSES. */
int ft_interfaces_add(struct ft_interfaces *interfaces, uint32_t number, const struct ft_ip *ip);
void ft_interfaces_forget(struct ft_interfaces *interfaces);

/* Adds the addresses that the kernel lists now; those of interfaces without a number count for the
 * host. -errno of getifaddrs(3), -ENOSPC. */
int ft_interfaces_scan(struct ft_interfaces *interfaces);

/* The same of a list, for tests. */
int ft_interfaces_take(struct ft_interfaces *interfaces, const struct ifaddrs *list);

/* Whether an address is one of the host's. */
bool ft_interfaces_is_local(const struct ft_interfaces *interfaces, const struct ft_ip *ip);

/* Writes the names of the kernel's interfaces, each behind a blank, cut off at the size. */
void ft_interfaces_list(char *text, size_t text_bytes);

enum ft_flow_direction ft_interfaces_direction(const struct ft_interfaces *interfaces,
                                               uint32_t number, const struct ft_ip *src,
                                               const struct ft_ip *dst);

#endif
