// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/json.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/tuple.h"
#include "lib/base/utf8.h"
#include "proto/json_field.h"

/* Length of the prefix that all values of an enum carry: "SAMPLING_POINT_" of SamplingPoint. */
static size_t enum_prefix(const ProtobufCEnumDescriptor *type)
{
    size_t n = 1;

    for (const char *p = type->short_name; *p; p++)
        n += isupper((unsigned char)*p) && p > type->short_name ? 2 : 1;
    return n;
}

/* The part of a value's name that JSON shows. */
static const char *enum_tail(const ProtobufCEnumDescriptor *type, const ProtobufCEnumValue *value)
{
    size_t prefix = enum_prefix(type);

    return strlen(value->name) > prefix ? value->name + prefix : value->name;
}

void ft_json_enum_text(const ProtobufCEnumDescriptor *type, int32_t value,
                       char text[FT_JSON_ENUM_BYTES])
{
    const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(type, value);
    const char *tail;
    size_t i;

    if (!v) {
        snprintf(text, FT_JSON_ENUM_BYTES, "%d", (int)value);
        return;
    }
    tail = enum_tail(type, v);
    for (i = 0; tail[i] && i < FT_JSON_ENUM_BYTES - 1; i++)
        text[i] = (char)tolower((unsigned char)tail[i]);
    text[i] = '\0';
}

int ft_json_enum_parse(const ProtobufCEnumDescriptor *type, const char *text, int32_t *value)
{
    for (unsigned i = 0; i < type->n_values; i++) {
        const char *tail = enum_tail(type, &type->values[i]);
        size_t n = 0;

        while (tail[n] && text[n] == tolower((unsigned char)tail[n]))
            n++;
        if (!tail[n] && !text[n]) {
            *value = type->values[i].value;
            return 0;
        }
    }
    return -EINVAL;
}

