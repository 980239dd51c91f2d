// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_EXPLAIN_H
#define FT_DAEMON_API_EXPLAIN_H
/*
 * /api/v1/explain: everything about one flow, link, job or group of links in one answer.
 */
struct ft_http_request;
struct ft_writer;

int ft_api_explain(void *view, const struct ft_http_request *request, struct ft_writer *body);

#endif
