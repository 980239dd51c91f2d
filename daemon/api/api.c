// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/doctor.h"
#include "daemon/api/matrix.h"
#include "daemon/api/metrics_text.h"
#include "daemon/api/qps.h"
#include "daemon/api/ranks.h"
#include "daemon/api/store.h"
#include "daemon/api/topology.h"
#include "daemon/api/view.h"
#include "daemon/discovery/wiring.h"
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

#define PATHS_LIMIT 10000

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

static int refuse(struct ft_writer *body, int status, const char *sentence)
{
    ft_writer_reset(body);
    ft_write_str(body, sentence);
    ft_write_u8(body, '\n');
    return status;
}

static int parse_limit(const struct ft_http_request *request, uint64_t *limit)
{
    const char *text = ft_http_query(request, "limit");
    char *end;

    *limit = PATHS_LIMIT;
    if (!text)
        return 0;
    *limit = strtoull(text, &end, 10);
    return *text < '0' || *text > '9' || *end ? -1 : 0;
}

static int parse_state(const char *name)
{
    static const char *const names[] = {
        [FT_PATH_UNRESOLVED] = "unresolved",
        [FT_PATH_RESOLVED] = "resolved",
        [FT_PATH_PARTIAL] = "partial",
        [FT_PATH_MULTIPATH] = "multipath",
    };

    for (int i = 0; i < 4; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

static bool same(const char *a, const char *b)
{
    return a && strcmp(a, b) == 0;
}

/* What a request for paths asks for. */
struct path_filter {
    const char *state;
    const char *host; /* a name, or an address */
    bool has_tuple, has_address;
    struct ft_tuple tuple;
    struct ft_ip address;
};

static bool at_host(const struct ft_join *join, const struct ft_flow *flow,
                    const struct path_filter *filter)
{
    if (filter->has_address)
        return ft_ip_equal(&flow->tuple.src, &filter->address) ||
               ft_ip_equal(&flow->tuple.dst, &filter->address);
    return same(ft_flow_src_host(join, flow), filter->host) ||
           same(ft_flow_dst_host(join, flow), filter->host);
}

static bool wanted(const struct ft_join *join, const struct ft_flow *flow,
                   const struct path_filter *filter)
{
    return (!filter->has_tuple || ft_tuple_equal(&flow->tuple, &filter->tuple)) &&
           (!filter->state || flow->state == parse_state(filter->state)) &&
           (!filter->host || at_host(join, flow, filter));
}

/* A flow that matches, by its rate: where there are more than the answer may hold, it holds the
 * fastest. */
struct match {
    uint64_t bytes;
    uint32_t index;
};

static int by_bytes(const void *a, const void *b)
{
    const struct match *x = a, *y = b;

    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static struct ft_span span_of(const struct ft_api *api, const struct ft_flow *flow)
{
    int64_t window_ms = api->view->window_ms;
    int64_t number = flow->bytes_window ? flow->bytes_window : flow->window;

    return (struct ft_span){number * window_ms, (number + 1) * window_ms};
}

static void write_path(const struct ft_api *api, struct answer *a, struct ft_flow *flow)
{
    struct ft_emitter emitter = {write_record, a};
    struct ft_span span = span_of(api, flow);

    ft_emit_path(&emitter, api->view->stages->join, flow, &span);
}

static const char *read_filter(const struct ft_http_request *request, struct path_filter *filter)
{
    const char *flow = ft_http_query(request, "flow");

    *filter = (struct path_filter){.state = ft_http_query(request, "state"),
                                   .host = ft_http_query(request, "host"),
                                   .has_tuple = flow != NULL};
    if (filter->state && parse_state(filter->state) < 0)
        return "state is none of resolved, partial, multipath, unresolved";
    if (flow && ft_tuple_parse(flow, &filter->tuple))
        return "flow is not written like 10.0.1.1:49441-10.0.3.1";
    filter->has_address = filter->host && ft_ip_parse(filter->host, &filter->address) == 0;
    return NULL;
}

static int get_paths(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    struct ft_api *api = arg;
    struct ft_join *join = api->view->stages->join;
    struct match *matches = malloc((ft_join_flows(join) + 1) * sizeof(*matches));
    struct path_filter filter;
    const char *wrong = read_filter(request, &filter);
    struct answer a;
    uint64_t limit;
    int status = 400;

    if (parse_limit(request, &limit))
        wrong = "limit is not a number";
    if (!matches || wrong) {
        status = refuse(body, matches ? 400 : 503, matches ? wrong : "no memory");
        goto out;
    }
    open_answer(&a, api, body);
    for (uint32_t i = 0; i < ft_join_limit(join); i++) {
        struct ft_flow *flow = ft_join_at(join, i);

        if (flow && wanted(join, flow, &filter))
            matches[a.total++] = (struct match){flow->bytes, i};
    }
    if (a.total > limit)
        qsort(matches, a.total, sizeof(*matches), by_bytes);
    else
        limit = a.total;
    a.limit = limit;
    for (uint64_t i = 0; i < limit; i++)
        write_path(api, &a, ft_join_at(join, matches[i].index));
    a.total -= limit;
    status = close_answer(&a);
out:
    free(matches);
    return status;
}

struct store_walk {
    struct answer *answer;
    const char *group; /* NULL: all */
    const char *key;
};

static void write_kept(void *arg, const char *key, const char *group, const char *json, size_t len)
{
    struct store_walk *walk = arg;

    if ((walk->group && strcmp(walk->group, group) != 0) ||
        (walk->key && strcmp(walk->key, key) != 0))
        return;
    walk->answer->total++;
    begin_record(walk->answer);
    ft_write_bytes(walk->answer->body, json, len);
}

static int get_links(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    struct ft_api *api = arg;
    struct answer a;
    struct store_walk walk = {.answer = &a, .group = ft_http_query(request, "group")};

    open_answer(&a, api, body);
    ft_store_each(api->view->store, FT_STORE_LINK, write_kept, &walk);
    return close_answer(&a);
}

static int get_imbalance(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    struct ft_api *api = arg;
    struct answer a;
    struct store_walk walk = {.answer = &a};

    (void)request;
    open_answer(&a, api, body);
    ft_store_each(api->view->store, FT_STORE_IMBALANCE, write_kept, &walk);
    return close_answer(&a);
}

struct event_walk {
    struct answer *answer;
    const char *kind;    /* NULL: all */
    const char *subject; /* NULL: all */
};

static void write_event(void *arg, const Fabrictrace__Event *event)
{
    struct event_walk *walk = arg;
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    char key[FT_RECORD_KEY_BYTES];
    size_t n = walk->kind ? strlen(walk->kind) : 0;

    record.kind_case = FABRICTRACE__RECORD__KIND_EVENT;
    record.event = (Fabrictrace__Event *)(uintptr_t)event;
    /* The key is "kind/subject". */
    ft_record_key(&record, key);
    if ((walk->kind && (strncmp(key, walk->kind, n) != 0 || key[n] != '/')) ||
        (walk->subject && strcmp(event->subject, walk->subject) != 0))
        return;
    write_record(walk->answer, &record);
}

static int get_events(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    struct ft_api *api = arg;
    struct answer a;
    struct event_walk walk = {.answer = &a, .kind = ft_http_query(request, "kind")};

    open_answer(&a, api, body);
    ft_events_each(api->view->stages->events, write_event, &walk);
    return close_answer(&a);
}

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

/* A list of its own inside the answer of explain. */
static void begin_list(struct answer *a, const char *name)
{
    ft_write_fmt(a->body, "],\"%s\":[", name);
    a->written = 0;
}

static void write_hops(struct ft_api *api, struct answer *a, const struct ft_flow *flow)
{
    const struct ft_topology *t = ft_join_topology(api->view->stages->join);
    char keys[FT_PATH_HOPS_MAX][FT_RECORD_KEY_BYTES];
    uint32_t n = flow->state == FT_PATH_RESOLVED ? flow->path.hop_count : 0;

    for (uint32_t h = 0; h < n; h++) {
        const struct ft_port *port = ft_topology_port(t, flow->path.hops[h].out);

        snprintf(keys[h], sizeof(keys[h]), "%s/%s", ft_topology_switch(t, port->switch_id)->name,
                 port->name);
    }
    begin_list(a, "links");
    for (uint32_t h = 0; h < n; h++) {
        struct store_walk walk = {.answer = a, .key = keys[h]};

        ft_store_each(api->view->store, FT_STORE_LINK, write_kept, &walk);
    }
    begin_list(a, "collisions");
    for (uint32_t h = 0; h < n; h++) {
        struct event_walk walk = {.answer = a, .kind = "collision", .subject = keys[h]};

        ft_events_each(api->view->stages->events, write_event, &walk);
    }
}

static int get_explain(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    struct ft_api *api = arg;
    struct ft_join *join = api->view->stages->join;
    const char *text = ft_http_query(request, "flow");
    struct ft_tuple tuple, reverse;
    struct ft_flow *flow, *back;
    struct answer a;

    if (!text || ft_tuple_parse(text, &tuple))
        return refuse(body, 400, "flow is not written like 10.0.1.1:49441-10.0.3.1");
    flow = ft_join_find(join, &tuple);
    if (!flow)
        return refuse(body, 404, "this flow is not known: neither a switch nor a host reports it");
    open_answer(&a, api, body);
    write_path(api, &a, flow);
    /* RoCEv2 acknowledges on the reverse tuple with the same source port. */
    reverse = tuple;
    reverse.src = tuple.dst;
    reverse.dst = tuple.src;
    back = ft_join_find(join, &reverse);
    begin_list(&a, "reverse");
    if (back)
        write_path(api, &a, back);
    write_hops(api, &a, flow);
    a.total = 1;
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
    struct answer a;

    if (parse_limit(request, &filter.limit))
        return refuse(body, 400, "limit is not a number");
    if (filter.state && !ft_api_qps_is_state(filter.state))
        return refuse(body, 400, "no queue pair can be in that state");
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

static int get_health(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    (void)arg;
    (void)request;
    ft_write_str(body, "ok\n");
    return 200;
}

struct ft_api *ft_api_new(struct ft_http *http, const struct ft_view *view)
{
    static const struct {
        const char *path;
        const char *type;
        int (*handler)(void *arg, const struct ft_http_request *request, struct ft_writer *body);
    } routes[] = {
        {"/api/v1/paths", "application/json", get_paths},
        {"/api/v1/links", "application/json", get_links},
        {"/api/v1/imbalance", "application/json", get_imbalance},
        {"/api/v1/events", "application/json", get_events},
        {"/api/v1/loss", "application/json", get_loss},
        {"/api/v1/explain", "application/json", get_explain},
        {"/api/v1/topology", "application/json", get_topology},
        {"/api/v1/matrix", "application/json", get_matrix},
        {"/api/v1/ranks", "application/json", get_ranks},
        {"/api/v1/qps", "application/json", get_qps},
        {"/api/v1/doctor", "application/json", get_doctor},
        {"/metrics", FT_PROM_CONTENT_TYPE, get_metrics},
        {"/healthz", "text/plain", get_health},
    };
    struct ft_api *api = calloc(1, sizeof(*api));

    if (!api)
        return NULL;
    api->view = view;
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        if (ft_http_route(http, routes[i].path, routes[i].type, routes[i].handler, api)) {
            free(api);
            return NULL;
        }
    }
    return api;
}

void ft_api_free(struct ft_api *api)
{
    free(api);
}
