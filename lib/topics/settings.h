// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TOPICS_SETTINGS_H
#define FT_TOPICS_SETTINGS_H
/*
 * The settings of agent and poller for the way over Kafka, and the way that they make. Where
 * kafka.brokers is set, nothing goes over TCP.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/config/options.h"
#include "lib/config/program.h"
#include "lib/io/transport.h"

struct ft_topic_settings {
    char *brokers; /* NULL: TCP */
    char *topic_prefix;
    uint64_t partitions;
    int64_t message_timeout_ns;
    struct ft_strings properties, secrets;
};

/* Rows of a program's table, of the struct ft_topic_settings at this offset. */
#define FT_TOPIC_OPTIONS(at)                                                                       \
    {.key = "kafka.brokers",                                                                       \
     .type = FT_OPTION_STRING,                                                                     \
     .offset = (at) + offsetof(struct ft_topic_settings, brokers),                                 \
     .help = "Kafka's brokers, host:port[,host:port]. With it records go into the topics of "      \
             "fabrictrace-ingest(7) instead of over TCP, and daemon.endpoint is not used."},       \
        {.key = "kafka.topic_prefix",                                                              \
         .type = FT_OPTION_STRING,                                                                 \
         .offset = (at) + offsetof(struct ft_topic_settings, topic_prefix),                        \
         .help = "Put before the names of these topics. The daemons need the same."},              \
        {.key = "kafka.partitions",                                                                \
         .type = FT_OPTION_UINT,                                                                   \
         .offset = (at) + offsetof(struct ft_topic_settings, partitions),                          \
         .standard = "12",                                                                         \
         .min = 1,                                                                                 \
         .max = 4096,                                                                              \
         .help = "Partitions of each of these topics, among which flows are divided by their "     \
                 "5-tuples. The same in all agents, pollers and daemons, and what the topics "     \
                 "have."},                                                                         \
        {.key = "kafka.message_timeout",                                                           \
         .type = FT_OPTION_DURATION,                                                               \
         .offset = (at) + offsetof(struct ft_topic_settings, message_timeout_ns),                  \
         .standard = "60s",                                                                        \
         .min = 1,                                                                                 \
         .max = 86400,                                                                             \
         .help = "A message that the brokers did not take in this time is dropped and counted."},  \
        {.key = "kafka.properties",                                                                \
         .type = FT_OPTION_MAP,                                                                    \
         .offset = (at) + offsetof(struct ft_topic_settings, properties),                          \
         .help = "Further settings of librdkafka by their names, security.protocol: sasl_ssl."},   \
    {                                                                                              \
        .key = "kafka.secrets", .type = FT_OPTION_MAP,                                             \
        .offset = (at) + offsetof(struct ft_topic_settings, secrets),                              \
        .help = "Settings of librdkafka whose values are in files of one line, which not "         \
                "everybody may read: sasl.password: /etc/fabrictrace/kafka.password, or "          \
                "credential:NAME for a credential of the service manager (systemd.exec(5))."       \
    }

/* Complains of what cannot be. */
void ft_topic_settings_check(const struct ft_topic_settings *settings, const struct ft_run *run,
                             struct ft_diag *diag);

bool ft_topic_settings_equal(const struct ft_topic_settings *a, const struct ft_topic_settings *b);

/* The way of a sender with this name and queue. Complains in the log, later too, with where the run
 * read the setting that it is about: -errno. */
int ft_topic_settings_open(const struct ft_topic_settings *settings, const struct ft_run *run,
                           struct ft_loop *loop, const struct ft_sender_config *sender,
                           struct ft_sender_transport *transport);

#endif
