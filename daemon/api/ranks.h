// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_RANKS_H
#define FT_DAEMON_API_RANKS_H
/*
 * /api/v1/ranks: every rank, its last operation, and the peer and link that are slowest there.
 */
#include "daemon/api/list.h"
#include "daemon/jobs/ranks.h"
#include "daemon/jobs/slowest.h"

/* What is asked for; NULL: all. */
struct ft_rank_filter {
    const char *comm_id, *job, *host;
    bool has_rank;
    uint32_t rank;
};

/* Adds the ranks that match to a list, by communicator and rank. */
void ft_api_write_ranks(struct ft_list *list, const struct ft_ranks *ranks,
                        const struct ft_slowest *slowest, const struct ft_rank_filter *filter);

#endif
