// SPDX-License-Identifier: Apache-2.0
#ifndef FT_PROTO_MESSAGE_H
#define FT_PROTO_MESSAGE_H
/*
 * The value of a message in one of fabrictrace's Kafka topics: JSON or protobuf, with or without
 * the prefix of a schema registry (a byte 0, the schema's id in 4 bytes; before protobuf also the
 * path to the message in its file). The bytes are untrusted.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/base/writer.h"

#define FT_MESSAGE_ERROR_BYTES 128

/* The schema whose records a topic holds, by the end of its name: it may have a prefix. NULL when
 * the name ends with none. */
const char *ft_message_schema(const char *topic);

/* Appends the record as one JSON object on one line; what is JSON is handed on as it is, whatever
 * it says. schema: of a protobuf record; NULL: there is none, only JSON is read. -EBADMSG with a
 * reason, -ENOMEM, -ENOSPC when the writer fails. */
int ft_message_to_json(const char *schema, const uint8_t *bytes, size_t len, struct ft_writer *json,
                       char error[FT_MESSAGE_ERROR_BYTES]);

#endif
