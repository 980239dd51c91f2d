// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_SPREAD_H
#define FT_DAEMON_API_SPREAD_H
/*
 * /api/v1/spread: how queue pairs, connections and jobs spread over equal-cost links in the last
 * closed window, in slices. arg is the view.
 */
struct ft_http_request;
struct ft_writer;

int ft_api_spread(void *view, const struct ft_http_request *request, struct ft_writer *body);

#endif
