// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/publish/publish.h"

#define FILE_SPEC "file:"

int ft_publisher_open(struct ft_publisher *p, const char *spec, struct ft_loop *loop,
                      const struct ft_sink_kafka_config *kafka, bool wait, char *error,
                      size_t error_bytes)
{
    bool file = strncmp(spec, FILE_SPEC, strlen(FILE_SPEC)) == 0;
    struct ft_sink *sink;

    if (!file && strcmp(spec, "kafka") != 0) {
        snprintf(error, error_bytes, "neither file:PATH nor kafka");
        return -EINVAL;
    }
    sink = file ? ft_sink_file_new(spec + strlen(FILE_SPEC), error, error_bytes)
                : ft_sink_kafka_new(loop, kafka, error, error_bytes);
    if (!sink)
        return -EIO;
    if (file && wait)
        ft_sink_file_wait(sink);
    if (ft_publisher_take(p, sink) == 0)
        return 0;
    snprintf(error, error_bytes, "no memory");
    return -ENOMEM;
}
