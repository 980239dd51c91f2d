// SPDX-License-Identifier: Apache-2.0
/* Against the brokers that librdkafka itself brings for tests, in this process: they answer what a
 * test wants them to. What wakes our loop is held back, too. */
#include "config.h"

#include "lib/io/kafka_consumer.h"

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
#include <string.h>
#include <unistd.h>

#include "lib/io/kafka.h"
#include "lib/io/kafka_errors.h"

#define TOPIC        "check.v1"
#define PARTITIONS   3
#define OFFSET_FETCH 9 /* Kafka's number of this request */
#define GIVE_UP_NS   (INT64_C(240) * 1000000000)
#define SOME         20

/* What becomes of a descriptor that librdkafka is to wake us by. */
static enum { WAKES, WAKES_LATE, NEVER_WAKES } waking;

static struct ft_loop *loop;
static rd_kafka_t *host;
static rd_kafka_mock_cluster_t *cluster;
static const char *brokers;
static struct ft_kafka *producer;
static struct ft_kafka_consumer *consumer;
static struct ft_watch *give_up;
static char text[512];
static const char *last_key;
static unsigned taken, wanted, errors, expected;
static bool seen[SOME];

void __real_rd_kafka_queue_io_event_enable(rd_kafka_queue_t *queue, int fd, const void *payload,
                                           size_t size);
void __wrap_rd_kafka_queue_io_event_enable(rd_kafka_queue_t *queue, int fd, const void *payload,
                                           size_t size);

/* The linker puts it in the place of librdkafka's own. */
void __wrap_rd_kafka_queue_io_event_enable(rd_kafka_queue_t *queue, int fd, const void *payload,
                                           size_t size)
{
    if (waking == NEVER_WAKES)
        return;
    while (waking == WAKES_LATE && rd_kafka_queue_length(queue) == 0)
        usleep(1000);
    __real_rd_kafka_queue_io_event_enable(queue, fd, payload, size);
}

static void on_give_up(void *arg)
{
    (void)arg;
    ft_loop_exit(loop, 1);
}

static void on_error(void *arg, const char *key, const char *line)
{
    (void)arg;
    last_key = key;
    if (!strstr(line, text))
        return;
    errors++;
    if (expected && errors >= expected)
        ft_loop_exit(loop, 0);
}

static void on_message(void *arg, const char *topic, const struct ft_kafka_message *m)
{
    unsigned number = (unsigned)strtoul(m->key, NULL, 10);

    (void)arg;
    ck_assert_str_eq(topic, TOPIC);
    ck_assert_uint_lt(number, SOME);
    ck_assert(!seen[number]);
    seen[number] = true;
    if (++taken == wanted)
        ft_loop_exit(loop, 0);
}

static void begin(void)
{
    rd_kafka_conf_t *conf;
    char reason[256];

    loop = ft_loop_new();
    conf = rd_kafka_conf_new();
    rd_kafka_conf_set_log_cb(conf, NULL);
    host = rd_kafka_new(RD_KAFKA_PRODUCER, conf, reason, sizeof(reason));
    cluster = rd_kafka_mock_cluster_new(host, 1);
    ck_assert_ptr_nonnull(cluster);
    brokers = rd_kafka_mock_cluster_bootstraps(cluster);
    rd_kafka_mock_topic_create(cluster, TOPIC, PARTITIONS, 1);
    give_up = ft_watch_once(loop, on_give_up, NULL);
    ft_watch_once_arm(give_up, GIVE_UP_NS);
}

static void end(void)
{
    ft_kafka_consumer_free(consumer);
    ft_kafka_free(producer);
    ft_watch_free(give_up);
    if (cluster)
        rd_kafka_mock_cluster_destroy(cluster);
    if (host)
        rd_kafka_destroy(host);
    ft_loop_free(loop);
    consumer = NULL;
    producer = NULL;
    taken = errors = expected = 0;
    give_up = NULL;
    cluster = NULL;
    host = NULL;
    memset(seen, 0, sizeof(seen));
    waking = WAKES;
}

