// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_WINDOW_COLLISIONS_H
#define FT_DAEMON_WINDOW_COLLISIONS_H
/*
 * Collisions: a link with two or more elephants while a sibling of its group has at least one fewer
 * (Events in fabrictrace-records(7)), and one more would have no less of that one's speed. Each is
 * an active event that names the flows, their hosts and jobs. Pure.
 */
#include "daemon/join/join.h"
#include "daemon/publish/events.h"
#include "daemon/window/loads.h"

/* Raises the collisions of a window, and clears those of before that it shows to be over. Sorts the
 * elephants of *loads. victims_max: flows named. */
void ft_collisions_raise(struct ft_loads *loads, const struct ft_join *join,
                         struct ft_events *events, uint32_t window, const struct ft_span *span,
                         uint32_t victims_max);

/* Fills what is known of an elephant; borrows names, and the tuple of its flow. */
void ft_collisions_victim(Fabrictrace__Victim *out, Fabrictrace__Flow *tuple,
                          const struct ft_join *join, const struct ft_elephant *elephant,
                          int64_t window_ms);

#endif
