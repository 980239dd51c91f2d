// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/flow_tunnel.h"

#include "daemon/join/hints.h"

#define PROTO_GRE 47

/* Without memory the flow has no tunnel; the next sample tries again. */
static void begin(struct ft_join *j, struct ft_flow *flow, const struct ft_tuple *outer,
                  int64_t last_ms)
{
    size_t before = ft_flow_beside(flow);
    struct ft_flow_tunnel *tunnel =
        ft_join_is_full(j) ? NULL : ft_flow_add_part(flow, FT_FLOW_TUNNEL);

    if (!tunnel)
        return;
    *tunnel = (struct ft_flow_tunnel){.outer = *outer, .last_ms = last_ms};
    ft_join_recount(j, flow, before);
    flow->published = 0;
}

static bool say_otherwise(struct ft_flow_tunnel *tunnel, int64_t ms)
{
    if (ms <= tunnel->other_ms)
        return false;
    tunnel->other_ms = ms;
    return true;
}

/* Of two headers the one of the newer sample counts, in whatever order they come. Whether anything
 * changed but the time. */
static bool go_on(struct ft_flow_tunnel *tunnel, const struct ft_tuple *outer, int64_t last_ms)
{
    bool newer = last_ms > tunnel->last_ms;
    int64_t older_ms = newer ? tunnel->last_ms : last_ms;
    bool changed = false;

    if (!ft_tuple_equal(&tunnel->outer, outer)) {
        changed = say_otherwise(tunnel, older_ms) || newer;
        if (!newer)
            return changed;
        tunnel->outer = *outer;
        tunnel->learnt = false;
    }
    if (newer)
        tunnel->last_ms = last_ms;
    return changed;
}

/* Where a flow comes from a host or goes to one, the tunnel may begin behind the sample, or have
 * ended before it. */
static bool is_edge(const struct ft_join *j, uint32_t end)
{
    return end != FT_NONE && !ft_topology_is_fabric_end(j->t, end);
}

void ft_flow_take_tunnel(struct ft_join *j, struct ft_flow *flow, const struct ft_observation *o,
                         uint32_t in, uint32_t out)
{
    bool inside = o->rest && o->rest->has_outer, changed = false;
    struct ft_flow_tunnel *tunnel = ft_flow_tunnel(flow);

    if (inside && tunnel) {
        changed = go_on(tunnel, &o->rest->outer, o->last_ms);
    } else if (inside) {
        begin(j, flow, &o->rest->outer, o->last_ms);
        changed = true;
    } else if (tunnel && !is_edge(j, in) && !is_edge(j, out)) {
        changed = say_otherwise(tunnel, o->last_ms);
    }
    /* What switches were asked of is no longer known to be what they see. */
    if (changed && j->hints)
        ft_hints_drop_answers(j->hints, &flow->tuple);
}

/* An IPv6 header around IP or Ethernet may be SRv6's, whose destination is another one behind each
 * segment. */
static bool keeps_its_ends(const struct ft_tuple *outer)
{
    return outer->proto == FT_PROTO_UDP || outer->proto == PROTO_GRE || ft_ip_is4(&outer->dst);
}

const struct ft_tuple *ft_flow_outer(const struct ft_join *j, const struct ft_flow *flow)
{
    const struct ft_flow_tunnel *tunnel = ft_flow_tunnel(flow);

    if (!tunnel || flow->evidence.count == 0 || !keeps_its_ends(&tunnel->outer) ||
        ft_flow_seen_ms(flow) - tunnel->last_ms > j->config.policy.hold_down_ms ||
        (tunnel->other_ms && tunnel->last_ms - tunnel->other_ms < j->config.evidence_ms))
        return NULL;
    return &tunnel->outer;
}
