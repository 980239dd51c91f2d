// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SNMP_DEVICE_IMPL_H
#define FT_SWITCHPOLL_SNMP_DEVICE_IMPL_H
/*
 * Shared by the parts of a device alone: a poll's life (device.c), the cells that are taken in
 * (device_cells.c), and what is not as it should be (device_problem.c).
 */
#include "switchpoll/snmp/device.h"

/* Where an ifIndex is among the ports, or belongs. */
size_t ft_device_port_at(const struct ft_device_ports *ports, uint32_t ifindex);

/* NULL where there is none; borrowed until the ports change. */
struct ft_device_port *ft_device_find_port(struct ft_device *d, uint32_t ifindex);
const struct ft_device_local *ft_device_find_local(const struct ft_device *d, uint32_t number);

/* Replaces a text by the varbind's; NULL when that is none. */
void ft_device_set_text(char **to, const struct ft_snmp_varbind *v);

#endif
