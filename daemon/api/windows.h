// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_WINDOWS_H
#define FT_DAEMON_API_WINDOWS_H
/*
 * Answers out of the history: /api/v1/links, imbalance, elephants, windows and history. arg is the
 * view of struct ft_http's handlers.
 */
struct ft_http_request;
struct ft_writer;

int ft_api_links(void *view, const struct ft_http_request *request, struct ft_writer *body);
int ft_api_imbalance(void *view, const struct ft_http_request *request, struct ft_writer *body);
int ft_api_elephants(void *view, const struct ft_http_request *request, struct ft_writer *body);
int ft_api_windows(void *view, const struct ft_http_request *request, struct ft_writer *body);
int ft_api_history(void *view, const struct ft_http_request *request, struct ft_writer *body);

#endif
