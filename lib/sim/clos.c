// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/sim/clos.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/sim/colour.h"

/* An uplink and the name of its slot. */
struct slot {
    uint64_t key;
    uint32_t port;
};

struct ft_clos {
    const struct ft_topology *t;
    const bool *dead;
    uint32_t *pod;    /* by switch: leaves and spines that are connected without superspines */
    uint32_t *plane;  /* by switch: spines that are connected by superspines alone */
    uint32_t *rank;   /* by spine: among those of its pod and plane */
    uint32_t *domain; /* by switch: connected at all */
    /* Slots of switch s: slots[first[s]] up to first[s + 1], by key. */
    uint32_t *first;
    struct slot *slots;
};

static bool alive(const struct ft_clos *s, uint32_t port)
{
    return !s->dead || !s->dead[port];
}

static bool tier_is(const struct ft_clos *s, uint32_t id, enum ft_tier tier)
{
    return ft_topology_switch(s->t, id)->tier == tier;
}

static uint32_t root_of(uint32_t *parent, uint32_t at)
{
    while (parent[at] != at) {
        parent[at] = parent[parent[at]];
        at = parent[at];
    }
    return at;
}

/* The smaller id becomes the root, so that what is found does not depend on the order. */
static void join(uint32_t *parent, uint32_t a, uint32_t b)
{
    a = root_of(parent, a);
    b = root_of(parent, b);
    parent[a > b ? a : b] = a > b ? b : a;
}

/* Cables count whether they are dead or not: the fabric stays what it is. */
static void connect_switches(struct ft_clos *s)
{
    uint32_t switches = ft_topology_switches(s->t);

    for (uint32_t i = 0; i < switches; i++)
        s->pod[i] = s->plane[i] = s->domain[i] = i;
    for (uint32_t i = 0; i < ft_topology_ports(s->t); i++) {
        const struct ft_port *p = ft_topology_port(s->t, i);
        uint32_t a = p->switch_id, b;

        if (p->peer == FT_NONE || p->direction != FT_DIRECTION_UP)
            continue;
        b = ft_topology_port(s->t, p->peer)->switch_id;
        join(s->domain, a, b);
        join(tier_is(s, b, FT_TIER_SUPERSPINE) ? s->plane : s->pod, a, b);
    }
    for (uint32_t i = 0; i < switches; i++) {
        s->pod[i] = root_of(s->pod, i);
        s->plane[i] = root_of(s->plane, i);
        s->domain[i] = root_of(s->domain, i);
    }
}

struct position {
    uint32_t pod, plane, id;
};

