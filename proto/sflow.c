// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/sflow.h"

#include "proto/sflow_record.h"

#define SFLOW_VERSION 5

/* Formats: enterprise in the upper 20 bits (0: sFlow.org), format in the lower 12. */
#define SAMPLE_FLOW              1
#define SAMPLE_COUNTERS          2
#define SAMPLE_FLOW_EXPANDED     3
#define SAMPLE_COUNTERS_EXPANDED 4
#define SAMPLE_DISCARDED         5

#define FLOW_BYTES          32
#define FLOW_EXPANDED_BYTES 44
#define DISCARDED_BYTES     32
#define GENERIC_BYTES       88
#define RECORD_BYTES        8  /* format and length */
#define RAW_BYTES           16 /* of a raw header, before the header itself */

#define RECORD_HEADER 1 /* the one that nearly every sample has */

#define HEADER_ETHERNET 1
#define HEADER_IPV4     11
#define HEADER_IPV6     12
#define HEADER_MPLS     13

#define INTERNAL_COMPACT  0x3fffffffu
#define INTERNAL_EXPANDED 0xffffffffu

#define IF_STATUS_ADMIN 1 /* ifStatus, sFlow v5 section 5.4, counter data */
#define IF_STATUS_OPER  2
#define PROTO_TCP       6

/* The content of an XDR opaque<> of so many bytes. Its padding is taken as far as it is there: some
 * exporters leave it out at the end of a structure. */
static inline __attribute__((always_inline)) void read_content(struct ft_reader *r, uint32_t bytes,
                                                               struct ft_reader *content)
{
    size_t left;

    ft_read_child(r, bytes, content);
    if ((bytes & 3) == 0)
        return;
    left = ft_reader_left(r);
    ft_read_skip(r, (-bytes & 3) < left ? -bytes & 3 : left);
}

/* A structure behind its format and length; returns the format. */
static inline __attribute__((always_inline)) uint32_t read_structure(struct ft_reader *r,
                                                                     struct ft_reader *content)
{
    const uint8_t *h = ft_read_bytes(r, RECORD_BYTES);

    if (!h) {
        ft_read_child(r, 0, content);
        return 0;
    }
    read_content(r, ft_be32_at(h + 4), content);
    return ft_be32_at(h);
}

static enum ft_sflow_status read_head(struct ft_reader *r, struct ft_sflow_head *head)
{
    uint32_t version = ft_read_be32(r);
    uint32_t type = ft_read_be32(r);
    const uint8_t *address;

    if (!ft_reader_ok(r))
        return FT_SFLOW_SHORT;
    if (version != SFLOW_VERSION)
        return FT_SFLOW_UNKNOWN;
    if (type != 1 && type != 2)
        return FT_SFLOW_BAD;
    address = ft_read_bytes(r, type == 1 ? 4 : 16);
    if (address)
        head->agent = type == 1 ? ft_ip4(address) : ft_ip6(address);
    head->sub_agent = ft_read_be32(r);
    head->sequence = ft_read_be32(r);
    head->uptime_ms = ft_read_be32(r);
    head->samples = ft_read_be32(r);
    return ft_reader_ok(r) ? FT_SFLOW_OK : FT_SFLOW_SHORT;
}

/* Ahead of any callback, so that a datagram that was cut off leaves nothing behind. The count is
 * not trusted: each sample takes at least its 8 bytes of framing, or the reader fails. */
static bool framing_holds(struct ft_reader r, uint32_t samples, bool *trailing)
{
    struct ft_reader content;

    for (uint32_t i = 0; i < samples && ft_reader_ok(&r); i++)
        read_structure(&r, &content);
    *trailing = ft_reader_left(&r) > 0;
    return ft_reader_ok(&r);
}

