// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/window/partial.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/base/table.h"

#define PIECES_MAX 4096
/* The least that a record takes is more than this. */
#define PART_BYTES 16
/* Of windows that are over, for each record that is taken: frees them as fast as others come. */
#define FREED_A_RECORD 2
/* More come in no window; so many of all partitions add up without overflow. */
#define OBSERVATIONS_MAX (UINT64_C(1) << 50)
#define SAMPLES_MAX      (UINT64_C(1) << 50) /* of a link */

/* What one daemon says of its partitions in a window, in pieces. */
struct statement {
    TAILQ_ENTRY(statement) next;
    const Fabrictrace__Partial *first; /* the piece that came first */
    uint32_t pieces, have;
    bool added;       /* all pieces were there when the window's sum was begun */
    uint64_t piece[]; /* a bit each: it is there */
};

TAILQ_HEAD(statements, statement);

/* A record that was taken. */
struct part {
    TAILQ_ENTRY(part) next;
    struct statement *statement;
    Fabrictrace__Partial *message;
    size_t bytes;
};

TAILQ_HEAD(parts, part);

/* Records as they came. No two statements have a partition in common. */
struct window {
    int64_t start_ms;
    struct parts parts;
    struct statements statements;
};

struct ft_partials {
    uint32_t all;
    size_t bytes, bytes_max;
    int64_t closed_ms; /* windows that start here and before are closed */
    struct ft_table *windows;
    struct parts over; /* of windows that are closed, to be freed */
    bool *seen;        /* scratch, by partition */
    /* A sum that is begun. */
    const struct part *next;
    bool partial;
    bool *unaccounted; /* by partition */
    struct ft_partials_stats stats;
};

struct ft_partials *ft_partials_new(uint32_t partitions_all, size_t bytes_max)
{
    struct ft_partials *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->all = partitions_all;
    p->bytes_max = bytes_max;
    TAILQ_INIT(&p->over);
    p->windows = ft_table_new(sizeof(struct window), sizeof(int64_t), bytes_max / PART_BYTES, 0);
    p->seen = calloc(partitions_all, sizeof(*p->seen));
    p->unaccounted = calloc(partitions_all, sizeof(*p->unaccounted));
    if (p->windows && p->seen && p->unaccounted)
        return p;
    ft_partials_free(p);
    return NULL;
}

/* The next record of a window that is over. */
static void free_one(struct ft_partials *p)
{
    struct part *part = TAILQ_FIRST(&p->over);

    TAILQ_REMOVE(&p->over, part, next);
    p->bytes -= part->bytes;
    fabrictrace__partial__free_unpacked(part->message, NULL);
    free(part);
}

static void forget(struct ft_partials *p, struct window *w)
{
    struct statement *s;

    p->next = NULL;
    while ((s = TAILQ_FIRST(&w->statements))) {
        TAILQ_REMOVE(&w->statements, s, next);
        free(s);
    }
    TAILQ_CONCAT(&p->over, &w->parts, next);
    ft_table_remove(p->windows, w);
}

/* Windows that start here and before. */
static void forget_until(struct ft_partials *p, int64_t start_ms)
{
    struct window *w;
    uint32_t index = 0;

    while ((w = ft_table_next(p->windows, &index)))
        if (w->start_ms <= start_ms)
            forget(p, w);
}

void ft_partials_free(struct ft_partials *p)
{
    if (!p)
        return;
    if (p->windows)
        forget_until(p, INT64_MAX);
    while (!TAILQ_EMPTY(&p->over))
        free_one(p);
    ft_table_free(p->windows);
    free(p->seen);
    free(p->unaccounted);
    free(p);
}

static bool is_amount(double value)
{
    return isfinite(value) && value >= 0;
}

static bool has_sums(const Fabrictrace__Partial *m)
{
    if (m->placed > m->flows || m->observations > OBSERVATIONS_MAX ||
        m->observations_taken > m->observations)
        return false;
    for (size_t i = 0; i < m->n_links; i++)
        if (!m->links[i]->switch_ || !m->links[i]->port || !is_amount(m->links[i]->flows_rest) ||
            !is_amount(m->links[i]->bytes_rest) || !is_amount(m->links[i]->variance) ||
            m->links[i]->samples > SAMPLES_MAX || m->links[i]->ce_samples > m->links[i]->samples)
            return false;
    for (size_t i = 0; i < m->n_groups; i++)
        if (!m->groups[i]->switch_ || !m->groups[i]->group)
            return false;
    for (size_t i = 0; i < m->n_elephants; i++)
        if (!m->elephants[i]->switch_ || !m->elephants[i]->port || !m->elephants[i]->flow)
            return false;
    return true;
}

