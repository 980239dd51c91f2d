// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DISCOVERY_DOWN_PORTS_H
#define FT_DAEMON_DISCOVERY_DOWN_PORTS_H
/*
 * Ports that are down according to sFlow's interface counters.
 *
 * Some exporters leave the state out, which reads as down. So an agent's states are used once it
 * has reported any port as up; and "down" of a port once the port was up before, or was down in two
 * reports between which its counters did not change. A port that carries bytes is not down,
 * whatever its state says. Some fill in the administrative state with the operational one, or the
 * other way round: it is used once the agent has reported a port as enabled and not up. Reports are
 * forgotten after ten minutes. Capped; what is over it is
 * refused. Pure; times come with the records, in Unix milliseconds. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/tuple.h"
#include "proto/fabrictrace.pb-c.h"

struct ft_down_ports;

/* A port that is down, and when that was reported, by the clock of the poller. */
struct ft_down_port {
    struct ft_ip agent;
    uint32_t ifindex;
    int64_t time_ms;
    bool shut, enabled; /* by its administrator; neither: not known */
};

/* NULL without memory. */
struct ft_down_ports *ft_down_ports_new(size_t cap);
void ft_down_ports_free(struct ft_down_ports *ports);

/* Counters of a port; those without a state, or from SNMP, are ignored. *changed when a port went
 * down or came up, or is shut while it is down. -ENOSPC over the cap. */
int ft_down_ports_take(struct ft_down_ports *ports, const Fabrictrace__PortCounters *poll,
                       int64_t now_ms, bool *changed);

/* Whether an agent distinguishes ports that were shut from those that are down. */
bool ft_down_ports_has_both(const struct ft_down_ports *ports, const struct ft_ip *agent);

/* Forgets old reports; true when a port is no longer down because of that. */
bool ft_down_ports_age(struct ft_down_ports *ports, int64_t now_ms);

/* The clock was set back: no report came later than this. */
void ft_down_ports_set_back(struct ft_down_ports *ports, int64_t now_ms);

/* The ports that are down, from *index 0; false at the end. */
bool ft_down_ports_next(const struct ft_down_ports *ports, uint32_t *index,
                        struct ft_down_port *out);

#endif