/* Section 5.3 and its errata: the compact form has 2 bits of format and 30 of value. */
static struct ft_sflow_interface interface_of(uint32_t format, uint32_t value, bool output)
{
    struct ft_sflow_interface known = {.value = value};
    struct ft_sflow_interface unknown = {.kind = FT_SFLOW_IF_UNKNOWN};

    switch (format) {
    case 0:
        if (value == 0)
            return unknown;
        /* The expanded form should say 0xffffffff; exporters say either. */
        if (value == INTERNAL_COMPACT || value == INTERNAL_EXPANDED)
            return (struct ft_sflow_interface){.kind = FT_SFLOW_IF_INTERNAL};
        known.kind = FT_SFLOW_IF_INDEX;
        return known;
    case 1:
        known.kind = FT_SFLOW_IF_DISCARD;
        return output ? known : unknown;
    case 2:
        known.kind = FT_SFLOW_IF_MULTIPLE;
        return output ? known : unknown;
    default:
        return unknown;
    }
}

static inline struct ft_sflow_interface compact_interface(uint32_t word, bool output)
{
    /* Nearly always an ifIndex: format 0, neither 0 nor the switch itself. */
    if (word - 1 < INTERNAL_COMPACT - 1)
        return (struct ft_sflow_interface){.kind = FT_SFLOW_IF_INDEX, .value = word};
    return interface_of(word >> 30, word & 0x3fffffff, output);
}

static void read_source(struct ft_reader *r, bool expanded, uint32_t *type, uint32_t *index)
{
    uint32_t source = ft_read_be32(r);

    *type = expanded ? source : source >> 24;
    *index = expanded ? ft_read_be32(r) : source & 0xffffff;
}

/* What the records of one flow sample gave. */
struct sampled {
    bool raw;                     /* a raw header was there */
    enum ft_packet_status status; /* of the raw header; FT_PACKET_UNKNOWN without one */
    uint32_t frame_bytes;
    struct ft_packet *packet; /* filled when the status is OK */
    bool has_spare;           /* sampled IPv4 or IPv6 data gave a tuple */
    struct ft_packet spare;
    uint32_t spare_bytes;
};

static inline bool read_raw_header(struct ft_reader *r, struct sampled *s)
{
    const uint8_t *h = ft_read_bytes(r, RAW_BYTES);
    struct ft_reader header;

    if (!h)
        return false;
    read_content(r, ft_be32_at(h + 12), &header);
    if (!ft_reader_ok(r))
        return false;
    s->raw = true;
    s->frame_bytes = ft_be32_at(h + 4);
    switch (ft_be32_at(h)) {
    case HEADER_ETHERNET:
        s->status = ft_packet_decode(FT_LINK_ETHERNET, &header, s->packet);
        break;
    case HEADER_IPV4:
        s->status = ft_packet_decode(FT_LINK_IPV4, &header, s->packet);
        break;
    case HEADER_IPV6:
        s->status = ft_packet_decode(FT_LINK_IPV6, &header, s->packet);
        break;
    case HEADER_MPLS:
        s->status = ft_packet_decode(FT_LINK_MPLS, &header, s->packet);
        break;
    default:
        s->status = FT_PACKET_UNKNOWN;
    }
    return true;
}

