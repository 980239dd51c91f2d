// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/sflow/fold.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/grow.h"
#include "lib/base/table.h"
#include "proto/record.h"
#include "switchpoll/sflow/before.h"
#include "switchpoll/sflow/fold_impl.h"

/* No switch samples one packet in more, no frame is longer: what says so stands for as much. */
#define RATE_MAX  (1u << 28)
#define FRAME_MAX (1u << 20)
#define BYTES_MAX (UINT64_C(1) << 52) /* of a sum, which JSON's readers still have exactly */

#define ECN_CE 3
/* So many times the samples of the usual flow: a quarter of all have as many at most. */
#define MANY            4
#define BATCH           16 /* look-ups whose waits overlap */
#define SOURCE_IF_INDEX 0  /* sFlow v5 section 4.2.1: the data source is an interface */

/* Sums of longer intervals are ordered by their last samples, as exactly as this. */
#define SHORT_MS 1000
#define STEP_MS  100
#define STEPS    600

#define SPAN_MAX_MS 0xffffffu

/* Packet numbers count 2^24 and begin anew. One that is lower by less than a quarter of it was sent
 * again, or overtaken; any other is ahead. */
#define PSN_BACK_MAX  (1u << 22)
#define FRAME_LONGEST UINT16_MAX /* longer ones count as that */
#define BEFORE_KNOWN  (1u << 24) /* and no sample is ahead of it */

/* A sample on its way into the table: what is left of it beside its key. */
struct incoming {
    struct ft_fold_key key;
    uint64_t hash;
    void *likely;
    struct ft_wall when;
    uint32_t packets;
    uint32_t frame;
    uint32_t dst_qp : 24;
    uint32_t opcode : 8;
    uint32_t psn : 24;
    uint32_t syndrome : 8;
    uint8_t bth;
    bool ce;
    bool has_outer, source_routed; /* these, has: of what few have, and what */
    uint8_t has;
    uint8_t ttl;
};
_Static_assert(sizeof(struct incoming) == 128, "a size that makes positions easy to compute");

struct extras {
    struct ft_tuple outer;
    uint32_t queue_bytes;
    uint32_t transit_ns;
};

struct ft_fold {
    struct ft_table *sums;
    struct ft_before *before;
    uint64_t pending;
    uint64_t refused;
    uint64_t implausible;
    uint64_t thinned, thinned_sums;
    uint32_t part;           /* 0, 1: all are sent */
    struct ft_tuple *outers; /* by the indexes of their sums: few have a tunnel */
    size_t outers_size;
    uint32_t batched;
    struct incoming batch[BATCH];
    struct extras extras[BATCH];
};

struct ft_fold *ft_fold_new(uint64_t max, uint64_t seed)
{
    struct ft_fold *fold = calloc(1, sizeof(*fold));

    if (!fold)
        return NULL;
    fold->sums = ft_table_new(sizeof(struct ft_fold_sum), sizeof(struct ft_fold_key), max, seed);
    fold->before = ft_before_new(max);
    if (!fold->sums || !fold->before) {
        ft_fold_free(fold);
        return NULL;
    }
    ft_table_hint_only(fold->sums, offsetof(struct ft_fold_sum, has));
    return fold;
}

void ft_fold_free(struct ft_fold *fold)
{
    if (!fold)
        return;
    ft_table_free(fold->sums);
    ft_before_free(fold->before);
    free(fold->outers);
    free(fold);
}

/* Where a packet was sampled, of one that was not discarded. */
static uint32_t point_of(const struct ft_sflow_flow *flow, uint32_t in, uint32_t out)
{
    uint32_t source = flow->source_index;

    if (flow->source_type != SOURCE_IF_INDEX || source == 0 || (in == source) == (out == source))
        return FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_UNKNOWN;
    return in == source ? FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_INGRESS
                        : FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_EGRESS;
}

