// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/table.h"
#include "proto/record.h"

#define ROWS_FIRST    1024
#define ADDRESSES_MAX (4 * FT_COLUMNS_ROWS_MAX)
#define LENGTH_SLOTS  256 /* a length is read in one function alone */
#define LENGTHS_MAX   120 /* their indexes take one byte */

/* Bytes of the longest varint of 32 and of 64 bits. */
#define VARINT_32 5
#define VARINT_64 10

enum wire {
    WIRE_VARINT = 0,
    WIRE_BYTES = 2,
};

/* Fields of Observations from the first column on. */
enum field {
    FIELD_TIME = 1,
    FIELD_INTERVAL = 2,
    FIELD_ADDRESSES = 3,
    FIELD_SOURCES = 4,
    FIELD_LENGTHS = 5,
    FIELD_SOURCE = 8,
    FIELD_SRC,
    FIELD_DST,
    FIELD_SPORT,
    FIELD_DPORT,
    FIELD_PROTO,
    FIELD_IN,
    FIELD_OUT,
    FIELD_FIRST_AFTER,
    FIELD_SPAN,
    FIELD_SAMPLES,
    FIELD_PACKETS_MORE,
    FIELD_LENGTH,
    FIELD_BYTES,
    FIELD_CE,
    FIELD_ACK,
    FIELD_OTHER,
    FIELD_CNP,
    FIELD_DST_QP,
    FIELD_OUTER_SRC,
    FIELD_OUTER_DST,
    FIELD_OUTER_SPORT,
    FIELD_OUTER_DPORT,
    FIELD_OUTER_PROTO,
    FIELD_QUEUE,
    FIELD_TRANSIT,
    FIELD_PSN,
    FIELD_PSN_SPAN,
    FIELD_PSN_BACK,
    FIELD_STARTS,
    FIELD_FRAME_MIN,
    FIELD_FRAME_MAX,
    FIELD_NAKS,
    FIELD_RNRS,
    FIELD_SOURCE_ROUTED,
    FIELD_READS,
    FIELD_NO_CREDITS,
    FIELD_VNI,
    FIELD_END,
};

#define COLUMNS (FIELD_END - FIELD_SOURCE)

/* Its values as varints; none of them before the first that is not 0. */
struct column {
    uint8_t *bytes;
    size_t len;
};

struct address {
    struct ft_ip ip;
};

/* Hashed and compared as bytes: no padding. */
struct source {
    uint32_t agent, sub_agent, source_type, source_index;
    uint32_t point, fate, discard_reason, ttl, sampling_rate;
};

struct ft_columns {
    size_t bytes_max;
    uint32_t rows, room;
    size_t bytes; /* of all lists */
    uint64_t time_ms, first_ms;
    uint32_t interval_ms;
    struct ft_table *addresses, *sources;
    struct ft_writer shared; /* both, as fields of the message */
    uint32_t lengths[LENGTHS_MAX];
    uint8_t length_at[LENGTH_SLOTS]; /* index and 1 */
    uint32_t length_count;
    struct column columns[COLUMNS];
};

static bool is_wide(size_t column)
{
    enum field field = (enum field)(column + FIELD_SOURCE);

    return field == FIELD_PACKETS_MORE || field == FIELD_BYTES || field == FIELD_QUEUE ||
           field == FIELD_TRANSIT;
}

struct ft_columns *ft_columns_new(size_t bytes_max)
{
    struct ft_columns *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->bytes_max = bytes_max;
    c->addresses = ft_table_new(sizeof(struct address), sizeof(struct ft_ip), ADDRESSES_MAX, 0);
    c->sources = ft_table_new(sizeof(struct source), sizeof(struct source), FT_COLUMNS_ROWS_MAX, 0);
    /* What one observation brings may pass the limit. */
    ft_writer_init(&c->shared, bytes_max + 4096);
    if (!c->addresses || !c->sources) {
        ft_columns_free(c);
        return NULL;
    }
    return c;
}

void ft_columns_free(struct ft_columns *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < COLUMNS; i++)
        free(c->columns[i].bytes);
    ft_table_free(c->addresses);
    ft_table_free(c->sources);
    ft_writer_free(&c->shared);
    free(c);
}

uint32_t ft_columns_count(const struct ft_columns *c)
{
    return c->rows;
}