/* Sampled IPv4 and IPv6 data, as an exporter sends them that has no header. */
static bool read_sampled_ip(struct ft_reader *r, bool six, struct sampled *s)
{
    size_t address_bytes = six ? 16 : 4;
    struct ft_packet k = {0};
    uint32_t length = ft_read_be32(r);
    uint32_t proto = ft_read_be32(r);
    const uint8_t *src = ft_read_bytes(r, address_bytes);
    const uint8_t *dst = ft_read_bytes(r, address_bytes);
    uint32_t sport = ft_read_be32(r);
    uint32_t dport = ft_read_be32(r);
    uint32_t tos;

    ft_read_skip(r, 4); /* TCP flags */
    tos = ft_read_be32(r);
    if (!ft_reader_ok(r))
        return false;
    /* Ports are 0 where the exporter found none: a later fragment, say. */
    if ((proto != FT_PROTO_UDP && proto != PROTO_TCP) || (sport == 0 && dport == 0) ||
        sport > UINT16_MAX || dport > UINT16_MAX)
        return true;
    k.tuple.src = six ? ft_ip6(src) : ft_ip4(src);
    k.tuple.dst = six ? ft_ip6(dst) : ft_ip4(dst);
    k.tuple.sport = (uint16_t)sport;
    k.tuple.dport = (uint16_t)dport;
    k.tuple.proto = (uint8_t)proto;
    k.dscp = tos >> 2 & 0x3f;
    k.ecn = tos & 3;
    k.ip_bytes = length > UINT16_MAX ? UINT16_MAX : (uint16_t)length;
    s->spare = k;
    s->spare_bytes = length;
    s->has_spare = true;
    return true;
}

/* A record other than the raw header. */
static bool read_other_record(uint32_t format, const uint8_t *bytes, size_t len, struct sampled *s,
                              struct ft_sflow_extended *extended, struct ft_sflow_stats *stats)
{
    enum ft_sflow_record kind = ft_sflow_flow_record(format);
    struct ft_reader r;

    ft_reader_init(&r, bytes, len);
    stats->records[kind]++;
    if (kind == FT_SFLOW_RECORD_IPV4 || kind == FT_SFLOW_RECORD_IPV6)
        return read_sampled_ip(&r, kind == FT_SFLOW_RECORD_IPV6, s);
    if (kind != FT_SFLOW_RECORD_UNKNOWN)
        stats->broken_records += !ft_sflow_read_extended(format, &r, extended);
    return true;
}

static inline bool read_flow_records(struct ft_reader *r, uint32_t count, struct sampled *s,
                                     struct ft_sflow_extended *extended,
                                     struct ft_sflow_stats *stats)
{
    for (uint32_t i = 0; i < count; i++) {
        struct ft_reader record;
        uint32_t format = read_structure(r, &record);
        bool ok = true;

        if (!ft_reader_ok(r))
            return false;
        if (format == FT_SFLOW_EXTENDED_SWITCH && ft_sflow_read_switch(&record, extended)) {
            stats->records[FT_SFLOW_RECORD_SWITCH]++;
        } else if (format != RECORD_HEADER) {
            ok = read_other_record(format, record.pos, ft_reader_left(&record), s, extended, stats);
        } else {
            stats->records[FT_SFLOW_RECORD_HEADER]++;
            if (!s->raw)
                ok = read_raw_header(&record, s);
        }
        if (!ok)
            return false;
    }
    return true;
}

static void count_headerless(enum ft_packet_status status, struct ft_sflow_stats *stats)
{
    switch (status) {
    case FT_PACKET_SHORT:
        stats->headers_short++;
        break;
    case FT_PACKET_BAD:
        stats->headers_bad++;
        break;
    default:
        stats->headers_unknown++;
    }
}

/* Sections 5.3: the fixed part of a sample; returns its number of records. */
static inline __attribute__((always_inline)) uint32_t fill_compact(const uint8_t *h,
                                                                   struct ft_sflow_flow *f)
{
    uint32_t source = ft_be32_at(h + 4);

    f->sequence = ft_be32_at(h);
    f->source_type = source >> 24;
    f->source_index = source & 0xffffff;
    f->sampling_rate = ft_be32_at(h + 8);
    f->sample_pool = ft_be32_at(h + 12);
    f->drops = ft_be32_at(h + 16);
    f->in = compact_interface(ft_be32_at(h + 20), false);
    f->out = compact_interface(ft_be32_at(h + 24), true);
    return ft_be32_at(h + 28);
}