static inline void make_key(struct ft_fold_key *key, const struct ft_ip *agent, uint32_t sub_agent,
                            const struct ft_sflow_flow *flow)
{
    uint32_t in = flow->in.kind == FT_SFLOW_IF_INDEX ? flow->in.value : 0;
    uint32_t out = flow->out.kind == FT_SFLOW_IF_INDEX ? flow->out.value : 0;
    uint32_t fate = FABRICTRACE__FATE__FATE_FORWARDED;
    uint32_t point = point_of(flow, in, out);
    uint32_t source_type = 0, source_index = 0;
    uint64_t reason = 0;

    if (point == FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_UNKNOWN && !flow->discarded) {
        /* 255 is that type or more, of which the standard has none. */
        source_type = flow->source_type > UINT8_MAX ? UINT8_MAX : flow->source_type;
        source_index = flow->source_index;
    }
    if (flow->discarded) {
        fate = FABRICTRACE__FATE__FATE_DISCARDED;
        point = FABRICTRACE__SAMPLING_POINT__SAMPLING_POINT_DISCARD;
        reason = flow->discard_reason;
    } else if (flow->out.kind == FT_SFLOW_IF_DISCARD) {
        fate = FABRICTRACE__FATE__FATE_DISCARDED;
        reason = flow->out.value;
    } else if (flow->out.kind == FT_SFLOW_IF_MULTIPLE) {
        fate = FABRICTRACE__FATE__FATE_MULTIPLE;
    }
    key->agent = *agent;
    key->tuple = flow->packet.tuple;
    key->ports = (uint64_t)in << 32 | out;
    key->source = (uint64_t)sub_agent << 32 | source_index;
    key->fate = reason << 32 | source_type << 16 | point << 8 | fate;
    if (__builtin_expect(flow->packet.has_vni, 0))
        ft_fold_set_vni(key, flow->packet.vni);
}

/* Without memory for it a sum has no tunnel, as when samples disagree. */
static void apply_outer(struct ft_fold *fold, struct ft_fold_sum *sum, const struct ft_tuple *outer)
{
    uint32_t index = ft_table_index(fold->sums, sum);

    while (fold->outers_size <= index) {
        struct ft_tuple *grown =
            ft_grow(fold->outers, fold->outers_size, &fold->outers_size, sizeof(*grown));

        if (!grown) {
            sum->outers_differ = true;
            return;
        }
        fold->outers = grown;
    }
    sum->outers_differ |= sum->has_outer && !ft_tuple_equal(&fold->outers[index], outer);
    fold->outers[index] = *outer;
    sum->has_outer = true;
}

/* What few samples have. */
static void apply_extras(struct ft_fold *fold, struct ft_fold_sum *sum, const struct incoming *in,
                         const struct extras *extras)
{
    if (in->has_outer)
        apply_outer(fold, sum, &extras->outer);
    sum->source_routed |= in->source_routed;
    sum->has |= in->has;
    if (in->has & FT_SFLOW_HAS_QUEUE_DEPTH && extras->queue_bytes > sum->queue_bytes)
        sum->queue_bytes = extras->queue_bytes;
    if (in->has & FT_SFLOW_HAS_TRANSIT && extras->transit_ns > sum->transit_ns)
        sum->transit_ns = extras->transit_ns;
}

static uint32_t within_span(int64_t ms)
{
    return ms < SPAN_MAX_MS ? (uint32_t)ms & SPAN_MAX_MS : SPAN_MAX_MS;
}

static void apply_time(struct ft_fold_sum *sum, struct ft_wall when, uint8_t ttl, bool fresh)
{
    if (fresh) {
        sum->first = when;
        sum->ttl = ttl;
    } else if (when.ms < sum->first.ms) {
        sum->span_ms = within_span(sum->span_ms + (sum->first.ms - when.ms));
        sum->first = when;
    } else if (when.ms - sum->first.ms >= sum->span_ms) {
        sum->span_ms = within_span(when.ms - sum->first.ms);
        sum->ttl = ttl;
    }
}

static void count_syndrome(struct ft_fold_sum *sum, uint8_t syndrome)
{
    if (FT_AETH_IS_NAK(syndrome))
        sum->naks += sum->naks < UINT16_MAX;
    else if (FT_AETH_IS_RNR(syndrome))
        sum->rnrs += sum->rnrs < UINT16_MAX;
    else if (FT_AETH_IS_NO_CREDIT(syndrome))
        sum->no_credits += sum->no_credits < UINT16_MAX;
}

