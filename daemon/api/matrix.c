// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/matrix.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/sorted.h"
#include "daemon/jobs/ranks.h"
#include "daemon/pipeline/stages.h"
#include "lib/io/http/http.h"
#include "proto/json.h"

#define ITEMS_A_STEP 1000

struct member_item {
    char comm_id[FT_RANKS_ID];
    uint32_t rank;
    uint32_t index;
};

struct edge_item {
    char comm_id[FT_RANKS_ID], op[FT_RANKS_ID];
    uint32_t src, dst;
    uint32_t index;
};

enum part {
    CHOOSING, /* the communicator */
    MEMBERS,
    EDGES,
};

/* The record in hand is of the communicator whose members begin at first, written piece by piece:
 * one may have more edges than a step may write. */
struct matrix {
    struct ft_list list;
    struct ft_list_filter filter;
    struct ft_sorted members, edges;
    bool has_after;
    struct member_item after; /* its communicator ended the page before */
    enum part part;
    size_t first, end;     /* its members */
    size_t member, edge;   /* the next */
    size_t written;        /* of the list of either in hand */
    size_t last;           /* member of the last communicator on this page */
    uint64_t total, limit; /* communicators */
    bool more;
};
static char *text(const char *t)
{
    return *t ? (char *)(uintptr_t)t : NULL;
}

static void fill_member(Fabrictrace__MatrixMember *out, const struct ft_rank_member *m)
{
    fabrictrace__matrix_member__init(out);
    out->has_rank = true;
    out->has_pid = m->pid != 0;
    out->rank = m->rank;
    out->host = text(m->host);
    out->pid = m->pid;
    out->gpu = text(m->gpu);
    out->job = text(m->job);
    out->has_closed = out->closed = m->closed;
    out->has_transfers_dropped = out->has_bytes_dropped = m->transfers_dropped > 0;
    out->transfers_dropped = m->transfers_dropped;
    out->bytes_dropped = m->bytes_dropped;
}

static void fill_edge(Fabrictrace__MatrixEdge *out, const struct ft_rank_edge *e)
{
    fabrictrace__matrix_edge__init(out);
    out->has_src = out->has_dst = true;
    out->src = e->src;
    out->dst = e->dst;
    out->op = text(e->op);
    out->has_sent_bytes = out->has_received_bytes = true;
    out->has_sent_messages = out->has_received_messages = true;
    out->sent_bytes = e->sent_bytes;
    out->received_bytes = e->received_bytes;
    out->sent_messages = e->sent_messages;
    out->received_messages = e->received_messages;
    out->has_expected_bytes = e->expected_bytes > 0;
    out->expected_bytes = e->expected_bytes > 0 ? (uint64_t)(e->expected_bytes + 0.5) : 0;
    out->has_step_median_ns = out->has_step_max_ns = e->step_max_ns != 0;
    out->step_median_ns = e->step_median_ns;
    out->step_max_ns = e->step_max_ns;
}

