// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/trust.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* So many that came back at once, in about so long. */
#define RETURNS_SPRAYED 10
#define RETURNS_FADE_MS 10000

int ft_trust_init(struct ft_trust *trust, const struct ft_topology *t)
{
    trust->links = calloc((size_t)ft_topology_ports(t) + 1, sizeof(*trust->links));
    trust->switches = calloc((size_t)ft_topology_switches(t) + 1, sizeof(*trust->switches));
    if (!trust->links || !trust->switches) {
        ft_trust_free(trust);
        return -ENOMEM;
    }
    ft_trust_restart(trust, t);
    return 0;
}

void ft_trust_free(struct ft_trust *trust)
{
    free(trust->links);
    free(trust->switches);
    *trust = (struct ft_trust){.links = NULL};
}

void ft_trust_restart(struct ft_trust *trust, const struct ft_topology *t)
{
    for (uint32_t i = 0; i < ft_topology_ports(t); i++)
        trust->links[i].uncertain_ms = INT64_MIN;
    for (uint32_t i = 0; i < ft_topology_switches(t); i++)
        trust->switches[i] = (struct ft_switch_trust){INT64_MIN, INT64_MIN};
    trust->since_ms = INT64_MAX;
    trust->uncertain_ms = INT64_MIN;
    trust->sprayed_ms = trust->returned_ms = INT64_MIN;
    trust->returns = 0;
    trust->loses_links = false;
}

void ft_trust_returned(struct ft_trust *trust, int64_t ms)
{
    if (ms > trust->returned_ms) {
        if (trust->returned_ms != INT64_MIN)
            trust->returns *= exp(-(double)(ms - trust->returned_ms) / RETURNS_FADE_MS);
        trust->returned_ms = ms;
    }
    trust->returns++;
    if (trust->returns >= RETURNS_SPRAYED && ms > trust->sprayed_ms)
        trust->sprayed_ms = ms;
}

/* The equal-cost sets that a port may be in, or was: those of its group, and parallel links. */
static void doubt_around(struct ft_trust *trust, const struct ft_topology *t, uint32_t port,
                         enum ft_direction direction, int64_t until_ms)
{
    const struct ft_switch *sw = ft_topology_switch(t, ft_topology_port(t, port)->switch_id);

    ft_trust_mark_uncertain(trust, port, until_ms);
    for (uint32_t i = 0; i < sw->port_count; i++)
        if (ft_topology_port(t, sw->ports[i])->direction == direction)
            ft_trust_mark_uncertain(trust, sw->ports[i], until_ms);
}

static uint32_t same_port(const struct ft_topology *t, const struct ft_topology *from,
                          uint32_t port)
{
    const struct ft_port *p = ft_topology_port(from, port);
    uint32_t sw = ft_topology_find_switch(t, ft_topology_switch(from, p->switch_id)->name);
    uint32_t now = sw == FT_NONE ? FT_NONE : ft_topology_find_port(t, sw, p->name);

    /* It may have got another name. */
    return sw != FT_NONE && now == FT_NONE && p->ifindex ? ft_topology_port_at(t, sw, p->ifindex)
                                                         : now;
}

void ft_trust_follow(struct ft_trust *trust, const struct ft_topology *t,
                     const struct ft_trust *before, const struct ft_topology *from, int64_t now_ms)
{
    /* What samples of new switches and links name has yet to show. */
    trust->since_ms = now_ms;
    trust->sprayed_ms = before->sprayed_ms;
    trust->returns = before->returns;
    trust->returned_ms = before->returned_ms;
    trust->loses_links = before->loses_links;
    for (uint32_t i = 0; i < ft_topology_switches(from); i++) {
        uint32_t id = ft_topology_find_switch(t, ft_topology_switch(from, i)->name);

        if (id != FT_NONE)
            trust->switches[id] = before->switches[i];
    }
    for (uint32_t i = 0; i < ft_topology_ports(from); i++) {
        uint32_t port = same_port(t, from, i);
        uint32_t peer = ft_topology_port(from, i)->peer, now;

        if (port == FT_NONE)
            continue;
        ft_trust_mark_uncertain(trust, port, before->links[i].uncertain_ms);
        now = ft_topology_port(t, port)->peer;
        trust->loses_links |= peer != FT_NONE && now == FT_NONE;
        if ((peer == FT_NONE) != (now == FT_NONE) ||
            (peer != FT_NONE && same_port(t, from, peer) != now))
            /* Where it has no link any more, it has no direction either. */
            doubt_around(
                trust, t, port,
                ft_topology_port(now == FT_NONE ? from : t, now == FT_NONE ? i : port)->direction,
                now_ms);
    }
}
