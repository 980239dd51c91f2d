// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_KAFKA_PRODUCER_H
#define FT_IO_KAFKA_PRODUCER_H
/*
 * Kafka producer (librdkafka), woken through a descriptor so that its threads never touch our
 * state. Idempotent: what the broker takes is in its topic once, in order within its key.
 *
 * With a spool (spool.h) messages wait on disk while the brokers take none or the queue is full,
 * and go out in their order once they take some again. A message is in the spool until its
 * delivery was reported: after a kill or a fatal error of the client some may be sent once more,
 * byte for byte the same.
 *
 * In transactions, which need no spool: what is sent waits in memory until ft_kafka_commit() makes
 * all of it visible, to consumers of committed messages, together with how far our own consumers
 * read. After a kill none of it is, and none of that was read.
 *
 * taken + found = delivered + pending + spooled + every drop. Thread: the loop's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/io/kafka/stats.h"
#include "lib/io/loop.h"

struct ft_kafka;
struct ft_kafka_consumer;
struct ft_kafka_outgoing;
struct ft_kafka_prefix;

struct ft_kafka_config {
    const char *brokers; /* "host:9092,host2:9092" */
    const char *client_id;
    uint64_t queue_messages_max; /* for this and the next two, 0: librdkafka's default */
    uint64_t queue_bytes_max;
    int64_t message_timeout_ns; /* without a spool: then a message fails and is counted */
    /* Further librdkafka settings, "name=value", NULL-terminated; they win over the above. May be
     * NULL. */
    const char *const *properties;
    const char *spool; /* its folder; NULL: none */
    uint64_t spool_bytes_max;
    size_t message_bytes_max; /* that the spool takes, with key and headers */
    int64_t spool_after_ns;   /* without a delivery for so long, the brokers are away */
    bool spool_keeps_oldest;  /* at its cap */
    /* In transactions of this name, which one client has at a time; NULL: without. At most
     * queue_messages_max and queue_bytes_max wait then. */
    const char *transactional_id;
    int64_t transaction_ns; /* after which the brokers end one that nobody commits */
    /* Error of the client or a broker, for the log (rate limited by the caller), and the key of the
     * configuration that it is about, NULL: none. May be NULL. */
    void (*on_error)(void *arg, const char *key, const char *text);
    void *arg;
    /* What goes in front of a message's value, asked each time that it is handed to librdkafka; in
     * the spool it is without. -EAGAIN: it waits, and all behind it; -EPROTO: it cannot have one,
     * and is dropped. NULL: nothing does. Needs a spool or transactions. */
    int (*prefix)(void *arg, const struct ft_kafka_outgoing *message,
                  struct ft_kafka_prefix *prefix);
    void *prefix_arg;
};

#define FT_KAFKA_PREFIX_BYTES 16
struct ft_kafka_prefix {
    uint8_t bytes[FT_KAFKA_PREFIX_BYTES];
    size_t len;
};

struct ft_kafka_header {
    const char *name, *value;
};

struct ft_kafka_outgoing {
    const char *topic, *key;
    size_t key_len;
    const void *value;
    size_t len;
    const struct ft_kafka_header *headers;
    size_t header_count;
    /* Where it goes, whatever its key; -1: where the key says. */
    int32_t partition;
    /* What stands in it counts as so many, where that is of use: see struct ft_kafka_stats. */
    uint32_t weight;
};

struct ft_kafka_stats {
    uint64_t taken; /* by ft_kafka_send(), also what it dropped */
    uint64_t found; /* in the spool at the start */
    uint64_t delivered;
    uint64_t pending; /* with librdkafka */
    uint64_t spooled; /* in the spool alone */
    uint64_t again;   /* sent once more: the client before had failed */
    uint64_t errors;
    uint64_t spool_kept, spool_bytes; /* in its files, also what is pending */
    uint64_t commits, aborts;         /* transactions */
    /* Drops. */
    uint64_t undone;  /* taken back before they were committed: ft_kafka_undo() */
    uint64_t fenced;  /* another client has the transactional id */
    uint64_t refused; /* the queue is full, and there is no spool; or no topic can be so named */
    uint64_t failed;  /* by the broker, or in time, for another reason than the next three */
    uint64_t no_topic, forbidden, too_large;
    uint64_t other_format;               /* -EPROTO for a prefix */
    uint64_t spool_oldest, spool_newest; /* at the cap of the spool */
    uint64_t spool_disk;                 /* which took no more */
    uint64_t spool_damaged;              /* could not be read back */
    /* Weights of what is with librdkafka, in the spool alone, and of what was delivered. That of
     * messages found at the start is known when they are read: weight_found. */
    uint64_t weight_pending, weight_spooled, weight_delivered, weight_found;
};

/* 0 when a client could be made, without a word to the brokers; -EINVAL with a reason. */
int ft_kafka_check(const struct ft_kafka_config *config, char *error, size_t error_bytes);

/* 0 when librdkafka knows this "name=value", looked at alone; -EINVAL with a reason that has no
 * value of a secret in it. */
int ft_kafka_check_property(const char *property, char *error, size_t error_bytes);

/* NULL with a reason in error; "built without librdkafka" where that is so. */
struct ft_kafka *ft_kafka_new(struct ft_loop *loop, const struct ft_kafka_config *config,
                              char *error, size_t error_bytes);

/* What is still pending stays in the spool, and without one is lost: flush first. */
void ft_kafka_free(struct ft_kafka *kafka);

/* Copies the message. 0: it will be delivered, or counted as dropped later; else it is counted:
 * -EAGAIN when the queue is full, -ENOSPC or the disk's -errno when the spool is, -EINVAL for a
 * topic that cannot be, -ENOENT for one that is known to be missing, -EMSGSIZE for a message over
 * librdkafka's message.max.bytes. A topic may be new where the broker makes topics by itself. */
int ft_kafka_send(struct ft_kafka *kafka, const struct ft_kafka_outgoing *message);

/* How far a consumer read a partition: the next message, and a number that is kept with it
 * (negative: none). */
struct ft_kafka_position {
    const char *topic;
    int32_t partition;
    int64_t offset, note;
};
struct ft_kafka_offsets {
    struct ft_kafka_consumer *consumer;
    const struct ft_kafka_position *list;
    size_t count;
};
#define FT_KAFKA_OFFSETS_MAX 2

/* In transactions: commits all that was sent so far with these offsets, instead of those of an
 * earlier call that are not committed yet; some time later, again and again until it is done. The
 * consumers stay until ft_kafka_undo() of all. -ENOMEM. */
int ft_kafka_commit(struct ft_kafka *kafka, const struct ft_kafka_offsets *offsets, size_t count);

/* What was sent since the last commit is taken back; with all, also what that one has not done
 * yet. With all no consumer is asked for any more. */
void ft_kafka_undo(struct ft_kafka *kafka, bool all);

/* Blocks at most timeout_ns for every message's report, in transactions for a commit that was asked
 * for; -ETIMEDOUT when some are still pending, or
 * with a spool and a timeout are neither delivered nor in it. */
int ft_kafka_flush(struct ft_kafka *kafka, int64_t timeout_ns);
void ft_kafka_stats(const struct ft_kafka *kafka, struct ft_kafka_stats *stats);

/* What librdkafka says of itself, some seconds old. */
const struct ft_kafka_client_stats *ft_kafka_client_stats(const struct ft_kafka *kafka);

#endif
