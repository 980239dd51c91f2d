// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/kafka/consumer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef HAVE_KAFKA
struct ft_kafka_consumer *ft_kafka_consumer_new(struct ft_loop *loop,
                                                const struct ft_kafka_consumer_config *config,
                                                char *error, size_t error_bytes)
{
    (void)loop;
    (void)config;
    snprintf(error, error_bytes, "built without librdkafka");
    return NULL;
}

int ft_kafka_consumer_check(const struct ft_kafka_consumer_config *config, char *error,
                            size_t error_bytes)
{
    (void)config;
    snprintf(error, error_bytes, "built without librdkafka");
    return -ENOTSUP;
}

/* No consumer can exist here. */
void ft_kafka_consumer_free(struct ft_kafka_consumer *consumer)
{
    (void)consumer;
}

void ft_kafka_consumer_hold(struct ft_kafka_consumer *consumer)
{
    (void)consumer;
}

void ft_kafka_consumer_release(struct ft_kafka_consumer *consumer)
{
    (void)consumer;
}

bool ft_kafka_consumer_is_evicted(const struct ft_kafka_consumer *consumer)
{
    (void)consumer;
    return false;
}
#else
#include <librdkafka/rdkafka.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/secret.h"
#include "lib/io/kafka/errors.h"
#include "lib/io/kafka/group.h"

#define TURN_NS      INT64_C(10000000)   /* then the loop looks at its other descriptors */
#define BUSY_NS      INT64_C(1000000)    /* until we are asked again whether we read */
#define TICK_NS      INT64_C(1000000000) /* whatever librdkafka does not wake us for is read then */
#define AGAIN_NS     INT64_C(1000000000) /* until partitions that may not be read begin again */
#define AGAIN_NS_MAX INT64_C(30000000000) /* it doubles while that is in vain */
#define CLOSE_NS     INT64_C(5000000000)  /* in which brokers take how far was read */
#define CLOSE_MS     50
#define NAME_BYTES   128

struct ft_kafka_consumer {
    struct ft_kafka_consumer_config config; /* without what it borrows */
    rd_kafka_t *client;
    rd_kafka_topic_partition_list_t *parts; /* with where each begins */
    int wake;                               /* eventfd that librdkafka's threads write to */
    struct ft_watch *watch, *more, *tick, *again;
    int64_t again_ns;
    struct ft_kafka_group *group; /* NULL: it shares no topic */
    rd_kafka_message_t **held;    /* at most one of each partition */
    size_t held_count, held_room;
    bool hold;
};

static int set(rd_kafka_conf_t *conf, const char *name, const char *value, char *error,
               size_t error_bytes)
{
    char reason[256];

    if (rd_kafka_conf_set(conf, name, value, reason, sizeof(reason)) == RD_KAFKA_CONF_OK)
        return 0;
    /* The reason may say the value. */
    snprintf(error, error_bytes, "kafka: %s",
             ft_secret_setting(name) ? "the value is not accepted" : reason);
    return -EINVAL;
}

/* "name=value" */
static int set_property(rd_kafka_conf_t *conf, const char *property, char *error,
                        size_t error_bytes)
{
    size_t len = strcspn(property, "=");
    char name[NAME_BYTES];

    if (!property[len] || len == 0 || len >= sizeof(name)) {
        snprintf(error, error_bytes, "kafka: property '%.*s' is not name=value", (int)len,
                 property);
        return -EINVAL;
    }
    memcpy(name, property, len);
    name[len] = '\0';
    return set(conf, name, property + len + 1, error, error_bytes);
}

/* That of messages which a producer sends: librdkafka refuses consumers whose fetch.max.bytes is
 * less, though brokers send a message that is larger than that, too. */
static bool is_of_producers(const char *property)
{
    static const char name[] = "message.max.bytes=";

    return strncmp(property, name, sizeof(name) - 1) == 0;
}

