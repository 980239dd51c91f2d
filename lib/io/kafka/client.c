// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/kafka/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef HAVE_KAFKA
#define MISSING "built without librdkafka"

int ft_kafka_check(const struct ft_kafka_config *config, char *error, size_t error_bytes)
{
    (void)config;
    snprintf(error, error_bytes, MISSING);
    return -ENOTSUP;
}

int ft_kafka_check_property(const char *property, char *error, size_t error_bytes)
{
    (void)property;
    snprintf(error, error_bytes, MISSING);
    return -ENOTSUP;
}

struct ft_kafka_client *ft_kafka_client_new(struct ft_loop *loop,
                                            const struct ft_kafka_config *config,
                                            const struct ft_kafka_hooks *hooks, char *error,
                                            size_t error_bytes)
{
    (void)loop;
    (void)config;
    (void)hooks;
    snprintf(error, error_bytes, MISSING);
    return NULL;
}

/* No client can exist here. */
void ft_kafka_client_free(struct ft_kafka_client *client)
{
    (void)client;
}

int ft_kafka_client_send(struct ft_kafka_client *client, const struct ft_kafka_outgoing *message,
                         const struct ft_kafka_prefix *prefix, void *report)
{
    (void)client;
    (void)message;
    (void)prefix;
    (void)report;
    return -ENOTSUP;
}

void ft_kafka_client_flush(struct ft_kafka_client *client, int ms)
{
    (void)client;
    (void)ms;
}

bool ft_kafka_client_failed(const struct ft_kafka_client *client)
{
    (void)client;
    return true;
}

bool ft_kafka_client_fenced(const struct ft_kafka_client *client)
{
    (void)client;
    return false;
}

struct rd_kafka_s *ft_kafka_client_handle(const struct ft_kafka_client *client)
{
    (void)client;
    return NULL;
}

int ft_kafka_client_wake(const struct ft_kafka_client *client)
{
    (void)client;
    return -1;
}

void ft_kafka_client_poll(struct ft_kafka_client *client)
{
    (void)client;
}

void ft_kafka_client_renew(struct ft_kafka_client *client)
{
    (void)client;
}
#else
#include <librdkafka/rdkafka.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/secret.h"
#include "lib/io/kafka/errors.h"
#include "lib/io/kafka/topics.h"

/* The longest topic name that Kafka takes. */
#define TOPIC_BYTES_MAX 249
#define REASON_BYTES    256
#define STATISTICS_MS   5000
#define PURGE_MS        1000

struct ft_kafka_client {
    rd_kafka_conf_t *conf; /* to make another client of after a fatal error */
    rd_kafka_t *client;
    int wake; /* eventfd that librdkafka's threads write to */
    struct ft_watch *watch;
    struct ft_kafka_hooks hooks;
    struct ft_kafka_topics *topics;
    bool keeps; /* whoever sends has each message until it is delivered */
    bool failed, fenced;
};

static void report_error(struct ft_kafka_client *c, int err, const char *text)
{
    char line[3 * REASON_BYTES];
    const char *key = ft_kafka_advise(err, text, line, sizeof(line));

    c->hooks.error(c->hooks.arg, key, line);
}

/* Whether the messages of a topic that no broker knows are to be sent again, which is said once. */
static bool is_waited_for(struct ft_kafka_client *c, const char *topic, int32_t partition)
{
    enum ft_kafka_missing missing = FT_KAFKA_MISSING_LOST;
    char line[2 * REASON_BYTES];

    if (c->keeps)
        missing = ft_kafka_topics_missing(c->topics, topic, partition, ft_mono_now());
    if (missing == FT_KAFKA_MISSING_BEGAN) {
        snprintf(line, sizeof(line), "topic '%s' was there and is not: messages wait for a minute",
                 topic);
        report_error(c, RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, line);
    }
    /* librdkafka may not ask for that topic again for long; another client does at once. */
    c->failed |= missing != FT_KAFKA_MISSING_LOST;
    return missing != FT_KAFKA_MISSING_LOST;
}