static bool is_sound(const struct ft_partials *p, const Fabrictrace__Partial *m)
{
    if (!m->source || !m->has_window_start_ms || m->window_start_ms >= INT64_MAX / 2 ||
        m->partitions_all != p->all || m->n_partitions == 0 || m->pieces == 0 ||
        m->pieces > PIECES_MAX || m->piece >= m->pieces)
        return false;
    for (size_t i = 0; i < m->n_partitions; i++)
        if (m->partitions[i] >= p->all || (i && m->partitions[i] <= m->partitions[i - 1]))
            return false;
    return has_sums(m);
}

/* Pieces of one statement: of one daemon, of the same partitions, cut alike. */
static bool is_of(const struct statement *s, const Fabrictrace__Partial *m)
{
    const Fabrictrace__Partial *first = s->first;

    return s->pieces == m->pieces && strcmp(first->source, m->source) == 0 &&
           first->n_partitions == m->n_partitions &&
           memcmp(first->partitions, m->partitions, m->n_partitions * sizeof(*m->partitions)) == 0;
}

static void mark(struct ft_partials *p, const Fabrictrace__Partial *m)
{
    for (size_t i = 0; i < m->n_partitions; i++)
        p->seen[m->partitions[i]] = true;
}

/* Whether it is of a partition that is marked. */
static bool is_marked(const struct ft_partials *p, const Fabrictrace__Partial *m)
{
    for (size_t i = 0; i < m->n_partitions; i++)
        if (p->seen[m->partitions[i]])
            return true;
    return false;
}

static void unmark_all(struct ft_partials *p)
{
    memset(p->seen, 0, p->all * sizeof(*p->seen));
}

static bool has_piece(const struct statement *s, uint32_t piece)
{
    return s->piece[piece / 64] >> piece % 64 & 1;
}

/* A flow is in one partition: of two daemons that speak of the same one, the first counts. 0: the
 * statement that this is a further piece of, NULL where it is the first. */
static int compare_to_others(struct ft_partials *p, const struct window *w,
                             const Fabrictrace__Partial *m, struct statement **of)
{
    struct statement *s;

    *of = NULL;
    TAILQ_FOREACH(s, &w->statements, next)
    if (is_of(s, m))
        break;
    if (s) {
        p->stats.duplicates += has_piece(s, m->piece);
        *of = s;
        return has_piece(s, m->piece) ? -EALREADY : 0;
    }
    unmark_all(p);
    mark(p, m);
    TAILQ_FOREACH(s, &w->statements, next)
    if (is_marked(p, s->first)) {
        p->stats.overlapping++;
        return -EALREADY;
    }
    return 0;
}

static struct part *copy(const Fabrictrace__Partial *m, size_t bytes)
{
    struct part *part = calloc(1, sizeof(*part));
    uint8_t *packed = part ? malloc(bytes ? bytes : 1) : NULL;

    if (packed) {
        fabrictrace__partial__pack(m, packed);
        part->message = fabrictrace__partial__unpack(NULL, bytes, packed);
    }
    free(packed);
    if (part && part->message)
        return part;
    free(part);
    return NULL;
}

static struct statement *begin_statement(struct window *w, uint32_t pieces,
                                         const Fabrictrace__Partial *first)
{
    struct statement *s = calloc(1, sizeof(*s) + (pieces + 63) / 64 * sizeof(s->piece[0]));

    if (!s)
        return NULL;
    s->first = first;
    s->pieces = pieces;
    TAILQ_INSERT_TAIL(&w->statements, s, next);
    return s;
}

