// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_HEALTH_DETOURS_H
#define FT_DAEMON_HEALTH_DETOURS_H
/*
 * Switches that send flows a longer path than the topology has (lib/fabric/detour.h): an event
 * `detour` for each such switch and leaf where its flows go, with the hops of one of them, however
 * many they are. It stands until no flow has shown it for ten seconds. Capped; what is over it is
 * counted. Pure. Thread: one.
 */
#include <stdint.h>

#include "daemon/join/join.h"
#include "daemon/publish/emit.h"
#include "daemon/publish/events.h"
#include "daemon/publish/findings.h"

struct ft_detours;

/* NULL without memory. */
struct ft_detours *ft_detours_new(size_t cap);
void ft_detours_free(struct ft_detours *d);

/* A flow that was seen in the window that is being closed. */
void ft_detours_flow(struct ft_detours *d, const struct ft_join *join, const struct ft_flow *flow);

/* At the end of the close, before the events are swept. */
void ft_detours_close(struct ft_detours *d, const char *fabric, struct ft_events *events,
                      uint32_t window, const struct ft_span *span);

/* For the doctor: what stands. */
void ft_detours_find(const struct ft_detours *d, struct ft_findings *findings);

uint64_t ft_detours_refused(const struct ft_detours *d);

#endif
