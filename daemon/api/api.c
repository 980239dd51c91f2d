// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/doctor.h"
#include "daemon/api/explain.h"
#include "daemon/api/happenings.h"
#include "daemon/api/list.h"
#include "daemon/api/matrix.h"
#include "daemon/api/metrics_text.h"
#include "daemon/api/paths.h"
#include "daemon/api/qps.h"
#include "daemon/api/ranks.h"
#include "daemon/api/topology.h"
#include "daemon/api/view.h"
#include "daemon/api/windows.h"
#include "daemon/discovery/wiring.h"
#include "daemon/health/agents.h"
#include "daemon/join/flow_hosts.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "daemon/publish/emit.h"
#include "daemon/publish/events.h"
#include "lib/base/clock.h"
#include "lib/base/prometheus.h"
#include "lib/io/http.h"
#include "proto/json.h"
#include "proto/record.h"

#define QPS_LIMIT 10000

struct ft_api {
    const struct ft_view *view;
};

/* An answer under way: its body, and how many records matched and went in. */
struct answer {
    struct ft_writer *body;
    uint64_t total;
    uint64_t written;
    uint64_t limit;
};

static void begin_record(struct answer *a)
{
    if (a->written++)
        ft_write_u8(a->body, ',');
}

static void write_record(void *arg, const Fabrictrace__Record *record)
{
    struct answer *a = arg;

    a->total++;
    if (a->written >= a->limit)
        return;
    begin_record(a);
    ft_record_to_json(record, a->body);
}

static void open_answer(struct answer *a, const struct ft_api *api, struct ft_writer *body)
{
    struct ft_span span = ft_window_last(api->view->stages->window);

    *a = (struct answer){.body = body, .limit = UINT64_MAX};
    ft_write_str(body, "{\"fabric\":");
    ft_json_write_text(body, ft_topology_fabric(ft_join_topology(api->view->stages->join)));
    if (span.end_ms)
        ft_write_fmt(body, ",\"window_start_ms\":%lld,\"window_end_ms\":%lld",
                     (long long)span.start_ms, (long long)span.end_ms);
    ft_write_str(body, ",\"records\":[");
}

static int close_answer(struct answer *a)
{
    ft_write_fmt(a->body, "],\"total\":%llu}\n", (unsigned long long)a->total);
    return ft_writer_ok(a->body) ? 200 : 503;
}

struct host_walk {
    struct answer *answer;
    const char *host; /* NULL: all */
};

static int get_loss(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    struct ft_api *api = arg;
    struct ft_pipeline *p = api->view->pipeline;
    struct answer a;
    struct ft_emitter emitter = {write_record, &a};

    (void)request;
    open_answer(&a, api, body);
    ft_pipeline_emit_loss(p, &emitter, ft_wall_now().ms);
    ft_pipeline_each_loss(p, &emitter);
    return close_answer(&a);
}

static struct ft_api_origin origin_of(const void *arg, uint32_t port)
{
    const struct ft_view *view = arg;
    const struct ft_wiring *wiring = view->stages->wiring;
    struct ft_api_origin origin = {.source = ft_pipeline_source(view->pipeline, port),
                                   .confirmed = ft_pipeline_confirms(view->pipeline, port)};

    if (wiring && ft_wiring_confirms(wiring, port)) {
        struct ft_crossing_proof proof = ft_wiring_proof(wiring, port);

        origin.samples = proof.samples;
        origin.flows = proof.flows;
    }
    return origin;
}

static int get_topology(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    struct ft_api *api = arg;
    const struct ft_pipeline *p = api->view->pipeline;
    struct ft_findings open = {.items = NULL};
    const struct ft_api_origins origins = {origin_of, api->view, &open};

    (void)request;
    if (api->view->stages->wiring)
        ft_wiring_find(api->view->stages->wiring, ft_pipeline_now_ms(p), &open);
    ft_api_write_topology(body, ft_join_topology(api->view->stages->join), &origins);
    ft_findings_free(&open);
    return ft_writer_ok(body) ? 200 : 503;
}

static int get_matrix(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    struct ft_api *api = arg;
    struct answer a;

    open_answer(&a, api, body);
    a.total = ft_api_write_matrix(body, api->view->stages->ranks, ft_http_query(request, "comm"),
                                  ft_http_query(request, "op"));
    return close_answer(&a);
}

static int get_ranks(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    struct ft_api *api = arg;
    struct answer a;

    open_answer(&a, api, body);
    a.total = ft_api_write_ranks(body, api->view->stages->ranks, api->view->stages->slowest,
                                 ft_http_query(request, "comm"));
    return close_answer(&a);
}

static int get_qps(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    struct ft_api *api = arg;
    struct ft_api_qps_filter filter = {.host = ft_http_query(request, "host"),
                                       .state = ft_http_query(request, "state")};
    static const char *const names[] = {"host", "state", NULL};
    struct ft_page page;
    struct answer a;
    int rc;

    rc = ft_page_read_limit(request, names, QPS_LIMIT, &page, body);
    if (rc)
        return rc;
    filter.limit = page.limit;
    if (filter.state && !ft_api_qps_is_state(filter.state))
        return ft_api_refuse(body, 400, "no queue pair can be in that state");
    open_answer(&a, api, body);
    a.total = ft_api_write_qps(body, api->view->stages->pairing, &filter);
    return close_answer(&a);
}