static uint32_t fill_expanded(const uint8_t *h, struct ft_sflow_flow *f)
{
    f->sequence = ft_be32_at(h);
    f->source_type = ft_be32_at(h + 4);
    f->source_index = ft_be32_at(h + 8);
    f->sampling_rate = ft_be32_at(h + 12);
    f->sample_pool = ft_be32_at(h + 16);
    f->drops = ft_be32_at(h + 20);
    f->in = interface_of(ft_be32_at(h + 24), ft_be32_at(h + 28), false);
    f->out = interface_of(ft_be32_at(h + 32), ft_be32_at(h + 36), true);
    return ft_be32_at(h + 40);
}

/* sflow_drops.txt section 2: each notification is one packet; ports are plain ifIndex values. */
static uint32_t fill_discarded(const uint8_t *h, struct ft_sflow_flow *f)
{
    f->sequence = ft_be32_at(h);
    f->source_type = ft_be32_at(h + 4);
    f->source_index = ft_be32_at(h + 8);
    f->sampling_rate = 1;
    f->sample_pool = 0;
    f->drops = ft_be32_at(h + 12);
    f->in = interface_of(0, ft_be32_at(h + 16), false);
    f->out = interface_of(0, ft_be32_at(h + 20), true);
    f->discarded = true;
    f->discard_reason = ft_be32_at(h + 24);
    return ft_be32_at(h + 28);
}

static __attribute__((noinline)) bool read_fixed(struct ft_reader *r, uint32_t format,
                                                 struct ft_sflow_flow *f, uint32_t *records)
{
    const uint8_t *h = ft_read_bytes(r, format == SAMPLE_FLOW            ? FLOW_BYTES
                                        : format == SAMPLE_FLOW_EXPANDED ? FLOW_EXPANDED_BYTES
                                                                         : DISCARDED_BYTES);

    if (!h)
        return false;
    f->discarded = false;
    f->discard_reason = 0;
    f->extended.has = 0;
    *records = format == SAMPLE_FLOW            ? fill_compact(h, f)
               : format == SAMPLE_FLOW_EXPANDED ? fill_expanded(h, f)
                                                : fill_discarded(h, f);
    return true;
}

/* What nearly every sample begins with: its fixed part and a raw header of Ethernet, all in one
 * check of the bounds. Otherwise false, nothing is taken, and the general way does it, of which
 * this is no more than a short cut. Leaves *records on those that follow. */
static inline bool read_usual(struct ft_reader *r, uint32_t format, struct ft_sflow_flow *f,
                              uint32_t *records, struct sampled *s, struct ft_sflow_stats *stats)
{
    struct ft_reader usual = *r, header;
    const uint8_t *h = ft_read_bytes(&usual, FLOW_BYTES + RECORD_BYTES + RAW_BYTES);
    const uint8_t *record, *raw;
    uint32_t record_bytes, header_bytes;

    if (!h || format != SAMPLE_FLOW)
        return false;
    record = h + FLOW_BYTES;
    raw = record + RECORD_BYTES;
    record_bytes = ft_be32_at(record + 4);
    header_bytes = ft_be32_at(raw + 12);
    if (ft_be32_at(record) != RECORD_HEADER || ft_be32_at(raw) != HEADER_ETHERNET ||
        (record_bytes & 3) || record_bytes < RAW_BYTES || header_bytes > record_bytes - RAW_BYTES ||
        ft_reader_left(&usual) < record_bytes - RAW_BYTES)
        return false;
    *records = fill_compact(h, f);
    if ((*records)-- == 0)
        return false;
    f->discarded = false;
    f->discard_reason = 0;
    f->extended.has = 0;
    stats->records[FT_SFLOW_RECORD_HEADER]++;
    s->raw = true;
    s->frame_bytes = ft_be32_at(raw + 4);
    ft_reader_init(&header, raw + RAW_BYTES, header_bytes);
    s->status = ft_packet_decode(FT_LINK_ETHERNET, &header, &f->packet);
    ft_read_skip(&usual, record_bytes - RAW_BYTES);
    *r = usual;
    return true;
}

