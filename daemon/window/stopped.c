// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/window/stopped.h"

#include <math.h>
#include <stdlib.h>

/* A window replaces one that has no more than so many times its flows, or is so many windows old.
 */
#define BETTER  2
#define OLD_NOW 6

struct port {
    uint32_t here, all; /* flows of the link, and of its group, in that window */
    uint32_t age;       /* windows with flows on the link since */
    uint32_t empty;     /* windows without any of the group, in a row */
};

struct ft_stopped {
    const struct ft_topology *t; /* that of the ports; borrowed */
    struct port *ports;          /* by port id */
    uint32_t count;
};

struct ft_stopped *ft_stopped_new(void)
{
    return calloc(1, sizeof(struct ft_stopped));
}

void ft_stopped_free(struct ft_stopped *s)
{
    if (!s)
        return;
    free(s->ports);
    free(s);
}

void ft_stopped_resize(struct ft_stopped *s, const struct ft_topology *t)
{
    uint32_t count = ft_topology_ports(t), at, id;
    struct port *ports = calloc((size_t)count + 1, sizeof(*ports));

    for (uint32_t i = 0; ports && i < s->count; i++) {
        const struct ft_port *before = ft_topology_port(s->t, i);

        if (!s->ports[i].all)
            continue;
        at = ft_topology_find_switch(t, ft_topology_switch(s->t, before->switch_id)->name);
        id = at == FT_NONE ? FT_NONE : ft_topology_find_port(t, at, before->name);
        if (id != FT_NONE)
            ports[id] = s->ports[i];
    }
    free(s->ports);
    s->t = t;
    s->ports = ports;
    s->count = ports ? count : 0;
}

static uint32_t flows_of(const struct ft_load *load)
{
    uint64_t flows = load->certain + load->narrow;

    return flows < UINT32_MAX ? (uint32_t)flows : UINT32_MAX;
}

/* After a pause of all other flows may come, which a hash takes elsewhere. */
static void age(struct port *p, bool empty)
{
    p->empty = empty ? p->empty + 1 : 0;
    if (p->empty >= OLD_NOW)
        *p = (struct port){0};
}

void ft_stopped_note(struct ft_stopped *s, const struct ft_loads *loads,
                     const struct ft_group *group)
{
    uint64_t all = 0;

    for (uint32_t i = 0; i < group->link_count; i++)
        all += flows_of(&loads->link[group->links[i]]);
    for (uint32_t i = 0; i < group->link_count; i++)
        if (group->links[i] < s->count)
            age(&s->ports[group->links[i]], all == 0);
    for (uint32_t i = 0; i < group->link_count; i++) {
        uint32_t here = flows_of(&loads->link[group->links[i]]);
        struct port *p;

        if (group->links[i] >= s->count || here == 0)
            continue;
        p = &s->ports[group->links[i]];
        if ((uint64_t)here * BETTER < p->here && ++p->age < OLD_NOW)
            continue;
        *p = (struct port){here, all < UINT32_MAX ? (uint32_t)all : UINT32_MAX, 0, 0};
    }
}

/* C(all, here) / C(all + flows, here): all that took a link of these are among the earlier ones. */
static double earlier_ones(double here, double all, double flows)
{
    return exp(lgamma(all + 1) - lgamma(all - here + 1) - lgamma(all + flows + 1) +
               lgamma(all + flows - here + 1));
}

double ft_stopped_by_chance(const struct ft_stopped *s, const uint32_t *ports, size_t count,
                            uint64_t flows)
{
    double here = 0, all = 0;

    for (size_t i = 0; i < count; i++) {
        if (ports[i] >= s->count || s->ports[ports[i]].here == 0)
            return 1;
        here += s->ports[ports[i]].here;
        all = fmax(all, s->ports[ports[i]].all);
    }
    return count ? earlier_ones(fmin(here, all), all, (double)flows) : 1;
}