static void take_report(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque)
{
    struct ft_kafka_client *c = opaque;
    enum ft_kafka_fate fate = FT_KAFKA_DELIVERED;
    char line[2 * REASON_BYTES];

    (void)client;
    if (message->err)
        fate = ft_kafka_problem_of(message->err)->fate;
    if (fate == FT_KAFKA_DELIVERED && message->rkt)
        ft_kafka_topics_seen(c->topics, rd_kafka_topic_name(message->rkt), message->partition);
    if (fate == FT_KAFKA_NO_TOPIC && message->rkt &&
        is_waited_for(c, rd_kafka_topic_name(message->rkt), message->partition))
        fate = FT_KAFKA_AGAIN;
    if (fate != FT_KAFKA_DELIVERED && fate != FT_KAFKA_AGAIN) {
        snprintf(line, sizeof(line), "topic '%s': a message was lost: %s",
                 message->rkt ? rd_kafka_topic_name(message->rkt) : "?",
                 rd_kafka_err2str(message->err));
        report_error(c, message->err, line);
    }
    c->hooks.report(c->hooks.arg, message->_private, fate);
}

static void take_error(rd_kafka_t *client, int err, const char *reason, void *opaque)
{
    struct ft_kafka_client *c = opaque;
    char line[2 * REASON_BYTES];
    rd_kafka_resp_err_t why;

    if (err != RD_KAFKA_RESP_ERR__FATAL) {
        report_error(c, err, reason);
        return;
    }
    why = rd_kafka_fatal_error(client, line, sizeof(line));
    c->failed = true;
    c->fenced = why == RD_KAFKA_RESP_ERR__FENCED || why == RD_KAFKA_RESP_ERR_PRODUCER_FENCED ||
                why == RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH;
    report_error(c, why, line);
}

static int take_stats(rd_kafka_t *client, char *json, size_t len, void *opaque)
{
    struct ft_kafka_client *c = opaque;

    (void)client;
    c->hooks.stats(c->hooks.arg, json, len);
    return 0; /* librdkafka frees it */
}

static int set(rd_kafka_conf_t *conf, const char *name, const char *value, char *error,
               size_t error_bytes)
{
    char reason[REASON_BYTES];

    if (rd_kafka_conf_set(conf, name, value, reason, sizeof(reason)) == RD_KAFKA_CONF_OK)
        return 0;
    /* The reason may say the value. */
    snprintf(error, error_bytes, "kafka: %s",
             ft_secret_setting(name) ? "the value is not accepted" : reason);
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

/* With a spool a message waits until it is delivered. */
static int configure(rd_kafka_conf_t *conf, const struct ft_kafka_config *config, char *error,
                     size_t error_bytes)
{
    uint64_t kbytes = config->queue_bytes_max / 1024;
    uint64_t timeout_ms = (uint64_t)(config->message_timeout_ns / 1000000);

    if (set(conf, "bootstrap.servers", config->brokers, error, error_bytes) < 0 ||
        (config->client_id && set(conf, "client.id", config->client_id, error, error_bytes) < 0) ||
        set(conf, "enable.idempotence", "true", error, error_bytes) < 0 ||
        set_number(conf, "statistics.interval.ms", STATISTICS_MS, error, error_bytes) < 0 ||
        /* The hash of Java's own producer: a key has one partition whoever writes it. */
        set(conf, "partitioner", "murmur2_random", error, error_bytes) < 0 ||
        (config->queue_messages_max &&
         set_number(conf, "queue.buffering.max.messages", config->queue_messages_max, error,
                    error_bytes) < 0) ||
        (kbytes &&
         set_number(conf, "queue.buffering.max.kbytes", kbytes, error, error_bytes) < 0) ||
        (config->transactional_id &&
         (set(conf, "transactional.id", config->transactional_id, error, error_bytes) < 0 ||
          set_number(conf, "transaction.timeout.ms", (uint64_t)(config->transaction_ns / 1000000),
                     error, error_bytes) < 0)) ||
        /* That of a transaction holds for its messages, too. */
        ((timeout_ms || config->spool) && !config->transactional_id &&
         set_number(conf, "message.timeout.ms", config->spool ? 0 : timeout_ms, error,
                    error_bytes) < 0))
        return -EINVAL;
    for (const char *const *p = config->properties; p && *p; p++)
        if (set_further(conf, *p, error, error_bytes) < 0)
            return -EINVAL;
    return 0;
}

static int make_client(struct ft_kafka_client *c, char *error, size_t error_bytes)
{
    static const uint64_t one = 1;
    rd_kafka_conf_t *conf = rd_kafka_conf_dup(c->conf);
    rd_kafka_queue_t *queue;
    char reason[REASON_BYTES];

    c->client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, reason, sizeof(reason));
    if (!c->client) {
        rd_kafka_conf_destroy(conf);
        snprintf(error, error_bytes, "kafka: %s", reason);
        return -EINVAL;
    }
    c->failed = c->fenced = false;
    queue = rd_kafka_queue_get_main(c->client);
    rd_kafka_queue_io_event_enable(queue, c->wake, &one, sizeof(one));
    rd_kafka_queue_destroy(queue);
    /* It wakes us when the queue is no longer empty, and there may be an error in it already. */
    eventfd_write(c->wake, one);
    return 0;
}

