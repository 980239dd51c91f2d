// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_KAFKA_TOPICS_H
#define FT_IO_KAFKA_TOPICS_H
/*
 * The topics that a producer has delivered to. Brokers that have just started say for a moment that
 * there is no such topic, and librdkafka gives up at once what waits for one: messages of a topic
 * that was there are to be sent again instead, for a minute. Pure. Thread: one.
 */
#include <stdint.h>

#include "lib/base/clock.h"

struct ft_kafka_topics;

enum ft_kafka_missing {
    FT_KAFKA_MISSING_LOST,  /* never seen, nor a partition behind it, or missing for too long */
    FT_KAFKA_MISSING_BEGAN, /* just now: its messages wait */
    FT_KAFKA_MISSING_WAITS,
};

/* NULL without memory. */
struct ft_kafka_topics *ft_kafka_topics_new(void);
void ft_kafka_topics_free(struct ft_kafka_topics *topics);

/* A message was delivered to this partition of it. Beyond 64 topics, or without memory, it counts
 * as never seen. */
void ft_kafka_topics_seen(struct ft_kafka_topics *topics, const char *name, int32_t partition);

/* A message was not: no broker knows the topic, or the partition; -1: any. */
enum ft_kafka_missing ft_kafka_topics_missing(struct ft_kafka_topics *topics, const char *name,
                                              int32_t partition, struct ft_mono now);

#endif
