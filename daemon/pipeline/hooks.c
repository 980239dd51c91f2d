// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdio.h>

#include "daemon/diagnosis/rhythms.h"
#include "daemon/join/flow_path.h"
#include "daemon/pipeline/pipeline_impl.h"

/* Two switches see one packet within this time, give or take their reporting. */
#define ONE_WAY_MS 2000

static void note_first_path(struct ft_pipeline *p, struct ft_flow *flow)
{
    int64_t took_ms = p->now_ms - flow->first_ms;

    /* The clock of a poller may be a little ahead. */
    if (took_ms < 0)
        took_ms = 0;
    if (flow->first_path_counted || flow->evidence.count == 0)
        return;
    flow->first_path_counted = true;
    p->stats.first_paths++;
    p->stats.first_path_sum_ms += took_ms;
    if (took_ms > p->stats.first_path_max_ms)
        p->stats.first_path_max_ms = took_ms;
}

/* At a start, or after a change of the topology, all flows are news at once: beyond a rate they
 * wait for the close of a window, which publishes them with their rates, so that what comes
 * meanwhile is not late. */
static bool may_publish(struct ft_pipeline *p)
{
    if (p->news_second != p->now_ms / 1000) {
        p->news_second = p->now_ms / 1000;
        p->news = 0;
    }
    if (p->config.news_max && p->news >= p->config.news_max)
        return false;
    p->news++;
    return true;
}

void ft_pipeline_on_judged(void *arg, struct ft_flow *flow)
{
    struct ft_pipeline *p = arg;

    if (flow->state == FT_PATH_RESOLVED)
        note_first_path(p, flow);
    if (may_publish(p)) {
        ft_window_publish_path(p->stages.window, flow, p->now_ms);
        return;
    }
    flow->published = 0;
    p->stats.deferred_paths++;
}

struct hop_list {
    Fabrictrace__Hop hops[FT_PATH_HOPS_MAX];
    Fabrictrace__Hop *list[FT_PATH_HOPS_MAX];
};

static size_t list_hops(struct hop_list *l, const struct ft_join *join, const struct ft_flow *flow,
                        const struct ft_path *path)
{
    for (uint32_t h = 0; h < path->hop_count; h++) {
        ft_emit_hop(&l->hops[h], join, flow, &path->hops[h]);
        l->list[h] = &l->hops[h];
    }
    return path->hop_count;
}

void ft_pipeline_on_moved(void *arg, struct ft_flow *flow, const struct ft_path *before,
                          int64_t now_ms)
{
    struct ft_pipeline *p = arg;
    Fabrictrace__Event event;
    Fabrictrace__Evidence evidence = FABRICTRACE__EVIDENCE__INIT;
    Fabrictrace__Flow tuple;
    struct ft_flow_tunnel *tunnel = ft_flow_tunnel(flow);
    const struct ft_path now = ft_flow_path(ft_join_topology(p->stages.join), flow);
    struct hop_list old_hops, new_hops;
    char subject[FT_TUPLE_TEXT_BYTES], message[FT_TUPLE_TEXT_BYTES + 64], text[FT_TUPLE_TEXT_BYTES];

    flow->learnt = false;
    if (tunnel)
        tunnel->learnt = false;
    ft_tuple_format_key(&flow->tuple, subject);
    ft_tuple_format(&flow->tuple, text);
    snprintf(message, sizeof(message), "%s changed its path", text);
    ft_emit_tuple(&tuple, &flow->tuple);
    evidence.flow = &tuple;
    evidence.n_old_hops = list_hops(&old_hops, p->stages.join, flow, before);
    evidence.old_hops = old_hops.list;
    evidence.n_new_hops = list_hops(&new_hops, p->stages.join, flow, &now);
    evidence.new_hops = new_hops.list;
    ft_emit_event(&event, FABRICTRACE__KIND__KIND_PATH_CHANGE, FABRICTRACE__SEVERITY__SEVERITY_INFO,
                  ft_topology_fabric(p->topology), flow->path_since_ms, now_ms);
    event.subject = subject;
    event.message = message;
    event.evidence = &evidence;
    ft_events_once(p->stages.events, &event);
}

/* Where the flow entered the fabric, for the learning of attachments. That it enters at two
 * switches at once means that one of them is not its first. */
void ft_pipeline_on_entered(void *arg, const struct ft_observation *o, const struct ft_flow *flow,
                            uint32_t in)
{
    struct ft_pipeline *p = arg;
    const struct ft_evidence *ev = &flow->evidence;
    const struct ft_sighting *list = ev->size ? ev->list : ev->own;
    bool twice = false;

    if (!p->edge || !p->edge[in])
        return;
    for (uint16_t i = 0; i < ev->count; i++) {
        uint32_t other = ft_sighting_in(&list[i]);

        twice |= other != in && ft_is_port(other) && p->edge[other] &&
                 list[i].last_ms > o->last_ms - ONE_WAY_MS;
    }
    ft_discovery_entered(p->stages.discovery, &o->tuple.src, &o->agent, o->in_ifindex, o->last_ms,
                         twice);
}

/* What pairing found out goes the way of what hosts say. */
void ft_pipeline_on_paired(void *arg, const struct ft_host_report *report)
{
    struct ft_pipeline *p = arg;

    if (!ft_pipeline_has_flow(p, &report->tuple))
        return;
    ft_pipeline_flush(p);
    ft_join_report(p->stages.join, report);
}

void ft_pipeline_on_withdrawn(void *arg, const struct ft_tuple *tuple)
{
    struct ft_pipeline *p = arg;
    int64_t window_ms = p->config.join.window_ms;
    struct ft_flow *flow;
    struct ft_span span;

    ft_pipeline_flush(p);
    flow = ft_join_withdraw(p->stages.join, tuple);
    if (!flow || !ft_flow_host(flow)->shown)
        return;
    /* The window that its rate is of, as everywhere. */
    span.start_ms = (flow->bytes_window ? flow->bytes_window : flow->window) * window_ms;
    span.end_ms = span.start_ms + window_ms;
    ft_emit_path(&p->emitter, p->stages.join, flow, &span);
    ft_flow_host(flow)->shown = false;
    flow->published = flow->ended ? (uint8_t)(flow->state + 1) : 0;
}

/* Whether hosts of the topology list their queue pairs, so many NICs at a time. */
bool ft_pipeline_on_cover(void *arg, uint32_t *at, uint32_t count)
{
    const struct ft_pipeline *p = arg;
    const struct ft_topology *t = p->topology;

    for (; count > 0 && *at < ft_topology_nics(t); count--, ++*at) {
        const struct ft_nic *nic = ft_topology_nic(t, *at);
        bool known = false;

        for (uint32_t k = 0; k < nic->address_count; k++)
            known |= ft_pairing_knows(p->stages.pairing, &nic->addresses[k]);
        if (!known)
            return false;
    }
    if (*at >= ft_topology_nics(t))
        *at = UINT32_MAX;
    return true;
}

void ft_pipeline_on_of_job(void *arg, const struct ft_observation *o, const char *job)
{
    const struct ft_pipeline *p = arg;

    ft_rhythms_take(p->stages.rhythms, job, o);
}
