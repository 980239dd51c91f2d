// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_WINDOW_VICTIM_H
#define FT_DAEMON_WINDOW_VICTIM_H
/* A flow as an event names it: its tuple, rate, hosts, job and ranks. Pure. Thread: one. */
#include "daemon/join/join.h"
#include "proto/fabrictrace.pb-c.h"

/* An event names no more. */
#define FT_VICTIMS_MAX 64

/* Borrows names, and the tuple, which is filled. Only what is certain: ranks of one pair alone. */
void ft_victim_fill(Fabrictrace__Victim *out, Fabrictrace__Flow *tuple, const struct ft_join *join,
                    const struct ft_flow *flow, int64_t window_ms);

#endif
