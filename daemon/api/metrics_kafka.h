// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_METRICS_KAFKA_H
#define FT_DAEMON_API_METRICS_KAFKA_H
/*
 * The part of the daemon's metrics page that is of Kafka: its client, brokers, spool and schema
 * registry.
 */
struct ft_prom;
struct ft_publisher;

/* Nothing of what is not configured. */
void ft_metrics_put_kafka(struct ft_prom *p, const struct ft_publisher *publisher);

#endif
