// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_KAFKA_CONSUMER_H
#define FT_IO_KAFKA_CONSUMER_H
/*
 * Reads partitions of topics for good (librdkafka), woken through a descriptor so that its threads
 * never touch our state. What cannot be read now (no broker, no such partition) is said and tried
 * again. Committed messages only. Where a partition continues after a restart is kept by the
 * brokers, under the group's name, some seconds old. Its members are not known to each other,
 * unless they share a topic's partitions by Kafka's group protocol (group.h). Owner: the
 * caller. Thread: the loop's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/io/kafka/reader.h"
#include "lib/io/loop.h"

/* What it reads ahead of us at most: its queue (16 MiB), and what some brokers have on their way
 * then (4 MiB each). 8 to 24 MiB measured, by the size of messages. */
#define FT_KAFKA_CONSUMER_BYTES ((size_t)40 << 20)

struct ft_kafka_consumer;

/* A partition that the group gave to us. */
struct ft_kafka_owned {
    int32_t partition;
    int64_t from;  /* the offset where it begins; negative: not known */
    int64_t until; /* messages before this offset were there already; -1: not known */
    int64_t note;  /* what was kept beside how far it was read; negative: nothing */
};

struct ft_kafka_part {
    const char *topic;
    int32_t partition;
    bool from_start; /* from its first message at each start, else from where the last one was */
};

struct ft_kafka_consumer_config {
    const char *brokers; /* "host:9092,host2:9092" */
    const char *client_id, *group;
    const char *const *properties; /* as in lib/io/kafka/producer.h */
    const struct ft_kafka_part *parts;
    size_t part_count;
    /* Instead of parts: a topic whose partitions the members of the group share
     * (cooperative-sticky); NULL: none. Who gets one reads from this long ago on, or from where it
     * was read to when that is before it. */
    const char *subscribe;
    int64_t back_ns;
    /* Of the topic: these are ours from now on, and no longer. May be NULL. */
    void (*on_owned)(void *arg, const struct ft_kafka_owned *list, size_t count);
    void (*on_lost)(void *arg, const int32_t *partitions, size_t count);
    /* How far was read a producer commits with what it sends (ft_kafka_commit()), not the consumer.
     */
    bool in_transactions;
    /* All that was there is read, or the partition cannot be. May be NULL. */
    void (*on_end)(void *arg, const char *topic, int32_t partition);
    /* A message, borrowed until the return. Must not free the consumer. */
    void (*on_message)(void *arg, const char *topic, const struct ft_kafka_message *message);
    /* Whether nothing is to be read now: asked before each message, and soon again. May be NULL. */
    bool (*busy)(void *arg);
    /* As in lib/io/kafka.h. */
    void (*on_error)(void *arg, const char *key, const char *text);
    void *arg;
};

/* 0 when a consumer could be made, without a word to the brokers; -EINVAL with a reason. */
int ft_kafka_consumer_check(const struct ft_kafka_consumer_config *config, char *error,
                            size_t error_bytes);

/* NULL with a reason; "built without librdkafka" where that is so. */
struct ft_kafka_consumer *ft_kafka_consumer_new(struct ft_loop *loop,
                                                const struct ft_kafka_consumer_config *config,
                                                char *error, size_t error_bytes);

/* Within on_message: the message is given again after ft_kafka_consumer_release(), and until then
 * none of its partition. */
void ft_kafka_consumer_hold(struct ft_kafka_consumer *consumer);
void ft_kafka_consumer_release(struct ft_kafka_consumer *consumer);

/* Within on_lost: whether others have the partitions already. */
bool ft_kafka_consumer_is_evicted(const struct ft_kafka_consumer *consumer);

/* librdkafka's own, for transaction.h. */
struct rd_kafka_s *ft_kafka_consumer_handle(const struct ft_kafka_consumer *consumer);

/* Says to the brokers how far it read. */
void ft_kafka_consumer_free(struct ft_kafka_consumer *consumer);

#endif
