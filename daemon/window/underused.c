// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/window/underused.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/join/flow_path.h"
#include "daemon/window/link_counters.h"
#include "lib/fabric/reach.h"
#include "lib/fabric/skewed.h"
#include "lib/fabric/underuse.h"
#include "lib/fabric/weights.h"

#define LINKS_MAX 64
/* Of the flows of the window before, more than this part had no path. */
#define BLIND 0.1
struct port {
    struct ft_underuse use;
    int64_t last_ms; /* of the newest flow that was placed here; 0: none */
    bool raised;     /* ever */
};

struct ft_underused {
    const struct ft_topology *t; /* that of the ports; borrowed */
    struct port *ports;          /* by port id */
    uint32_t count;
    struct ft_skewed *skewed;
    struct ft_reach *reach;
    uint64_t placed, unplaced; /* flows of this window */
    bool blind;                /* of the window before too few had a path */
};

struct ft_underused *ft_underused_new(void)
{
    return calloc(1, sizeof(struct ft_underused));
}

void ft_underused_free(struct ft_underused *u)
{
    if (!u)
        return;
    free(u->ports);
    ft_skewed_free(u->skewed);
    ft_reach_free(u->reach);
    free(u);
}

/* What was seen of ports that are in some group still, by their names. */
static void take_over(const struct ft_underused *u, const struct ft_topology *t, struct port *ports)
{
    for (uint32_t i = 0; i < u->count; i++) {
        const struct ft_port *before = ft_topology_port(u->t, i);
        uint32_t at, id;

        if (!u->ports[i].use.flows && !u->ports[i].last_ms)
            continue;
        at = ft_topology_find_switch(t, ft_topology_switch(u->t, before->switch_id)->name);
        id = at == FT_NONE ? FT_NONE : ft_topology_find_port(t, at, before->name);
        if (id != FT_NONE && ft_topology_port(t, id)->group != FT_NONE)
            ports[id] = u->ports[i];
    }
}

int ft_underused_resize(struct ft_underused *u, const struct ft_topology *t)
{
    uint32_t count = ft_topology_ports(t);
    struct port *ports = calloc((size_t)count + 1, sizeof(*ports));

    if (ports)
        take_over(u, t, ports);
    free(u->ports);
    ft_skewed_free(u->skewed);
    ft_reach_free(u->reach);
    u->t = t;
    u->ports = ports;
    u->skewed = ft_skewed_new(t);
    u->reach = ft_reach_new(t);
    u->count = u->ports && u->skewed && u->reach ? count : 0;
    return u->ports && u->skewed && u->reach ? 0 : -ENOMEM;
}

/* Whether a switch may take some of these links, by bit, more often than others. */
static bool is_weighed(const struct ft_topology *t, const struct ft_group *group, uint64_t set)
{
    uint64_t speed[LINKS_MAX];
    uint32_t bundle[LINKS_MAX];
    double share[LINKS_MAX];
    struct ft_link_set links = {.speed_bps = speed, .bundle = bundle};

    for (uint32_t i = 0; i < group->link_count; i++)
        if (set >> i & 1) {
            speed[links.m] = ft_topology_port(t, group->links[i])->speed_bps;
            bundle[links.m++] = ft_skewed_bundle(t, group->links[i]);
        }
    return ft_weigh(&links, FT_WEIGHED_BY_SPEED, share) ||
           ft_weigh(&links, FT_WEIGHED_BY_BUNDLE, share);
}

/* The links of a group, by bit, that a flow may take as well as the one that it takes. */
static uint64_t choices_of(const struct ft_underused *u, const struct ft_topology *t,
                           const struct ft_group *group, uint32_t out,
                           const struct ft_reach_ends *ends)
{
    uint64_t set = 0;

    for (uint32_t i = 0; i < group->link_count; i++)
        set |= (uint64_t)ft_reach_either(u->reach, t, out, group->links[i], ends) << i;
    return set;
}

/* One of a set of links to a destination, all alike. Flows that move do so together, away from
 * a link that went and to one that came: that they take this one is a sign for it, and none against
 * the others. */
