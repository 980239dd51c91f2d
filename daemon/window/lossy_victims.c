// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/window/lossy_victims.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/join/flow_names.h"
#include "daemon/join/flow_path.h"
#include "daemon/publish/emit.h"

#define PAIRS_SAID 3
#define NAME_BYTES 100

/* A flow that sends again, and between which hosts. */
struct victim {
    const struct ft_flow *flow;
    struct ft_hop hop; /* over the link */
    uint32_t src, dst; /* hosts; FT_NONE: not in the topology, so by address */
    uint32_t nth;      /* of its pair */
    unsigned windows;  /* in which it shows */
    uint32_t back;
};

static uint32_t host_of(const struct ft_topology *t, uint32_t nic)
{
    return nic == FT_NONE ? FT_NONE : ft_topology_nic(t, nic)->host_id;
}

static int by_pair(const struct victim *x, const struct victim *y)
{
    const struct ft_tuple *a = &x->flow->tuple, *b = &y->flow->tuple;
    int order = 0;

    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    if (x->dst != y->dst)
        return x->dst < y->dst ? -1 : 1;
    if (x->src == FT_NONE)
        order = memcmp(&a->src, &b->src, sizeof(a->src));
    if (order == 0 && x->dst == FT_NONE)
        order = memcmp(&a->dst, &b->dst, sizeof(a->dst));
    return order;
}

/* Those that send again most often first; then by tuple, so that the order is one. */
static int by_weight(const struct victim *x, const struct victim *y)
{
    if (x->windows != y->windows)
        return x->windows > y->windows ? -1 : 1;
    if (x->back != y->back)
        return x->back > y->back ? -1 : 1;
    return memcmp(&x->flow->tuple, &y->flow->tuple, sizeof(x->flow->tuple));
}

static int by_pair_and_weight(const void *a, const void *b)
{
    int order = by_pair(a, b);

    return order ? order : by_weight(a, b);
}

static int by_turn_and_weight(const void *a, const void *b)
{
    const struct victim *x = a, *y = b;

    if (x->nth != y->nth)
        return x->nth < y->nth ? -1 : 1;
    return by_weight(x, y);
}

static unsigned bits(unsigned n)
{
    return (unsigned)__builtin_popcount(n);
}

/* Whether the flow is one; what is known of it of other windows says nothing. */
static bool take(struct victim *v, const struct ft_join *join, const struct ft_flow *flow,
                 uint32_t link, uint32_t window)
{
    const struct ft_topology *t = ft_join_topology(join);
    const struct ft_flow_numbers *n = flow ? ft_flow_numbers(flow) : NULL;
    struct ft_path path;

    if (!n || n->marked_window != window || !(n->again | n->missed) ||
        flow->state != FT_PATH_RESOLVED)
        return false;
    path = ft_flow_path(t, flow);
    for (uint32_t h = 0; h < path.hop_count; h++)
        if (path.hops[h].out == link) {
            *v = (struct victim){.flow = flow,
                                 .hop = path.hops[h],
                                 .src = host_of(t, flow->src_nic),
                                 .dst = host_of(t, flow->dst_nic),
                                 .windows = bits(n->again | n->missed),
                                 .back = flow->bytes_window == window ? n->back : 0};
            return true;
        }
    return false;
}

static void name(struct ft_lossy_victims *v, const struct ft_join *join, const struct victim *from,
                 uint32_t window, int64_t window_ms)
{
    const struct ft_flow *flow = from->flow;
    const struct ft_flow_numbers *n = ft_flow_numbers(flow);
    Fabrictrace__Victim *out = &v->victims[v->count];
    Fabrictrace__Qp *qp = &v->qps[v->count];
    Fabrictrace__Hop hop;
    uint32_t naks = 0;

    ft_victim_fill(out, &v->flows[v->count], join, flow, window_ms);
    fabrictrace__qp__init(qp);
    qp->local = ft_flow_src_qp(flow);
    qp->remote = ft_flow_dst_qp(flow);
    qp->has_local = qp->local != FT_NONE;
    qp->has_remote = qp->remote != 0;
    if (qp->has_local || qp->has_remote)
        out->qp = qp;
    ft_emit_hop(&hop, join, flow, &from->hop);
    out->has_link_evidence = hop.has_evidence;
    out->link_evidence = hop.evidence;
    out->has_numbered_windows = out->has_resending_windows = true;
    out->numbered_windows = bits(n->numbered);
    out->resending_windows = bits(n->again);
    out->has_nak_windows = n->missed != 0;
    out->nak_windows = bits(n->missed);
    out->has_psn_back_samples = flow->bytes_window == window;
    out->psn_back_samples = from->back;
    out->has_nak_samples = ft_join_answered(join, flow, window, &naks) && naks > 0;
    out->nak_samples = naks;
    v->list[v->count++] = out;
}

/* Says which of its pair each is. */
static uint32_t count_pairs(struct victim *list, size_t n)
{
    uint32_t pairs = 0;

    for (size_t i = 0; i < n; i++) {
        bool same = i > 0 && by_pair(&list[i - 1], &list[i]) == 0;

        list[i].nth = same ? list[i - 1].nth + 1 : 0;
        pairs += !same;
    }
    return pairs;
}

void ft_lossy_victims_fill(struct ft_lossy_victims *v, const struct ft_join *join, uint32_t link,
                           const uint32_t *ids, size_t count, uint32_t window, int64_t window_ms,
                           uint32_t max)
{
    struct victim *list = calloc(count ? count : 1, sizeof(*list));
    size_t n = 0;

    v->count = v->all = v->pairs = 0;
    if (!list)
        return;
    for (size_t i = 0; i < count; i++)
        n += take(&list[n], join, ft_join_at(join, ids[i]), link, window);
    qsort(list, n, sizeof(*list), by_pair_and_weight);
    v->pairs = count_pairs(list, n);
    v->all = (uint32_t)n;
    qsort(list, n, sizeof(*list), by_turn_and_weight);
    for (size_t i = 0; i < n && i < max && i < FT_VICTIMS_MAX; i++)
        name(v, join, &list[i], window, window_ms);
    free(list);
}

/* The host's name, else its address. */
static void end_text(const char *host, const ProtobufCBinaryData *address, char *text, size_t size)
{
    if (host)
        snprintf(text, size, "%s", host);
    else if (!inet_ntop(address->len == 4 ? AF_INET : AF_INET6, address->data, text,
                        (socklen_t)size))
        snprintf(text, size, "?");
}

void ft_lossy_victims_text(const struct ft_lossy_victims *v, char *text, size_t size)
{
    uint32_t said = 0;
    size_t used = 0;

    text[0] = '\0';
    /* One of each pair comes first. */
    for (; said < v->pairs && said < v->count && said < PAIRS_SAID && used < size; said++) {
        const Fabrictrace__Victim *victim = v->list[said];
        char src[NAME_BYTES], dst[NAME_BYTES];

        end_text(victim->src_host, &victim->flow->src, src, sizeof(src));
        end_text(victim->dst_host, &victim->flow->dst, dst, sizeof(dst));
        used += (size_t)snprintf(text + used, size - used, "%s%s to %s", said ? ", " : "from ", src,
                                 dst);
    }
    if (said && said < v->pairs && used < size)
        snprintf(text + used, size - used, " and %u other pair%s of hosts", v->pairs - said,
                 v->pairs - said == 1 ? "" : "s");
}
