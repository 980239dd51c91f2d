// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/schema.h"

#include <stdbool.h>

#include "proto/json.h"

static void add(struct ft_schema_parts *parts, const void *part, bool *is_new)
{
    size_t k = 0;

    while (k < parts->count && parts->list[k] != part)
        k++;
    *is_new = k == parts->count && k < FT_SCHEMA_PARTS_MAX;
    if (*is_new)
        parts->list[parts->count++] = part;
}

void ft_schema_collect(struct ft_schema_parts *parts, const ProtobufCMessageDescriptor *d)
{
    for (unsigned i = 0; i < d->n_fields; i++) {
        bool is_new = false;

        if (d->fields[i].type == PROTOBUF_C_TYPE_MESSAGE)
            add(parts, d->fields[i].descriptor, &is_new);
        if (is_new)
            ft_schema_collect(parts, d->fields[i].descriptor);
    }
}

static void write_enum(struct ft_writer *w, const ProtobufCEnumDescriptor *type)
{
    char text[FT_JSON_ENUM_BYTES];

    ft_write_str(w, "{\"enum\":[");
    for (unsigned i = 0; i < type->n_values; i++) {
        ft_json_enum_text(type, type->values[i].value, text);
        ft_write_fmt(w, "%s\"%s\"", i ? "," : "", text);
    }
    ft_write_str(w, "]}");
}

static void write_type(struct ft_writer *w, const ProtobufCFieldDescriptor *f, const char *refs)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        ft_write_str(w, "{\"type\":\"integer\",\"minimum\":0}");
        break;
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        ft_write_str(w, "{\"type\":\"number\"}");
        break;
    case PROTOBUF_C_TYPE_BOOL:
        ft_write_str(w, "{\"type\":\"boolean\"}");
        break;
    case PROTOBUF_C_TYPE_ENUM:
        write_enum(w, f->descriptor);
        break;
    case PROTOBUF_C_TYPE_STRING:
        ft_write_str(w, "{\"type\":\"string\"}");
        break;
    case PROTOBUF_C_TYPE_BYTES:
        ft_write_str(w, "{\"type\":\"string\",\"description\":\"An IP address.\"}");
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        ft_write_fmt(w, "{\"$ref\":\"%s%s\"}", refs,
                     ((const ProtobufCMessageDescriptor *)f->descriptor)->short_name);
        break;
    default:
        ft_write_str(w, "{\"type\":\"integer\"}");
        break;
    }
}

/* What an object has, without its braces. */
static void write_members(struct ft_writer *w, const ProtobufCMessageDescriptor *d,
                          const char *schema, const char *refs)
{
    ft_write_str(w, "\"type\":\"object\",\"additionalProperties\":false,\"properties\":{");
    if (schema)
        ft_write_fmt(w, "\"schema\":{\"const\":\"%s\"}", schema);
    for (unsigned i = 0; i < d->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &d->fields[i];
        bool list = f->label == PROTOBUF_C_LABEL_REPEATED;

        ft_write_fmt(w, "%s\"%s\":", schema || i ? "," : "", f->name);
        if (list)
            ft_write_str(w, "{\"type\":\"array\",\"items\":");
        write_type(w, f, refs);
        if (list)
            ft_write_u8(w, '}');
    }
    ft_write_str(w, schema ? "},\"required\":[\"schema\"]" : "}");
}

void ft_schema_write_object(struct ft_writer *w, const ProtobufCMessageDescriptor *d,
                            const char *schema, const char *refs)
{
    ft_write_u8(w, '{');
    write_members(w, d, schema, refs);
    ft_write_u8(w, '}');
}

void ft_schema_write_json(struct ft_writer *w, const ProtobufCMessageDescriptor *d,
                          const char *schema)
{
    struct ft_schema_parts parts = {.count = 0};

    ft_schema_collect(&parts, d);
    ft_write_fmt(w, "{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"title\":\"%s\",",
                 schema ? schema : d->short_name);
    write_members(w, d, schema, "#/definitions/");
    ft_write_str(w, ",\"definitions\":{");
    for (size_t i = 0; i < parts.count; i++) {
        const ProtobufCMessageDescriptor *part = parts.list[i];

        ft_write_fmt(w, "%s\"%s\":", i ? "," : "", part->short_name);
        ft_schema_write_object(w, part, NULL, "#/definitions/");
    }
    ft_write_str(w, "}}");
}

