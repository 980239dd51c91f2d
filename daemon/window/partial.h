// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_WINDOW_PARTIAL_H
#define FT_DAEMON_WINDOW_PARTIAL_H
/*
 * A window's loads in parts: what a member of a group of daemons says of the flows of its
 * partitions, and the sum of all members, of which the aggregator computes figures. Loads add up,
 * so that the figures are those of one daemon with all flows. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/join/join.h"
#include "daemon/publish/emit.h"
#include "daemon/window/loads.h"

/* Partitions of flows. */
#define FT_PARTITIONS_MAX 4096

/* Who says it. */
struct ft_partial_origin {
    const char *source;
    const uint32_t *partitions; /* ascending */
    const int64_t *since_ms;    /* by partition: when this daemon got it; NULL: at its start */
    size_t partition_count;
    uint32_t partitions_all;
    bool behind;      /* what others had before is not all read back */
    int64_t grace_ms; /* after which another daemon, which had it before, has closed a window */
};

/* Also of NULL, a daemon that has all. */
static inline bool ft_partial_behind(const struct ft_partial_origin *origin)
{
    return origin && origin->behind;
}

/* Whether the partition of a flow is one of which this daemon speaks in a window that ends then; of
 * those that it has now, INT64_MAX; of NULL, all. Who got one when the window was due to close does
 * not: who had it before has spoken. */
bool ft_partial_owns(const struct ft_partial_origin *origin, const struct ft_tuple *tuple,
                     int64_t end_ms);

struct ft_partial_said;

/* The loads of the window that the join closes, as records of some 1,000 links. Borrowed until it
 * is freed: origin, loads and join. NULL: nothing is said of this window, also without memory. */
struct ft_partial_said *ft_partial_say(const struct ft_partial_origin *origin,
                                       const struct ft_loads *loads, const struct ft_join *join,
                                       uint32_t window, const struct ft_span *span, bool partial,
                                       const struct ft_emitter *emitter);

/* A step, a record at most; of NULL, none. *work: in flows of a window's close. False: that was
 * all. */
bool ft_partial_say_step(struct ft_partial_said *said, uint32_t *work);
void ft_partial_said_free(struct ft_partial_said *said);

/* Ascending. */
struct ft_partition_list {
    uint32_t item[FT_PARTITIONS_MAX];
    size_t count;
};

struct ft_partials;

struct ft_partials_stats {
    uint64_t taken, duplicates, overlapping, late, invalid, no_room;
    uint64_t windows_missing; /* that were closed without all partitions */
};

/* Parts of the windows of a few minutes, in at most so many bytes. NULL without memory. */
struct ft_partials *ft_partials_new(uint32_t partitions_all, size_t bytes_max);
void ft_partials_free(struct ft_partials *partials);

/* Keeps a copy. 0; -EALREADY: it is there, or partitions of it are; -ESTALE: of a window that is
 * closed; -EINVAL: it cannot be; -ENOMEM. */
int ft_partials_take(struct ft_partials *partials, const Fabrictrace__Partial *part);

/* Whether all partitions have spoken of a window. */
bool ft_partials_complete(const struct ft_partials *partials, int64_t window_start_ms);

/* Begins the sum of a window, of what there is now, and lists the partitions that are missing. */
void ft_partials_begin(struct ft_partials *partials, int64_t window_start_ms,
                       struct ft_partition_list *missing);

/* Adds the next record to the window's loads, and what samples said of ports to the join's; names
 * that the topology does not have are passed over. Elephants borrow from the partials until
 * ft_partials_close(). *work: how many links and others it had. False: there was none left. */
bool ft_partials_step(struct ft_partials *partials, uint32_t window, struct ft_loads *loads,
                      struct ft_join *join, uint32_t *work);

/* Lists the partitions that are there without how many observations came. Returns whether any part
 * was begun within the window, or is missing. */
bool ft_partials_end(struct ft_partials *partials, struct ft_partition_list *unaccounted);

/* Forgets a window and those before it; more of them is late. */
void ft_partials_close(struct ft_partials *partials, int64_t window_start_ms);

/* The clock was set back: forgets all; this window and those behind it are to come. */
void ft_partials_restart(struct ft_partials *partials, int64_t window_start_ms);

const struct ft_partials_stats *ft_partials_stats(const struct ft_partials *partials);

#endif
