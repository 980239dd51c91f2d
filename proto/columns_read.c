// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>

#include "proto/columns.h"

#define SPORT_BASE 49152u

/* A list of the message: nothing at all, or a value for each observation, all below a limit. */
static bool fits_32(size_t n, const uint32_t *values, size_t count, uint64_t limit)
{
    uint32_t most = 0;

    for (size_t i = 0; i < n; i++)
        most = values[i] > most ? values[i] : most;
    /* What is absent is 0 everywhere, which may be no index. */
    return (n == 0 || n == count) && (count == 0 || most < limit);
}

static bool fits_64(size_t n, const uint64_t *values, size_t count, uint64_t limit)
{
    uint64_t most = 0;

    for (size_t i = 0; i < n; i++)
        most = values[i] > most ? values[i] : most;
    return (n == 0 || n == count) && most <= limit;
}

#define FITS(column, limit)      fits_32(m->n_##column, m->column, count, limit)
#define FITS_WIDE(column, limit) fits_64(m->n_##column, m->column, count, limit)
#define ANY                      (UINT64_C(1) << 32)

static bool flows_fit(const Fabrictrace__Observations *m, size_t count)
{
    return FITS(source, m->n_sources) && FITS(src, m->n_addresses) && FITS(dst, m->n_addresses) &&
           FITS(sport, 1u << 16) && FITS(dport, 1u << 16) && FITS(proto, 1u << 8) &&
           FITS(in_ifindex, ANY) && FITS(out_ifindex, ANY);
}

static bool sums_fit(const Fabrictrace__Observations *m, size_t count)
{
    return (m->n_first_after == 0 || m->n_first_after == count) && FITS(span_ms, ANY) &&
           FITS(samples, ANY) && FITS_WIDE(packets_more, UINT64_MAX) &&
           FITS(length, m->n_lengths + 1) && FITS_WIDE(bytes, UINT64_MAX) &&
           FITS(ce_samples, ANY) && FITS(ack_samples, ANY) && FITS(other_samples, ANY) &&
           FITS(cnp_samples, ANY) && FITS(dst_qp, ANY) && FITS(psn, ANY) && FITS(psn_span, ANY) &&
           FITS(psn_back_samples, ANY) && FITS(message_starts, ANY) && FITS(frame_min, ANY) &&
           FITS(frame_max, ANY) && FITS(nak_samples, ANY) && FITS(rnr_samples, ANY) &&
           FITS(no_credit_samples, ANY);
}

static bool rest_fits(const Fabrictrace__Observations *m, size_t count)
{
    return FITS(outer_src, m->n_addresses + 1) && FITS(outer_dst, m->n_addresses) &&
           FITS(outer_sport, 1u << 16) && FITS(outer_dport, 1u << 16) &&
           FITS(outer_proto, 1u << 8) && FITS_WIDE(queue_max, UINT64_C(1) << 32) &&
           FITS_WIDE(transit_max, UINT64_C(1) << 32) && FITS(source_routed, 2) && FITS(reads, 4) &&
           FITS(vni, ANY);
}

static bool lists_fit(const Fabrictrace__Observations *m)
{
    for (size_t i = 0; i < m->n_addresses; i++)
        if (m->addresses[i].len != 4 && m->addresses[i].len != 16)
            return false;
    for (size_t i = 0; i < m->n_sources; i++)
        if (m->sources[i]->agent >= m->n_addresses)
            return false;
    return m->has_time_ms;
}

int ft_columns_open(struct ft_columns_reader *r, const Fabrictrace__Observations *m)
{
    size_t count = m->n_source;

    if (count > FT_COLUMNS_ROWS_MAX || !lists_fit(m) || !flows_fit(m, count) ||
        !sums_fit(m, count) || !rest_fits(m, count))
        return -EBADMSG;
    *r = (struct ft_columns_reader){.m = m, .count = count, .first_ms = m->time_ms};
    return 0;
}

static inline uint32_t at_32(size_t n, const uint32_t *values, size_t row)
{
    return n ? values[row] : 0;
}

static inline uint64_t at_64(size_t n, const uint64_t *values, size_t row)
{
    return n ? values[row] : 0;
}

#define AT(column)      at_32(m->n_##column, m->column, row)
#define AT_WIDE(column) at_64(m->n_##column, m->column, row)

static inline struct ft_ip address_at(const Fabrictrace__Observations *m, uint32_t index)
{
    const ProtobufCBinaryData *bytes = &m->addresses[index];

    return bytes->len == 4 ? ft_ip4(bytes->data) : ft_ip6(bytes->data);
}

static inline void read_source(const Fabrictrace__Observations *m,
                               const Fabrictrace__SampleSource *s, struct ft_observed *out)
{
    out->agent = address_at(m, s->agent);
    out->sub_agent = s->sub_agent;
    out->source_type = s->source_type;
    out->source_index = s->source_index;
    out->point = s->point;
    out->fate = s->fate;
    out->discard_reason = s->discard_reason;
    out->has_ttl = s->ttl != 0;
    out->ttl = s->ttl;
}

