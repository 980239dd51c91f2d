// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/topics/sender.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/partition.h"
#include "lib/topics/divide.h"

/* A part is closed at this size: with its envelope and what its last record brings it stays below
 * librdkafka's default limit of a message (1 MB). */
#define PART_BYTES    ((size_t)256 << 10)
#define MESSAGE_BYTES (4 * PART_BYTES + 4096)
#define TOPIC_BYTES   256

/* Numbers of what goes to one partition. */
struct numbers {
    uint64_t sequence, record_last;
};

struct sender {
    struct ft_kafka *kafka;
    struct ft_divide *divide;
    struct ft_writer message;
    char topics[FT_INGEST_TOPICS][TOPIC_BYTES];
    char *source_id, *program;
    uint64_t boot_id;
    uint32_t partitions, home; /* home: the source's own, of what is not divided */
    struct numbers *flows, state, reports;
    uint64_t records, parts;
};

static struct numbers *numbers_of(struct sender *s, const struct ft_divided *part)
{
    switch (part->topic) {
    case FT_INGEST_FLOWS:
        return &s->flows[part->partition];
    case FT_INGEST_STATE:
        return &s->state;
    default:
        return &s->reports;
    }
}

static void send_part(void *arg, const struct ft_divided *part)
{
    struct sender *s = arg;
    struct numbers *n = numbers_of(s, part);
    Fabrictrace__Envelope e = FABRICTRACE__ENVELOPE__INIT;
    struct ft_kafka_outgoing out = {
        .topic = s->topics[part->topic],
        .key = part->key,
        .key_len = strlen(part->key),
        .partition = (int32_t)(part->topic == FT_INGEST_FLOWS ? part->partition : s->home),
        .weight = part->records,
    };

    n->sequence++;
    n->record_last += part->records;
    e.program = s->program;
    e.source = s->source_id;
    e.has_boot_id = e.has_sequence = e.has_record_last = e.has_records = e.has_partitions = true;
    e.boot_id = s->boot_id;
    e.sequence = n->sequence;
    e.record_last = n->record_last;
    e.records = part->records;
    e.partitions = s->partitions;
    e.has_batch = true;
    e.batch.data = (uint8_t *)(uintptr_t)part->batch;
    e.batch.len = part->len;
    ft_writer_reset(&s->message);
    s->parts++;
    if (ft_envelope_write(&s->message, &e) < 0)
        return;
    out.value = s->message.bytes;
    out.len = s->message.len;
    ft_kafka_send(s->kafka, &out);
}

static int send_batch(void *self, const void *payload, size_t len, uint32_t records)
{
    struct sender *s = self;
    const struct ft_divide_sink sink = {send_part, s};

    s->records += records;
    return ft_divide_batch(s->divide, payload, len, &sink);
}

/* What no message holds, the queue or the brokers did not take, is neither delivered nor pending.
 */
static void fill_stats(const void *self, struct ft_sender_stats *stats)
{
    const struct sender *s = self;
    uint64_t payloads, records, queued;
    struct ft_kafka_stats k;

    ft_kafka_stats(s->kafka, &k);
    payloads = s->parts + k.found;
    records = s->records + k.weight_found;
    queued = k.weight_pending + k.weight_spooled;
    *stats = (struct ft_sender_stats){
        .payloads = payloads,
        .payloads_acked = k.delivered,
        .payloads_queued = k.pending + k.spooled,
        .payloads_dropped = payloads - k.delivered - k.pending - k.spooled,
        .records = records,
        .records_found = k.weight_found,
        .records_acked = k.weight_delivered,
        .records_queued = queued,
        .records_dropped = records - k.weight_delivered - queued,
        .connected = ft_kafka_client_stats(s->kafka)->connected,
    };
}

static void flush(void *self, int64_t timeout_ns)
{
    ft_kafka_flush(((struct sender *)self)->kafka, timeout_ns);
}

static void free_sender(void *self)
{
    struct sender *s = self;

    if (!s)
        return;
    ft_kafka_free(s->kafka);
    ft_divide_free(s->divide);
    ft_writer_free(&s->message);
    free(s->flows);
    free(s->source_id);
    free(s->program);
    free(s);
}

int ft_topic_sender_open(struct ft_loop *loop, const struct ft_topic_sender_config *config,
                         struct ft_sender_transport *transport, char *error, size_t error_bytes)
{
    struct ft_kafka_config kafka = config->kafka;
    struct sender *s = calloc(1, sizeof(*s));

    if (!s)
        goto no_memory;
    ft_writer_init(&s->message, MESSAGE_BYTES);
    s->boot_id = config->boot_id;
    s->partitions = config->partitions;
    s->home = ft_partition_of_bytes(config->source_id, strlen(config->source_id), s->partitions);
    s->source_id = strdup(config->source_id);
    s->program = strdup(config->program);
    s->flows = calloc(s->partitions, sizeof(*s->flows));
    s->divide = ft_divide_new(s->partitions, PART_BYTES);
    if (!s->source_id || !s->program || !s->flows || !s->divide)
        goto no_memory;
    for (int i = 0; i < FT_INGEST_TOPICS; i++)
        snprintf(s->topics[i], TOPIC_BYTES, "%s%s",
                 config->topic_prefix ? config->topic_prefix : "",
                 ft_ingest_topic_name((enum ft_ingest_topic)i));
    kafka.message_bytes_max = MESSAGE_BYTES + TOPIC_BYTES;
    s->kafka = ft_kafka_new(loop, &kafka, error, error_bytes);
    if (!s->kafka) {
        free_sender(s);
        return -EINVAL;
    }
    *transport = (struct ft_sender_transport){send_batch, fill_stats, flush, free_sender, s};
    return 0;
no_memory:
    snprintf(error, error_bytes, "no memory");
    free_sender(s);
    return -ENOMEM;
}
