// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/kafka/stats.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define US_PER_S 1e6

static uint64_t number_of(const json_t *object, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(object, name));

    return value > 0 ? (uint64_t)value : 0;
}

static void read_broker(const json_t *in, const char *name, struct ft_kafka_broker *out)
{
    const char *state = json_string_value(json_object_get(in, "state"));
    const json_t *rtt = json_object_get(in, "rtt");

    *out = (struct ft_kafka_broker){.up = state && strcmp(state, "UP") == 0,
                                    .in_flight = number_of(in, "waitresp_cnt"),
                                    .waiting = number_of(in, "outbuf_cnt"),
                                    .retries = number_of(in, "txretries"),
                                    .errors = number_of(in, "txerrs"),
                                    .timeouts = number_of(in, "req_timeouts"),
                                    .rtt_s = (double)number_of(rtt, "avg") / US_PER_S,
                                    .rtt_p99_s = (double)number_of(rtt, "p99") / US_PER_S};
    snprintf(out->name, sizeof(out->name), "%s", name);
}

int ft_kafka_stats_read(const char *json, size_t len, struct ft_kafka_client_stats *stats)
{
    json_t *root = json_loadb(json, len, 0, NULL), *broker;
    struct ft_kafka_client_stats s = {.broker_count = 0};
    const char *key;

    if (!json_is_object(root)) {
        json_decref(root);
        return -EBADMSG;
    }
    s.queue_messages = number_of(root, "msg_cnt");
    s.queue_bytes = number_of(root, "msg_size");
    json_object_foreach(json_object_get(root, "brokers"), key, broker)
    {
        const char *name = json_string_value(json_object_get(broker, "nodename"));

        const char *state = json_string_value(json_object_get(broker, "state"));

        s.connected = s.connected || (state && strcmp(state, "UP") == 0);
        /* Those of bootstrap have a number below zero: the same broker again, by its real one. */
        if (json_integer_value(json_object_get(broker, "nodeid")) < 0 || !name || !*name ||
            s.broker_count == FT_KAFKA_BROKERS_MAX)
            continue;
        read_broker(broker, name, &s.brokers[s.broker_count++]);
    }
    json_decref(root);
    *stats = s;
    return 0;
}
