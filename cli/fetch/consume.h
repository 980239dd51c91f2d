// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_FETCH_CONSUME_H
#define FT_CLI_FETCH_CONSUME_H
/*
 * fabrictrace consume: the records of a Kafka topic, as a table or as lines of JSON.
 */
#include "cli/args/args.h"

/* The exit status, after a complaint to stderr. */
int ft_consume_command(const struct ft_args *args);

#endif
