// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/fold.h"

#include <stddef.h>
#include <stdlib.h>

#include "lib/base/table.h"
#include "proto/record.h"

#define ECN_CE          3
#define BATCH           16 /* look-ups whose waits overlap */
#define SOURCE_IF_INDEX 0  /* sFlow v5 section 4.2.1: the data source is an interface */

/* Sums that the second cache holds anyway: hints would only cost. */
#define CACHED 4096

/* Hashed and compared as bytes: no padding. A port of 0 is one the exporter does not name. The data
 * source is 0 where the point says it: it is the port in or out. */
struct key {
    struct ft_ip agent;
    struct ft_tuple tuple;
    uint32_t in;
    uint32_t out;
    uint32_t discard_reason;
    uint32_t sub_agent;
    uint32_t source_index;
    uint8_t source_type; /* 255: that or more, of which the standard has none */
    uint8_t point;
    uint8_t fate;
    uint8_t zero;
};
_Static_assert(sizeof(struct key) == 80, "a hole in the key would hash stack bytes");

struct sum {
    struct key key;
    uint32_t samples;
    uint32_t ce_samples;
    uint32_t data_samples;
    uint32_t ack_samples;
    uint32_t dst_qp;
    bool has_qp;
    bool qps_differ;
    uint64_t packets;
    uint64_t bytes;
    struct ft_wall first;
    struct ft_wall last;
    uint32_t has; /* of queue_bytes and transit_ns; bits of enum ft_sflow_has */
    uint32_t queue_bytes;
    uint32_t transit_ns;
    bool has_outer;
    bool outers_differ;
    struct ft_tuple outer;
};

/* A sample on its way into the table: what is left of it beside its key. */
struct incoming {
    struct key key;
    uint64_t hash;
    struct ft_wall when;
    uint64_t bytes;
    uint32_t packets;
    uint32_t dst_qp;
    enum ft_bth_class bth;
    bool ce;
    bool has_outer;
    uint32_t has;
    uint32_t queue_bytes;
    uint32_t transit_ns;
    struct ft_tuple outer;
};

struct ft_fold {
    struct ft_table *sums;
    uint64_t pending;
    uint64_t refused;
    uint32_t batched;
    struct incoming batch[BATCH];
};

struct ft_fold *ft_fold_new(uint64_t max, uint64_t seed)
{
    struct ft_fold *fold = calloc(1, sizeof(*fold));

    if (!fold)
        return NULL;
    fold->sums = ft_table_new(sizeof(struct sum), sizeof(struct key), max, seed);
    if (!fold->sums) {
        free(fold);
        return NULL;
    }
    return fold;
}

void ft_fold_free(struct ft_fold *fold)
{
    if (!fold)
        return;
    ft_table_free(fold->sums);
    free(fold);
}

static Fabrictrace__SamplingPoint point_of(const struct ft_sflow_flow *flow)
{
    bool in = flow->in.kind == FT_SFLOW_IF_INDEX && flow->in.value == flow->source_index;
    bool out = flow->out.kind == FT_SFLOW_IF_INDEX && flow->out.value == flow->source_index;

    if (flow->discarded)
        return FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_DISCARD;
    if (flow->source_type != SOURCE_IF_INDEX || in == out)
        return FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_UNKNOWN;
    return in ? FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_INGRESS
              : FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_EGRESS;
}

static void make_key(struct key *key, const struct ft_ip *agent, uint32_t sub_agent,
                     const struct ft_sflow_flow *flow)
{
    *key = (struct key){
        .agent = *agent,
        .tuple = flow->packet.tuple,
        .in = flow->in.kind == FT_SFLOW_IF_INDEX ? flow->in.value : 0,
        .out = flow->out.kind == FT_SFLOW_IF_INDEX ? flow->out.value : 0,
        .sub_agent = sub_agent,
        .point = (uint8_t)point_of(flow),
        .fate = FABRICTRACE__FATE__FATE_FORWARDED,
    };
    if (key->point == FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_UNKNOWN) {
        key->source_type = flow->source_type > UINT8_MAX ? UINT8_MAX : (uint8_t)flow->source_type;
        key->source_index = flow->source_index;
    }
    if (flow->discarded) {
        key->fate = FABRICTRACE__FATE__FATE_DISCARDED;
        key->discard_reason = flow->discard_reason;
    } else if (flow->out.kind == FT_SFLOW_IF_DISCARD) {
        key->fate = FABRICTRACE__FATE__FATE_DISCARDED;
        key->discard_reason = flow->out.value;
    } else if (flow->out.kind == FT_SFLOW_IF_MULTIPLE) {
        key->fate = FABRICTRACE__FATE__FATE_MULTIPLE;
    }
}

