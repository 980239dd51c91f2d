// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/plans/bearing.h"

#include "daemon/join/flow_path.h"
#include <string.h>

int64_t ft_bearing_sampled_ms(const struct ft_flow *flow)
{
    const struct ft_evidence *ev = &flow->evidence;
    const struct ft_sighting *list = ev->size ? ev->list : ev->own;
    int64_t newest = INT64_MIN;

    for (uint16_t i = 0; i < ev->count; i++)
        if (list[i].last_ms > newest)
            newest = list[i].last_ms;
    return newest;
}

/* Whether a hop that is known contradicts the prediction: another switch, or another port. */
static bool differs(const struct ft_topology *t, const struct ft_hop *hop,
                    const Fabrictrace__Hop *predicted)
{
    uint32_t known = ft_is_port(hop->out) ? hop->out : hop->in;
    const struct ft_port *port = ft_is_port(known) ? ft_topology_port(t, known) : NULL;

    if (!port)
        return false;
    if (!predicted->switch_ ||
        strcmp(ft_topology_switch(t, port->switch_id)->name, predicted->switch_) != 0)
        return true;
    return known == hop->out && predicted->out && strcmp(port->name, predicted->out) != 0;
}

static bool any_differs(const struct ft_topology *t, const struct ft_path *path,
                        Fabrictrace__Hop *const *predicted, size_t count)
{
    if (path->hop_count != count)
        return true;
    for (uint32_t i = 0; i < path->hop_count; i++)
        if (differs(t, &path->hops[i], predicted[i]))
            return true;
    return false;
}

enum ft_bearing ft_bearing_judge(const struct ft_join *join, const struct ft_flow *flow,
                                 int64_t after_ms, Fabrictrace__Hop *const *predicted, size_t count)
{
    const struct ft_topology *t = ft_join_topology(join);
    struct ft_judgement judged;
    struct ft_path path;

    /* Where no path was predicted, none is another. */
    if (count == 0 || ft_bearing_sampled_ms(flow) < after_ms)
        return FT_BEARING_NONE;
    if (flow->state == FT_PATH_RESOLVED && ft_join_path_ms(join, flow) >= after_ms) {
        path = ft_flow_path(t, flow);
        return any_differs(t, &path, predicted, count) ? FT_BEARING_OTHER : FT_BEARING_SAME;
    }
    /* What is certain of a path without its rest, if none of it is of the time before. */
    if (flow->state == FT_PATH_PARTIAL && flow->reason != FT_REASON_CHANGING &&
        ft_evidence_begun_since(&flow->evidence, after_ms)) {
        ft_join_judge(join, flow, &judged);
        if (judged.state == FT_PATH_PARTIAL && any_differs(t, &judged.path, predicted, count))
            return FT_BEARING_OTHER;
    }
    return FT_BEARING_UNKNOWN;
}
