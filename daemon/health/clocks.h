// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_HEALTH_CLOCKS_H
#define FT_DAEMON_HEALTH_CLOCKS_H
/*
 * Compares the clocks of the programs that report with the daemon's own, by the times in their
 * accounts; differences are active events (clock_skew).
 *
 * Delay makes a clock look late and never early. So a clock is ahead when three accounts in a row
 * came from more than 2 s in the future; it is behind when three in a row came more than 5 s late
 * and all about as late (within 2 s): a backlog that is worked off comes later and later in time,
 * or at once. The event is cleared after three in a row within half of that, and when the program
 * has been silent for three minutes. Where at least three programs report and most of them are off
 * by about the same, more than 2 s ahead or 5 s late, it is this daemon's clock: that is the event
 * then, and the others are compared with the majority. Pure; times are in Unix milliseconds.
 * Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/publish/events.h"
#include "daemon/publish/findings.h"

struct ft_clocks;

/* At most programs_max are judged. `own` is how the daemon itself is named in events. NULL without
 * memory. */
struct ft_clocks *ft_clocks_new(size_t programs_max, const char *own);
void ft_clocks_free(struct ft_clocks *clocks);

/* An account made at time_ms by its program's clock came in at now_ms. In a replay the time is that
 * of the records, which stands still where none come: then nothing is ahead. */
void ft_clocks_take(struct ft_clocks *clocks, const char *program, const char *source,
                    int64_t time_ms, int64_t now_ms, bool replay);

/* Raises what stands, at the close of a window. fabric is borrowed. */
void ft_clocks_raise(struct ft_clocks *clocks, struct ft_events *events, uint32_t window,
                     int64_t now_ms, const char *fabric);

/* For the doctor: what the last close found. */
void ft_clocks_find(const struct ft_clocks *clocks, struct ft_findings *findings);

#endif