/* The reader by value: one whose address nobody has lives in registers. */
static void decode_flow(struct ft_reader r, uint32_t format, const struct ft_sflow_visitor *visitor,
                        struct ft_sflow_stats *stats)
{
    struct ft_sflow_flow f;
    struct sampled s;
    uint32_t records;

    s.raw = s.has_spare = false;
    s.frame_bytes = s.spare_bytes = 0;
    s.packet = &f.packet;
    s.status = FT_PACKET_UNKNOWN;
    if ((!read_usual(&r, format, &f, &records, &s, stats) &&
         !read_fixed(&r, format, &f, &records)) ||
        !read_flow_records(&r, records, &s, &f.extended, stats)) {
        stats->broken_samples++;
        return;
    }
    f.has_packet = true;
    f.frame_bytes = s.raw ? s.frame_bytes : s.has_spare ? s.spare_bytes : 0;
    if (!(s.raw && s.status == FT_PACKET_OK)) {
        f.has_packet = s.has_spare;
        f.packet = s.has_spare ? s.spare : (struct ft_packet){0};
        if (!s.has_spare)
            count_headerless(s.status, stats);
    }
    stats->trailing += ft_reader_left(&r) > 0;
    stats->flow_samples++;
    stats->discards += f.discarded;
    if (visitor->flow)
        visitor->flow(visitor->arg, &f);
}

/* Unicast, multicast, broadcast: what the exporter knows of them. */
static uint64_t read_packets(struct ft_reader *r)
{
    uint64_t sum = FT_SFLOW_NO_COUNT;

    for (int i = 0; i < 3; i++) {
        uint64_t v = ft_sflow_read_count32(r);

        if (v != FT_SFLOW_NO_COUNT)
            sum = sum == FT_SFLOW_NO_COUNT ? v : sum + v;
    }
    return sum;
}

static void read_generic(struct ft_reader *r, struct ft_sflow_counters *c)
{
    uint32_t status;

    c->ifindex = ft_read_be32(r);
    ft_read_skip(r, 4); /* ifType */
    c->speed_bps = ft_read_be64(r);
    ft_read_skip(r, 4); /* ifDirection */
    status = ft_read_be32(r);
    c->admin_up = status & IF_STATUS_ADMIN;
    c->oper_up = status & IF_STATUS_OPER;
    c->in_bytes = ft_read_be64(r);
    c->in_packets = read_packets(r);
    c->in_discards = ft_sflow_read_count32(r);
    c->in_errors = ft_sflow_read_count32(r);
    ft_read_skip(r, 4); /* ifInUnknownProtos */
    c->out_bytes = ft_read_be64(r);
    c->out_packets = read_packets(r);
    c->out_discards = ft_sflow_read_count32(r);
    c->out_errors = ft_sflow_read_count32(r);
    ft_read_skip(r, 4); /* ifPromiscuousMode */
}

/* What the records of one counter sample gave besides generic counters, of which there may be
 * several. */
struct counted {
    uint32_t generic;
    bool has_processor;
    bool trailing;
    struct ft_sflow_counters common;
    struct ft_sflow_processor processor;
};

/* hsflowd (mod_sonic, 2025) sends what a port received as requests. It is known by the name of the
 * port beside and by what it does not count. */
static void put_pfc_right(struct ft_sflow_counters *c)
{
    struct ft_sflow_pfc reported = c->pfc;

    if (!c->has_pfc || !c->pfc_is_bare || !c->port[0])
        return;
    c->pfc.requests = reported.indications;
    c->pfc.indications = reported.requests;
}

