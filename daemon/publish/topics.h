// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PUBLISH_TOPICS_H
#define FT_DAEMON_PUBLISH_TOPICS_H
/*
 * The Kafka topics of the published records, as a shell script that creates them: for each what
 * its key is, how often and how large its records come, and why it is to be kept as it says.
 * fabrictrace-topics(7) is made from it.
 */
#include <stddef.h>
#include <stdio.h>

#include "proto/fabrictrace.pb-c.h"

/* The kinds of records that have a topic: 0 <= i < ft_topics_count(). */
size_t ft_topics_count(void);
Fabrictrace__Record__KindCase ft_topics_kind(size_t i);

/* brokers: for --bootstrap-server; prefix: before each name, NULL: none. Both go into the script
 * quoted. */
void ft_topics_print(FILE *out, const char *brokers, const char *prefix);

/* Behind it, those that agents and pollers write: fabrictrace-ingest(7). */
void ft_topics_print_ingest(FILE *out, const char *prefix, unsigned partitions);

#endif
