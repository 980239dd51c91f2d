// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/flow_names.h"
#include "daemon/spread/spread_impl.h"
#include "lib/base/table.h"

#define QP_BITS 24

bool ft_spread_add_qp(struct ft_spread *s, const struct ft_topology *t, const struct ft_flow *flow,
                      const struct ft_spread_stats *p)
{
    uint32_t number = ft_flow_dst_qp(flow);
    struct ft_spread_key key = {.a = ft_topology_nic(t, flow->src_nic)->host_id,
                                .b = (uint64_t)flow->dst_nic << QP_BITS | number,
                                .kind = FABRICTRACE__SPREAD_OF__SPREAD_OF_QP,
                                .group = p->group};
    struct ft_spread_qp *q;
    bool fresh;

    if (number == 0 || number >> QP_BITS)
        return false;
    q = ft_table_insert(s->qps, &key, &fresh);
    if (q && fresh) {
        q->entry.stats = ft_spread_stats_new(s, t, p->group, true);
        if (!q->entry.stats) {
            ft_table_remove(s->qps, q);
            q = NULL;
        }
    }
    if (!q) {
        s->refused++;
        return false;
    }
    if (fresh)
        q->flow = flow->tuple;
    q->srcs |= !ft_ip_equal(&q->flow.src, &flow->tuple.src);
    q->dsts |= !ft_ip_equal(&q->flow.dst, &flow->tuple.dst);
    q->sports |= q->flow.sport != flow->tuple.sport;
    if (ft_flow_job(flow))
        q->job = ft_flow_job(flow);
    ft_spread_add(q->entry.stats, p, t);
    return true;
}

/* What all of its flows have in common. */
static void fill_flow(const struct ft_spread_qp *q, Fabrictrace__Flow *out)
{
    ft_emit_tuple(out, &q->flow);
    out->has_sport = !q->sports;
    if (q->srcs) {
        out->has_src = false;
        out->src.len = 0;
    }
    if (q->dsts) {
        out->has_dst = false;
        out->dst.len = 0;
    }
}

/* Of flows that each stay on a path the queue pair takes another one with each packet, where they
 * alternate. */
static enum ft_alternation alternate(struct ft_spread_stats *p, uint32_t links, double *moved_p)
{
    enum ft_alternation alternation = ft_spread_alternation(p->links, links, moved_p);

    if (alternation != FT_ALTERNATION_SPRAYED)
        return alternation;
    /* Of flows that are sprayed themselves, samples are counted as they are. */
    if (p->sprayed)
        return alternation;
    p->sprayed = p->flows;
    for (uint32_t i = 0; i < links; i++) {
        p->links[i].trials = p->links[i].samples;
        p->links[i].stays = 0;
        p->variance += (double)p->links[i].samples;
    }
    return alternation;
}

static void publish(struct ft_spread *s, struct ft_spread_qp *q, const struct ft_topology *t,
                    const struct ft_span *span, const struct ft_emitter *emitter)
{
    struct ft_spread_parts parts = {.out = FABRICTRACE__SPREAD__INIT};
    struct ft_spread_stats *p = q->entry.stats;
    uint32_t dst_nic = (uint32_t)(q->entry.key.b >> QP_BITS);
    Fabrictrace__Spread *out = &parts.out;
    enum ft_alternation alternation;
    Fabrictrace__Flow flow;
    double moved_p;

    alternation = alternate(p, ft_topology_group(t, p->group)->link_count, &moved_p);
    ft_spread_fill(s, &parts, t, p);
    ft_spread_fill_whole(s, out, &q->entry, t);
    fill_flow(q, &flow);
    out->has_of = true;
    out->of = FABRICTRACE__SPREAD_OF__SPREAD_OF_QP;
    out->flow = &flow;
    out->has_dst_qp = true;
    out->dst_qp = (uint32_t)q->entry.key.b & ((UINT32_C(1) << QP_BITS) - 1);
    out->src_host = ft_spread_text(ft_topology_host(t, (uint32_t)q->entry.key.a)->name);
    out->dst_host = ft_spread_text(ft_topology_host(t, ft_topology_nic(t, dst_nic)->host_id)->name);
    out->job = ft_spread_text(q->job);
    ft_spread_fill_alternation(out, alternation, moved_p);
    ft_spread_hand_on(s, &parts, t, span, emitter);
}

static bool is_spread(const struct ft_spread_stats *p, const struct ft_topology *t)
{
    uint32_t links = ft_topology_group(t, p->group)->link_count, seen = 0;

    for (uint32_t i = 0; i < links; i++)
        seen += p->links[i].samples > 0;
    return p->flows > 1 || seen > 1;
}

bool ft_spread_step_qps(struct ft_spread *s, const struct ft_topology *t,
                        const struct ft_span *span, const struct ft_emitter *emitter)
{
    struct ft_spread_qp *q;

    while ((q = ft_table_next(s->qps, &s->qp_cursor)))
        if (is_spread(q->entry.stats, t)) {
            publish(s, q, t, span, emitter);
            return true;
        }
    return false;
}
