// SPDX-License-Identifier: Apache-2.0
#ifndef FT_PROTO_COLUMNS_H
#define FT_PROTO_COLUMNS_H
/*
 * Observations in columns: many in one message, in a quarter of their room (fabrictrace.proto,
 * Observations).
 *
 * A message names addresses and sources by their index in its own lists, and none that came before:
 * what a full queue, a new connection, a restart or another reader of a topic leaves out costs what
 * was in it, and nothing of what follows. Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/writer.h"
#include "proto/observed.h"

#define FT_COLUMNS_ROWS_MAX 65536

struct ft_columns;

/* Gathers about so many bytes at most, and FT_COLUMNS_ROWS_MAX observations. NULL without memory.
 */
struct ft_columns *ft_columns_new(size_t bytes_max);
void ft_columns_free(struct ft_columns *columns);

/* Adds an observation. -ENOSPC: it belongs into another message, so write this one first; -EINVAL:
 * columns cannot say it, it must travel alone; -ENOMEM. */
int ft_columns_add(struct ft_columns *columns, const Fabrictrace__Observation *o);

/* The same of a row that was read from columns. */
int ft_columns_add_row(struct ft_columns *columns, const struct ft_observed *o);
uint32_t ft_columns_count(const struct ft_columns *columns);

/* Appends them as a batch of one record, and is empty afterwards. -ENOSPC when the writer fails. */
int ft_columns_pack(struct ft_columns *columns, struct ft_writer *w);

/* Reads the observations of a message, which it borrows. */
struct ft_columns_reader {
    const Fabrictrace__Observations *m;
    size_t count, at;
    uint64_t first_ms;
};

/* -EBADMSG: lists of unequal length, an index without an entry, a number out of range, more than
 * FT_COLUMNS_ROWS_MAX of them; then none is read. */
int ft_columns_open(struct ft_columns_reader *r, const Fabrictrace__Observations *m);

/* The next one; false: that was all. */
bool ft_columns_next(struct ft_columns_reader *r, struct ft_observed *out);

#endif
