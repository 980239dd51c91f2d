// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SIM_FLUID_H
#define FT_SIM_FLUID_H
/*
 * Max-min fair rates of flows over links (progressive filling: Bertsekas, Gallager, Data Networks,
 * section 6.5.2): all rates rise together; where a link is full its flows stay at what they have,
 * so do those with no more demand. And what follows in time: flows start, end, and wait for the
 * flows of a round before them, as collectives do.
 *
 * A model of long flows under fair congestion control, without queues, losses and round trips.
 * Pure. Time: of the order of (flows x links of each) x log(links) for one moment.
 */
#include <stdint.h>

struct ft_task;

struct ft_fluid {
    uint32_t links;
    const double *capacity; /* by link */
    uint32_t flows;
    const uint32_t *first; /* link[first[f]] up to link[first[f + 1]] are the links of flow f */
    const uint32_t *link;
    const double *demand; /* by flow; INFINITY: as much as there is. NULL: all that */
    struct ft_task *task; /* pauses when the work of a step is done; NULL: nobody waits */
    /* By item of link: the part of the flow that crosses it, as of one that is sprayed; a link may
     * stand there several times. NULL: all of each flow. */
    const double *part;
};

/* Rates of some flows alone, active[count], or of all where active is NULL. Of the others rate[] is
 * left as it is. A flow without links has its demand. -ENOMEM. */
int ft_fluid_rates(const struct ft_fluid *f, const uint32_t *active, uint32_t count, double *rate);

#define FT_FLUID_NEVER UINT32_MAX

/* Flows that begin together. */
struct ft_fluid_round {
    double start_s; /* at the earliest */
    uint32_t after; /* and when this round has ended; FT_FLUID_NEVER: no other */
};

/* bits[flows]: what each has to carry; round[flows]: in which. Fills end_s[flows] and
 * round_end_s[rounds]: INFINITY where that never comes. A round without flows ends as it begins;
 * rounds may only come after earlier ones. -EINVAL otherwise, -ENOMEM. */
int ft_fluid_play(const struct ft_fluid *f, const double *bits, const uint32_t *round,
                  const struct ft_fluid_round *rounds, uint32_t round_count, double *end_s,
                  double *round_end_s);

#endif
