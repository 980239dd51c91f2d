// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_KAFKA_CLIENT_H
#define FT_IO_KAFKA_CLIENT_H
/*
 * librdkafka's producer behind our own types: settings, one message at a time, what became of each,
 * and another client where one has failed for good. Used by kafka.c alone. Thread: the loop's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/io/kafka/producer.h"

struct ft_kafka_client;

enum ft_kafka_fate {
    FT_KAFKA_DELIVERED,
    FT_KAFKA_AGAIN, /* the client ended before: nobody knows whether it arrived */
    FT_KAFKA_FAILED,
    FT_KAFKA_NO_TOPIC,
    FT_KAFKA_FORBIDDEN,
    FT_KAFKA_TOO_LARGE,
};

struct ft_kafka_hooks {
    void (*report)(void *arg, void *message, enum ft_kafka_fate fate);
    void (*error)(void *arg, const char *key, const char *text);
    void (*stats)(void *arg, const char *json, size_t len);
    void (*drained)(void *arg); /* all reports that were there are given */
    void *arg;
};

/* NULL with a reason. */
struct ft_kafka_client *ft_kafka_client_new(struct ft_loop *loop,
                                            const struct ft_kafka_config *config,
                                            const struct ft_kafka_hooks *hooks, char *error,
                                            size_t error_bytes);

/* Reports FT_KAFKA_AGAIN for what is pending, where librdkafka still does. Takes NULL. */
void ft_kafka_client_free(struct ft_kafka_client *client);

/* The message's value stays the caller's, and in place until its report; with a prefix it is
 * copied behind that. -EAGAIN: full, or failed
 * for good; -ESTALE: its transaction can only be aborted; -ENOENT: no such topic or partition;
 * -EMSGSIZE, -EINVAL. */
int ft_kafka_client_send(struct ft_kafka_client *client, const struct ft_kafka_outgoing *message,
                         const struct ft_kafka_prefix *prefix, void *report);

/* Waits for reports, at most ms milliseconds. */
void ft_kafka_client_flush(struct ft_kafka_client *client, int ms);

/* Whether it takes nothing any more, after a fatal error. */
bool ft_kafka_client_failed(const struct ft_kafka_client *client);

/* Whether that was since another one has its transactional id, or took too long for the brokers. */
bool ft_kafka_client_fenced(const struct ft_kafka_client *client);

/* librdkafka's own, and the eventfd that wakes this one: for transaction.h. */
struct rd_kafka_s *ft_kafka_client_handle(const struct ft_kafka_client *client);
int ft_kafka_client_wake(const struct ft_kafka_client *client);

/* Gives all reports that are there. */
void ft_kafka_client_poll(struct ft_kafka_client *client);

/* Another client instead: pending messages are reported as above, and are no longer its. */
void ft_kafka_client_renew(struct ft_kafka_client *client);

#endif
