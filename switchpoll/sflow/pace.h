// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SFLOW_PACE_H
#define FT_SWITCHPOLL_SFLOW_PACE_H
/*
 * Over how long samples are folded while the daemon cannot keep up: longer, before records are
 * lost.
 *
 * Decisive is how long the oldest record waits for its acknowledgement, by the poller's own
 * clock. Over 1.5 s while 1,000 wait (fewer are no load: the daemon had stopped for a moment, or
 * the network), or with the queue half full, the interval grows to the next of 2, 5 and 10 s, and
 * to the one after it where that does not help. It shrinks by a step when the wait was short for
 * three intervals: so short that the records of one interval, of which a shorter one has no more,
 * are taken in within half of the shorter one. Where the longest does not suffice for an
 * interval, one flow in 2 is sent in an interval, then one in 4, up to 32, in turns (fold.h). Pure;
 * time is handed in. Owner: the caller.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/clock.h"

struct ft_pace {
    uint32_t base_ms; /* as configured */
    uint32_t most_ms; /* likewise; below the base: the base */
    uint32_t interval_ms;
    uint32_t part; /* one flow in so many is sent */
    struct ft_mono changed_at;
    struct ft_mono calm_since;
};

/* Folds as configured. */
void ft_pace_begin(struct ft_pace *pace, uint32_t base_ms, uint32_t most_ms, struct ft_mono now);

/* A few times an interval: how many records wait, the oldest for how long, and whether there is
 * little room for more. Returns whether the interval or the part changed. */
bool ft_pace_step(struct ft_pace *pace, uint64_t waiting, int64_t waits_ns, bool crowded,
                  struct ft_mono now);

#endif
