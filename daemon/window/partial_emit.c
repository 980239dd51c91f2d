// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdlib.h>

#include "daemon/window/collisions.h"
#include "daemon/window/partial.h"
#include "lib/base/partition.h"

#define A_PIECE 1000 /* links, groups and elephants */

/* A record that fills, and what it points to. */
struct piece {
    Fabrictrace__Partial message;
    size_t count;
    Fabrictrace__PartialLink links[A_PIECE], *link_list[A_PIECE];
    Fabrictrace__PartialGroup groups[A_PIECE], *group_list[A_PIECE];
    Fabrictrace__PartialElephant elephants[A_PIECE], *elephant_list[A_PIECE];
    Fabrictrace__Victim victims[A_PIECE];
    Fabrictrace__Flow flows[A_PIECE];
};

struct writer {
    const struct ft_partial_origin *origin;
    uint32_t *partitions; /* of which it speaks in this window */
    size_t partition_count;
    const struct ft_loads *loads;
    const struct ft_join *join;
    const struct ft_span *span;
    const struct ft_emitter *emitter; /* NULL: the pieces are counted alone */
    uint32_t window, pieces, number;
    bool partial;
    struct piece *piece;
};

static bool speaks(const struct ft_partial_origin *origin, size_t index, int64_t end_ms)
{
    return end_ms == INT64_MAX || !origin->since_ms ||
           origin->since_ms[index] < end_ms + origin->grace_ms;
}

bool ft_partial_owns(const struct ft_partial_origin *origin, const struct ft_tuple *tuple,
                     int64_t end_ms)
{
    uint32_t partition;
    size_t low = 0, high;

    if (!origin)
        return true;
    partition = ft_partition_of_flow(tuple, origin->partitions_all);
    high = origin->partition_count;
    while (low < high) {
        size_t middle = (low + high) / 2;

        if (origin->partitions[middle] < partition)
            low = middle + 1;
        else
            high = middle;
    }
    return low < origin->partition_count && origin->partitions[low] == partition &&
           speaks(origin, low, end_ms);
}

static bool is_of(uint32_t newest, uint32_t number)
{
    return newest >= number && newest <= number + 1;
}

/* What samples said of the port. False: nothing, in this window. */
static bool fill_said(const struct writer *w, uint32_t port, Fabrictrace__PartialLink *out)
{
    const struct ft_port_marks *marks = ft_join_marks(w->join, port);
    const struct ft_port_depths *depths = ft_join_depths(w->join, port);
    unsigned slot = w->window & 1;

    out->has_last_ms = marks->last_ms > 0;
    out->last_ms = (uint64_t)marks->last_ms;
    if (is_of(marks->window, w->window) && marks->samples[slot]) {
        out->has_samples = out->has_ce_samples = true;
        out->samples = marks->samples[slot];
        out->ce_samples = marks->ce_samples[slot];
    }
    if (is_of(depths->window, w->window)) {
        out->has_queue_max_bytes = depths->has_queue[slot];
        out->queue_max_bytes = depths->queue_max_bytes[slot];
        out->has_transit_max_ns = depths->has_transit[slot];
        out->transit_max_ns = depths->transit_max_ns[slot];
    }
    return out->samples || out->has_queue_max_bytes || out->has_transit_max_ns;
}

static void begin_piece(struct writer *w)
{
    const struct ft_loads *l = w->loads;
    Fabrictrace__Partial *m = &w->piece->message;

    fabrictrace__partial__init(m);
    w->piece->count = 0;
    m->has_window_start_ms = m->has_window_end_ms = m->has_partitions_all = true;
    m->has_partial = m->has_piece = m->has_pieces = true;
    m->window_start_ms = (uint64_t)w->span->start_ms;
    m->window_end_ms = (uint64_t)w->span->end_ms;
    m->fabric = (char *)(uintptr_t)ft_topology_fabric(ft_join_topology(w->join));
    m->source = (char *)(uintptr_t)w->origin->source;
    m->partitions = w->partitions;
    m->n_partitions = w->partition_count;
    m->partitions_all = w->origin->partitions_all;
    m->partial = w->partial;
    m->piece = w->number;
    m->pieces = w->pieces;
    m->links = w->piece->link_list;
    m->groups = w->piece->group_list;
    m->elephants = w->piece->elephant_list;
    if (w->number > 0)
        return;
    m->has_flows = m->has_placed = m->has_bytes = m->has_spine_flows = m->has_spine_bytes = true;
    m->has_rail_flows = m->has_rail_bytes = true;
    m->has_observations = m->has_observations_taken = true;
    m->flows = l->flows;
    m->placed = l->placed;
    m->bytes = (uint64_t)l->bytes;
    m->spine_flows = l->spine.flows;
    m->spine_bytes = (uint64_t)l->spine.bytes;
    m->rail_flows = l->rail.flows;
    m->rail_bytes = (uint64_t)l->rail.bytes;
    m->observations = l->observations.came;
    m->observations_taken = l->observations.taken;
}

