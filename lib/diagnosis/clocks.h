// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_CLOCKS_H
#define FT_DIAGNOSIS_CLOCKS_H
/*
 * What the clocks of hosts show at the end of a table.
 *
 * The ranks of a collective leave it at about the same time: where those of one host leave later or
 * earlier than those of another as a rule, by more than ranks do, that is what their clocks differ
 * by. So do a send and its receive, where they end together; hosts that neither connects are taken
 * to agree. Pure. Owner: the caller. Thread: one.
 */
#include <stdint.h>

#include "lib/diagnosis/matched.h"

/* Clocks that differ by less are taken to agree. */
#define FT_CLOCKS_SKEW_NS 20000000

/* Of each process, by the clock of its host; free() it. now_ns: when the table was looked at; where
 * that is after its newest time, it holds for all of them. NULL without memory. */
uint64_t *ft_clocks_end(const struct ft_matched *m, uint64_t now_ns);

#endif