static int by_rank(const void *a, const void *b)
{
    const struct member_item *x = a, *y = b;
    int by_comm = strncmp(x->comm_id, y->comm_id, FT_RANKS_ID);

    return by_comm ? by_comm : x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int by_ranks(const void *a, const void *b)
{
    const struct edge_item *x = a, *y = b;
    int by_comm = strncmp(x->comm_id, y->comm_id, FT_RANKS_ID);

    if (by_comm)
        return by_comm;
    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    if (x->dst != y->dst)
        return x->dst < y->dst ? -1 : 1;
    return strncmp(x->op, y->op, FT_RANKS_ID);
}

static enum ft_sorted_found look_at_member(const struct ft_view *view, const void *filter,
                                           uint32_t *index, void *to)
{
    const struct ft_rank_member *m = ft_ranks_next_member(view->stages->ranks, index);
    struct member_item *item = to;

    if (!m)
        return FT_SORTED_END;
    if (!ft_filter_is(((const struct ft_list_filter *)filter)->comm, m->comm_id))
        return FT_SORTED_OTHER;
    memcpy(item->comm_id, m->comm_id, FT_RANKS_ID);
    item->rank = m->rank;
    item->index = *index - 1;
    return FT_SORTED_MATCH;
}

static enum ft_sorted_found look_at_edge(const struct ft_view *view, const void *filter,
                                         uint32_t *index, void *to)
{
    const struct ft_rank_edge *e = ft_ranks_next_edge(view->stages->ranks, index);
    const struct ft_list_filter *f = filter;
    struct edge_item *item = to;

    if (!e)
        return FT_SORTED_END;
    if (!ft_filter_is(f->comm, e->comm_id) || !ft_filter_is(f->op, e->op))
        return FT_SORTED_OTHER;
    memcpy(item->comm_id, e->comm_id, FT_RANKS_ID);
    memcpy(item->op, e->op, FT_RANKS_ID);
    item->src = e->src;
    item->dst = e->dst;
    item->index = *index - 1;
    return FT_SORTED_MATCH;
}

static const struct ft_sorted_kind member_order = {
    .name = "matrix",
    .item_bytes = sizeof(struct member_item),
    .order = by_rank,
    .look = look_at_member,
};

static const struct ft_sorted_kind edge_order = {
    .name = "edges",
    .item_bytes = sizeof(struct edge_item),
    .order = by_ranks,
    .look = look_at_edge,
};

/* NULL: it is gone, and another may have its slot; or it came twice. */
static const struct ft_rank_member *member_at(const struct matrix *m, size_t i)
{
    const struct member_item *item = ft_sorted_item(&m->members, i);
    const struct ft_rank_member *found =
        ft_ranks_member_at(m->list.view->stages->ranks, item->index);

    if (!found || found->rank != item->rank || strcmp(found->comm_id, item->comm_id) != 0 ||
        (i > m->first && by_rank(ft_sorted_item(&m->members, i - 1), item) == 0))
        return NULL;
    return found;
}

static const struct ft_rank_edge *edge_at(const struct matrix *m, size_t i)
{
    const struct edge_item *item = ft_sorted_item(&m->edges, i);
    const struct ft_rank_edge *found = ft_ranks_edge_at(m->list.view->stages->ranks, item->index);

    if (!found || found->src != item->src || found->dst != item->dst ||
        strcmp(found->comm_id, item->comm_id) != 0 || strcmp(found->op, item->op) != 0 ||
        (i > 0 && by_ranks(ft_sorted_item(&m->edges, i - 1), item) == 0))
        return NULL;
    return found;
}

static const char *comm_of(const struct ft_sorted *sorted, size_t i)
{
    /* Both kinds of items begin with the communicator's id. */
    return ft_sorted_item(sorted, i);
}

/* The first edge of a communicator. */
static size_t first_edge(const struct ft_sorted *edges, const char *comm_id)
{
    size_t low = 0, high = edges->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(comm_of(edges, middle), comm_id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A member that is there, of the job that is asked for; NULL: none. */
static const struct ft_rank_member *choose(const struct matrix *m)
{
    for (size_t i = m->first; i < m->end; i++) {
        const struct ft_rank_member *member = member_at(m, i);

        if (member && ft_filter_is(m->filter.job, member->job))
            return member;
    }
    return NULL;
}

/* All but its lists, and without the brace that ends it. */
static void write_head(struct matrix *m, const struct ft_rank_member *of)
{
    Fabrictrace__Matrix out = FABRICTRACE__MATRIX__INIT;
    struct ft_writer *w = m->list.w;

    out.comm_id = text(of->comm_id);
    out.name = text(of->name);
    out.has_ranks = true;
    out.ranks = of->ranks;
    ft_json_write(w, &out.base, "\"schema\":\"fabrictrace.matrix.v1\"");
    w->len -= ft_writer_ok(w);
}

static void write_item(struct matrix *m, const char *list, const ProtobufCMessage *message)
{
    if (m->written++)
        ft_write_u8(m->list.w, ',');
    else
        ft_write_fmt(m->list.w, ",\"%s\":[", list);
    ft_json_write(m->list.w, message, NULL);
}

static void end_items(struct matrix *m)
{
    if (m->written)
        ft_write_u8(m->list.w, ']');
    m->written = 0;
}

/* Goes to the next communicator; true when there is none. */
static bool choose_next(struct matrix *m)
{
    const struct ft_rank_member *member;

    m->first = m->end;
    if (m->first == m->members.count)
        return true;
    while (m->end < m->members.count &&
           strcmp(comm_of(&m->members, m->end), comm_of(&m->members, m->first)) == 0)
        m->end++;
    member = choose(m);
    if (!member)
        return false;
    m->total++;
    if (m->has_after && strncmp(comm_of(&m->members, m->first), m->after.comm_id, FT_RANKS_ID) <= 0)
        return false;
    m->more = m->list.written == m->limit;
    if (m->more || !ft_list_next(&m->list))
        return false;
    write_head(m, member);
    m->last = m->first;
    m->member = m->first;
    m->edge = first_edge(&m->edges, comm_of(&m->members, m->first));
    m->part = MEMBERS;
    return false;
}

static void write_member(struct matrix *m)
{
    const struct ft_rank_member *member;
    Fabrictrace__MatrixMember out;

    if (m->member == m->end) {
        end_items(m);
        m->part = EDGES;
        return;
    }
    member = member_at(m, m->member++);
    if (!member)
        return;
    fill_member(&out, member);
    write_item(m, "members", &out.base);
}

static void write_edge(struct matrix *m)
{
    const struct ft_rank_edge *edge;
    Fabrictrace__MatrixEdge out;

    if (m->edge == m->edges.count ||
        strcmp(comm_of(&m->edges, m->edge), comm_of(&m->members, m->first)) != 0) {
        end_items(m);
        ft_write_u8(m->list.w, '}');
        m->part = CHOOSING;
        return;
    }
    edge = edge_at(m, m->edge++);
    if (!edge)
        return;
    fill_edge(&out, edge);
    write_item(m, "edges", &out.base);
}

static int step(struct ft_list *list)
{
    struct matrix *m = (struct matrix *)list;
    int rc = ft_sorted_gather(&m->members, list->view);

    if (rc == 0)
        rc = ft_sorted_gather(&m->edges, list->view);
    if (rc)
        return rc;
    for (int i = 0; i < ITEMS_A_STEP; i++) {
        if (m->part == MEMBERS) {
            write_member(m);
        } else if (m->part == EDGES) {
            write_edge(m);
        } else if (choose_next(m)) {
            m->members.total = m->total;
            ft_sorted_end(&m->members, list, m->more ? ft_sorted_item(&m->members, m->last) : NULL);
            return 0;
        }
    }
    return 1;
}

static void free_matrix(struct ft_list *list)
{
    struct matrix *m = (struct matrix *)list;

    ft_list_filter_free(&m->filter);
    ft_sorted_free(&m->members);
    ft_sorted_free(&m->edges);
    free(m);
}

static int begin(struct matrix *m, const struct ft_http_request *request, struct ft_writer *body)
{
    static const char *const names[] = {"comm", "job", "op", NULL};
    struct ft_page page;
    int rc = ft_page_read_limit(request, names, UINT64_MAX, &page, body);

    if (!rc)
        rc = ft_list_filter_read(&m->filter, request, body);
    if (rc)
        return rc;
    m->limit = page.limit;
    ft_sorted_init(&m->members, &member_order, &m->filter, SIZE_MAX);
    ft_sorted_init(&m->edges, &edge_order, &m->filter, SIZE_MAX);
    rc = ft_sorted_begin(&m->members, ft_http_query(request, "cursor"), body);
    /* All members are looked at: those before count as well. */
    m->has_after = m->members.has_after;
    memcpy(&m->after, m->members.after, sizeof(m->after));
    m->members.has_after = false;
    return rc;
}

int ft_api_matrix(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    const struct ft_view *view = arg;
    const struct ft_page unlimited = {.limit = UINT64_MAX};
    struct matrix *m = calloc(1, sizeof(*m));
    int rc;

    if (!m)
        return ft_api_refuse(body, 503, "no memory");
    ft_list_init(&m->list, view, &unlimited);
    m->list.step = step;
    m->list.free = free_matrix;
    rc = begin(m, request, body);
    if (rc) {
        free_matrix(&m->list);
        return rc;
    }
    return ft_list_send(&m->list, request,
                        sizeof(*m) +
                            ft_ranks_members(view->stages->ranks) * sizeof(struct member_item) +
                            ft_ranks_edges(view->stages->ranks) * sizeof(struct edge_item),
                        body);
}