static int configure(rd_kafka_conf_t *conf, const struct ft_kafka_consumer_config *config,
                     char *error, size_t error_bytes)
{
    static const char *const fixed[] = {
        "enable.auto.commit=true", "auto.commit.interval.ms=2000", "enable.auto.offset.store=false",
        "isolation.level=read_committed", "allow.auto.create.topics=false",
        "auto.offset.reset=earliest",
        /* What is read ahead of us at most: FT_KAFKA_CONSUMER_BYTES. */
        "queued.max.messages.kbytes=16384", "fetch.message.max.bytes=1048576",
        "fetch.max.bytes=4194304", "queued.min.messages=1000", "fetch.wait.max.ms=100",
        /* A topic may be made after us. */
        "topic.metadata.refresh.interval.ms=5000",
        /* Of a group: a member that is gone has others read its partitions within a window. */
        "partition.assignment.strategy=cooperative-sticky", "session.timeout.ms=6000",
        "heartbeat.interval.ms=1000"};

    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        if (set_property(conf, fixed[i], error, error_bytes) < 0)
            return -EINVAL;
    if (set(conf, "bootstrap.servers", config->brokers, error, error_bytes) < 0 ||
        set(conf, "client.id", config->client_id, error, error_bytes) < 0 ||
        set(conf, "group.id", config->group, error, error_bytes) < 0)
        return -EINVAL;
    if (config->in_transactions && set(conf, "enable.auto.commit", "false", error, error_bytes) < 0)
        return -EINVAL;
    if (config->on_end && set(conf, "enable.partition.eof", "true", error, error_bytes) < 0)
        return -EINVAL;
    for (const char *const *p = config->properties; p && *p; p++)
        if (!is_of_producers(*p) && set_property(conf, *p, error, error_bytes) < 0)
            return -EINVAL;
    return 0;
}

int ft_kafka_consumer_check(const struct ft_kafka_consumer_config *config, char *error,
                            size_t error_bytes)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *client = NULL;
    char reason[256];
    int rc = configure(conf, config, error, error_bytes);

    rd_kafka_conf_set_log_cb(conf, NULL);
    /* Some settings are judged only together, by a client: this one knows no broker to ask. */
    if (rc == 0)
        rd_kafka_conf_set(conf, "bootstrap.servers", NULL, reason, sizeof(reason));
    if (rc == 0)
        client = rd_kafka_new(RD_KAFKA_CONSUMER, conf, reason, sizeof(reason));
    if (client) {
        rd_kafka_destroy_flags(client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
        return 0;
    }
    rd_kafka_conf_destroy(conf);
    if (rc == 0)
        snprintf(error, error_bytes, "kafka: %s", reason);
    return -EINVAL;
}

static void complain(struct ft_kafka_consumer *c, int err, const char *text)
{
    char line[512];
    const char *key = ft_kafka_advise(err, text, line, sizeof(line));

    if (c->config.on_error)
        c->config.on_error(c->config.arg, key, line);
}

static void take_error(rd_kafka_t *client, int err, const char *reason, void *opaque)
{
    (void)client;
    complain(opaque, err, reason);
}

static void take_trouble(struct ft_kafka_consumer *c, const rd_kafka_message_t *m)
{
    char text[384];

    if (c->config.on_end && m->rkt)
        c->config.on_end(c->config.arg, rd_kafka_topic_name(m->rkt), m->partition);
    if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
        return;
    if (m->rkt)
        snprintf(text, sizeof(text), "topic '%s', partition %d: %s", rd_kafka_topic_name(m->rkt),
                 (int)m->partition, rd_kafka_err2str(m->err));
    else
        snprintf(text, sizeof(text), "%s", rd_kafka_message_errstr(m));
    complain(c, m->err, text);
    if (!ft_watch_once_armed(c->again)) {
        ft_watch_once_arm(c->again, c->again_ns);
        c->again_ns = 2 * c->again_ns < AGAIN_NS_MAX ? 2 * c->again_ns : AGAIN_NS_MAX;
    }
}

