// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/kafka/errors.h"

#include <stdio.h>

#ifdef HAVE_KAFKA
#include <librdkafka/rdkafka.h>
#endif

#define FENCED                                                                                     \
    "another daemon has the same source_id, or the brokers waited for a commit for too long "      \
    "(transaction.timeout.ms)"

static const struct ft_kafka_problem problems[] = {
#ifdef HAVE_KAFKA
    {RD_KAFKA_RESP_ERR__PURGE_QUEUE, FT_KAFKA_AGAIN, NULL, NULL},
    {RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, FT_KAFKA_AGAIN, NULL, NULL},
    {RD_KAFKA_RESP_ERR__DESTROY, FT_KAFKA_AGAIN, NULL, NULL},
    {RD_KAFKA_RESP_ERR__FATAL, FT_KAFKA_AGAIN, NULL, NULL},
    {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, FT_KAFKA_TOO_LARGE, "kafka.properties",
     "raise message.max.bytes in kafka.properties and max.message.bytes of the topic"},
    {RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE, FT_KAFKA_TOO_LARGE, "kafka.properties",
     "raise message.max.bytes in kafka.properties and max.message.bytes of the topic"},
    {RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, FT_KAFKA_TOO_LARGE, "kafka.properties",
     "lower batch.size in kafka.properties, or raise segment.bytes of the topic"},
    {RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, FT_KAFKA_NO_TOPIC, "kafka.topic_prefix",
     "create the topic, or let the brokers create it; its name begins with kafka.topic_prefix"},
    {RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, FT_KAFKA_NO_TOPIC, "kafka.topic_prefix",
     "create the topic, or let the brokers create it; its name begins with kafka.topic_prefix"},
    {RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, FT_KAFKA_NO_TOPIC, "kafka.partitions",
     "make the topic with as many partitions as kafka.partitions says"},
    {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, FT_KAFKA_FORBIDDEN, "kafka.properties",
     "let the user of kafka.properties write to the topic (ACL: Write, Describe; Create), or read "
     "it (Read, Describe)"},
    {RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, FT_KAFKA_FORBIDDEN, "kafka.properties",
     "let the user of kafka.properties write (ACL: IdempotentWrite, or Write on the topics)"},
    {RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, FT_KAFKA_FORBIDDEN, "kafka.properties",
     "let the user of kafka.properties use the group (ACL: Read on the group)"},
    {RD_KAFKA_RESP_ERR__FENCED, FT_KAFKA_AGAIN, "kafka.transactions", FENCED},
    {RD_KAFKA_RESP_ERR_PRODUCER_FENCED, FT_KAFKA_AGAIN, "kafka.transactions", FENCED},
    {RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, FT_KAFKA_AGAIN, "kafka.transactions", FENCED},
    {RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED, FT_KAFKA_AGAIN, "kafka.properties",
     "let the user of kafka.properties use the transactional id (ACL: Write, Describe)"},
    {RD_KAFKA_RESP_ERR__AUTHENTICATION, FT_KAFKA_FAILED, "kafka.properties",
     "check sasl.* in kafka.properties and kafka.secrets"},
    {RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED, FT_KAFKA_FAILED, "kafka.properties",
     "check sasl.* in kafka.properties and kafka.secrets"},
    {RD_KAFKA_RESP_ERR__SSL, FT_KAFKA_FAILED, "kafka.properties",
     "check ssl.* in kafka.properties"},
    {RD_KAFKA_RESP_ERR__RESOLVE, FT_KAFKA_FAILED, "kafka.brokers", "check kafka.brokers"},
    {RD_KAFKA_RESP_ERR__TRANSPORT, FT_KAFKA_FAILED, "kafka.brokers", "check kafka.brokers"},
    {RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, FT_KAFKA_FAILED, "kafka.brokers", "check kafka.brokers"},
#endif
    {.fate = FT_KAFKA_FAILED}, /* any other */
};

const struct ft_kafka_problem *ft_kafka_problem_of(int err)
{
    const struct ft_kafka_problem *other = &problems[sizeof(problems) / sizeof(problems[0]) - 1];
    const struct ft_kafka_problem *p = problems;

    while (p < other && p->err != err)
        p++;
    return p;
}

const char *ft_kafka_advise(int err, const char *text, char *line, size_t line_bytes)
{
    const struct ft_kafka_problem *p = ft_kafka_problem_of(err);

    snprintf(line, line_bytes, "%s%s%s", text, p->advice ? ": " : "", p->advice ? p->advice : "");
    return p->key;
}
