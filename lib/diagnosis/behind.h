// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_BEHIND_H
#define FT_DIAGNOSIS_BEHIND_H
/*
 * Who is late in a communicator only because it waits for another in a second one.
 *
 * Ranks that gather layers beside their work come late to the reduction with their copies when one
 * of them is late: they wait for it in the communicator of the shards, where it enters after them.
 * Both enter and leave by their own clocks, and leave at the same time: what one was in it longer
 * than the other it came earlier. Pure. Owner: the caller. Thread: one.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/diagnosis/matched.h"

#define FT_BEHIND_MOST 0.5 /* of what a process is late by */

/* A process that is late in a communicator by late_ns a block, the median; the blocks start when it
 * enters an operation, by its clock. */
struct ft_behind {
    uint32_t comm, process;
    const uint64_t *starts; /* blocks + 1 */
    size_t blocks;
    double late_ns;
};

/* Whether it waits for another of its role for most of that. 0, 1, or -ENOMEM. */
int ft_behind_another(const struct ft_matched *m, const uint64_t *roles,
                      const struct ft_behind *late);

#endif
