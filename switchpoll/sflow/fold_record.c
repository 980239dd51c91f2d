// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/packet.h"
#include "proto/record.h"
#include "proto/sflow.h"
#include "switchpoll/sflow/fold_impl.h"

static void fill_ports(Fabrictrace__Observation *o, const struct ft_fold_key *key)
{
    o->in_ifindex = (uint32_t)(key->ports >> 32);
    o->has_in_ifindex = o->in_ifindex != 0;
    o->out_ifindex = (uint32_t)key->ports;
    o->has_out_ifindex = o->out_ifindex != 0;
    o->has_point = true;
    o->point = (Fabrictrace__SamplingPoint)(key->fate >> 8 & 0xff);
    o->has_sub_agent = true;
    o->sub_agent = (uint32_t)(key->source >> 32);
    o->has_source_type = o->has_source_index =
        o->point == FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_UNKNOWN;
    o->source_type = key->fate >> 16 & 0xff;
    o->source_index = (uint32_t)key->source;
    o->has_fate = true;
    o->fate = (Fabrictrace__Fate)(key->fate & 0xff);
    o->has_discard_reason = o->fate == FABRICTRACE__FATE__FATE_DISCARDED;
    o->discard_reason = (uint32_t)(key->fate >> 32);
    o->has_vni = ft_fold_vni(key, &o->vni);
}

static void fill_sums(Fabrictrace__Observation *o, const struct ft_fold_sum *sum)
{
    o->has_first_ms = o->has_last_ms = true;
    o->first_ms = (uint64_t)sum->first.ms;
    o->last_ms = (uint64_t)sum->first.ms + sum->span_ms;
    o->has_samples = o->has_ce_samples = o->has_packets = o->has_bytes = true;
    o->samples = sum->samples;
    o->ce_samples = sum->ce_samples;
    o->packets = sum->packets;
    o->bytes = sum->bytes;
    o->has_data_samples = o->has_ack_samples = true;
    o->data_samples = sum->data_samples;
    o->ack_samples = sum->ack_samples;
    o->has_cnp_samples = sum->cnp_samples > 0;
    o->cnp_samples = sum->cnp_samples;
    o->has_dst_qp = (sum->dst_qp & (QP_KNOWN | QP_DIFFER)) == QP_KNOWN;
    o->dst_qp = sum->dst_qp & QP_MASK;
    /* Of several tunnels the record names none, and a TTL without its tunnel would mislead. */
    o->has_ttl = sum->ttl != 0 && !sum->outers_differ;
    o->ttl = o->has_ttl ? sum->ttl : 0;
    o->has_nak_samples = sum->naks > 0;
    o->nak_samples = sum->naks;
    o->has_rnr_samples = sum->rnrs > 0;
    o->rnr_samples = sum->rnrs;
    o->has_no_credit_samples = sum->no_credits > 0;
    o->no_credit_samples = sum->no_credits;
    o->has_queue_max_bytes = sum->has & FT_SFLOW_HAS_QUEUE_DEPTH;
    o->queue_max_bytes = sum->queue_bytes;
    o->has_transit_max_ns = sum->has & FT_SFLOW_HAS_TRANSIT;
    o->transit_max_ns = sum->transit_ns;
    o->has_source_routed = o->source_routed = sum->source_routed;
}

static void fill_psn(Fabrictrace__Observation *o, const struct ft_fold_sum *sum)
{
    o->has_read_responses = o->read_responses = sum->psn_kinds & FT_PSN_RESPONSE;
    o->has_read_requests = o->read_requests = sum->psn_kinds & FT_PSN_READ;
    if (sum->data_samples == 0)
        return;
    o->has_message_starts = true;
    o->message_starts = sum->starts;
    o->has_frame_min_bytes = o->has_frame_max_bytes = true;
    o->frame_min_bytes = sum->frame_min;
    o->frame_max_bytes = sum->frame_max;
    if (!ft_fold_numbered(sum))
        return;
    o->has_psn = o->has_psn_span = o->has_psn_back_samples = true;
    o->psn = sum->psn;
    o->psn_span = sum->psn_span;
    o->psn_back_samples = sum->psn_back;
}

void ft_fold_emit(const struct ft_fold_sum *sum, const struct ft_tuple *outer, struct ft_wall start,
                  uint32_t interval_ms, const struct ft_record_sink *sink)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Observation o = FABRICTRACE__OBSERVATION__INIT;
    Fabrictrace__Flow flow = FABRICTRACE__FLOW__INIT;
    Fabrictrace__Flow tunnel = FABRICTRACE__FLOW__INIT;

    ft_flow_from_tuple(&flow, &sum->key.tuple);
    if (outer) {
        ft_flow_from_tuple(&tunnel, outer);
        o.outer = &tunnel;
    }
    o.has_time_ms = o.has_interval_ms = o.has_agent = true;
    o.time_ms = (uint64_t)start.ms;
    o.interval_ms = interval_ms;
    o.agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&sum->key.agent, &o.agent.len);
    o.flow = &flow;
    fill_ports(&o, &sum->key);
    fill_sums(&o, sum);
    fill_psn(&o, sum);
    record.kind_case = FABRICTRACE__RECORD__KIND_OBSERVATION;
    record.observation = &o;
    sink->emit(sink->arg, &record);
}
