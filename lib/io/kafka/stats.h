// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_KAFKA_STATS_H
#define FT_IO_KAFKA_STATS_H
/*
 * librdkafka's statistics (its STATISTICS.md), as far as they are metrics. Counters are since the
 * client was made. Pure.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FT_KAFKA_BROKERS_MAX  16 /* further ones are left out */
#define FT_KAFKA_BROKER_BYTES 72

struct ft_kafka_broker {
    char name[FT_KAFKA_BROKER_BYTES]; /* host:port */
    bool up;
    uint64_t in_flight, waiting; /* requests */
    uint64_t retries, errors, timeouts;
    double rtt_s, rtt_p99_s; /* of the last interval; 0: none */
};

struct ft_kafka_client_stats {
    uint64_t queue_messages, queue_bytes;
    bool connected; /* to any broker, also one that is known by kafka.brokers alone */
    size_t broker_count;
    struct ft_kafka_broker brokers[FT_KAFKA_BROKERS_MAX];
};

/* -EBADMSG: no JSON object. What is missing in it is 0. */
int ft_kafka_stats_read(const char *json, size_t len, struct ft_kafka_client_stats *stats);

#endif
