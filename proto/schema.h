// SPDX-License-Identifier: Apache-2.0
#ifndef FT_PROTO_SCHEMA_H
#define FT_PROTO_SCHEMA_H
/*
 * What JSON or protobuf of a message looks like, as text for others: JSON Schema (draft 7) and
 * proto2, of the message and of what it has in it. Made from its descriptor, so that it says what
 * ft_json_write() and protobuf-c write; it has no comments, which are in fabrictrace.proto. A text
 * changes only where its message does. Pure.
 */
#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

#include "lib/base/writer.h"

#define FT_SCHEMA_PARTS_MAX 96

/* Messages or enums that are parts of others, each once. Starts empty when all zero. */
struct ft_schema_parts {
    const void *list[FT_SCHEMA_PARTS_MAX];
    size_t count;
};

/* Adds the messages in it, and those in these. */
void ft_schema_collect(struct ft_schema_parts *parts, const ProtobufCMessageDescriptor *message);

/* Appends the message as a JSON Schema of type object that takes no further members. schema: what
 * its member "schema" says; NULL: it has none. refs: where its parts are ("#/definitions/"). */
void ft_schema_write_object(struct ft_writer *w, const ProtobufCMessageDescriptor *message,
                            const char *schema, const char *refs);

/* Appends a complete JSON Schema, with its parts as definitions. */
void ft_schema_write_json(struct ft_writer *w, const ProtobufCMessageDescriptor *message,
                          const char *schema);

/* Appends a complete proto file of proto2, whose first message this one is, so that its path in
 * the prefix of a registry is 0. */
void ft_schema_write_proto(struct ft_writer *w, const ProtobufCMessageDescriptor *message);

#endif
