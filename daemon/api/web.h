// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_WEB_H
#define FT_DAEMON_API_WEB_H
/*
 * The daemon's HTTP server: the API, its stream and the page at one endpoint, with certificate,
 * token and names as they are configured. Complaints go to the log. Thread: the loop's.
 */
#include <stdbool.h>

#include "daemon/api/live.h"
#include "daemon/api/view.h"
#include "lib/config/options.h"
#include "lib/io/http/http.h"

/* Texts are borrowed for the call; NULL: not set. */
struct ft_web_config {
    const char *listen;
    const char *cert, *key, *token_file;
    struct ft_strings names, origins;
    uint32_t streams_max;
    size_t bytes_max; /* of answers that wait to be taken */
};

/* Certificate and token, as the files are now. False: all is as it was. */
bool ft_web_secure(struct ft_http *http, const struct ft_web_config *config);

/* Binds the endpoint and serves the API of the view, its stream and the page. An exit status of
 * sysexits.h; *http is the caller's in any case, NULL where the endpoint could not be bound. */
int ft_web_open(struct ft_loop *loop, const struct ft_web_config *config,
                const struct ft_view *view, struct ft_live *live, struct ft_http **http);

#endif
