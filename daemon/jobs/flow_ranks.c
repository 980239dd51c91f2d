// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/jobs/flow_ranks.h"

#include "daemon/join/flow_names.h"

size_t ft_flow_ranks(const struct ft_join *join, const struct ft_flow *flow,
                     struct ft_rank_pair pairs[FT_RANKS_CANDIDATES_MAX], bool *more)
{
    const struct ft_flow_host *host = ft_flow_host(flow);
    /* Agents name hosts in both kinds of record; the topology may call them otherwise. */
    const struct ft_rank_query query = {
        .src_host = host && host->src_host ? host->src_host : ft_flow_src_host(join, flow),
        .dst_host = host && host->dst_host ? host->dst_host : ft_flow_dst_host(join, flow),
        .src_pid = host ? host->pid : 0,
        .src_qp = host ? host->qp_local : FT_NONE,
    };

    *more = false;
    if (!ft_join_ranks(join) || ft_role_answers(flow->role))
        return 0;
    return ft_ranks_match(ft_join_ranks(join), &query, pairs, more);
}
