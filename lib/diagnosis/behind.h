// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_BEHIND_H
#define FT_DIAGNOSIS_BEHIND_H
/*
 * Who is late in a communicator only because it waits for another in a second one.
 *
 * That is so where it was compared with the other in that second one, and the other is late there
 * alone; or where several that share it are late, each in a communicator of its own, and this one
 * waited there for most of what it is late by. Pure. Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/diagnosis/matched.h"

/* A process that is late in a communicator, in a stretch of time. */
struct ft_behind {
    uint32_t comm, process;
    uint64_t since_ns, until_ns; /* by its own clock */
    double excess;               /* as a share of what is usual */
    double late_ns;              /* what it is late by, in all of the stretch */
};

/* Whether the one at an index is so, of all that are late. */
bool ft_behind_another(const struct ft_matched *m, const struct ft_behind *all, size_t count,
                       size_t index);

#endif
