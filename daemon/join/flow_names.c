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

    return !name && flow->host ? flow->host->src_host : name;
}

const char *ft_flow_dst_host(const struct ft_join *join, const struct ft_flow *flow)
{
    const char *name = host_of(join, flow->dst_nic);

    return !name && flow->host ? flow->host->dst_host : name;
}

uint32_t ft_flow_dst_qp(const struct ft_flow *flow)
{
    if (flow->host && flow->host->qp_remote != FT_NONE)
        return flow->host->qp_remote;
    for (unsigned slot = 0; flow->numbers && slot < 2; slot++)
        if (flow->numbers->slots[slot].samples && !flow->numbers->slots[slot].broken)
            return flow->numbers->slots[slot].qp;
    return 0;
}
