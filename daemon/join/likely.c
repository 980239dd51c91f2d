// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/likely.h"

#include "daemon/join/hints.h"

/* A sample at the switch, of the present, that left by another port. */
static bool is_contradicted(const struct ft_join *join, const struct ft_flow *flow,
                            const struct ft_hint *hint)
{
    const struct ft_evidence *ev = &flow->evidence;
    const struct ft_sighting *list = ev->size ? ev->list : ev->own;

    for (uint16_t i = 0; i < ev->count; i++)
        if (list[i].past == FT_PRESENT && ft_sighting_switch(&list[i]) == hint->switch_id &&
            ft_sighting_out(&list[i]) != FT_NONE &&
            !ft_topology_ends_agree(ft_join_topology(join), ft_sighting_out(&list[i]), hint->out))
            return true;
    return false;
}

static size_t hints_of(const struct ft_join *join, const struct ft_flow *flow,
                       struct ft_hint list[FT_HINTS_FLOW])
{
    struct ft_hints *hints = ft_join_hints(join);
    size_t n = hints ? ft_hints_list(ft_hints_of(hints, &flow->tuple), list) : 0;

    for (size_t i = 0; i < n; i++)
        if (is_contradicted(join, flow, &list[i]))
            return 0;
    return n;
}

static bool is_between_hosts(const struct ft_flow *flow)
{
    return flow->src_nic != FT_NONE && flow->dst_nic != FT_NONE;
}

/* What the samples of a flow that is not resolved show, with hints or without. */
static bool weigh(const struct ft_join *join, const struct ft_flow *flow,
                  const struct ft_hint *hints, size_t count, struct ft_hinted *out)
{
    static const struct ft_path nothing = {.hop_count = 0};
    struct ft_judgement judged;
    struct ft_hinted_from from = {.t = ft_join_topology(join),
                                  .src_nic = flow->src_nic,
                                  .dst_nic = flow->dst_nic,
                                  .certain = &nothing};

    if (flow->state == FT_PATH_PARTIAL) {
        ft_join_judge(join, flow, &judged);
        from.certain = &judged.path;
        from.switches = judged.switches;
    }
    return ft_hinted_path(&from, hints, count, out);
}

/* While another topology is taken over, its ends are those of the one before. Where packets bear
 * their path no switch chooses it: there is nothing to ask, to learn or to probe. */
static bool is_open(const struct ft_join *join, const struct ft_flow *flow)
{
    return !ft_join_judging_all(join) && is_between_hosts(flow) && !flow->source_routed &&
           ((flow->state == FT_PATH_PARTIAL && flow->reason != FT_REASON_CHANGING) ||
            (flow->state == FT_PATH_UNRESOLVED && flow->reason == FT_REASON_NO_SAMPLES));
}

/* Adds what one of both says of the first switch that is not known yet, where it agrees with all
 * that is. */
static bool add(const struct ft_join *join, const struct ft_flow *flow,
                const struct ft_join_predictor *by, struct ft_hint list[FT_HINTS_FLOW], size_t n,
                struct ft_hinted *out)
{
    struct ft_hinted more;

    if (!by->predict || !by->predict(by->arg, join, flow, out->path.hops[out->ask].in, &list[n]) ||
        is_contradicted(join, flow, &list[n]) || !weigh(join, flow, list, n + 1, &more))
        return false;
    *out = more;
    return true;
}

/* Adds predictions, and where there is none what counters say, from the first switch on that
 * neither samples nor hints show. */
static void predict(const struct ft_join *join, const struct ft_flow *flow,
                    struct ft_hint list[FT_HINTS_FLOW], size_t n, struct ft_hinted *out)
{
    for (; n < FT_HINTS_FLOW && out->ask != FT_NONE; n++)
        if (!add(join, flow, ft_join_predictor(join), list, n, out) &&
            !add(join, flow, ft_join_inferrer(join), list, n, out))
            return;
}

static bool is_ready(const struct ft_join_predictor *by)
{
    return by->predict && (!by->is_ready || by->is_ready(by->arg));
}

static bool may_predict(const struct ft_join *join)
{
    return is_ready(ft_join_predictor(join)) || is_ready(ft_join_inferrer(join));
}

bool ft_flow_likely(const struct ft_join *join, const struct ft_flow *flow, struct ft_hinted *out)
{
    struct ft_hint list[FT_HINTS_FLOW];
    size_t n;

    if (!is_open(join, flow))
        return false;
    n = hints_of(join, flow, list);
    /* Nobody says more than samples do: there are no paths to walk for it. */
    if ((n == 0 && !may_predict(join)) || !weigh(join, flow, list, n, out))
        return false;
    predict(join, flow, list, n, out);
    return out->hinted;
}

bool ft_flow_unknown(const struct ft_join *join, const struct ft_flow *flow, uint32_t *switch_id,
                     uint32_t *in)
{
    static const struct ft_path nothing = {.hop_count = 0};
    struct ft_hint list[FT_HINTS_FLOW];
    struct ft_hinted hinted;

    if (flow->state == FT_PATH_RESOLVED && is_between_hosts(flow) && !flow->source_routed) {
        const struct ft_hinted_from from = {.t = ft_join_topology(join),
                                            .src_nic = flow->src_nic,
                                            .dst_nic = flow->dst_nic,
                                            .certain = &nothing};

        if (!ft_hinted_path(&from, NULL, 0, &hinted))
            return false;
    } else if (!is_open(join, flow) ||
               !weigh(join, flow, list, hints_of(join, flow, list), &hinted)) {
        return false;
    }
    if (hinted.ask == FT_NONE)
        return false;
    *in = hinted.path.hops[hinted.ask].in;
    *switch_id = ft_topology_port(ft_join_topology(join), *in)->switch_id;
    return true;
}
