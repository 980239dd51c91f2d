// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/json.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "lib/base/tuple.h"
#include "proto/json_field.h"

/* Where in the text a member sits, for complaints. */
struct location {
    const struct location *up;
    const char *name;
    size_t index; /* in an array, else NO_INDEX */
};

#define NO_INDEX   SIZE_MAX
#define PATH_BYTES 160

struct reading {
    enum ft_json_writer by;
    const char *type_member;
    char *error;
    size_t error_bytes;
};

static void format_location(const struct location *location, char path[PATH_BYTES])
{
    size_t n;

    path[0] = '\0';
    if (location->up)
        format_location(location->up, path);
    n = strlen(path);
    n +=
        (size_t)snprintf(path + n, PATH_BYTES - n, "%s%s", location->up ? "." : "", location->name);
    if (n < PATH_BYTES && location->index != NO_INDEX)
        snprintf(path + n, PATH_BYTES - n, "[%zu]", location->index);
}

static int complain(const struct reading *reading, const struct location *location,
                    const char *what)
{
    char path[PATH_BYTES];

    format_location(location, path);
    snprintf(reading->error, reading->error_bytes, "member '%s': %s", path, what);
    return -EINVAL;
}

static int no_memory(const struct reading *reading)
{
    snprintf(reading->error, reading->error_bytes, "out of memory");
    return -ENOMEM;
}

static int read_signed(const json_t *value, int64_t min, int64_t max, int64_t *out)
{
    const char *text = json_string_value(value);
    long long v = json_integer_value(value);
    char *end;

    if (text) {
        errno = 0;
        v = strtoll(text, &end, 10);
        if (errno || *end || (*text != '-' && (*text < '0' || *text > '9')))
            return -EINVAL;
    } else if (!json_is_integer(value)) {
        return -EINVAL;
    }
    if (v < min || v > max)
        return -EINVAL;
    *out = v;
    return 0;
}

static int read_unsigned(const json_t *value, uint64_t *out)
{
    const char *text = json_string_value(value);
    unsigned long long v;
    char *end;

    if (text) {
        errno = 0;
        v = strtoull(text, &end, 10);
        if (errno || *end || *text < '0' || *text > '9')
            return -EINVAL;
    } else if (json_is_integer(value) && json_integer_value(value) >= 0) {
        v = (unsigned long long)json_integer_value(value);
    } else {
        return -EINVAL;
    }
    *out = v;
    return 0;
}

static int read_message(const json_t *object, const ProtobufCMessageDescriptor *descriptor,
                        const struct reading *reading, const struct location *location,
                        ProtobufCMessage **message);

static int read_integer(const json_t *value, ProtobufCType type, const struct reading *reading,
                        const struct location *location, void *at)
{
    int64_t v;
    uint64_t u;

    switch (type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        if (json_is_string(value) || read_signed(value, INT32_MIN, INT32_MAX, &v))
            return complain(reading, location, "an integer of 32 bits is needed");
        *(int32_t *)at = (int32_t)v;
        return 0;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        if (read_signed(value, INT64_MIN, INT64_MAX, &v))
            return complain(reading, location, "an integer of 64 bits is needed");
        *(int64_t *)at = v;
        return 0;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        if (read_unsigned(value, &u))
            return complain(reading, location,
                            "an integer from 0 to 18446744073709551615 is needed");
        *(uint64_t *)at = u;
        return 0;
    default:
        if (json_is_string(value) || read_unsigned(value, &u) || u > UINT32_MAX)
            return complain(reading, location, "an integer from 0 to 4294967295 is needed");
        *(uint32_t *)at = (uint32_t)u;
        return 0;
    }
}

static int read_enum(const json_t *value, const ProtobufCEnumDescriptor *type,
                     const struct reading *reading, const struct location *location, void *at)
{
    const char *text = json_string_value(value);
    int32_t v;
    int64_t number;

    if (text) {
        if (ft_json_enum_parse(type, text, &v))
            return complain(reading, location, "no such value");
    } else {
        if (read_signed(value, INT32_MIN, INT32_MAX, &number))
            return complain(reading, location, "the name of a value is needed");
        v = (int32_t)number;
    }
    *(int32_t *)at = v;
    return 0;
}

