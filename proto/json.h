// SPDX-License-Identifier: Apache-2.0
#ifndef FT_PROTO_JSON_H
#define FT_PROTO_JSON_H
/*
 * JSON of any message of fabrictrace.proto, derived from its descriptor by the rules written at the
 * head of that file. Records go out by the hundred thousand, so the writer walks the descriptor
 * straight into a buffer; the reader uses a JSON library's tree.
 */
#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

#include "lib/base/writer.h"

/* Appends the message as one JSON object on one line, without a newline. first is the text of
 * members to put before the message's own, such as "\"schema\":\"...\"", or NULL. Doubles are
 * written with up to 6 significant decimals after rounding (%.6g-like, shortest form), never as NaN
 * or infinity (such a field is left out). -ENOSPC when the writer fails. */
int ft_json_write(struct ft_writer *w, const ProtobufCMessage *message, const char *first);

/* Parses one JSON object into a new message, to be freed with protobuf_c_message_free_unpacked().
 * Unknown members are ignored when named in ignore (NULL-terminated, may be NULL) and otherwise an
 * error, so that a misspelt field is not lost. -EINVAL with a reason in error (error_bytes > 0, it
 * names the member), -ENOMEM. */
int ft_json_read(const char *text, size_t len, const ProtobufCMessageDescriptor *descriptor,
                 const char *const *ignore, ProtobufCMessage **message, char *error,
                 size_t error_bytes);

#endif
