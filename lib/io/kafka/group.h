// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_KAFKA_GROUP_H
#define FT_IO_KAFKA_GROUP_H
/*
 * A consumer's share of a topic by Kafka's group protocol: which partitions the group gives to it,
 * and from where it reads one that another member had. That the brokers are asked, by a thread of
 * its own, for their answers block. Used by consumer.c alone. Thread: the loop's.
 */
#include "lib/io/kafka/consumer.h"

struct ft_kafka_group;

struct ft_kafka_group_config {
    struct rd_kafka_s
        *client; /* a consumer, whose rebalance callback calls ft_kafka_group_rebalance() */
    int wake;    /* eventfd, written when ft_kafka_group_turn() has something to do */
    int64_t back_ns;
    void (*on_owned)(void *arg, const struct ft_kafka_owned *list, size_t count);
    void (*on_lost)(void *arg, const int32_t *partitions, size_t count);
    void *arg;
};

struct rd_kafka_error_s;
struct rd_kafka_topic_partition_list_s;

/* Joins. NULL with an error (rd_kafka_resp_err_t, as below). */
struct ft_kafka_group *ft_kafka_group_new(const struct ft_kafka_group_config *config,
                                          const char *topic, int *err);
void ft_kafka_group_free(struct ft_kafka_group *group);

/* The next two return an error of librdkafka for the caller to say and to destroy, or NULL. */
struct rd_kafka_error_s *
ft_kafka_group_rebalance(struct ft_kafka_group *group, int err,
                         const struct rd_kafka_topic_partition_list_s *parts);

/* Takes the partitions over whose beginnings are known by now. */
struct rd_kafka_error_s *ft_kafka_group_turn(struct ft_kafka_group *group);

/* Before the consumer is closed: from here on no callback is called. Takes NULL. */
void ft_kafka_group_leave(struct ft_kafka_group *group);

#endif
