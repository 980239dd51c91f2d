// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_MATRIX_H
#define FT_DAEMON_API_MATRIX_H
/*
 * /api/v1/matrix: communicators, their ranks, and what they sent each other.
 */
#include "daemon/api/list.h"
#include "daemon/jobs/ranks.h"

/* Adds one record for each communicator to a list. comm_id, job and op choose; NULL: all. */
void ft_api_write_matrix(struct ft_list *list, const struct ft_ranks *ranks, const char *comm_id,
                         const char *job, const char *op);

#endif
