// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/serve.h"

#include <stdlib.h>
#include <sys/random.h>
#include <sysexits.h>

#include "daemon/api/api.h"
#include "daemon/api/live.h"
#include "daemon/api/page.h"
#include "daemon/api/store.h"
#include "daemon/api/view.h"
#include "daemon/api/window_figures.h"
#include "daemon/history/history.h"
#include "daemon/publish/publish.h"
#include "lib/base/log.h"
#include "lib/base/secret.h"
#include "lib/io/endpoint.h"
#include "lib/io/http.h"

#define NS_PER_MS    1000000
#define HTTP_CLIENTS 256 /* beside those who listen to the stream */
#define ERROR_BYTES  512
/* On the metrics page. */
#define LINKS_MAX  1000000
#define SCOPES_MAX 100000

int ft_api_open_sinks(struct ft_view *view, const struct ft_settings *s, struct ft_live **live)
{
    struct ft_history_config config = {
        .keep_ms = s->history_ns / NS_PER_MS,
        .bytes_max = s->history_memory_max,
        .events_max = s->events_max + s->past_events_max,
    };
    struct ft_sink *store = ft_store_new(s->store_bytes, &view->store), *history, *stream;

    if (getrandom(&config.seed, sizeof(config.seed), 0) != sizeof(config.seed) ||
        getrandom(&view->instance, sizeof(view->instance), 0) != sizeof(view->instance))
        return EX_OSERR;
    if (!store || ft_publisher_take(view->publisher, store))
        return EX_OSERR;
    history = ft_history_new(&config, &view->history);
    if (!history || ft_publisher_take(view->publisher, history))
        return EX_OSERR;
    stream = ft_live_new(live);
    return stream && ft_publisher_take(view->publisher, stream) == 0 ? EX_OK : EX_OSERR;
}

int ft_api_open_figures(struct ft_view *view, const struct ft_settings *s)
{
    uint64_t seed;

    view->limits = (struct ft_view_limits){
        .flows_max = s->flows_max,
        .events_max = s->events_max,
        .ends_max = s->ends_max,
        .connections_max = s->connections_max,
        .links_max = LINKS_MAX,
        .shown_events_max = s->metrics_events_max,
        .jobs_max = s->metrics_jobs_max,
    };
    if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
        return EX_OSERR;
    view->figures =
        ft_window_figures_new((enum ft_metrics_links)s->metrics_links, LINKS_MAX, SCOPES_MAX, seed);
    return view->figures ? EX_OK : EX_OSERR;
}

bool ft_api_secure(struct ft_http *http, const struct ft_settings *before,
                   const struct ft_settings *s)
{
    char error[ERROR_BYTES], *token = NULL;
    bool good = true;

    if (!s->http_cert != !before->http_cert) {
        ft_log(FT_LOG_ERROR, "http_tls: TLS comes or goes only with a restart");
        return false;
    }
    if (s->http_token_file &&
        ft_secret_read(s->http_token_file, &token, error, sizeof(error)) < 0) {
        ft_log(FT_LOG_ERROR, "http_token_file: %s", error);
        return false;
    }
    if (s->http_cert && ft_http_secure(http, s->http_cert, s->http_key, error, sizeof(error)) < 0) {
        ft_log(FT_LOG_ERROR, "http_tls: %s", error);
        good = false;
    }
    good = good && ft_http_need_token(http, token) == 0;
    free(token);
    return good;
}

static bool name_http(struct ft_http *http, const struct ft_settings *s)
{
    for (size_t i = 0; i < s->http_names.count; i++)
        if (ft_http_allow(http, s->http_names.items[i]))
            return false;
    for (size_t i = 0; i < s->http_origins.count; i++)
        if (ft_http_allow_origin(http, s->http_origins.items[i]))
            return false;
    return true;
}

int ft_api_open(struct ft_view *view, struct ft_loop *loop, const struct ft_settings *s,
                struct ft_live *live)
{
    struct ft_http *http;
    char error[ERROR_BYTES] = "";
    struct ft_http_channel *channel;

    view->http = http = ft_http_new(loop, s->http, error, sizeof(error));
    if (!http) {
        ft_log(FT_LOG_ERROR, "http '%s': %s", s->http, error);
        return EX_UNAVAILABLE;
    }
    ft_http_limit(http, HTTP_CLIENTS + (uint32_t)s->http_streams_max, s->http_bytes);
    if (!name_http(http, s))
        return EX_OSERR;
    if (!ft_api_secure(http, s, s))
        return EX_CONFIG;
    if (!ft_endpoint_is_local(s->http) && (!s->http_cert || !s->http_token_file))
        ft_log(FT_LOG_WARNING,
               "http '%s': plain (http_plain): whoever reaches this port can read all that is "
               "known of the fabric and its jobs",
               s->http);
    channel = ft_http_channel_new(http, "/api/v1/stream", (uint32_t)s->http_streams_max);
    if (!channel || ft_api_add(http, view))
        return EX_OSERR;
    ft_live_to(live, channel);
#ifdef HAVE_PAGE
    ft_http_files(http, ft_page_files, ft_page_file_count);
#endif
    return EX_OK;
}
