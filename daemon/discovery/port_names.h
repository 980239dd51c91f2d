// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DISCOVERY_PORT_NAMES_H
#define FT_DAEMON_DISCOVERY_PORT_NAMES_H
/*
 * How exporters call their ports, by the port names of sFlow's counter samples: for ports that
 * neither the file nor SNMP and LLDP name.
 *
 * A name stays as it was first said: flows and links go by the names of ports, and an exporter must
 * not make them move. Capped: names that nobody has said for ten minutes give way to
 * others, and what is over it then is refused. Pure; times come with the records, in Unix
 * milliseconds. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/tuple.h"
#include "proto/fabrictrace.pb-c.h"

#define FT_PORT_NAME_BYTES 64

struct ft_port_names;

/* NULL without memory. */
struct ft_port_names *ft_port_names_new(size_t cap);
void ft_port_names_free(struct ft_port_names *names);

/* Counters of a port; those without a name, with one too long, or of SNMP are passed over.
 * *changed when the port had no name. -ENOSPC over the cap. */
int ft_port_names_take(struct ft_port_names *names, const Fabrictrace__PortCounters *poll,
                       int64_t now_ms, bool *changed);

/* NULL: it has none. Good until the next call. */
const char *ft_port_names_find(const struct ft_port_names *names, const struct ft_ip *agent,
                               uint32_t ifindex);

#endif
