// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_MATRIX_H
#define FT_DAEMON_API_MATRIX_H
/*
 * The answer to /api/v1/matrix: communicators, their ranks, and what they sent each other.
 */
#include "daemon/jobs/ranks.h"
#include "lib/base/writer.h"

/* The list "records" alone: one object for each communicator. comm_id and op choose; NULL: all.
 * Returns how many there are. */
size_t ft_api_write_matrix(struct ft_writer *w, const struct ft_ranks *ranks, const char *comm_id,
                           const char *op);

#endif
