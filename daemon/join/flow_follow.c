// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/flow_follow.h"

#include "daemon/join/moves.h"

static struct ft_sighting *sightings(struct ft_evidence *ev)
{
    return ev->size ? ev->list : ev->own;
}

/* The same port in another topology: by its name, or by its ifIndex where it has got another one.
 */
static uint32_t follow(const struct ft_topology *from, const struct ft_topology *to, uint32_t port)
{
    const struct ft_port *p;
    uint32_t switch_id, now;

    if (port == FT_NONE)
        return FT_NONE;
    p = ft_topology_port(from, port);
    switch_id = ft_topology_find_switch(to, ft_topology_switch(from, p->switch_id)->name);
    if (switch_id == FT_NONE)
        return FT_NONE;
    now = ft_topology_find_port(to, switch_id, p->name);
    return now == FT_NONE && p->ifindex ? ft_topology_port_at(to, switch_id, p->ifindex) : now;
}

/* The same end of a sighting in another topology. A port that was its aggregate's only member may
 * have been named by that, so of an aggregate with more members no more than it stays certain. */
static uint32_t follow_end(const struct ft_topology *from, const struct ft_topology *to,
                           uint32_t end)
{
    uint32_t lag = end, switch_id;

    if (end == FT_NONE)
        return FT_NONE;
    switch_id = ft_topology_find_switch(
        to, ft_topology_switch(from, ft_topology_end_switch(from, end))->name);
    if (switch_id == FT_NONE)
        return FT_NONE;
    if (ft_is_port(end))
        lag = ft_topology_port(from, end)->lag_ifindex ? ft_topology_port(from, end)->lag : FT_NONE;
    if (lag != FT_NONE)
        lag = ft_topology_find_lag(to, switch_id, ft_topology_lag(from, lag)->name);
    if (lag != FT_NONE && ft_topology_lag(to, lag)->complete &&
        ft_topology_lag(to, lag)->member_count > 1)
        return lag;
    return ft_is_port(end) ? follow(from, to, end) : FT_NONE;
}

static bool lost_link(const struct ft_topology *from, const struct ft_topology *to, uint32_t port)
{
    uint32_t now;

    if (!ft_is_port(port))
        return false;
    now = follow(from, to, port);
    return ft_topology_port(from, port)->peer != FT_NONE &&
           (now == FT_NONE || ft_topology_port(to, now)->peer == FT_NONE);
}

/* Whether a flow was on a link that is no more. */
static bool lost_way(struct ft_flow *flow, const struct ft_topology *from,
                     const struct ft_topology *to)
{
    const struct ft_sighting *list = sightings(&flow->evidence);
    bool lost = false;

    for (uint32_t h = 0; h < flow->path.hop_count; h++)
        lost |= lost_link(from, to, flow->path.hops[h].out);
    for (uint16_t i = 0; i < flow->evidence.count; i++)
        lost |= !(list[i].switch_id & FT_SWITCH_UNKNOWN) &&
                (lost_link(from, to, list[i].in) || lost_link(from, to, list[i].out));
    return lost;
}

/* It goes elsewhere now: what it sent until then stays with the path that it had. */
static void leave_way(struct ft_flow *flow)
{
    struct ft_sighting *list = sightings(&flow->evidence);
    uint8_t past = ft_moves_leave(flow, &flow->path, INT64_MIN);

    for (uint16_t i = 0; i < flow->evidence.count; i++)
        if (list[i].past == FT_PRESENT)
            list[i].past = past;
}

/* A path of which a port is gone is forgotten. */
static void follow_path(struct ft_path *path, const struct ft_topology *from,
                        const struct ft_topology *to)
{
    bool complete = true;

    for (uint32_t h = 0; h < path->hop_count; h++) {
        path->hops[h].in = follow(from, to, path->hops[h].in);
        path->hops[h].out = follow(from, to, path->hops[h].out);
        complete &= path->hops[h].in != FT_NONE && path->hops[h].out != FT_NONE;
    }
    if (!complete)
        path->hop_count = 0;
}

static void follow_flow(struct ft_flow *flow, const struct ft_topology *from,
                        const struct ft_topology *to)
{
    struct ft_sighting *list = sightings(&flow->evidence);
    uint16_t kept = 0;

    for (uint16_t i = 0; i < flow->evidence.count; i++) {
        struct ft_sighting s = list[i];

        /* An exporter that was unknown may be known now; its next samples will say. */
        if (s.switch_id & FT_SWITCH_UNKNOWN)
            continue;
        s.switch_id = ft_topology_find_switch(to, ft_topology_switch(from, s.switch_id)->name);
        if (s.switch_id == FT_NONE)
            continue;
        s.in = follow_end(from, to, s.in);
        s.out = follow_end(from, to, s.out);
        list[kept++] = s;
    }
    flow->evidence.count = kept;
    follow_path(&flow->path, from, to);
    for (uint8_t i = 0; flow->moves && i < flow->moves->count; i++)
        follow_path(&flow->moves->left[i].path, from, to);
}

void ft_flow_follow(struct ft_flow *flow, const struct ft_topology *from,
                    const struct ft_topology *to)
{
    bool lost = lost_way(flow, from, to);

    follow_flow(flow, from, to);
    if (lost)
        leave_way(flow);
}