static int keep(struct ft_partials *p, struct window *w, struct statement *of,
                const Fabrictrace__Partial *m)
{
    size_t bytes = fabrictrace__partial__get_packed_size(m);
    struct part *part;

    while (p->bytes + bytes > p->bytes_max && !TAILQ_EMPTY(&p->over))
        free_one(p);
    part = p->bytes + bytes <= p->bytes_max ? copy(m, bytes) : NULL;
    if (part && !of)
        of = begin_statement(w, m->pieces, part->message);
    if (!part || !of) {
        if (part)
            fabrictrace__partial__free_unpacked(part->message, NULL);
        free(part);
        p->stats.no_room++;
        return -ENOMEM;
    }
    part->bytes = bytes;
    part->statement = of;
    of->have++;
    of->piece[m->piece / 64] |= UINT64_C(1) << m->piece % 64;
    p->bytes += bytes;
    p->stats.taken++;
    TAILQ_INSERT_TAIL(&w->parts, part, next);
    return 0;
}

static int take(struct ft_partials *p, const Fabrictrace__Partial *m)
{
    const int64_t start_ms = (int64_t)m->window_start_ms;
    struct statement *of;
    struct window *w;
    bool fresh;
    int rc;

    w = ft_table_insert(p->windows, &start_ms, &fresh);
    if (!w) {
        p->stats.no_room++;
        return -ENOMEM;
    }
    if (fresh) {
        TAILQ_INIT(&w->parts);
        TAILQ_INIT(&w->statements);
    }
    rc = compare_to_others(p, w, m, &of);
    if (rc == 0)
        rc = keep(p, w, of, m);
    if (TAILQ_EMPTY(&w->parts))
        ft_table_remove(p->windows, w);
    return rc;
}

int ft_partials_take(struct ft_partials *p, const Fabrictrace__Partial *m)
{
    for (int i = 0; i < FREED_A_RECORD && !TAILQ_EMPTY(&p->over); i++)
        free_one(p);
    if (!is_sound(p, m)) {
        p->stats.invalid++;
        return -EINVAL;
    }
    if ((int64_t)m->window_start_ms <= p->closed_ms) {
        p->stats.late++;
        return -ESTALE;
    }
    return take(p, m);
}

/* Whether all pieces are there. */
static bool is_complete(const struct statement *s)
{
    return s->have == s->pieces;
}

bool ft_partials_complete(const struct ft_partials *p, int64_t window_start_ms)
{
    const struct window *w = ft_table_find(p->windows, &window_start_ms);
    const struct statement *s;
    size_t count = 0;

    if (w)
        TAILQ_FOREACH(s, &w->statements, next)
    count += is_complete(s) ? s->first->n_partitions : 0;
    return count == p->all;
}

static uint32_t find_port(const struct ft_topology *t, const char *switch_name, const char *port)
{
    uint32_t id = ft_topology_find_switch(t, switch_name);

    return id == FT_NONE ? FT_NONE : ft_topology_find_port(t, id, port);
}

static void add_link(struct ft_loads *loads, struct ft_join *join, uint32_t window,
                     const Fabrictrace__PartialLink *in)
{
    uint32_t port = find_port(ft_join_topology(join), in->switch_, in->port);
    struct ft_port_said said = {.samples = in->samples,
                                .ce_samples = in->ce_samples,
                                .last_ms = (int64_t)in->last_ms,
                                .has_queue = in->has_queue_max_bytes,
                                .queue_max_bytes = in->queue_max_bytes,
                                .has_transit = in->has_transit_max_ns,
                                .transit_max_ns = in->transit_max_ns};
    struct ft_load *load;

    if (port == FT_NONE)
        return;
    /* As of samples: what is after the next window is ahead. */
    if (ft_join_window_of(join, said.last_ms) > window + 1)
        said.last_ms = 0;
    load = &loads->link[port];
    load->flows += (double)in->flows + in->flows_rest;
    load->certain += in->certain;
    load->narrow += in->narrow;
    load->bytes += (double)in->bytes + in->bytes_rest;
    load->variance += in->variance;
    load->elephants += in->elephants;
    if (in->samples || in->has_last_ms)
        ft_join_said(join, port, window, &said);
}

static void add_groups(struct ft_loads *loads, const struct ft_topology *t,
                       const Fabrictrace__Partial *m)
{
    for (size_t i = 0; i < m->n_groups; i++) {
        uint32_t id = ft_topology_find_switch(t, m->groups[i]->switch_);

        for (int d = FT_DIRECTION_UP; id != FT_NONE && d <= FT_DIRECTION_DOWN; d++) {
            uint32_t group = ft_topology_find_group(t, id, (enum ft_direction)d);

            if (group != FT_NONE &&
                strcmp(ft_topology_group(t, group)->name, m->groups[i]->group) == 0)
                loads->unplaced[group] += m->groups[i]->unplaced;
        }
    }
}

