// SPDX-License-Identifier: Apache-2.0
#ifndef FT_PROTO_JSON_H
#define FT_PROTO_JSON_H
/*
 * JSON of any message of fabrictrace.proto, derived from its descriptor by the rules written at the
 * head of that file. Records go out by the hundred thousand, so the writer walks the descriptor
 * straight into a buffer; the reader uses a JSON library's tree.
 */
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "lib/base/writer.h"

/* Appends the message as one JSON object on one line, without a newline. first is the text of
 * members to put before the message's own, such as "\"schema\":\"...\"", or NULL. Doubles are
 * written with up to 6 significant decimals after rounding (%.6g-like, shortest form), never as NaN
 * or infinity (such a field is left out). -ENOSPC when the writer fails. */
int ft_json_write(struct ft_writer *w, const ProtobufCMessage *message, const char *first);

#define FT_JSON_ENUM_BYTES 64

/* Appends a text as a JSON string with its quotes (RFC 8259 section 7). */
void ft_json_write_text(struct ft_writer *w, const char *text);

/* The text of an enum value ("data" for ROLE_DATA); the number where the type has no such value, so
 * that a newer peer's value is not lost. Cut to fit. */
void ft_json_enum_text(const ProtobufCEnumDescriptor *type, int32_t value,
                       char text[FT_JSON_ENUM_BYTES]);

/* The value of such a text, numbers excepted; -EINVAL when there is none. */
int ft_json_enum_parse(const ProtobufCEnumDescriptor *type, const char *text, int32_t *value);

/* Who wrote what is read. */
enum ft_json_writer {
    FT_JSON_BY_HAND,  /* maybe: an unknown member is an error, so that a misspelt field is not lost
                       */
    FT_JSON_BY_NEWER, /* a program that may be newer: its members, and words of enums, that are not
                         known here are absent */
};

/* Parses one JSON object into a new message, to be freed with protobuf_c_message_free_unpacked().
 * The object names its type in a string member; pick gives the descriptor of that name, NULL for an
 * unknown one (-EINVAL). A member given twice is an error. null is an absent member. 64-bit
 * integers may be strings of digits. -EINVAL with a reason in error (error_bytes > 0, it names the
 * member), -ENOMEM. */
int ft_json_read(const char *text, size_t len, enum ft_json_writer by, const char *member,
                 const ProtobufCMessageDescriptor *(*pick)(const char *name),
                 ProtobufCMessage **message, char *error, size_t error_bytes);

#endif