static int read_address(const json_t *value, const struct reading *reading,
                        const struct location *location, ProtobufCBinaryData *at)
{
    const char *text = json_string_value(value);
    const uint8_t *bytes;
    struct ft_ip ip;
    size_t n;

    if (!text || ft_ip_parse(text, &ip))
        return complain(reading, location, "an IP address is needed");
    bytes = ft_ip_bytes(&ip, &n);
    at->data = malloc(n);
    if (!at->data)
        return no_memory(reading);
    memcpy(at->data, bytes, n);
    at->len = n;
    return 0;
}

static int read_string(const json_t *value, const struct reading *reading,
                       const struct location *location, char **at)
{
    if (!json_is_string(value))
        return complain(reading, location, "a string is needed");
    *at = strdup(json_string_value(value));
    return *at ? 0 : no_memory(reading);
}

static int read_value(const json_t *value, const ProtobufCFieldDescriptor *f,
                      const struct reading *reading, const struct location *location, void *at)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        if (!json_is_number(value))
            return complain(reading, location, "a number is needed");
        if (f->type == PROTOBUF_C_TYPE_FLOAT)
            *(float *)at = (float)json_number_value(value);
        else
            *(double *)at = json_number_value(value);
        return 0;
    case PROTOBUF_C_TYPE_BOOL:
        if (!json_is_boolean(value))
            return complain(reading, location, "true or false is needed");
        *(protobuf_c_boolean *)at = json_is_true(value);
        return 0;
    case PROTOBUF_C_TYPE_ENUM:
        return read_enum(value, f->descriptor, reading, location, at);
    case PROTOBUF_C_TYPE_STRING:
        return read_string(value, reading, location, at);
    case PROTOBUF_C_TYPE_BYTES:
        return read_address(value, reading, location, at);
    case PROTOBUF_C_TYPE_MESSAGE:
        return read_message(value, f->descriptor, reading, location, at);
    default:
        return read_integer(value, f->type, reading, location, at);
    }
}

/* Elements are counted as they are read, so that a message given up half way is freed right. */
static int read_array(const json_t *array, const ProtobufCFieldDescriptor *f,
                      const struct reading *reading, const struct location *location, uint8_t *base)
{
    size_t count = json_array_size(array);
    size_t *done = (void *)(base + f->quantifier_offset);
    struct location here = *location;
    size_t step = ft_json_element_bytes(f->type);
    uint8_t *at;
    int rc = 0;

    if (!json_is_array(array))
        return complain(reading, location, "an array is needed");
    if (count == 0)
        return 0;
    at = calloc(count, step);
    if (!at)
        return no_memory(reading);
    *(void **)(void *)(base + f->offset) = at;
    for (size_t i = 0; i < count && rc == 0; i++, at += step) {
        here.index = i;
        rc = read_value(json_array_get(array, i), f, reading, &here, at);
        if (rc == 0)
            ++*done;
    }
    return rc;
}

static int read_field(const json_t *value, const ProtobufCFieldDescriptor *f,
                      const struct reading *reading, const struct location *location, uint8_t *base)
{
    void *quantifier = base + f->quantifier_offset;
    bool oneof = f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
    int rc;

    if (f->label == PROTOBUF_C_LABEL_REPEATED)
        return read_array(value, f, reading, location, base);
    if (oneof && *(uint32_t *)quantifier != 0)
        return complain(reading, location, "another member excludes it");
    rc = read_value(value, f, reading, location, base + f->offset);
    if (rc)
        return rc;
    if (oneof)
        *(uint32_t *)quantifier = f->id;
    else if (f->label == PROTOBUF_C_LABEL_OPTIONAL && f->type != PROTOBUF_C_TYPE_STRING &&
             f->type != PROTOBUF_C_TYPE_MESSAGE)
        *(protobuf_c_boolean *)quantifier = 1;
    return 0;
}

/* A value of an enum that a newer program knows. */
static bool is_newer_word(const json_t *value, const ProtobufCFieldDescriptor *f,
                          const struct reading *reading)
{
    const char *text = json_string_value(value);
    int32_t v;

    return reading->by == FT_JSON_BY_NEWER && f->type == PROTOBUF_C_TYPE_ENUM &&
           f->label != PROTOBUF_C_LABEL_REPEATED && text &&
           ft_json_enum_parse(f->descriptor, text, &v) != 0;
}

