// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_HEALTH_EXPORTERS_H
#define FT_DAEMON_HEALTH_EXPORTERS_H
/*
 * Compares the sFlow samples of each switch with the counters of its ports over the last windows,
 * to find: one that has fallen silent while there was traffic (silent_exporter), and one whose
 * samples stand for more or fewer bytes than the ports counted (a wrong sampling rate, ports
 * without sampling, counters that stand still). Differences that chance may cause are not reported.
 * Pure. Thread: one.
 */
#include "daemon/join/counters.h"
#include "daemon/join/join.h"
#include "daemon/publish/events.h"
#include "daemon/publish/findings.h"

struct ft_exporters;

/* NULL without memory. */
struct ft_exporters *ft_exporters_new(size_t cap);
void ft_exporters_free(struct ft_exporters *x);

/* At the close of a window, before the join gives its slot away and the events are swept: takes the
 * window's samples of every switch, and judges. */
void ft_exporters_close(struct ft_exporters *x, const struct ft_join *join,
                        const struct ft_counters *counters, struct ft_events *events,
                        uint32_t window, const struct ft_span *span);

/* Instead, of a window that was not seen from its start: what the one before showed stands. */
void ft_exporters_hold(const struct ft_exporters *x, const struct ft_topology *t,
                       struct ft_events *events, uint32_t window, const struct ft_span *span);

/* For the doctor: what the last judgement found, and switches that sent no samples at all. */
void ft_exporters_find(const struct ft_exporters *x, const struct ft_topology *t,
                       struct ft_findings *findings);

#endif
