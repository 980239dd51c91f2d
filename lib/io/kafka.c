// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/kafka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef HAVE_KAFKA
int ft_kafka_check(const struct ft_kafka_config *config, char *error, size_t error_bytes)
{
    (void)config;
    snprintf(error, error_bytes, "built without librdkafka");
    return -ENOTSUP;
}

struct ft_kafka *ft_kafka_new(struct ft_loop *loop, const struct ft_kafka_config *config,
                              char *error, size_t error_bytes)
{
    (void)loop;
    (void)config;
    snprintf(error, error_bytes, "built without librdkafka");
    return NULL;
}

/* No ft_kafka can exist here. */
void ft_kafka_free(struct ft_kafka *kafka)
{
    (void)kafka;
}

int ft_kafka_send(struct ft_kafka *kafka, const char *topic, const char *key, size_t key_len,
                  const void *value, size_t len)
{
    (void)kafka;
    (void)topic;
    (void)key;
    (void)key_len;
    (void)value;
    (void)len;
    return -ENOTSUP;
}

int ft_kafka_flush(struct ft_kafka *kafka, int64_t timeout_ns)
{
    (void)kafka;
    (void)timeout_ns;
    return 0;
}

void ft_kafka_stats(const struct ft_kafka *kafka, struct ft_kafka_stats *stats)
{
    (void)kafka;
    *stats = (struct ft_kafka_stats){0};
}
#else
#include <librdkafka/rdkafka.h>
#include <limits.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The longest topic name that Kafka takes. */
#define TOPIC_BYTES_MAX 249

struct ft_kafka {
    rd_kafka_conf_t *conf; /* to make another client of after a fatal error */
    rd_kafka_t *client;
    int wake; /* eventfd that librdkafka's threads write to */
    struct ft_watch *watch;
    void (*on_error)(void *arg, const char *text);
    void *arg;
    struct ft_kafka_stats stats;
};

static void report_error(struct ft_kafka *kafka, const char *text)
{
    kafka->stats.errors++;
    if (kafka->on_error)
        kafka->on_error(kafka->arg, text);
}

static void take_report(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque)
{
    struct ft_kafka *kafka = opaque;

    (void)client;
    kafka->stats.pending--;
    if (message->err)
        kafka->stats.failed++;
    else
        kafka->stats.delivered++;
}

static void take_error(rd_kafka_t *client, int err, const char *reason, void *opaque)
{
    (void)client;
    (void)err;
    report_error(opaque, reason);
}

static int set(rd_kafka_conf_t *conf, const char *name, const char *value, char *error,
               size_t error_bytes)
{
    char reason[256];

    if (rd_kafka_conf_set(conf, name, value, reason, sizeof(reason)) == RD_KAFKA_CONF_OK)
        return 0;
    snprintf(error, error_bytes, "kafka: %s", reason);
    return -EINVAL;
}

static int set_number(rd_kafka_conf_t *conf, const char *name, uint64_t value, char *error,
                      size_t error_bytes)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    return set(conf, name, text, error, error_bytes);
}

static int set_further(rd_kafka_conf_t *conf, const char *property, char *error, size_t error_bytes)
{
    const char *sign = strchr(property, '=');
    char name[128];

    if (!sign || sign == property || (size_t)(sign - property) >= sizeof(name)) {
        snprintf(error, error_bytes, "kafka: property '%.*s' is not name=value",
                 (int)strcspn(property, "="), property);
        return -EINVAL;
    }
    memcpy(name, property, (size_t)(sign - property));
    name[sign - property] = '\0';
    return set(conf, name, sign + 1, error, error_bytes);
}

static int configure(rd_kafka_conf_t *conf, const struct ft_kafka_config *config, char *error,
                     size_t error_bytes)
{
    uint64_t kbytes = config->queue_bytes_max / 1024;
    uint64_t timeout_ms = (uint64_t)(config->message_timeout_ns / 1000000);

    if (set(conf, "bootstrap.servers", config->brokers, error, error_bytes) < 0 ||
        (config->client_id && set(conf, "client.id", config->client_id, error, error_bytes) < 0) ||
        set(conf, "enable.idempotence", "true", error, error_bytes) < 0 ||
        /* The hash of Java's own producer: a key has one partition whoever writes it. */
        set(conf, "partitioner", "murmur2_random", error, error_bytes) < 0 ||
        (config->queue_messages_max &&
         set_number(conf, "queue.buffering.max.messages", config->queue_messages_max, error,
                    error_bytes) < 0) ||
        (kbytes &&
         set_number(conf, "queue.buffering.max.kbytes", kbytes, error, error_bytes) < 0) ||
        (timeout_ms && set_number(conf, "message.timeout.ms", timeout_ms, error, error_bytes) < 0))
        return -EINVAL;
    for (const char *const *p = config->properties; p && *p; p++)
        if (set_further(conf, *p, error, error_bytes) < 0)
            return -EINVAL;
    return 0;
}

static int make_client(struct ft_kafka *kafka, char *error, size_t error_bytes)
{
    static const uint64_t one = 1;
    rd_kafka_conf_t *conf = rd_kafka_conf_dup(kafka->conf);
    rd_kafka_queue_t *queue;
    char reason[256];

    kafka->client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, reason, sizeof(reason));
    if (!kafka->client) {
        rd_kafka_conf_destroy(conf);
        snprintf(error, error_bytes, "kafka: %s", reason);
        return -EINVAL;
    }
    queue = rd_kafka_queue_get_main(kafka->client);
    rd_kafka_queue_io_event_enable(queue, kafka->wake, &one, sizeof(one));
    rd_kafka_queue_destroy(queue);
    return 0;
}