/* location is NULL for the outermost object, the only one that names its type. */
static int read_message(const json_t *object, const ProtobufCMessageDescriptor *descriptor,
                        const struct reading *reading, const struct location *location,
                        ProtobufCMessage **message)
{
    ProtobufCMessage *m;
    int rc = 0;

    if (!json_is_object(object))
        return complain(reading, location, "an object is needed");
    m = malloc(descriptor->sizeof_message);
    if (!m)
        return no_memory(reading);
    protobuf_c_message_init(descriptor, m);
    for (void *it = json_object_iter((json_t *)object); it && rc == 0;
         it = json_object_iter_next((json_t *)object, it)) {
        struct location here = {location, json_object_iter_key(it), NO_INDEX};
        const json_t *value = json_object_iter_value(it);
        const ProtobufCFieldDescriptor *f =
            protobuf_c_message_descriptor_get_field_by_name(descriptor, here.name);

        if (f && !json_is_null(value) && !is_newer_word(value, f, reading))
            rc = read_field(value, f, reading, &here, (uint8_t *)m);
        else if (!f && reading->by == FT_JSON_BY_HAND &&
                 (location || strcmp(here.name, reading->type_member) != 0))
            rc = complain(reading, &here, "unknown");
    }
    if (rc) {
        protobuf_c_message_free_unpacked(m, NULL);
        return rc;
    }
    *message = m;
    return 0;
}

static bool in_number(char c)
{
    return (c >= '0' && c <= '9') || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-';
}

/* The text with integers of 19 digits and more in quotes: the JSON library's end at 2^63 - 1, ours
 * at 2^64 - 1. NULL without memory. */
static char *quote_long_integers(const char *text, size_t len, size_t *quoted_len)
{
    char *quoted = malloc(len + len / 8 + 3);
    bool string = false;
    size_t n = 0;

    if (!quoted)
        return NULL;
    for (size_t i = 0; i < len; i++) {
        size_t run = 0, digits = 0;

        while (!string && i + run < len && in_number(text[i + run])) {
            digits += text[i + run] >= '0' && text[i + run] <= '9';
            run++;
        }
        if (run > 0) {
            bool quote = run >= 19 && digits == run;

            if (quote)
                quoted[n++] = '"';
            memcpy(quoted + n, text + i, run);
            n += run;
            if (quote)
                quoted[n++] = '"';
            i += run - 1;
            continue;
        }
        if (string && text[i] == '\\' && i + 1 < len)
            quoted[n++] = text[i++];
        else if (text[i] == '"')
            string = !string;
        quoted[n++] = text[i];
    }
    *quoted_len = n;
    return quoted;
}

static json_t *load(const char *text, size_t len, const struct reading *reading)
{
    json_error_t e;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);

    if (!root && json_error_code(&e) == json_error_numeric_overflow) {
        size_t n;
        char *quoted = quote_long_integers(text, len, &n);

        if (quoted)
            root = json_loadb(quoted, n, JSON_REJECT_DUPLICATES, &e);
        free(quoted);
    }
    if (!root)
        snprintf(reading->error, reading->error_bytes, "%s", e.text);
    else if (!json_is_object(root)) {
        snprintf(reading->error, reading->error_bytes, "not a JSON object");
        json_decref(root);
        root = NULL;
    }
    return root;
}

int ft_json_read(const char *text, size_t len, enum ft_json_writer by, const char *member,
                 const ProtobufCMessageDescriptor *(*pick)(const char *name),
                 ProtobufCMessage **message, char *error, size_t error_bytes)
{
    struct reading reading = {by, member, error, error_bytes};
    const struct location location = {NULL, member, NO_INDEX};
    json_t *root = load(text, len, &reading);
    const ProtobufCMessageDescriptor *descriptor;
    const char *name;
    int rc;

    if (!root)
        return -EINVAL;
    name = json_string_value(json_object_get(root, member));
    descriptor = name ? pick(name) : NULL;
    if (!name)
        rc = complain(&reading, &location, "missing");
    else if (!descriptor)
        rc = complain(&reading, &location, "unknown name");
    else
        rc = read_message(root, descriptor, &reading, NULL, message);
    json_decref(root);
    return rc;
}
