// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_HEALTH_UNRATED_H
#define FT_DAEMON_HEALTH_UNRATED_H
/*
 * Switches whose samples state a sampling rate of 0: they prove paths but stand for no bytes, so
 * that flows seem to carry nothing. The doctor reports it at once; an event is raised when it
 * lasts. Capped. Pure; times are in Unix milliseconds. Thread: one.
 */
#include <stddef.h>
#include <stdint.h>

#include "daemon/publish/events.h"
#include "daemon/publish/findings.h"
#include "lib/fabric/topology.h"
#include "proto/observed.h"

struct ft_unrated;

/* NULL without memory. */
struct ft_unrated *ft_unrated_new(size_t cap);
void ft_unrated_free(struct ft_unrated *u);

/* Notes an observation, where it has such samples. */
void ft_unrated_take(struct ft_unrated *u, const struct ft_observed *o, int64_t now_ms);

/* Those of the last five minutes. */
void ft_unrated_find(const struct ft_unrated *u, const struct ft_topology *t, int64_t now_ms,
                     struct ft_findings *findings);

/* Raises the event sampling_rate for those that have sent such samples for half a minute and still
 * do. */
void ft_unrated_raise(const struct ft_unrated *u, const struct ft_topology *t,
                      struct ft_events *events, uint32_t window, int64_t now_ms);

#endif
