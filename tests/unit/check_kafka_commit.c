// SPDX-License-Identifier: Apache-2.0
/* Transactions over the brokers that librdkafka itself brings for tests, which answer as brokers do
 * and can be told to fail; what consumers of committed messages get takes a real one
 * (tests/kafka/check_transactions.py). */
#include "config.h"

#include "lib/io/kafka/producer.h"

#include "tests/unit/unit.h"

#ifndef HAVE_KAFKA
int main(void)
{
    puts("built without librdkafka: nothing to test");
    return 0;
}
#else
#include <errno.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <string.h>

#include "lib/io/kafka/consumer.h"

#define TOPIC       "figures.v1"
#define MESSAGES    20
#define GIVE_UP_NS  (INT64_C(240) * 1000000000)

/* Kafka's numbers of requests. */
#define PRODUCE     0
#define END_TXN     26
#define TXN_OFFSETS 28

static struct ft_loop *loop;
static rd_kafka_t *host;
static rd_kafka_mock_cluster_t *cluster;
static struct ft_kafka *kafka;
static struct ft_kafka_consumer *consumer;
static struct ft_watch *give_up, *look;
static bool (*wanted)(void);
static char said[4096], said_key[64];
static struct ft_kafka_stats stats;
static uint64_t wanted_commits;

static void on_give_up(void *arg)
{
    (void)arg;
    ft_loop_exit(loop, 1);
}

static void on_look(void *arg)
{
    (void)arg;
    ft_kafka_stats(kafka, &stats);
    ck_assert_uint_eq(stats.taken + stats.found, stats.delivered + stats.pending + stats.refused +
                                                     stats.failed + stats.no_topic +
                                                     stats.forbidden + stats.too_large +
                                                     stats.undone + stats.fenced);
    if (wanted())
        ft_loop_exit(loop, 0);
}

static void until(bool (*condition)(void))
{
    wanted = condition;
    ck_assert_int_eq(ft_loop_run(loop), 0);
}

static void on_error(void *arg, const char *key, const char *text)
{
    (void)arg;
    if (key)
        snprintf(said_key, sizeof(said_key), "%s", key);
    snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s\n", text);
}

static void on_message(void *arg, const char *topic, const struct ft_kafka_message *m)
{
    (void)arg;
    (void)topic;
    (void)m;
}

static struct ft_kafka *open_producer(uint64_t messages_max)
{
    const struct ft_kafka_config config = {.brokers = rd_kafka_mock_cluster_bootstraps(cluster),
                                           .queue_messages_max = messages_max,
                                           .transactional_id = "check",
                                           .transaction_ns = INT64_C(60) * 1000000000,
                                           .on_error = on_error};
    char error[256];
    struct ft_kafka *k = ft_kafka_new(loop, &config, error, sizeof(error));

    ck_assert_msg(k, "%s", error);
    return k;
}

static void begin(uint64_t messages_max)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    struct ft_kafka_part part = {"reports.v1", 0, false};
    struct ft_kafka_consumer_config reads = {.client_id = "check",
                                             .group = "daemons",
                                             .parts = &part,
                                             .part_count = 1,
                                             .in_transactions = true,
                                             .on_message = on_message,
                                             .on_error = on_error};
    char reason[256];

    loop = ft_loop_new();
    rd_kafka_conf_set_log_cb(conf, NULL);
    host = rd_kafka_new(RD_KAFKA_PRODUCER, conf, reason, sizeof(reason));
    cluster = rd_kafka_mock_cluster_new(host, 1);
    ck_assert_ptr_nonnull(cluster);
    rd_kafka_mock_topic_create(cluster, TOPIC, 1, 1);
    rd_kafka_mock_topic_create(cluster, part.topic, 1, 1);
    give_up = ft_watch_once(loop, on_give_up, NULL);
    ft_watch_once_arm(give_up, GIVE_UP_NS);
    look = ft_watch_timer(loop, 10000000, on_look, NULL);
    kafka = open_producer(messages_max);
    reads.brokers = rd_kafka_mock_cluster_bootstraps(cluster);
    consumer = ft_kafka_consumer_new(loop, &reads, reason, sizeof(reason));
    ck_assert_msg(consumer, "%s", reason);
}

static void end(void)
{
    ft_kafka_free(kafka);
    ft_kafka_consumer_free(consumer);
    ft_watch_free(look);
    ft_watch_free(give_up);
    ft_loop_free(loop);
    rd_kafka_mock_cluster_destroy(cluster);
    rd_kafka_destroy(host);
}

static int send_one(void)
{
    const struct ft_kafka_outgoing m = {
        .topic = TOPIC, .key = "a", .key_len = 1, .value = "one", .len = 3, .partition = -1};

    return ft_kafka_send(kafka, &m);
}

static void send_some(void)
{
    for (int i = 0; i < MESSAGES; i++)
        ck_assert_int_eq(send_one(), 0);
}

static void commit(void)
{
    static int64_t offset;
    const struct ft_kafka_position position = {"reports.v1", 0, ++offset, 1000 * offset};
    const struct ft_kafka_offsets offsets = {consumer, &position, 1};

    ck_assert_int_eq(ft_kafka_commit(kafka, &offsets, 1), 0);
}

static bool is_committed(void)
{
    return stats.commits == wanted_commits && stats.pending == 0;
}

static bool are_two_committed(void)
{
    return stats.delivered == (uint64_t)2 * MESSAGES;
}

