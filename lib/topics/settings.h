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
#include "lib/io/transport/transport.h"

struct ft_topic_settings {
    char *brokers; /* NULL: TCP */
    char *topic_prefix;
    uint64_t partitions;
    int64_t message_timeout_ns;
    char *spool; /* NULL: none */
    uint64_t spool_bytes;
    int64_t spool_after_ns;
    int spool_full; /* index in ft_topic_spool_full */
    struct ft_strings properties, secrets;
};

/* "oldest", "newest": what is lost where the spool is full. */
extern const char *const ft_topic_spool_full[];

/* Rows of a program's table, of the struct ft_topic_settings at this offset. The name is that of
 * the spool in the help: agent and poller may be on one host, and each package removes its own at
 * purge. */
#define FT_TOPIC_OPTIONS(at, name)                                                                 \
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
         .help = "A message that the brokers did not take in this time is dropped and counted. "   \
                 "Where there is a spool it waits instead."},                                      \
        {.key = "kafka.spool",                                                                     \
         .type = FT_OPTION_STRING,                                                                 \
         .offset = (at) + offsetof(struct ft_topic_settings, spool),                               \
         .help = "Folder where messages wait on disk while no broker takes them, and over "        \
                 "restarts (/var/lib/fabrictrace/" name ".spool). It is made where its parent is " \
                 "there; one program uses it at a time. "                                          \
                 "What arrives too late for its window the daemon counts as late."},               \
        {.key = "kafka.spool_bytes",                                                               \
         .type = FT_OPTION_SIZE,                                                                   \
         .offset = (at) + offsetof(struct ft_topic_settings, spool_bytes),                         \
         .standard = "256MiB",                                                                     \
         .min = 1048576,                                                                           \
         .max = 17592186044416,                                                                    \
         .help = "Disk space that the spool may use."},                                            \
        {.key = "kafka.spool_full",                                                                \
         .type = FT_OPTION_ENUM,                                                                   \
         .offset = (at) + offsetof(struct ft_topic_settings, spool_full),                          \
         .standard = "oldest",                                                                     \
         .choices = ft_topic_spool_full,                                                           \
         .help = "Which messages are lost, and counted, where the spool or its disk is full: the " \
                 "oldest in it, about a sixteenth of it at once, or the newest."},                 \
        {.key = "kafka.spool_after",                                                               \
         .type = FT_OPTION_DURATION,                                                               \
         .offset = (at) + offsetof(struct ft_topic_settings, spool_after_ns),                      \
         .standard = "2s",                                                                         \
         .min = 0.1,                                                                               \
         .max = 3600,                                                                              \
         .help = "When messages wait and none was delivered for this time, the spool takes over. " \
                 "A kill before that loses what waits in memory."},                                \
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
