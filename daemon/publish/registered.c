// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/publish/registered.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/publish/topics.h"
#include "proto/json.h"
#include "proto/message.h"
#include "proto/record.h"
#include "proto/schema.h"

#define SUBJECT_BYTES    272
#define SCHEMA_BYTES_MAX ((size_t)256 << 10)
#define URL_BYTES        96
#define SAID_BYTES       160

struct ft_registered {
    struct ft_registry *registry;
    struct ft_writer schema;
    bool protobuf;
    char url[URL_BYTES];
};

static const char *type_of(bool protobuf)
{
    return protobuf ? "PROTOBUF" : "JSON";
}

/* Ends with a zero byte. */
static int write_schema(struct ft_writer *w, Fabrictrace__Record__KindCase kind, bool protobuf)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(&fabrictrace__record__descriptor, (unsigned)kind);

    ft_writer_reset(w);
    if (protobuf)
        ft_schema_write_proto(w, field->descriptor);
    else
        ft_schema_write_json(w, field->descriptor, ft_record_schema(kind));
    ft_write_u8(w, '\0');
    return ft_writer_ok(w) ? 0 : -ENOMEM;
}

static int add(struct ft_registered *r, const char *subject, Fabrictrace__Record__KindCase kind)
{
    int rc = write_schema(&r->schema, kind, r->protobuf);

    return rc ? rc
              : ft_registry_add(r->registry, subject, type_of(r->protobuf),
                                (const char *)r->schema.bytes);
}

static bool has_schema(Fabrictrace__Record__KindCase kind)
{
    return kind != FABRICTRACE__RECORD__KIND_PARTIAL;
}

struct ft_registered *ft_registered_new(struct ft_loop *loop,
                                        const struct ft_registry_config *config,
                                        const char *topic_prefix, bool protobuf, char *error,
                                        size_t error_bytes)
{
    struct ft_registered *r = calloc(1, sizeof(*r));
    char subject[SUBJECT_BYTES];
    int rc = 0;

    snprintf(error, error_bytes, "no memory");
    if (!r)
        return NULL;
    ft_writer_init(&r->schema, SCHEMA_BYTES_MAX);
    r->protobuf = protobuf;
    snprintf(r->url, sizeof(r->url), "%s", config->url);
    r->registry = ft_registry_new(loop, config, error, error_bytes);
    for (size_t i = 0; r->registry && i < ft_topics_count() && rc == 0; i++) {
        snprintf(subject, sizeof(subject), "%s%s-value", topic_prefix ? topic_prefix : "",
                 ft_record_schema(ft_topics_kind(i)));
        if (has_schema(ft_topics_kind(i)))
            rc = add(r, subject, ft_topics_kind(i));
    }
    if (r->registry && rc == 0)
        return r;
    ft_registered_free(r);
    return NULL;
}

void ft_registered_free(struct ft_registered *r)
{
    if (!r)
        return;
    ft_registry_free(r->registry);
    ft_writer_free(&r->schema);
    free(r);
}

/* 0: none. */
static Fabrictrace__Record__KindCase kind_of(const char *topic)
{
    const char *schema = ft_message_schema(topic);

    for (size_t i = 0; schema && i < ft_topics_count(); i++)
        if (strcmp(ft_record_schema(ft_topics_kind(i)), schema) == 0)
            return ft_topics_kind(i);
    return FABRICTRACE__RECORD__KIND__NOT_SET;
}

int ft_registered_prefix(void *self, const struct ft_kafka_outgoing *m,
                         struct ft_kafka_prefix *prefix)
{
    Fabrictrace__Record__KindCase kind = kind_of(m->topic);
    struct ft_registered *r = self;
    char subject[SUBJECT_BYTES];
    uint32_t id;
    int rc;

    if (kind != FABRICTRACE__RECORD__KIND__NOT_SET && !has_schema(kind))
        return 0;
    /* No protobuf of ours begins with '{': it would be field 15 as a group. */
    if (kind == FABRICTRACE__RECORD__KIND__NOT_SET || m->len == 0 ||
        (*(const char *)m->value == '{') == r->protobuf)
        return -EPROTO;
    snprintf(subject, sizeof(subject), "%s-value", m->topic);
    rc = ft_registry_id(r->registry, subject, &id);
    /* Of a spool that was filled under another topic prefix; of dozens of them it is not sent. */
    if (rc == -ENOENT)
        rc = add(r, subject, kind) == -ENOSPC ? -EPROTO : -EAGAIN;
    if (rc < 0)
        return rc;
    prefix->len = 0;
    prefix->bytes[prefix->len++] = 0;
    for (int shift = 24; shift >= 0; shift -= 8)
        prefix->bytes[prefix->len++] = (uint8_t)(id >> shift);
    if (r->protobuf)
        prefix->bytes[prefix->len++] = 0;
    return 0;
}

void ft_registered_find(const struct ft_registered *r, struct ft_findings *findings)
{
    const char *trouble = ft_registry_trouble(r->registry);
    struct ft_registry_stats s;

    ft_registry_stats(r->registry, &s);
    if (s.known < s.subjects && trouble)
        ft_findings_add(findings, FT_FINDING_NOTE, NULL, NULL,
                        "mend the registry, or what kafka.registry says of it; records wait in "
                        "the spool until each schema has an id",
                        "the schema registry '%.*s' gave no id to %u of %u schemas: %.*s",
                        URL_BYTES, r->url, s.subjects - s.known, s.subjects, SAID_BYTES, trouble);
}

void ft_registered_stats(const struct ft_registered *r, struct ft_registry_stats *stats)
{
    ft_registry_stats(r->registry, stats);
}

int ft_registered_print(struct ft_writer *w, const char *topic_prefix, bool protobuf)
{
    struct ft_writer schema;
    int rc = 0;

    ft_writer_init(&schema, SCHEMA_BYTES_MAX);
    for (size_t i = 0; i < ft_topics_count() && rc == 0; i++) {
        if (!has_schema(ft_topics_kind(i)))
            continue;
        rc = write_schema(&schema, ft_topics_kind(i), protobuf);
        ft_write_fmt(w, "{\"subject\":\"%s%s-value\",\"schemaType\":\"%s\",\"schema\":",
                     topic_prefix ? topic_prefix : "", ft_record_schema(ft_topics_kind(i)),
                     type_of(protobuf));
        if (rc == 0)
            ft_json_write_text(w, (const char *)schema.bytes);
        ft_write_str(w, "}\n");
    }
    ft_writer_free(&schema);
    return rc ? rc : ft_writer_ok(w) ? 0 : -ENOSPC;
}