/* Nothing counts as delivered before its commit. */
START_TEST(what_is_sent_is_delivered_with_its_commit)
{
    begin(1000);
    send_some();
    ck_assert_int_eq(ft_kafka_flush(kafka, 0), 0);
    commit();
    ft_kafka_stats(kafka, &stats);
    ck_assert_uint_eq(stats.delivered, 0);
    ck_assert_uint_eq(stats.pending, MESSAGES);
    wanted_commits = 1;
    until(is_committed);
    ck_assert_uint_eq(stats.delivered, MESSAGES);
    /* What comes while a commit is under way is of the next. */
    send_some();
    commit();
    send_one();
    commit();
    ck_assert_int_eq(ft_kafka_flush(kafka, GIVE_UP_NS), 0);
    ft_kafka_stats(kafka, &stats);
    ck_assert_uint_eq(stats.delivered, 2 * MESSAGES + 1);
    ck_assert_uint_eq(stats.aborts, 0);
    ck_assert_str_eq(said, "");
    end();
}
END_TEST

/* The coordinator's answers, and what they lead to. */
START_TEST(what_is_aborted_is_sent_again)
{
    begin(1000);
    wanted_commits = 1;
    send_some();
    rd_kafka_mock_push_request_errors(cluster, TXN_OFFSETS, 1,
                                      RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION);
    commit();
    until(is_committed);
    ck_assert_uint_eq(stats.aborts, 1);
    ck_assert_uint_eq(stats.delivered, MESSAGES);
    end();
}
END_TEST

START_TEST(brokers_that_are_away_are_waited_for)
{
    begin(1000);
    rd_kafka_mock_broker_set_down(cluster, 1);
    send_some();
    commit();
    ck_assert_int_eq(ft_kafka_flush(kafka, 1), -ETIMEDOUT);
    send_some();
    commit();
    rd_kafka_mock_broker_set_up(cluster, 1);
    until(are_two_committed);
    end();
}
END_TEST

static bool is_counted(void)
{
    return stats.too_large == 1 && stats.commits == 1 && stats.pending == 0;
}

/* One that can never be sent does not keep the others. */
START_TEST(what_is_refused_is_counted_and_the_rest_is_committed)
{
    static const char big[2000000];
    const struct ft_kafka_outgoing m = {
        .topic = TOPIC, .value = big, .len = sizeof(big), .partition = -1};

    begin(1000);
    rd_kafka_mock_push_request_errors(cluster, PRODUCE, 1,
                                      RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    ck_assert_int_eq(ft_kafka_send(kafka, &m), 0);
    send_some();
    commit();
    until(is_counted);
    ck_assert_uint_gt(stats.forbidden, 0);
    ck_assert_uint_gt(stats.aborts, 0);
    ck_assert_uint_eq(stats.forbidden + stats.delivered, MESSAGES);
    ck_assert_ptr_nonnull(strstr(said, "a message was lost"));
    end();
}
END_TEST

static bool is_undone(void)
{
    return stats.undone == MESSAGES && stats.pending == 0;
}

START_TEST(what_is_taken_back_is_not_sent)
{
    begin(1000);
    send_some();
    wanted_commits = 1;
    commit();
    until(is_committed);
    send_some();
    ft_kafka_undo(kafka, false);
    until(is_undone);
    ck_assert_uint_eq(stats.delivered, MESSAGES);
    send_some();
    commit();
    wanted_commits = 2;
    until(is_committed);
    ck_assert_uint_eq(stats.delivered, 2 * MESSAGES);
    end();
}
END_TEST

START_TEST(no_more_waits_than_the_queue_takes)
{
    begin(MESSAGES);
    rd_kafka_mock_broker_set_down(cluster, 1);
    send_some();
    ck_assert_int_eq(send_one(), -EAGAIN);
    ft_kafka_stats(kafka, &stats);
    ck_assert_uint_eq(stats.refused, 1);
    rd_kafka_mock_broker_set_up(cluster, 1);
    commit();
    wanted_commits = 1;
    until(is_committed);
    end();
}
END_TEST

static bool has_rival(void)
{
    return stats.fenced > 0;
}

/* Fenced once it may have been too slow; twice, another one has its name. */
START_TEST(who_is_fenced_twice_gives_up_and_says_so)
{
    begin(1000);
    send_some();
    rd_kafka_mock_push_request_errors(cluster, END_TXN, 1, RD_KAFKA_RESP_ERR_PRODUCER_FENCED);
    commit();
    wanted_commits = 1;
    until(is_committed);
    ck_assert_str_eq(said_key, "kafka.transactions");
    ck_assert_ptr_nonnull(strstr(said, "same source_id"));
    ck_assert_uint_eq(stats.delivered, MESSAGES);
    send_some();
    rd_kafka_mock_push_request_errors(cluster, END_TXN, 1, RD_KAFKA_RESP_ERR_PRODUCER_FENCED);
    commit();
    until(has_rival);
    ck_assert_uint_eq(stats.fenced, MESSAGES);
    ck_assert_ptr_nonnull(strstr(said, "nothing is published any more"));
    ck_assert_int_eq(send_one(), -EAGAIN);
    end();
}
END_TEST

FT_UNIT_MAIN("kafka_commit", what_is_sent_is_delivered_with_its_commit,
             what_is_aborted_is_sent_again, brokers_that_are_away_are_waited_for,
             what_is_refused_is_counted_and_the_rest_is_committed, what_is_taken_back_is_not_sent,
             no_more_waits_than_the_queue_takes, who_is_fenced_twice_gives_up_and_says_so)
#endif
