// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdlib.h>

#include "daemon/window/collisions.h"
#include "daemon/window/partial.h"
#include "lib/base/partition.h"

#define A_PIECE 1000 /* links, groups and elephants */
#define A_STEP  256  /* that are looked at */
/* A look is so much less than what a flow of a window's close takes. */
#define LOOKS_AN_ITEM 8

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

/* Links, groups and elephants have one numbering: `at` is the next. They are counted first, since
 * each record says how many there are. */
struct ft_partial_said {
    const struct ft_partial_origin *origin;
    uint32_t *partitions; /* of which it speaks in this window */
    size_t partition_count;
    const struct ft_loads *loads;
    const struct ft_join *join;
    struct ft_span span;
    struct ft_emitter emitter;
    uint32_t window, pieces, number;
    bool partial;
    bool counted, begun;
    size_t at, entries;
    struct piece piece;
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
static bool fill_said(const struct ft_partial_said *w, uint32_t port, Fabrictrace__PartialLink *out)
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

static void begin_piece(struct ft_partial_said *w)
{
    const struct ft_loads *l = w->loads;
    Fabrictrace__Partial *m = &w->piece.message;

    fabrictrace__partial__init(m);
    w->piece.count = 0;
    w->begun = true;
    m->has_window_start_ms = m->has_window_end_ms = m->has_partitions_all = true;
    m->has_partial = m->has_piece = m->has_pieces = true;
    m->window_start_ms = (uint64_t)w->span.start_ms;
    m->window_end_ms = (uint64_t)w->span.end_ms;
    m->fabric = (char *)(uintptr_t)ft_topology_fabric(ft_join_topology(w->join));
    m->source = (char *)(uintptr_t)w->origin->source;
    m->partitions = w->partitions;
    m->n_partitions = w->partition_count;
    m->partitions_all = w->origin->partitions_all;
    m->partial = w->partial;
    m->piece = w->number;
    m->pieces = w->pieces;
    m->links = w->piece.link_list;
    m->groups = w->piece.group_list;
    m->elephants = w->piece.elephant_list;
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

static void end_piece(struct ft_partial_said *w)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;

    record.kind_case = FABRICTRACE__RECORD__KIND_PARTIAL;
    record.partial = &w->piece.message;
    w->emitter.record(w->emitter.arg, &record);
    w->number++;
    w->begun = false;
}

/* Room for one more. */
static void make_room(struct ft_partial_said *w)
{
    if (w->begun && w->piece.count == A_PIECE)
        end_piece(w);
    if (!w->begun)
        begin_piece(w);
    w->piece.count++;
}

static void write_link(struct ft_partial_said *w, uint32_t id)
{
    const struct ft_topology *t = ft_join_topology(w->join);
    const struct ft_port *port = ft_topology_port(t, id);
    const struct ft_load *load = &w->loads->link[id];
    Fabrictrace__PartialLink link = FABRICTRACE__PARTIAL_LINK__INIT;
    Fabrictrace__Partial *m = &w->piece.message;

    fill_said(w, id, &link);
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
    w->piece.links[m->n_links] = link;
    w->piece.link_list[m->n_links] = &w->piece.links[m->n_links];
    m->n_links++;
}

static void write_group(struct ft_partial_said *w, uint32_t id)
{
    const struct ft_topology *t = ft_join_topology(w->join);
    const struct ft_group *group = ft_topology_group(t, id);
    Fabrictrace__Partial *m = &w->piece.message;
    Fabrictrace__PartialGroup *out;

    make_room(w);
    out = &w->piece.groups[m->n_groups];
    fabrictrace__partial_group__init(out);
    out->switch_ = (char *)(uintptr_t)ft_topology_switch(t, group->switch_id)->name;
    out->group = (char *)(uintptr_t)group->name;
    out->has_unplaced = true;
    out->unplaced = w->loads->unplaced[id];
    w->piece.group_list[m->n_groups++] = out;
}

static void write_elephant(struct ft_partial_said *w, const struct ft_elephant *e)
{
    const struct ft_topology *t = ft_join_topology(w->join);
    const struct ft_port *port = ft_topology_port(t, e->port);
    Fabrictrace__Partial *m = &w->piece.message;
    Fabrictrace__PartialElephant *out;

    make_room(w);
    out = &w->piece.elephants[m->n_elephants];
    fabrictrace__partial_elephant__init(out);
    out->switch_ = (char *)(uintptr_t)ft_topology_switch(t, port->switch_id)->name;
    out->port = (char *)(uintptr_t)port->name;
    out->flow = &w->piece.victims[m->n_elephants];
    ft_collisions_victim(out->flow, &w->piece.flows[m->n_elephants], w->join, e,
                         w->span.end_ms - w->span.start_ms);
    w->piece.elephant_list[m->n_elephants++] = out;
}

/* Entries before those that are elephants. */
static size_t elephants_from(const struct ft_partial_said *w)
{
    const struct ft_topology *t = ft_join_topology(w->join);

    return (size_t)ft_topology_ports(t) + ft_topology_groups(t);
}

static size_t end_of(const struct ft_partial_said *w)
{
    return elephants_from(w) + w->loads->elephant_count;
}

/* Whether there is something to be said of the next entry. The window is sealed: later samples
 * change nothing of this. */
static bool says(const struct ft_partial_said *w)
{
    uint32_t ports = ft_topology_ports(ft_join_topology(w->join));
    Fabrictrace__PartialLink link = FABRICTRACE__PARTIAL_LINK__INIT;
    const struct ft_load *load;

    if (w->at >= elephants_from(w))
        return true;
    if (w->at >= ports)
        return w->loads->unplaced[w->at - ports] > 0;
    load = &w->loads->link[w->at];
    return fill_said(w, (uint32_t)w->at, &link) || load->bytes > 0 || load->flows > 0;
}

static void write_entry(struct ft_partial_said *w)
{
    uint32_t ports = ft_topology_ports(ft_join_topology(w->join));

    if (w->at < ports)
        write_link(w, (uint32_t)w->at);
    else if (w->at < elephants_from(w))
        write_group(w, (uint32_t)(w->at - ports));
    else
        write_elephant(w, &w->loads->elephants[w->at - elephants_from(w)]);
}

static uint32_t count_some(struct ft_partial_said *w)
{
    uint32_t looks = 0;

    for (; looks < A_STEP && w->at < elephants_from(w); looks++, w->at++)
        w->entries += says(w);
    if (w->at == elephants_from(w)) {
        w->entries += w->loads->elephant_count;
        w->pieces = w->entries ? (uint32_t)((w->entries - 1) / A_PIECE + 1) : 1;
        w->counted = true;
        w->at = 0;
    }
    return looks / LOOKS_AN_ITEM;
}

/* What it has of an elephant points to its flow, which may change between two steps: it is in the
 * record of the step. */
static uint32_t write_some(struct ft_partial_said *w)
{
    uint32_t looks = 0, written = 0;

    for (; looks < A_STEP && w->at < elephants_from(w); looks++, w->at++)
        if (says(w)) {
            write_entry(w);
            written++;
        }
    if (looks > 0)
        return looks / LOOKS_AN_ITEM + written;
    for (; w->at < end_of(w) && (!w->begun || w->piece.count < A_PIECE); w->at++, written++)
        write_entry(w);
    if (w->at < end_of(w)) {
        end_piece(w);
    } else {
        if (!w->begun)
            begin_piece(w);
        end_piece(w);
    }
    return written;
}

struct ft_partial_said *ft_partial_say(const struct ft_partial_origin *origin,
                                       const struct ft_loads *loads, const struct ft_join *join,
                                       uint32_t window, const struct ft_span *span, bool partial,
                                       const struct ft_emitter *emitter)
{
    struct ft_partial_said *w = malloc(sizeof(*w));

    if (!w)
        return NULL;
    w->origin = origin;
    w->partitions = calloc(origin->partition_count + 1, sizeof(*w->partitions));
    w->partition_count = 0;
    w->loads = loads;
    w->join = join;
    w->span = *span;
    w->emitter = *emitter;
    w->window = window;
    w->pieces = w->number = 0;
    w->partial = partial;
    w->counted = w->begun = false;
    w->at = w->entries = 0;
    for (size_t i = 0; w->partitions && i < origin->partition_count; i++)
        if (speaks(origin, i, span->end_ms))
            w->partitions[w->partition_count++] = origin->partitions[i];
    if (w->partition_count > 0)
        return w;
    ft_partial_said_free(w);
    return NULL;
}

bool ft_partial_say_step(struct ft_partial_said *w, uint32_t *work)
{
    *work = 1;
    if (!w)
        return false;
    if (!w->counted) {
        *work = count_some(w) + 1;
        return true;
    }
    *work = write_some(w) + 1;
    return w->at < end_of(w) || w->begun || w->number == 0;
}

void ft_partial_said_free(struct ft_partial_said *w)
{
    if (!w)
        return;
    free(w->partitions);
    free(w);
}
