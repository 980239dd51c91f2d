// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_WANDER_H
#define FT_DIAGNOSIS_WANDER_H
/*
 * Whether a rank is later than ranks become by chance where their own times wander, each by itself.
 *
 * In any job some rank is later than its like through some stretch of time: the more ranks and
 * stretches there are to choose from, the later is the latest. So a stretch is compared with what
 * other ranks reach at any time of the table, in stretches that last as long or half as long, of
 * communicators with as many members. A rank stands out where the latest of so many, by Student's
 * distribution with as many degrees of freedom as there are others, would be so late in one of
 * 10,000 tables. What the noise of single blocks makes of stretches is not counted: the caller has
 * compared with that. What ranks differ by throughout the table counts for less.
 *
 * Left out are suspects of the same host, which may be late for the same reason, and the latest of
 * the others, which may have a fault of its own. Pure. Owner: the caller, for the time of one
 * diagnosis. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/diagnosis/matched.h"

struct ft_wander;

/* What is known of a member by its row of a matrix. */
enum ft_wander_row {
    FT_WANDER_NONE,  /* nothing: it has no like */
    FT_WANDER_ABOVE, /* where it is below its like, the lateness of another may be the cause */
    FT_WANDER_BOTH,
};

/* Processes of one group, a communicator, in blocks that take wall_ns each. Rows of the matrix are
 * its members, columns its blocks: by what share a member's own time exceeds what is usual. */
struct ft_wander_pace {
    const struct ft_member *member; /* borrowed */
    size_t members, blocks;
    double wall_ns, *excess;
    uint8_t *rows; /* enum ft_wander_row of each member */
};

/* A process that exceeds what is usual, in a stretch of a group's blocks. */
struct ft_wander_stretch {
    uint32_t process;
    size_t members, blocks, of; /* of: all blocks of the group */
    double wall_ns, excess;     /* excess: the median */
};

/* NULL without memory. */
struct ft_wander *ft_wander_new(const struct ft_matched *m);
void ft_wander_free(struct ft_wander *w);

/* Takes matrix and rows, which were allocated, and leaves NULL. -ENOMEM: they are not taken. */
int ft_wander_take(struct ft_wander *w, struct ft_wander_pace *pace);

void ft_wander_suspect(struct ft_wander *w, uint32_t process);

/* When all groups and suspects are known: whether this is more than chance; true where nobody can
 * be compared with. 0, 1, or -ENOMEM. */
int ft_wander_stands_out(struct ft_wander *w, const struct ft_wander_stretch *stretch);

#endif
