// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/flow_numbers.h"

#include <math.h>

void ft_flow_take_numbers(struct ft_join *j, struct ft_flow *flow, const struct ft_numbered *o,
                          unsigned slot)
{
    struct ft_flow_numbers *n = ft_flow_numbers(flow);

    if (!n) {
        size_t before = ft_flow_beside(flow);

        /* Evidence goes first: it keeps half of the room for itself. */
        if (j->config.beside_max && j->beside >= j->config.beside_max / 2)
            return;
        n = ft_flow_add_part(flow, FT_FLOW_NUMBERS);
        if (!n)
            return;
        ft_join_recount(j, flow, before);
    }
    if (o->reads)
        n->read_window = flow->window;
    ft_numbers_add(&n->slots[slot], o, flow->source_routed ? NULL : j->holds);
}

/* Who READs now and then does so unsampled, too. */
#define READS_FOR_WINDOWS 60

/* RoCEv2 answers on the reverse tuple with the same source port. NULL: not in that window. */
static const struct ft_flow *reverse_flow(const struct ft_join *j, const struct ft_flow *flow,
                                          uint32_t window)
{
    struct ft_tuple tuple = flow->tuple;
    const struct ft_flow *back;

    tuple.src = flow->tuple.dst;
    tuple.dst = flow->tuple.src;
    back = ft_table_find(j->flows, &tuple);
    return back && back->window >= window && back->window <= window + 1 ? back : NULL;
}

/* What samples of the other direction say of the same window; NULL: nothing. */
static const struct ft_numbers *reverse_of(const struct ft_join *j, const struct ft_flow *flow,
                                           uint32_t window)
{
    const struct ft_flow *back = reverse_flow(j, flow, window);
    const struct ft_flow_numbers *numbers = back ? ft_flow_numbers(back) : NULL;

    return numbers ? &numbers->slots[window & 1] : NULL;
}

bool ft_join_answered(const struct ft_join *j, const struct ft_flow *flow, uint32_t window,
                      uint32_t *naks)
{
    const struct ft_flow *back = reverse_flow(j, flow, window);
    const struct ft_flow_numbers *numbers = back ? ft_flow_numbers(back) : NULL;

    if (!back || back->evidence.count == 0 || back->reason == FT_REASON_SEVERAL_NETWORKS)
        return false;
    /* Answers that are all positive have no numbers. */
    *naks = numbers ? numbers->slots[window & 1].naks : 0;
    return true;
}

bool ft_join_reads(const struct ft_flow *flow, uint32_t window)
{
    const struct ft_flow_numbers *n = ft_flow_numbers(flow);

    return n && n->read_window && (int32_t)(window - n->read_window) < READS_FOR_WINDOWS;
}

/* Whether samples of a source show the flow where its path begins. */
static bool enters_at(const struct ft_join *j, const struct ft_flow *flow, uint32_t source)
{
    const struct ft_evidence *ev = &flow->evidence;
    const struct ft_sighting *list = ev->size ? ev->list : ev->own;
    uint32_t out = flow->path.hop_count ? flow->path.hops[0].out : FT_NONE;
    uint32_t at;

    if (out == FT_NONE)
        return false;
    at = ft_topology_end_switch(j->t, out);
    for (uint16_t i = 0; i < ev->count; i++)
        if (list[i].source == source && ft_sighting_switch(&list[i]) == at)
            return true;
    return false;
}

size_t ft_join_again(const struct ft_join *j, const struct ft_flow *flow, uint32_t window,
                     struct ft_join_again out[FT_NUMBERS_ROWS])
{
    const struct ft_flow_numbers *n = ft_flow_numbers(flow);
    size_t count = 0;

    for (int i = 0; n && i < FT_NUMBERS_ROWS; i++) {
        const struct ft_numbers_row *row = &n->slots[window & 1].rows[i];

        if (row->samples)
            out[count++] =
                (struct ft_join_again){.source = row->source,
                                       .samples = row->samples,
                                       .back = row->back,
                                       .overtaken = ft_holds_overtaken(j->holds, row->source),
                                       .enters = enters_at(j, flow, row->source)};
    }
    return count;
}

/* Rows of sources at switches that had an outage, a bit each. */
static uint8_t rows_away(const struct ft_join *j, const struct ft_flow *flow,
                         const struct ft_numbers *n)
{
    const struct ft_evidence *ev = &flow->evidence;
    const struct ft_sighting *list = ev->size ? ev->list : ev->own;
    const bool *outages = ft_outages_had(j->outages);
    uint8_t away = 0;

    for (uint16_t i = 0; i < ev->count; i++) {
        if (ft_sighting_switch(&list[i]) & FT_SWITCH_UNKNOWN ||
            !outages[ft_sighting_switch(&list[i])])
            continue;
        for (unsigned k = 0; k < FT_NUMBERS_ROWS; k++)
            if (list[i].source == n->rows[k].source)
                away |= (uint8_t)(1u << k);
    }
    return away;
}

bool ft_flow_number(const struct ft_join *j, struct ft_flow *flow, uint32_t window,
                    uint64_t samples, uint64_t *bytes)
{
    unsigned slot = window & 1;
    struct ft_flow_numbers *n = ft_flow_numbers(flow);
    const struct ft_numbers *of;

    if (!n)
        return false;
    of = &n->slots[slot];
    n->samples = of->broken ? 0 : of->samples;
    n->starts = of->starts;
    n->back = of->back;
    n->naks = of->naks;
    n->rnrs = of->rnrs;
    n->no_credits = of->no_credits;
    n->goes_on[!slot] = flow->window > window && ft_numbers_go_on(of, &n->slots[!slot]);
    n->sent = (struct ft_numbers_sent){.packets = 0};
    /* The numbers continue over all paths of the queue pair, and this flow may be one of them. */
    if (flow->source_routed ||
        !ft_numbers_sent(
            of, j->holds,
            (struct ft_numbers_beside){n->goes_on[slot], n->goes_on[!slot], rows_away(j, flow, of)},
            (double)*bytes, samples, &n->sent))
        return false;
    if ((!of->responses && ft_join_reads(flow, window)) ||
        !ft_numbers_are_own(of, reverse_of(j, flow, window))) {
        n->sent = (struct ft_numbers_sent){.packets = 0};
        return false;
    }
    *bytes = (uint64_t)n->sent.bytes;
    return true;
}