static inline void read_flow(const Fabrictrace__Observations *m, size_t row,
                             struct ft_observed *out)
{
    out->tuple = (struct ft_tuple){.src = address_at(m, AT(src)),
                                   .dst = address_at(m, AT(dst)),
                                   .sport = (uint16_t)(AT(sport) + SPORT_BASE),
                                   .dport = (uint16_t)(AT(dport) + FT_ROCE_PORT),
                                   .proto = (uint8_t)(AT(proto) + FT_PROTO_UDP)};
    out->in_ifindex = AT(in_ifindex);
    out->out_ifindex = AT(out_ifindex);
}

/* Volumes that cannot be are as large as a number gets: whoever takes them cuts them. */
static inline void read_volume(const Fabrictrace__Observations *m, size_t row, uint32_t rate,
                               struct ft_observed *out)
{
    uint32_t length = AT(length);

    if (__builtin_add_overflow((uint64_t)out->samples * rate, AT_WIDE(packets_more), &out->packets))
        out->packets = UINT64_MAX;
    out->has_packets = true;
    out->bytes = AT_WIDE(bytes);
    if (length && __builtin_mul_overflow(out->packets, m->lengths[length - 1], &out->bytes))
        out->bytes = UINT64_MAX;
}

static inline void read_samples(const Fabrictrace__Observations *m, size_t row,
                                struct ft_observed *out)
{
    uint32_t other = AT(other_samples);

    out->ce_samples = AT(ce_samples);
    out->ack_samples = AT(ack_samples);
    out->cnp_samples = AT(cnp_samples);
    out->data_samples = out->samples;
    out->data_samples -= out->ack_samples < out->data_samples ? out->ack_samples : out->samples;
    out->data_samples -= other < out->data_samples ? other : out->data_samples;
    out->dst_qp = AT(dst_qp);
    out->has_dst_qp = out->dst_qp != 0;
    out->dst_qp -= out->has_dst_qp;
}

static inline void read_psn(const Fabrictrace__Observations *m, size_t row, struct ft_observed *out)
{
    uint32_t psn = AT(psn), frame = AT(frame_min);
    uint64_t mean = out->packets ? out->bytes / out->packets : 0;

    out->has_psn = psn != 0;
    out->psn = psn - out->has_psn;
    out->psn_span = AT(psn_span);
    out->psn_back_samples = AT(psn_back_samples);
    out->message_starts = AT(message_starts);
    out->nak_samples = AT(nak_samples);
    out->rnr_samples = AT(rnr_samples);
    out->no_credit_samples = AT(no_credit_samples);
    out->frame_min_bytes = frame ? frame - 1 : (uint32_t)mean;
    out->frame_max_bytes = frame ? AT(frame_max) : (uint32_t)mean;
    if (out->data_samples == 0)
        out->frame_min_bytes = out->frame_max_bytes = 0;
}

static void read_rest(const Fabrictrace__Observations *m, size_t row, struct ft_observed *out)
{
    uint64_t queue = AT_WIDE(queue_max), transit = AT_WIDE(transit_max);
    uint32_t src = AT(outer_src), vni = AT(vni);

    out->has_queue = queue != 0;
    out->queue_max_bytes = queue ? (uint32_t)(queue - 1) : 0;
    out->has_transit = transit != 0;
    out->transit_max_ns = transit ? (uint32_t)(transit - 1) : 0;
    out->has_outer = src != 0;
    out->source_routed = AT(source_routed);
    out->read_responses = AT(reads) & 1;
    out->read_requests = AT(reads) >> 1;
    out->has_vni = vni != 0;
    out->vni = vni - out->has_vni;
    if (src)
        out->outer = (struct ft_tuple){.src = address_at(m, src - 1),
                                       .dst = address_at(m, AT(outer_dst)),
                                       .sport = (uint16_t)AT(outer_sport),
                                       .dport = (uint16_t)AT(outer_dport),
                                       .proto = (uint8_t)AT(outer_proto)};
}

bool ft_columns_next(struct ft_columns_reader *r, struct ft_observed *out)
{
    const Fabrictrace__Observations *m = r->m;
    const Fabrictrace__SampleSource *source;
    size_t row = r->at;

    if (row == r->count)
        return false;
    r->at++;
    source = m->sources[m->source[row]];
    if (m->n_first_after)
        r->first_ms += (uint64_t)(int64_t)m->first_after[row];
    out->time_ms = m->time_ms;
    out->interval_ms = m->interval_ms;
    out->first_ms = r->first_ms;
    out->last_ms = r->first_ms + AT(span_ms);
    out->samples = AT(samples);
    read_source(m, source, out);
    read_flow(m, row, out);
    read_volume(m, row, source->sampling_rate, out);
    read_samples(m, row, out);
    read_psn(m, row, out);
    read_rest(m, row, out);
    return true;
}
