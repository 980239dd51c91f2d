// SPDX-License-Identifier: Apache-2.0
#ifndef FT_PROTO_BOUNDS_H
#define FT_PROTO_BOUNDS_H
/*
 * How much a message holds, by its descriptor: for records of other machines that are kept
 * complete.
 */
#include <stdbool.h>
#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

/* Whether each text has at most text_max bytes and each list at most list_max items, at any depth.
 * Of fields that are not known here, as of a later version, there are at most list_max in a
 * message, each of at most 16 * text_max bytes. */
bool ft_message_within(const ProtobufCMessage *message, size_t text_max, size_t list_max);

#endif
