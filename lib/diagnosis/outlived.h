// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_OUTLIVED_H
#define FT_DIAGNOSIS_OUTLIVED_H
/*
 * What must have ended, though the row of it does not say so: rows of some hosts end sooner than
 * those of others, where tables are taken one after the other, or reports were lost.
 *
 * A collective that no rank leaves before all have entered, and that somebody has left, was entered
 * by every member, which had then ended what its communicator ran before. So with what a rank has
 * received: it was sent. Pure. Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/diagnosis/matched.h"

/* Of each communicator: how many of its groups there are up to the last one that proves that; 0:
 * none does. free() it; NULL without memory. */
size_t *ft_outlived_new(const struct ft_matched *m);

/* Whether the operation of a row that did not end has ended all the same. */
bool ft_outlived(const struct ft_matched *m, const size_t *proven, uint32_t row);

/* Whether a process was in nearly all groups of a communicator until its last one in it: it has not
 * left it, but its newest rows are lost, as of a process that is gone. */
bool ft_outlived_was_regular(const struct ft_matched *m, uint32_t comm, size_t group,
                             uint32_t process);

/* Times of each process, by its clock. */
struct ft_outlived_times {
    const size_t *proven;
    const uint64_t *now_ns; /* the same moment at all */
    bool no_more;           /* nothing is known of the time after the newest row of all */
    uint64_t *last_ns;      /* when it has ended something; made later where others prove that */
    uint64_t *seen_ns;      /* filled: until when there are rows of it */
};

/* Of the hosts of which rows are missing seen_ns is that of their newest row; else it is now_ns.
 * Where rows of one are missing at the end of a table, those of all end somewhere. */
void ft_outlived_times(const struct ft_matched *m, const struct ft_outlived_times *times);

#endif
