// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/matrix.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json.h"

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

static void write_member(struct ft_writer *w, const struct ft_rank_member *m)
{
    ft_write_fmt(w, "{\"rank\":%" PRIu32, m->rank);
    ft_json_write_member(w, "host", m->host);
    ft_write_fmt(w, ",\"pid\":%" PRIu32, m->pid);
    ft_json_write_member(w, "gpu", m->gpu);
    ft_json_write_member(w, "job", m->job);
    if (m->closed)
        ft_write_str(w, ",\"closed\":true");
    ft_write_u8(w, '}');
}

static void write_edge(struct ft_writer *w, const struct ft_rank_edge *e)
{
    ft_write_fmt(w, "{\"src\":%" PRIu32 ",\"dst\":%" PRIu32, e->src, e->dst);
    ft_json_write_member(w, "op", e->op);
    ft_write_fmt(w,
                 ",\"sent_bytes\":%" PRIu64 ",\"received_bytes\":%" PRIu64
                 ",\"sent_messages\":%" PRIu64 ",\"received_messages\":%" PRIu64,
                 e->sent_bytes, e->received_bytes, e->sent_messages, e->received_messages);
    if (e->expected_bytes > 0)
        ft_write_fmt(w, ",\"expected_bytes\":%.0f", e->expected_bytes);
    if (e->step_max_ns)
        ft_write_fmt(w, ",\"step_median_ns\":%" PRIu64 ",\"step_max_ns\":%" PRIu64,
                     e->step_median_ns, e->step_max_ns);
    ft_write_u8(w, '}');
}

/* A communicator's members from *at on, which moves behind them. */
static void write_comm(struct ft_writer *w, const struct list *members, size_t *at,
                       const struct list *edges, const char *op)
{
    const struct ft_rank_member *first = members->items[*at];
    bool begun = false;

    ft_write_str(w, "{\"comm_id\":");
    ft_json_write_text(w, first->comm_id);
    ft_json_write_member(w, "name", first->name);
    ft_write_fmt(w, ",\"ranks\":%" PRIu32 ",\"members\":[", first->ranks);
    for (size_t i = *at; i < members->count; i++, ++*at) {
        const struct ft_rank_member *m = members->items[i];

        if (strcmp(m->comm_id, first->comm_id) != 0)
            break;
        if (m != first)
            ft_write_u8(w, ',');
        write_member(w, m);
    }
    ft_write_str(w, "],\"edges\":[");
    for (size_t i = 0; i < edges->count; i++) {
        const struct ft_rank_edge *e = edges->items[i];

        if (strcmp(e->comm_id, first->comm_id) != 0 || (op && strcmp(op, e->op) != 0))
            continue;
        if (begun)
            ft_write_u8(w, ',');
        begun = true;
        write_edge(w, e);
    }
    ft_write_str(w, "]}");
}

size_t ft_api_write_matrix(struct ft_writer *w, const struct ft_ranks *ranks, const char *comm_id,
                           const char *op)
{
    struct list members = sorted(ranks, next_member, ft_ranks_by_place);
    struct list edges = sorted(ranks, next_edge, by_ranks);
    size_t written = 0;

    for (size_t at = 0; edges.items && at < members.count;) {
        const struct ft_rank_member *m = members.items[at];

        if (comm_id && strcmp(comm_id, m->comm_id) != 0) {
            at++;
            continue;
        }
        if (written++)
            ft_write_u8(w, ',');
        write_comm(w, &members, &at, &edges, op);
    }
    free(members.items);
    free(edges.items);
    return written;
}
