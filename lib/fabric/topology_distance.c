// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fabric/topology_impl.h"

/* Of a search, in the time of one look-up. */
#define NEIGHBOURS_A_LOOK 256

/* One breadth-first search backwards from a destination over (switch, phase): a packet is in the
 * up phase until its first link down. */
struct search {
    const struct ft_topology *t;
    uint8_t *down;
    uint8_t *valley;
    uint32_t *queue; /* switch * 2 + (1 in the up phase) */
    size_t head, tail;
};

static void reach_up(struct search *s, uint32_t at, uint8_t distance)
{
    if (s->valley[at] != FT_UNREACHABLE)
        return;
    s->valley[at] = distance;
    s->queue[s->tail++] = at * 2 + 1;
}

static void reach_down(struct search *s, uint32_t at, uint8_t distance)
{
    if (s->down[at] != FT_UNREACHABLE)
        return;
    s->down[at] = distance;
    s->queue[s->tail++] = at * 2;
    /* A path that is still going up may go down from here. */
    reach_up(s, at, distance);
}

static void search_from(struct search *s, uint32_t destination)
{
    const struct ft_topology *t = s->t;

    s->head = s->tail = 0;
    reach_down(s, destination, 0);
    while (s->head < s->tail) {
        uint32_t at = s->queue[s->head] / 2;
        bool up = s->queue[s->head++] % 2;
        uint8_t next = (uint8_t)((up ? s->valley[at] : s->down[at]) + 1);

        for (uint32_t i = t->first_neighbour[at]; i < t->first_neighbour[at + 1]; i++) {
            const struct ft_neighbour *n = &t->neighbours[i];

            if (up && !n->up)
                reach_up(s, n->switch_id, next);
            else if (!up && n->up)
                reach_down(s, n->switch_id, next);
        }
    }
}

int ft_topology_measure(struct ft_topology *t, struct ft_task *task)
{
    struct search s = {.t = t};
    uint32_t rows = 0;
    size_t bytes;

    t->row = malloc((t->switch_count + 1) * sizeof(*t->row));
    if (!t->row)
        return -ENOMEM;
    for (uint32_t i = 0; i < t->switch_count; i++)
        t->row[i] = FT_NONE;
    for (uint32_t i = 0; i < t->port_count; i++) {
        uint32_t at = t->ports[i].switch_id;

        if (t->ports[i].nic != FT_NONE && t->row[at] == FT_NONE)
            t->row[at] = rows++;
    }
    bytes = (size_t)rows * t->switch_count;
    t->down = malloc(bytes + 1);
    t->valley = malloc(bytes + 1);
    s.queue = malloc(((size_t)t->switch_count * 2 + 1) * sizeof(*s.queue));
    if (!t->down || !t->valley || !s.queue) {
        free(s.queue);
        return -ENOMEM;
    }
    memset(t->down, FT_UNREACHABLE, bytes);
    memset(t->valley, FT_UNREACHABLE, bytes);
    for (uint32_t i = 0; i < t->switch_count; i++) {
        if (t->row[i] == FT_NONE)
            continue;
        ft_task_spend(task, 1 + t->first_neighbour[t->switch_count] / NEIGHBOURS_A_LOOK);
        s.down = t->down + (size_t)t->row[i] * t->switch_count;
        s.valley = t->valley + (size_t)t->row[i] * t->switch_count;
        search_from(&s, i);
    }
    free(s.queue);
    return 0;
}

/* From the other end of a port to the nearest switch of a NIC. */
static uint8_t distance_behind(const struct ft_topology *t, uint32_t port, const struct ft_nic *nic)
{
    uint32_t peer = t->ports[port].peer;
    uint8_t nearest = FT_UNREACHABLE, d;

    for (uint32_t i = 0; peer != FT_NONE && i < nic->attach_count; i++) {
        d = ft_switch_distance(t, t->ports[peer].switch_id, t->ports[nic->attach[i]].switch_id);
        nearest = d < nearest ? d : nearest;
    }
    return nearest;
}

uint64_t ft_topology_nearest_links(const struct ft_topology *t, const struct ft_group *g,
                                   uint32_t nic)
{
    uint8_t nearest = FT_UNREACHABLE, d;
    uint64_t links = 0;

    assert(g->link_count <= 64 && nic < t->nic_count);
    for (uint32_t i = 0; i < g->link_count; i++) {
        d = distance_behind(t, g->links[i], &t->nics[nic]);
        if (d == FT_UNREACHABLE || d > nearest)
            continue;
        if (d < nearest)
            links = 0;
        links |= UINT64_C(1) << i;
        nearest = d;
    }
    return links;
}
