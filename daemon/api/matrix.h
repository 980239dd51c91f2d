// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_MATRIX_H
#define FT_DAEMON_API_MATRIX_H
/*
 * /api/v1/matrix: communicators, their ranks, and what they sent each other; by their id. Thread:
 * the loop's.
 */
struct ft_http_request;
struct ft_writer;

/* arg is the view. */
int ft_api_matrix(void *view, const struct ft_http_request *request, struct ft_writer *body);

#endif
