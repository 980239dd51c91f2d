// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/sources.h"

#include <stdlib.h>
#include <sys/random.h>
#include <sysexits.h>

#include "daemon/api/comparison.h"
#include "daemon/api/live.h"
#include "daemon/api/orders.h"
#include "daemon/api/view.h"
#include "daemon/api/web.h"
#include "daemon/api/window_figures.h"
#include "daemon/history/history.h"
#include "daemon/publish/publish.h"
#include "lib/base/log.h"

#define NS_PER_MS 1000000
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
    struct ft_sink *history, *stream;

    if (getrandom(&config.seed, sizeof(config.seed), 0) != sizeof(config.seed) ||
        getrandom(&view->instance, sizeof(view->instance), 0) != sizeof(view->instance) ||
        getrandom(&view->seed, sizeof(view->seed), 0) != sizeof(view->seed))
        return EX_OSERR;
    view->orders = ft_orders_new(FT_ORDERS, view->seed);
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
    if (!s->http_cert != !before->http_cert) {
        ft_log(FT_LOG_ERROR, "http_tls: TLS can be enabled or disabled only by a restart");
        return false;
    }
    return ft_web_secure(http, &(struct ft_web_config){.cert = s->http_cert,
                                                       .key = s->http_key,
                                                       .token_file = s->http_token_file});
}

int ft_api_open_http(struct ft_view *view, struct ft_loop *loop, const struct ft_settings *s,
                     struct ft_live *live)
{
    const struct ft_web_config config = {
        .listen = s->http,
        .cert = s->http_cert,
        .key = s->http_key,
        .token_file = s->http_token_file,
        .names = s->http_names,
        .origins = s->http_origins,
        .streams_max = (uint32_t)s->http_streams_max,
        .bytes_max = s->http_bytes,
    };

    view->comparisons = ft_comparisons_new(loop, s->http_bytes / 2);
    return view->comparisons ? ft_web_open(loop, &config, view, live, &view->http) : EX_OSERR;
}
