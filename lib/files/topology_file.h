// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FILES_TOPOLOGY_FILE_H
#define FT_FILES_TOPOLOGY_FILE_H
/*
 * The static topology file (YAML).
 *
 *   fabric: lab                      # required
 *   speed_bps: 400000000000          # of linked and attached ports that state none
 *   switches:
 *     - name: leaf1
 *       tier: leaf                   # leaf | spine | superspine; left out = worked out
 *       addresses: [192.0.2.11]      # sFlow agent, SNMP
 *       ports:                       # when there, all ports of the switch
 *         - {name: Ethernet49, ifindex: 49, speed_bps: 400000000000}
 *       lags:                        # aggregates that samples may name instead of a member
 *         - {name: Po1, ifindex: 1001, members: [Ethernet49, Ethernet50]}
 *   links:
 *     - {a: leaf1, a_port: Ethernet49, b: spine1, b_port: Ethernet1, speed_bps: 100000000000}
 *   hosts:
 *     - name: gpu01
 *       nics:
 *         - {addresses: [10.0.1.1], rail: 0, attach: [{switch: leaf1, port: Ethernet1}]}
 *
 * Every mistake is a complaint with file, line and key ("links[3]", counted from 0), all of them in
 * one go; unknown keys are mistakes. Owner: the caller. Thread: one.
 */
#include "lib/base/diag.h"
#include "lib/config/yaml.h"
#include "lib/fabric/topology.h"

/* NULL after at least one complaint. */
struct ft_topology *ft_topology_file_load(const char *file, struct ft_diag *diag);
struct ft_topology *ft_topology_file_read(const struct ft_yaml *root, struct ft_diag *diag);

/* The topology of no file: a fabric by this name, in which everything is found. NULL after a
 * complaint. */
struct ft_topology *ft_topology_file_none(const char *fabric, struct ft_diag *diag);

#endif