static int compare_positions(const void *a, const void *b)
{
    const struct position *x = a, *y = b;

    if (x->pod != y->pod)
        return x->pod < y->pod ? -1 : 1;
    if (x->plane != y->plane)
        return x->plane < y->plane ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int rank_spines(struct ft_clos *s)
{
    uint32_t switches = ft_topology_switches(s->t), count = 0;
    struct position *positions = calloc((size_t)switches + 1, sizeof(*positions));

    if (!positions)
        return -ENOMEM;
    for (uint32_t i = 0; i < switches; i++)
        if (tier_is(s, i, FT_TIER_SPINE))
            positions[count++] = (struct position){s->pod[i], s->plane[i], i};
    qsort(positions, count, sizeof(*positions), compare_positions);
    for (uint32_t i = 1; i < count; i++)
        if (positions[i].pod == positions[i - 1].pod &&
            positions[i].plane == positions[i - 1].plane)
            s->rank[positions[i].id] = s->rank[positions[i - 1].id] + 1;
    free(positions);
    return 0;
}

static int compare_slots(const void *a, const void *b)
{
    const struct slot *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->port < y->port ? -1 : x->port > y->port;
}

/* Where an uplink leads: for a leaf the number of the spine in its pod, for a spine the superspine.
 * The lowest bits number parallel links later. */
static uint64_t key_of(const struct ft_clos *s, uint32_t peer)
{
    if (tier_is(s, peer, FT_TIER_SUPERSPINE))
        return (uint64_t)peer << 16;
    return (uint64_t)s->plane[peer] << 40 | (uint64_t)s->rank[peer] << 16;
}

/* The uplinks of a switch, sorted; parallel ones are numbered before the dead ones go, so that a
 * slot means the same as before. Returns how many. */
static uint32_t list_slots(const struct ft_clos *s, uint32_t id, struct slot *slots)
{
    const struct ft_switch *w = ft_topology_switch(s->t, id);
    uint32_t count = 0, kept = 0;
    uint64_t last = UINT64_MAX, number = 0;

    for (uint32_t i = 0; i < w->port_count; i++) {
        const struct ft_port *p = ft_topology_port(s->t, w->ports[i]);

        if (p->peer != FT_NONE && p->direction == FT_DIRECTION_UP)
            slots[count++] =
                (struct slot){key_of(s, ft_topology_port(s->t, p->peer)->switch_id), w->ports[i]};
    }
    qsort(slots, count, sizeof(*slots), compare_slots);
    for (uint32_t i = 0; i < count; i++) {
        struct slot slot = slots[i];

        number = slot.key == last ? number + 1 : 0;
        last = slot.key;
        slot.key |= number;
        if (alive(s, slot.port) && alive(s, ft_topology_port(s->t, slot.port)->peer))
            slots[kept++] = slot;
    }
    return kept;
}

struct ft_clos *ft_clos_new(const struct ft_topology *t, const bool *dead)
{
    struct ft_clos *s = calloc(1, sizeof(*s));
    size_t switches = (size_t)ft_topology_switches(t) + 1;

    if (!s)
        return NULL;
    s->t = t;
    s->dead = dead;
    s->pod = calloc(switches, sizeof(*s->pod));
    s->plane = calloc(switches, sizeof(*s->plane));
    s->rank = calloc(switches, sizeof(*s->rank));
    s->domain = calloc(switches, sizeof(*s->domain));
    s->first = calloc(switches + 1, sizeof(*s->first));
    s->slots = calloc((size_t)ft_topology_ports(t) + 1, sizeof(*s->slots));
    if (!s->pod || !s->plane || !s->rank || !s->domain || !s->first || !s->slots)
        goto fail;
    connect_switches(s);
    if (rank_spines(s) < 0)
        goto fail;
    for (uint32_t i = 0; i + 1 < switches; i++)
        s->first[i + 1] = s->first[i] + list_slots(s, i, s->slots + s->first[i]);
    return s;
fail:
    ft_clos_free(s);
    return NULL;
}

void ft_clos_free(struct ft_clos *s)
{
    if (!s)
        return;
    free(s->pod);
    free(s->plane);
    free(s->rank);
    free(s->domain);
    free(s->first);
    free(s->slots);
    free(s);
}

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* The colours of some flows: every slot that one of the switches at their ends has. Returns how
 * many; keys has room for all slots of the topology. */
static uint32_t keys_of(const struct ft_clos *s, const uint32_t *switches, uint32_t count,
                        uint64_t *keys)
{
    uint32_t n = 0, kept = 0;

    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = s->first[switches[i]]; k < s->first[switches[i] + 1]; k++)
            keys[n++] = s->slots[k].key;
    qsort(keys, n, sizeof(*keys), compare_keys);
    for (uint32_t i = 0; i < n; i++)
        if (kept == 0 || keys[kept - 1] != keys[i])
            keys[kept++] = keys[i];
    return kept;
}

/* The uplink of a switch in a slot, FT_NONE. */
static uint32_t port_in(const struct ft_clos *s, uint32_t id, uint64_t key)
{
    uint32_t low = s->first[id], high = s->first[id + 1];

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (s->slots[mid].key == key)
            return s->slots[mid].port;
        if (s->slots[mid].key < key)
            low = mid + 1;
        else
            high = mid;
    }
    return FT_NONE;
}

/* Flows that are coloured together, with the switches at their ends. */
struct batch {
    uint32_t *flows;
    struct ft_edge *edges; /* between numbers of switches */
    uint32_t count;
    uint32_t *number;   /* by switch: its number, FT_NONE */
    uint32_t *switches; /* by number */
    uint32_t switch_count;
    uint64_t *keys;
    uint32_t *colour;
};

