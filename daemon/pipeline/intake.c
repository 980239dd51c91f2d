// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/pipeline/intake.h"

#include <math.h>
#include <string.h>

#include "proto/record.h"

/* The year 2109: a moment beyond it is a mistake, and would overflow the windows' numbers. */
#define MOMENT_MAX_MS (INT64_C(1) << 42)
/* The longest interval that anything is folded over. */
#define INTERVAL_MAX_MS (INT64_C(3600) * 1000)
/* More than any flow carries: 17 Tbit/s. Sums over all flows of a window then fit 63 bits. */
#define BYTES_PER_MS (UINT64_C(1) << 31)
/* Of what other programs announce, and how seldom some of them do. */
#define ANNOUNCED_MAX_MS (24 * INTERVAL_MAX_MS)
/* Times are only compared and published: an honest host's clock may be off by that much. */
#define AHEAD_MAX_MS 60000

static bool is_moment(uint64_t ms)
{
    return ms > 0 && ms < (uint64_t)MOMENT_MAX_MS;
}

/* What a flow may have carried in an interval, which may be unknown (0) or very short. */
static uint64_t plausible(uint64_t bytes, uint64_t interval_ms, bool *odd)
{
    uint64_t most = (interval_ms < 1000 ? 1000 : interval_ms) * BYTES_PER_MS;

    *odd |= bytes > most;
    return bytes > most ? most : bytes;
}

/* Who took the samples, in 32 bits: two sources of one switch share them once in 4,000,000,000. */
static uint32_t source_of(const struct ft_observed *o)
{
    const uint64_t odd = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t words[sizeof(o->agent) / sizeof(uint64_t)], mix = o->point;

    memcpy(words, &o->agent, sizeof(words));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        mix = ((mix ^ words[i]) * odd) ^ (mix >> 31);
    mix = ((mix ^ o->sub_agent) * odd) ^ (mix >> 31);
    mix = ((mix ^ o->source_index ^ (uint64_t)o->source_type << 32) * odd) ^ (mix >> 31);
    return (uint32_t)(mix >> 32);
}

bool ft_intake_observed(const struct ft_observed *o, struct ft_observation *out, bool *odd)
{
    if (!is_moment(o->first_ms) || !is_moment(o->last_ms) || o->last_ms < o->first_ms ||
        o->last_ms - o->first_ms > INTERVAL_MAX_MS || o->ce_samples > o->samples)
        return false;
    *out = (struct ft_observation){
        .tuple = o->tuple,
        .agent = o->agent,
        .first_ms = (int64_t)o->first_ms,
        .last_ms = (int64_t)o->last_ms,
        .in_ifindex = o->in_ifindex,
        .out_ifindex = o->fate == FABRICTRACE__FATE__FATE_FORWARDED ? o->out_ifindex : 0,
        .source = source_of(o),
        .network = o->has_vni ? o->vni + 1 : 0,
        .point = (uint8_t)o->point,
        .start_ms = is_moment(o->time_ms) ? (int64_t)o->time_ms : 0,
        .interval_ms = o->interval_ms,
        .source_routed = o->source_routed,
        .samples = o->samples,
        .ce_samples = o->ce_samples,
        .data_samples = o->data_samples,
        .ack_samples = o->ack_samples,
        .cnp_samples = o->cnp_samples,
        .packets = o->packets,
        .bytes = o->bytes,
    };
    /* A switch's report of dropped packets proves where they came by, but not a rate. */
    if (o->point == FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_DISCARD) {
        out->samples = out->ce_samples = 0;
        out->packets = out->bytes = 0;
    }
    out->bytes = plausible(out->bytes, o->last_ms - o->first_ms, odd);
    return true;
}

bool ft_intake_rest(const struct ft_observed *o, struct ft_observed_rest *out)
{
    if (!o->has_outer && !o->has_queue && !o->has_transit)
        return false;
    *out = (struct ft_observed_rest){
        .has_outer = o->has_outer,
        .has_queue = o->has_queue,
        .has_transit = o->has_transit,
        .queue_max_bytes = o->queue_max_bytes,
        .transit_max_ns = o->transit_max_ns,
    };
    if (o->has_outer)
        out->outer = o->outer;
    return true;
}

