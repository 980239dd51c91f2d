// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_PROBES_H
#define FT_DAEMON_API_PROBES_H
/*
 * /api/v1/probes: the last probe of each flow, what answered and what is not known by it, in
 * slices. arg is the view.
 */
struct ft_http_request;
struct ft_writer;

int ft_api_probes(void *view, const struct ft_http_request *request, struct ft_writer *body);

#endif