static void complain_of(struct ft_kafka_consumer *c, rd_kafka_error_t *error)
{
    if (!error)
        return;
    complain(c, rd_kafka_error_code(error), rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
}

/* Where the brokers cannot say how far a partition was read (a coordinator that has just begun
 * knows of no group), librdkafka reports that and never asks again. So do we, for partitions of
 * which no message came: the others are not disturbed. */
static void begin_again(void *arg)
{
    struct ft_kafka_consumer *c = arg;
    rd_kafka_topic_partition_list_t *at = rd_kafka_topic_partition_list_copy(c->parts);
    rd_kafka_topic_partition_list_t *silent = rd_kafka_topic_partition_list_new(at->cnt);

    rd_kafka_position(c->client, at);
    for (int i = 0; i < at->cnt; i++)
        if (c->parts->elems[i].offset == RD_KAFKA_OFFSET_STORED && at->elems[i].offset < 0)
            rd_kafka_topic_partition_list_add(silent, at->elems[i].topic, at->elems[i].partition)
                ->offset = RD_KAFKA_OFFSET_STORED;
    if (silent->cnt > 0) {
        complain_of(c, rd_kafka_incremental_unassign(c->client, silent));
        complain_of(c, rd_kafka_incremental_assign(c->client, silent));
    }
    rd_kafka_topic_partition_list_destroy(silent);
    rd_kafka_topic_partition_list_destroy(at);
}

static void rest(struct ft_kafka_consumer *c, const rd_kafka_message_t *m, bool on)
{
    rd_kafka_topic_partition_list_t *part = rd_kafka_topic_partition_list_new(1);

    rd_kafka_topic_partition_list_add(part, rd_kafka_topic_name(m->rkt), m->partition);
    if (on)
        rd_kafka_pause_partitions(c->client, part);
    else
        rd_kafka_resume_partitions(c->client, part);
    rd_kafka_topic_partition_list_destroy(part);
}

/* Of its partition, that is the last which was read: what follows waits with the brokers. */
static bool keep(struct ft_kafka_consumer *c, rd_kafka_message_t *m)
{
    if (c->held_count == c->held_room) {
        size_t room = c->held_room ? 2 * c->held_room : 16;
        rd_kafka_message_t **held = realloc(c->held, room * sizeof(*held));

        if (!held)
            return false;
        c->held = held;
        c->held_room = room;
    }
    rest(c, m, true);
    c->held[c->held_count++] = m;
    return true;
}

/* Takes the message over. */
static void take(struct ft_kafka_consumer *c, rd_kafka_message_t *m)
{
    rd_kafka_timestamp_type_t type;
    struct ft_kafka_message message;

    if (m->err) {
        take_trouble(c, m);
        rd_kafka_message_destroy(m);
        return;
    }
    message = (struct ft_kafka_message){.key = m->key,
                                        .key_len = m->key_len,
                                        .value = m->payload,
                                        .len = m->len,
                                        .time_ms = rd_kafka_message_timestamp(m, &type),
                                        .partition = m->partition,
                                        .offset = m->offset};
    c->again_ns = AGAIN_NS;
    c->hold = false;
    c->config.on_message(c->config.arg, rd_kafka_topic_name(m->rkt), &message);
    if (c->hold && keep(c, m))
        return;
    rd_kafka_offset_store(m->rkt, m->partition, m->offset);
    rd_kafka_message_destroy(m);
}

static bool is_busy(const struct ft_kafka_consumer *c)
{
    return c->config.busy && c->config.busy(c->config.arg);
}

static void poll_messages(void *arg)
{
    struct ft_kafka_consumer *c = arg;
    struct ft_mono start = ft_mono_now();
    rd_kafka_message_t *m;

    if (c->group)
        complain_of(c, ft_kafka_group_turn(c->group));
    while (!is_busy(c)) {
        m = rd_kafka_consumer_poll(c->client, 0);
        if (!m)
            return;
        take(c, m);
        if (ft_mono_since_ns(ft_mono_now(), start) > TURN_NS) {
            ft_watch_once_arm(c->more, 0);
            return;
        }
    }
    if (!ft_watch_once_armed(c->more))
        ft_watch_once_arm(c->more, BUSY_NS);
}

static void handle_wake(void *arg)
{
    struct ft_kafka_consumer *c = arg;
    eventfd_t count;

    /* Emptied first: what comes while we poll wakes us again. */
    eventfd_read(c->wake, &count);
    poll_messages(c);
}

/* Their next owner reads them anew. */
static void forget_held(struct ft_kafka_consumer *c, const char *topic, int32_t partition)
{
    size_t kept = 0;

    for (size_t i = 0; i < c->held_count; i++) {
        rd_kafka_message_t *m = c->held[i];

        if (!topic ||
            (m->partition == partition && strcmp(rd_kafka_topic_name(m->rkt), topic) == 0)) {
            rest(c, m, false);
            rd_kafka_message_destroy(m);
        } else {
            c->held[kept++] = m;
        }
    }
    c->held_count = kept;
}

static void take_rebalance(rd_kafka_t *client, rd_kafka_resp_err_t err,
                           rd_kafka_topic_partition_list_t *parts, void *opaque)
{
    struct ft_kafka_consumer *c = opaque;

    (void)client;
    if (err != RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS)
        for (int i = 0; i < parts->cnt; i++)
            forget_held(c, parts->elems[i].topic, parts->elems[i].partition);
    complain_of(c, ft_kafka_group_rebalance(c->group, err, parts));
}

static int open_client(struct ft_kafka_consumer *c, const struct ft_kafka_consumer_config *config,
                       char *error, size_t error_bytes)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char reason[256];

    rd_kafka_conf_set_log_cb(conf, NULL);
    rd_kafka_conf_set_opaque(conf, c);
    rd_kafka_conf_set_error_cb(conf, take_error);
    if (config->subscribe)
        rd_kafka_conf_set_rebalance_cb(conf, take_rebalance);
    if (configure(conf, config, error, error_bytes) < 0) {
        rd_kafka_conf_destroy(conf);
        return -EINVAL;
    }
    c->client = rd_kafka_new(RD_KAFKA_CONSUMER, conf, reason, sizeof(reason));
    if (c->client)
        return 0;
    rd_kafka_conf_destroy(conf);
    snprintf(error, error_bytes, "kafka: %s", reason);
    return -EINVAL;
}

