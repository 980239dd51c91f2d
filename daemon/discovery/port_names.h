// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DISCOVERY_PORT_NAMES_H
#define FT_DAEMON_DISCOVERY_PORT_NAMES_H
/*
 * The names that exporters give their ports in sFlow's counter samples, for ports that neither the
 * file nor SNMP and LLDP name.
 *
 * A name is kept: flows and links are identified by port names, and must not change with every
 * report. Another one replaces it that three reports in a row say, over half a minute at least, as
 * after a switch started anew and numbers its ports otherwise; within an hour after that it takes
 * twice as many, and so on. Where a name comes back in between, it is reported as unsteady for ten
 * minutes. Capped: when the table is full, names not reported for ten minutes are
 * replaced; else new ones are refused. Pure; times come with the records, in Unix milliseconds.
 * Thread: one.
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

/* Counters of a port; those without a name, with one too long, or from SNMP are ignored. *changed
 * when the port had no name, has another one, or whether it is steady changed. -ENOSPC over the
 * cap. */
int ft_port_names_take(struct ft_port_names *names, const Fabrictrace__PortCounters *poll,
                       int64_t now_ms, bool *changed);

/* NULL: it has none. Good until the next call. */
const char *ft_port_names_find(const struct ft_port_names *names, const struct ft_ip *agent,
                               uint32_t ifindex);

/* Whether exporters say another name of it in turn. */
bool ft_port_names_unsteady(const struct ft_port_names *names, const struct ft_ip *agent,
                            uint32_t ifindex);

#endif
