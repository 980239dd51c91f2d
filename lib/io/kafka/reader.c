// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/kafka/reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef HAVE_KAFKA
struct ft_kafka_reader *ft_kafka_reader_new(const struct ft_kafka_reader_config *config,
                                            char *error, size_t error_bytes)
{
    (void)config;
    snprintf(error, error_bytes, "built without librdkafka");
    errno = ENOTSUP;
    return NULL;
}

/* No ft_kafka_reader can exist here. */
void ft_kafka_reader_free(struct ft_kafka_reader *reader)
{
    (void)reader;
}

int ft_kafka_reader_next(struct ft_kafka_reader *reader, int timeout_ms,
                         struct ft_kafka_message *message, char *error, size_t error_bytes)
{
    (void)reader;
    (void)timeout_ms;
    (void)message;
    snprintf(error, error_bytes, "built without librdkafka");
    return -EIO;
}
#else
#include <librdkafka/rdkafka.h>

#define NAME_BYTES_MAX 128

struct ft_kafka_reader {
    rd_kafka_t *client;
    rd_kafka_topic_partition_list_t *parts;
    int64_t *ends; /* of each partition when it was opened; what is at or behind is not read */
    bool *read;    /* up to there */
    int open;      /* partitions that are not */
    bool follow;
    int timeout_ms;
    rd_kafka_message_t *last;
};

static int fail(char *error, size_t error_bytes, int err, const char *reason)
{
    snprintf(error, error_bytes, "%s", reason);
    errno = err;
    return -err;
}

static int set(rd_kafka_conf_t *conf, const char *name, const char *value, char *error,
               size_t error_bytes)
{
    char reason[256];

    if (rd_kafka_conf_set(conf, name, value, reason, sizeof(reason)) == RD_KAFKA_CONF_OK)
        return 0;
    return fail(error, error_bytes, EINVAL, reason);
}

static int set_property(rd_kafka_conf_t *conf, const char *property, char *error,
                        size_t error_bytes)
{
    const char *sign = strchr(property, '=');
    char name[NAME_BYTES_MAX];

    if (!sign || sign == property || (size_t)(sign - property) >= sizeof(name)) {
        snprintf(error, error_bytes, "property '%.*s' is not name=value",
                 (int)strcspn(property, "="), property);
        errno = EINVAL;
        return -EINVAL;
    }
    memcpy(name, property, (size_t)(sign - property));
    name[sign - property] = '\0';
    return set(conf, name, sign + 1, error, error_bytes);
}

static int configure(rd_kafka_conf_t *conf, const struct ft_kafka_reader_config *config,
                     char *error, size_t error_bytes)
{
    static const char *const fixed[] = {
        "client.id=fabrictrace",
        /* Of nobody: partitions are assigned here, and no offset is committed. */
        "group.id=fabrictrace", "enable.auto.commit=false", "enable.auto.offset.store=false",
        "isolation.level=read_committed", "enable.partition.eof=true",
        "allow.auto.create.topics=false", "auto.offset.reset=earliest"};

    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        if (set_property(conf, fixed[i], error, error_bytes) < 0)
            return -EINVAL;
    if (set(conf, "bootstrap.servers", config->brokers, error, error_bytes) < 0)
        return -EINVAL;
    for (const char *const *p = config->properties; p && *p; p++)
        if (set_property(conf, *p, error, error_bytes) < 0)
            return -EINVAL;
    return 0;
}

static int open_client(struct ft_kafka_reader *reader, const struct ft_kafka_reader_config *config,
                       char *error, size_t error_bytes)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char reason[256];

    /* What goes wrong is returned: its own log would write from other threads. */
    rd_kafka_conf_set_log_cb(conf, NULL);
    if (configure(conf, config, error, error_bytes) < 0) {
        rd_kafka_conf_destroy(conf);
        errno = EINVAL;
        return -EINVAL;
    }
    reader->client = rd_kafka_new(RD_KAFKA_CONSUMER, conf, reason, sizeof(reason));
    if (reader->client)
        return 0;
    rd_kafka_conf_destroy(conf);
    return fail(error, error_bytes, EINVAL, reason);
}

/* Which partitions the topic has. */
static int find_partitions(struct ft_kafka_reader *reader, const char *topic, char *error,
                           size_t error_bytes)
{
    const struct rd_kafka_metadata *metadata;
    rd_kafka_topic_t *handle = rd_kafka_topic_new(reader->client, topic, NULL);
    rd_kafka_resp_err_t err;
    int rc = 0;

    if (!handle)
        return fail(error, error_bytes, EINVAL, rd_kafka_err2str(rd_kafka_last_error()));
    err = rd_kafka_metadata(reader->client, 0, handle, &metadata, reader->timeout_ms);
    rd_kafka_topic_destroy(handle);
    if (err)
        return fail(error, error_bytes, EHOSTUNREACH,
                    err == RD_KAFKA_RESP_ERR__TRANSPORT || err == RD_KAFKA_RESP_ERR__TIMED_OUT
                        ? "no broker answers"
                        : rd_kafka_err2str(err));
    err = metadata->topic_cnt == 1 ? metadata->topics[0].err : RD_KAFKA_RESP_ERR_UNKNOWN;
    if (err || metadata->topics[0].partition_cnt <= 0)
        rc = fail(error, error_bytes, err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ? ENOENT : EIO,
                  err ? rd_kafka_err2str(err) : "it has no partitions");
    for (int i = 0; rc == 0 && i < metadata->topics[0].partition_cnt; i++)
        rd_kafka_topic_partition_list_add(reader->parts, topic,
                                          metadata->topics[0].partitions[i].id)
            ->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_metadata_destroy(metadata);
    return rc;
}

