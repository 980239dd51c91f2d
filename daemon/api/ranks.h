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

/* Likewise those that name a slowest peer, the one that waits the longest beside others first; and
 * the link under an item's pair, NULL where none is named. Good until the next record. */
extern const struct ft_sorted_kind ft_api_slow_order;
const struct ft_pair_link *ft_api_slow_link(const struct ft_view *view, const void *item);

/* arg is the view. */
int ft_api_ranks(void *view, const struct ft_http_request *request, struct ft_writer *body);

#endif
