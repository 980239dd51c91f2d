// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_KAFKA_H
#define FT_IO_KAFKA_H
/*
 * Kafka producer (librdkafka), woken through a descriptor so that its threads never touch our
 * state. Idempotent: a message is in its topic once, in order within its key. Every message is
 * accounted by its delivery report: queued = delivered + failed + pending.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/io/loop.h"

struct ft_kafka;

struct ft_kafka_config {
    const char *brokers; /* "host:9092,host2:9092" */
    const char *client_id;
    uint64_t queue_messages_max; /* for this and the next two, 0: librdkafka's default */
    uint64_t queue_bytes_max;
    int64_t message_timeout_ns; /* after this an undelivered message fails and is counted */
    /* Further librdkafka settings, "name=value", NULL-terminated; they win over the above. May be
     * NULL. */
    const char *const *properties;
    /* Error of the client or a broker, for the log (rate limited by the caller). May be NULL. */
    void (*on_error)(void *arg, const char *text);
    void *arg;
};

struct ft_kafka_stats {
    uint64_t queued, delivered, failed, pending;
    uint64_t refused; /* by ft_kafka_send(): not in queued */
    uint64_t errors;
};

/* 0 when a client could be made, without a word to the brokers; -EINVAL with a reason. */
int ft_kafka_check(const struct ft_kafka_config *config, char *error, size_t error_bytes);

/* NULL with a reason in error; "built without librdkafka" where that is so. */
struct ft_kafka *ft_kafka_new(struct ft_loop *loop, const struct ft_kafka_config *config,
                              char *error, size_t error_bytes);

/* What is still pending is lost: flush first. */
void ft_kafka_free(struct ft_kafka *kafka);

/* Copies key and value. -EAGAIN when the queue is full, -EINVAL for a topic that cannot be,
 * -EMSGSIZE for a message over librdkafka's message.max.bytes: each counted in refused. A topic may
 * be new where the broker makes topics by itself. */
int ft_kafka_send(struct ft_kafka *kafka, const char *topic, const char *key, size_t key_len,
                  const void *value, size_t len);

/* Blocks at most timeout_ns for every message's report; -ETIMEDOUT when some are still pending. */
int ft_kafka_flush(struct ft_kafka *kafka, int64_t timeout_ns);
void ft_kafka_stats(const struct ft_kafka *kafka, struct ft_kafka_stats *stats);

#endif