/* No honest poller has more samples of a kind than samples, or longer frames. */
bool ft_intake_numbered(const struct ft_observed *o, struct ft_numbered *out)
{
    bool numbered = o->has_psn && o->has_dst_qp && o->message_starts <= o->data_samples &&
                    o->psn_back_samples <= o->data_samples &&
                    o->frame_min_bytes <= o->frame_max_bytes && o->frame_max_bytes <= UINT16_MAX;
    bool odd = !numbered && o->data_samples && o->frame_max_bytes;

    if (!numbered && !odd && o->nak_samples == 0 && o->rnr_samples == 0 &&
        o->no_credit_samples == 0 && !o->read_requests)
        return false;
    if (o->point == FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_DISCARD || o->samples == 0 ||
        o->data_samples > o->samples || o->nak_samples > o->ack_samples ||
        o->rnr_samples > o->ack_samples || o->no_credit_samples > o->ack_samples)
        return false;
    *out = (struct ft_numbered){
        .qp = o->dst_qp,
        .samples = numbered ? o->data_samples : 0,
        .low = o->psn,
        .span = o->psn_span,
        .back = o->psn_back_samples,
        .starts = o->message_starts,
        .acks = o->samples - o->data_samples,
        .naks = o->nak_samples,
        .rnrs = o->rnr_samples,
        .no_credits = o->no_credit_samples,
        .frame_min = o->frame_min_bytes,
        .frame_max = o->frame_max_bytes,
        .packets = o->packets,
        .bytes = o->bytes,
        .first_ms = (int64_t)o->first_ms,
        .last_ms = (int64_t)o->last_ms,
        .start_ms = (int64_t)o->time_ms,
        .interval_ms = o->interval_ms,
        .source = source_of(o),
        .odd = odd,
        .requests = o->data_samples && (numbered ? !o->read_responses : true),
        .responses = o->read_responses,
        .reads = o->read_requests,
    };
    return true;
}

/* A receiver's own queue pair is the remote one of the flow. */
static void take_qp(const Fabrictrace__FlowReport *r, struct ft_host_report *out)
{
    uint32_t own = r->qp && r->qp->has_local ? r->qp->local : FT_NONE;
    uint32_t other = r->qp && r->qp->has_remote ? r->qp->remote : FT_NONE;
    bool receiving = r->direction == FABRICTRACE__DIRECTION__DIRECTION_RX;

    out->qp_local = receiving ? other : own;
    out->qp_remote = receiving ? own : other;
}

bool ft_intake_report(const Fabrictrace__FlowReport *r, struct ft_host_report *out, bool *odd)
{
    *out = (struct ft_host_report){
        .time_ms = (int64_t)r->time_ms,
        .interval_ms = r->interval_ms,
        .sending = r->direction == FABRICTRACE__DIRECTION__DIRECTION_TX,
        .host = r->host,
        .bytes = r->bytes,
        .data_packets = r->data_packets,
        .ack_packets = r->ack_packets,
        .cnp_packets = r->cnp_packets,
        .pid = r->pid,
        .comm = r->comm,
        .job = r->job,
        .tuple_source = r->tuple_source,
        .source_routed = r->source_routed,
        .ended = r->ended,
    };
    take_qp(r, out);
    out->bytes = plausible(r->bytes, r->interval_ms, odd);
    return r->flow && r->has_time_ms && is_moment(r->time_ms) &&
           r->interval_ms <= INTERVAL_MAX_MS && ft_flow_to_tuple(r->flow, &out->tuple) == 0;
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);

    return n >= m && strcmp(name + n - m, end) == 0;
}

static bool message_fits(const ProtobufCMessage *m);

/* One value: numbers of 64 bits fit the 63 that every reader of JSON has, times are times. */
static bool value_fits(const ProtobufCFieldDescriptor *f, const uint8_t *at)
{
    uint64_t u;
    uint32_t v;
    double d;

    switch (f->type) {
    case PROTOBUF_C_TYPE_UINT64:
        memcpy(&u, at, sizeof(u));
        return u < (ends_with(f->name, "_ms") ? (uint64_t)MOMENT_MAX_MS : (uint64_t)INT64_MAX);
    case PROTOBUF_C_TYPE_UINT32:
        memcpy(&v, at, sizeof(v));
        return v <= ANNOUNCED_MAX_MS || !ends_with(f->name, "_ms");
    case PROTOBUF_C_TYPE_DOUBLE:
        memcpy(&d, at, sizeof(d));
        return isfinite(d);
    case PROTOBUF_C_TYPE_MESSAGE: {
        const ProtobufCMessage *inner;

        memcpy(&inner, at, sizeof(inner));
        return !inner || message_fits(inner);
    }
    default:
        return true;
    }
}

