// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SNMP_RESOLVE_H
#define FT_SWITCHPOLL_SNMP_RESOLVE_H
/*
 * Which interface an LLDP local port number stands for. The number alone says nothing: it is not an
 * ifIndex, though it may look like one. What counts is the port's id by its subtype:
 *
 * - interface name: ifName, else ifDescr;
 * - interface alias: ifAlias;
 * - MAC address: ifPhysAddress;
 * - local and others: ifName, ifDescr or ifAlias;
 *
 * else its description, where one port alone has it as any of the three; else, of a local id, the
 * number that it is: as an ifIndex where it is the local port number too and that of an Ethernet
 * port, which it can only be as an ifIndex.
 *
 * Only an exact match with one interface alone counts. Two port numbers that come to the same
 * interface contradict each other: both stay unresolved. Pure. Thread: any.
 */
#include "switchpoll/snmp/device.h"

/* Sets the ifindex of each local port, 0 where it is not known. */
void ft_resolve_locals(struct ft_device_locals *locals, const struct ft_device_ports *ports);

#endif
