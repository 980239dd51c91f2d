// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/window/victim.h"

#include "daemon/jobs/flow_ranks.h"
#include "daemon/join/flow_names.h"
#include "daemon/publish/emit.h"

void ft_victim_fill(Fabrictrace__Victim *v, Fabrictrace__Flow *tuple, const struct ft_join *join,
                    const struct ft_flow *flow, int64_t window_ms)
{
    struct ft_rank_pair pairs[FT_RANKS_CANDIDATES_MAX];
    struct ft_rate rate = ft_flow_rate(flow, window_ms);
    bool more;

    fabrictrace__victim__init(v);
    ft_emit_tuple(tuple, &flow->tuple);
    v->flow = tuple;
    v->has_rate_bps = v->has_rate_lo_bps = true;
    v->rate_bps = rate.bps;
    v->rate_lo_bps = rate.lo_bps;
    v->src_host = (char *)(uintptr_t)ft_flow_src_host(join, flow);
    v->dst_host = (char *)(uintptr_t)ft_flow_dst_host(join, flow);
    v->job = (char *)(uintptr_t)ft_flow_job(flow);
    if (ft_flow_ranks(join, flow, pairs, &more) == 1 && !more) {
        v->has_src_rank = v->has_dst_rank = true;
        v->src_rank = pairs[0].src;
        v->dst_rank = pairs[0].dst;
        v->comm_id = (char *)(uintptr_t)pairs[0].comm_id;
        if (!v->job)
            v->job = (char *)(uintptr_t)pairs[0].job;
    }
}
