// SPDX-License-Identifier: Apache-2.0
/* Members of a consumer group over the brokers that librdkafka itself brings for tests: they speak
 * Kafka's group protocol. */
#include "config.h"

#include "lib/io/kafka/group.h"

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
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "lib/io/kafka/producer.h"

#define TOPIC        "flows.v1"
#define PARTITIONS   6
#define MESSAGES     60
#define MEMBERS      3
#define OFFSET_FETCH 9 /* Kafka's number of the request */
#define SLOW_US      500000
#define GIVE_UP_NS   (INT64_C(240) * 1000000000)

struct member {
    struct ft_kafka_consumer *consumer;
    bool has[PARTITIONS];
    int64_t from[PARTITIONS], until[PARTITIONS];
    unsigned count, came, went;
};

static struct ft_loop *loop;
static rd_kafka_t *host;
static rd_kafka_mock_cluster_t *cluster;
static struct ft_kafka *producer;
static struct member members[MEMBERS];
static struct ft_watch *give_up, *look;
static unsigned times[2 * MESSAGES], taken;
static bool (*wanted)(void);

/* Brokers that take long to say where partitions begin, until somebody leaves and a while after it.
 */
static atomic_bool slow, leaving;
static atomic_uint asked;

rd_kafka_resp_err_t __real_rd_kafka_query_watermark_offsets(rd_kafka_t *client, const char *topic,
                                                            int32_t partition, int64_t *low,
                                                            int64_t *high, int timeout_ms);
rd_kafka_resp_err_t __wrap_rd_kafka_query_watermark_offsets(rd_kafka_t *client, const char *topic,
                                                            int32_t partition, int64_t *low,
                                                            int64_t *high, int timeout_ms);

/* The linker puts it in the place of librdkafka's own. */
rd_kafka_resp_err_t __wrap_rd_kafka_query_watermark_offsets(rd_kafka_t *client, const char *topic,
                                                            int32_t partition, int64_t *low,
                                                            int64_t *high, int timeout_ms)
{
    asked++;
    while (slow && !leaving)
        usleep(1000);
    if (slow)
        usleep(SLOW_US);
    return __real_rd_kafka_query_watermark_offsets(client, topic, partition, low, high, timeout_ms);
}

static void on_give_up(void *arg)
{
    (void)arg;
    ft_loop_exit(loop, 1);
}

static void on_look(void *arg)
{
    (void)arg;
    if (wanted())
        ft_loop_exit(loop, 0);
}

static void until(bool (*condition)(void))
{
    wanted = condition;
    ck_assert_int_eq(ft_loop_run(loop), 0);
}

static void on_owned(void *arg, const struct ft_kafka_owned *list, size_t count)
{
    struct member *m = arg;

    for (size_t i = 0; i < count; i++) {
        ck_assert(!m->has[list[i].partition]);
        m->has[list[i].partition] = true;
        m->from[list[i].partition] = list[i].from;
        m->until[list[i].partition] = list[i].until;
    }
    m->count += count;
    m->came += count;
}

static void on_lost(void *arg, const int32_t *partitions, size_t count)
{
    struct member *m = arg;

    for (size_t i = 0; i < count; i++) {
        ck_assert(m->has[partitions[i]]);
        m->has[partitions[i]] = false;
    }
    m->count -= count;
    m->went += count;
}

static void on_message(void *arg, const char *topic, const struct ft_kafka_message *m)
{
    const struct member *member = arg;
    unsigned number = (unsigned)strtoul(m->key, NULL, 10);

    ck_assert_str_eq(topic, TOPIC);
    ck_assert(member->has[m->partition]);
    ck_assert_uint_lt(number, 2 * MESSAGES);
    times[number]++;
    taken++;
}

static void on_error(void *arg, const char *key, const char *text)
{
    (void)arg;
    (void)key;
    fprintf(stderr, "%s\n", text);
}

/* Reads back what came since so long ago. */
static void join_back(unsigned number, int64_t back_ns)
{
    struct member *m = &members[number];
    const struct ft_kafka_consumer_config config = {.brokers =
                                                        rd_kafka_mock_cluster_bootstraps(cluster),
                                                    .client_id = "check",
                                                    .group = "daemons",
                                                    .subscribe = TOPIC,
                                                    .back_ns = back_ns,
                                                    .on_message = on_message,
                                                    .on_owned = on_owned,
                                                    .on_lost = on_lost,
                                                    .on_error = on_error,
                                                    .arg = m};
    char error[256];

    *m = (struct member){.count = 0};
    m->consumer = ft_kafka_consumer_new(loop, &config, error, sizeof(error));
    ck_assert_msg(m->consumer, "%s", error);
}

static void join(unsigned number)
{
    join_back(number, INT64_C(60) * 1000000000);
}

static void leave(unsigned number)
{
    ft_kafka_consumer_free(members[number].consumer);
    members[number] = (struct member){.count = 0};
}

static void begin(void)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    struct ft_kafka_config config = {.on_error = on_error};
    char reason[256];

    loop = ft_loop_new();
    rd_kafka_conf_set_log_cb(conf, NULL);
    host = rd_kafka_new(RD_KAFKA_PRODUCER, conf, reason, sizeof(reason));
    cluster = rd_kafka_mock_cluster_new(host, 1);
    ck_assert_ptr_nonnull(cluster);
    rd_kafka_mock_topic_create(cluster, TOPIC, PARTITIONS, 1);
    give_up = ft_watch_once(loop, on_give_up, NULL);
    ft_watch_once_arm(give_up, GIVE_UP_NS);
    look = ft_watch_timer(loop, 10000000, on_look, NULL);
    config.brokers = rd_kafka_mock_cluster_bootstraps(cluster);
    producer = ft_kafka_new(loop, &config, reason, sizeof(reason));
    ck_assert_msg(producer, "%s", reason);
    memset(times, 0, sizeof(times));
    taken = 0;
}