/* Checks, counts and reads all but the generic ones: they come before or after what says more. */
static bool gather_counters(struct ft_reader r, struct counted *s, struct ft_sflow_stats *stats)
{
    uint32_t count = ft_read_be32(&r);

    for (uint32_t i = 0; i < count; i++) {
        struct ft_reader record;
        enum ft_sflow_record kind = ft_sflow_counter_record(read_structure(&r, &record));

        if (!ft_reader_ok(&r))
            return false;
        stats->records[kind]++;
        if (kind == FT_SFLOW_RECORD_IF_COUNTERS) {
            if (ft_reader_left(&record) < GENERIC_BYTES)
                return false;
            s->generic++;
        } else if (!ft_sflow_read_counters(kind, &record, &s->common, &s->processor)) {
            stats->broken_records++;
        } else {
            s->has_processor |= kind == FT_SFLOW_RECORD_PROCESSOR;
        }
    }
    s->trailing = ft_reader_left(&r) > 0;
    put_pfc_right(&s->common);
    return ft_reader_ok(&r);
}

/* Hands the generic counters of a sample on, which have been checked. */
static void hand_on_counters(struct ft_reader r, const struct counted *s,
                             const struct ft_sflow_visitor *visitor)
{
    uint32_t count = ft_read_be32(&r);

    for (uint32_t i = 0; i < count; i++) {
        struct ft_sflow_counters c = s->common;
        struct ft_reader record;
        bool own;

        if (ft_sflow_counter_record(read_structure(&r, &record)) != FT_SFLOW_RECORD_IF_COUNTERS)
            continue;
        read_generic(&record, &c);
        own = s->generic == 1 || (c.source_type == 0 && c.source_index == c.ifindex);
        c.has_ethernet &= own;
        c.has_lag &= own;
        c.has_pfc &= own;
        c.has_optics &= own;
        if (!own)
            c.port[0] = '\0';
        visitor->counters(visitor->arg, &c);
    }
}

static void decode_counters(struct ft_reader r, bool expanded,
                            const struct ft_sflow_visitor *visitor, struct ft_sflow_stats *stats)
{
    struct counted s = {.generic = 0};

    s.common.sequence = ft_read_be32(&r);
    read_source(&r, expanded, &s.common.source_type, &s.common.source_index);
    if (!gather_counters(r, &s, stats)) {
        stats->broken_samples++;
        return;
    }
    stats->counter_samples++;
    stats->counters_other += s.generic == 0 && !s.has_processor;
    stats->trailing += s.trailing;
    if (s.generic > 0 && visitor->counters)
        hand_on_counters(r, &s, visitor);
    if (s.has_processor && visitor->processor) {
        s.processor.source_type = s.common.source_type;
        s.processor.source_index = s.common.source_index;
        visitor->processor(visitor->arg, &s.processor);
    }
}

enum ft_sflow_status ft_sflow_decode(const uint8_t *bytes, size_t len,
                                     const struct ft_sflow_visitor *visitor,
                                     struct ft_sflow_stats *stats)
{
    struct ft_reader r;
    struct ft_sflow_head head;
    enum ft_sflow_status status;
    bool trailing;

    ft_reader_init(&r, bytes, len);
    status = read_head(&r, &head);
    if (status != FT_SFLOW_OK)
        return status;
    if (!framing_holds(r, head.samples, &trailing))
        return FT_SFLOW_SHORT;
    stats->trailing += trailing;
    if (visitor->head && !visitor->head(visitor->arg, &head))
        return FT_SFLOW_OK;
    for (uint32_t i = 0; i < head.samples; i++) {
        struct ft_reader sample;
        uint32_t format = read_structure(&r, &sample);

        switch (format) {
        case SAMPLE_FLOW:
        case SAMPLE_FLOW_EXPANDED:
        case SAMPLE_DISCARDED:
            decode_flow(sample, format, visitor, stats);
            break;
        case SAMPLE_COUNTERS:
        case SAMPLE_COUNTERS_EXPANDED:
            decode_counters(sample, format == SAMPLE_COUNTERS_EXPANDED, visitor, stats);
            break;
        default:
            stats->unknown_samples++;
        }
    }
    return FT_SFLOW_OK;
}
