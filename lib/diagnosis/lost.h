// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_LOST_H
#define FT_DIAGNOSIS_LOST_H
/* How long ranks have been in operations, and how much of it they waited for others. */
#include <stdint.h>

#include "lib/diagnosis/matched.h"

/* Of each row: what its process has waited in the operations before it, which is what these took
 * longer than at the last rank to enter; free() it. NULL without memory. */
uint64_t *ft_lost_new(const struct ft_matched *m);

/* The same of sends and receives alone. */
uint64_t *ft_pair_waits_new(const struct ft_matched *m);

/* Of each row: how long the operations of its process before it took, each for itself; free() it.
 * NULL without memory. */
uint64_t *ft_inside_new(const struct ft_matched *m);

#endif
