// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/flow_follow.h"

#include <stdlib.h>

#include "daemon/join/flow_parts.h"
#include "daemon/join/flow_path.h"
#include "daemon/join/moves.h"

struct ft_follow {
    const struct ft_topology *from, *to;
    uint32_t *switches; /* by id, as all of them: the id in the other topology, FT_NONE */
    uint32_t *ports;
    uint32_t *nics;
    /* What is certain of the end of a sighting there. */
    uint32_t *port_ends;
    uint32_t *lag_ends;
    bool *lost; /* by port: it had a link, and has none there */
    bool *kept; /* by port: its link is there, and leads to the same port */
};

static struct ft_sighting *sightings(struct ft_evidence *ev)
{
    return ev->size ? ev->list : ev->own;
}

/* The same port in another topology: by its name, or by its ifIndex where it has got another one.
 */
static uint32_t find_port(const struct ft_follow *f, const struct ft_topology *to,
                          const struct ft_port *port)
{
    uint32_t switch_id = f->switches[port->switch_id], now;

    if (switch_id == FT_NONE)
        return FT_NONE;
    now = ft_topology_find_port(to, switch_id, port->name);
    return now == FT_NONE && port->ifindex ? ft_topology_port_at(to, switch_id, port->ifindex)
                                           : now;
}

/* An aggregate as the end of a sighting; FT_NONE where that is not certain, or needless. */
static uint32_t find_lag(const struct ft_follow *f, const struct ft_topology *to,
                         const struct ft_lag *lag)
{
    uint32_t switch_id = f->switches[lag->switch_id], now;

    if (switch_id == FT_NONE)
        return FT_NONE;
    now = ft_topology_find_lag(to, switch_id, lag->name);
    if (now == FT_NONE || !ft_topology_lag(to, now)->complete ||
        ft_topology_lag(to, now)->member_count <= 1)
        return FT_NONE;
    return now;
}

/* A port that was its aggregate's only member may have been named by that, so of an aggregate with
 * more members no more than it stays certain. */
static uint32_t find_end(const struct ft_follow *f, const struct ft_topology *from, uint32_t port)
{
    const struct ft_port *was = ft_topology_port(from, port);
    uint32_t lag =
        was->lag_ifindex && was->lag != FT_NONE ? f->lag_ends[was->lag & ~FT_LAG_BIT] : FT_NONE;

    return lag != FT_NONE ? lag : f->ports[port];
}

static bool is_kept(const struct ft_follow *f, const struct ft_topology *from,
                    const struct ft_topology *to, uint32_t port)
{
    uint32_t peer = ft_topology_port(from, port)->peer, now = f->ports[port];

    return peer != FT_NONE && now != FT_NONE && f->ports[peer] != FT_NONE &&
           ft_topology_port(to, now)->peer == f->ports[peer];
}

static void fill(struct ft_follow *f, const struct ft_topology *from, const struct ft_topology *to)
{
    for (uint32_t i = 0; i < ft_topology_switches(from); i++)
        f->switches[i] = ft_topology_find_switch(to, ft_topology_switch(from, i)->name);
    for (uint32_t i = 0; i < ft_topology_lags(from); i++)
        f->lag_ends[i] = find_lag(f, to, ft_topology_lag(from, i));
    for (uint32_t i = 0; i < ft_topology_ports(from); i++) {
        const struct ft_port *port = ft_topology_port(from, i);

        f->ports[i] = find_port(f, to, port);
        f->port_ends[i] = find_end(f, from, i);
        f->lost[i] = port->peer != FT_NONE &&
                     (f->ports[i] == FT_NONE || ft_topology_port(to, f->ports[i])->peer == FT_NONE);
    }
    for (uint32_t i = 0; i < ft_topology_ports(from); i++)
        f->kept[i] = is_kept(f, from, to, i);
    for (uint32_t i = 0; i < ft_topology_nics(from); i++) {
        const struct ft_nic *nic = ft_topology_nic(from, i);

        f->nics[i] = nic->address_count ? ft_topology_nic_at(to, &nic->addresses[0]) : FT_NONE;
    }
}

struct ft_follow *ft_follow_new(const struct ft_topology *from, const struct ft_topology *to)
{
    size_t switches = ft_topology_switches(from), ports = ft_topology_ports(from);
    size_t lags = ft_topology_lags(from), nics = ft_topology_nics(from);
    size_t ids = switches + 2 * ports + lags + nics;
    struct ft_follow *f = malloc(sizeof(*f) + ids * sizeof(uint32_t) + 2 * ports * sizeof(bool));

    if (!f)
        return NULL;
    f->from = from;
    f->to = to;
    f->switches = (uint32_t *)(f + 1);
    f->ports = f->switches + switches;
    f->port_ends = f->ports + ports;
    f->lag_ends = f->port_ends + ports;
    f->nics = f->lag_ends + lags;
    f->lost = (bool *)(f->nics + nics);
    f->kept = f->lost + ports;
    fill(f, from, to);
    return f;
}

