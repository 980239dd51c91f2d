// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/window/partial.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define PIECES_MAX 4096
/* More come in no window; so many of all partitions add up without overflow. */
#define OBSERVATIONS_MAX (UINT64_C(1) << 50)

/* A record that was taken. */
struct part {
    TAILQ_ENTRY(part) next;
    Fabrictrace__Partial *message;
    size_t bytes;
};

TAILQ_HEAD(parts, part);

struct ft_partials {
    uint32_t all;
    size_t bytes, bytes_max;
    int64_t closed_ms; /* windows that start here and before are closed */
    struct parts parts;
    bool *seen; /* scratch, by partition */
    struct ft_partials_stats stats;
};

struct ft_partials *ft_partials_new(uint32_t partitions_all, size_t bytes_max)
{
    struct ft_partials *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->all = partitions_all;
    p->bytes_max = bytes_max;
    TAILQ_INIT(&p->parts);
    p->seen = calloc(partitions_all, sizeof(*p->seen));
    if (p->seen)
        return p;
    free(p);
    return NULL;
}

static void drop(struct ft_partials *p, struct part *part)
{
    TAILQ_REMOVE(&p->parts, part, next);
    p->bytes -= part->bytes;
    fabrictrace__partial__free_unpacked(part->message, NULL);
    free(part);
}

void ft_partials_free(struct ft_partials *p)
{
    if (!p)
        return;
    while (!TAILQ_EMPTY(&p->parts))
        drop(p, TAILQ_FIRST(&p->parts));
    free(p->seen);
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
            !is_amount(m->links[i]->bytes_rest) || !is_amount(m->links[i]->variance))
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

static bool overlap(const Fabrictrace__Partial *a, const Fabrictrace__Partial *b)
{
    size_t i = 0, k = 0;

    while (i < a->n_partitions && k < b->n_partitions) {
        if (a->partitions[i] == b->partitions[k])
            return true;
        if (a->partitions[i] < b->partitions[k])
            i++;
        else
            k++;
    }
    return false;
}

/* Pieces of one statement: of one daemon, of the same partitions, cut alike. */
static bool are_of_one(const Fabrictrace__Partial *a, const Fabrictrace__Partial *b)
{
    return strcmp(a->source, b->source) == 0 && a->pieces == b->pieces &&
           a->n_partitions == b->n_partitions &&
           memcmp(a->partitions, b->partitions, a->n_partitions * sizeof(*a->partitions)) == 0;
}

/* A flow is in one partition: of two daemons that speak of the same one, the first counts. */
static int compare_to_others(struct ft_partials *p, const Fabrictrace__Partial *m)
{
    const struct part *other;

    TAILQ_FOREACH(other, &p->parts, next)
    {
        const Fabrictrace__Partial *o = other->message;

        if (o->window_start_ms != m->window_start_ms)
            continue;
        if (are_of_one(o, m)) {
            if (o->piece != m->piece)
                continue;
            p->stats.duplicates++;
            return -EALREADY;
        }
        if (overlap(o, m)) {
            p->stats.overlapping++;
            return -EALREADY;
        }
    }
    return 0;
}

static int keep(struct ft_partials *p, const Fabrictrace__Partial *m)
{
    size_t bytes = fabrictrace__partial__get_packed_size(m);
    struct part *part = p->bytes + bytes <= p->bytes_max ? calloc(1, sizeof(*part)) : NULL;
    uint8_t *packed = part ? malloc(bytes ? bytes : 1) : NULL;

    if (packed) {
        fabrictrace__partial__pack(m, packed);
        part->message = fabrictrace__partial__unpack(NULL, bytes, packed);
    }
    free(packed);
    if (!part || !part->message) {
        free(part);
        p->stats.no_room++;
        return -ENOMEM;
    }
    part->bytes = bytes;
    p->bytes += bytes;
    p->stats.taken++;
    TAILQ_INSERT_TAIL(&p->parts, part, next);
    return 0;
}

int ft_partials_take(struct ft_partials *p, const Fabrictrace__Partial *m)
{
    int rc;

    if (!is_sound(p, m)) {
        p->stats.invalid++;
        return -EINVAL;
    }
    if ((int64_t)m->window_start_ms <= p->closed_ms) {
        p->stats.late++;
        return -ESTALE;
    }
    rc = compare_to_others(p, m);
    return rc ? rc : keep(p, m);
}

