// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_METRICS_TEXT_H
#define FT_DAEMON_API_METRICS_TEXT_H
/*
 * The daemon's metrics page: what it sees of the fabric and how it fares itself. Labels are names
 * of a bounded kind (link, group, event, job, sink, reason), never a flow.
 */
struct ft_http_request;
struct ft_writer;

/* /metrics, in slices; arg is the view. */
int ft_metrics_get(void *view, const struct ft_http_request *request, struct ft_writer *body);

#endif