void ft_follow_free(struct ft_follow *follow)
{
    free(follow);
}

static uint32_t port_there(const struct ft_follow *f, uint32_t port)
{
    return port == FT_NONE ? FT_NONE : f->ports[port];
}

static uint32_t end_there(const struct ft_follow *f, uint32_t end)
{
    if (end == FT_NONE)
        return FT_NONE;
    return ft_is_port(end) ? f->port_ends[end] : f->lag_ends[end & ~FT_LAG_BIT];
}

static bool lost_link(const struct ft_follow *f, uint32_t end)
{
    return ft_is_port(end) && f->lost[end];
}

/* Whether a flow was on a link that is no more, until it was gone: not one that had moved away. */
static bool lost_path(struct ft_flow *flow, const struct ft_follow *f)
{
    const struct ft_sighting *list = sightings(&flow->evidence);
    bool lost = false;

    for (uint32_t h = 0; h < flow->path.hop_count; h++)
        lost |= lost_link(f, flow->path.hops[h].out);
    for (unsigned i = 0; i < flow->evidence.count; i++)
        lost |= list[i].past == FT_PRESENT && !(ft_sighting_switch(&list[i]) & FT_SWITCH_UNKNOWN) &&
                (lost_link(f, ft_sighting_in(&list[i])) || lost_link(f, ft_sighting_out(&list[i])));
    return lost;
}

/* It goes elsewhere now: what it sent until then stays with the path that it had. */
static void leave_path(struct ft_flow *flow, const struct ft_topology *t)
{
    struct ft_sighting *list = sightings(&flow->evidence);
    const struct ft_path path = ft_flow_path(t, flow);
    uint8_t past = ft_moves_leave(flow, &path, INT64_MIN);

    for (unsigned i = 0; i < flow->evidence.count; i++)
        if (list[i].past == FT_PRESENT)
            list[i].past = past;
}

/* A path of which a port is gone is forgotten. */
static void follow_path(struct ft_path *path, const struct ft_follow *f)
{
    bool complete = true;

    for (uint32_t h = 0; h < path->hop_count; h++) {
        path->hops[h].in = port_there(f, path->hops[h].in);
        path->hops[h].out = port_there(f, path->hops[h].out);
        complete &= path->hops[h].in != FT_NONE && path->hops[h].out != FT_NONE;
    }
    if (!complete)
        path->hop_count = 0;
}

/* A path whose links are all there follows by them alone; false where it does not. */
static bool follow_links(struct ft_flow *flow, const struct ft_follow *f)
{
    struct ft_flow_path path = flow->path;
    bool all;

    if (path.hop_count == 0)
        return true;
    path.in = port_there(f, path.in);
    all = path.in != FT_NONE && !ft_flow_part(flow, FT_FLOW_PATH);
    for (uint32_t h = 0; h < path.hop_count; h++) {
        all &= h + 1 == path.hop_count || f->kept[path.hops[h].out];
        path.hops[h].out = port_there(f, path.hops[h].out);
        all &= path.hops[h].out != FT_NONE;
    }
    if (all)
        flow->path = path;
    return all;
}

static void follow_sightings(struct ft_evidence *ev, const struct ft_follow *f)
{
    struct ft_sighting *list = sightings(ev);
    uint16_t kept = 0;

    for (unsigned i = 0; i < ev->count; i++) {
        struct ft_sighting s = list[i];
        uint32_t switch_id = ft_sighting_switch(&s);

        /* An exporter that was unknown may be known now; its next samples will say. */
        if (switch_id & FT_SWITCH_UNKNOWN)
            continue;
        switch_id = f->switches[switch_id];
        if (switch_id == FT_NONE)
            continue;
        ft_sighting_set_hop(&s, switch_id, end_there(f, ft_sighting_in(&s)),
                            end_there(f, ft_sighting_out(&s)));
        list[kept++] = s;
    }
    ev->count = kept & 0x1ffu;
}

void ft_flow_follow(struct ft_flow *flow, const struct ft_follow *f)
{
    struct ft_moves *moves = ft_flow_moves(flow);
    bool lost = lost_path(flow, f);

    follow_sightings(&flow->evidence, f);
    for (uint8_t i = 0; moves && i < moves->count; i++)
        follow_path(&moves->left[i].path, f);
    if (!follow_links(flow, f)) {
        struct ft_path path = ft_flow_path(f->from, flow);

        follow_path(&path, f);
        ft_flow_set_path(f->to, flow, &path);
    }
    flow->src_nic = flow->src_nic == FT_NONE ? FT_NONE : f->nics[flow->src_nic];
    flow->dst_nic = flow->dst_nic == FT_NONE ? FT_NONE : f->nics[flow->dst_nic];
    if (lost)
        leave_path(flow, f->to);
    /* The links of a group may be others now. */
    ft_flow_remove_part(flow, FT_FLOW_CLUMPS);
}