static inline uint8_t *put_varint(uint8_t *at, uint64_t value)
{
    while (value > 0x7f) {
        *at++ = (uint8_t)value | 0x80;
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

static size_t varint_bytes(uint64_t value)
{
    size_t n = 1;

    while (value >>= 7)
        n++;
    return n;
}

static void write_varint(struct ft_writer *w, uint64_t value)
{
    uint8_t *at = ft_write_room(w, varint_bytes(value));

    if (at)
        put_varint(at, value);
}

static void write_number(struct ft_writer *w, uint32_t field, uint64_t value)
{
    write_varint(w, field << 3 | WIRE_VARINT);
    write_varint(w, value);
}

static void write_head(struct ft_writer *w, uint32_t field, size_t len)
{
    write_varint(w, field << 3 | WIRE_BYTES);
    write_varint(w, len);
}

/* Of a number that most rows have as 0: where nothing was written yet, nothing is. */
static inline void put(struct ft_columns *c, enum field field, uint64_t value)
{
    struct column *column = &c->columns[field - FIELD_SOURCE];
    uint8_t *at = column->bytes + column->len;

    if (column->len == 0) {
        if (value == 0)
            return;
        memset(at, 0, c->rows);
        at += c->rows;
    }
    at = put_varint(at, value);
    c->bytes += (size_t)(at - column->bytes) - column->len;
    column->len = (size_t)(at - column->bytes);
}

static int grow(struct ft_columns *c)
{
    uint32_t room = c->room ? 2 * c->room : ROWS_FIRST;

    for (size_t i = 0; i < COLUMNS; i++) {
        struct column *column = &c->columns[i];
        uint8_t *bytes = realloc(column->bytes, room * (is_wide(i) ? VARINT_64 : VARINT_32));

        if (!bytes)
            return -ENOMEM;
        column->bytes = bytes;
    }
    c->room = room;
    return 0;
}

/* Entries of the message's lists are numbered as they are made, like those of the tables. */
static int index_of_address(struct ft_columns *c, const struct ft_ip *ip, uint32_t *index)
{
    bool fresh;
    struct address *entry = ft_table_insert(c->addresses, ip, &fresh);
    const uint8_t *bytes;
    size_t len;

    if (!entry)
        return -ENOMEM;
    *index = ft_table_index(c->addresses, entry);
    if (!fresh)
        return 0;
    bytes = ft_ip_bytes(&entry->ip, &len);
    c->bytes -= c->shared.len;
    write_head(&c->shared, FIELD_ADDRESSES, len);
    ft_write_bytes(&c->shared, bytes, len);
    c->bytes += c->shared.len;
    return ft_writer_ok(&c->shared) ? 0 : -ENOMEM;
}

static void write_source(struct ft_writer *w, const struct source *s)
{
    /* In the order of the message's fields; the agent is always there. */
    const uint32_t values[] = {s->agent,          s->sub_agent, s->source_type,
                               s->source_index,   s->point,     s->fate,
                               s->discard_reason, s->ttl,       s->sampling_rate};
    size_t len = 0;

    for (uint32_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        if (i == 0 || values[i])
            len += 1 + varint_bytes(values[i]);
    write_head(w, FIELD_SOURCES, len);
    for (uint32_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        if (i == 0 || values[i])
            write_number(w, i + 1, values[i]);
}

static int index_of_source(struct ft_columns *c, const struct source *source, uint32_t *index)
{
    bool fresh;
    struct source *entry = ft_table_insert(c->sources, source, &fresh);

    if (!entry)
        return -ENOMEM;
    *index = ft_table_index(c->sources, entry);
    if (!fresh)
        return 0;
    c->bytes -= c->shared.len;
    write_source(&c->shared, source);
    c->bytes += c->shared.len;
    return ft_writer_ok(&c->shared) ? 0 : -ENOMEM;
}

/* The index and 1 of the length that all frames have; 0: there is none. */
static uint32_t length_of(struct ft_columns *c, uint64_t packets, uint64_t bytes)
{
    uint64_t length = packets ? bytes / packets : 0;
    uint8_t *slot;

    if (length == 0 || length > UINT32_MAX || length * packets != bytes)
        return 0;
    slot = &c->length_at[length % LENGTH_SLOTS];
    if (*slot && c->lengths[*slot - 1] == length)
        return *slot;
    if (c->length_count == LENGTHS_MAX)
        return 0;
    c->lengths[c->length_count++] = (uint32_t)length;
    c->bytes += varint_bytes(length);
    *slot = (uint8_t)c->length_count;
    return *slot;
}

/* Of a message that says all that columns do, and nothing else. */
static int take(const Fabrictrace__Observation *o, struct ft_observed *out)
{
    if (ft_observed_from(o, out) || !o->has_interval_ms || !o->has_packets || !o->has_bytes ||
        !o->has_samples || (o->outer && !out->has_outer))
        return -EINVAL;
    if ((uint64_t)out->data_samples + out->ack_samples > out->samples ||
        out->last_ms < out->first_ms || out->last_ms - out->first_ms > UINT32_MAX ||
        out->time_ms > INT64_MAX || out->first_ms > INT64_MAX || out->dst_qp == UINT32_MAX ||
        out->psn == UINT32_MAX || out->vni == UINT32_MAX || out->frame_min_bytes == UINT32_MAX)
        return -EINVAL;
    return 0;
}

static uint32_t rate_of(const struct ft_observed *o)
{
    uint64_t rate = o->samples <= 1 ? o->packets : o->packets / o->samples;

    return o->samples && rate <= UINT32_MAX && rate * o->samples == o->packets ? (uint32_t)rate : 0;
}

/* What rows name by index. */
struct named {
    uint32_t source, src, dst, outer_src, outer_dst;
};

static int name(struct ft_columns *c, const struct ft_observed *o, uint32_t rate, struct named *n)
{
    struct source source = {.sub_agent = o->sub_agent,
                            .source_type = o->source_type,
                            .source_index = o->source_index,
                            .point = o->point,
                            .fate = o->fate,
                            .discard_reason = o->discard_reason,
                            .ttl = o->has_ttl ? o->ttl : 0,
                            .sampling_rate = rate};

    *n = (struct named){0};
    if (index_of_address(c, &o->agent, &source.agent) || index_of_source(c, &source, &n->source) ||
        index_of_address(c, &o->tuple.src, &n->src) || index_of_address(c, &o->tuple.dst, &n->dst))
        return -ENOMEM;
    if (o->has_outer && (index_of_address(c, &o->outer.src, &n->outer_src) ||
                         index_of_address(c, &o->outer.dst, &n->outer_dst)))
        return -ENOMEM;
    return 0;
}

static inline uint32_t zigzag(int32_t v)
{
    return (uint32_t)v << 1 ^ (v < 0 ? UINT32_MAX : 0);
}

static void put_flow(struct ft_columns *c, const struct ft_observed *o, const struct named *n)
{
    put(c, FIELD_SOURCE, n->source);
    put(c, FIELD_SRC, n->src);
    put(c, FIELD_DST, n->dst);
    put(c, FIELD_SPORT, (uint16_t)(o->tuple.sport - 49152));
    put(c, FIELD_DPORT, (uint16_t)(o->tuple.dport - FT_ROCE_PORT));
    put(c, FIELD_PROTO, (uint8_t)(o->tuple.proto - FT_PROTO_UDP));
    put(c, FIELD_IN, o->in_ifindex);
    put(c, FIELD_OUT, o->out_ifindex);
}

static void put_sums(struct ft_columns *c, const struct ft_observed *o, uint32_t rate)
{
    uint32_t length = length_of(c, o->packets, o->bytes);

    put(c, FIELD_SPAN, o->last_ms - o->first_ms);
    put(c, FIELD_SAMPLES, o->samples);
    put(c, FIELD_PACKETS_MORE, rate ? 0 : o->packets);
    put(c, FIELD_LENGTH, length);
    put(c, FIELD_BYTES, length ? 0 : o->bytes);
    put(c, FIELD_CE, o->ce_samples);
    put(c, FIELD_ACK, o->ack_samples);
    put(c, FIELD_OTHER, o->samples - o->data_samples - o->ack_samples);
    put(c, FIELD_CNP, o->cnp_samples);
    put(c, FIELD_DST_QP, o->has_dst_qp ? o->dst_qp + 1 : 0);
}

/* Frames of one length have that of the mean. */
static void put_psn(struct ft_columns *c, const struct ft_observed *o)
{
    bool alike = o->frame_min_bytes == o->frame_max_bytes && o->packets &&
                 o->bytes / o->packets == o->frame_min_bytes;

    put(c, FIELD_PSN, o->has_psn ? o->psn + 1 : 0);
    put(c, FIELD_PSN_SPAN, o->has_psn ? o->psn_span : 0);
    put(c, FIELD_PSN_BACK, o->has_psn ? o->psn_back_samples : 0);
    put(c, FIELD_STARTS, o->message_starts);
    put(c, FIELD_FRAME_MIN, o->data_samples && !alike ? o->frame_min_bytes + 1 : 0);
    put(c, FIELD_FRAME_MAX, o->data_samples && !alike ? o->frame_max_bytes : 0);
    put(c, FIELD_NAKS, o->nak_samples);
    put(c, FIELD_RNRS, o->rnr_samples);
    put(c, FIELD_NO_CREDITS, o->no_credit_samples);
}

static void put_rest(struct ft_columns *c, const struct ft_observed *o, const struct named *n)
{
    put(c, FIELD_OUTER_SRC, o->has_outer ? n->outer_src + 1 : 0);
    put(c, FIELD_OUTER_DST, n->outer_dst);
    put(c, FIELD_OUTER_SPORT, o->has_outer ? o->outer.sport : 0);
    put(c, FIELD_OUTER_DPORT, o->has_outer ? o->outer.dport : 0);
    put(c, FIELD_OUTER_PROTO, o->has_outer ? o->outer.proto : 0);
    put(c, FIELD_QUEUE, o->has_queue ? (uint64_t)o->queue_max_bytes + 1 : 0);
    put(c, FIELD_TRANSIT, o->has_transit ? (uint64_t)o->transit_max_ns + 1 : 0);
    put(c, FIELD_SOURCE_ROUTED, o->source_routed);
    put(c, FIELD_READS, o->read_responses + 2u * o->read_requests);
    put(c, FIELD_VNI, o->has_vni ? o->vni + 1 : 0);
}

int ft_columns_add_row(struct ft_columns *c, const struct ft_observed *o)
{
    struct ft_observed row = *o;
    struct named named;
    int64_t after;
    uint32_t rate;

    after = (int64_t)(row.first_ms - (c->rows ? c->first_ms : row.time_ms));
    if (after < INT32_MIN || after > INT32_MAX)
        return c->rows ? -ENOSPC : -EINVAL;
    if (c->rows && (row.time_ms != c->time_ms || row.interval_ms != c->interval_ms ||
                    c->rows == FT_COLUMNS_ROWS_MAX || c->bytes >= c->bytes_max))
        return -ENOSPC;
    if (c->rows == c->room && grow(c))
        return -ENOMEM;
    rate = rate_of(&row);
    if (name(c, &row, rate, &named))
        return c->rows ? -ENOSPC : -ENOMEM;
    if (c->rows == 0) {
        c->time_ms = row.time_ms;
        c->interval_ms = row.interval_ms;
    }
    c->first_ms = row.first_ms;
    put_flow(c, &row, &named);
    put(c, FIELD_FIRST_AFTER, zigzag((int32_t)after));
    put_sums(c, &row, rate);
    put_rest(c, &row, &named);
    put_psn(c, &row);
    c->rows++;
    return 0;
}

int ft_columns_add(struct ft_columns *c, const Fabrictrace__Observation *o)
{
    struct ft_observed row;

    return take(o, &row) ? -EINVAL : ft_columns_add_row(c, &row);
}

static size_t field_bytes(uint32_t field, size_t len)
{
    return varint_bytes(field << 3) + varint_bytes(len) + len;
}

/* A reader takes the number of observations from this list: it is there even when all are 0. */
static void complete_first(struct ft_columns *c)
{
    struct column *column = &c->columns[0];

    if (column->len)
        return;
    memset(column->bytes, 0, c->rows);
    column->len = c->rows;
}

static size_t message_bytes(const struct ft_columns *c, size_t lengths_bytes)
{
    size_t n = 1 + varint_bytes(c->time_ms) + 1 + varint_bytes(c->interval_ms) + c->shared.len;

    if (lengths_bytes)
        n += field_bytes(FIELD_LENGTHS, lengths_bytes);
    for (size_t i = 0; i < COLUMNS; i++)
        if (c->columns[i].len)
            n += field_bytes((uint32_t)i + FIELD_SOURCE, c->columns[i].len);
    return n;
}

static void write_message(const struct ft_columns *c, struct ft_writer *w, size_t lengths_bytes)
{
    write_number(w, FIELD_TIME, c->time_ms);
    write_number(w, FIELD_INTERVAL, c->interval_ms);
    ft_write_bytes(w, c->shared.bytes, c->shared.len);
    if (lengths_bytes)
        write_head(w, FIELD_LENGTHS, lengths_bytes);
    for (uint32_t i = 0; i < c->length_count; i++)
        write_varint(w, c->lengths[i]);
    for (size_t i = 0; i < COLUMNS; i++) {
        if (!c->columns[i].len)
            continue;
        write_head(w, (uint32_t)i + FIELD_SOURCE, c->columns[i].len);
        ft_write_bytes(w, c->columns[i].bytes, c->columns[i].len);
    }
}

static void empty(struct ft_columns *c)
{
    for (size_t i = 0; i < COLUMNS; i++)
        c->columns[i].len = 0;
    ft_table_clear(c->addresses);
    ft_table_clear(c->sources);
    ft_writer_reset(&c->shared);
    memset(c->length_at, 0, sizeof(c->length_at));
    c->length_count = 0;
    c->rows = 0;
    c->bytes = 0;
}

int ft_columns_pack(struct ft_columns *c, struct ft_writer *w)
{
    size_t lengths_bytes = 0, len, before = w->len;

    if (c->rows == 0)
        return 0;
    complete_first(c);
    for (uint32_t i = 0; i < c->length_count; i++)
        lengths_bytes += varint_bytes(c->lengths[i]);
    len = message_bytes(c, lengths_bytes);
    write_head(w, 1, field_bytes(FABRICTRACE__RECORD__KIND_OBSERVATIONS, len));
    write_head(w, FABRICTRACE__RECORD__KIND_OBSERVATIONS, len);
    write_message(c, w, lengths_bytes);
    empty(c);
    if (ft_writer_ok(w))
        return 0;
    w->len = before;
    return -ENOSPC;
}
