// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_SOURCES_H
#define FT_DAEMON_API_SOURCES_H
/*
 * What the API and the metrics page answer from, and the server that does, opened by the settings;
 * each returns an exit code. Thread: the loop's.
 */
#include "daemon/settings.h"

struct ft_view;
struct ft_live;
struct ft_loop;
struct ft_http;

/* What the API answers from, as sinks of the view's publisher. *live is good as long as it is. */
int ft_api_open_sinks(struct ft_view *view, const struct ft_settings *s, struct ft_live **live);

/* What the metrics page shows of windows, and of limits. */
int ft_api_open_figures(struct ft_view *view, const struct ft_settings *s);

/* The server at the settings' endpoint, which is view->http: the caller's to free. */
int ft_api_open_http(struct ft_view *view, struct ft_loop *loop, const struct ft_settings *s,
                     struct ft_live *live);

/* Certificate and token, as the files are now. False: all is as it was before. */
bool ft_api_secure(struct ft_http *http, const struct ft_settings *before,
                   const struct ft_settings *s);

#endif
