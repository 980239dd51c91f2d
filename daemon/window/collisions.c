// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/window/collisions.h"

#include <stdio.h>
#include <stdlib.h>

#include "daemon/window/victim.h"
#include "lib/base/bound.h"
#include "lib/fabric/reach.h"
#include "proto/record.h"

struct parts {
    Fabrictrace__Victim victims[FT_VICTIMS_MAX];
    Fabrictrace__Victim *list[FT_VICTIMS_MAX];
    Fabrictrace__Flow flows[FT_VICTIMS_MAX];
};

/* By link, the largest first; then by index, so that the order is one. */
static int by_link_and_rate(const void *a, const void *b)
{
    const struct ft_elephant *x = a, *y = b;

    if (x->port != y->port)
        return x->port < y->port ? -1 : 1;
    if (x->lo_bps != y->lo_bps)
        return x->lo_bps > y->lo_bps ? -1 : 1;
    return x->flow < y->flow ? -1 : x->flow > y->flow;
}

void ft_collisions_victim(Fabrictrace__Victim *v, Fabrictrace__Flow *tuple,
                          const struct ft_join *join, const struct ft_elephant *elephant,
                          int64_t window_ms)
{
    if (elephant->said) {
        *v = *elephant->said;
        return;
    }
    ft_victim_fill(v, tuple, join, ft_join_at(join, elephant->flow), window_ms);
}

/* Whether an elephant of a link with so many would have no less of another, at the speeds that
 * they have: switches may weigh links by these. */
static bool has_room(const struct ft_topology *t, uint32_t link, uint64_t count, uint32_t other,
                     uint64_t others)
{
    double speed = (double)ft_topology_port(t, link)->speed_bps;
    double speed_there = (double)ft_topology_port(t, other)->speed_bps;

    if (others >= count)
        return false;
    return speed <= 0 || speed_there <= 0 ||
           (double)(others + 1) * speed <= (double)count * speed_there;
}

/* Between what an elephant chooses its links. */
static struct ft_reach_ends ends_of(const struct ft_join *join, const struct ft_elephant *elephant)
{
    const struct ft_topology *t = ft_join_topology(join);
    const struct ft_flow *flow;
    struct ft_tuple tuple;

    if (!elephant->said) {
        flow = ft_join_at(join, elephant->flow);
        return ft_reach_ends(t, flow->src_nic, flow->dst_nic, FT_NONE);
    }
    if (!elephant->said->flow || ft_flow_to_tuple(elephant->said->flow, &tuple))
        return (struct ft_reach_ends){FT_NONE, FT_NONE};
    return ft_reach_ends(t, ft_topology_nic_at(t, &tuple.src), ft_topology_nic_at(t, &tuple.dst),
                         FT_NONE);
}

/* Whether some elephant of a link may take another one of its group. */
static bool may_move(const struct ft_loads *loads, const struct ft_join *join,
                     const struct ft_elephant *first, size_t count, uint32_t other)
{
    for (size_t i = 0; i < count; i++) {
        struct ft_reach_ends ends = ends_of(join, &first[i]);

        if (ft_reach_either(loads->reach, ft_join_topology(join), first->port, other, &ends))
            return true;
    }
    return false;
}

static void raise_one(const struct ft_loads *loads, const struct ft_join *join,
                      struct ft_events *events, uint32_t window, const struct ft_span *span,
                      const struct ft_elephant *first, size_t count, size_t named)
{
    const struct ft_topology *t = ft_join_topology(join);
    const struct ft_port *port = ft_topology_port(t, first->port);
    const struct ft_group *group = ft_topology_group(t, port->group);
    Fabrictrace__Event event;
    Fabrictrace__Evidence evidence = FABRICTRACE__EVIDENCE__INIT;
    struct parts parts;
    uint64_t least = UINT64_MAX, sum = 0;
    char subject[200], message[400];
    uint32_t links = 0;

    if (count < 2)
        return;
    for (uint32_t i = 0; i < group->link_count; i++) {
        uint64_t n = loads->link[group->links[i]].elephants;

        if (!may_move(loads, join, first, count, group->links[i]))
            continue;
        links++;
        sum += n;
        if (n < least && has_room(t, first->port, count, group->links[i], n))
            least = n;
    }
    if (least >= count)
        return;
    ft_emit_link(&evidence, t, first->port);
    evidence.has_elephants = evidence.has_elephants_least = evidence.has_elephants_even = true;
    evidence.elephants = count;
    evidence.elephants_least = least;
    evidence.elephants_even = (double)sum / links;
    for (size_t i = 0; i < named; i++) {
        ft_collisions_victim(&parts.victims[i], &parts.flows[i], join, &first[i],
                             span->end_ms - span->start_ms);
        parts.list[i] = &parts.victims[i];
    }
    evidence.n_victims = named;
    evidence.victims = parts.list;
    snprintf(subject, sizeof(subject), "%s/%s", evidence.switch_, evidence.port);
    snprintf(message, sizeof(message),
             "%s %s > %s %s carries %zu elephants while a link of %s carries %llu",
             evidence.switch_, evidence.port, evidence.peer, evidence.peer_port, count, group->name,
             (unsigned long long)least);
    ft_emit_event(&event, FABRICTRACE__KIND__KIND_COLLISION,
                  FABRICTRACE__SEVERITY__SEVERITY_WARNING, ft_topology_fabric(t), span->start_ms,
                  span->end_ms);
    event.subject = subject;
    event.message = message;
    event.evidence = &evidence;
    ft_events_raise_pausing(events, window, &event);
}

