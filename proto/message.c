// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/message.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/reader.h"
#include "proto/arena.h"
#include "proto/record.h"

/* What a message may take in memory, as a multiple of its length. */
#define EXPANSION    64
#define BUDGET_LEAST 65536
/* Of a path to a message that is nested in others. */
#define PATH_MAX_STEPS 16

const char *ft_message_schema(const char *topic)
{
    size_t len = strlen(topic);

    for (size_t i = 0; i < ft_record_kinds(); i++) {
        const char *schema = ft_record_schema(ft_record_kind(i));
        size_t end = strlen(schema);

        if (end <= len && strcmp(topic + len - end, schema) == 0)
            return schema;
    }
    return NULL;
}

/* The prefix of a registry, if there is one: no record begins with a byte 0, which would be the
 * field 0 of a message. Whose schema it is the topic says. */
static void skip_prefix(struct ft_reader *r)
{
    uint64_t steps;

    if (ft_reader_left(r) == 0 || *r->pos != 0)
        return;
    ft_read_skip(r, 5);
    if (ft_reader_left(r) && *r->pos == '{')
        return;
    /* Zigzag: twice the number. None stands for the first message of the file. */
    steps = ft_read_varint(r) / 2;
    if (steps > PATH_MAX_STEPS)
        ft_read_skip(r, SIZE_MAX);
    for (; steps && ft_reader_ok(r); steps--)
        ft_read_varint(r);
}

static int refuse(char error[FT_MESSAGE_ERROR_BYTES], const char *reason)
{
    snprintf(error, FT_MESSAGE_ERROR_BYTES, "%s", reason);
    return -EBADMSG;
}

/* The field of Record that holds records of a schema. */
static const ProtobufCFieldDescriptor *find_field(const char *schema)
{
    for (size_t i = 0; schema && i < ft_record_kinds(); i++)
        if (strcmp(ft_record_schema(ft_record_kind(i)), schema) == 0)
            return protobuf_c_message_descriptor_get_field(&fabrictrace__record__descriptor,
                                                           (unsigned)ft_record_kind(i));
    return NULL;
}

static int unpack(const ProtobufCFieldDescriptor *field, struct ft_reader *r,
                  struct ft_writer *json, char error[FT_MESSAGE_ERROR_BYTES])
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    size_t len = ft_reader_left(r);
    struct ft_arena arena;
    ProtobufCMessage *message;
    int rc;

    ft_arena_init(&arena, len * EXPANSION + BUDGET_LEAST);
    message = protobuf_c_message_unpack(field->descriptor, &arena.allocator, len, r->pos);
    if (!message) {
        rc = arena.no_memory ? -ENOMEM : refuse(error, "not a protobuf message of this schema");
    } else {
        record.kind_case = (Fabrictrace__Record__KindCase)field->id;
        record.observation = (Fabrictrace__Observation *)message;
        rc = ft_record_to_json(&record, json);
    }
    ft_arena_release(&arena);
    return rc;
}

int ft_message_to_json(const char *schema, const uint8_t *bytes, size_t len, struct ft_writer *json,
                       char error[FT_MESSAGE_ERROR_BYTES])
{
    const ProtobufCFieldDescriptor *field = find_field(schema);
    struct ft_reader r;

    ft_reader_init(&r, bytes, len);
    skip_prefix(&r);
    if (!ft_reader_ok(&r) || ft_reader_left(&r) == 0)
        return refuse(error, len ? "cut off in its prefix" : "empty");
    if (*r.pos == '{') {
        ft_write_bytes(json, r.pos, ft_reader_left(&r));
        return ft_writer_ok(json) ? 0 : -ENOSPC;
    }
    if (!field)
        return refuse(error, "not JSON, and the topic's name ends with no schema");
    return unpack(field, &r, json, error);
}
