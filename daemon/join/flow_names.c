// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/flow_names.h"

static const char *host_of(const struct ft_join *join, uint32_t nic)
{
    const struct ft_topology *t = ft_join_topology(join);

    return nic == FT_NONE ? NULL : ft_topology_host(t, ft_topology_nic(t, nic)->host_id)->name;
}

const char *ft_flow_src_host(const struct ft_join *join, const struct ft_flow *flow)
{
    const char *name = host_of(join, flow->src_nic);
    const struct ft_flow_host *said = ft_flow_host(flow);

    return !name && said ? said->src_host : name;
}

const char *ft_flow_dst_host(const struct ft_join *join, const struct ft_flow *flow)
{
    const char *name = host_of(join, flow->dst_nic);
    const struct ft_flow_host *said = ft_flow_host(flow);

    return !name && said ? said->dst_host : name;
}

const char *ft_flow_job(const struct ft_flow *flow)
{
    const struct ft_flow_host *said = ft_flow_host(flow);

    return said ? said->job : NULL;
}

uint32_t ft_flow_src_qp(const struct ft_flow *flow)
{
    const struct ft_flow_host *said = ft_flow_host(flow);

    return said ? said->qp_local : FT_NONE;
}

uint32_t ft_flow_dst_qp(const struct ft_flow *flow)
{
    const struct ft_flow_host *said = ft_flow_host(flow);
    const struct ft_flow_numbers *n = ft_flow_numbers(flow);

    if (said && said->qp_remote != FT_NONE)
        return said->qp_remote;
    for (unsigned slot = 0; n && slot < 2; slot++)
        if (n->slots[slot].samples && !n->slots[slot].broken)
            return n->slots[slot].qp;
    return 0;
}
