// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/history/row.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/reader.h"
#include "lib/fabric/paths.h"
#include "proto/record.h"

#define FIELDS_MAX    64 /* of a row: the bits of its mask */
#define FIXED_IDS_MAX 12
#define MESSAGE_BYTES 1024
#define DIGITS        6

struct kind {
    Fabrictrace__Record__KindCase kind;
    const ProtobufCMessageDescriptor *descriptor;
    unsigned fixed[FIXED_IDS_MAX]; /* numbers that seldom change, ended by 0 */
};

/* The numbers of a message are in the row unless they are listed here. */
static const struct kind kinds[FT_ROW_KINDS] = {
    [FT_ROW_LINK] = {FABRICTRACE__RECORD__KIND_LINK, &fabrictrace__link__descriptor, {14}},
    [FT_ROW_IMBALANCE] = {FABRICTRACE__RECORD__KIND_IMBALANCE,
                          &fabrictrace__imbalance__descriptor,
                          {4, 6, 7}},
    [FT_ROW_PATH] = {FABRICTRACE__RECORD__KIND_PATH,
                     &fabrictrace__path__descriptor,
                     {5, 6, 9, 14, 18, 20, 24, 25, 26, 27}},
};

enum ft_row_kind ft_row_kind_of(const Fabrictrace__Record *record)
{
    enum ft_row_kind kind = 0;

    while (kind < FT_ROW_KINDS && kinds[kind].kind != record->kind_case)
        kind++;
    return kind;
}

static bool is_window(const ProtobufCFieldDescriptor *f)
{
    return strcmp(f->name, "window_start_ms") == 0 || strcmp(f->name, "window_end_ms") == 0;
}

static bool is_number(const ProtobufCFieldDescriptor *f)
{
    return f->label == PROTOBUF_C_LABEL_OPTIONAL && f->type != PROTOBUF_C_TYPE_STRING &&
           f->type != PROTOBUF_C_TYPE_BYTES && f->type != PROTOBUF_C_TYPE_MESSAGE;
}

/* Whether a field is one of the row's. */
static bool is_figure(const struct kind *kind, const ProtobufCFieldDescriptor *f)
{
    if (!is_number(f) || is_window(f))
        return false;
    for (size_t i = 0; i < FIXED_IDS_MAX && kind->fixed[i]; i++)
        if (kind->fixed[i] == f->id)
            return false;
    return true;
}

uint32_t ft_row_version(void)
{
    uint32_t version = 2166136261u;

    for (size_t k = 0; k < FT_ROW_KINDS; k++)
        for (unsigned i = 0; i < kinds[k].descriptor->n_fields; i++) {
            const ProtobufCFieldDescriptor *f = &kinds[k].descriptor->fields[i];

            if (is_figure(&kinds[k], f))
                version = (version ^ (uint32_t)(f->id << 8 | f->type)) * 16777619u;
        }
    return version;
}

static protobuf_c_boolean *has_of(uint8_t *message, const ProtobufCFieldDescriptor *f)
{
    return (protobuf_c_boolean *)(void *)(message + f->quantifier_offset);
}

static uint64_t window_ms(const ProtobufCMessage *message, const char *name)
{
    const ProtobufCFieldDescriptor *f =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
    uint64_t ms;

    memcpy(&ms, (const uint8_t *)message + f->offset, sizeof(ms));
    return ms;
}

struct ft_span ft_row_span(const Fabrictrace__Record *record)
{
    const ProtobufCMessage *message = ft_record_message(record);

    return (struct ft_span){(int64_t)window_ms(message, "window_start_ms"),
                            (int64_t)window_ms(message, "window_end_ms")};
}

/* A message of whose fields some are left out, beside its hops without what changes in them. */
struct copy {
    _Alignas(max_align_t) uint8_t bytes[MESSAGE_BYTES];
    Fabrictrace__Hop hops[FT_PATH_HOPS_MAX];
    Fabrictrace__Hop *list[FT_PATH_HOPS_MAX];
};

static void strip_path(struct copy *copy)
{
    Fabrictrace__Path *path = (Fabrictrace__Path *)(void *)copy->bytes;
    size_t n = path->n_hops < FT_PATH_HOPS_MAX ? path->n_hops : FT_PATH_HOPS_MAX;

    for (size_t i = 0; i < n; i++) {
        copy->hops[i] = *path->hops[i];
        copy->hops[i].has_samples = copy->hops[i].has_share = copy->hops[i].has_share_lo = false;
        copy->list[i] = &copy->hops[i];
    }
    path->hops = copy->list;
    path->n_hops = n;
    path->n_shares = 0;
}

