// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_METRICS_KAFKA_H
#define FT_DAEMON_API_METRICS_KAFKA_H
/*
 * The part of the daemon's metrics page that is of Kafka: its client, brokers, spool and schema
 * registry, and what comes over it.
 */
struct ft_prom;
struct ft_view;

/* Nothing of what is not configured. */
void ft_metrics_put_kafka(struct ft_prom *p, const struct ft_view *view);

#endif