static void end(void)
{
    for (unsigned i = 0; i < MEMBERS; i++)
        leave(i);
    ft_kafka_free(producer);
    ft_watch_free(look);
    ft_watch_free(give_up);
    rd_kafka_mock_cluster_destroy(cluster);
    rd_kafka_destroy(host);
    ft_loop_free(loop);
}

static void send_from(unsigned first)
{
    char key[16] = "";

    for (unsigned i = first; i < first + MESSAGES; i++) {
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

static bool one_has_all(void)
{
    return members[0].count == PARTITIONS;
}

static bool two_have_half(void)
{
    return members[0].count == PARTITIONS / 2 && members[1].count == PARTITIONS / 2;
}

static bool other_has_all(void)
{
    return members[1].count == PARTITIONS;
}

static bool first_part(void)
{
    return taken >= MESSAGES;
}

static bool both_parts(void)
{
    return taken >= 2 * MESSAGES;
}

static bool delivered(void)
{
    struct ft_kafka_stats s;

    ft_kafka_stats(producer, &s);
    return s.delivered == MESSAGES;
}

static bool all_delivered(void)
{
    struct ft_kafka_stats s;

    ft_kafka_stats(producer, &s);
    return s.delivered == 2 * MESSAGES;
}

/* A second member takes half of the partitions, no more than that changes hands, and each message
 * comes to one of them. */
START_TEST(who_comes_takes_its_share)
{
    begin();
    join(0);
    until(one_has_all);
    send_from(0);
    until(first_part);
    join(1);
    until(two_have_half);
    ck_assert_uint_eq(members[0].went, PARTITIONS / 2);
    ck_assert_uint_eq(members[1].came, PARTITIONS / 2);
    for (unsigned i = 0; i < PARTITIONS; i++)
        ck_assert_uint_ne(members[0].has[i], members[1].has[i]);
    send_from(MESSAGES);
    until(both_parts);
    for (unsigned i = 0; i < 2 * MESSAGES; i++)
        ck_assert_uint_eq(times[i], 1);
    end();
}
END_TEST

/* Those of one that leaves go to the other, from where it had read to. */
START_TEST(what_one_leaves_the_other_takes)
{
    begin();
    join(0);
    join(1);
    until(two_have_half);
    send_from(0);
    until(first_part);
    leave(0);
    until(other_has_all);
    for (unsigned i = 0; i < PARTITIONS; i++)
        ck_assert_int_eq(members[1].until[i] >= 0, 1);
    send_from(MESSAGES);
    until(both_parts);
    for (unsigned i = MESSAGES; i < 2 * MESSAGES; i++)
        ck_assert_uint_eq(times[i], 1);
    end();
}
END_TEST

/* It is said how far what it reads was there before. */
START_TEST(what_was_there_is_known)
{
    begin();
    send_from(0);
    until(delivered);
    join(0);
    until(one_has_all);
    for (unsigned i = 0; i < PARTITIONS; i++)
        ck_assert_int_eq(members[0].until[i], MESSAGES / PARTITIONS);
    end();
}
END_TEST

/* Brokers that cannot say at once how far was read, as those that have just become coordinators,
 * are asked again: nothing that came meanwhile is passed over. */
START_TEST(what_was_read_is_asked_for_again)
{
    static const rd_kafka_resp_err_t errors[] = {RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
                                                 RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE,
                                                 RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS};

    for (size_t e = 0; e < sizeof(errors) / sizeof(errors[0]); e++) {
        begin();
        join(0);
        until(one_has_all);
        send_from(0);
        until(first_part);
        leave(0);
        send_from(MESSAGES);
        until(all_delivered);
        rd_kafka_mock_push_request_errors(cluster, OFFSET_FETCH, 2, errors[e], errors[e]);
        join_back(0, 0);
        until(one_has_all);
        for (unsigned i = 0; i < PARTITIONS; i++)
            ck_assert_int_eq(members[0].from[i], MESSAGES / PARTITIONS);
        until(both_parts);
        end();
    }
}
END_TEST

/* Also while it asks where its partitions begin. */
START_TEST(who_leaves_at_once_ends)
{
    for (int i = 0; i < 3; i++) {
        begin();
        join(0);
        if (i > 0)
            until(one_has_all);
        if (i > 1)
            join(1);
        end();
    }
}
END_TEST

/* Nor does it wait for them. */
START_TEST(who_leaves_without_brokers_ends)
{
    begin();
    join(0);
    until(one_has_all);
    send_from(0);
    until(first_part);
    rd_kafka_mock_broker_set_down(cluster, 1);
    leave(0);
    end();
}
END_TEST

static bool one_asks(void)
{
    return asked > 0;
}

/* The answer on its way is waited for, and no other is asked for. */
START_TEST(who_leaves_asks_no_more)
{
    begin();
    asked = 0;
    slow = true;
    join(0);
    until(one_asks);
    leaving = true;
    leave(0);
    ck_assert_uint_lt(asked, PARTITIONS);
    slow = leaving = false;
    end();
}
END_TEST

FT_UNIT_MAIN("kafka_group", who_comes_takes_its_share, what_one_leaves_the_other_takes,
             what_was_there_is_known, what_was_read_is_asked_for_again, who_leaves_at_once_ends,
             who_leaves_asks_no_more, who_leaves_without_brokers_ends)
#endif
