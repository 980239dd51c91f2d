// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_RANKS_H
#define FT_DAEMON_API_RANKS_H
/*
 * /api/v1/ranks: every rank, its last operation, and the peer and link that are slowest there; by
 * communicator and rank. Thread: the loop's.
 */
#include "daemon/api/sorted.h"
#include "daemon/jobs/ranks.h"
#include "daemon/jobs/slowest.h"

/* The ranks in order; its filter is a struct ft_list_filter. */
extern const struct ft_sorted_kind ft_api_rank_order;

/* arg is the view. */
int ft_api_ranks(void *view, const struct ft_http_request *request, struct ft_writer *body);

#endif
