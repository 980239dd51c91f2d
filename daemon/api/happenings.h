// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_HAPPENINGS_H
#define FT_DAEMON_API_HAPPENINGS_H
/*
 * Events, standing and over: /api/v1/events and collisions, and /api/v1/history of kind event.
 */
#include "daemon/api/list.h"

int ft_api_events(void *view, const struct ft_http_request *request, struct ft_writer *body);
int ft_api_collisions(void *view, const struct ft_http_request *request, struct ft_writer *body);
int ft_api_event_history(void *view, const struct ft_http_request *request, struct ft_writer *body);

/* Adds the active events about a subject to a list. kind NULL: of any kind. */
void ft_api_standing(struct ft_list *list, const char *kind, const char *subject);

#endif
