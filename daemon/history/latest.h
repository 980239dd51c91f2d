// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_HISTORY_LATEST_H
#define FT_DAEMON_HISTORY_LATEST_H
/*
 * The last collective record of each rank and operation, until no more came for an hour. Capped:
 * what finds no room is counted. Private to daemon/history/. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/fabrictrace.pb-c.h"

struct ft_latest;

struct ft_latest *ft_latest_new(size_t count_max, size_t bytes_max, uint64_t seed);
void ft_latest_free(struct ft_latest *latest);
void ft_latest_take(struct ft_latest *latest, const Fabrictrace__Collective *c);
/* The next one, unpacked for the call. index begins at 0; false: that was all. */
bool ft_latest_next(const struct ft_latest *latest, uint32_t *index,
                    void (*each)(void *arg, const Fabrictrace__Collective *c), void *arg);

/* Forgets those before a time. */
void ft_latest_forget(struct ft_latest *latest, int64_t ms);
uint64_t ft_latest_refused(const struct ft_latest *latest);

#endif
