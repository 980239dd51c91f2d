// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_KAFKA_READER_H
#define FT_IO_KAFKA_READER_H
/*
 * One topic read from a moment on (librdkafka), all partitions, without a consumer group: nobody
 * else's offsets move. Committed messages only. Blocks. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ft_kafka_reader;

struct ft_kafka_reader_config {
    const char *brokers; /* "host:9092,host2:9092" */
    const char *topic;
    /* Where to begin: at the first message of this Unix time or later; FT_KAFKA_BEGINNING,
     * FT_KAFKA_END. */
    int64_t from_ms;
    bool follow; /* else it ends where the topic ended when it was opened */
    /* Further settings of librdkafka, "name=value", NULL-terminated. May be NULL. */
    const char *const *properties;
    int64_t timeout_ns; /* for the brokers' first answers */
};

#define FT_KAFKA_BEGINNING (-2)
#define FT_KAFKA_END       (-1)

/* Borrowed until the next call. */
struct ft_kafka_message {
    const char *key; /* not terminated; NULL: none */
    size_t key_len;
    const uint8_t *value;
    size_t len;      /* 0: a tombstone, or empty */
    int64_t time_ms; /* that the broker has for it; -1: none */
    int32_t partition;
    int64_t offset;
};

/* NULL with a reason in error, and errno: ENOENT, there is no such topic; EHOSTUNREACH, no broker
 * answers; EINVAL, a setting; ENOTSUP, built without librdkafka; ENOMEM; EIO. */
struct ft_kafka_reader *ft_kafka_reader_new(const struct ft_kafka_reader_config *config,
                                            char *error, size_t error_bytes);
void ft_kafka_reader_free(struct ft_kafka_reader *reader);

/* 1 and a message; 0: none came within timeout_ms; -ENODATA: all was read; -EIO with a reason in
 * error, of what goes away by itself: the next call continues. */
int ft_kafka_reader_next(struct ft_kafka_reader *reader, int timeout_ms,
                         struct ft_kafka_message *message, char *error, size_t error_bytes);

#endif
