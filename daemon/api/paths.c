// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/paths.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/jobs/flow_ranks.h"
#include "daemon/join/flow_names.h"
#include "daemon/pipeline/stages.h"
#include "daemon/publish/emit.h"
#include "lib/io/http.h"

#define PATHS_LIMIT    10000
#define FLOWS_A_STEP   20000
#define RECORDS_A_STEP 500

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

int ft_flow_filter_read(struct ft_flow_filter *f, const struct ft_http_request *request,
                        struct ft_writer *body)
{
    const char *flow = ft_http_query(request, "flow"), *state = ft_http_query(request, "state");
    uint64_t rank = 0;
    int rc;

    *f = (struct ft_flow_filter){.has_tuple = flow != NULL,
                                 .state = state ? parse_state(state) : -1};
    if (state && f->state < 0)
        return ft_api_refuse(body, 400,
                             "state must be one of resolved, partial, multipath, unresolved");
    if (flow && ft_tuple_parse(flow, &f->tuple))
        return ft_api_refuse(body, 400, "flow is not written like 10.0.1.1:49441-10.0.3.1");
    rc = ft_api_number(request, "rank", &f->has_rank, &rank, body);
    if (rc)
        return rc;
    f->rank = (uint32_t)rank;
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
    if (flow->state != FT_PATH_RESOLVED)
        return false;
    for (uint32_t h = 0; h < flow->path.hop_count; h++) {
        const struct ft_hop *hop = &flow->path.hops[h];
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
        return f->job && !f->comm && !f->has_rank && flow->host && is(f->job, flow->host->job);
    for (size_t i = 0; i < n; i++) {
        const char *job = pairs[i].job ? pairs[i].job : flow->host ? flow->host->job : NULL;

        if ((!f->job || is(f->job, job)) && (!f->comm || is(f->comm, pairs[i].comm_id)) &&
            (!f->has_rank || pairs[i].src == f->rank || pairs[i].dst == f->rank))
            return true;
    }
    return false;
}

bool ft_flow_matches(const struct ft_join *join, const struct ft_flow *flow,
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

/* A flow that matches. Its place is kept by its tuple, since flows come and go between slices. */
struct match {
    uint64_t bytes; /* 0 where they are sorted by tuple */
    struct ft_tuple tuple;
};

enum phase {
    LOOKING,
    SORTING,
    WRITING,
};

/* First every flow is looked at, and those kept that come first; then they are written. */
struct of_flows {
    struct ft_list list;
    struct ft_flow_filter filter;
    bool by_tuple;
    bool has_after;
    struct match after; /* the last of the page before */
    enum phase phase;
    uint32_t index; /* of the next flow */
    struct match *heap;
    size_t count, size, limit, sorted, written;
    uint64_t total; /* that match, on any page */
    uint64_t rest;  /* that come on this page or later ones */
    void (*before)(struct ft_list *list, const struct ft_flow_filter *filter); /* NULL: nothing */
    uint64_t reported; /* records that it wrote */
};

/* Negative: x comes before y. */
static int order(const struct match *x, const struct match *y)
{
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return memcmp(&x->tuple, &y->tuple, sizeof(x->tuple));
}

/* The root is the last of those that are kept. */
static void sift_down(struct match *heap, size_t count, size_t i)
{
    for (;;) {
        size_t last = i, child = 2 * i + 1;

        for (size_t k = child; k < child + 2 && k < count; k++)
            if (order(&heap[k], &heap[last]) > 0)
                last = k;
        if (last == i)
            return;
        struct match m = heap[i];
        heap[i] = heap[last];
        heap[last] = m;
        i = last;
    }
}

static void sift_up(struct match *heap, size_t i)
{
    while (i && order(&heap[i], &heap[(i - 1) / 2]) > 0) {
        struct match m = heap[i];

        heap[i] = heap[(i - 1) / 2];
        heap[(i - 1) / 2] = m;
        i = (i - 1) / 2;
    }
}

static int keep(struct of_flows *o, const struct match *m)
{
    if (o->count < o->limit) {
        if (o->count == o->size) {
            size_t size = o->size ? 2 * o->size : 256;
            struct match *grown = realloc(o->heap, size * sizeof(*grown));

            if (!grown)
                return -ENOMEM;
            o->heap = grown;
            o->size = size;
        }
        o->heap[o->count] = *m;
        sift_up(o->heap, o->count++);
    } else if (o->count && order(m, &o->heap[0]) < 0) {
        o->heap[0] = *m;
        sift_down(o->heap, o->count, 0);
    }
    return 0;
}

static int look(struct of_flows *o, const struct ft_join *join)
{
    uint32_t limit = ft_join_limit(join);

    for (uint32_t i = 0; i < FLOWS_A_STEP && o->index < limit; i++) {
        const struct ft_flow *flow = ft_join_at(join, o->index++);
        struct match m;

        if (!flow || !ft_flow_matches(join, flow, &o->filter))
            continue;
        m = (struct match){o->by_tuple ? 0 : flow->bytes, flow->tuple};
        o->total++;
        if (o->has_after && !o->before && order(&m, &o->after) <= 0)
            continue;
        o->rest++;
        if (keep(o, &m))
            return -ENOMEM;
    }
    if (o->index >= limit) {
        o->phase = SORTING;
        o->sorted = o->count;
    }
    return 1;
}

/* The last goes to the end of what is not sorted yet. */
static int sort(struct of_flows *o)
{
    for (uint32_t i = 0; i < FLOWS_A_STEP && o->sorted > 1; i++) {
        struct match m = o->heap[0];

        o->heap[0] = o->heap[--o->sorted];
        o->heap[o->sorted] = m;
        sift_down(o->heap, o->sorted, 0);
    }
    if (o->sorted <= 1)
        o->phase = WRITING;
    return 1;
}

static void write_next(struct of_flows *o)
{
    const struct match *last = &o->heap[o->count - 1];
    size_t n;

    n = (size_t)snprintf(o->list.next, sizeof(o->list.next), "%s%" PRIu64 "-",
                         o->by_tuple ? "flow" : "rate", last->bytes);
    for (size_t i = 0; i < sizeof(last->tuple); i++)
        n += (size_t)snprintf(o->list.next + n, sizeof(o->list.next) - n, "%02x",
                              ((const uint8_t *)&last->tuple)[i]);
}

static int write_paths(struct of_flows *o, struct ft_join *join)
{
    for (int i = 0; i < RECORDS_A_STEP && o->written < o->count; i++) {
        struct ft_flow *flow = ft_join_find(join, &o->heap[o->written++].tuple);

        if (flow)
            ft_api_path(&o->list, flow);
    }
    if (o->written < o->count)
        return 1;
    if (o->count && o->rest > o->count && !o->before)
        write_next(o);
    o->list.total = o->before ? o->reported : o->total;
    o->list.page.limit = 0; /* the next page is told above */
    return 0;
}

static int step(struct ft_list *list)
{
    struct of_flows *o = (struct of_flows *)list;
    struct ft_join *join = list->view->stages->join;

    if (o->before && !o->has_after) {
        o->before(list, &o->filter);
        o->reported = list->total;
        o->has_after = true;
    }
    switch (o->phase) {
    case LOOKING:
        return look(o, join);
    case SORTING:
        return sort(o);
    case WRITING:
        return write_paths(o, join);
    }
    return -EINVAL;
}

static void free_flows(struct ft_list *list)
{
    struct of_flows *o = (struct of_flows *)list;

    ft_flow_filter_free(&o->filter);
    free(o->heap);
    free(o);
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* As write_next() writes it. */
static bool read_after(struct of_flows *o, const char *cursor)
{
    uint8_t *bytes = (uint8_t *)&o->after.tuple;
    char *end;

    if (strncmp(cursor, o->by_tuple ? "flow" : "rate", 4) != 0 || !isdigit((uint8_t)cursor[4]))
        return false;
    errno = 0;
    o->after.bytes = strtoull(cursor + 4, &end, 10);
    if (errno || *end++ != '-' || strlen(end) != 2 * sizeof(o->after.tuple))
        return false;
    for (size_t i = 0; i < sizeof(o->after.tuple); i++) {
        if (hex(end[2 * i]) < 0 || hex(end[2 * i + 1]) < 0)
            return false;
        bytes[i] = (uint8_t)(hex(end[2 * i]) << 4 | hex(end[2 * i + 1]));
    }
    o->has_after = true;
    return true;
}

static int read_order(struct of_flows *o, const struct ft_http_request *request,
                      struct ft_writer *body)
{
    const char *sort = ft_http_query(request, "sort"), *cursor = ft_http_query(request, "cursor");

    if (sort && strcmp(sort, "rate") != 0 && strcmp(sort, "flow") != 0)
        return ft_api_refuse(body, 400, "sort must be one of rate, flow");
    o->by_tuple = sort && strcmp(sort, "flow") == 0;
    if (cursor && !read_after(o, cursor))
        return ft_api_refuse(body, 400, "cursor is none that an answer in this order gave as next");
    return 0;
}

static int send_flows(struct of_flows *o, const struct ft_view *view,
                      const struct ft_http_request *request, const struct ft_page *page,
                      struct ft_writer *body)
{
    size_t flows = ft_join_flows(view->stages->join);

    ft_list_init(&o->list, view, page);
    o->limit = page->limit;
    o->list.page.limit = UINT64_MAX; /* what is kept is the page */
    o->list.step = step;
    o->list.free = free_flows;
    return ft_list_send(&o->list, request,
                        sizeof(*o) + (flows < o->limit ? flows : o->limit) * sizeof(struct match),
                        body);
}

int ft_api_flows_of(const struct ft_view *view, const struct ft_http_request *request,
                    struct ft_flow_filter *filter, size_t limit,
                    void (*before)(struct ft_list *list, const struct ft_flow_filter *filter),
                    struct ft_writer *body)
{
    const struct ft_page page = {.limit = limit};
    struct of_flows *o = calloc(1, sizeof(*o));

    if (!o) {
        ft_flow_filter_free(filter);
        return ft_api_refuse(body, 503, "no memory");
    }
    o->filter = *filter;
    o->before = before;
    return send_flows(o, view, request, &page, body);
}

int ft_api_paths(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {"flow", "state", "host", "switch", "port", "group",
                                        "job",  "comm",  "rank", "sort",   NULL};
    struct of_flows *o = calloc(1, sizeof(*o));
    struct ft_page page;
    int rc;

    if (!o)
        return ft_api_refuse(body, 503, "no memory");
    rc = ft_page_read_limit(request, names, PATHS_LIMIT, &page, body);
    if (!rc)
        rc = ft_flow_filter_read(&o->filter, request, body);
    if (!rc)
        rc = read_order(o, request, body);
    if (rc) {
        free_flows(&o->list);
        return rc;
    }
    return send_flows(o, arg, request, &page, body);
}