static void count_hop(struct ft_underused *u, const struct ft_topology *t, uint32_t out,
                      const struct ft_flow *flow, const struct ft_reach_ends *ends)
{
    const struct ft_port *port = ft_topology_port(t, out);
    const struct ft_group *group;
    uint64_t set;
    uint32_t m;

    if (port->group == FT_NONE || port->direction == FT_DIRECTION_HOST)
        return;
    group = ft_topology_group(t, port->group);
    if (group->link_count > LINKS_MAX)
        return;
    set = choices_of(u, t, group, out, ends);
    m = (uint32_t)__builtin_popcountll(set);
    u->ports[out].last_ms = flow->path_since_ms;
    if (m < 2)
        return;
    if (ft_skewed_group(u->skewed, port->group) && is_weighed(t, group, set))
        return;
    for (uint32_t i = 0; i < group->link_count; i++)
        if (set >> i & 1 && (!flow->moved || group->links[i] == out))
            ft_underuse_add(&u->ports[group->links[i]].use, m, group->links[i] == out);
}

void ft_underused_flow(struct ft_underused *u, const struct ft_join *join,
                       const struct ft_flow *flow, const struct ft_span *span)
{
    const struct ft_topology *t = ft_join_topology(join);
    struct ft_reach_ends ends;
    struct ft_path path;

    if (u->count != ft_topology_ports(t) || ft_role_answers((enum ft_role)flow->role))
        return;
    if (flow->state != FT_PATH_RESOLVED) {
        u->unplaced++;
        return;
    }
    u->placed++;
    /* What takes a link that its sender chose says nothing of chance. */
    if (u->blind || flow->source_routed || flow->dst_nic == FT_NONE ||
        flow->path_since_ms < span->start_ms || flow->path_since_ms >= span->end_ms)
        return;
    path = ft_flow_path(t, flow);
    if (path.hop_count == 0)
        return;
    ends = ft_reach_ends(t, flow->src_nic, flow->dst_nic, path.hops[0].out);
    for (uint32_t h = 0; h < path.hop_count; h++)
        if (ft_is_port(path.hops[h].out) && !ft_skewed_before(u->skewed, t, &path, h))
            count_hop(u, t, path.hops[h].out, flow, &ends);
}

static void raise_one(struct port *p, const struct ft_topology *t, uint32_t id,
                      struct ft_events *events, uint32_t window, const struct ft_span *span)
{
    Fabrictrace__Event event;
    Fabrictrace__Evidence evidence = FABRICTRACE__EVIDENCE__INIT;
    const struct ft_port *port = ft_topology_port(t, id);
    const char *name = ft_topology_switch(t, port->switch_id)->name;
    char subject[300], message[512];

    snprintf(subject, sizeof(subject), "%s/%s", name, port->name);
    snprintf(
        message, sizeof(message),
        "%llu of the last %llu new flows that had the choice took %s %s: chance gives more, time "
        "and again",
        (unsigned long long)p->use.here, (unsigned long long)p->use.flows, name, port->name);
    ft_emit_link(&evidence, t, id);
    evidence.has_count = evidence.has_flows = true;
    evidence.count = p->use.flows;
    evidence.flows = p->use.here;
    evidence.has_idle_since_ms = p->last_ms > 0;
    evidence.idle_since_ms = (uint64_t)p->last_ms;
    ft_emit_event(&event, FABRICTRACE__KIND__KIND_UNDERUSED,
                  FABRICTRACE__SEVERITY__SEVERITY_WARNING, ft_topology_fabric(t), span->start_ms,
                  span->end_ms);
    event.subject = subject;
    event.message = message;
    event.evidence = &evidence;
    p->raised = true;
    ft_events_raise_pausing(events, window, &event);
}

/* Flows come again. Of what another daemon raised too few are known to say so. */
static bool is_over(void *arg, const Fabrictrace__Event *event)
{
    const struct ft_underused *u = arg;
    const Fabrictrace__Evidence *e = event->evidence;
    uint32_t at = e && e->switch_ && e->port ? ft_topology_find_switch(u->t, e->switch_) : FT_NONE;
    uint32_t id = at != FT_NONE ? ft_topology_find_port(u->t, at, e->port) : FT_NONE;

    return id != FT_NONE && u->ports[id].raised && !u->ports[id].use.stands;
}

void ft_underused_close(struct ft_underused *u, const struct ft_topology *t,
                        const struct ft_counters *counters, const struct ft_loads *loads,
                        struct ft_events *events, uint32_t window, const struct ft_span *span)
{
    if (u->count != ft_topology_ports(t))
        return;
    u->blind = (double)u->unplaced > BLIND * (double)(u->placed + u->unplaced);
    u->placed = u->unplaced = 0;
    for (uint32_t id = 0; id < u->count; id++)
        if (u->ports[id].use.stands && !ft_link_counts_flows(t, counters, loads, id, window))
            raise_one(&u->ports[id], t, id, events, window, span);
    ft_events_end(events, FABRICTRACE__KIND__KIND_UNDERUSED, window, span->end_ms, is_over, u);
}