static const char *proto_type(const ProtobufCFieldDescriptor *f)
{
    static const char *const names[] = {
        [PROTOBUF_C_TYPE_INT32] = "int32",   [PROTOBUF_C_TYPE_SINT32] = "sint32",
        [PROTOBUF_C_TYPE_INT64] = "int64",   [PROTOBUF_C_TYPE_SINT64] = "sint64",
        [PROTOBUF_C_TYPE_UINT32] = "uint32", [PROTOBUF_C_TYPE_FIXED32] = "fixed32",
        [PROTOBUF_C_TYPE_UINT64] = "uint64", [PROTOBUF_C_TYPE_FIXED64] = "fixed64",
        [PROTOBUF_C_TYPE_FLOAT] = "float",   [PROTOBUF_C_TYPE_SFIXED32] = "sfixed32",
        [PROTOBUF_C_TYPE_DOUBLE] = "double", [PROTOBUF_C_TYPE_SFIXED64] = "sfixed64",
        [PROTOBUF_C_TYPE_BOOL] = "bool",     [PROTOBUF_C_TYPE_STRING] = "string",
        [PROTOBUF_C_TYPE_BYTES] = "bytes",
    };

    if (f->type == PROTOBUF_C_TYPE_MESSAGE)
        return ((const ProtobufCMessageDescriptor *)f->descriptor)->short_name;
    if (f->type == PROTOBUF_C_TYPE_ENUM)
        return ((const ProtobufCEnumDescriptor *)f->descriptor)->short_name;
    return names[f->type];
}

static void write_proto_message(struct ft_writer *w, const ProtobufCMessageDescriptor *d)
{
    static const char *const labels[] = {
        [PROTOBUF_C_LABEL_REQUIRED] = "required",
        [PROTOBUF_C_LABEL_OPTIONAL] = "optional",
        [PROTOBUF_C_LABEL_REPEATED] = "repeated",
    };

    ft_write_fmt(w, "\nmessage %s {\n", d->short_name);
    for (unsigned i = 0; i < d->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &d->fields[i];

        ft_write_fmt(w, "  %s %s %s = %u%s;\n", labels[f->label], proto_type(f), f->name, f->id,
                     f->flags & PROTOBUF_C_FIELD_FLAG_PACKED ? " [packed = true]" : "");
    }
    ft_write_str(w, "}\n");
}

static void collect_enums(struct ft_schema_parts *enums, const ProtobufCMessageDescriptor *d)
{
    bool is_new;

    for (unsigned i = 0; i < d->n_fields; i++)
        if (d->fields[i].type == PROTOBUF_C_TYPE_ENUM)
            add(enums, d->fields[i].descriptor, &is_new);
}

static void write_proto_enum(struct ft_writer *w, const ProtobufCEnumDescriptor *d)
{
    ft_write_fmt(w, "\nenum %s {\n", d->short_name);
    for (unsigned i = 0; i < d->n_values; i++)
        ft_write_fmt(w, "  %s = %d;\n", d->values[i].name, d->values[i].value);
    ft_write_str(w, "}\n");
}

void ft_schema_write_proto(struct ft_writer *w, const ProtobufCMessageDescriptor *d)
{
    struct ft_schema_parts messages = {.count = 0}, enums = {.count = 0};

    ft_schema_collect(&messages, d);
    ft_write_fmt(w, "syntax = \"proto2\";\n\npackage %s;\n", d->package_name);
    write_proto_message(w, d);
    collect_enums(&enums, d);
    for (size_t i = 0; i < messages.count; i++) {
        /* One that has itself in it is defined already. */
        if (messages.list[i] != d)
            write_proto_message(w, messages.list[i]);
        collect_enums(&enums, messages.list[i]);
    }
    for (size_t i = 0; i < enums.count; i++)
        write_proto_enum(w, enums.list[i]);
}