/* Where what was raised before is looked for. */
struct search {
    const struct ft_loads *loads;
    const struct ft_join *join;
};

/* The first elephant of a link, which are sorted by link. */
static size_t first_of(const struct ft_loads *loads, uint32_t port)
{
    const struct ft_elephant key = {.port = port, .lo_bps = UINT64_MAX};

    return ft_lower_bound(&key, loads->elephants, loads->elephant_count, sizeof(key),
                          by_link_and_rate);
}

static bool is_on(const struct search *s, uint32_t port, const struct ft_tuple *tuple)
{
    const struct ft_loads *l = s->loads;

    for (size_t i = first_of(l, port); i < l->elephant_count && l->elephants[i].port == port; i++) {
        const struct ft_elephant *e = &l->elephants[i];
        struct ft_tuple said;

        if (!e->said) {
            if (ft_tuple_equal(&ft_join_at(s->join, e->flow)->tuple, tuple))
                return true;
        } else if (e->said->flow && ft_flow_to_tuple(e->said->flow, &said) == 0 &&
                   ft_tuple_equal(&said, tuple)) {
            return true;
        }
    }
    return false;
}

/* Whether a flow has another link of the group now. */
static bool has_moved(const struct search *s, const struct ft_group *group, uint32_t port,
                      const Fabrictrace__Flow *flow)
{
    struct ft_tuple tuple;

    if (!flow || ft_flow_to_tuple(flow, &tuple) || is_on(s, port, &tuple))
        return false;
    for (uint32_t i = 0; i < group->link_count; i++)
        if (group->links[i] != port && is_on(s, group->links[i], &tuple))
            return true;
    return false;
}

/* That the link has fewer elephants may be a pause of their jobs. It is over where there are enough
 * of them and no link is better off, or those that met take other links, but for one at most. */
static bool is_over(void *arg, const Fabrictrace__Event *event)
{
    const struct search *s = arg;
    const struct ft_topology *t = ft_join_topology(s->join);
    const Fabrictrace__Evidence *e = event->evidence;
    uint32_t at = e && e->switch_ && e->port ? ft_topology_find_switch(t, e->switch_) : FT_NONE;
    uint32_t port = at != FT_NONE ? ft_topology_find_port(t, at, e->port) : FT_NONE;
    uint64_t left;

    if (port == FT_NONE || ft_topology_port(t, port)->group == FT_NONE ||
        s->loads->elephants_dropped > 0)
        return false;
    if (s->loads->link[port].elephants >= 2)
        return true;
    left = e->elephants;
    for (size_t i = 0; i < e->n_victims && left >= 2; i++)
        left -= has_moved(s, ft_topology_group(t, ft_topology_port(t, port)->group), port,
                          e->victims[i]->flow);
    return left < 2;
}

void ft_collisions_raise(struct ft_loads *loads, const struct ft_join *join,
                         struct ft_events *events, uint32_t window, const struct ft_span *span,
                         uint32_t victims_max)
{
    const struct ft_elephant *e = loads->elephants;

    if (loads->elephant_count == 0)
        return;
    if (victims_max > FT_VICTIMS_MAX)
        victims_max = FT_VICTIMS_MAX;
    qsort(loads->elephants, loads->elephant_count, sizeof(*e), by_link_and_rate);
    for (size_t i = 0, n; i < loads->elephant_count; i += n) {
        for (n = 1; i + n < loads->elephant_count && e[i + n].port == e[i].port; n++)
            ;
        raise_one(loads, join, events, window, span, &e[i], n, n < victims_max ? n : victims_max);
    }
    ft_events_end(events, FABRICTRACE__KIND__KIND_COLLISION, window, span->end_ms, is_over,
                  &(struct search){loads, join});
}
