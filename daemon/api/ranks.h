// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_RANKS_H
#define FT_DAEMON_API_RANKS_H
/*
 * The answer to /api/v1/ranks: every rank, its last operation, and the peer and link that are
 * slowest there.
 */
#include "daemon/jobs/ranks.h"
#include "daemon/jobs/slowest.h"
#include "lib/base/writer.h"

/* The list "records" alone: one object for each rank, by communicator and rank. comm_id chooses;
 * NULL: all. Returns how many there are. */
size_t ft_api_write_ranks(struct ft_writer *w, const struct ft_ranks *ranks,
                          const struct ft_slowest *slowest, const char *comm_id);

#endif