static void end_client(struct ft_kafka_client *c)
{
    if (!c->client)
        return;
    rd_kafka_purge(c->client, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_flush(c->client, PURGE_MS);
    rd_kafka_destroy(c->client);
    c->client = NULL;
}

void ft_kafka_client_poll(struct ft_kafka_client *c)
{
    if (c->client)
        while (rd_kafka_poll(c->client, 0) > 0)
            ;
}

static void handle_wake(void *arg)
{
    struct ft_kafka_client *c = arg;
    eventfd_t count;

    /* Emptied first: what comes while we poll wakes us again. */
    eventfd_read(c->wake, &count);
    ft_kafka_client_poll(c);
    c->hooks.drained(c->hooks.arg);
}

int ft_kafka_check(const struct ft_kafka_config *config, char *error, size_t error_bytes)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *client = NULL;
    char reason[REASON_BYTES];
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

int ft_kafka_check_property(const char *property, char *error, size_t error_bytes)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    int rc = set_further(conf, property, error, error_bytes);

    rd_kafka_conf_destroy(conf);
    return rc;
}

struct ft_kafka_client *ft_kafka_client_new(struct ft_loop *loop,
                                            const struct ft_kafka_config *config,
                                            const struct ft_kafka_hooks *hooks, char *error,
                                            size_t error_bytes)
{
    struct ft_kafka_client *c = calloc(1, sizeof(*c));

    if (!c) {
        snprintf(error, error_bytes, "kafka: no memory");
        return NULL;
    }
    c->hooks = *hooks;
    c->keeps = config->spool || config->transactional_id;
    c->conf = rd_kafka_conf_new();
    c->topics = ft_kafka_topics_new();
    c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->wake < 0)
        snprintf(error, error_bytes, "kafka: %s", strerror(errno));
    else if (c->topics)
        c->watch = ft_watch_stage(ft_watch_fd(loop, c->wake, handle_wake, c), "publish");
    if (!c->watch) {
        if (c->wake >= 0)
            snprintf(error, error_bytes, "kafka: no memory");
        ft_kafka_client_free(c);
        return NULL;
    }
    rd_kafka_conf_set_opaque(c->conf, c);
    rd_kafka_conf_set_dr_msg_cb(c->conf, take_report);
    rd_kafka_conf_set_error_cb(c->conf, take_error);
    rd_kafka_conf_set_stats_cb(c->conf, take_stats);
    /* Errors come through take_error, in our thread; its own log would write from others. */
    rd_kafka_conf_set_log_cb(c->conf, NULL);
    if (configure(c->conf, config, error, error_bytes) < 0 ||
        make_client(c, error, error_bytes) < 0) {
        ft_kafka_client_free(c);
        return NULL;
    }
    return c;
}

void ft_kafka_client_free(struct ft_kafka_client *c)
{
    if (!c)
        return;
    end_client(c);
    ft_watch_free(c->watch);
    if (c->conf)
        rd_kafka_conf_destroy(c->conf);
    if (c->wake >= 0)
        close(c->wake);
    ft_kafka_topics_free(c->topics);
    free(c);
}

