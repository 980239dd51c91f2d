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
#include "proto/json_plan.h"

#define VALUE_MAX FT_JSON_VALUE_MAX

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
    tail = ft_json_enum_tail(type, v);
    for (i = 0; tail[i] && i < FT_JSON_ENUM_BYTES - 1; i++)
        text[i] = (char)tolower((unsigned char)tail[i]);
    text[i] = '\0';
}

int ft_json_enum_parse(const ProtobufCEnumDescriptor *type, const char *text, int32_t *value)
{
    for (unsigned i = 0; i < type->n_values; i++) {
        const char *tail = ft_json_enum_tail(type, &type->values[i]);
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

static uint8_t *put_i64(uint8_t *p, int64_t v)
{
    if (v < 0)
        *p++ = '-';
    return ft_put_u64(p, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

/* The shortest form of 6 significant decimals; the usual range without printf. */
static uint8_t *put_double(uint8_t *p, double v)
{
    static const double power[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
    double a = v < 0 ? -v : v;
    uint64_t digits, unit = 1;
    int decimals = 9;

    if (a == 0) {
        *p = '0';
        return p + 1;
    }
    if (a < 1e-4 || a >= 999999.5) {
        int n = snprintf((char *)p, VALUE_MAX, "%.6g", v);

        for (int i = 0; i < n; i++)
            if (p[i] == ',') /* a locale's decimal point */
                p[i] = '.';
        return p + n;
    }
    if (v < 0)
        *p++ = '-';
    if (a == (double)(uint32_t)a)
        return ft_put_u64(p, (uint32_t)a);
    while (decimals > 0 && a * power[decimals] >= 999999.5)
        decimals--;
    digits = (uint64_t)(a * power[decimals] + 0.5);
    for (; decimals > 0 && digits % 10 == 0; decimals--)
        digits /= 10;
    for (int i = 0; i < decimals; i++)
        unit *= 10;
    p = ft_put_u64(p, digits / unit);
    if (decimals == 0)
        return p;
    *p = '.';
    digits %= unit;
    for (int i = decimals; i > 0; i--, digits /= 10)
        p[i] = (uint8_t)('0' + digits % 10);
    return p + decimals + 1;
}

/* Bytes of ASCII that stand for themselves. */
static inline bool is_plain(unsigned char c)
{
    static const bool plain[256] = {
        [' ' ... '!'] = true, ['#' ... '['] = true, [']' ... 0x7f] = true};

    return plain[c];
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

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

static inline uint64_t load_8(const unsigned char *s)
{
    uint64_t v;

    memcpy(&v, s, sizeof(v));
    return v;
}

static inline uint32_t load_4(const unsigned char *s)
{
    uint32_t v;

    memcpy(&v, s, sizeof(v));
    return v;
}

/* Whether eight bytes are plain, each: none is below a space, a quote, a backslash or above 0x7f.
 * What is subtracted borrows from the next byte only where one is not. */
static inline bool are_plain(uint64_t v)
{
    uint64_t quote = v ^ EACH('"'), backslash = v ^ EACH('\\');

    return !(((v - EACH(' ')) | v | (quote - EACH(1)) | (backslash - EACH(1))) & EACH(0x80));
}

/* A short text of plain bytes, as nearly all are, with its quotes to p, which has room for
 * FT_JSON_VALUE_MAX. NULL: it is none. Pieces overlap: that is cheaper than a loop over a rest. */
static inline uint8_t *put_short(uint8_t *p, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = strlen(text);
    uint64_t v;

    if (n > FT_JSON_SHORT_BYTES)
        return NULL;
    *p++ = '"';
    if (n >= 8) {
        for (size_t at = 0; at + 8 < n; at += 8) {
            v = load_8(s + at);
            if (!are_plain(v))
                return NULL;
            memcpy(p + at, &v, sizeof(v));
        }
        v = load_8(s + n - 8);
        memcpy(p + n - 8, &v, sizeof(v));
    } else if (n >= 4) {
        uint32_t begin = load_4(s), end = load_4(s + n - 4);

        v = (uint64_t)begin << 32 | end;
        memcpy(p, &begin, sizeof(begin));
        memcpy(p + n - 4, &end, sizeof(end));
    } else {
        v = EACH(' ');
        for (size_t i = 0; i < n; i++) {
            p[i] = s[i];
            v = v << 8 | s[i];
        }
    }
    if (!are_plain(v))
        return NULL;
    p += n;
    *p++ = '"';
    return p;
}

/* The same in one go. False: it is none, or has no room. */
static bool write_short(struct ft_writer *w, const char *text)
{
    uint8_t *end;

    if (!ft_write_reserve(w, FT_JSON_VALUE_MAX))
        return false;
    end = put_short(w->bytes + w->len, text);
    if (end)
        w->len = (size_t)(end - w->bytes);
    return end;
}

void ft_json_write_text(struct ft_writer *w, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = 0;
    uint8_t *p;

    if (write_short(w, text))
        return;
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

/* At most 3 digits, without leading zeros. */
static uint8_t *put_octet(uint8_t *p, uint8_t v)
{
    if (v >= 100)
        *p++ = (uint8_t)('0' + v / 100);
    if (v >= 10)
        *p++ = (uint8_t)('0' + v / 10 % 10);
    *p++ = (uint8_t)('0' + v % 10);
    return p;
}

static uint8_t *put_address(uint8_t *p, const ProtobufCBinaryData *bytes)
{
    struct ft_ip ip;

    _Static_assert(FT_IP_TEXT_BYTES + 2 <= VALUE_MAX, "an address in quotes");
    *p++ = '"';
    if (bytes->len == 4) {
        for (size_t i = 0; i < 4; i++) {
            if (i > 0)
                *p++ = '.';
            p = put_octet(p, bytes->data[i]);
        }
    } else {
        ft_ip_from_bytes(bytes->data, bytes->len, &ip);
        ft_ip_format(&ip, (char *)p);
        p += strlen((char *)p);
    }
    *p++ = '"';
    return p;
}

/* A value that has room in VALUE_MAX bytes; NULL: it is a text, a word or a message. */
static inline uint8_t *put_value(uint8_t *p, ProtobufCType type, const void *at)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return put_i64(p, *(const int32_t *)at);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return ft_put_u64(p, *(const uint32_t *)at);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return put_i64(p, *(const int64_t *)at);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return ft_put_u64(p, *(const uint64_t *)at);
    case PROTOBUF_C_TYPE_FLOAT:
        return put_double(p, (double)*(const float *)at);
    case PROTOBUF_C_TYPE_DOUBLE:
        return put_double(p, *(const double *)at);
    case PROTOBUF_C_TYPE_BOOL:
        if (*(const protobuf_c_boolean *)at)
            return mempcpy(p, "true", 4);
        return mempcpy(p, "false", 5);
    case PROTOBUF_C_TYPE_BYTES:
        return put_address(p, at);
    default:
        return NULL;
    }
}

/* Values mostly count from 0. */
static inline const struct ft_json_word *word_of(const struct ft_json_words *words, int32_t value)
{
    if ((uint32_t)value < words->count && words->words[value].value == value)
        return &words->words[value];
    for (size_t i = 0; i < words->count; i++)
        if (words->words[i].value == value)
            return &words->words[i];
    return NULL;
}

/* To p, which has room for FT_JSON_VALUE_MAX. */
static inline uint8_t *put_word(uint8_t *p, const struct ft_json_words *words, int32_t value)
{
    const struct ft_json_word *word = word_of(words, value);

    _Static_assert(FT_JSON_WORD_MAX <= FT_JSON_VALUE_MAX, "a word is a value");
    if (!word)
        return put_i64(p, value);
    memcpy(p, word->text, FT_JSON_WORD_MAX);
    return p + word->len;
}

static void write_word(struct ft_writer *w, const struct ft_json_words *words, int32_t value)
{
    uint8_t text[VALUE_MAX];

    ft_write_bytes(w, text, (size_t)(put_word(text, words, value) - text));
}

static void write_message(struct ft_writer *w, struct ft_json_plan *plan,
                          const ProtobufCMessage *message, const char *first);

static void write_inner(struct ft_writer *w, struct ft_json_member *m,
                        const ProtobufCMessage *message)
{
    struct ft_json_plan *plan = atomic_load_explicit(&m->message, memory_order_acquire);

    if (!plan) {
        plan = ft_json_plan_of(message->descriptor);
        atomic_store_explicit(&m->message, plan, memory_order_release);
    }
    write_message(w, plan, message, NULL);
}

/* A value of any length. */
static void write_text_like(struct ft_writer *w, struct ft_json_member *m, const void *at)
{
    if (m->type == PROTOBUF_C_TYPE_ENUM)
        write_word(w, m->words, *(const int32_t *)at);
    else if (m->type == PROTOBUF_C_TYPE_STRING)
        ft_json_write_text(w, *(const char *const *)at);
    else
        write_inner(w, m, *(const ProtobufCMessage *const *)at);
}

/* The same as write_value() where a writer is nearly at its cap: what fits is written. */
static void write_value_tight(struct ft_writer *w, struct ft_json_member *m, const char *before,
                              size_t len, const void *at)
{
    uint8_t text[VALUE_MAX];
    uint8_t *end = put_value(text, m->type, at);

    ft_write_bytes(w, before, len);
    if (end)
        ft_write_bytes(w, text, (size_t)(end - text));
    else
        write_text_like(w, m, at);
}

/* A value with what comes before it: a name, or between the elements of an array a comma. `before`
 * has FT_JSON_NAME_MAX readable bytes, of which len count. */
static inline void write_value(struct ft_writer *w, struct ft_json_member *m, const char *before,
                               size_t len, const void *at)
{
    uint8_t *begin, *p, *end;

    if (!ft_write_reserve(w, FT_JSON_NAME_MAX + VALUE_MAX)) {
        write_value_tight(w, m, before, len, at);
        return;
    }
    /* Copied completely: of a length that is known beforehand, that is one or two moves. */
    begin = w->bytes + w->len;
    memcpy(begin, before, FT_JSON_NAME_MAX);
    p = begin + len;
    end = put_value(p, m->type, at);
    w->len += (size_t)((end ? end : p) - begin);
    if (!end)
        write_text_like(w, m, at);
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

static inline bool present(const struct ft_json_member *m, const uint8_t *base)
{
    const void *quantifier = base + m->quantifier_offset;

    switch ((enum ft_json_when)m->when) {
    case FT_JSON_IF_SAID:
        return *(const protobuf_c_boolean *)quantifier && writable(m->type, base + m->offset);
    case FT_JSON_IF_POINTER:
        return *(const void *const *)(const void *)(base + m->offset) != NULL;
    case FT_JSON_IF_ANY:
        return *(const size_t *)quantifier > 0;
    case FT_JSON_IF_CHOSEN:
        return *(const uint32_t *)quantifier == m->field->id && writable(m->type, base + m->offset);
    default:
        return writable(m->type, base + m->offset);
    }
}

static void write_array(struct ft_writer *w, struct ft_json_member *m, const uint8_t *base)
{
    size_t count = *(const size_t *)(const void *)(base + m->quantifier_offset);
    const uint8_t *at = *(const uint8_t *const *)(const void *)(base + m->offset);
    static const char between[FT_JSON_NAME_MAX] = ",";
    size_t step = ft_json_element_bytes(m->type), comma = 0;

    ft_write_u8(w, '[');
    for (size_t i = 0; i < count; i++, at += step) {
        if (!writable(m->type, at))
            continue;
        write_value(w, m, between, comma, at);
        comma = 1;
    }
    ft_write_u8(w, ']');
}

/* Members, each by itself and with a comma before it. */
static void write_members(struct ft_writer *w, struct ft_json_plan *plan, const uint8_t *base,
                          size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        struct ft_json_member *m = &plan->members[i];

        if (!present(m, base))
            continue;
        if (m->when == FT_JSON_IF_ANY) {
            ft_write_bytes(w, m->name, m->name_len);
            write_array(w, m, base);
        } else {
            write_value(w, m, m->name, m->name_len, base + m->offset);
        }
    }
}

/* A name to p, of which FT_JSON_NAME_MAX bytes may be overwritten. */
static inline uint8_t *put_name(uint8_t *p, const struct ft_json_member *m)
{
    memcpy(p, m->name, FT_JSON_NAME_MAX);
    return p + m->name_len;
}

/* A member that has its value in the message itself, or in a short text. p: it is not there; NULL:
 * it has to be written another way. */
static inline uint8_t *put_member(uint8_t *p, const struct ft_json_member *m, const uint8_t *base)
{
    const void *at = base + m->offset, *quantifier = base + m->quantifier_offset;

    if (m->how == FT_JSON_TEXT)
        return *(char *const *)at ? put_short(put_name(p, m), *(char *const *)at) : p;
    if (m->how == FT_JSON_MESSAGE)
        return *(void *const *)at ? NULL : p;
    if (m->how == FT_JSON_SELDOM)
        return m->when == FT_JSON_IF_ANY && *(const size_t *)quantifier == 0 ? p : NULL;
    if (!*(const protobuf_c_boolean *)quantifier)
        return p;
    switch ((enum ft_json_how)m->how) {
    case FT_JSON_SAID_U64:
        return ft_put_u64(put_name(p, m), *(const uint64_t *)at);
    case FT_JSON_SAID_U32:
        return ft_put_u64(put_name(p, m), *(const uint32_t *)at);
    case FT_JSON_SAID_WORD:
        return put_word(put_name(p, m), m->words, *(const int32_t *)at);
    case FT_JSON_SAID_DOUBLE:
        return isfinite(*(const double *)at) ? put_double(put_name(p, m), *(const double *)at) : p;
    default:
        return writable(m->type, at) ? put_value(put_name(p, m), m->type, at) : p;
    }
}

/* The members, for all of which there is room. */
static void write_roomy(struct ft_writer *w, struct ft_json_plan *plan, const uint8_t *base)
{
    uint8_t *p = w->bytes + w->len, *end;

    for (size_t i = 0; i < plan->count; i++) {
        end = put_member(p, &plan->members[i], base);
        if (end) {
            p = end;
            continue;
        }
        w->len = (size_t)(p - w->bytes);
        write_members(w, plan, base, i, i + 1);
        if (!ft_write_reserve(w, plan->room)) {
            write_members(w, plan, base, i + 1, plan->count);
            return;
        }
        p = w->bytes + w->len;
    }
    w->len = (size_t)(p - w->bytes);
}

/* The first member's comma becomes the brace, where no other text comes before it. */
static void write_message(struct ft_writer *w, struct ft_json_plan *plan,
                          const ProtobufCMessage *message, const char *first)
{
    const uint8_t *base = (const uint8_t *)message;
    size_t begin = w->len;

    if (!plan) {
        w->failed = true;
        return;
    }
    if (first) {
        ft_write_u8(w, '{');
        ft_write_str(w, first);
    }
    if (ft_write_reserve(w, plan->room))
        write_roomy(w, plan, base);
    else
        write_members(w, plan, base, 0, plan->count);
    if (w->len == begin)
        ft_write_u8(w, '{');
    else
        w->bytes[begin] = '{';
    ft_write_u8(w, '}');
}

int ft_json_write(struct ft_writer *w, const ProtobufCMessage *message, const char *first)
{
    write_message(w, ft_json_plan_of(message->descriptor), message, first);
    return ft_writer_ok(w) ? 0 : -ENOSPC;
}