static inline bool is_back(uint32_t psn, uint32_t highest)
{
    return ((psn - highest) & PSN_MASK) > PSN_MASK - PSN_BACK_MAX;
}

/* The first one, and those after it until one is ahead of the highest of the sum before. */
static void apply_before(struct ft_fold_sum *sum, uint32_t psn)
{
    if (is_back(psn, sum->before & PSN_MASK))
        sum->psn_back++;
    else
        sum->before = 0;
}

static inline void apply_first_psn(const struct ft_fold *fold, struct ft_fold_sum *sum,
                                   const struct incoming *in, enum ft_psn_kind kind)
{
    uint32_t highest;

    sum->hash = in->hash;
    sum->psn = in->psn;
    if (!ft_before_find(fold->before, in->hash, in->dst_qp, (uint8_t)kind, in->when, &highest))
        return;
    sum->before = BEFORE_KNOWN | highest;
    apply_before(sum, in->psn);
}

/* Where a number lies after the lowest, by how far it is from the highest. */
static inline void apply_psn(struct ft_fold_sum *sum, uint32_t psn)
{
    uint32_t ahead = (psn - (sum->psn + sum->psn_span)) & PSN_MASK, span, back;

    if (ahead <= PSN_MASK - PSN_BACK_MAX) {
        if (__builtin_expect(sum->before != 0, 0))
            apply_before(sum, psn);
        if (__builtin_add_overflow(sum->psn_span, ahead, &span))
            span = UINT32_MAX;
        sum->psn_span = span;
        return;
    }
    sum->psn_back++;
    back = PSN_MASK + 1 - ahead;
    if (back <= sum->psn_span)
        return;
    sum->psn = psn;
    sum->psn_span = back;
}

static inline void apply_bth(const struct ft_fold *fold, struct ft_fold_sum *sum,
                             const struct incoming *in)
{
    enum ft_psn_kind kind = ft_psn_kind_of((uint8_t)in->opcode);

    if (in->bth == FT_BTH_DATA) {
        uint16_t frame = in->frame < FRAME_LONGEST ? (uint16_t)in->frame : FRAME_LONGEST;

        if (sum->data_samples++ == 0) {
            apply_first_psn(fold, sum, in, kind);
            sum->frame_min = sum->frame_max = frame;
        } else {
            apply_psn(sum, in->psn);
            sum->frame_min = frame < sum->frame_min ? frame : sum->frame_min;
            sum->frame_max = frame > sum->frame_max ? frame : sum->frame_max;
        }
        sum->starts += ft_bth_starts_message((uint8_t)in->opcode);
    } else {
        sum->ack_samples++;
        sum->cnp_samples += in->bth == FT_BTH_CNP;
        if (__builtin_expect(in->syndrome >> 5 != 0 || FT_AETH_IS_NO_CREDIT(in->syndrome), 0))
            count_syndrome(sum, (uint8_t)in->syndrome);
    }
    sum->psn_kinds |= (uint8_t)kind;
    if (sum->dst_qp & QP_KNOWN && (sum->dst_qp & QP_MASK) != in->dst_qp)
        sum->dst_qp |= QP_DIFFER;
    else
        sum->dst_qp |= QP_KNOWN | in->dst_qp;
}

static inline void apply(struct ft_fold *fold, const struct incoming *in,
                         const struct extras *extras)
{
    bool fresh;
    struct ft_fold_sum *sum =
        ft_table_insert_likely(fold->sums, &in->key, in->hash, in->likely, &fresh);

    if (!sum) {
        fold->pending--;
        fold->refused++;
        return;
    }
    apply_time(sum, in->when, in->ttl, fresh);
    sum->samples++;
    sum->packets += in->packets;
    sum->bytes += (uint64_t)in->packets * in->frame;
    if (__builtin_expect(sum->bytes > BYTES_MAX, 0))
        sum->bytes = BYTES_MAX;
    sum->ce_samples += in->ce;
    if (in->bth != FT_BTH_NONE)
        apply_bth(fold, sum, in);
    if (in->has_outer || in->has || in->source_routed)
        apply_extras(fold, sum, in, extras);
}

