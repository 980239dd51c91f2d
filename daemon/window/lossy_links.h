// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_WINDOW_LOSSY_LINKS_H
#define FT_DAEMON_WINDOW_LOSSY_LINKS_H
/*
 * Links that lose packets, by the packet numbers of the flows that cross them (lib/fabric/lossy.h):
 * an event for each, with the flows that send again. No counter of a switch is needed.
 *
 * A flow counts for a minute with what its samples showed, as long as it keeps its path; not one
 * whose path its sender chose, or that READs. Where timers fire without a loss flows send again on
 * all links; their receivers then miss nothing, so that NAKs alone are compared as well. Pure.
 * Thread: one.
 */
#include "daemon/join/join.h"
#include "daemon/publish/events.h"
#include "lib/fabric/lossy.h"

struct ft_lossy_links;

/* Borrows nothing. NULL without memory. */
struct ft_lossy_links *ft_lossy_links_new(void);
void ft_lossy_links_free(struct ft_lossy_links *l);

/* Ports have other ids from now on. -ENOMEM: nobody looks until the next. */
int ft_lossy_links_resize(struct ft_lossy_links *l, const struct ft_topology *t);

/* A window begins to close: flows of the one before are forgotten. */
void ft_lossy_links_begin(struct ft_lossy_links *l);

/* A flow, at its index of the join, at the close of a window that saw it. */
void ft_lossy_links_flow(struct ft_lossy_links *l, const struct ft_join *join, struct ft_flow *flow,
                         uint32_t index, uint32_t window, const struct ft_span *span);

/* At the end of the flows, before the links: how many with numbered packets left by a port, and how
 * many of them sent packets again. */
void ft_lossy_links_count(const struct ft_lossy_links *l, uint32_t port, uint32_t *flows,
                          uint32_t *again);

/* At the window's end: raises what is found, and clears what about as many flows as then show to be
 * over. events NULL: of a daemon of a group, which sees a part of the flows, nothing is raised.
 * victims_max: flows named. */
void ft_lossy_links_close(struct ft_lossy_links *l, const struct ft_join *join,
                          struct ft_events *events, uint32_t window, const struct ft_span *span,
                          uint32_t victims_max);

/* How the flows over a port compare with those of its group; false: too few to judge. */
bool ft_lossy_links_judge(const struct ft_lossy_links *l, uint32_t port,
                          struct ft_lossy_found *found);

/* As ft_resends_refused(). */
uint64_t ft_lossy_links_refused(const struct ft_lossy_links *l);

#endif
