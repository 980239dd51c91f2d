// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_LISTS_H
#define FT_DAEMON_API_LISTS_H
/*
 * Answers of their own: /api/v1/loss, doctor, hosts and collectives. arg is
 * the view.
 */
struct ft_http_request;
struct ft_writer;

int ft_api_loss(void *view, const struct ft_http_request *request, struct ft_writer *body);
int ft_api_doctor(void *view, const struct ft_http_request *request, struct ft_writer *body);
int ft_api_hosts(void *view, const struct ft_http_request *request, struct ft_writer *body);
int ft_api_collectives(void *view, const struct ft_http_request *request, struct ft_writer *body);

#endif
