// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SNMP_WALK_H
#define FT_SWITCHPOLL_SNMP_WALK_H
/*
 * Walks the columns of a table side by side with GETBULK, over whatever an agent answers.
 *
 * Pure: says what to ask next and takes the answers. A column ends where the answer leaves it, at
 * the end of the MIB view, where an object identifier does not increase (RFC 3416 section 4.2.2
 * forbids it; agents do it), and at a cap of rows, since a table with a time filter (RFC 4502, as
 * lldpRemTable is indexed) may increase without end. Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/io/snmp/snmp.h"
#include "switchpoll/snmp/mib.h"

#define FT_WALK_COLUMNS_MAX 16

/* One cell: the index is what follows the column's identifier. Borrowed. */
struct ft_walk_cell {
    enum ft_mib_table table;
    size_t column;
    const uint32_t *index;
    size_t index_len;
    const struct ft_snmp_varbind *value;
};

struct ft_walk {
    enum ft_mib_table table;
    size_t varbinds_max;
    size_t rows_max;
    struct ft_snmp_oid at[FT_WALK_COLUMNS_MAX];
    bool over[FT_WALK_COLUMNS_MAX];
    size_t rows[FT_WALK_COLUMNS_MAX];
    size_t asked[FT_WALK_COLUMNS_MAX]; /* columns in the last request, in its order */
    size_t asked_count;
    unsigned shrink;     /* answers that were too big */
    uint64_t cells;      /* handed on */
    bool not_increasing; /* a column ended so */
    bool truncated;      /* a column ended at the cap */
};

/* varbinds_max: in one answer; rows_max: of one column. */
void ft_walk_start(struct ft_walk *walk, enum ft_mib_table table, size_t varbinds_max,
                   size_t rows_max);

/* What to ask next: names for GETBULK and their repetitions. 0: the walk is over. */
size_t ft_walk_next(struct ft_walk *walk, struct ft_snmp_oid names[FT_WALK_COLUMNS_MAX],
                    unsigned *repetitions);

/* Takes the answer to what ft_walk_next() said; calls on_cell for each cell of the table. */
void ft_walk_take(struct ft_walk *walk, const struct ft_snmp_varbind *varbinds, size_t count,
                  void (*on_cell)(void *arg, const struct ft_walk_cell *cell), void *arg);

/* The answer was too big: the next request asks for half. False when it cannot ask for less. */
bool ft_walk_shrink(struct ft_walk *walk);

#endif
