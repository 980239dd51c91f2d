// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/topics/settings.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/io/kafka/properties.h"
#include "lib/topics/checks.h"
#include "lib/topics/envelope.h"
#include "lib/topics/sender.h"

#define ERROR_BYTES 512
#define WARN_NS     (INT64_C(60) * 1000000000)
#define WARN_BURST  5

enum {
    SPOOL_DROPS_OLDEST,
    SPOOL_REFUSES_NEWEST,
};

const char *const ft_topic_spool_full[] = {
    [SPOOL_DROPS_OLDEST] = "oldest", [SPOOL_REFUSES_NEWEST] = "newest", NULL};

static void on_error(void *arg, const char *key, const char *text)
{
    char location[FT_RUN_LOCATION_BYTES];
    static struct ft_log_limit limit = {.interval_ns = WARN_NS, .burst = WARN_BURST};
    uint64_t held;

    if (ft_log_limit_pass(&limit, ft_mono_now(), &held))
        ft_log(FT_LOG_WARNING, "kafka: %s%s (%" PRIu64 " more held back)",
               ft_run_location(arg, key, location), text, held);
}

/* The properties are new: the caller frees them. */
static int fill(const struct ft_topic_settings *s, const struct ft_sender_config *sender,
                struct ft_topic_sender_config *out, char ***properties, char *error,
                size_t error_bytes)
{
    int rc = ft_kafka_properties_read((const char *const *)s->properties.items, s->properties.count,
                                      (const char *const *)s->secrets.items, s->secrets.count,
                                      properties, error, error_bytes);

    if (rc < 0)
        return rc;
    *out = (struct ft_topic_sender_config){
        .kafka = {.brokers = s->brokers,
                  .client_id = sender->program,
                  .queue_bytes_max = sender->queue_bytes_max,
                  .message_timeout_ns = s->message_timeout_ns,
                  .spool = s->spool && *s->spool ? s->spool : NULL,
                  .spool_bytes_max = s->spool_bytes,
                  .spool_after_ns = s->spool_after_ns,
                  .spool_keeps_oldest = s->spool_full == SPOOL_REFUSES_NEWEST,
                  .properties = (const char *const *)*properties,
                  .on_error = on_error},
        .topic_prefix = s->topic_prefix,
        .source_id = sender->source_id,
        .program = sender->program,
        .boot_id = sender->boot_id,
        .partitions = (uint32_t)s->partitions,
    };
    return 0;
}

void ft_topic_settings_check(const struct ft_topic_settings *s, const struct ft_run *run,
                             struct ft_diag *diag)
{
    const struct ft_sender_config sender = {.program = "check", .source_id = "check"};
    const struct ft_kafka_checked checked = {.brokers = s->brokers,
                                             .topic_prefix = s->topic_prefix,
                                             .topic = ft_ingest_topic_name(FT_INGEST_REPORTS),
                                             .spool = s->spool,
                                             .properties = &s->properties,
                                             .secrets = &s->secrets};
    struct ft_topic_sender_config config;
    size_t before = ft_diag_count(diag);
    char error[ERROR_BYTES], **properties;

    if (!s->brokers)
        return;
    ft_kafka_checks(&checked, run, diag);
    if (ft_diag_count(diag) > before)
        return;
    if (fill(s, &sender, &config, &properties, error, sizeof(error)) < 0) {
        ft_run_complain(run, diag, "kafka.secrets", "%s", error);
        return;
    }
    if (ft_kafka_check(&config.kafka, error, sizeof(error)) < 0)
        ft_run_complain(run, diag, "kafka.brokers", "%s", error);
    ft_kafka_properties_free(properties);
}

static bool same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool ft_topic_settings_equal(const struct ft_topic_settings *a, const struct ft_topic_settings *b)
{
    return same(a->brokers, b->brokers) && same(a->topic_prefix, b->topic_prefix) &&
           a->partitions == b->partitions && a->message_timeout_ns == b->message_timeout_ns &&
           same(a->spool, b->spool) && a->spool_bytes == b->spool_bytes &&
           a->spool_after_ns == b->spool_after_ns && a->spool_full == b->spool_full &&
           ft_strings_equal(&a->properties, &b->properties) &&
           ft_strings_equal(&a->secrets, &b->secrets);
}

int ft_topic_settings_open(const struct ft_topic_settings *settings, const struct ft_run *run,
                           struct ft_loop *loop, const struct ft_sender_config *sender,
                           struct ft_sender_transport *transport)
{
    struct ft_topic_sender_config config;
    char error[ERROR_BYTES], **properties = NULL;
    int rc = fill(settings, sender, &config, &properties, error, sizeof(error));

    config.kafka.arg = (void *)(uintptr_t)run;
    if (rc == 0)
        rc = ft_topic_sender_open(loop, &config, transport, error, sizeof(error));
    ft_kafka_properties_free(properties);
    if (rc < 0)
        ft_log(FT_LOG_ERROR, "%s", error);
    return rc;
}