/* Whether it says how many observations came; the pieces after the first do not. */
static bool is_accounted(const Fabrictrace__Partial *m)
{
    return m->piece == 0 && m->has_observations && m->has_observations_taken;
}

static void add_message(struct ft_loads *loads, struct ft_join *join, uint32_t window,
                        const Fabrictrace__Partial *m)
{
    const struct ft_topology *t = ft_join_topology(join);

    for (size_t i = 0; i < m->n_links; i++)
        add_link(loads, join, window, m->links[i]);
    add_groups(loads, t, m);
    for (size_t i = 0; i < m->n_elephants; i++) {
        uint32_t port = find_port(t, m->elephants[i]->switch_, m->elephants[i]->port);

        if (port != FT_NONE && ft_topology_port(t, port)->group != FT_NONE)
            ft_loads_keep_elephant(loads, port, m->elephants[i]->flow);
    }
    loads->flows += m->flows;
    loads->placed += m->placed;
    loads->bytes += (double)m->bytes;
    loads->spine.flows += m->spine_flows;
    loads->spine.bytes += (double)m->spine_bytes;
    loads->rail.flows += m->rail_flows;
    loads->rail.bytes += (double)m->rail_bytes;
    if (is_accounted(m)) {
        loads->observations.came += m->observations;
        loads->observations.taken += m->observations_taken;
    }
}

static void list_partitions(const struct ft_partials *p, const bool *of, bool value,
                            struct ft_partition_list *out)
{
    out->count = 0;
    for (uint32_t i = 0; i < p->all && i < FT_PARTITIONS_MAX; i++)
        if (of[i] == value)
            out->item[out->count++] = i;
}

/* Unknown is not the same as none. */
static void mark_unaccounted(struct ft_partials *p, const Fabrictrace__Partial *m)
{
    if (m->piece == 0 && !is_accounted(m))
        for (size_t i = 0; i < m->n_partitions; i++)
            p->unaccounted[m->partitions[i]] = true;
}

void ft_partials_begin(struct ft_partials *p, int64_t window_start_ms,
                       struct ft_partition_list *missing)
{
    const struct window *w = ft_table_find(p->windows, &window_start_ms);
    struct statement *s;

    unmark_all(p);
    memset(p->unaccounted, 0, p->all * sizeof(*p->unaccounted));
    if (w) {
        TAILQ_FOREACH(s, &w->statements, next)
        {
            s->added = is_complete(s);
            if (s->added)
                mark(p, s->first);
        }
    }
    list_partitions(p, p->seen, false, missing);
    p->stats.windows_missing += missing->count > 0;
    p->partial = missing->count > 0;
    p->next = w ? TAILQ_FIRST(&w->parts) : NULL;
}

bool ft_partials_step(struct ft_partials *p, uint32_t window, struct ft_loads *loads,
                      struct ft_join *join, uint32_t *work)
{
    const struct part *part = p->next;
    const Fabrictrace__Partial *m;

    *work = 1;
    if (!part)
        return false;
    p->next = TAILQ_NEXT(part, next);
    if (!part->statement->added)
        return true;
    m = part->message;
    *work += (uint32_t)(m->n_links + m->n_groups + m->n_elephants);
    p->partial |= m->partial;
    add_message(loads, join, window, m);
    mark_unaccounted(p, m);
    return true;
}

bool ft_partials_end(struct ft_partials *p, struct ft_partition_list *unaccounted)
{
    list_partitions(p, p->unaccounted, true, unaccounted);
    return p->partial;
}

void ft_partials_close(struct ft_partials *p, int64_t window_start_ms)
{
    forget_until(p, window_start_ms);
    if (window_start_ms > p->closed_ms)
        p->closed_ms = window_start_ms;
}

void ft_partials_restart(struct ft_partials *p, int64_t window_start_ms)
{
    forget_until(p, INT64_MAX);
    p->closed_ms = window_start_ms - 1;
}

const struct ft_partials_stats *ft_partials_stats(const struct ft_partials *p)
{
    return &p->stats;
}
