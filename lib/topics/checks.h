// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TOPICS_CHECKS_H
#define FT_TOPICS_CHECKS_H
/*
 * What is said of the settings that all programs have for Kafka, each looked at for itself, before
 * a start: what could not be opened, or would not get a message out. Thread: one.
 */
#include "lib/base/diag.h"
#include "lib/config/options.h"
#include "lib/config/program.h"

struct ft_kafka_checked {
    const char *brokers, *topic_prefix, *spool; /* NULL: none */
    const char *topic;                          /* the longest name that comes behind the prefix */
    const struct ft_strings *properties, *secrets;
};

/* Complains of brokers and a spool that are none by their form: also where nothing is sent. */
void ft_kafka_check_forms(const struct ft_kafka_checked *settings, const struct ft_run *run,
                          struct ft_diag *diag);

/* Complains of each, where there is a file with its line. run: NULL in tests. */
void ft_kafka_checks(const struct ft_kafka_checked *settings, const struct ft_run *run,
                     struct ft_diag *diag);

#endif
