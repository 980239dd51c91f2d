// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_API_H
#define FT_DAEMON_API_API_H
/*
 * The daemon's HTTP API: what the command-line tool, the page and dashboards read. Each answer is
 * one JSON object in the dialect of proto/json.h; fabrictrace-api(7) and /api/v1/openapi.json
 * (daemon/api/openapi.c) say what there is. Read-only.
 */

struct ft_http;
struct ft_view;

/* Adds the routes to http. The view is borrowed. -ENOMEM. */
int ft_api_add(struct ft_http *http, const struct ft_view *view);

#endif