static void consume_of(const char *of)
{
    const struct ft_kafka_part parts[] = {{TOPIC, 0, false}, {TOPIC, 1, false}, {TOPIC, 2, false}};
    const struct ft_kafka_consumer_config config = {.brokers = of,
                                                    .client_id = "check",
                                                    .group = "check",
                                                    .parts = parts,
                                                    .part_count = PARTITIONS,
                                                    .on_message = on_message,
                                                    .on_error = on_error};
    char error[256];

    consumer = ft_kafka_consumer_new(loop, &config, error, sizeof(error));
    ck_assert_msg(consumer, "%s", error);
}

static void produce_to(const char *to)
{
    const struct ft_kafka_config config = {.brokers = to, .on_error = on_error};
    char error[256];

    producer = ft_kafka_new(loop, &config, error, sizeof(error));
    ck_assert_msg(producer, "%s", error);
}

static void send_from(unsigned first, unsigned count)
{
    char key[16] = "";

    for (unsigned i = first; i < first + count; i++) {
        const struct ft_kafka_outgoing m = {.topic = TOPIC,
                                            .key = key,
                                            .key_len = sizeof(key),
                                            .value = "x",
                                            .len = 1,
                                            .partition = (int32_t)(i % PARTITIONS)};

        snprintf(key, sizeof(key), "%u", i);
        ck_assert_int_eq(ft_kafka_send(producer, &m), 0);
    }
}

/* A broker that has just been made coordinator of a group answers so for a moment. librdkafka does
 * not ask it again. */
START_TEST(a_coordinator_that_is_not_ready_is_asked_again)
{
    begin();
    rd_kafka_mock_push_request_errors(cluster, OFFSET_FETCH, 2, RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
                                      RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE);
    produce_to(brokers);
    consume_of(brokers);
    send_from(0, SOME);
    snprintf(text, sizeof(text), "Failed to fetch committed offset");
    wanted = SOME;
    ck_assert_int_eq(ft_loop_run(loop), 0);
    ck_assert_uint_ge(errors, 2);
    end();
}
END_TEST

/* None of the messages comes twice. */
START_TEST(a_wakeup_that_is_lost_costs_a_second)
{
    waking = NEVER_WAKES;
    begin();
    produce_to(brokers);
    consume_of(brokers);
    send_from(0, SOME / 2);
    wanted = SOME / 2;
    ck_assert_int_eq(ft_loop_run(loop), 0);
    wanted = SOME;
    send_from(SOME / 2, SOME - SOME / 2);
    ck_assert_int_eq(ft_loop_run(loop), 0);
    end();
}
END_TEST

/* Errors that are there before we can be woken: nobody listens at the port. */
static void expect_first_error(void (*open)(const char *))
{
    waking = WAKES_LATE;
    begin();
    expected = 1;
    text[0] = '\0';
    open("127.0.0.1:1");
    ck_assert_int_eq(ft_loop_run(loop), 0);
    ck_assert_str_eq(last_key, "kafka.brokers");
    end();
}

START_TEST(a_consumer_sees_what_was_there_before_it_could_be_woken)
{
    expect_first_error(consume_of);
}
END_TEST

START_TEST(a_producer_sees_what_was_there_before_it_could_be_woken)
{
    expect_first_error(produce_to);
}
END_TEST

START_TEST(an_error_names_its_setting)
{
    char line[256];

    ck_assert_str_eq(ft_kafka_advise(RD_KAFKA_RESP_ERR__SSL, "why", line, sizeof(line)),
                     "kafka.properties");
    ck_assert_str_eq(line, "why: check ssl.* in kafka.properties");
    ck_assert_ptr_null(ft_kafka_advise(RD_KAFKA_RESP_ERR__TIMED_OUT, "why", line, sizeof(line)));
    ck_assert_str_eq(line, "why");
    ck_assert_int_eq(ft_kafka_problem_of(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)->fate,
                     FT_KAFKA_FORBIDDEN);
    ck_assert_int_eq(ft_kafka_problem_of(RD_KAFKA_RESP_ERR__TIMED_OUT)->fate, FT_KAFKA_FAILED);
}
END_TEST

FT_UNIT_MAIN("kafka_consumer", a_coordinator_that_is_not_ready_is_asked_again,
             a_wakeup_that_is_lost_costs_a_second,
             a_consumer_sees_what_was_there_before_it_could_be_woken,
             a_producer_sees_what_was_there_before_it_could_be_woken, an_error_names_its_setting)
#endif