static int assign(struct ft_kafka_consumer *c, const struct ft_kafka_consumer_config *config,
                  char *error, size_t error_bytes)
{
    static const uint64_t one = 1;
    rd_kafka_queue_t *queue;
    int err;

    for (size_t i = 0; i < config->part_count; i++)
        rd_kafka_topic_partition_list_add(c->parts, config->parts[i].topic,
                                          config->parts[i].partition)
            ->offset =
            config->parts[i].from_start ? RD_KAFKA_OFFSET_BEGINNING : RD_KAFKA_OFFSET_STORED;
    rd_kafka_poll_set_consumer(c->client);
    queue = rd_kafka_queue_get_consumer(c->client);
    rd_kafka_queue_io_event_enable(queue, c->wake, &one, sizeof(one));
    rd_kafka_queue_destroy(queue);
    /* It wakes us when the queue is no longer empty, and there may be an error in it already. */
    eventfd_write(c->wake, one);
    if (config->subscribe) {
        const struct ft_kafka_group_config group = {.client = c->client,
                                                    .wake = c->wake,
                                                    .back_ns = config->back_ns,
                                                    .on_owned = config->on_owned,
                                                    .on_lost = config->on_lost,
                                                    .arg = config->arg};

        c->group = ft_kafka_group_new(&group, config->subscribe, &err);
    } else {
        err = rd_kafka_assign(c->client, c->parts);
    }
    if (err)
        snprintf(error, error_bytes, "kafka: %s", rd_kafka_err2str(err));
    return err ? -EIO : 0;
}

