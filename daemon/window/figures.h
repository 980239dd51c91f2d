// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_WINDOW_FIGURES_H
#define FT_DAEMON_WINDOW_FIGURES_H
/*
 * The imbalance of a window's loads: every figure of fabrictrace-records(7), Imbalance, for each
 * ECMP group, each layer and the fabric, as records; and the events that follow from them
 * (polarization), which an even group ends. Pure. Thread: one.
 */
#include "daemon/publish/emit.h"
#include "daemon/publish/events.h"
#include "daemon/window/loads.h"

struct ft_figures_work;
struct ft_counters;
struct ft_hashes;
struct ft_losses;
struct ft_partition_list;

/* The topology is borrowed. NULL without memory. */
struct ft_figures_work *ft_figures_work_new(const struct ft_topology *t);
void ft_figures_work_free(struct ft_figures_work *work);

/* When ports have other ids: the topology is borrowed until the next call. */
void ft_figures_follow(struct ft_figures_work *work, const struct ft_topology *t);

/* Begins a window. What ports say of their state, and what was learnt of hashes; NULL: none.
 * Borrowed until its end. */
void ft_figures_begin(struct ft_figures_work *work, bool partial,
                      const struct ft_counters *counters, const struct ft_hashes *hashes);

/* Once a window: the observations that came since the call before, without those that were only
 * recalled, which are of windows before. Keeps for the records the share of the samples that
 * pollers did not thin out, of those that they accounted for since then; losses NULL: none. */
struct ft_taken ft_figures_seen(struct ft_figures_work *work, const struct ft_join_stats *stats,
                                const struct ft_losses *losses);

/* After ft_figures_begin(), for the records: the partitions of flows that are missing, and those
 * that do not say how many observations came. Borrowed until the window's end. */
void ft_figures_partitions(struct ft_figures_work *work, const struct ft_partition_list *missing,
                           const struct ft_partition_list *unaccounted);

/* One group: its figures, and its part in its layer and the fabric. -ENOMEM. */
int ft_figures_group(struct ft_figures_work *work, const struct ft_loads *loads,
                     const struct ft_topology *t, uint32_t group, const struct ft_span *span,
                     uint32_t window, const struct ft_emitter *emitter, struct ft_events *events);

/* After every group: the records of the groups, whose verdicts depend on all of them, of the
 * layers, then of the fabric. */
void ft_figures_end(struct ft_figures_work *work, const struct ft_loads *loads,
                    const struct ft_topology *t, const struct ft_span *span,
                    const struct ft_emitter *emitter);

#endif
