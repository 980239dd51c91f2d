// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_KAFKA_ERRORS_H
#define FT_IO_KAFKA_ERRORS_H
/*
 * What an error of librdkafka or of a broker means for a message, and what a user can do about it:
 * which setting it is about. Thread: any.
 */
#include <stddef.h>

#include "lib/io/kafka/client.h"

struct ft_kafka_problem {
    int err; /* rd_kafka_resp_err_t */
    enum ft_kafka_fate fate;
    const char *key;    /* of the configuration: "kafka.brokers"; NULL: it is about none */
    const char *advice; /* NULL: none */
};

/* Never NULL: what is not known has FT_KAFKA_FAILED alone. */
const struct ft_kafka_problem *ft_kafka_problem_of(int err);

/* "text: advice". Returns the key, or NULL. */
const char *ft_kafka_advise(int err, const char *text, char *line, size_t line_bytes);

#endif
