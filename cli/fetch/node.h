// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_FETCH_NODE_H
#define FT_CLI_FETCH_NODE_H
/*
 * What is known of a host or a switch, put together from several answers of the daemon, for
 * explain.
 *
 *   {"fabric":"lab","window_start_ms":1,"window_end_ms":2,
 *    "host":{...},"agents":[...],"queue_pairs":[...],"queue_pairs_total":8,    or
 *    "switch":{...},"links":[...],"groups":[...],
 *    "findings":[...],"events":[...],"paths":[...],"paths_total":64}
 */
#include "cli/args/args.h"
#include "cli/output/answer.h"

/* As ft_fetch(), but a name that no link, group or job has may be of a host or a switch; of one
 * that these do not have either, FT_EXIT_NOT_FOUND after a complaint. */
int ft_fetch_node(const struct ft_args *args, struct ft_answer **answer, FILE *err);

#endif