void ft_row_write_fixed(const Fabrictrace__Record *record, struct ft_writer *w)
{
    const struct kind *kind = &kinds[ft_row_kind_of(record)];
    const ProtobufCMessageDescriptor *d = kind->descriptor;
    struct copy copy;
    uint8_t *room;

    if (d->sizeof_message > MESSAGE_BYTES) {
        w->failed = true;
        return;
    }
    memcpy(copy.bytes, ft_record_message(record), d->sizeof_message);
    for (unsigned i = 0; i < d->n_fields; i++)
        if (is_window(&d->fields[i]) || is_figure(kind, &d->fields[i]))
            *has_of(copy.bytes, &d->fields[i]) = false;
    if (kind->kind == FABRICTRACE__RECORD__KIND_PATH)
        strip_path(&copy);
    room = ft_write_room(
        w, protobuf_c_message_get_packed_size((ProtobufCMessage *)(void *)copy.bytes));
    if (room)
        protobuf_c_message_pack((ProtobufCMessage *)(void *)copy.bytes, room);
}

static void write_varint(struct ft_writer *w, uint64_t v)
{
    while (v >= 0x80) {
        ft_write_u8(w, (uint8_t)(v | 0x80));
        v >>= 7;
    }
    ft_write_u8(w, (uint8_t)v);
}