static void batch_free(struct batch *b)
{
    free(b->flows);
    free(b->edges);
    free(b->number);
    free(b->switches);
    free(b->keys);
    free(b->colour);
}

static int batch_init(struct batch *b, const struct ft_topology *t, uint32_t flows)
{
    size_t switches = (size_t)ft_topology_switches(t) + 1;

    memset(b, 0, sizeof(*b));
    b->flows = calloc((size_t)flows + 1, sizeof(*b->flows));
    b->edges = calloc((size_t)flows + 1, sizeof(*b->edges));
    b->colour = calloc((size_t)flows + 1, sizeof(*b->colour));
    b->number = malloc(switches * sizeof(*b->number));
    b->switches = calloc(switches, sizeof(*b->switches));
    b->keys = calloc((size_t)ft_topology_ports(t) + 1, sizeof(*b->keys));
    if (!b->flows || !b->edges || !b->colour || !b->number || !b->switches || !b->keys) {
        batch_free(b);
        return -ENOMEM;
    }
    memset(b->number, 0xff, switches * sizeof(*b->number));
    return 0;
}

static void batch_empty(struct batch *b)
{
    for (uint32_t i = 0; i < b->switch_count; i++)
        b->number[b->switches[i]] = FT_NONE;
    b->count = b->switch_count = 0;
}

static uint32_t number_of(struct batch *b, uint32_t id)
{
    if (b->number[id] == FT_NONE) {
        b->switches[b->switch_count] = id;
        b->number[id] = b->switch_count++;
    }
    return b->number[id];
}

static void batch_add(struct batch *b, uint32_t flow, uint32_t from, uint32_t to)
{
    b->flows[b->count] = flow;
    b->edges[b->count].left = number_of(b, from);
    b->edges[b->count++].right = number_of(b, to);
}

/* Returns 0, and the keys of the colours; 1 when there is no slot at all. */
static int batch_colour(struct batch *b, const struct ft_clos *s)
{
    uint32_t colours = keys_of(s, b->switches, b->switch_count, b->keys);

    return colours ? ft_colour_edges(b->edges, b->count, b->switch_count, b->switch_count, colours,
                                     b->colour)
                   : 1;
}

static uint32_t peer_switch(const struct ft_clos *s, uint32_t port)
{
    return ft_topology_port(s->t, ft_topology_port(s->t, port)->peer)->switch_id;
}

/* A path from the uplinks of its two sides: one pair in two tiers, two in three. */
static void build_path(const struct ft_clos *s, const struct ft_hop *ends, const uint32_t *up,
                       const uint32_t *down, uint32_t pairs, struct ft_path *path)
{
    uint32_t n = 0, in = ends->in;

    for (uint32_t i = 0; i < pairs; i++) {
        path->hops[n++] = (struct ft_hop){in, up[i]};
        in = ft_topology_port(s->t, up[i])->peer;
    }
    for (uint32_t i = pairs; i-- > 0;) {
        path->hops[n++] = (struct ft_hop){in, ft_topology_port(s->t, down[i])->peer};
        in = down[i];
    }
    path->hops[n++] = (struct ft_hop){in, ends->out};
    path->hop_count = n;
}

/* Uplinks of the leaves at both ends, once their colour is known. */
struct pair {
    uint32_t up, down;
};

static int colour_spines(const struct ft_clos *s, const struct ft_hop *ends, struct batch *b,
                         const struct pair *pairs, struct ft_path *paths)
{
    int rc = batch_colour(b, s);

    for (uint32_t i = 0; rc == 0 && i < b->count; i++) {
        uint32_t f = b->flows[i];
        uint64_t key = b->keys[b->colour[i]];
        uint32_t up[2] = {pairs[f].up, port_in(s, peer_switch(s, pairs[f].up), key)};
        uint32_t down[2] = {pairs[f].down, port_in(s, peer_switch(s, pairs[f].down), key)};

        if (up[1] != FT_NONE && down[1] != FT_NONE)
            build_path(s, &ends[f], up, down, 2, &paths[f]);
    }
    batch_empty(b);
    return rc < 0 ? rc : 0;
}

/* What a flow's second colouring is together with: the spines of one number in their pods. */
struct group {
    uint64_t key;
    uint32_t flow;
    uint32_t order;
};