struct ft_kafka_consumer *ft_kafka_consumer_new(struct ft_loop *loop,
                                                const struct ft_kafka_consumer_config *config,
                                                char *error, size_t error_bytes)
{
    struct ft_kafka_consumer *c = calloc(1, sizeof(*c));

    if (!c) {
        snprintf(error, error_bytes, "kafka: no memory");
        return NULL;
    }
    c->config.on_message = config->on_message;
    c->config.on_error = config->on_error;
    c->config.on_end = config->on_end;
    c->config.busy = config->busy;
    c->config.arg = config->arg;
    c->parts = rd_kafka_topic_partition_list_new((int)config->part_count);
    c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->wake < 0) {
        snprintf(error, error_bytes, "kafka: %s", strerror(errno));
        ft_kafka_consumer_free(c);
        return NULL;
    }
    c->watch = ft_watch_stage(ft_watch_fd(loop, c->wake, handle_wake, c), "ingest");
    c->more = ft_watch_stage(ft_watch_once(loop, poll_messages, c), "ingest");
    c->tick = ft_watch_stage(ft_watch_timer(loop, TICK_NS, poll_messages, c), "ingest");
    c->again = ft_watch_stage(ft_watch_once(loop, begin_again, c), "ingest");
    c->again_ns = AGAIN_NS;
    if (!c->watch || !c->more || !c->tick || !c->again) {
        snprintf(error, error_bytes, "kafka: no memory");
        ft_kafka_consumer_free(c);
        return NULL;
    }
    if (open_client(c, config, error, error_bytes) < 0 ||
        assign(c, config, error, error_bytes) < 0) {
        ft_kafka_consumer_free(c);
        return NULL;
    }
    return c;
}

void ft_kafka_consumer_hold(struct ft_kafka_consumer *c)
{
    c->hold = true;
}

void ft_kafka_consumer_release(struct ft_kafka_consumer *c)
{
    size_t count = c->held_count;
    rd_kafka_message_t **held = c->held;

    c->held = NULL;
    c->held_count = c->held_room = 0;
    for (size_t i = 0; i < count; i++) {
        rest(c, held[i], false);
        take(c, held[i]);
    }
    free(held);
}

bool ft_kafka_consumer_is_evicted(const struct ft_kafka_consumer *c)
{
    return rd_kafka_assignment_lost(c->client);
}

rd_kafka_t *ft_kafka_consumer_handle(const struct ft_kafka_consumer *c)
{
    return c->client;
}

/* Messages that were read ahead are not ours any more. */
static void take_last(struct ft_kafka_consumer *c, rd_kafka_event_t *event)
{
    if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_REBALANCE)
        take_rebalance(c->client, rd_kafka_event_error(event),
                       rd_kafka_event_topic_partition_list(event), c);
    rd_kafka_event_destroy(event);
}

/* Without brokers librdkafka would wait for them for good, to say how far was read. */
static void close_client(struct ft_kafka_consumer *c)
{
    struct ft_mono start = ft_mono_now();
    rd_kafka_queue_t *queue = rd_kafka_queue_new(c->client);
    rd_kafka_error_t *error = rd_kafka_consumer_close_queue(c->client, queue);
    rd_kafka_event_t *event;
    bool closed = false;

    while (!error && !closed && ft_mono_since_ns(ft_mono_now(), start) < CLOSE_NS) {
        event = rd_kafka_queue_poll(queue, CLOSE_MS);
        if (event)
            take_last(c, event);
        closed = rd_kafka_consumer_closed(c->client);
    }
    if (error)
        rd_kafka_error_destroy(error);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy_flags(c->client, closed ? 0 : RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}

void ft_kafka_consumer_free(struct ft_kafka_consumer *c)
{
    if (!c)
        return;
    forget_held(c, NULL, 0);
    free(c->held);
    c->held = NULL;
    c->held_room = 0;
    ft_watch_free(c->again);
    ft_watch_free(c->tick);
    ft_watch_free(c->more);
    ft_watch_free(c->watch);
    if (c->client) {
        ft_kafka_group_leave(c->group);
        close_client(c);
    }
    ft_kafka_group_free(c->group);
    rd_kafka_topic_partition_list_destroy(c->parts);
    if (c->wake >= 0)
        close(c->wake);
    free(c);
}
#endif
