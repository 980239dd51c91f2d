// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_HASHES_H
#define FT_DAEMON_API_HASHES_H
/*
 * /api/v1/hashes: how each switch chooses among its equal-cost links, as far as it is learnt, in
 * slices. arg is the view.
 */
struct ft_http_request;
struct ft_writer;

int ft_api_hashes(void *view, const struct ft_http_request *request, struct ft_writer *body);

#endif
