// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_MATRIX_H
#define FT_DAEMON_API_MATRIX_H
/*
 * The answer to /api/v1/matrix: communicators, their ranks, and what they sent each other.
 *
 * Made in slices, since there may be hundreds of thousands of pairs: what there is at the start is
 * put in order first, then written; what has ended by the time its turn comes is left out. Owner:
 * the caller. Thread: the loop's.
 */
#include "daemon/jobs/ranks.h"
#include "lib/base/writer.h"

struct ft_matrix;

/* comm_id and op choose; NULL: all. NULL without memory. ranks is borrowed. */
struct ft_matrix *ft_matrix_new(const struct ft_ranks *ranks, const char *comm_id, const char *op);
void ft_matrix_free(struct ft_matrix *matrix);

/* Goes on with the list "records", one object for each communicator, by up to `items` ranks or
 * pairs; true when it is whole. */
bool ft_matrix_step(struct ft_matrix *matrix, struct ft_writer *w, uint32_t items);

/* Bytes that it holds at most, about. */
size_t ft_matrix_bytes(const struct ft_ranks *ranks);

/* Communicators written. */
size_t ft_matrix_written(const struct ft_matrix *matrix);

#endif