void ft_fold_apply(struct ft_fold *fold)
{
    uint32_t batched = fold->batched;

    for (struct incoming *in = fold->batch; in < fold->batch + batched; in++)
        in->likely = ft_table_hint_entry(fold->sums, in->hash);
    for (uint32_t i = 0; i < batched; i++)
        apply(fold, &fold->batch[i], &fold->extras[i]);
    fold->batched = 0;
}

static inline void take_volume(struct ft_fold *fold, struct incoming *in,
                               const struct ft_sflow_flow *flow)
{
    uint32_t rate = flow->sampling_rate, bytes = flow->frame_bytes;

    if (__builtin_expect(rate > RATE_MAX || bytes > FRAME_MAX, 0)) {
        fold->implausible++;
        rate = rate > RATE_MAX ? RATE_MAX : rate;
        bytes = bytes > FRAME_MAX ? FRAME_MAX : bytes;
    }
    in->packets = rate;
    in->frame = bytes;
}

void ft_fold_add(struct ft_fold *fold, const struct ft_ip *agent, uint32_t sub_agent,
                 const struct ft_sflow_flow *flow, struct ft_wall when)
{
    const struct ft_packet *packet = &flow->packet;
    uint32_t slot = fold->batched;
    struct incoming *in = &fold->batch[slot];

    make_key(&in->key, agent, sub_agent, flow);
    in->hash = ft_table_hash(fold->sums, &in->key);
    ft_table_hint_slot(fold->sums, in->hash);
    ft_before_hint(fold->before, in->hash);
    in->when = when;
    take_volume(fold, in, flow);
    in->ce = packet->ecn == ECN_CE;
    in->ttl = packet->ttl;
    in->bth = (uint8_t)packet->bth;
    in->opcode = packet->opcode;
    in->dst_qp = packet->dst_qp & QP_MASK;
    in->psn = packet->psn & PSN_MASK;
    in->syndrome = packet->syndrome;
    in->has = flow->extended.has & (FT_SFLOW_HAS_QUEUE_DEPTH | FT_SFLOW_HAS_TRANSIT);
    if (in->has) {
        fold->extras[slot].queue_bytes = flow->extended.queue_bytes;
        fold->extras[slot].transit_ns = flow->extended.transit_ns;
    }
    in->source_routed = packet->source_routed;
    in->has_outer = packet->has_outer;
    if (packet->has_outer)
        fold->extras[slot].outer = packet->outer;
    fold->pending++;
    fold->batched = slot + 1;
    if (slot + 1 == BATCH)
        ft_fold_apply(fold);
}

static void emit(const struct ft_fold *fold, const struct ft_fold_sum *sum, struct ft_wall start,
                 uint32_t interval_ms, const struct ft_record_sink *sink)
{
    const struct ft_tuple *outer = NULL;

    if (sum->has_outer && !sum->outers_differ)
        outer = &fold->outers[ft_table_index(fold->sums, sum)];
    ft_fold_emit(sum, outer, start, interval_ms, sink);
}

/* Which part of an interval a sum's last sample is of. */
static uint32_t step_of(const struct ft_fold_sum *sum, struct ft_wall start)
{
    int64_t ms = sum->first.ms + sum->span_ms - start.ms;

    return ms < 0 ? 0 : ms < STEP_MS * STEPS ? (uint32_t)(ms / STEP_MS) : STEPS - 1;
}

/* The sums by their last samples: a reader finds time pass in them as it did. NULL
 * without memory. */
static struct ft_fold_sum **by_last(const struct ft_fold *fold, struct ft_wall start)
{
    struct ft_fold_sum **order = malloc(ft_table_count(fold->sums) * sizeof(struct ft_fold_sum *)),
                       *sum;
    uint32_t slot[STEPS + 1] = {0}, at = 0;

    if (!order)
        return NULL;
    while ((sum = ft_table_next(fold->sums, &at)))
        slot[step_of(sum, start) + 1]++;
    for (uint32_t i = 1; i <= STEPS; i++)
        slot[i] += slot[i - 1];
    at = 0;
    while ((sum = ft_table_next(fold->sums, &at)))
        order[slot[step_of(sum, start)]++] = sum;
    return order;
}

