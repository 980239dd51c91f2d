// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/paths.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/jobs/flow_ranks.h"
#include "daemon/join/flow_names.h"
#include "daemon/join/flow_path.h"
#include "daemon/pipeline/stages.h"
#include "daemon/publish/emit.h"
#include "lib/io/http/http.h"

#define PATHS_LIMIT 10000

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

static char *copy(const struct ft_http_request *request, const char *name)
{
    const char *value = ft_http_query(request, name);

    return value ? strdup(value) : NULL;
}

/* Returns 0, or 400 with a sentence. What was read is freed in any case. */
static int read_filter(struct ft_flow_filter *f, const struct ft_http_request *request,
                       struct ft_writer *body)
{
    const char *flow = ft_http_query(request, "flow"), *state = ft_http_query(request, "state");
    int rc;

    *f = (struct ft_flow_filter){.has_tuple = flow != NULL,
                                 .state = state ? parse_state(state) : -1};
    if (state && f->state < 0)
        return ft_api_refuse(body, 400,
                             "state must be one of resolved, partial, multipath, unresolved");
    if (flow && ft_tuple_parse(flow, &f->tuple))
        return ft_api_refuse(body, 400, "flow is not written like 10.0.1.1:49441-10.0.3.1");
    rc = ft_api_rank(request, &f->has_rank, &f->rank, body);
    if (rc)
        return rc;
    f->host = copy(request, "host");
    f->has_address = f->host && ft_ip_parse(f->host, &f->address) == 0;
    f->switch_name = copy(request, "switch");
    f->port = copy(request, "port");
    f->group = copy(request, "group");
    f->job = copy(request, "job");
    f->comm = copy(request, "comm");
    return 0;
}

void ft_flow_filter_free(struct ft_flow_filter *f)
{
    free(f->host);
    free(f->switch_name);
    free(f->port);
    free(f->group);
    free(f->job);
    free(f->comm);
}

static bool is(const char *filter, const char *text)
{
    return text && strcmp(filter, text) == 0;
}

static bool at_host(const struct ft_join *join, const struct ft_flow *flow,
                    const struct ft_flow_filter *f)
{
    if (f->has_address)
        return ft_ip_equal(&flow->tuple.src, &f->address) ||
               ft_ip_equal(&flow->tuple.dst, &f->address);
    return is(f->host, ft_flow_src_host(join, flow)) || is(f->host, ft_flow_dst_host(join, flow));
}

static bool is_port(const struct ft_topology *t, uint32_t id, const struct ft_flow_filter *f)
{
    return ft_is_port(id) && (!f->port || is(f->port, ft_topology_port(t, id)->name));
}

/* Whether a resolved flow passes the switch, the port of it, or a link of the group. */
static bool passes(const struct ft_topology *t, const struct ft_flow *flow,
                   const struct ft_flow_filter *f)
{
    struct ft_path path;

    if (flow->state != FT_PATH_RESOLVED)
        return false;
    path = ft_flow_path(t, flow);
    for (uint32_t h = 0; h < path.hop_count; h++) {
        const struct ft_hop *hop = &path.hops[h];
        uint32_t known = ft_is_port(hop->out) ? hop->out : hop->in;
        const struct ft_port *port = ft_is_port(known) ? ft_topology_port(t, known) : NULL;

        if (!port)
            continue;
        if (f->group && (!ft_is_port(hop->out) || port->group == FT_NONE ||
                         !is(f->group, ft_topology_group(t, port->group)->name)))
            continue;
        if (f->switch_name && !is(f->switch_name, ft_topology_switch(t, port->switch_id)->name))
            continue;
        if (is_port(t, hop->in, f) || is_port(t, hop->out, f))
            return true;
    }
    return false;
}

static bool of_job(const struct ft_join *join, const struct ft_flow *flow,
                   const struct ft_flow_filter *f)
{
    struct ft_rank_pair pairs[FT_RANKS_CANDIDATES_MAX];
    bool more;
    size_t n = ft_flow_ranks(join, flow, pairs, &more);

    if (n == 0)
        return f->job && !f->comm && !f->has_rank && is(f->job, ft_flow_job(flow));
    for (size_t i = 0; i < n; i++) {
        const char *job = pairs[i].job ? pairs[i].job : ft_flow_job(flow);

        if ((!f->job || is(f->job, job)) && (!f->comm || is(f->comm, pairs[i].comm_id)) &&
            (!f->has_rank || pairs[i].src == f->rank || pairs[i].dst == f->rank))
            return true;
    }
    return false;
}

static bool matches(const struct ft_join *join, const struct ft_flow *flow,
                    const struct ft_flow_filter *f)
{
    return (!f->has_tuple || ft_tuple_equal(&flow->tuple, &f->tuple)) &&
           (f->state < 0 || flow->state == f->state) && (!f->host || at_host(join, flow, f)) &&
           ((!f->switch_name && !f->port && !f->group) ||
            passes(ft_join_topology(join), flow, f)) &&
           ((!f->job && !f->comm && !f->has_rank) || of_job(join, flow, f));
}

void ft_api_path(struct ft_list *list, struct ft_flow *flow)
{
    int64_t window_ms = list->view->window_ms;
    int64_t number = flow->bytes_window ? flow->bytes_window : flow->window;
    const struct ft_span span = {number * window_ms, (number + 1) * window_ms};
    const struct ft_emitter emitter = {ft_list_emit, list};

    ft_emit_path(&emitter, list->view->stages->join, flow, &span);
}

