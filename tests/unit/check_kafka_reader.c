// SPDX-License-Identifier: Apache-2.0
/* A topic read without a group, from the brokers that librdkafka itself brings for tests; and what
 * settings of Kafka are refused with. */
#include "config.h"

#include "lib/io/kafka/reader.h"

#include "tests/unit/unit.h"

#ifndef HAVE_KAFKA
int main(void)
{
    puts("built without librdkafka: nothing to test");
    return 0;
}
#else
#include <errno.h>
#include <fcntl.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/io/kafka/consumer.h"
#include "lib/io/kafka/producer.h"
#include "lib/io/kafka/properties.h"

#define TOPIC      "read.v1"
#define PARTITIONS 3
#define EACH       10
#define FETCH      1 /* Kafka's number of this request */
#define WAIT_MS    100
#define GIVE_UP_NS (INT64_C(240) * 1000000000)

static struct ft_loop *loop;
static rd_kafka_t *host;
static rd_kafka_mock_cluster_t *cluster;
static struct ft_kafka *producer;
static char error[512];

static void begin(void)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    struct ft_kafka_config config = {.on_error = NULL};

    loop = ft_loop_new();
    rd_kafka_conf_set_log_cb(conf, NULL);
    host = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof(error));
    cluster = rd_kafka_mock_cluster_new(host, 1);
    ck_assert_ptr_nonnull(cluster);
    rd_kafka_mock_topic_create(cluster, TOPIC, PARTITIONS, 1);
    config.brokers = rd_kafka_mock_cluster_bootstraps(cluster);
    producer = ft_kafka_new(loop, &config, error, sizeof(error));
    ck_assert_msg(producer, "%s", error);
}

static void end(void)
{
    ft_kafka_free(producer);
    rd_kafka_mock_cluster_destroy(cluster);
    rd_kafka_destroy(host);
    ft_loop_free(loop);
}

/* The brokers give a batch of each partition at a time: the one before the last has one for each
 * message, so that its end is reached long after the others'. */
static void send_to(int32_t partition, unsigned number)
{
    char key[16] = "";
    const struct ft_kafka_outgoing m = {.topic = TOPIC,
                                        .key = key,
                                        .key_len = sizeof(key),
                                        .value = "x",
                                        .len = 1,
                                        .partition = partition};

    snprintf(key, sizeof(key), "%u", number);
    ck_assert_int_eq(ft_kafka_send(producer, &m), 0);
    if (partition >= PARTITIONS - 2)
        ck_assert_int_eq(ft_kafka_flush(producer, GIVE_UP_NS), 0);
}

/* Not to the last partition. */
static void send_each(unsigned first)
{
    for (unsigned i = 0; i < EACH * (PARTITIONS - 1); i++)
        send_to((int32_t)(i / EACH), first + i);
}

static struct ft_kafka_reader *open_at(int64_t from_ms, bool follow)
{
    const struct ft_kafka_reader_config config = {.brokers =
                                                      rd_kafka_mock_cluster_bootstraps(cluster),
                                                  .topic = TOPIC,
                                                  .from_ms = from_ms,
                                                  .follow = follow,
                                                  .timeout_ns = GIVE_UP_NS};

    return ft_kafka_reader_new(&config, error, sizeof(error));
}

#define NUMBERS (4 * EACH * (PARTITIONS - 1))

/* Takes messages, each once, until all were read or so many; the reader's last word. */
static int read_all(struct ft_kafka_reader *reader, unsigned max, bool seen[], unsigned *count)
{
    struct ft_kafka_message m;
    int rc = 0;

    *count = 0;
    while (*count < max &&
           (rc = ft_kafka_reader_next(reader, WAIT_MS, &m, error, sizeof(error))) >= 0) {
        unsigned number = rc ? (unsigned)strtoul(m.key, NULL, 10) : 0;

        if (rc == 0)
            continue;
        ck_assert_uint_lt(number, NUMBERS);
        ck_assert(!seen[number]);
        ck_assert_int_gt(m.time_ms, 0);
        seen[number] = true;
        ++*count;
    }
    return rc;
}

