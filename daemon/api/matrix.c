// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/matrix.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json.h"

/* A rank (dst and op are empty) or a pair of ranks. */
struct place {
    char comm_id[FT_RANKS_ID];
    char op[FT_RANKS_ID];
    uint32_t src, dst;
};

/* The first place is at the top: to add or to take one costs a few comparisons, so that an order is
 * made in slices too. */
struct heap {
    struct place *items;
    size_t count, size;
};

enum phase {
    PHASE_MEMBERS, /* to be put in order */
    PHASE_EDGES,
    PHASE_COMM, /* to be written */
    PHASE_RANKS,
    PHASE_PAIRS,
    PHASE_DONE,
};

struct ft_matrix {
    const struct ft_ranks *ranks;
    char *comm_id, *op; /* NULL: all */
    enum phase phase;
    uint32_t index;
    struct heap members, edges;
    char comm[FT_RANKS_ID]; /* that is being written */
    bool begun;             /* an item of the present list is written */
    size_t written;
};

static int order(const struct place *x, const struct place *y)
{
    int by = strcmp(x->comm_id, y->comm_id);

    if (by)
        return by;
    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    if (x->dst != y->dst)
        return x->dst < y->dst ? -1 : 1;
    return strcmp(x->op, y->op);
}

static int push(struct heap *h, const struct place *item)
{
    size_t at = h->count;

    if (h->count == h->size) {
        size_t size = h->size ? 2 * h->size : 256;
        struct place *grown = realloc(h->items, size * sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        h->items = grown;
        h->size = size;
    }
    for (h->count++; at > 0 && order(item, &h->items[(at - 1) / 2]) < 0; at = (at - 1) / 2)
        h->items[at] = h->items[(at - 1) / 2];
    h->items[at] = *item;
    return 0;
}

static struct place pop(struct heap *h)
{
    struct place top = h->items[0], last = h->items[--h->count];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child + 1 < h->count && order(&h->items[child + 1], &h->items[child]) < 0)
            child++;
        if (child >= h->count || order(&last, &h->items[child]) <= 0)
            break;
        h->items[at] = h->items[child];
        at = child;
    }
    h->items[at] = last;
    return top;
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

static bool is_wanted(const char *wanted, const char *is)
{
    return !wanted || strcmp(wanted, is) == 0;
}

static void note_member(struct ft_matrix *x, struct ft_writer *w)
{
    const struct ft_rank_member *m = ft_ranks_next_member(x->ranks, &x->index);
    struct place place = {.op = ""};

    if (!m) {
        x->phase = PHASE_EDGES;
        x->index = 0;
    } else if (is_wanted(x->comm_id, m->comm_id)) {
        memcpy(place.comm_id, m->comm_id, sizeof(place.comm_id));
        place.src = m->rank;
        w->failed |= push(&x->members, &place) < 0;
    }
}

static void note_edge(struct ft_matrix *x, struct ft_writer *w)
{
    const struct ft_rank_edge *e = ft_ranks_next_edge(x->ranks, &x->index);
    struct place place;

    if (!e) {
        x->phase = PHASE_COMM;
    } else if (is_wanted(x->comm_id, e->comm_id) && is_wanted(x->op, e->op)) {
        memcpy(place.comm_id, e->comm_id, sizeof(place.comm_id));
        memcpy(place.op, e->op, sizeof(place.op));
        place.src = e->src;
        place.dst = e->dst;
        w->failed |= push(&x->edges, &place) < 0;
    }
}

static void separate(struct ft_matrix *x, struct ft_writer *w)
{
    if (x->begun)
        ft_write_u8(w, ',');
    x->begun = true;
}

/* Begins with the next communicator. */
static void write_comm(struct ft_matrix *x, struct ft_writer *w)
{
    const struct place *top = x->members.items;
    const struct ft_rank_member *m;

    if (x->members.count == 0) {
        x->phase = PHASE_DONE;
        return;
    }
    m = ft_ranks_member(x->ranks, top->comm_id, top->src);
    if (!m) {
        pop(&x->members);
        return;
    }
    memcpy(x->comm, m->comm_id, sizeof(x->comm));
    if (x->written++)
        ft_write_u8(w, ',');
    ft_write_str(w, "{\"comm_id\":");
    ft_json_write_text(w, m->comm_id);
    ft_json_write_member(w, "name", m->name);
    ft_write_fmt(w, ",\"ranks\":%" PRIu32 ",\"members\":[", m->ranks);
    x->phase = PHASE_RANKS;
    x->begun = false;
}

static void write_next_member(struct ft_matrix *x, struct ft_writer *w)
{
    const struct ft_rank_member *m;
    struct place place;

    if (x->members.count == 0 || strcmp(x->members.items[0].comm_id, x->comm) != 0) {
        ft_write_str(w, "],\"edges\":[");
        x->phase = PHASE_PAIRS;
        x->begun = false;
        return;
    }
    place = pop(&x->members);
    m = ft_ranks_member(x->ranks, place.comm_id, place.src);
    if (!m)
        return;
    separate(x, w);
    write_member(w, m);
}

/* Pairs of communicators that nobody announced are passed over. */
static void write_next_edge(struct ft_matrix *x, struct ft_writer *w)
{
    int by = x->edges.count ? strcmp(x->edges.items[0].comm_id, x->comm) : 1;
    const struct ft_rank_edge *e;
    struct place place;

    if (by > 0) {
        ft_write_str(w, "]}");
        x->phase = PHASE_COMM;
        return;
    }
    place = pop(&x->edges);
    e = by == 0 ? ft_ranks_edge(x->ranks, place.comm_id, place.op, place.src, place.dst) : NULL;
    if (!e)
        return;
    separate(x, w);
    write_edge(w, e);
}

struct ft_matrix *ft_matrix_new(const struct ft_ranks *ranks, const char *comm_id, const char *op)
{
    struct ft_matrix *x = calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    x->ranks = ranks;
    x->comm_id = comm_id ? strdup(comm_id) : NULL;
    x->op = op ? strdup(op) : NULL;
    if (!x->comm_id == !comm_id && !x->op == !op)
        return x;
    ft_matrix_free(x);
    return NULL;
}

void ft_matrix_free(struct ft_matrix *x)
{
    if (!x)
        return;
    free(x->comm_id);
    free(x->op);
    free(x->members.items);
    free(x->edges.items);
    free(x);
}

bool ft_matrix_step(struct ft_matrix *x, struct ft_writer *w, uint32_t items)
{
    static void (*const steps[])(struct ft_matrix * x, struct ft_writer * w) = {
        [PHASE_MEMBERS] = note_member,   [PHASE_EDGES] = note_edge,
        [PHASE_COMM] = write_comm,       [PHASE_RANKS] = write_next_member,
        [PHASE_PAIRS] = write_next_edge,
    };

    for (; items && x->phase != PHASE_DONE && ft_writer_ok(w); items--)
        steps[x->phase](x, w);
    return x->phase == PHASE_DONE || !ft_writer_ok(w);
}

size_t ft_matrix_written(const struct ft_matrix *x)
{
    return x->written;
}

size_t ft_matrix_bytes(const struct ft_ranks *ranks)
{
    /* Lists grow by doubling. */
    return sizeof(struct ft_matrix) + 2 * ft_ranks_count(ranks) * sizeof(struct place);
}
