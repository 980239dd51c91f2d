// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/bounds.h"

#include <stdint.h>
#include <string.h>

/* What is not known may be a message of several texts. */
#define UNKNOWN_TEXTS 16

struct bounds {
    size_t text_max, list_max;
};

static bool value_fits(const ProtobufCFieldDescriptor *field, const void *value,
                       const struct bounds *bounds)
{
    const char *text;
    const ProtobufCMessage *message;

    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        text = *(char *const *)value;
        return !text || strnlen(text, bounds->text_max + 1) <= bounds->text_max;
    case PROTOBUF_C_TYPE_BYTES:
        return ((const ProtobufCBinaryData *)value)->len <= bounds->text_max;
    case PROTOBUF_C_TYPE_MESSAGE:
        message = *(ProtobufCMessage *const *)value;
        return !message || ft_message_within(message, bounds->text_max, bounds->list_max);
    default:
        return true;
    }
}

static size_t item_bytes(ProtobufCType type)
{
    return type == PROTOBUF_C_TYPE_BYTES ? sizeof(ProtobufCBinaryData) : sizeof(void *);
}

static bool list_fits(const ProtobufCFieldDescriptor *field, const uint8_t *base,
                      const struct bounds *bounds)
{
    size_t count = *(const size_t *)(const void *)(base + field->quantifier_offset);
    const uint8_t *items = *(uint8_t *const *)(const void *)(base + field->offset);

    if (count > bounds->list_max)
        return false;
    /* Numbers have no length. */
    if (field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_BYTES &&
        field->type != PROTOBUF_C_TYPE_MESSAGE)
        return true;
    for (size_t i = 0; i < count; i++)
        if (!value_fits(field, items + i * item_bytes(field->type), bounds))
            return false;
    return true;
}

static bool is_other_of_oneof(const ProtobufCFieldDescriptor *field, const uint8_t *base)
{
    return field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF &&
           *(const uint32_t *)(const void *)(base + field->quantifier_offset) != field->id;
}

bool ft_message_within(const ProtobufCMessage *message, size_t text_max, size_t list_max)
{
    const struct bounds bounds = {text_max, list_max};
    const uint8_t *base = (const uint8_t *)message;

    for (unsigned i = 0; i < message->n_unknown_fields; i++)
        if (message->unknown_fields[i].len > UNKNOWN_TEXTS * text_max || i >= list_max)
            return false;
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];

        if (is_other_of_oneof(field, base))
            continue;
        if (field->label == PROTOBUF_C_LABEL_REPEATED
                ? !list_fits(field, base, &bounds)
                : !value_fits(field, base + field->offset, &bounds))
            return false;
    }
    return true;
}
