// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_WINDOW_FIGURES_H
#define FT_DAEMON_API_WINDOW_FIGURES_H
/*
 * Figures of links, groups, layers and the fabric for the metrics page, from the records of the
 * last closed window.
 *
 * Takes each record as it is published; the fabric's imbalance record, which is the last of a
 * window, completes the page: until then the window before it is shown. What a window counts is
 * added up for each link as long as each window brings it. Capped. Pure. Owner: the caller.
 * Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/settings.h"
#include "lib/base/prometheus.h"
#include "proto/fabrictrace.pb-c.h"

struct ft_window_figures;

/* About 1,200 bytes a link. NULL without memory. */
struct ft_window_figures *ft_window_figures_new(enum ft_metrics_links which, size_t links_max,
                                                size_t scopes_max, uint64_t seed);
void ft_window_figures_free(struct ft_window_figures *figures);

void ft_window_figures_take(struct ft_window_figures *figures, const Fabrictrace__Record *record);

/* Families of links and of imbalance, on a page of ft_daemon_metrics, some thousand series a call.
 * When a window ends meanwhile, the rest of the page is of that one. The position is zero at first;
 * false: that was all. */
struct ft_window_figures_position {
    int metric;
    uint32_t index;
};

bool ft_window_figures_write(const struct ft_window_figures *figures,
                             struct ft_window_figures_position *position, struct ft_prom *page);

/* Links shown, and those that found no room. */
size_t ft_window_figures_links(const struct ft_window_figures *figures);
uint64_t ft_window_figures_refused(const struct ft_window_figures *figures);

#endif