static void end_piece(struct writer *w)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;

    record.kind_case = FABRICTRACE__RECORD__KIND_PARTIAL;
    record.partial = &w->piece->message;
    if (w->emitter)
        w->emitter->record(w->emitter->arg, &record);
    w->number++;
}

/* Room for one more. */
static void make_room(struct writer *w)
{
    if (w->piece->count == A_PIECE) {
        end_piece(w);
        begin_piece(w);
    }
    w->piece->count++;
}

static void write_link(struct writer *w, uint32_t id)
{
    const struct ft_topology *t = ft_join_topology(w->join);
    const struct ft_port *port = ft_topology_port(t, id);
    const struct ft_load *load = &w->loads->link[id];
    Fabrictrace__PartialLink link = FABRICTRACE__PARTIAL_LINK__INIT;
    Fabrictrace__Partial *m = &w->piece->message;
    bool said = fill_said(w, id, &link);

    if (!said && load->bytes <= 0 && load->flows <= 0)
        return;
    make_room(w);
    link.switch_ = (char *)(uintptr_t)ft_topology_switch(t, port->switch_id)->name;
    link.port = (char *)(uintptr_t)port->name;
    link.has_flows = link.has_certain = link.has_bytes = link.has_variance = true;
    link.has_elephants = true;
    link.flows = (uint64_t)load->flows;
    link.flows_rest = load->flows - (double)link.flows;
    link.has_flows_rest = link.flows_rest > 0;
    link.certain = load->certain;
    link.has_narrow = load->narrow > 0;
    link.narrow = load->narrow;
    link.bytes = (uint64_t)load->bytes;
    link.bytes_rest = load->bytes - (double)link.bytes;
    link.has_bytes_rest = link.bytes_rest > 0;
    link.variance = load->variance;
    link.elephants = load->elephants;
    w->piece->links[m->n_links] = link;
    w->piece->link_list[m->n_links] = &w->piece->links[m->n_links];
    m->n_links++;
}

static void write_group(struct writer *w, uint32_t id)
{
    const struct ft_topology *t = ft_join_topology(w->join);
    const struct ft_group *group = ft_topology_group(t, id);
    Fabrictrace__Partial *m = &w->piece->message;
    Fabrictrace__PartialGroup *out;

    if (w->loads->unplaced[id] == 0)
        return;
    make_room(w);
    out = &w->piece->groups[m->n_groups];
    fabrictrace__partial_group__init(out);
    out->switch_ = (char *)(uintptr_t)ft_topology_switch(t, group->switch_id)->name;
    out->group = (char *)(uintptr_t)group->name;
    out->has_unplaced = true;
    out->unplaced = w->loads->unplaced[id];
    w->piece->group_list[m->n_groups++] = out;
}

static void write_elephant(struct writer *w, const struct ft_elephant *e)
{
    const struct ft_topology *t = ft_join_topology(w->join);
    const struct ft_port *port = ft_topology_port(t, e->port);
    Fabrictrace__Partial *m = &w->piece->message;
    Fabrictrace__PartialElephant *out;

    make_room(w);
    out = &w->piece->elephants[m->n_elephants];
    fabrictrace__partial_elephant__init(out);
    out->switch_ = (char *)(uintptr_t)ft_topology_switch(t, port->switch_id)->name;
    out->port = (char *)(uintptr_t)port->name;
    out->flow = &w->piece->victims[m->n_elephants];
    ft_collisions_victim(out->flow, &w->piece->flows[m->n_elephants], w->join, e,
                         w->span->end_ms - w->span->start_ms);
    w->piece->elephant_list[m->n_elephants++] = out;
}

static void write_all(struct writer *w)
{
    const struct ft_topology *t = ft_join_topology(w->join);

    w->number = 0;
    begin_piece(w);
    for (uint32_t i = 0; i < ft_topology_ports(t); i++)
        write_link(w, i);
    for (uint32_t i = 0; i < ft_topology_groups(t); i++)
        write_group(w, i);
    for (size_t i = 0; i < w->loads->elephant_count; i++)
        write_elephant(w, &w->loads->elephants[i]);
    end_piece(w);
}

void ft_partial_emit(const struct ft_partial_origin *origin, const struct ft_loads *loads,
                     const struct ft_join *join, uint32_t window, const struct ft_span *span,
                     bool partial, const struct ft_emitter *emitter)
{
    struct writer w = {.origin = origin,
                       .loads = loads,
                       .join = join,
                       .span = span,
                       .window = window,
                       .partial = partial,
                       .partitions = calloc(origin->partition_count + 1, sizeof(*w.partitions)),
                       .piece = malloc(sizeof(*w.piece))};

    for (size_t i = 0; w.partitions && i < origin->partition_count; i++)
        if (speaks(origin, i, span->end_ms))
            w.partitions[w.partition_count++] = origin->partitions[i];
    /* Without memory the window is one that this daemon says nothing of. */
    if (w.piece && w.partition_count > 0) {
        write_all(&w);
        w.pieces = w.number;
        w.emitter = emitter;
        write_all(&w);
    }
    free(w.partitions);
    free(w.piece);
}