/* The names that a broker takes: letters, digits, '.', '_', '-'. */
static bool topic_ok(const char *topic)
{
    size_t len = strspn(topic, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

    return len > 0 && len <= TOPIC_BYTES_MAX && !topic[len] && strcmp(topic, ".") != 0 &&
           strcmp(topic, "..") != 0;
}

static rd_kafka_headers_t *make_headers(const struct ft_kafka_outgoing *m)
{
    rd_kafka_headers_t *headers = rd_kafka_headers_new(m->header_count);

    for (size_t i = 0; i < m->header_count; i++)
        rd_kafka_header_add(headers, m->headers[i].name, -1, m->headers[i].value, -1);
    return headers;
}

/* librdkafka frees it where it takes it. */
static void *join(const struct ft_kafka_prefix *prefix, const struct ft_kafka_outgoing *m)
{
    uint8_t *value = malloc(prefix->len + m->len);

    if (!value)
        return NULL;
    memcpy(value, prefix->bytes, prefix->len);
    memcpy(value + prefix->len, m->value, m->len);
    return value;
}

int ft_kafka_client_send(struct ft_kafka_client *c, const struct ft_kafka_outgoing *m,
                         const struct ft_kafka_prefix *prefix, void *report)
{
    rd_kafka_headers_t *headers;
    void *joined = NULL;
    rd_kafka_resp_err_t err;
    char line[2 * REASON_BYTES];
    int flags;

    if (!topic_ok(m->topic))
        return -EINVAL;
    if (!c->client || c->failed)
        return -EAGAIN;
    if (prefix->len && !(joined = join(prefix, m)))
        return -EAGAIN;
    headers = make_headers(m);
    /* The macro casts what its text begins with. */
    flags = joined ? RD_KAFKA_MSG_F_FREE : 0;
    err = rd_kafka_producev(
        c->client, RD_KAFKA_V_TOPIC(m->topic), RD_KAFKA_V_KEY(m->key, m->key_len),
        RD_KAFKA_V_PARTITION(m->partition), RD_KAFKA_V_MSGFLAGS(flags),
        RD_KAFKA_V_VALUE(joined ? joined : (void *)(uintptr_t)m->value, prefix->len + m->len),
        RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(report), RD_KAFKA_V_END);
    if (!err)
        return 0; /* the headers are the message's now */
    rd_kafka_headers_destroy(headers);
    free(joined);
    switch (err) {
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
        snprintf(line, sizeof(line), "topic '%s': a message of %zu bytes was lost: %s", m->topic,
                 m->len, rd_kafka_err2str(err));
        report_error(c, err, line);
        return -EMSGSIZE;
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
        if (is_waited_for(c, m->topic, m->partition))
            return -EAGAIN;
        /* It is known by now that there is none. */
        snprintf(line, sizeof(line), "topic '%s', partition %d: a message was lost: %s", m->topic,
                 (int)m->partition, rd_kafka_err2str(err));
        report_error(c, err, line);
        return -ENOENT;
    case RD_KAFKA_RESP_ERR__STATE:
        return -ESTALE;
    default:
        /* The queue is full, or the client is about to be renewed. */
        return -EAGAIN;
    }
}

void ft_kafka_client_flush(struct ft_kafka_client *c, int ms)
{
    if (c->client)
        rd_kafka_flush(c->client, ms);
}

bool ft_kafka_client_failed(const struct ft_kafka_client *c)
{
    return !c->client || c->failed;
}

bool ft_kafka_client_fenced(const struct ft_kafka_client *c)
{
    return c->fenced;
}

struct rd_kafka_s *ft_kafka_client_handle(const struct ft_kafka_client *c)
{
    return c->client;
}

int ft_kafka_client_wake(const struct ft_kafka_client *c)
{
    return c->wake;
}

void ft_kafka_client_renew(struct ft_kafka_client *c)
{
    char error[2 * REASON_BYTES];

    end_client(c);
    if (make_client(c, error, sizeof(error)) < 0)
        c->hooks.error(c->hooks.arg, NULL, error);
}
#endif
