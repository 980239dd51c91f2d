// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_WORK_PACE_H
#define FT_DIAGNOSIS_WORK_PACE_H
/*
 * How long each member of a communicator is in no operation between its collectives, against its
 * like, in blocks of as many collectives as repeat. Pure. Owner: the caller, which has room for all
 * arrays. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/diagnosis/matched.h"

#define FT_WORK_PACE_BLOCKS_MIN 8

/* One communicator; rows of the matrices are its members, columns its blocks. */
struct ft_work_pace {
    const struct ft_matched *m;
    const uint64_t *roles, *lost_ns, *inside_ns, *waits_ns;
    const uint64_t *apart; /* roles of those that are all taken to be alike; NULL */
    bool stages;           /* these may be stages of a pipeline */
    uint32_t comm;
    size_t members, groups, blocks, period;
    uint32_t *group;                     /* those that all members have ended */
    bool beside;                         /* work runs beside operations */
    bool ended;                          /* nothing is added to the table any more */
    bool brief;                          /* of few blocks a member is late in each, or in none */
    double *own, *late, *later, *excess; /* late: by lengths, later: by clocks */
    double *outside;                     /* own, less what operations take */
    double *lost;                        /* what it waited in all operations */
    double *wall, *room, *others;
    uint8_t *rows; /* enum ft_wander_row */
    double base, wall_base;
};

/* The row of a member in the k-th of these groups. */
uint32_t ft_work_pace_row(const struct ft_work_pace *p, size_t k, size_t position);

/* Whether operations cover nearly all the time, so that work must run beside them. */
bool ft_work_pace_works_beside(const struct ft_work_pace *p);

/* How many groups repeat, at least so often. even: without what is far longer than most, such as
 * pauses of all. */
size_t ft_work_pace_period(const struct ft_work_pace *p, bool even, size_t blocks_min);

/* How long others wait for a member in each block of a stretch, the median, where nobody waits in
 * what is queued behind an operation of the same communicator. */
double ft_work_pace_waited(const struct ft_work_pace *p, size_t position, size_t first, size_t end);

/* Of all blocks, once period and their number are known. base is 0 where nothing is compared. */
void ft_work_pace_fill(struct ft_work_pace *p);

#endif
