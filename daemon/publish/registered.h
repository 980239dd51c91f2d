// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PUBLISH_REGISTERED_H
#define FT_DAEMON_PUBLISH_REGISTERED_H
/*
 * The schemas of published records in a registry, and the prefix that a message has by it, as
 * Confluent's consumers read it: a byte 0, the id of the schema, and before protobuf the path to
 * the message in its schema, which is always the first. The subject of a topic is its name with
 * -value. Partial loads, which go from daemon to daemon, have none. Thread: the loop's.
 */
#include <stdbool.h>
#include <stddef.h>

#include "daemon/publish/findings.h"
#include "lib/base/writer.h"
#include "lib/io/kafka/producer.h"
#include "lib/io/kafka/registry.h"

struct ft_registered;

/* The subjects of all topics that are published. topic_prefix: NULL: none. NULL with a reason. */
struct ft_registered *ft_registered_new(struct ft_loop *loop,
                                        const struct ft_registry_config *config,
                                        const char *topic_prefix, bool protobuf, char *error,
                                        size_t error_bytes);
void ft_registered_free(struct ft_registered *registered);

/* For struct ft_kafka_config. -EAGAIN: its id is not known yet. -EPROTO: the message is of the
 * other format (out of a spool that was filled under another setting), in no topic of ours, or of
 * more topics than a registry is asked for. */
int ft_registered_prefix(void *self, const struct ft_kafka_outgoing *message,
                         struct ft_kafka_prefix *prefix);

/* Says which schemas have no id, and why: messages wait then. */
void ft_registered_find(const struct ft_registered *registered, struct ft_findings *findings);

void ft_registered_stats(const struct ft_registered *registered, struct ft_registry_stats *stats);

/* One line of JSON for each topic: subject, schemaType, schema. -ENOSPC when the writer fails. */
int ft_registered_print(struct ft_writer *w, const char *topic_prefix, bool protobuf);

#endif
