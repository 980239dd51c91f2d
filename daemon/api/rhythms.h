// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_RHYTHMS_H
#define FT_DAEMON_API_RHYTHMS_H
/*
 * /api/v1/rhythms: period and share of exchange of each job by its flows, as of the last closed
 * window, in slices. arg is the view.
 */
struct ft_http_request;
struct ft_writer;

int ft_api_rhythms(void *view, const struct ft_http_request *request, struct ft_writer *body);

#endif
