// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/flow_networks.h"

#include "daemon/join/hints.h"

bool ft_flow_is_several(const struct ft_flow *flow)
{
    const struct ft_flow_networks *n = ft_flow_networks(flow);

    return n && n->several;
}

static void remove_parts(struct ft_join *j, struct ft_flow *flow)
{
    static const enum ft_flow_part parts[] = {FT_FLOW_MOVES, FT_FLOW_NUMBERS, FT_FLOW_PATH,
                                              FT_FLOW_CLUMPS};
    size_t before = ft_flow_beside(flow);

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        ft_flow_remove_part(flow, parts[i]);
    ft_join_recount(j, flow, before);
}

/* What is known of the flow is of one of them, and nobody knows which. Its sightings stay for the
 * sums of the window. */
static void begin_several(struct ft_join *j, struct ft_flow *flow)
{
    struct ft_flow_networks *n;

    if (j->hints)
        ft_hints_drop_answers(j->hints, &flow->tuple);
    flow->bytes_by = FT_RATE_SAMPLES;
    flow->path.hop_count = 0;
    flow->published = 0;
    remove_parts(j, flow);
    n = ft_flow_networks(flow);
    n->several = true;
    j->stats.several_networks++;
}

bool ft_flow_take_network(struct ft_join *j, struct ft_flow *flow, uint32_t network,
                          int64_t last_ms)
{
    struct ft_flow_networks *n = ft_flow_networks(flow);
    size_t before = ft_flow_beside(flow);

    if (network == 0)
        return true;
    if (!n) {
        n = ft_join_is_full(j) ? NULL : ft_flow_add_part(flow, FT_FLOW_NETWORKS);
        if (!n)
            return false;
        ft_join_recount(j, flow, before);
        *n = (struct ft_flow_networks){.network = network, .last_ms = last_ms};
        return true;
    }
    if (n->network == network) {
        n->last_ms = last_ms > n->last_ms ? last_ms : n->last_ms;
        return true;
    }
    /* It has another one now. */
    if (!n->several && last_ms - n->last_ms >= j->config.evidence_ms) {
        n->network = network;
        n->last_ms = last_ms;
        return true;
    }
    if (last_ms > n->last_ms) {
        n->other = n->network;
        n->other_ms = n->last_ms;
        n->network = network;
        n->last_ms = last_ms;
    } else if (last_ms >= n->other_ms) {
        n->other = network;
        n->other_ms = last_ms;
    }
    if (!n->several)
        begin_several(j, flow);
    return true;
}

bool ft_flow_age_networks(struct ft_join *j, struct ft_flow *flow, uint32_t window, int64_t now_ms)
{
    struct ft_flow_networks *n = ft_flow_networks(flow);
    size_t before = ft_flow_beside(flow);

    if (!n || !n->several || n->other_ms >= (int64_t)window * j->config.window_ms ||
        now_ms - n->other_ms < j->config.evidence_ms)
        return false;
    n->several = false;
    n->other = 0;
    ft_evidence_free(&flow->evidence);
    ft_evidence_init(&flow->evidence);
    ft_join_recount(j, flow, before);
    remove_parts(j, flow);
    flow->path.hop_count = 0;
    flow->first_ms = flow->last_ms;
    flow->role = FT_ROLE_UNKNOWN;
    flow->moved = flow->learnt = flow->first_path_counted = false;
    flow->left_out = 0;
    flow->seconds = 0;
    return true;
}
