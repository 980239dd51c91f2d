// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DISCOVERY_DOWN_PORTS_H
#define FT_DAEMON_DISCOVERY_DOWN_PORTS_H
/*
 * Ports that are down according to sFlow's interface counters.
 *
 * Some exporters leave the state out, which reads as down. So an agent's state is used once it
 * has said of any port that it is up; and of a port once it was up before, or twice down while its
 * counters stood still. A port that carries bytes while it is said to be down is not. Words are
 * forgotten after ten minutes. Capped; what is over it is refused. Pure; times come with the
 * records, in Unix milliseconds. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/tuple.h"
#include "proto/fabrictrace.pb-c.h"

struct ft_down_ports;

/* A port that is down, and when that was said, by the clock of the poller. */
struct ft_down_port {
    struct ft_ip agent;
    uint32_t ifindex;
    int64_t time_ms;
};

/* NULL without memory. */
struct ft_down_ports *ft_down_ports_new(size_t cap);
void ft_down_ports_free(struct ft_down_ports *ports);

/* Counters of a port; those that say nothing of its state, or are SNMP's, are passed over. *changed
 * when a port went down or is not any more. -ENOSPC over the cap. */
int ft_down_ports_take(struct ft_down_ports *ports, const Fabrictrace__PortCounters *poll,
                       int64_t now_ms, bool *changed);

/* Forgets what was said long ago; whether a port is not down any more by that. */
bool ft_down_ports_age(struct ft_down_ports *ports, int64_t now_ms);

/* The ports that are down, from *index 0; false at the end. */
bool ft_down_ports_next(const struct ft_down_ports *ports, uint32_t *index,
                        struct ft_down_port *out);

#endif