START_TEST(what_was_there_is_read_and_then_it_ends)
{
    bool seen[NUMBERS] = {false};
    struct ft_kafka_reader *reader;
    unsigned count;

    begin();
    send_each(0);
    reader = open_at(FT_KAFKA_BEGINNING, false);
    ck_assert_msg(reader, "%s", error);
    /* What comes later is not. */
    send_each(EACH * (PARTITIONS - 1));
    ck_assert_int_eq(read_all(reader, NUMBERS, seen, &count), -ENODATA);
    ck_assert_uint_eq(count, EACH * (PARTITIONS - 1));
    ck_assert(seen[0] && seen[count - 1] && !seen[count]);
    ft_kafka_reader_free(reader);
    end();
}
END_TEST

START_TEST(what_comes_later_is_followed)
{
    struct ft_kafka_reader *reader;
    struct ft_kafka_message m;
    bool seen[NUMBERS] = {false};
    unsigned count, all = EACH * (PARTITIONS - 1);

    begin();
    send_each(0);
    reader = open_at(FT_KAFKA_END, true);
    ck_assert_msg(reader, "%s", error);
    ck_assert_int_eq(ft_kafka_reader_next(reader, WAIT_MS, &m, error, sizeof(error)), 0);
    send_each(all);
    ck_assert_int_eq(read_all(reader, all, seen, &count), 1);
    for (unsigned i = 0; i < 2 * all; i++)
        ck_assert_int_eq(seen[i], i >= all);
    ft_kafka_reader_free(reader);
    /* Nothing is to be read where it ends at once. */
    reader = open_at(FT_KAFKA_END, false);
    ck_assert_msg(reader, "%s", error);
    ck_assert_int_eq(read_all(reader, NUMBERS, seen, &count), -ENODATA);
    ck_assert_uint_eq(count, 0);
    ft_kafka_reader_free(reader);
    end();
}
END_TEST

