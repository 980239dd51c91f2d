// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/happenings.h"
#include "daemon/api/list.h"
#include "daemon/api/paths.h"
#include "daemon/api/ranks.h"
#include "daemon/history/history.h"
#include "daemon/join/join.h"
#include "daemon/pipeline/stages.h"
#include "lib/io/http/http.h"
#include "proto/record.h"

#define PATHS_LIMIT 1000

/* The record of a key in the last window, as a step of the list. */
static void write_kept(struct ft_list *list, enum ft_row_kind kind, const char *key)
{
    struct ft_history *history = list->view->history;
    struct ft_history_window window;
    struct ft_history_cursor cursor;
    size_t rows = SIZE_MAX;
    Fabrictrace__Record *record;

    if (!ft_history_last(history, &window) ||
        ft_history_open(history, window.number, kind, &cursor))
        return;
    record = ft_history_read(history, &cursor, key, &rows);
    if (record)
        ft_list_record(list, record);
    ft_record_free(record);
    ft_history_close(history, &cursor);
}

static void key_of(const struct ft_topology *t, uint32_t port, char key[FT_RECORD_KEY_BYTES])
{
    const struct ft_port *p = ft_topology_port(t, port);

    snprintf(key, FT_RECORD_KEY_BYTES, "%s/%s", ft_topology_switch(t, p->switch_id)->name, p->name);
}

/* One flow. */
struct of_flow {
    struct ft_list list;
    struct ft_tuple tuple;
};

static void write_hops(struct ft_list *list, const struct ft_flow *flow)
{
    const struct ft_topology *t = ft_join_topology(list->view->stages->join);
    char keys[FT_PATH_HOPS_MAX][FT_RECORD_KEY_BYTES];
    uint32_t n = flow->state == FT_PATH_RESOLVED ? flow->path.hop_count : 0;

    for (uint32_t h = 0; h < n; h++)
        key_of(t, flow->path.hops[h].out, keys[h]);
    ft_list_begin(list, "links");
    for (uint32_t h = 0; h < n; h++)
        write_kept(list, FT_ROW_LINK, keys[h]);
    ft_list_begin(list, "collisions");
    for (uint32_t h = 0; h < n; h++)
        ft_api_standing(list, "collision", keys[h]);
    ft_list_begin(list, "losses");
    for (uint32_t h = 0; h < n; h++)
        ft_api_standing(list, "packet_loss", keys[h]);
}

static int step_flow(struct ft_list *list)
{
    struct ft_join *join = list->view->stages->join;
    struct ft_tuple tuple = ((struct of_flow *)list)->tuple, reverse = tuple;
    struct ft_flow *flow = ft_join_find(join, &tuple), *back;

    /* RoCEv2 acknowledges on the reverse tuple with the same source port. */
    reverse.src = tuple.dst;
    reverse.dst = tuple.src;
    back = ft_join_find(join, &reverse);
    if (flow)
        ft_api_path(list, flow);
    ft_list_begin(list, "reverse");
    if (back)
        ft_api_path(list, back);
    if (flow)
        write_hops(list, flow);
    list->total = flow ? 1 : 0;
    return 0;
}

static void free_flow(struct ft_list *list)
{
    free(list);
}

static int explain_flow(const struct ft_view *view, const struct ft_http_request *request,
                        const char *text, struct ft_writer *body)
{
    const struct ft_page page = {.limit = UINT64_MAX};
    struct ft_tuple tuple;
    struct of_flow *o;

    if (ft_tuple_parse(text, &tuple))
        return ft_api_refuse(body, 400, "flow is not written like 10.0.1.1:49441-10.0.3.1");
    if (!ft_join_find(view->stages->join, &tuple))
        return ft_api_refuse(body, 404,
                             "this flow is not known: neither a switch nor a host reports it");
    o = calloc(1, sizeof(*o));
    if (!o)
        return ft_api_refuse(body, 503, "no memory");
    ft_list_init(&o->list, view, &page);
    o->tuple = tuple;
    o->list.step = step_flow;
    o->list.free = free_flow;
    return ft_list_send(&o->list, request, sizeof(*o), body);
}

/* The port that a link leaves by; FT_NONE. A switch or a port may have a slash in its name. */
static uint32_t find_link(const struct ft_topology *t, const char *switch_name, const char *port)
{
    for (uint32_t i = 0; i < ft_topology_ports(t); i++) {
        const struct ft_port *p = ft_topology_port(t, i);

        if (strcmp(p->name, port) == 0 &&
            strcmp(ft_topology_switch(t, p->switch_id)->name, switch_name) == 0)
            return i;
    }
    return FT_NONE;
}

static int before_link(struct ft_list *list, const struct ft_flow_filter *filter,
                       struct ft_sorted *sorted)
{
    const struct ft_topology *t = ft_join_topology(list->view->stages->join);
    uint32_t id = find_link(t, filter->switch_name, filter->port);
    char key[FT_RECORD_KEY_BYTES], back[FT_RECORD_KEY_BYTES];
    uint64_t reported;

    snprintf(key, sizeof(key), "%s/%s", filter->switch_name, filter->port);
    write_kept(list, FT_ROW_LINK, key);
    reported = list->total;
    ft_list_begin(list, "reverse");
    if (id != FT_NONE && ft_topology_port(t, id)->peer != FT_NONE) {
        key_of(t, ft_topology_port(t, id)->peer, back);
        write_kept(list, FT_ROW_LINK, back);
    }
    ft_list_begin(list, "events");
    ft_api_standing(list, NULL, key);
    ft_list_begin(list, "paths");
    list->total = reported;
    (void)sorted;
    return 0;
}

