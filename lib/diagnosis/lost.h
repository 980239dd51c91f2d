// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_LOST_H
#define FT_DIAGNOSIS_LOST_H
/* How long ranks have waited for others. */
#include <stdint.h>

#include "lib/diagnosis/matched.h"

/* Of each row: what its process has waited in the operations before it, which is what these took
 * longer than at the last rank to enter; free() it. NULL without memory. */
uint64_t *ft_lost_new(const struct ft_matched *m);

#endif
