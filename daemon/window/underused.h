// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_WINDOW_UNDERUSED_H
#define FT_DAEMON_WINDOW_UNDERUSED_H
/*
 * Links that flows avoid over many windows (lib/fabric/underuse.h): an event for each.
 *
 * Each flow counts once, with the first path that it takes, at every hop with a choice; where it
 * moves to later is a sign for that link alone. Nothing is concluded from windows in which many
 * flows have no path, for those of one link may be among them, nor of a link whose port counts
 * about as many bytes as the others. Groups of more than 64 links are left out, and links that the
 * switch may weigh otherwise than others (lib/fabric/weights.h), or one before (skewed.h). Pure.
 * Thread: one.
 */
#include "daemon/join/counters.h"
#include "daemon/join/join.h"
#include "daemon/publish/events.h"
#include "daemon/window/loads.h"

struct ft_underused;

/* NULL without memory. */
struct ft_underused *ft_underused_new(void);
void ft_underused_free(struct ft_underused *u);

/* Ports have other ids from now on; what was seen of those that are there still is kept. The
 * topology is borrowed until the next call. -ENOMEM: nobody looks until then. */
int ft_underused_resize(struct ft_underused *u, const struct ft_topology *t);

/* A flow at the close of a window that saw it. */
void ft_underused_flow(struct ft_underused *u, const struct ft_join *join,
                       const struct ft_flow *flow, const struct ft_span *span);

/* At its end: raises what stands, and clears what does not any more. counters: NULL where there are
 * none. */
void ft_underused_close(struct ft_underused *u, const struct ft_topology *t,
                        const struct ft_counters *counters, const struct ft_loads *loads,
                        struct ft_events *events, uint32_t window, const struct ft_span *span);

#endif
