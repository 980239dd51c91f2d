// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_HALTED_H
#define FT_DIAGNOSIS_HALTED_H
/*
 * Whether others stood still as well while one rank was away and they seemed to wait for it: as
 * when all of a job is stopped, or saves, in the middle of a step. Of those who had called an
 * operation by then it lasts that long, and only the one that had not seems to be late.
 *
 * Who is in no operation meanwhile is away itself. Who is in some waits for them, or works beside
 * them: what it does next shows which. Where that comes before any of these has ended, now or at
 * other times, it does not depend on them, and would come long before, or at once when they end so
 * late; unless its rank was halted. So was one that takes far longer to continue than it ever did.
 * Pure. Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/diagnosis/matched.h"

/* A process was away for so long before a row. clocks: what those of all processes show at one
 * moment (clocks.h). */
bool ft_halted_with(const struct ft_matched *m, const uint64_t *clocks, uint32_t row,
                    double away_ns);

#endif
