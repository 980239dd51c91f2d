// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/observed.h"

#include <errno.h>

#include "proto/record.h"

int ft_observed_from(const Fabrictrace__Observation *o, struct ft_observed *out)
{
    struct ft_observed r = {
        .time_ms = o->time_ms,
        .first_ms = o->has_first_ms ? o->first_ms : o->time_ms,
        .last_ms = o->has_last_ms ? o->last_ms : o->time_ms,
        .interval_ms = o->interval_ms,
        .in_ifindex = o->in_ifindex,
        .out_ifindex = o->out_ifindex,
        .sub_agent = o->sub_agent,
        .source_type = o->source_type,
        .source_index = o->source_index,
        .point = o->point,
        .fate = o->fate,
        .discard_reason = o->discard_reason,
        .samples = o->samples,
        .ce_samples = o->ce_samples,
        .data_samples = o->data_samples,
        .ack_samples = o->ack_samples,
        .cnp_samples = o->cnp_samples,
        .packets = o->packets,
        .bytes = o->bytes,
        .dst_qp = o->dst_qp,
        .ttl = o->ttl,
        .queue_max_bytes = o->queue_max_bytes,
        .transit_max_ns = o->transit_max_ns,
        .psn = o->psn,
        .psn_span = o->psn_span,
        .psn_back_samples = o->psn_back_samples,
        .message_starts = o->message_starts,
        .frame_min_bytes = o->data_samples ? o->frame_min_bytes : 0,
        .frame_max_bytes = o->data_samples ? o->frame_max_bytes : 0,
        .nak_samples = o->nak_samples,
        .rnr_samples = o->rnr_samples,
        .no_credit_samples = o->no_credit_samples,
        .has_psn = o->has_psn,
        .has_packets = o->has_packets,
        .has_dst_qp = o->has_dst_qp,
        .has_ttl = o->has_ttl,
        .has_queue = o->has_queue_max_bytes,
        .has_transit = o->has_transit_max_ns,
        .vni = o->vni,
        .has_vni = o->has_vni,
        .source_routed = o->source_routed,
        .read_responses = o->read_responses,
        .read_requests = o->read_requests,
    };

    if (!o->flow || !o->has_time_ms || !o->has_agent ||
        ft_ip_from_bytes(o->agent.data, o->agent.len, &r.agent) ||
        ft_flow_to_tuple(o->flow, &r.tuple))
        return -EINVAL;
    r.has_outer = o->outer && ft_flow_to_tuple(o->outer, &r.outer) == 0;
    *out = r;
    return 0;
}
