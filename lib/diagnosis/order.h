// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_ORDER_H
#define FT_DIAGNOSIS_ORDER_H
/*
 * Which rank calls two collectives in another order than the others.
 *
 * Where hosts call ahead all ranks have called both in the end, so that nobody is absent, and none
 * can end: each rank's GPU is in the one that was called first. Pure. Owner: the caller. Thread:
 * one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/diagnosis/waits.h"

/* Of a circle that a node waits in: two collectives that have not ended, which one rank called in
 * one order, and all others that are in both in the other; that rank, and one of the others, which
 * stand in them. False where there are none. */
bool ft_order_odd(const struct ft_waits *w, const struct ft_matched *m, uint32_t node,
                  uint32_t *odd, uint32_t *other);

#endif
