// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_HISTORY_PAST_H
#define FT_DAEMON_HISTORY_PAST_H
/*
 * Events by the time that they stood: those that stand, and of those that are over the newest.
 * Private to daemon/history/. Thread: one.
 */
#include "daemon/history/history.h"

struct ft_past;

/* At most so many; further ones drop the oldest that is over. */
struct ft_past *ft_past_new(size_t events_max);
void ft_past_free(struct ft_past *past);

/* One is published; stands: it does from now on, else it is a happening or is over (cleared). */
void ft_past_add(struct ft_past *past, const Fabrictrace__Event *event, bool stands);

/* Takes one as it was kept before; over the cap as above. False: it is none, or without memory. */
bool ft_past_restore(struct ft_past *past, const struct ft_history_event *event);

/* The first whose number is this or a higher one. */
bool ft_past_event(const struct ft_past *past, uint64_t number, struct ft_history_event *event);

uint64_t ft_past_end(const struct ft_past *past);

/* Forgets those that were over by then. */
void ft_past_forget(struct ft_past *past, int64_t ms);

/* Forgets all, also those that stand. */
void ft_past_clear(struct ft_past *past);

/* Forgets the oldest that is over; false: all stand. */
bool ft_past_forget_one(struct ft_past *past);

size_t ft_past_count(const struct ft_past *past);
size_t ft_past_bytes(const struct ft_past *past);
uint64_t ft_past_dropped(const struct ft_past *past);

/* Of those that came: found no room at all. */
uint64_t ft_past_refused(const struct ft_past *past);

#endif
