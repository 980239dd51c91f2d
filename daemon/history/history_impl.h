// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_HISTORY_HISTORY_IMPL_H
#define FT_DAEMON_HISTORY_HISTORY_IMPL_H
/*
 * Shared by history.c and snapshot.c alone: how windows lie in memory.
 *
 * Rows of a kind lie one behind the other, each as: the number of its fixed part, its length (both
 * varints), its bytes.
 */
#include "daemon/history/history.h"
#include "daemon/history/past.h"

struct ft_rows {
    uint8_t *bytes;
    size_t len, size, count;
};

struct ft_kept_window {
    uint64_t number;
    struct ft_span span;
    bool partial;
    bool forgotten; /* no longer listed: its last reader frees it */
    unsigned readers;
    struct ft_rows rows[FT_ROW_KINDS];
};

struct ft_fixed_table;
struct ft_latest;

struct ft_history {
    struct ft_history_config config;
    struct ft_fixed_table *fixed;
    struct ft_past *past;
    struct ft_latest *latest;
    const struct ft_events *events; /* NULL: nobody reports */
    struct ft_kept_window **list;   /* a ring, by number: first <= n < end */
    size_t size;
    uint64_t first, end;
    struct ft_kept_window *filling; /* NULL: none */
    bool complete;                  /* a window has closed: the next one is seen from its start */
    size_t window_bytes;
    struct ft_writer fixed_part, row;
    struct ft_history_stats stats;
    struct ft_sink_stats sink;
};

struct ft_kept_row {
    uint32_t fixed;
    const uint8_t *bytes;
    size_t len;
};

/* The row at an offset, which moves on; false at the end, or where there is none. */
bool ft_kept_row(const struct ft_rows *rows, size_t *offset, struct ft_kept_row *row);

/* An empty window that nobody lists; NULL without memory. */
struct ft_kept_window *ft_kept_new(struct ft_history *h, const struct ft_span *span);
void ft_kept_free(struct ft_history *h, struct ft_kept_window *w);

/* Adds a row, whose fixed part has a user for it already. -ENOMEM. */
int ft_kept_add(struct ft_history *h, struct ft_kept_window *w, enum ft_row_kind kind,
                uint32_t fixed, const uint8_t *row, size_t len);

/* Lists a window as the newest; what is too old or too much goes. -ENOMEM. */
int ft_kept_append(struct ft_history *h, struct ft_kept_window *w);

/* Forgets all windows and events. */
void ft_kept_clear(struct ft_history *h);

#endif
