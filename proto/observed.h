// SPDX-License-Identifier: Apache-2.0
#ifndef FT_PROTO_OBSERVED_H
#define FT_PROTO_OBSERVED_H
/*
 * An observation as plain numbers: what an Observation message says, or a row of Observations.
 * Nothing is judged here but that the flow and the switch can be named. Pure.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/tuple.h"
#include "proto/fabrictrace.pb-c.h"

struct ft_observed {
    struct ft_tuple tuple;
    struct ft_ip agent;
    uint64_t time_ms;
    uint64_t first_ms, last_ms; /* those of time_ms where they are not said */
    uint32_t interval_ms;
    uint32_t in_ifindex, out_ifindex; /* 0: not known */
    uint32_t sub_agent, source_type, source_index;
    uint32_t point, fate, discard_reason; /* enums of fabrictrace.proto */
    uint32_t samples, ce_samples, data_samples, ack_samples, cnp_samples;
    uint64_t packets, bytes;
    uint32_t dst_qp, ttl; /* this and what follows, where it is known */
    uint32_t queue_max_bytes, transit_max_ns;
    uint32_t psn, psn_span, psn_back_samples;
    uint32_t message_starts, frame_min_bytes, frame_max_bytes; /* 0: not said */
    uint32_t nak_samples, rnr_samples, no_credit_samples;
    struct ft_tuple outer;
    uint32_t vni;
    bool has_psn, has_packets, has_dst_qp, has_ttl, has_queue, has_transit, has_outer, has_vni;
    bool source_routed, read_responses, read_requests;
};

/* -EINVAL when the flow, the switch or the time is missing or cannot be. */
int ft_observed_from(const Fabrictrace__Observation *o, struct ft_observed *out);

#endif
