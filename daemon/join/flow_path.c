// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/flow_path.h"

#include "daemon/join/flow_parts.h"

struct ft_path ft_flow_path(const struct ft_topology *t, const struct ft_flow *flow)
{
    const struct ft_path *complete = ft_flow_part(flow, FT_FLOW_PATH);
    struct ft_path path = {.hop_count = flow->path.hop_count};
    uint32_t in = flow->path.in;

    if (complete)
        return *complete;
    for (uint32_t h = 0; h < path.hop_count; h++) {
        path.hops[h] = (struct ft_hop){in, flow->path.hops[h].out};
        if (h + 1 < path.hop_count)
            in = ft_topology_port(t, path.hops[h].out)->peer;
    }
    return path;
}

/* Whether each hop begins where the topology has the link before it lead. */
static bool follows_links(const struct ft_topology *t, const struct ft_path *path)
{
    for (uint32_t h = 0; h + 1 < path->hop_count; h++)
        if (!ft_is_port(path->hops[h].out) ||
            ft_topology_port(t, path->hops[h].out)->peer != path->hops[h + 1].in)
            return false;
    return true;
}

void ft_flow_set_path(const struct ft_topology *t, struct ft_flow *flow, const struct ft_path *path)
{
    struct ft_path *complete;

    flow->path.hop_count = path->hop_count;
    flow->path.in = path->hops[0].in;
    for (uint32_t h = 0; h < path->hop_count; h++)
        flow->path.hops[h].out = path->hops[h].out;
    if (follows_links(t, path)) {
        ft_flow_remove_part(flow, FT_FLOW_PATH);
        return;
    }
    complete = ft_flow_add_part(flow, FT_FLOW_PATH);
    if (complete)
        *complete = *path;
    else
        flow->path.hop_count = 0;
}