/* The same for all pollers, without a seed, and whatever network the flow is in. */
static __attribute__((noinline)) uint64_t turn_of(const struct ft_tuple *of)
{
    struct ft_tuple tuple = *of;
    uint64_t words[sizeof(tuple) / 8], hash = 0;

    memset(tuple.zero, 0, sizeof(tuple.zero));
    memcpy(words, &tuple, sizeof(words));
    for (size_t i = 0; i < sizeof(words) / 8; i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    return hash;
}

struct thinning {
    uint64_t many; /* samples */
    uint64_t round;
};

static bool is_sent(struct ft_fold *fold, const struct ft_fold_sum *sum, const struct thinning *by)
{
    if (fold->part <= 1 || sum->samples >= by->many ||
        (turn_of(&sum->key.tuple) + by->round) % fold->part == 0)
        return true;
    fold->thinned += sum->samples;
    fold->thinned_sums++;
    return false;
}

static void note(struct ft_fold *fold, const struct ft_fold_sum *sum, uint32_t interval_ms)
{
    ft_before_note(fold->before, sum->hash,
                   &(struct ft_before_sum){.qp = sum->dst_qp & QP_MASK,
                                           .highest = (sum->psn + sum->psn_span) & PSN_MASK,
                                           .kind = (uint8_t)sum->psn_kinds,
                                           .last = {sum->first.ms + sum->span_ms},
                                           .packets = sum->packets,
                                           .samples = sum->samples,
                                           .interval_ms = interval_ms});
}

/* Its numbers are noted for the sums of the next intervals, also where it is not sent. Their slot
 * is asked for before, so that the wait for it overlaps with making the record. */
static void end(struct ft_fold *fold, const struct ft_fold_sum *sum, const struct thinning *by,
                struct ft_wall start, uint32_t interval_ms, const struct ft_record_sink *sink)
{
    bool numbered = ft_fold_numbered(sum);

    if (numbered)
        ft_before_hint(fold->before, sum->hash);
    if (is_sent(fold, sum, by))
        emit(fold, sum, start, interval_ms, sink);
    if (numbered)
        note(fold, sum, interval_ms);
}

uint64_t ft_fold_flush(struct ft_fold *fold, struct ft_wall start, uint32_t interval_ms,
                       const struct ft_record_sink *sink)
{
    struct thinning by = {.round = (uint64_t)start.ms / (interval_ms ? interval_ms : 1)};
    uint64_t thinned = fold->thinned, flushed;
    uint32_t at = 0;
    struct ft_fold_sum *sum, **order = NULL;

    ft_fold_apply(fold);
    flushed = fold->pending;
    by.many =
        ft_fold_sums(fold) ? MANY * (flushed + ft_fold_sums(fold) - 1) / ft_fold_sums(fold) : 0;
    if (interval_ms > SHORT_MS && ft_table_count(fold->sums))
        order = by_last(fold, start);
    ft_before_expect(fold->before, ft_table_count(fold->sums));
    for (size_t i = 0; order && i < ft_table_count(fold->sums); i++)
        end(fold, order[i], &by, start, interval_ms, sink);
    while (!order && (sum = ft_table_next(fold->sums, &at)))
        end(fold, sum, &by, start, interval_ms, sink);
    free(order);
    ft_table_clear(fold->sums);
    fold->pending = 0;
    return flushed - (fold->thinned - thinned);
}

void ft_fold_thin(struct ft_fold *fold, uint32_t part)
{
    fold->part = part;
}

uint64_t ft_fold_thinned(const struct ft_fold *fold, uint64_t *sums)
{
    *sums = fold->thinned_sums;
    return fold->thinned;
}

uint64_t ft_fold_pending(const struct ft_fold *fold)
{
    return fold->pending;
}

uint64_t ft_fold_refused(const struct ft_fold *fold)
{
    return fold->refused;
}

uint64_t ft_fold_implausible(const struct ft_fold *fold)
{
    return fold->implausible;
}

uint64_t ft_fold_sums(const struct ft_fold *fold)
{
    return ft_table_count(fold->sums);
}

uint64_t ft_fold_bytes(const struct ft_fold *fold)
{
    return ft_table_bytes(fold->sums) + ft_before_bytes(fold->before) +
           fold->outers_size * sizeof(*fold->outers);
}