/* What few samples have. */
static void apply_extras(struct sum *sum, const struct incoming *in)
{
    if (in->has_outer) {
        sum->outers_differ |= sum->has_outer && !ft_tuple_equal(&sum->outer, &in->outer);
        sum->outer = in->outer;
        sum->has_outer = true;
    }
    sum->has |= in->has;
    if (in->has & FT_SFLOW_HAS_QUEUE_DEPTH && in->queue_bytes > sum->queue_bytes)
        sum->queue_bytes = in->queue_bytes;
    if (in->has & FT_SFLOW_HAS_TRANSIT && in->transit_ns > sum->transit_ns)
        sum->transit_ns = in->transit_ns;
}

static void apply(struct ft_fold *fold, const struct incoming *in)
{
    bool fresh;
    struct sum *sum = ft_table_insert_hashed(fold->sums, &in->key, in->hash, &fresh);

    if (!sum) {
        fold->pending--;
        fold->refused++;
        return;
    }
    if (fresh || in->when.ms < sum->first.ms)
        sum->first = in->when;
    if (in->when.ms > sum->last.ms)
        sum->last = in->when;
    sum->samples++;
    sum->packets += in->packets;
    sum->bytes += in->bytes;
    sum->ce_samples += in->ce;
    sum->data_samples += in->bth == FT_BTH_DATA;
    sum->ack_samples += in->bth == FT_BTH_ACK;
    if (in->bth != FT_BTH_NONE) {
        sum->qps_differ |= sum->has_qp && sum->dst_qp != in->dst_qp;
        sum->dst_qp = in->dst_qp;
        sum->has_qp = true;
    }
    if (in->has_outer || in->has)
        apply_extras(sum, in);
}

void ft_fold_settle(struct ft_fold *fold)
{
    for (uint32_t i = 0; ft_table_count(fold->sums) > CACHED && i < fold->batched; i++)
        ft_table_hint_entry(fold->sums, fold->batch[i].hash);
    for (uint32_t i = 0; i < fold->batched; i++)
        apply(fold, &fold->batch[i]);
    fold->batched = 0;
}

void ft_fold_add(struct ft_fold *fold, const struct ft_ip *agent, uint32_t sub_agent,
                 const struct ft_sflow_flow *flow, struct ft_wall when)
{
    const struct ft_packet *packet = &flow->packet;
    struct incoming *in = &fold->batch[fold->batched++];

    make_key(&in->key, agent, sub_agent, flow);
    in->hash = ft_table_hash(fold->sums, &in->key);
    ft_table_hint_slot(fold->sums, in->hash);
    in->when = when;
    in->packets = flow->sampling_rate;
    in->bytes = (uint64_t)flow->sampling_rate * flow->frame_bytes;
    in->ce = packet->ecn == ECN_CE;
    in->bth = packet->bth;
    in->dst_qp = packet->dst_qp;
    in->has = flow->extended.has & (FT_SFLOW_HAS_QUEUE_DEPTH | FT_SFLOW_HAS_TRANSIT);
    if (in->has) {
        in->queue_bytes = flow->extended.queue_bytes;
        in->transit_ns = flow->extended.transit_ns;
    }
    in->has_outer = packet->has_outer;
    if (packet->has_outer)
        in->outer = packet->outer;
    fold->pending++;
    if (fold->batched == BATCH)
        ft_fold_settle(fold);
}