static void mark_read(struct ft_kafka_reader *reader, int i)
{
    if (!reader->read[i])
        reader->open--;
    reader->read[i] = true;
}

/* Where each partition begins and ends. */
static int find_offsets(struct ft_kafka_reader *reader, int64_t from_ms, char *error,
                        size_t error_bytes)
{
    rd_kafka_resp_err_t err = 0;

    reader->ends = calloc((size_t)reader->parts->cnt, sizeof(*reader->ends));
    reader->read = calloc((size_t)reader->parts->cnt, sizeof(*reader->read));
    if (!reader->ends || !reader->read)
        return fail(error, error_bytes, ENOMEM, "no memory");
    for (int i = 0; from_ms >= 0 && i < reader->parts->cnt; i++)
        reader->parts->elems[i].offset = from_ms;
    if (from_ms >= 0)
        err = rd_kafka_offsets_for_times(reader->client, reader->parts, reader->timeout_ms);
    reader->open = reader->parts->cnt;
    for (int i = 0; err == 0 && i < reader->parts->cnt; i++) {
        rd_kafka_topic_partition_t *part = &reader->parts->elems[i];
        int64_t low = 0;

        err = part->err
                  ? part->err
                  : rd_kafka_query_watermark_offsets(reader->client, part->topic, part->partition,
                                                     &low, &reader->ends[i], reader->timeout_ms);
        if (part->offset == RD_KAFKA_OFFSET_BEGINNING)
            part->offset = low;
        /* Nothing as new as that time: what comes is. */
        if (from_ms == FT_KAFKA_END || part->offset < 0)
            part->offset = reader->ends[i];
        if (part->offset >= reader->ends[i])
            mark_read(reader, i);
    }
    return err ? fail(error, error_bytes, EIO, rd_kafka_err2str(err)) : 0;
}

struct ft_kafka_reader *ft_kafka_reader_new(const struct ft_kafka_reader_config *config,
                                            char *error, size_t error_bytes)
{
    struct ft_kafka_reader *reader = calloc(1, sizeof(*reader));
    rd_kafka_resp_err_t err;
    int rc;

    if (!reader) {
        fail(error, error_bytes, ENOMEM, "no memory");
        return NULL;
    }
    reader->follow = config->follow;
    reader->timeout_ms = (int)(config->timeout_ns / 1000000);
    reader->parts = rd_kafka_topic_partition_list_new(1);
    rc = open_client(reader, config, error, error_bytes);
    if (rc == 0)
        rc = find_partitions(reader, config->topic, error, error_bytes);
    if (rc == 0)
        rc = find_offsets(reader, config->from_ms, error, error_bytes);
    if (rc == 0) {
        rd_kafka_poll_set_consumer(reader->client);
        err = rd_kafka_assign(reader->client, reader->parts);
        if (err)
            rc = fail(error, error_bytes, EIO, rd_kafka_err2str(err));
    }
    if (rc == 0)
        return reader;
    ft_kafka_reader_free(reader);
    errno = -rc;
    return NULL;
}

void ft_kafka_reader_free(struct ft_kafka_reader *reader)
{
    if (!reader)
        return;
    if (reader->last)
        rd_kafka_message_destroy(reader->last);
    if (reader->client) {
        rd_kafka_consumer_close(reader->client);
        rd_kafka_destroy(reader->client);
    }
    if (reader->parts)
        rd_kafka_topic_partition_list_destroy(reader->parts);
    free(reader->ends);
    free(reader->read);
    free(reader);
}

static int index_of(const struct ft_kafka_reader *reader, int32_t partition)
{
    for (int i = 0; i < reader->parts->cnt; i++)
        if (reader->parts->elems[i].partition == partition)
            return i;
    return -1;
}

/* Whether the message in reader->last is to be handed on. A transaction leaves something
 * behind at the end of a partition that never comes as a message: librdkafka reports the end then.
 */
static bool take(struct ft_kafka_reader *reader)
{
    const rd_kafka_message_t *m = reader->last;
    int i = index_of(reader, m->partition);
    bool in_range;

    if (i < 0)
        return false;
    if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        mark_read(reader, i);
        return false;
    }
    in_range = reader->follow || m->offset < reader->ends[i];
    if (m->offset + 1 >= reader->ends[i])
        mark_read(reader, i);
    return in_range;
}

static void hand_over(const rd_kafka_message_t *m, struct ft_kafka_message *message)
{
    rd_kafka_timestamp_type_t type;

    *message = (struct ft_kafka_message){.key = m->key,
                                         .key_len = m->key_len,
                                         .value = m->payload,
                                         .len = m->len,
                                         .time_ms = rd_kafka_message_timestamp(m, &type),
                                         .partition = m->partition,
                                         .offset = m->offset};
}

int ft_kafka_reader_next(struct ft_kafka_reader *reader, int timeout_ms,
                         struct ft_kafka_message *message, char *error, size_t error_bytes)
{
    for (;;) {
        if (reader->last)
            rd_kafka_message_destroy(reader->last);
        reader->last = NULL;
        if (!reader->follow && reader->open == 0)
            return -ENODATA;
        reader->last = rd_kafka_consumer_poll(reader->client, timeout_ms);
        if (!reader->last)
            return 0;
        if (reader->last->err && reader->last->err != RD_KAFKA_RESP_ERR__PARTITION_EOF) {
            snprintf(error, error_bytes, "%s", rd_kafka_message_errstr(reader->last));
            return -EIO;
        }
        if (take(reader)) {
            hand_over(reader->last, message);
            return 1;
        }
    }
}
#endif