static bool message_fits(const ProtobufCMessage *m)
{
    const uint8_t *base = (const uint8_t *)m;

    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        const uint8_t *at = base + f->offset;
        const uint8_t *items;
        size_t count;

        if (f->label != PROTOBUF_C_LABEL_REPEATED) {
            if (!value_fits(f, at))
                return false;
            continue;
        }
        /* Lists of numbers are of 32 bits, none of them a time. */
        if (f->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        memcpy(&count, base + f->quantifier_offset, sizeof(count));
        memcpy(&items, at, sizeof(items));
        for (size_t k = 0; k < count; k++)
            if (!value_fits(f, items + k * sizeof(ProtobufCMessage *)))
                return false;
    }
    return true;
}

enum ft_intake_numbers ft_intake_numbers(const Fabrictrace__Record *record, int64_t now_ms)
{
    const ProtobufCMessage *m = ft_record_message(record);
    uint64_t time_ms;

    if (m && !message_fits(m))
        return FT_INTAKE_WRONG;
    switch (record->kind_case) {
    case FABRICTRACE__RECORD__KIND_HOST:
        if (!is_moment(record->host->time_ms) || record->host->interval_ms > INTERVAL_MAX_MS)
            return FT_INTAKE_WRONG;
        time_ms = record->host->time_ms;
        break;
    case FABRICTRACE__RECORD__KIND_COMMUNICATOR:
        time_ms = record->communicator->time_ms;
        break;
    case FABRICTRACE__RECORD__KIND_COLLECTIVE:
        time_ms = record->collective->time_ms;
        break;
    case FABRICTRACE__RECORD__KIND_PROGRESS:
        time_ms = record->progress->time_ms;
        break;
    case FABRICTRACE__RECORD__KIND_RANK_STATES:
        time_ms = record->rank_states->time_ms;
        break;
    case FABRICTRACE__RECORD__KIND_PLAN_PORT:
        time_ms = record->plan_port->time_ms;
        break;
    case FABRICTRACE__RECORD__KIND_PROBE:
        time_ms = record->probe->time_ms;
        break;
    case FABRICTRACE__RECORD__KIND_PARTIAL:
        time_ms = record->partial->window_start_ms;
        break;
    default:
        return FT_INTAKE_FITS;
    }
    return (int64_t)time_ms > now_ms + AHEAD_MAX_MS ? FT_INTAKE_AHEAD : FT_INTAKE_FITS;
}

static int64_t stated_ms(const Fabrictrace__Record *record)
{
    switch (record->kind_case) {
    case FABRICTRACE__RECORD__KIND_OBSERVATION:
        return (int64_t)(record->observation->has_last_ms ? record->observation->last_ms
                                                          : record->observation->time_ms);
    case FABRICTRACE__RECORD__KIND_OBSERVATIONS:
        return (int64_t)record->observations->time_ms;
    case FABRICTRACE__RECORD__KIND_FLOW:
        return (int64_t)record->flow->time_ms;
    case FABRICTRACE__RECORD__KIND_HOST:
        return (int64_t)record->host->time_ms;
    case FABRICTRACE__RECORD__KIND_QUEUE_PAIRS:
        return (int64_t)record->queue_pairs->time_ms;
    case FABRICTRACE__RECORD__KIND_HOST_STATUS:
        return (int64_t)record->host_status->time_ms;
    case FABRICTRACE__RECORD__KIND_COUNTERS:
        return (int64_t)record->counters->time_ms;
    case FABRICTRACE__RECORD__KIND_PROCESSOR:
        return (int64_t)record->processor->time_ms;
    case FABRICTRACE__RECORD__KIND_COMMUNICATOR:
        return (int64_t)record->communicator->time_ms;
    case FABRICTRACE__RECORD__KIND_COLLECTIVE:
        return (int64_t)record->collective->time_ms;
    case FABRICTRACE__RECORD__KIND_PROGRESS:
        return (int64_t)record->progress->time_ms;
    case FABRICTRACE__RECORD__KIND_RANK_STATES:
        return (int64_t)record->rank_states->time_ms;
    case FABRICTRACE__RECORD__KIND_PLAN_PORT:
        return (int64_t)record->plan_port->time_ms;
    case FABRICTRACE__RECORD__KIND_PROBE:
        return (int64_t)record->probe->time_ms;
    case FABRICTRACE__RECORD__KIND_SWITCH_REPORT:
        return (int64_t)record->switch_report->time_ms;
    case FABRICTRACE__RECORD__KIND_PARTIAL:
        return (int64_t)record->partial->window_start_ms;
    default:
        return 0;
    }
}

int64_t ft_moment_ms(uint64_t ms)
{
    return is_moment(ms) ? (int64_t)ms : 0;
}

int64_t ft_record_time_ms(const Fabrictrace__Record *record)
{
    return ft_moment_ms((uint64_t)stated_ms(record));
}
