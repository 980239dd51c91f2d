// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/metrics_kafka.h"

#include <stddef.h>

#include "daemon/api/metrics.h"
#include "daemon/api/view.h"
#include "daemon/group/reader.h"
#include "daemon/publish/publish.h"
#include "daemon/publish/registered.h"

static void write_brokers(struct ft_prom *p, const struct ft_kafka_client_stats *s)
{
    static const struct {
        size_t metric, offset;
    } numbers[] = {
        {FT_METRIC_KAFKA_IN_FLIGHT, offsetof(struct ft_kafka_broker, in_flight)},
        {FT_METRIC_KAFKA_WAITING, offsetof(struct ft_kafka_broker, waiting)},
        {FT_METRIC_KAFKA_RETRIES, offsetof(struct ft_kafka_broker, retries)},
        {FT_METRIC_KAFKA_BROKER_ERRORS, offsetof(struct ft_kafka_broker, errors)},
        {FT_METRIC_KAFKA_TIMEOUTS, offsetof(struct ft_kafka_broker, timeouts)},
    };

    ft_prom_family(p, FT_METRIC_KAFKA_UP);
    for (size_t i = 0; i < s->broker_count; i++)
        ft_prom_u64(p, FT_PROM_LABELS(s->brokers[i].name), s->brokers[i].up);
    for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
        ft_prom_family(p, numbers[k].metric);
        for (size_t i = 0; i < s->broker_count; i++)
            ft_prom_u64(p, FT_PROM_LABELS(s->brokers[i].name),
                        *(const uint64_t *)((const char *)&s->brokers[i] + numbers[k].offset));
    }
    ft_prom_family(p, FT_METRIC_KAFKA_RTT);
    for (size_t i = 0; i < s->broker_count; i++) {
        ft_prom_double(p, FT_PROM_LABELS(s->brokers[i].name, "mean"), s->brokers[i].rtt_s);
        ft_prom_double(p, FT_PROM_LABELS(s->brokers[i].name, "p99"), s->brokers[i].rtt_p99_s);
    }
}

static void write_kafka(struct ft_prom *p, const struct ft_kafka *kafka)
{
    const struct ft_kafka_client_stats *client;
    struct ft_kafka_stats s;

    if (!kafka)
        return;
    client = ft_kafka_client_stats(kafka);
    ft_kafka_stats(kafka, &s);
    ft_prom_one(p, FT_METRIC_KAFKA_QUEUE, client->queue_messages);
    ft_prom_one(p, FT_METRIC_KAFKA_QUEUE_BYTES, client->queue_bytes);
    ft_prom_one(p, FT_METRIC_KAFKA_SPOOLED, s.spooled);
    ft_prom_one(p, FT_METRIC_KAFKA_SPOOL_KEPT, s.spool_kept);
    ft_prom_one(p, FT_METRIC_KAFKA_SPOOL_BYTES, s.spool_bytes);
    ft_prom_one(p, FT_METRIC_KAFKA_SENT_AGAIN, s.again);
    ft_prom_one(p, FT_METRIC_KAFKA_ERRORS, s.errors);
    ft_prom_family(p, FT_METRIC_KAFKA_TRANSACTIONS);
    ft_prom_u64(p, FT_PROM_LABELS("committed"), s.commits);
    ft_prom_u64(p, FT_PROM_LABELS("aborted"), s.aborts);
    write_brokers(p, client);
}

static void write_registry(struct ft_prom *p, const struct ft_registered *registered)
{
    struct ft_registry_stats s;

    if (!registered)
        return;
    ft_registered_stats(registered, &s);
    ft_prom_one(p, FT_METRIC_REGISTRY_SCHEMAS, s.subjects);
    ft_prom_one(p, FT_METRIC_REGISTRY_KNOWN, s.known);
    ft_prom_one(p, FT_METRIC_REGISTRY_REQUESTS, s.requests);
    ft_prom_one(p, FT_METRIC_REGISTRY_FAILURES, s.failures);
}

void ft_metrics_put_kafka(struct ft_prom *p, const struct ft_view *view)
{
    write_kafka(p, ft_publisher_kafka(view->publisher));
    if (view->topics)
        ft_prom_one(p, FT_METRIC_KAFKA_UNNUMBERED, ft_group_reader_unnumbered(view->topics));
    write_registry(p, ft_publisher_registered(view->publisher));
}