static int compare_groups(const void *a, const void *b)
{
    const struct group *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Flows whose leaves have their colour: done in two tiers, coloured again in three. */
static int finish(const struct ft_clos *s, const struct ft_hop *ends, struct group *groups,
                  uint32_t count, struct batch *b, const struct pair *pairs, struct ft_path *paths)
{
    int rc = 0;

    qsort(groups, count, sizeof(*groups), compare_groups);
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        uint32_t f = groups[i].flow;
        uint32_t from = peer_switch(s, pairs[f].up), to = peer_switch(s, pairs[f].down);

        if (from == to)
            build_path(s, &ends[f], &pairs[f].up, &pairs[f].down, 1, &paths[f]);
        else if (s->plane[from] == s->plane[to])
            batch_add(b, f, from, to);
        if (i + 1 == count || groups[i + 1].key != groups[i].key)
            rc = colour_spines(s, ends, b, pairs, paths);
    }
    return rc;
}

static int colour_leaves(const struct ft_clos *s, struct batch *b, struct pair *pairs,
                         struct group *groups, uint32_t *grouped)
{
    int rc = batch_colour(b, s);

    for (uint32_t i = 0; rc == 0 && i < b->count; i++) {
        uint32_t f = b->flows[i];
        uint64_t key = b->keys[b->colour[i]];

        pairs[f].up = port_in(s, b->switches[b->edges[i].left], key);
        pairs[f].down = port_in(s, b->switches[b->edges[i].right], key);
        if (pairs[f].up != FT_NONE && pairs[f].down != FT_NONE) {
            groups[*grouped] = (struct group){key >> 16, f, *grouped};
            ++*grouped;
        }
    }
    batch_empty(b);
    return rc < 0 ? rc : 0;
}

/* Each domain by itself: leaves of two planes of a fabric have different slots. */
static int colour_domains(const struct ft_clos *s, const struct ft_hop *ends, const uint32_t *order,
                          uint32_t count, struct batch *b, struct group *sorted, struct pair *pairs,
                          struct group *groups, struct ft_path *paths)
{
    uint32_t grouped = 0, n = 0;
    int rc = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t f = order[i];
        uint32_t from = ft_topology_port(s->t, ends[f].in)->switch_id;
        uint32_t to = ft_topology_port(s->t, ends[f].out)->switch_id;

        paths[f].hop_count = 0;
        if (from == to) {
            paths[f].hop_count = 1;
            paths[f].hops[0] = ends[f];
        } else if (tier_is(s, from, FT_TIER_LEAF) && tier_is(s, to, FT_TIER_LEAF) &&
                   s->domain[from] == s->domain[to]) {
            sorted[n] = (struct group){s->domain[from], f, n};
            n++;
        }
    }
    qsort(sorted, n, sizeof(*sorted), compare_groups);
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        uint32_t f = sorted[i].flow;

        batch_add(b, f, ft_topology_port(s->t, ends[f].in)->switch_id,
                  ft_topology_port(s->t, ends[f].out)->switch_id);
        if (i + 1 == n || sorted[i + 1].key != sorted[i].key)
            rc = colour_leaves(s, b, pairs, groups, &grouped);
    }
    return rc ? rc : finish(s, ends, groups, grouped, b, pairs, paths);
}

int ft_clos_colour(const struct ft_clos *s, const struct ft_hop *ends, const uint32_t *order,
                   uint32_t count, struct ft_path *paths)
{
    struct batch b;
    struct group *sorted = calloc((size_t)count + 1, sizeof(*sorted));
    struct group *groups = calloc((size_t)count + 1, sizeof(*groups));
    struct pair *pairs = calloc((size_t)count + 1, sizeof(*pairs));
    int rc = batch_init(&b, s->t, count);

    if (rc == 0 && (!sorted || !groups || !pairs)) {
        batch_free(&b);
        rc = -ENOMEM;
    } else if (rc == 0) {
        rc = colour_domains(s, ends, order, count, &b, sorted, pairs, groups, paths);
        batch_free(&b);
    }
    free(sorted);
    free(groups);
    free(pairs);
    return rc;
}
