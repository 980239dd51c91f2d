// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PUBLISH_KAFKA_SETTINGS_H
#define FT_DAEMON_PUBLISH_KAFKA_SETTINGS_H
/*
 * What the settings say of Kafka, with the secrets read from their files. Owner: the caller, who
 * closes it when the client is made: that keeps its own copy. Thread: the loop's.
 */
#include <stddef.h>

#include "daemon/settings.h"
#include "lib/base/diag.h"
#include "lib/config/program.h"
#include "lib/io/kafka/producer.h"

struct ft_kafka_settings {
    struct ft_kafka_config config; /* borrows from the settings and from the next */
    char **properties;             /* "name=value", NULL-terminated */
    char *transactional_id;        /* NULL: without transactions */
};

/* source_id: of this daemon, which names its transactions. -errno with a complaint that names the
 * key and the file of a secret. */
int ft_kafka_settings_open(const struct ft_settings *settings, const char *source_id,
                           struct ft_kafka_settings *out, char *error, size_t error_bytes);

/* Overwrites the secrets. */
void ft_kafka_settings_close(struct ft_kafka_settings *kafka);

/* Complains of each key that cannot be, with its line. */
void ft_kafka_settings_check(const struct ft_run *run, struct ft_diag *diag);

#endif
