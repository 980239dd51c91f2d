// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_SERIES_H
#define FT_DIAGNOSIS_SERIES_H
/*
 * Collectives of one communicator, function and size, in order of time, which are compared with
 * others: who leaves them late, and whether they are slow beyond what else is slow meanwhile. Of
 * collectives.c, leavers.c and alongside.c alone. Owner: the survey, for the time of one diagnosis.
 * Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/diagnosis/diagnosis.h"
#include "lib/diagnosis/matched.h"
#include "lib/diagnosis/slowness.h"

#define FT_SERIES_MIN 10 /* collectives */

struct ft_series {
    uint32_t comm, function, hosts, members;
    uint64_t bytes;
    size_t first, count; /* of entries */
    double median, usual;
    double past; /* what most of it is slower than, whatever its like take */
    struct ft_slowness slow;
    bool is_slow, alone; /* alone: nothing was there to compare it with */
    uint32_t process;    /* that leaves late, NONE */
    uint64_t since_ns;
};

struct ft_series_entry {
    uint32_t comm, function, group;
    uint64_t bytes, start_ns;
    double ns;
};

struct ft_series_survey {
    const struct ft_matched *m;
    struct ft_series_entry *entries;
    struct ft_series *series;
    double *values, *room; /* for as many as there are groups, processes or pairs */
    double *middle;        /* of each collective of a series: what its members are at, the median */
    size_t *count_of;      /* slow communicators of each process */
    size_t entry_count, series_count;
    bool ahead; /* hosts call ahead: lengths say nothing */
    bool lone;  /* there is one communicator, and no sends */
    struct ft_diagnoses *found;
};

/* The time from one collective of a series to the next, on average. */
double ft_series_between(const struct ft_series_survey *s, const struct ft_series *series);

/* Of a Broadcast or Reduce some leave before others have entered: who leaves last may have waited
 * for one of these. */
bool ft_series_leave_together(const struct ft_series_survey *s, const struct ft_series *series);

/* The member that leaves a slow series late through its stretch; NONE. */
uint32_t ft_series_late_leaver(struct ft_series_survey *s, const struct ft_series *series);

/* A member whose own operations last longer at their end, though the others need not wait for it
 * afterwards: then the series is slow, by that member. */
void ft_series_find_tail(struct ft_series_survey *s, struct ft_series *series);

/* What slows down all of the network, or all hosts, is the fault of none: whether a slow series is
 * slower than those of other communicators, and than sends, at the same time, by more than these
 * differ. */
bool ft_series_stands_out(struct ft_series_survey *s, struct ft_series *series);

#endif