static void end_client(struct ft_kafka *kafka)
{
    if (!kafka->client)
        return;
    /* What is not delivered now never will be: it fails, and is counted. */
    rd_kafka_purge(kafka->client, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_flush(kafka->client, 1000);
    rd_kafka_destroy(kafka->client);
    kafka->client = NULL;
    kafka->stats.failed += kafka->stats.pending;
    kafka->stats.pending = 0;
}

/* After a fatal error an idempotent producer takes nothing any more; another one does. */
static void renew_client(struct ft_kafka *kafka)
{
    char error[300];

    if (kafka->client && !rd_kafka_fatal_error(kafka->client, NULL, 0))
        return;
    end_client(kafka);
    if (make_client(kafka, error, sizeof(error)) < 0)
        report_error(kafka, error);
}

static void handle_wake(void *arg)
{
    struct ft_kafka *kafka = arg;
    eventfd_t count;

    /* Emptied first: what comes while we poll wakes us again. */
    eventfd_read(kafka->wake, &count);
    if (kafka->client)
        while (rd_kafka_poll(kafka->client, 0) > 0)
            ;
    renew_client(kafka);
}

int ft_kafka_check(const struct ft_kafka_config *config, char *error, size_t error_bytes)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *client = NULL;
    char reason[256];
    int err = configure(conf, config, error, error_bytes);

    rd_kafka_conf_set_log_cb(conf, NULL);
    /* Some settings are judged only together, by a client: this one knows no broker to ask. */
    if (err == 0)
        rd_kafka_conf_set(conf, "bootstrap.servers", NULL, reason, sizeof(reason));
    if (err == 0)
        client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, reason, sizeof(reason));
    if (client) {
        rd_kafka_destroy(client);
        return 0;
    }
    rd_kafka_conf_destroy(conf);
    if (err == 0)
        snprintf(error, error_bytes, "kafka: %s", reason);
    return -EINVAL;
}

struct ft_kafka *ft_kafka_new(struct ft_loop *loop, const struct ft_kafka_config *config,
                              char *error, size_t error_bytes)
{
    struct ft_kafka *kafka = calloc(1, sizeof(*kafka));

    if (!kafka) {
        snprintf(error, error_bytes, "kafka: no memory");
        return NULL;
    }
    kafka->on_error = config->on_error;
    kafka->arg = config->arg;
    kafka->conf = rd_kafka_conf_new();
    kafka->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (kafka->wake >= 0)
        kafka->watch =
            ft_watch_stage(ft_watch_fd(loop, kafka->wake, handle_wake, kafka), "publish");
    if (!kafka->watch) {
        snprintf(error, error_bytes, "kafka: no memory");
        ft_kafka_free(kafka);
        return NULL;
    }
    rd_kafka_conf_set_opaque(kafka->conf, kafka);
    rd_kafka_conf_set_dr_msg_cb(kafka->conf, take_report);
    rd_kafka_conf_set_error_cb(kafka->conf, take_error);
    /* Errors come through take_error, in our thread; its own log would write from others. */
    rd_kafka_conf_set_log_cb(kafka->conf, NULL);
    if (configure(kafka->conf, config, error, error_bytes) < 0 ||
        make_client(kafka, error, error_bytes) < 0) {
        ft_kafka_free(kafka);
        return NULL;
    }
    return kafka;
}

void ft_kafka_free(struct ft_kafka *kafka)
{
    if (!kafka)
        return;
    end_client(kafka);
    ft_watch_free(kafka->watch);
    if (kafka->conf)
        rd_kafka_conf_destroy(kafka->conf);
    if (kafka->wake >= 0)
        close(kafka->wake);
    free(kafka);
}

/* The names that a broker takes: letters, digits, '.', '_', '-'. */
static bool topic_ok(const char *topic)
{
    size_t len = strspn(topic, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

    return len > 0 && len <= TOPIC_BYTES_MAX && !topic[len] && strcmp(topic, ".") != 0 &&
           strcmp(topic, "..") != 0;
}

static int refuse(struct ft_kafka *kafka, int err)
{
    kafka->stats.refused++;
    return err;
}

int ft_kafka_send(struct ft_kafka *kafka, const char *topic, const char *key, size_t key_len,
                  const void *value, size_t len)
{
    rd_kafka_resp_err_t err;

    if (!topic_ok(topic))
        return refuse(kafka, -EINVAL);
    if (!kafka->client)
        renew_client(kafka);
    if (!kafka->client)
        return refuse(kafka, -EAGAIN);
    err = rd_kafka_producev(kafka->client, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_KEY(key, key_len),
                            RD_KAFKA_V_VALUE((void *)value, len),
                            RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
    switch (err) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
        kafka->stats.queued++;
        kafka->stats.pending++;
        return 0;
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
        return refuse(kafka, -EMSGSIZE);
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
        return refuse(kafka, -EINVAL);
    default:
        /* The queue is full, or the client is about to be renewed. */
        return refuse(kafka, -EAGAIN);
    }
}

int ft_kafka_flush(struct ft_kafka *kafka, int64_t timeout_ns)
{
    int64_t ms = timeout_ns / 1000000;

    if (kafka->client)
        rd_kafka_flush(kafka->client, ms > INT_MAX ? INT_MAX : (int)ms);
    return kafka->stats.pending ? -ETIMEDOUT : 0;
}

void ft_kafka_stats(const struct ft_kafka *kafka, struct ft_kafka_stats *stats)
{
    *stats = kafka->stats;
}
#endif
