// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/matrix.h"

#include <stdlib.h>
#include <string.h>

static int by_ranks(const void *a, const void *b)
{
    const struct ft_rank_edge *x = *(const struct ft_rank_edge *const *)a;
    const struct ft_rank_edge *y = *(const struct ft_rank_edge *const *)b;
    int order = strcmp(x->comm_id, y->comm_id);

    if (order)
        return order;
    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    if (x->dst != y->dst)
        return x->dst < y->dst ? -1 : 1;
    return strcmp(x->op, y->op);
}

/* Pointers to all members or edges, sorted; NULL without memory or without any. */
struct list {
    const void **items;
    size_t count;
};

static const void *next_member(const struct ft_ranks *ranks, uint32_t *index)
{
    return ft_ranks_next_member(ranks, index);
}

static const void *next_edge(const struct ft_ranks *ranks, uint32_t *index)
{
    return ft_ranks_next_edge(ranks, index);
}

static struct list sorted(const struct ft_ranks *ranks,
                          const void *(*next)(const struct ft_ranks *ranks, uint32_t *index),
                          int (*order)(const void *a, const void *b))
{
    struct list list = {0};
    const void *item;
    uint32_t index = 0;
    size_t count = 0;

    while (next(ranks, &index))
        count++;
    list.items = calloc(count ? count : 1, sizeof(*list.items));
    if (!list.items)
        return list;
    index = 0;
    while ((item = next(ranks, &index)))
        list.items[list.count++] = item;
    qsort(list.items, list.count, sizeof(*list.items), order);
    return list;
}

static char *text(const char *t)
{
    return *t ? (char *)(uintptr_t)t : NULL;
}

static void fill_member(Fabrictrace__MatrixMember *out, const struct ft_rank_member *m)
{
    fabrictrace__matrix_member__init(out);
    out->has_rank = out->has_pid = true;
    out->rank = m->rank;
    out->host = text(m->host);
    out->pid = m->pid;
    out->gpu = text(m->gpu);
    out->job = text(m->job);
    out->has_closed = out->closed = m->closed;
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

/* Where a communicator's members, or edges, end in a sorted list. */
static size_t end_of(const struct list *list, size_t from, const char *comm_id)
{
    /* Both kinds begin with the communicator's id. */
    while (from < list->count && strcmp(list->items[from], comm_id) == 0)
        from++;
    return from;
}

/* The first edge of a communicator. */
static size_t first_edge(const struct list *edges, const char *comm_id)
{
    size_t low = 0, high = edges->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(edges->items[middle], comm_id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct matrix {
    Fabrictrace__MatrixMember *members, **member_list;
    Fabrictrace__MatrixEdge *edges, **edge_list;
};

static bool matrix_alloc(struct matrix *m, size_t members, size_t edges)
{
    m->members = calloc(members + 1, sizeof(*m->members));
    m->member_list = calloc(members + 1, sizeof(Fabrictrace__MatrixMember *));
    m->edges = calloc(edges + 1, sizeof(*m->edges));
    m->edge_list = calloc(edges + 1, sizeof(Fabrictrace__MatrixEdge *));
    return m->members && m->member_list && m->edges && m->edge_list;
}

static void matrix_free(struct matrix *m)
{
    free(m->members);
    free(m->member_list);
    free(m->edges);
    free(m->edge_list);
}

/* A communicator's members from..to. */
static void write_comm(struct ft_list *list, const struct list *members, size_t from, size_t to,
                       const struct list *edges, const char *op)
{
    const struct ft_rank_member *first = members->items[from];
    size_t edge = first_edge(edges, first->comm_id), end = end_of(edges, edge, first->comm_id);
    Fabrictrace__Matrix out = FABRICTRACE__MATRIX__INIT;
    struct matrix matrix;

    if (!matrix_alloc(&matrix, to - from, end - edge)) {
        list->w->failed = true;
        matrix_free(&matrix);
        return;
    }
    out.comm_id = text(first->comm_id);
    out.name = text(first->name);
    out.has_ranks = true;
    out.ranks = first->ranks;
    for (size_t i = from; i < to; i++) {
        fill_member(&matrix.members[out.n_members], members->items[i]);
        matrix.member_list[out.n_members] = &matrix.members[out.n_members];
        out.n_members++;
    }
    for (size_t i = edge; i < end; i++) {
        const struct ft_rank_edge *e = edges->items[i];

        if (op && strcmp(op, e->op) != 0)
            continue;
        fill_edge(&matrix.edges[out.n_edges], e);
        matrix.edge_list[out.n_edges] = &matrix.edges[out.n_edges];
        out.n_edges++;
    }
    out.members = matrix.member_list;
    out.edges = matrix.edge_list;
    ft_list_message(list, "fabrictrace.matrix.v1", &out.base);
    matrix_free(&matrix);
}

static bool has_job(const struct list *members, size_t from, size_t to, const char *job)
{
    for (size_t i = from; i < to; i++)
        if (strcmp(((const struct ft_rank_member *)members->items[i])->job, job) == 0)
            return true;
    return false;
}

void ft_api_write_matrix(struct ft_list *list, const struct ft_ranks *ranks, const char *comm_id,
                         const char *job, const char *op)
{
    struct list members = sorted(ranks, next_member, ft_ranks_by_comm);
    struct list edges = sorted(ranks, next_edge, by_ranks);

    if (!members.items || !edges.items)
        list->w->failed = true;
    for (size_t at = 0, end; edges.items && at < members.count; at = end) {
        const struct ft_rank_member *m = members.items[at];

        end = end_of(&members, at, m->comm_id);
        if ((!comm_id || strcmp(comm_id, m->comm_id) == 0) &&
            (!job || has_job(&members, at, end, job)))
            write_comm(list, &members, at, end, &edges, op);
    }
    free(members.items);
    free(edges.items);
}
