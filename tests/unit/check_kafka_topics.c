// SPDX-License-Identifier: Apache-2.0
/* A topic that brokers do not know for a moment, as those that have just started, and one that is
 * gone, with the brokers that librdkafka itself brings for tests. */
#include "config.h"

#include "lib/io/kafka/producer.h"
#include "lib/io/kafka/topics.h"

#include "tests/unit/unit.h"

#ifndef HAVE_KAFKA
int main(void)
{
    puts("built without librdkafka: nothing to test");
    return 0;
}
#else
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOPIC      "figures.v1"
#define GIVE_UP_NS (INT64_C(240) * 1000000000)
#define LOOK_NS    10000000

static struct ft_loop *loop;
static rd_kafka_t *host;
static rd_kafka_mock_cluster_t *cluster;
static struct ft_kafka *kafka;
static struct ft_watch *give_up, *look;
static struct ft_kafka_stats stats;
static bool (*wanted)(void);
static bool sends; /* one message at each look */
static unsigned said;

static void on_give_up(void *arg)
{
    (void)arg;
    ft_loop_exit(loop, 1);
}

static void send_one(void)
{
    const struct ft_kafka_outgoing m = {
        .topic = TOPIC, .key = "a", .key_len = 1, .value = "one", .len = 3, .partition = -1};

    ft_kafka_send(kafka, &m);
}

static void on_look(void *arg)
{
    (void)arg;
    if (sends)
        send_one();
    ft_kafka_stats(kafka, &stats);
    if (wanted())
        ft_loop_exit(loop, 0);
}

static void until(bool (*condition)(void))
{
    wanted = condition;
    ck_assert_int_eq(ft_loop_run(loop), 0);
}

static void on_error(void *arg, const char *key, const char *line)
{
    (void)arg;
    if (!key || strcmp(key, "kafka.topic_prefix") != 0)
        return;
    ck_assert_ptr_nonnull(strstr(line, TOPIC));
    said++;
}

static bool is_delivered(void)
{
    return stats.delivered > 0;
}

/* Without a word of it nobody would know why nothing comes. */
static bool is_said(void)
{
    return said > 0;
}

static bool is_empty(void)
{
    return stats.pending == 0 && stats.spooled == 0;
}

START_TEST(a_topic_that_was_there_is_waited_for)
{
    /* Asks for the topics often. */
    static const char *const properties[] = {"topic.metadata.refresh.interval.ms=50",
                                             "topic.metadata.refresh.fast.interval.ms=50", NULL};
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    struct ft_kafka_config config = {.on_error = on_error,
                                     .properties = properties,
                                     .spool_bytes_max = 64 << 20,
                                     .message_bytes_max = 1 << 20,
                                     .spool_after_ns = GIVE_UP_NS};
    char error[256], folder[] = "/tmp/check_kafka_topics.XXXXXX", command[64];

    ck_assert_ptr_nonnull(mkdtemp(folder));
    config.spool = folder;
    loop = ft_loop_new();
    rd_kafka_conf_set_log_cb(conf, NULL);
    host = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof(error));
    cluster = rd_kafka_mock_cluster_new(host, 1);
    ck_assert_ptr_nonnull(cluster);
    rd_kafka_mock_topic_create(cluster, TOPIC, 1, 1);
    config.brokers = rd_kafka_mock_cluster_bootstraps(cluster);
    give_up = ft_watch_once(loop, on_give_up, NULL);
    ft_watch_once_arm(give_up, GIVE_UP_NS);
    look = ft_watch_timer(loop, LOOK_NS, on_look, NULL);
    kafka = ft_kafka_new(loop, &config, error, sizeof(error));
    ck_assert_msg(kafka, "%s", error);
    sends = true;
    until(is_delivered);
    rd_kafka_mock_topic_set_error(cluster, TOPIC, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    until(is_said);
    rd_kafka_mock_topic_set_error(cluster, TOPIC, RD_KAFKA_RESP_ERR_NO_ERROR);
    sends = false;
    until(is_empty);
    ck_assert_uint_eq(stats.no_topic, 0);
    ck_assert_uint_eq(stats.taken, stats.delivered);
    ck_assert_uint_eq(said, 1);
    ft_kafka_free(kafka);
    ft_watch_free(look);
    ft_watch_free(give_up);
    ft_loop_free(loop);
    rd_kafka_mock_cluster_destroy(cluster);
    rd_kafka_destroy(host);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(a_topic_is_missing_for_a_minute_at_most)
{
    struct ft_kafka_topics *t = ft_kafka_topics_new();
    const int64_t s = INT64_C(1000000000);
    char name[16];

    ck_assert_int_eq(ft_kafka_topics_missing(t, "a", -1, (struct ft_mono){0}),
                     FT_KAFKA_MISSING_LOST);
    ft_kafka_topics_seen(t, "a", 2);
    ck_assert_int_eq(ft_kafka_topics_missing(t, "a", 3, (struct ft_mono){0}),
                     FT_KAFKA_MISSING_LOST);
    ck_assert_int_eq(ft_kafka_topics_missing(t, "a", 2, (struct ft_mono){0}),
                     FT_KAFKA_MISSING_BEGAN);
    ck_assert_int_eq(ft_kafka_topics_missing(t, "a", -1, (struct ft_mono){s}),
                     FT_KAFKA_MISSING_WAITS);
    ck_assert_int_eq(ft_kafka_topics_missing(t, "b", -1, (struct ft_mono){s}),
                     FT_KAFKA_MISSING_LOST);
    ck_assert_int_eq(ft_kafka_topics_missing(t, "a", -1, (struct ft_mono){60 * s}),
                     FT_KAFKA_MISSING_LOST);
    ft_kafka_topics_seen(t, "a", 0);
    ck_assert_int_eq(ft_kafka_topics_missing(t, "a", 2, (struct ft_mono){61 * s}),
                     FT_KAFKA_MISSING_BEGAN);
    /* The table has its limit. */
    for (int i = 0; i < 80; i++) {
        snprintf(name, sizeof(name), "t%d", i);
        ft_kafka_topics_seen(t, name, 0);
    }
    ck_assert_int_eq(ft_kafka_topics_missing(t, "t62", 0, (struct ft_mono){0}),
                     FT_KAFKA_MISSING_BEGAN);
    ck_assert_int_eq(ft_kafka_topics_missing(t, "t63", 0, (struct ft_mono){0}),
                     FT_KAFKA_MISSING_LOST);
    ft_kafka_topics_free(t);
}
END_TEST

FT_UNIT_MAIN("kafka_topics", a_topic_that_was_there_is_waited_for,
             a_topic_is_missing_for_a_minute_at_most)
#endif
