// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/publish/publish.h"
#include "daemon/publish/registered.h"
#include "proto/record.h"

#define TOPIC_BYTES      256
#define RECORD_BYTES_MAX (1u << 20)
#define AROUND_BYTES_MAX 4096 /* topic, key and headers of one */
#define NUMBER_BYTES     24
#define HEADERS          7

struct kafka_sink {
    struct ft_kafka *kafka;
    struct ft_registered *registered; /* NULL: without a schema registry */
    char *prefix, *producer;
    char run[NUMBER_BYTES]; /* distinguishes the numbers of this start from those of others */
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
    char topic[TOPIC_BYTES], key[FT_RECORD_KEY_BYTES], number[NUMBER_BYTES], window[NUMBER_BYTES];
    const char *fabric = ft_record_fabric(out->record);
    struct ft_kafka_header headers[HEADERS] = {{"schema", out->schema},
                                               {"version", PACKAGE_VERSION},
                                               {"producer", s->producer},
                                               {"run", s->run},
                                               {"number", number}};
    struct ft_kafka_outgoing m = {.topic = topic,
                                  .key = key,
                                  .value = out->json,
                                  .len = out->json_len,
                                  .headers = headers,
                                  .header_count = 5,
                                  .partition = -1};
    bool packed = s->protobuf || out->record->kind_case == FABRICTRACE__RECORD__KIND_PARTIAL;
    uint64_t start_ms;

    s->received++;
    /* Between daemons alone: in one partition, and no number loses a digit. */
    if (out->record->kind_case == FABRICTRACE__RECORD__KIND_PARTIAL)
        m.partition = 0;
    if (out->json_len == 0 || (packed && !pack(s, out->record))) {
        s->failed++;
        return;
    }
    if (packed) {
        m.value = s->packed.bytes;
        m.len = s->packed.len;
    }
    snprintf(topic, sizeof(topic), "%s%s", s->prefix, out->schema);
    snprintf(number, sizeof(number), "%" PRIu64, s->received);
    ft_record_key(out->record, key);
    m.key_len = strlen(key);
    if (fabric && *fabric)
        headers[m.header_count++] = (struct ft_kafka_header){"fabric", fabric};
    if (ft_record_window(out->record, &start_ms)) {
        snprintf(window, sizeof(window), "%" PRIu64, start_ms);
        headers[m.header_count++] = (struct ft_kafka_header){"window", window};
    }
    /* What it does not take it counts. */
    ft_kafka_send(s->kafka, &m);
}

static int flush(void *self, int64_t timeout_ns)
{
    return ft_kafka_flush(((struct kafka_sink *)self)->kafka, timeout_ns);
}

static void add_drop(struct ft_sink_stats *out, const char *reason, uint64_t count)
{
    out->drops[out->drop_count++] = (struct ft_account_drop){reason, count};
}

/* What the spool had from before is received as well. */
static void stats(void *self, struct ft_sink_stats *out)
{
    struct kafka_sink *s = self;
    struct ft_kafka_stats k;

    ft_kafka_stats(s->kafka, &k);
    *out = (struct ft_sink_stats){.received = s->received + k.found,
                                  .processed = k.delivered,
                                  .pending = k.pending + k.spooled,
                                  .failed = s->failed + k.failed,
                                  .refused = k.refused};
    add_drop(out, "no_topic", k.no_topic);
    add_drop(out, "forbidden", k.forbidden);
    add_drop(out, "too_large", k.too_large);
    add_drop(out, "other_format", k.other_format);
    add_drop(out, "spool_oldest", k.spool_oldest);
    add_drop(out, "spool_newest", k.spool_newest);
    add_drop(out, "spool_disk", k.spool_disk);
    add_drop(out, "spool_damaged", k.spool_damaged);
    add_drop(out, "undone", k.undone);
    add_drop(out, "fenced", k.fenced);
}

static void free_sink(void *self)
{
    struct kafka_sink *s = self;

    ft_kafka_free(s->kafka);
    ft_registered_free(s->registered);
    ft_writer_free(&s->packed);
    free(s->prefix);
    free(s->producer);
    free(s);
}

struct ft_sink *ft_sink_kafka_new(struct ft_loop *loop, const struct ft_sink_kafka_config *config,
                                  char *error, size_t error_bytes)
{
    struct kafka_sink *s = calloc(1, sizeof(*s));
    struct ft_sink *sink = calloc(1, sizeof(*sink));
    struct ft_kafka_config kafka = config->kafka;
    uint64_t run;

    if (!s || !sink || !(s->prefix = strdup(config->topic_prefix ? config->topic_prefix : "")) ||
        !(s->producer = strdup(config->producer ? config->producer : ""))) {
        snprintf(error, error_bytes, "no memory");
        goto fail;
    }
    if (getrandom(&run, sizeof(run), 0) != (ssize_t)sizeof(run)) {
        snprintf(error, error_bytes, "no random number: %s", strerror(errno));
        goto fail;
    }
    snprintf(s->run, sizeof(s->run), "%016" PRIx64, run);
    s->protobuf = config->protobuf;
    ft_writer_init(&s->packed, RECORD_BYTES_MAX);
    kafka.message_bytes_max = RECORD_BYTES_MAX + AROUND_BYTES_MAX;
    if (config->registry) {
        s->registered = ft_registered_new(loop, config->registry, config->topic_prefix, s->protobuf,
                                          error, error_bytes);
        if (!s->registered)
            goto fail;
        kafka.prefix = ft_registered_prefix;
        kafka.prefix_arg = s->registered;
    }
    s->kafka = ft_kafka_new(loop, &kafka, error, error_bytes);
    if (!s->kafka)
        goto fail;
    *sink = (struct ft_sink){.name = "kafka",
                             .spec = "kafka",
                             .write = write_message,
                             .flush = flush,
                             .stats = stats,
                             .free = free_sink,
                             .self = s,
                             .kafka = s->kafka,
                             .registered = s->registered};
    return sink;
fail:
    if (s) {
        ft_registered_free(s->registered);
        free(s->prefix);
        free(s->producer);
    }
    free(s);
    free(sink);
    return NULL;
}
