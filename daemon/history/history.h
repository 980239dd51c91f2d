// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_HISTORY_HISTORY_H
#define FT_DAEMON_HISTORY_HISTORY_H
/*
 * The windows of the last hour in bounded memory: the link and imbalance records of each, its
 * elephant flows, and the events that stood in it.
 *
 * A sink of the publisher (links, imbalance, events), and an emitter for the elephants, whose paths
 * are not published every window. Rows are kept in the compact form of daemon/history/row.h, and a
 * window complete or, where memory ran out, as "partial". What is over the memory drops the oldest
 * window first. The fabric's imbalance record, the last of its window, closes it. Thread: the
 * loop's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/history/row.h"
#include "daemon/publish/events.h"
#include "daemon/publish/publish.h"

struct ft_history;

struct ft_history_config {
    int64_t keep_ms;  /* 0: the last window alone */
    size_t bytes_max; /* of all; the newest window stays whatever it takes, cut at this size */
    size_t events_max;
    uint64_t seed; /* of its hashes */
};

struct ft_history_stats {
    size_t windows, rows, fixed, events; /* that are kept */
    size_t bytes;
    uint64_t windows_dropped; /* without free memory, before their time */
    uint64_t rows_dropped;    /* likewise: of a window that alone is too large */
    uint64_t events_dropped;
};

/* The history as a sink, which frees it; *history is good as long as the sink is. NULL without
 * memory. */
struct ft_sink *ft_history_new(const struct ft_history_config *config, struct ft_history **history);

/* For the elephants of each window. */
struct ft_emitter ft_history_emitter(struct ft_history *history);

/* Who reports which events stand; may be NULL. */
void ft_history_watch(struct ft_history *history, const struct ft_events *events);

void ft_history_stats(const struct ft_history *history, struct ft_history_stats *stats);

/* A closed window. Its number grows by one from each to the next. */
struct ft_history_window {
    struct ft_span span;
    uint64_t number;
    bool partial; /* the daemon was not there for all of it, or rows found no room */
    size_t rows[FT_ROW_KINDS];
};

/* The first closed window with this number or a higher one; of 0 the oldest. False: there is none.
 */
bool ft_history_window(const struct ft_history *history, uint64_t number,
                       struct ft_history_window *window);

/* The newest one, and the one that a moment lies in. */
bool ft_history_last(const struct ft_history *history, struct ft_history_window *window);
bool ft_history_at(const struct ft_history *history, int64_t ms, struct ft_history_window *window);

/* Reads a window row by row. Between two reads windows may come and go: the one that is read stays
 * until the cursor is closed. key NULL: every row, else those of this Kafka key alone. */
struct ft_history_cursor {
    struct ft_kept_window *window; /* NULL: nothing is read */
    enum ft_row_kind kind;
    size_t offset;
};

int ft_history_open(struct ft_history *history, uint64_t number, enum ft_row_kind kind,
                    struct ft_history_cursor *cursor);
void ft_history_close(struct ft_history *history, struct ft_history_cursor *cursor);

/* The next record, which ft_record_free() frees; NULL at the end of the window, or after so many
 * rows that the key is not of (*rows counts down; key NULL: one a record). */
Fabrictrace__Record *ft_history_read(const struct ft_history *history,
                                     struct ft_history_cursor *cursor, const char *key,
                                     size_t *rows);
bool ft_history_at_end(const struct ft_history_cursor *cursor);

/* The last collective record of each rank and operation, one after the other. index begins at 0;
 * false: that was all. */
bool ft_history_collective(const struct ft_history *history, uint32_t *index,
                           void (*each)(void *arg, const Fabrictrace__Collective *c), void *arg);

/* Events that are over and those that stand, in the order of their beginning, as they were
 * published last; of those that stand that is how they began. index begins at 0. */
struct ft_history_event {
    uint64_t number; /* in that order */
    bool stands;
    int64_t begun_ms, over_ms;   /* over: when it was cleared, or when a happening happened */
    const uint8_t *begun, *over; /* packed; over NULL: it stands, or is a happening; the
                                  * same as begun: the daemon ended before it did */
    size_t begun_len, over_len;
};

bool ft_history_event(const struct ft_history *history, uint64_t number,
                      struct ft_history_event *event);

/* All numbers are below this one. */
uint64_t ft_history_events_end(const struct ft_history *history);

/* Whether an event stood in a window. */
bool ft_history_stood(const struct ft_history_event *event, const struct ft_span *span);

/* About how many bytes so many windows take of a topology, without elephants, and one elephant that
 * is there all the time. */
size_t ft_history_estimate(size_t windows, size_t links, size_t groups);
size_t ft_history_elephant(size_t windows);

#endif