/* A flow that matches. It is found again by its tuple, since flows come and go between slices. */
struct match {
    uint64_t bytes; /* 0 where they are sorted by tuple */
    struct ft_tuple tuple;
};

static int order(const void *a, const void *b)
{
    const struct match *x = a, *y = b;

    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return memcmp(&x->tuple, &y->tuple, sizeof(x->tuple));
}

static enum ft_sorted_found look_by_rate(const struct ft_view *view, const void *filter,
                                         uint32_t *index, void *item)
{
    const struct ft_join *join = view->stages->join;
    struct match *m = item;
    const struct ft_flow *flow;

    if (*index >= ft_join_limit(join))
        return FT_SORTED_END;
    flow = ft_join_at(join, (*index)++);
    if (!flow || !matches(join, flow, filter))
        return FT_SORTED_OTHER;
    m->bytes = flow->bytes;
    m->tuple = flow->tuple;
    return FT_SORTED_MATCH;
}

static enum ft_sorted_found look_by_tuple(const struct ft_view *view, const void *filter,
                                          uint32_t *index, void *item)
{
    enum ft_sorted_found found = look_by_rate(view, filter, index, item);

    ((struct match *)item)->bytes = 0;
    return found;
}

static void write_flow(struct ft_list *list, const void *item)
{
    struct ft_flow *flow =
        ft_join_find(list->view->stages->join, &((const struct match *)item)->tuple);

    if (flow)
        ft_api_path(list, flow);
}

static size_t most(const struct ft_view *view)
{
    return ft_join_flows(view->stages->join);
}

static const struct ft_sorted_kind by_rate = {"rate",       sizeof(struct match), order,
                                              look_by_rate, write_flow,           most};
static const struct ft_sorted_kind by_tuple = {"flow",        sizeof(struct match), order,
                                               look_by_tuple, write_flow,           most};

struct of_flows {
    struct ft_list list;
    struct ft_flow_filter filter;
    struct ft_sorted sorted;
    ft_flows_before *before; /* NULL: nothing comes before */
    struct ft_sorted own;    /* for it */
    bool is_begun;           /* the list of the flows */
    uint64_t reported;       /* records before it */
};

static int step(struct ft_list *list)
{
    struct of_flows *o = (struct of_flows *)list;
    int rc;

    if (o->before && !o->is_begun) {
        rc = o->before(list, &o->filter, &o->own);
        o->is_begun = rc == 0;
        o->reported = list->total;
        /* What was sorted there ended its page; that of the flows begins. */
        list->page.limit = UINT64_MAX;
        list->next[0] = '\0';
        return rc < 0 ? rc : 1;
    }
    rc = ft_sorted_step(&o->sorted, list);
    if (rc == 0 && o->before) {
        /* What they belong to is what is listed, and there is no other page. */
        list->total = o->reported;
        list->next[0] = '\0';
    }
    return rc;
}

static void free_flows(struct ft_list *list)
{
    struct of_flows *o = (struct of_flows *)list;

    ft_flow_filter_free(&o->filter);
    ft_sorted_free(&o->sorted);
    ft_sorted_free(&o->own);
    free(o);
}

static int send_flows(struct of_flows *o, const struct ft_view *view,
                      const struct ft_http_request *request, struct ft_writer *body)
{
    const struct ft_page unlimited = {.limit = UINT64_MAX}; /* what is kept is the page */
    size_t flows = most(view);

    ft_list_init(&o->list, view, &unlimited);
    o->list.step = step;
    o->list.free = free_flows;
    return ft_list_send(&o->list, request,
                        sizeof(*o) + (flows < o->sorted.limit ? flows : o->sorted.limit) *
                                         sizeof(struct match),
                        body);
}

int ft_api_flows_of(const struct ft_view *view, const struct ft_http_request *request,
                    struct ft_flow_filter *filter, size_t limit, ft_flows_before *before,
                    struct ft_writer *body)
{
    struct of_flows *o = calloc(1, sizeof(*o));

    if (!o) {
        ft_flow_filter_free(filter);
        return ft_api_refuse(body, 503, "no memory");
    }
    o->before = before;
    o->filter = *filter;
    ft_sorted_init(&o->sorted, &by_rate, &o->filter, limit);
    return send_flows(o, view, request, body);
}

static int begin(struct of_flows *o, const struct ft_view *view,
                 const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {"flow", "state", "host", "switch", "port", "group",
                                        "job",  "comm",  "rank", "sort",   NULL};
    const char *sort = ft_http_query(request, "sort");
    struct ft_page page;
    int rc = ft_page_read_limit(request, names, PATHS_LIMIT, &page, body);

    if (!rc)
        rc = read_filter(&o->filter, request, body);
    if (rc)
        return rc;
    if (sort && strcmp(sort, "rate") != 0 && strcmp(sort, "flow") != 0)
        return ft_api_refuse(body, 400, "sort must be one of rate, flow");
    ft_sorted_init(&o->sorted, sort && strcmp(sort, "flow") == 0 ? &by_tuple : &by_rate, &o->filter,
                   page.limit);
    if (!(sort && strcmp(sort, "flow") == 0))
        ft_sorted_keep(&o->sorted, view->orders);
    return ft_sorted_begin(&o->sorted, ft_http_query(request, "cursor"), body);
}

int ft_api_paths(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    struct of_flows *o = calloc(1, sizeof(*o));
    int rc;

    if (!o)
        return ft_api_refuse(body, 503, "no memory");
    rc = begin(o, arg, request, body);
    if (rc) {
        free_flows(&o->list);
        return rc;
    }
    return send_flows(o, arg, request, body);
}
