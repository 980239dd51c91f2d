// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/publish/publish.h"
#include "proto/record.h"

#define TOPIC_BYTES      256
#define RECORD_BYTES_MAX (1u << 20)

struct kafka_sink {
    struct ft_kafka *kafka;
    char *prefix;
    bool protobuf;
    struct ft_writer packed;
    uint64_t received;
    uint64_t failed; /* before they reached the client's queue */
};

/* The record alone: its kind is the topic's. */
static bool pack(struct kafka_sink *s, const Fabrictrace__Record *record)
{
    const ProtobufCMessage *message = ft_record_message(record);
    uint8_t *room;

    ft_writer_reset(&s->packed);
    room = ft_write_room(&s->packed, protobuf_c_message_get_packed_size(message));
    if (room)
        protobuf_c_message_pack(message, room);
    return room;
}

static void write_message(void *self, const struct ft_published *out)
{
    struct kafka_sink *s = self;
    const void *value = out->json;
    size_t len = out->json_len;
    char topic[TOPIC_BYTES], key[FT_RECORD_KEY_BYTES];
    int rc;

    s->received++;
    if (len == 0 || (s->protobuf && !pack(s, out->record))) {
        s->failed++;
        return;
    }
    if (s->protobuf) {
        value = s->packed.bytes;
        len = s->packed.len;
    }
    snprintf(topic, sizeof(topic), "%s%s", s->prefix, out->schema);
    ft_record_key(out->record, key);
    rc = ft_kafka_send(s->kafka, topic, key, strlen(key), value, len);
    /* A full queue is counted by the client itself. */
    if (rc && rc != -EAGAIN)
        s->failed++;
}

static int flush(void *self, int64_t timeout_ns)
{
    return ft_kafka_flush(((struct kafka_sink *)self)->kafka, timeout_ns);
}

static void stats(void *self, struct ft_sink_stats *out)
{
    struct kafka_sink *s = self;
    struct ft_kafka_stats k;

    ft_kafka_stats(s->kafka, &k);
    *out = (struct ft_sink_stats){.received = s->received,
                                  .processed = k.delivered,
                                  .pending = k.pending,
                                  .failed = s->failed + k.failed,
                                  .refused = k.refused};
}

static void free_sink(void *self)
{
    struct kafka_sink *s = self;

    ft_kafka_free(s->kafka);
    ft_writer_free(&s->packed);
    free(s->prefix);
    free(s);
}

struct ft_sink *ft_sink_kafka_new(struct ft_loop *loop, const struct ft_sink_kafka_config *config,
                                  char *error, size_t error_bytes)
{
    struct kafka_sink *s = calloc(1, sizeof(*s));
    struct ft_sink *sink = calloc(1, sizeof(*sink));

    if (!s || !sink || !(s->prefix = strdup(config->topic_prefix ? config->topic_prefix : ""))) {
        snprintf(error, error_bytes, "no memory");
        goto fail;
    }
    s->protobuf = config->protobuf;
    ft_writer_init(&s->packed, RECORD_BYTES_MAX);
    s->kafka = ft_kafka_new(loop, &config->kafka, error, error_bytes);
    if (!s->kafka)
        goto fail;
    *sink = (struct ft_sink){.name = "kafka",
                             .spec = "kafka",
                             .write = write_message,
                             .flush = flush,
                             .stats = stats,
                             .free = free_sink,
                             .self = s};
    return sink;
fail:
    if (s)
        free(s->prefix);
    free(s);
    free(sink);
    return NULL;
}
