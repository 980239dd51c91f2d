// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/api.h"

#include <errno.h>

#include "daemon/api/diagnoses.h"
#include "daemon/api/explain.h"
#include "daemon/api/happenings.h"
#include "daemon/api/hashes.h"
#include "daemon/api/incident.h"
#include "daemon/api/list.h"
#include "daemon/api/lists.h"
#include "daemon/api/matrix.h"
#include "daemon/api/metrics_text.h"
#include "daemon/api/openapi.h"
#include "daemon/api/paths.h"
#include "daemon/api/plans.h"
#include "daemon/api/probes.h"
#include "daemon/api/qps.h"
#include "daemon/api/ranks.h"
#include "daemon/api/rhythms.h"
#include "daemon/api/spread.h"
#include "daemon/api/topology.h"
#include "daemon/api/view.h"
#include "daemon/api/whatif.h"
#include "daemon/api/windows.h"
#include "daemon/pipeline/stages.h"
#include "daemon/window/window.h"
#include "lib/base/prometheus.h"
#include "lib/io/disk/incident.h"
#include "lib/io/http/http.h"

static int get_health(void *view, const struct ft_http_request *request, struct ft_writer *body)
{
    (void)view;
    (void)request;
    ft_write_str(body, "ok\n");
    return 200;
}

static int get_ready(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    const struct ft_view *view = arg;

    (void)request;
    if (!view->receiver && !view->replay)
        return ft_api_refuse(body, 503, "this daemon is stopping and accepts no records");
    ft_write_str(body, "ok\n");
    return 200;
}

/* Answers of one window are shared. */
static uint64_t window_of(void *arg)
{
    const struct ft_view *view = arg;

    return (uint64_t)ft_window_last(view->stages->window).end_ms;
}

#define JSON "application/json"

int ft_api_add(struct ft_http *http, const struct ft_view *view)
{
    static const struct {
        const char *path;
        const char *type;
        int (*handler)(void *arg, const struct ft_http_request *request, struct ft_writer *body);
    } routes[] = {
        {"/api/v1/topology", JSON, ft_api_topology},
        {"/api/v1/paths", JSON, ft_api_paths},
        {"/api/v1/flows", JSON, ft_api_paths},
        {"/api/v1/links", JSON, ft_api_links},
        {"/api/v1/imbalance", JSON, ft_api_imbalance},
        {"/api/v1/elephants", JSON, ft_api_elephants},
        {"/api/v1/windows", JSON, ft_api_windows},
        {"/api/v1/history", JSON, ft_api_history},
        {"/api/v1/events", JSON, ft_api_events},
        {"/api/v1/collisions", JSON, ft_api_collisions},
        {"/api/v1/explain", JSON, ft_api_explain},
        {"/api/v1/collectives", JSON, ft_api_collectives},
        {"/api/v1/ranks", JSON, ft_api_ranks},
        {"/api/v1/matrix", JSON, ft_api_matrix},
        {"/api/v1/qps", JSON, ft_api_qps},
        {"/api/v1/hosts", JSON, ft_api_hosts},
        {"/api/v1/hashes", JSON, ft_api_hashes},
        {"/api/v1/diagnoses", JSON, ft_api_diagnoses},
        {"/api/v1/rhythms", JSON, ft_api_rhythms},
        {"/api/v1/spread", JSON, ft_api_spread},
        {"/api/v1/plans", JSON, ft_api_plans},
        {"/api/v1/moves", JSON, ft_api_moves},
        {"/api/v1/whatif", JSON, ft_api_whatif},
        {"/api/v1/probes", JSON, ft_api_probes},
        {"/api/v1/loss", JSON, ft_api_loss},
        {"/api/v1/doctor", JSON, ft_api_doctor},
        {"/api/v1/openapi.json", JSON, ft_api_openapi},
        {"/api/v1/incident", FT_INCIDENT_CONTENT_TYPE, ft_api_incident},
        {"/metrics", FT_PROM_CONTENT_TYPE, ft_metrics_get},
        {"/healthz", "text/plain", get_health},
        {"/readyz", "text/plain", get_ready},
    };

    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
        if (ft_http_route(http, routes[i].path, routes[i].type, routes[i].handler,
                          (void *)(uintptr_t)view))
            return -ENOMEM;
    ft_http_share(http, window_of, (void *)(uintptr_t)view);
    return 0;
}
