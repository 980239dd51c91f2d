// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/publish/kafka_settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/publish/topics.h"
#include "lib/io/kafka/consumer.h"
#include "lib/io/kafka/properties.h"
#include "lib/topics/checks.h"
#include "lib/topics/envelope.h"
#include "proto/record.h"

#define ERROR_BYTES 512
#define ID_BYTES    512
/* A transaction may be open for so long, or for some windows. */
#define TRANSACTION_NS (INT64_C(60) * 1000000000)
#define WINDOWS_OPEN   3

/* It holds over a restart, so that this one ends what a killed one had open. */
static char *transactional_id(const struct ft_settings *s, const char *source_id)
{
    char text[ID_BYTES];

    snprintf(text, sizeof(text), "%sfabrictraced-%s",
             s->kafka_topic_prefix ? s->kafka_topic_prefix : "", source_id);
    return strdup(text);
}

int ft_kafka_settings_open(const struct ft_settings *s, const char *source_id,
                           struct ft_kafka_settings *out, char *error, size_t error_bytes)
{
    int64_t windows_ns = WINDOWS_OPEN * s->window_ns;
    struct ft_kafka_settings k = {
        .config = {.brokers = s->kafka_brokers,
                   .client_id = "fabrictraced",
                   .queue_messages_max = s->kafka_queue_messages,
                   .queue_bytes_max = s->kafka_queue_bytes,
                   .message_timeout_ns = s->kafka_message_timeout_ns,
                   .spool = s->kafka_spool && *s->kafka_spool ? s->kafka_spool : NULL,
                   .spool_bytes_max = s->kafka_spool_bytes,
                   .spool_after_ns = s->kafka_spool_after_ns,
                   .spool_keeps_oldest = s->kafka_spool_full == FT_SPOOL_REFUSES_NEWEST}};
    int rc = ft_kafka_properties_read((const char *const *)s->kafka_properties.items,
                                      s->kafka_properties.count,
                                      (const char *const *)s->kafka_secrets.items,
                                      s->kafka_secrets.count, &k.properties, error, error_bytes);

    if (rc < 0)
        return rc;
    if (s->kafka_transactions && !(k.transactional_id = transactional_id(s, source_id))) {
        ft_kafka_properties_free(k.properties);
        snprintf(error, error_bytes, "no memory");
        return -ENOMEM;
    }
    k.config.transactional_id = k.transactional_id;
    k.config.transaction_ns = windows_ns > TRANSACTION_NS ? windows_ns : TRANSACTION_NS;
    k.config.properties = (const char *const *)k.properties;
    *out = k;
    return 0;
}

void ft_kafka_settings_close(struct ft_kafka_settings *k)
{
    ft_kafka_properties_free(k->properties);
    free(k->transactional_id);
    *k = (struct ft_kafka_settings){.properties = NULL};
}

static const char *longest_topic(void)
{
    const char *longest = ft_ingest_topic_name(FT_INGEST_REPORTS);

    for (size_t i = 0; i < ft_topics_count(); i++) {
        const char *name = ft_record_schema(ft_topics_kind(i));

        if (strlen(name) > strlen(longest))
            longest = name;
    }
    return longest;
}

/* Each setting for itself. */
static void check_alone(const struct ft_run *run, struct ft_diag *diag)
{
    const struct ft_settings *s = ft_run_config(run);
    const struct ft_kafka_checked checked = {.brokers = s->kafka_brokers,
                                             .topic_prefix = s->kafka_topic_prefix,
                                             .topic = longest_topic(),
                                             .spool = s->kafka_spool,
                                             .properties = &s->kafka_properties,
                                             .secrets = &s->kafka_secrets};

    ft_kafka_checks(&checked, run, diag);
}

/* What sends, and what reads (daemon/group/reader.c). */
static int check_clients(const struct ft_settings *s, const struct ft_kafka_config *config,
                         char *error, size_t error_bytes)
{
    const struct ft_kafka_consumer_config reads = {.brokers = config->brokers,
                                                   .client_id = config->client_id,
                                                   .group = "check",
                                                   .properties = config->properties,
                                                   .in_transactions = s->kafka_transactions};
    int rc = ft_kafka_check(config, error, error_bytes);

    if (rc == 0 && s->kafka_ingest)
        rc = ft_kafka_consumer_check(&reads, error, error_bytes);
    return rc;
}

void ft_kafka_settings_check(const struct ft_run *run, struct ft_diag *diag)
{
    const struct ft_settings *s = ft_run_config(run);
    size_t before = ft_diag_count(diag);
    struct ft_kafka_settings k;
    char error[ERROR_BYTES];

    check_alone(run, diag);
    ft_registry_settings_check(&s->kafka_registry,
                               s->kafka_transactions || (s->kafka_spool && *s->kafka_spool), run,
                               diag);
    /* Settings that are each right may not go together. */
    if (ft_diag_count(diag) > before ||
        ft_kafka_settings_open(s, "check", &k, error, sizeof(error)) < 0)
        return;
    if (check_clients(s, &k.config, error, sizeof(error)) < 0)
        ft_run_complain(run, diag, s->kafka_properties.count ? "kafka.properties" : "sinks", "%s",
                        error);
    ft_kafka_settings_close(&k);
}