static void write_finding(struct answer *a, const struct ft_finding *f)
{
    const struct {
        const char *name;
        const char *text;
    } members[] = {{f->of_host ? "host" : "switch", f->switch_name},
                   {f->of_host ? "device" : "port", f->port},
                   {"severity", f->kind == FT_FINDING_NOTE ? "info" : "warning"},
                   {"text", f->text},
                   {"advice", f->advice ? f->advice : ""}};
    char separator = '{';

    a->total++;
    begin_record(a);
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        if (!*members[i].text)
            continue;
        ft_write_fmt(a->body, "%c\"%s\":", separator, members[i].name);
        ft_json_write_text(a->body, members[i].text);
        separator = ',';
    }
    if (f->since_ms)
        ft_write_fmt(a->body, ",\"since_ms\":%lld", (long long)f->since_ms);
    ft_write_u8(a->body, '}');
}

static int get_doctor(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    struct ft_api *api = arg;
    struct ft_findings findings = {.items = NULL};
    struct answer a;

    (void)request;
    ft_doctor_look(api->view->pipeline, &findings);
    open_answer(&a, api, body);
    for (size_t i = 0; i < findings.count; i++)
        write_finding(&a, &findings.items[i]);
    a.total += findings.dropped;
    ft_findings_free(&findings);
    return close_answer(&a);
}

static int get_metrics(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    struct ft_api *api = arg;

    (void)request;
    ft_metrics_text(api->view, body);
    return ft_writer_ok(body) ? 200 : 503;
}

static void add_host(void *arg, const Fabrictrace__HostStatus *status)
{
    struct host_walk *walk = arg;
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;

    if (walk->host && (!status->host || strcmp(walk->host, status->host) != 0))
        return;
    record.kind_case = FABRICTRACE__RECORD__KIND_HOST_STATUS;
    record.host_status = (Fabrictrace__HostStatus *)(uintptr_t)status;
    write_record(walk->answer, &record);
}

static int get_hosts(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    struct ft_api *api = arg;
    const struct ft_view *view = api->view;
    static const char *const names[] = {"host", NULL};
    struct answer a;
    struct host_walk walk = {&a, ft_http_query(request, "host")};
    struct ft_page page;
    uint32_t index = 0;
    int rc = ft_page_read_limit(request, names, UINT64_MAX, &page, body);

    if (rc)
        return rc;
    open_answer(&a, api, body);
    a.limit = page.limit;
    while (ft_agents_next(view->stages->agents, ft_pipeline_now_ms(view->pipeline), &index,
                          add_host, &walk))
        ;
    return close_answer(&a);
}

static int get_ready(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    struct ft_api *api = arg;

    (void)request;
    if (!api->view->receiver)
        return ft_api_refuse(body, 503, "this daemon takes no records: it stops");
    ft_write_str(body, "ok\n");
    return 200;
}

static int get_health(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    (void)arg;
    (void)request;
    ft_write_str(body, "ok\n");
    return 200;
}

struct route {
    const char *path;
    const char *type;
    int (*handler)(void *arg, const struct ft_http_request *request, struct ft_writer *body);
};

static int add_routes(struct ft_http *http, const struct route *routes, size_t count, void *arg)
{
    for (size_t i = 0; i < count; i++)
        if (ft_http_route(http, routes[i].path, routes[i].type, routes[i].handler, arg))
            return -ENOMEM;
    return 0;
}

#define JSON "application/json"

struct ft_api *ft_api_new(struct ft_http *http, const struct ft_view *view)
{
    static const struct route of_api[] = {
        {"/api/v1/loss", JSON, get_loss},       {"/api/v1/topology", JSON, get_topology},
        {"/api/v1/matrix", JSON, get_matrix},   {"/api/v1/ranks", JSON, get_ranks},
        {"/api/v1/qps", JSON, get_qps},         {"/api/v1/doctor", JSON, get_doctor},
        {"/api/v1/hosts", JSON, get_hosts},     {"/metrics", FT_PROM_CONTENT_TYPE, get_metrics},
        {"/healthz", "text/plain", get_health}, {"/readyz", "text/plain", get_ready},
    };
    static const struct route of_view[] = {
        {"/api/v1/paths", JSON, ft_api_paths},     {"/api/v1/flows", JSON, ft_api_paths},
        {"/api/v1/links", JSON, ft_api_links},     {"/api/v1/imbalance", JSON, ft_api_imbalance},
        {"/api/v1/windows", JSON, ft_api_windows}, {"/api/v1/history", JSON, ft_api_history},
        {"/api/v1/events", JSON, ft_api_events},   {"/api/v1/collisions", JSON, ft_api_collisions},
        {"/api/v1/explain", JSON, ft_api_explain},
    };
    struct ft_api *api = calloc(1, sizeof(*api));

    if (!api)
        return NULL;
    api->view = view;
    if (add_routes(http, of_api, sizeof(of_api) / sizeof(of_api[0]), api) ||
        add_routes(http, of_view, sizeof(of_view) / sizeof(of_view[0]), (void *)(uintptr_t)view)) {
        free(api);
        return NULL;
    }
    return api;
}

void ft_api_free(struct ft_api *api)
{
    free(api);
}
