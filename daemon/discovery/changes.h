// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DISCOVERY_CHANGES_H
#define FT_DAEMON_DISCOVERY_CHANGES_H
/* The events that follow from a look at the fabric: topology_change, link_down,
 * link_shut and miscabling.
 * Pure. */
#include "daemon/publish/events.h"
#include "daemon/publish/findings.h"
#include "lib/fabric/topology.h"

/* Reports what came and went: each by itself while they are few, else all in one event. */
void ft_changes_report(struct ft_events *events, const struct ft_topology *before,
                       const struct ft_topology *after, int64_t now_ms);

/* Holds an event for each contradiction and each link that is down, and clears those that are over.
 */
void ft_changes_hold(struct ft_events *events, const char *fabric,
                     const struct ft_findings *findings, int64_t now_ms);

#endif
