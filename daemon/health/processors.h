// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_HEALTH_PROCESSORS_H
#define FT_DAEMON_HEALTH_PROCESSORS_H
/*
 * How busy the switches' processors are, as their sFlow agents report. A switch makes samples,
 * counters and SNMP answers on its processor: when it is busy some are dropped, so that flows seem
 * smaller than they are. For the doctor. Capped. Pure; times come with the records, in Unix
 * milliseconds. Thread: one.
 */
#include <stddef.h>
#include <stdint.h>

#include "daemon/publish/findings.h"
#include "lib/fabric/topology.h"
#include "proto/fabrictrace.pb-c.h"

struct ft_processors;

/* NULL without memory. */
struct ft_processors *ft_processors_new(size_t cap);
void ft_processors_free(struct ft_processors *p);

/* A report that arrived at now_ms. -EINVAL: a field that is needed is missing; -ENOSPC: all entries
 * are taken by those that were reported in the last five minutes. */
int ft_processors_take(struct ft_processors *p, const Fabrictrace__Processor *load, int64_t now_ms);

/* Processors that were busy for at least 90 % of a minute (of 5 seconds, where that is all they
 * report), as reported within the last five minutes. */
void ft_processors_find(const struct ft_processors *p, const struct ft_topology *t, int64_t now_ms,
                        struct ft_findings *findings);

#endif