static uint64_t zigzag(int64_t v)
{
    return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static int64_t unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static const double powers[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

/* The digits and the power of ten of a figure outside of the usual range. */
static int64_t digits_by_text(double v, int *exponent)
{
    char text[40], digits[16] = "";
    size_t n = 0;

    /* "-d.ddddde-xx" */
    snprintf(text, sizeof(text), "%.*e", DIGITS - 1, v);
    *exponent = atoi(strchr(text, 'e') + 1) - (DIGITS - 1);
    for (const char *p = text; *p != 'e'; p++)
        if (*p == '-' || (*p >= '0' && *p <= '9'))
            digits[n++] = *p;
    return strtoll(digits, NULL, 10);
}

/* As digits and a power of ten: what JSON shows of it (proto/json.c), by the same sums. */
static void write_double(struct ft_writer *w, double v)
{
    double a = fabs(v);
    int64_t mantissa;
    int decimals = 9, exponent;

    if (a == 0) {
        write_varint(w, 0);
        return;
    }
    if (a < 1e-4 || a >= 999999.5) {
        mantissa = digits_by_text(v, &exponent);
    } else {
        while (decimals > 0 && a * powers[decimals] >= 999999.5)
            decimals--;
        mantissa = (int64_t)(a * powers[decimals] + 0.5);
        mantissa = v < 0 ? -mantissa : mantissa;
        exponent = -decimals;
    }
    for (; mantissa && mantissa % 10 == 0; mantissa /= 10)
        exponent++;
    write_varint(w, zigzag(mantissa));
    if (mantissa)
        write_varint(w, zigzag(exponent));
}

static double read_double(struct ft_reader *r)
{
    int64_t mantissa = unzigzag(ft_read_varint(r));
    int64_t exponent;
    char text[64];

    if (!mantissa)
        return 0;
    exponent = unzigzag(ft_read_varint(r));
    if (mantissa < -1000000 || mantissa > 1000000 || exponent < -330 || exponent > 310) {
        r->failed = true;
        return 0;
    }
    if (exponent >= -15 && exponent <= 0)
        return (double)mantissa / powers[-exponent];
    snprintf(text, sizeof(text), "%llde%lld", (long long)mantissa, (long long)exponent);
    return strtod(text, NULL);
}

static void write_figure(struct ft_writer *w, ProtobufCType type, const uint8_t *at)
{
    switch (type) {
    case PROTOBUF_C_TYPE_DOUBLE: {
        double v;

        memcpy(&v, at, sizeof(v));
        write_double(w, v);
        break;
    }
    case PROTOBUF_C_TYPE_INT64: {
        int64_t v;

        memcpy(&v, at, sizeof(v));
        write_varint(w, zigzag(v));
        break;
    }
    case PROTOBUF_C_TYPE_UINT64: {
        uint64_t v;

        memcpy(&v, at, sizeof(v));
        write_varint(w, v);
        break;
    }
    default: { /* 32 bits: uint32, enum, bool */
        uint32_t v;

        memcpy(&v, at, sizeof(v));
        write_varint(w, v);
        break;
    }
    }
}

static void read_figure(struct ft_reader *r, ProtobufCType type, uint8_t *at)
{
    if (type == PROTOBUF_C_TYPE_DOUBLE) {
        double v = read_double(r);

        memcpy(at, &v, sizeof(v));
    } else if (type == PROTOBUF_C_TYPE_INT64) {
        int64_t v = unzigzag(ft_read_varint(r));

        memcpy(at, &v, sizeof(v));
    } else if (type == PROTOBUF_C_TYPE_UINT64) {
        uint64_t v = ft_read_varint(r);

        memcpy(at, &v, sizeof(v));
    } else {
        uint32_t v = (uint32_t)ft_read_varint(r);

        memcpy(at, &v, sizeof(v));
    }
}

/* JSON leaves a figure out that is not finite, and so does a row. */
static bool is_there(uint8_t *message, const ProtobufCFieldDescriptor *f)
{
    double v;

    if (!*has_of(message, f))
        return false;
    if (f->type != PROTOBUF_C_TYPE_DOUBLE)
        return true;
    memcpy(&v, message + f->offset, sizeof(v));
    return isfinite(v);
}

void ft_row_write(const Fabrictrace__Record *record, struct ft_writer *w)
{
    const struct kind *kind = &kinds[ft_row_kind_of(record)];
    const ProtobufCMessageDescriptor *d = kind->descriptor;
    uint8_t *message = (uint8_t *)(uintptr_t)ft_record_message(record);
    uint64_t mask = 0;
    unsigned bit = 0;

    for (unsigned i = 0; i < d->n_fields; i++)
        if (is_figure(kind, &d->fields[i]) && bit < FIELDS_MAX)
            mask |= (uint64_t)is_there(message, &d->fields[i]) << bit++;
    write_varint(w, mask);
    for (unsigned i = 0; i < d->n_fields; i++)
        if (is_figure(kind, &d->fields[i]) && is_there(message, &d->fields[i]))
            write_figure(w, d->fields[i].type, message + d->fields[i].offset);
}

static void set_window(ProtobufCMessage *message, const char *name, int64_t ms)
{
    const ProtobufCFieldDescriptor *f =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
    uint64_t value = (uint64_t)ms;

    *has_of((uint8_t *)message, f) = true;
    memcpy((uint8_t *)message + f->offset, &value, sizeof(value));
}

static bool read_figures(const struct kind *kind, uint8_t *message, struct ft_reader *r)
{
    const ProtobufCMessageDescriptor *d = kind->descriptor;
    uint64_t mask = ft_read_varint(r);
    unsigned bit = 0;

    for (unsigned i = 0; i < d->n_fields; i++) {
        if (!is_figure(kind, &d->fields[i]) || bit >= FIELDS_MAX)
            continue;
        if (mask >> bit++ & 1) {
            *has_of(message, &d->fields[i]) = true;
            read_figure(r, d->fields[i].type, message + d->fields[i].offset);
        }
    }
    return ft_reader_ok(r) && ft_reader_left(r) == 0;
}

Fabrictrace__Record *ft_row_read(enum ft_row_kind kind, const uint8_t *fixed, size_t fixed_len,
                                 const uint8_t *row, size_t row_len, const struct ft_span *span)
{
    Fabrictrace__Record *record = malloc(sizeof(*record));
    ProtobufCMessage *message =
        record ? protobuf_c_message_unpack(kinds[kind].descriptor, NULL, fixed_len, fixed) : NULL;
    struct ft_reader r;

    if (!message) {
        free(record);
        return NULL;
    }
    ft_reader_init(&r, row, row_len);
    fabrictrace__record__init(record);
    record->kind_case = kinds[kind].kind;
    record->link = (Fabrictrace__Link *)message;
    set_window(message, "window_start_ms", span->start_ms);
    set_window(message, "window_end_ms", span->end_ms);
    if (read_figures(&kinds[kind], (uint8_t *)message, &r))
        return record;
    ft_record_free(record);
    return NULL;
}
