// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/web.h"

#include <stdlib.h>
#include <sysexits.h>

#include "daemon/api/api.h"
#include "daemon/api/page.h"
#include "lib/base/log.h"
#include "lib/base/secret.h"
#include "lib/io/endpoint.h"

#define ERROR_BYTES 512
#define CLIENTS     256 /* beside those who listen to the stream */

bool ft_web_secure(struct ft_http *http, const struct ft_web_config *c)
{
    char error[ERROR_BYTES], *token = NULL;
    bool good = true;

    if (c->token_file && ft_secret_read(c->token_file, &token, error, sizeof(error)) < 0) {
        ft_log(FT_LOG_ERROR, "http_token_file: %s", error);
        return false;
    }
    if (c->cert && ft_http_secure(http, c->cert, c->key, error, sizeof(error)) < 0) {
        ft_log(FT_LOG_ERROR, "http_tls: %s", error);
        good = false;
    }
    good = good && ft_http_need_token(http, token) == 0;
    free(token);
    return good;
}

static bool name_http(struct ft_http *http, const struct ft_web_config *c)
{
    for (size_t i = 0; i < c->names.count; i++)
        if (ft_http_allow(http, c->names.items[i]))
            return false;
    for (size_t i = 0; i < c->origins.count; i++)
        if (ft_http_allow_origin(http, c->origins.items[i]))
            return false;
    return true;
}

int ft_web_open(struct ft_loop *loop, const struct ft_web_config *c, const struct ft_view *view,
                struct ft_live *live, struct ft_http **http)
{
    char error[ERROR_BYTES] = "";
    struct ft_http_channel *channel;

    *http = ft_http_new(loop, c->listen, error, sizeof(error));
    if (!*http) {
        ft_log(FT_LOG_ERROR, "http '%s': %s", c->listen, error);
        return EX_UNAVAILABLE;
    }
    ft_http_limit(*http, CLIENTS + c->streams_max, c->bytes_max);
    if (!name_http(*http, c))
        return EX_OSERR;
    if (!ft_web_secure(*http, c))
        return EX_CONFIG;
    if (!ft_endpoint_is_local(c->listen) && (!c->cert || !c->token_file))
        ft_log(FT_LOG_WARNING,
               "http '%s': plain (http_plain): anybody who reaches this port can read all data of "
               "the fabric and its jobs",
               c->listen);
    channel = ft_http_channel_new(*http, "/api/v1/stream", c->streams_max);
    if (!channel || ft_api_add(*http, view))
        return EX_OSERR;
    ft_live_to(live, channel);
#ifdef HAVE_PAGE
    ft_http_files(*http, ft_page_files, ft_page_file_count);
#endif
    return EX_OK;
}
