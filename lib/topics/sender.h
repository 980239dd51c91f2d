// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TOPICS_SENDER_H
#define FT_TOPICS_SENDER_H
/*
 * The way of agent and poller to the daemons over Kafka: a batch as it would go over TCP becomes a
 * message for each partition that has a part in it, numbered there for itself.
 *
 * The queue is librdkafka's: when it is full, and when the brokers refuse a message or do not take
 * it in time, its records are dropped and counted; their numbers are missing at the daemon then.
 * With a spool they wait on disk instead, over restarts too: messages of an earlier start go out
 * before those of this one, as that start numbered them. Their records count as sent when they are
 * read from the spool; those that the spool dropped before are counted in messages alone.
 * Owner: the sender (lib/io/transport/transport.h) that it is the way of. Thread: the loop's.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/io/kafka/producer.h"
#include "lib/io/transport/transport.h"

struct ft_topic_sender_config {
    struct ft_kafka_config kafka;
    const char *topic_prefix; /* NULL: none */
    const char *source_id, *program;
    uint64_t boot_id;    /* differs at every start of the program */
    uint32_t partitions; /* of each ingest topic */
};

/* Fills *way for a struct ft_sender_config. -EINVAL with a reason in error, -ENOMEM likewise. */
int ft_topic_sender_open(struct ft_loop *loop, const struct ft_topic_sender_config *config,
                         struct ft_sender_transport *transport, char *error, size_t error_bytes);

#endif