static int explain_link(const struct ft_view *view, const struct ft_http_request *request,
                        const char *text, struct ft_writer *body)
{
    const struct ft_topology *t = ft_join_topology(view->stages->join);
    struct ft_flow_filter filter = {.state = -1};

    for (const char *slash = strchr(text, '/'); slash; slash = strchr(slash + 1, '/')) {
        filter.switch_name = strndup(text, (size_t)(slash - text));
        filter.port = strdup(slash + 1);
        if (filter.switch_name && filter.port &&
            find_link(t, filter.switch_name, filter.port) != FT_NONE)
            return ft_api_flows_of(view, request, &filter, PATHS_LIMIT, before_link, body);
        ft_flow_filter_free(&filter);
        filter = (struct ft_flow_filter){.state = -1};
    }
    return ft_api_refuse(body, 404, "this link is not known: it is written SWITCH/PORT");
}

static uint32_t find_group(const struct ft_topology *t, const char *name)
{
    uint32_t i = 0;

    while (i < ft_topology_groups(t) && strcmp(ft_topology_group(t, i)->name, name) != 0)
        i++;
    return i;
}

static int before_group(struct ft_list *list, const struct ft_flow_filter *filter,
                        struct ft_sorted *sorted)
{
    const struct ft_topology *t = ft_join_topology(list->view->stages->join);
    uint32_t id = find_group(t, filter->group);
    char key[FT_RECORD_KEY_BYTES];
    uint64_t reported;

    snprintf(key, sizeof(key), "group/%s", filter->group);
    write_kept(list, FT_ROW_IMBALANCE, key);
    reported = list->total;
    ft_list_begin(list, "links");
    for (uint32_t i = 0; id < ft_topology_groups(t) && i < ft_topology_group(t, id)->link_count;
         i++) {
        key_of(t, ft_topology_group(t, id)->links[i], key);
        write_kept(list, FT_ROW_LINK, key);
    }
    ft_list_begin(list, "events");
    ft_api_standing(list, NULL, filter->group);
    ft_list_begin(list, "paths");
    list->total = reported;
    (void)sorted;
    return 0;
}

static int explain_group(const struct ft_view *view, const struct ft_http_request *request,
                         const char *name, struct ft_writer *body)
{
    const struct ft_topology *t = ft_join_topology(view->stages->join);
    struct ft_flow_filter filter = {.state = -1, .group = strdup(name)};

    if (find_group(t, name) < ft_topology_groups(t))
        return ft_api_flows_of(view, request, &filter, PATHS_LIMIT, before_group, body);
    ft_flow_filter_free(&filter);
    return ft_api_refuse(body, 404, "this group is not known: /api/v1/imbalance lists them");
}

/* The pair of the job that is slowest beside others, and the record of the link under it. */
static void write_slowest(struct ft_list *list, const struct ft_sorted *sorted)
{
    uint64_t ranks = list->total;
    const void *item = sorted->count ? ft_sorted_item(sorted, 0) : NULL;
    const struct ft_pair_link *link = item ? ft_api_slow_link(list->view, item) : NULL;
    char key[FT_RECORD_KEY_BYTES];

    if (item)
        ft_api_slow_order.write(list, item);
    ft_list_begin(list, "slowest_links");
    if (link) {
        snprintf(key, sizeof(key), "%s/%s", link->switch_name, link->port);
        write_kept(list, FT_ROW_LINK, key);
    }
    list->total = ranks;
}

static int before_job(struct ft_list *list, const struct ft_flow_filter *filter,
                      struct ft_sorted *sorted)
{
    const struct ft_list_filter ranks = {.job = filter->job};
    int rc;

    if (!sorted->kind)
        ft_sorted_init(sorted, &ft_api_rank_order, NULL, SIZE_MAX);
    sorted->filter = &ranks;
    rc = sorted->kind == &ft_api_rank_order ? ft_sorted_step(sorted, list)
                                            : ft_sorted_gather(sorted, list->view);
    sorted->filter = NULL;
    if (rc)
        return rc;
    if (sorted->kind == &ft_api_rank_order) {
        ft_sorted_free(sorted);
        ft_sorted_init(sorted, &ft_api_slow_order, NULL, 1);
        ft_list_begin(list, "slowest");
        return 1;
    }
    write_slowest(list, sorted);
    ft_list_begin(list, "paths");
    return 0;
}

static int explain_job(const struct ft_view *view, const struct ft_http_request *request,
                       const char *name, struct ft_writer *body)
{
    struct ft_flow_filter filter = {.state = -1, .job = strdup(name)};

    return ft_api_flows_of(view, request, &filter, PATHS_LIMIT, before_job, body);
}

int ft_api_explain(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const struct {
        const char *name;
        int (*explain)(const struct ft_view *view, const struct ft_http_request *request,
                       const char *text, struct ft_writer *body);
    } kinds[] = {
        {"flow", explain_flow},
        {"link", explain_link},
        {"group", explain_group},
        {"job", explain_job},
    };
    static const char *const names[] = {"flow", "link", "group", "job", NULL};
    const char *stranger = ft_http_unknown_query(request, names), *text = NULL;
    size_t which = 0, asked = 0;

    if (stranger)
        return ft_api_refuse(body, 400, "'%.40s' is not a filter here, or is given twice",
                             stranger);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (!ft_http_query(request, kinds[i].name))
            continue;
        text = ft_http_query(request, kinds[i].name);
        which = i;
        asked++;
    }
    if (asked != 1)
        return ft_api_refuse(body, 400,
                             "one of flow, link, group, job is needed: "
                             "flow=10.0.1.1:49441-10.0.3.1");
    return kinds[which].explain(arg, request, text, body);
}