/* Said once, and read on: nothing is lost by it, nor is more read than was there. */
START_TEST(brokers_that_refuse_for_a_moment_are_asked_again)
{
    struct ft_kafka_reader *reader;
    bool seen[NUMBERS] = {false};
    unsigned count = 0, sum = 0, refused = 0;
    int rc;

    begin();
    send_each(0);
    /* The first request may be for one partition alone: what it refuses has to be read, too. */
    send_to(PARTITIONS - 1, NUMBERS - 1);
    rd_kafka_mock_push_request_errors(cluster, FETCH, 1,
                                      RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    reader = open_at(FT_KAFKA_BEGINNING, false);
    ck_assert_msg(reader, "%s", error);
    /* It waits before it asks again, and finds these behind the others. */
    send_each(EACH * (PARTITIONS - 1));
    while ((rc = read_all(reader, NUMBERS, seen, &count)) == -EIO) {
        ck_assert_msg(strstr(error, "authorization") || strstr(error, "Authorization"), "%s",
                      error);
        refused++;
        sum += count;
    }
    ck_assert_int_eq(rc, -ENODATA);
    ck_assert_uint_ge(refused, 1);
    ck_assert_uint_eq(sum + count, EACH * (PARTITIONS - 1) + 1);
    ft_kafka_reader_free(reader);
    end();
}
END_TEST

START_TEST(a_topic_that_cannot_be_read_is_said)
{
    begin();
    rd_kafka_mock_topic_set_error(cluster, TOPIC, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    ck_assert_ptr_null(open_at(FT_KAFKA_BEGINNING, false));
    ck_assert_int_eq(errno, ENOENT);
    rd_kafka_mock_topic_set_error(cluster, TOPIC, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    ck_assert_ptr_null(open_at(FT_KAFKA_BEGINNING, false));
    ck_assert_int_eq(errno, EIO);
    ck_assert_str_eq(error, rd_kafka_err2str(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED));
    end();
}
END_TEST

START_TEST(nobody_at_the_port_is_said)
{
    const struct ft_kafka_reader_config config = {
        .brokers = "127.0.0.1:1", .topic = TOPIC, .timeout_ns = INT64_C(300000000)};

    ck_assert_ptr_null(ft_kafka_reader_new(&config, error, sizeof(error)));
    ck_assert_int_eq(errno, EHOSTUNREACH);
    ck_assert_str_eq(error, "no broker answers");
}
END_TEST

/* A setting, and what is said of it; the last one needs a client to be found. */
static const struct {
    const char *property, *text;
} wrong[] = {
    {"=x", "is not name=value"},
    {"linger", "property 'linger' is not name=value"},
    {"no.such.thing=1", "no.such.thing"},
    {"socket.timeout.ms=x", "socket.timeout.ms"},
    {"ssl.ca.location=/nonexistent/ca.pem", "ssl.ca.location"},
};
#define WRONG   (sizeof(wrong) / sizeof(wrong[0]))

/* 200 characters of a name. */
static const char *long_name(void)
{
    static char text[256];

    memset(text, 'x', 200);
    memcpy(text + 200, "=1", 3);
    return text;
}

static void expect_refused(const char *property, const char *text)
{
    const char *const properties[] = {"security.protocol=ssl", property, NULL};
    const struct ft_kafka_config sends = {.brokers = "127.0.0.1:1", .properties = properties};
    const struct ft_kafka_reader_config reads = {
        .brokers = "127.0.0.1:1", .topic = TOPIC, .properties = properties};
    const struct ft_kafka_consumer_config consumes = {.brokers = "127.0.0.1:1",
                                                      .client_id = "check",
                                                      .group = "check",
                                                      .subscribe = TOPIC,
                                                      .properties = properties};

    ck_assert_int_eq(ft_kafka_check(&sends, error, sizeof(error)), -EINVAL);
    ck_assert_msg(strstr(error, text) != NULL, "%s", error);
    *error = '\0';
    ck_assert_ptr_null(ft_kafka_new(loop, &sends, error, sizeof(error)));
    ck_assert_msg(strstr(error, text) != NULL, "%s", error);
    *error = '\0';
    ck_assert_int_eq(ft_kafka_consumer_check(&consumes, error, sizeof(error)), -EINVAL);
    ck_assert_msg(strstr(error, text) != NULL, "%s", error);
    *error = '\0';
    ck_assert_ptr_null(ft_kafka_consumer_new(loop, &consumes, error, sizeof(error)));
    ck_assert_msg(strstr(error, text) != NULL, "%s", error);
    *error = '\0';
    ck_assert_ptr_null(ft_kafka_reader_new(&reads, error, sizeof(error)));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_msg(strstr(error, text) != NULL, "%s", error);
}

START_TEST(settings_are_refused_with_their_name)
{
    loop = ft_loop_new();
    for (size_t i = 0; i < WRONG; i++) {
        expect_refused(wrong[i].property, wrong[i].text);
        /* Whether a file is there is not looked at where a setting is looked at alone. */
        ck_assert_int_eq(ft_kafka_check_property(wrong[i].property, error, sizeof(error)),
                         i == WRONG - 1 ? 0 : -EINVAL);
    }
    expect_refused(long_name(), "is not name=value");
    ft_loop_free(loop);
}
END_TEST

/* A daemon's properties are those of what it sends and of what it reads. */
START_TEST(a_limit_of_messages_is_no_limit_of_readers)
{
    static const char *const large[] = {"message.max.bytes=8388608", NULL};
    static const char *const less[] = {"fetch.max.bytes=500000", NULL};
    struct ft_kafka_consumer_config consumes = {.brokers = "127.0.0.1:1",
                                                .client_id = "check",
                                                .group = "check",
                                                .subscribe = TOPIC,
                                                .properties = large};
    struct ft_kafka_consumer *consumer;

    loop = ft_loop_new();
    ck_assert_int_eq(ft_kafka_consumer_check(&consumes, error, sizeof(error)), 0);
    consumer = ft_kafka_consumer_new(loop, &consumes, error, sizeof(error));
    ck_assert_msg(consumer, "%s", error);
    ft_kafka_consumer_free(consumer);
    /* Each alone is right: a start refuses them together, and so does the check. */
    consumes.properties = less;
    ck_assert_int_eq(ft_kafka_consumer_check(&consumes, error, sizeof(error)), -EINVAL);
    ck_assert_ptr_null(ft_kafka_consumer_new(loop, &consumes, error, sizeof(error)));
    ft_loop_free(loop);
}
END_TEST

/* The reason is that, and not memory. */
START_TEST(without_descriptors_it_is_said)
{
    const struct ft_kafka_config sends = {.brokers = "127.0.0.1:1"};
    const struct ft_kafka_consumer_config consumes = {
        .brokers = "127.0.0.1:1", .client_id = "check", .group = "check", .subscribe = TOPIC};
    struct rlimit limit;

    loop = ft_loop_new();
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 0;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_ptr_null(ft_kafka_new(loop, &sends, error, sizeof(error)));
    ck_assert_str_eq(error, "kafka: Too many open files");
    *error = '\0';
    ck_assert_ptr_null(ft_kafka_consumer_new(loop, &consumes, error, sizeof(error)));
    ck_assert_str_eq(error, "kafka: Too many open files");
    /* Sanitizers and coverage have files to open at the end. */
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ft_loop_free(loop);
}
END_TEST

/* What is said of them names their files and nothing of what is in them. */
START_TEST(secrets_come_from_files)
{
    static const char *const plain[] = {"linger.ms=5"};
    char path[] = "/tmp/check_kafka_reader.XXXXXX", item[64];
    const char *const secrets[] = {item};
    int fd = mkstemp(path);
    char **properties = NULL;

    ck_assert_int_eq(write(fd, "hush-hush\n", 10), 10);
    snprintf(item, sizeof(item), "sasl.password=%s", path);
    ck_assert_int_eq(
        ft_kafka_properties_read(plain, 1, secrets, 1, &properties, error, sizeof(error)), 0);
    ck_assert_str_eq(properties[0], "linger.ms=5");
    ck_assert_str_eq(properties[1], "sasl.password=hush-hush");
    ck_assert_ptr_null(properties[2]);
    ft_kafka_properties_free(properties);
    properties = NULL;
    ck_assert_int_eq(fchmod(fd, 0644), 0);
    ck_assert_int_eq(
        ft_kafka_properties_read(plain, 1, secrets, 1, &properties, error, sizeof(error)), -EACCES);
    ck_assert_msg(strstr(error, path) && !strstr(error, "hush"), "%s", error);
    unlink(path);
    close(fd);
    ck_assert_int_eq(
        ft_kafka_properties_read(plain, 1, secrets, 1, &properties, error, sizeof(error)), -ENOENT);
    snprintf(item, sizeof(item), "sasl.password");
    ck_assert_int_eq(
        ft_kafka_properties_read(plain, 1, secrets, 1, &properties, error, sizeof(error)), -EINVAL);
    ck_assert_str_eq(error, "kafka.secrets: 'sasl.password' is not name=FILE");
    ck_assert_ptr_null(properties);
}
END_TEST

FT_UNIT_MAIN("kafka_reader", what_was_there_is_read_and_then_it_ends, what_comes_later_is_followed,
             brokers_that_refuse_for_a_moment_are_asked_again, a_topic_that_cannot_be_read_is_said,
             nobody_at_the_port_is_said, settings_are_refused_with_their_name,
             a_limit_of_messages_is_no_limit_of_readers, without_descriptors_it_is_said,
             secrets_come_from_files)
#endif