static void fill_ports(Fabrictrace__Observation *o, const struct key *key)
{
    o->has_in_ifindex = key->in != 0;
    o->in_ifindex = key->in;
    o->has_out_ifindex = key->out != 0;
    o->out_ifindex = key->out;
    o->has_point = true;
    o->point = (Fabrictrace__SamplingPoint)key->point;
    o->has_sub_agent = true;
    o->sub_agent = key->sub_agent;
    o->has_source_type = o->has_source_index =
        o->point == FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_UNKNOWN;
    o->source_type = key->source_type;
    o->source_index = key->source_index;
    o->has_fate = true;
    o->fate = (Fabrictrace__Fate)key->fate;
    o->has_discard_reason = o->fate == FABRICTRACE__FATE__FATE_DISCARDED;
    o->discard_reason = key->discard_reason;
}

static void fill_sums(Fabrictrace__Observation *o, const struct sum *sum)
{
    o->has_first_ms = true;
    o->first_ms = (uint64_t)sum->first.ms;
    o->has_last_ms = true;
    o->last_ms = (uint64_t)sum->last.ms;
    o->has_samples = true;
    o->samples = sum->samples;
    o->has_packets = true;
    o->packets = sum->packets;
    o->has_bytes = true;
    o->bytes = sum->bytes;
    o->has_ce_samples = true;
    o->ce_samples = sum->ce_samples;
    o->has_data_samples = true;
    o->data_samples = sum->data_samples;
    o->has_ack_samples = true;
    o->ack_samples = sum->ack_samples;
    o->has_dst_qp = sum->has_qp && !sum->qps_differ;
    o->dst_qp = sum->dst_qp;
    o->has_queue_max_bytes = sum->has & FT_SFLOW_HAS_QUEUE_DEPTH;
    o->queue_max_bytes = sum->queue_bytes;
    o->has_transit_max_ns = sum->has & FT_SFLOW_HAS_TRANSIT;
    o->transit_max_ns = sum->transit_ns;
}

static void emit(struct sum *sum, struct ft_wall start, uint32_t interval_ms,
                 const struct ft_sink *sink)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Observation o = FABRICTRACE__OBSERVATION__INIT;
    Fabrictrace__Flow flow = FABRICTRACE__FLOW__INIT;
    Fabrictrace__Flow outer = FABRICTRACE__FLOW__INIT;

    ft_flow_from_tuple(&flow, &sum->key.tuple);
    if (sum->has_outer && !sum->outers_differ) {
        ft_flow_from_tuple(&outer, &sum->outer);
        o.outer = &outer;
    }
    o.has_time_ms = true;
    o.time_ms = (uint64_t)start.ms;
    o.has_interval_ms = true;
    o.interval_ms = interval_ms;
    o.has_agent = true;
    o.agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&sum->key.agent, &o.agent.len);
    o.flow = &flow;
    fill_ports(&o, &sum->key);
    fill_sums(&o, sum);
    record.kind_case = FABRICTRACE__RECORD__KIND_OBSERVATION;
    record.observation = &o;
    sink->emit(sink->arg, &record);
}

uint64_t ft_fold_flush(struct ft_fold *fold, struct ft_wall start, uint32_t interval_ms,
                       const struct ft_sink *sink)
{
    uint64_t flushed;
    uint32_t at = 0;
    struct sum *sum;

    ft_fold_settle(fold);
    flushed = fold->pending;
    while ((sum = ft_table_next(fold->sums, &at)))
        emit(sum, start, interval_ms, sink);
    ft_table_clear(fold->sums);
    fold->pending = 0;
    return flushed;
}

uint64_t ft_fold_pending(const struct ft_fold *fold)
{
    return fold->pending;
}

uint64_t ft_fold_refused(const struct ft_fold *fold)
{
    return fold->refused;
}

uint64_t ft_fold_sums(const struct ft_fold *fold)
{
    return ft_table_count(fold->sums);
}

uint64_t ft_fold_bytes(const struct ft_fold *fold)
{
    return ft_table_bytes(fold->sums);
}