static void write_i64(struct ft_writer *w, int64_t v)
{
    if (v < 0)
        ft_write_u8(w, '-');
    ft_write_u64(w, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

/* The shortest form of 6 significant decimals; the usual range without printf. */
static void write_double(struct ft_writer *w, double v)
{
    static const double power[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
    double a = v < 0 ? -v : v;
    char text[32];
    uint64_t digits, unit = 1;
    int decimals = 9;

    if (a == 0) {
        ft_write_u8(w, '0');
        return;
    }
    if (a < 1e-4 || a >= 999999.5) {
        snprintf(text, sizeof(text), "%.6g", v);
        for (char *p = text; *p; p++)
            if (*p == ',') /* a locale's decimal point */
                *p = '.';
        ft_write_str(w, text);
        return;
    }
    while (decimals > 0 && a * power[decimals] >= 999999.5)
        decimals--;
    digits = (uint64_t)(a * power[decimals] + 0.5);
    for (; decimals > 0 && digits % 10 == 0; decimals--)
        digits /= 10;
    if (v < 0)
        ft_write_u8(w, '-');
    for (int i = 0; i < decimals; i++)
        unit *= 10;
    ft_write_u64(w, digits / unit);
    if (decimals == 0)
        return;
    text[0] = '.';
    digits %= unit;
    for (int i = decimals; i > 0; i--, digits /= 10)
        text[i] = (char)('0' + digits % 10);
    ft_write_bytes(w, text, (size_t)decimals + 1);
}

/* Bytes of ASCII that stand for themselves. */
static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* The rest of a text from what is not plain. RFC 8259 section 7. Names of processes and interfaces
 * may hold any bytes: what is no UTF-8 becomes the replacement character, so that a record is
 * always valid JSON. */
static void write_special(struct ft_writer *w, const unsigned char *s)
{
    const unsigned char *plain = s;

    while (*s) {
        size_t n = is_plain(*s) ? 1 : *s < 0x80 ? 0 : ft_utf8_bytes(s);

        if (n > 0) {
            s += n;
            continue;
        }
        ft_write_bytes(w, plain, (size_t)(s - plain));
        if (*s == '"' || *s == '\\')
            ft_write_fmt(w, "\\%c", *s);
        else if (*s == '\n')
            ft_write_str(w, "\\n");
        else if (*s == '\t')
            ft_write_str(w, "\\t");
        else if (*s < 0x20)
            ft_write_fmt(w, "\\u%04x", *s);
        else
            ft_write_str(w, "\xef\xbf\xbd");
        plain = ++s;
    }
    ft_write_bytes(w, plain, (size_t)(s - plain));
    ft_write_u8(w, '"');
}

void ft_json_write_text(struct ft_writer *w, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = 0;
    uint8_t *p;

    while (is_plain(s[n]))
        n++;
    p = ft_write_room(w, n + 1 + (s[n] == '\0'));
    if (!p)
        return;
    *p = '"';
    memcpy(p + 1, s, n);
    if (s[n] == '\0')
        p[n + 1] = '"';
    else
        write_special(w, s + n);
}

void ft_json_write_member(struct ft_writer *w, const char *name, const char *text)
{
    if (!text || !*text)
        return;
    ft_write_fmt(w, ",\"%s\":", name);
    ft_json_write_text(w, text);
}

/* At most 3 digits, without leading zeros. */
static char *put_octet(char *p, uint8_t v)
{
    if (v >= 100)
        *p++ = (char)('0' + v / 100);
    if (v >= 10)
        *p++ = (char)('0' + v / 10 % 10);
    *p++ = (char)('0' + v % 10);
    return p;
}

static void write_address(struct ft_writer *w, const ProtobufCBinaryData *bytes)
{
    char text[FT_IP_TEXT_BYTES + 2] = "\"";
    char *p = text + 1;
    struct ft_ip ip;

    if (bytes->len == 4) {
        for (size_t i = 0; i < 4; i++) {
            if (i > 0)
                *p++ = '.';
            p = put_octet(p, bytes->data[i]);
        }
    } else {
        if (ft_ip_from_bytes(bytes->data, bytes->len, &ip))
            return;
        ft_ip_format(&ip, p);
        p += strlen(p);
    }
    *p++ = '"';
    ft_write_bytes(w, text, (size_t)(p - text));
}

static void write_message(struct ft_writer *w, const ProtobufCMessage *message, const char *first);

static void write_enum(struct ft_writer *w, const ProtobufCEnumDescriptor *type, int32_t value)
{
    const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(type, value);
    const char *tail = v ? enum_tail(type, v) : NULL;
    size_t n = tail ? strlen(tail) : 0;
    uint8_t *p;

    if (!tail) {
        write_i64(w, value);
        return;
    }
    p = ft_write_room(w, n + 2);
    if (!p)
        return;
    *p++ = '"';
    /* A letter of ASCII is a small one with this bit. */
    for (size_t i = 0; i < n; i++)
        *p++ = (uint8_t)(tail[i] >= 'A' && tail[i] <= 'Z' ? tail[i] | 0x20 : tail[i]);
    *p = '"';
}

static void write_value(struct ft_writer *w, const ProtobufCFieldDescriptor *f, const void *at)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        write_i64(w, *(const int32_t *)at);
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        ft_write_u64(w, *(const uint32_t *)at);
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        write_i64(w, *(const int64_t *)at);
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        ft_write_u64(w, *(const uint64_t *)at);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        write_double(w, (double)*(const float *)at);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        write_double(w, *(const double *)at);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        ft_write_str(w, *(const protobuf_c_boolean *)at ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_ENUM:
        write_enum(w, f->descriptor, *(const int32_t *)at);
        break;
    case PROTOBUF_C_TYPE_STRING:
        ft_json_write_text(w, *(const char *const *)at);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        write_address(w, at);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        write_message(w, *(const ProtobufCMessage *const *)at, NULL);
        break;
    }
}

/* Whether a value can be shown at all. */
static inline bool writable(ProtobufCType type, const void *at)
{
    switch (type) {
    case PROTOBUF_C_TYPE_FLOAT:
        return isfinite(*(const float *)at);
    case PROTOBUF_C_TYPE_DOUBLE:
        return isfinite(*(const double *)at);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return *(const void *const *)at != NULL;
    case PROTOBUF_C_TYPE_BYTES:
        return ((const ProtobufCBinaryData *)at)->len == 4 ||
               ((const ProtobufCBinaryData *)at)->len == 16;
    default:
        return true;
    }
}

static inline bool present(const ProtobufCFieldDescriptor *f, const uint8_t *base)
{
    const void *quantifier = base + f->quantifier_offset;

    if (f->label == PROTOBUF_C_LABEL_REPEATED)
        return *(const size_t *)quantifier > 0;
    if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        if (*(const uint32_t *)quantifier != f->id)
            return false;
    } else if (f->label == PROTOBUF_C_LABEL_OPTIONAL && f->type != PROTOBUF_C_TYPE_STRING &&
               f->type != PROTOBUF_C_TYPE_MESSAGE) {
        if (!*(const protobuf_c_boolean *)quantifier)
            return false;
    }
    return writable(f->type, base + f->offset);
}

static void write_array(struct ft_writer *w, const ProtobufCFieldDescriptor *f, const uint8_t *base)
{
    size_t count = *(const size_t *)(const void *)(base + f->quantifier_offset);
    const uint8_t *at = *(const uint8_t *const *)(const void *)(base + f->offset);
    size_t step = ft_json_element_bytes(f->type);
    bool any = false;

    ft_write_u8(w, '[');
    for (size_t i = 0; i < count; i++, at += step) {
        if (!writable(f->type, at))
            continue;
        if (any)
            ft_write_u8(w, ',');
        any = true;
        write_value(w, f, at);
    }
    ft_write_u8(w, ']');
}

static void write_message(struct ft_writer *w, const ProtobufCMessage *message, const char *first)
{
    const ProtobufCMessageDescriptor *d = message->descriptor;
    const uint8_t *base = (const uint8_t *)message;
    bool any = first != NULL;

    ft_write_u8(w, '{');
    if (first)
        ft_write_str(w, first);
    for (unsigned i = 0; i < d->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &d->fields[i];
        size_t n;
        uint8_t *p;

        if (!present(f, base))
            continue;
        n = strlen(f->name);
        p = ft_write_room(w, n + 3 + any);
        if (!p)
            return;
        if (any)
            *p++ = ',';
        any = true;
        *p++ = '"';
        memcpy(p, f->name, n);
        p[n] = '"';
        p[n + 1] = ':';
        if (f->label == PROTOBUF_C_LABEL_REPEATED)
            write_array(w, f, base);
        else
            write_value(w, f, base + f->offset);
    }
    ft_write_u8(w, '}');
}

int ft_json_write(struct ft_writer *w, const ProtobufCMessage *message, const char *first)
{
    write_message(w, message, first);
    return ft_writer_ok(w) ? 0 : -ENOSPC;
}