/* Whether all pieces of the statement that this is one of are there. */
static bool is_complete(const struct ft_partials *p, const Fabrictrace__Partial *m)
{
    const struct part *part;
    uint32_t pieces = 0;

    TAILQ_FOREACH(part, &p->parts, next)
    pieces += part->message->window_start_ms == m->window_start_ms && are_of_one(part->message, m);
    return pieces == m->pieces;
}

/* Marks in p->seen the partitions of which all was said. Returns how many. */
static uint32_t see(const struct ft_partials *p, int64_t window_start_ms)
{
    const struct part *part;
    uint32_t count = 0;

    memset(p->seen, 0, p->all * sizeof(*p->seen));
    TAILQ_FOREACH(part, &p->parts, next)
    {
        const Fabrictrace__Partial *m = part->message;

        if ((int64_t)m->window_start_ms != window_start_ms || m->piece != 0 || !is_complete(p, m))
            continue;
        for (size_t i = 0; i < m->n_partitions; i++) {
            count += !p->seen[m->partitions[i]];
            p->seen[m->partitions[i]] = true;
        }
    }
    return count;
}

bool ft_partials_complete(const struct ft_partials *p, int64_t window_start_ms)
{
    return see(p, window_start_ms) == p->all;
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
    const struct ft_port_said said = {.samples = in->samples,
                                      .ce_samples = in->ce_samples,
                                      .last_ms = (int64_t)in->last_ms,
                                      .has_queue = in->has_queue_max_bytes,
                                      .queue_max_bytes = in->queue_max_bytes,
                                      .has_transit = in->has_transit_max_ns,
                                      .transit_max_ns = in->transit_max_ns};
    struct ft_load *load;

    if (port == FT_NONE)
        return;
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

static void list_partitions(const struct ft_partials *p, bool seen, struct ft_partition_list *out)
{
    out->count = 0;
    for (uint32_t i = 0; i < p->all && i < FT_PARTITIONS_MAX; i++)
        if (p->seen[i] == seen)
            out->item[out->count++] = i;
}

/* Unknown is not the same as none. */
static void mark_unaccounted(struct ft_partials *p, const Fabrictrace__Partial *m)
{
    if (m->piece == 0 && !is_accounted(m))
        for (size_t i = 0; i < m->n_partitions; i++)
            p->seen[m->partitions[i]] = true;
}

bool ft_partials_add(struct ft_partials *p, int64_t window_start_ms, uint32_t window,
                     struct ft_loads *loads, struct ft_join *join,
                     struct ft_partition_list *missing, struct ft_partition_list *unaccounted)
{
    const struct part *part;
    bool partial = false;

    if (see(p, window_start_ms) < p->all)
        p->stats.windows_missing++;
    list_partitions(p, false, missing);
    memset(p->seen, 0, p->all * sizeof(*p->seen));
    TAILQ_FOREACH(part, &p->parts, next)
    {
        if ((int64_t)part->message->window_start_ms != window_start_ms ||
            !is_complete(p, part->message))
            continue;
        partial |= part->message->partial;
        add_message(loads, join, window, part->message);
        mark_unaccounted(p, part->message);
    }
    list_partitions(p, true, unaccounted);
    return partial || missing->count;
}

void ft_partials_close(struct ft_partials *p, int64_t window_start_ms)
{
    struct part *part, *after;

    for (part = TAILQ_FIRST(&p->parts); part; part = after) {
        after = TAILQ_NEXT(part, next);
        if ((int64_t)part->message->window_start_ms <= window_start_ms)
            drop(p, part);
    }
    if (window_start_ms > p->closed_ms)
        p->closed_ms = window_start_ms;
}

void ft_partials_restart(struct ft_partials *p, int64_t window_start_ms)
{
    while (!TAILQ_EMPTY(&p->parts))
        drop(p, TAILQ_FIRST(&p->parts));
    p->closed_ms = window_start_ms - 1;
}

const struct ft_partials_stats *ft_partials_stats(const struct ft_partials *p)
{
    return &p->stats;
}
