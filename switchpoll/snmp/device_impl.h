// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SNMP_DEVICE_IMPL_H
#define FT_SWITCHPOLL_SNMP_DEVICE_IMPL_H
/*
 * Shared by the parts of a device alone: a poll's life (device.c), the cells that are taken in
 * (device_cells.c), the ports of LLDP (resolve.c), and what is not as it should be
 * (device_problem.c).
 */
#include "switchpoll/snmp/device.h"

/* Where an ifIndex is among the ports, or belongs. */
static inline size_t ft_device_port_at(const struct ft_device_ports *ports, uint32_t ifindex)
{
    size_t low = 0;
    size_t high = ports->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (ports->items[middle].ifindex < ifindex)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* NULL where there is none; borrowed until the ports change. */
struct ft_device_port *ft_device_find_port(struct ft_device *d, uint32_t ifindex);
const struct ft_device_local *ft_device_find_local(const struct ft_device *d, uint32_t number);

/* Replaces a text by the varbind's; NULL when that is none. */
void ft_device_set_text(char **to, const struct ft_snmp_varbind *v);

#endif
