// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_PLANS_H
#define FT_DAEMON_API_PLANS_H
/* In slices; arg is the view. /api/v1/plans: plans of source ports that agents gave ports of;
 * /api/v1/moves: the queue pairs that got them. */
struct ft_http_request;
struct ft_writer;

int ft_api_plans(void *view, const struct ft_http_request *request, struct ft_writer *body);
int ft_api_moves(void *view, const struct ft_http_request *request, struct ft_writer *body);

#endif
