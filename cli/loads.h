// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_LOADS_H
#define FT_CLI_LOADS_H
/*
 * `imbalance --loads`: the figures of one group's links, computed here, without a daemon.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Flows per link of count >= 1 links. As lines for a person, or as one fabrictrace.imbalance.v1
 * record. -ENOMEM. */
int ft_loads_show(FILE *out, bool json, const uint64_t *loads, size_t count);

#endif
