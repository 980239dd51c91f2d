// SPDX-License-Identifier: Apache-2.0
/* Against the brokers that librdkafka itself brings for tests, in this process: they answer what a
 * test wants them to. What wakes our loop is held back, too. */
#include "config.h"

#include "lib/io/kafka/consumer.h"

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
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/io/kafka/errors.h"
#include "lib/io/kafka/producer.h"

#define TOPIC           "check.v1"
#define PARTITIONS      3
#define FETCH           1 /* Kafka's numbers of requests */
#define OFFSET_FETCH    9
#define GIVE_UP_NS      (INT64_C(240) * 1000000000)
#define SOME            20

/* More than may be read ahead. */
#define MUCH_PARTITIONS 16
#define MUCH_EACH       48
#define MUCH_MESSAGE    100000
#define MUCH_READ       (8 << 20)

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
static bool seen[SOME], busy;
static unsigned asked;

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

/* Until all is there to be read, and it was asked often. */
static bool is_busy(void *arg)
{
    struct ft_kafka_stats s;

    (void)arg;
    if (!busy)
        return false;
    ft_kafka_stats(producer, &s);
    if (++asked >= SOME && s.delivered == SOME)
        ft_loop_exit(loop, 0);
    return true;
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
                                                    .busy = is_busy,
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

START_TEST(nothing_is_read_while_we_are_busy)
{
    begin();
    busy = true;
    produce_to(brokers);
    consume_of(brokers);
    send_from(0, SOME);
    ck_assert_int_eq(ft_loop_run(loop), 0);
    ck_assert_uint_eq(taken, 0);
    busy = false;
    wanted = SOME;
    ck_assert_int_eq(ft_loop_run(loop), 0);
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

/* How far was read cannot be said to them: it is read again by the next start. */
START_TEST(who_ends_without_brokers_ends)
{
    begin();
    produce_to(brokers);
    consume_of(brokers);
    send_from(0, SOME);
    wanted = SOME;
    ck_assert_int_eq(ft_loop_run(loop), 0);
    rd_kafka_mock_broker_set_down(cluster, 1);
    ft_kafka_consumer_free(consumer);
    consumer = NULL;
    end();
}
END_TEST

static bool holding;
static unsigned held_of[PARTITIONS], ends_of[PARTITIONS];
static int64_t next_of[PARTITIONS];

/* Of the first message of each partition the others wait behind it. */
static void hold_message(void *arg, const char *topic, const struct ft_kafka_message *m)
{
    ck_assert_int_eq(m->offset, next_of[m->partition]);
    if (holding) {
        ck_assert_uint_eq(held_of[m->partition]++, 0);
        ft_kafka_consumer_hold(consumer);
        if (++taken == PARTITIONS)
            ft_loop_exit(loop, 0);
        return;
    }
    next_of[m->partition]++;
    on_message(arg, topic, m);
}

static void on_end(void *arg, const char *topic, int32_t partition)
{
    (void)arg;
    ck_assert_str_eq(topic, TOPIC);
    ends_of[partition]++;
    if (errors && ends_of[partition] && !wanted)
        ft_loop_exit(loop, 0);
}

static void consume_held(void)
{
    const struct ft_kafka_part parts[] = {{TOPIC, 0, true}, {TOPIC, 1, true}, {TOPIC, 2, true}};
    const struct ft_kafka_consumer_config config = {.brokers = brokers,
                                                    .client_id = "check",
                                                    .group = "check",
                                                    .parts = parts,
                                                    .part_count = PARTITIONS,
                                                    .on_message = hold_message,
                                                    .on_end = on_end,
                                                    .on_error = on_error};
    char error[256];

    consumer = ft_kafka_consumer_new(loop, &config, error, sizeof(error));
    ck_assert_msg(consumer, "%s", error);
}

/* It comes once more, in its place, and what is freed with it is not lost to the next one. */
START_TEST(a_message_that_is_held_comes_again)
{
    for (unsigned freed = 0; freed < 2; freed++) {
        memset(held_of, 0, sizeof(held_of));
        memset(next_of, 0, sizeof(next_of));
        memset(ends_of, 0, sizeof(ends_of));
        begin();
        produce_to(brokers);
        send_from(0, SOME);
        ck_assert_int_eq(ft_kafka_flush(producer, GIVE_UP_NS), 0);
        consume_held();
        holding = true;
        ck_assert_int_eq(ft_loop_run(loop), 0);
        if (freed) {
            ft_kafka_consumer_free(consumer);
            consume_held();
        }
        holding = false;
        taken = 0;
        wanted = SOME;
        ft_kafka_consumer_release(consumer);
        /* One of each at once; what follows comes from the brokers. */
        ck_assert_uint_eq(taken, freed ? 0 : PARTITIONS);
        ck_assert_int_eq(ft_loop_run(loop), 0);
        end();
    }
}
END_TEST

/* Who waits for its end is not left waiting, and it is read as soon as it can be. */
START_TEST(a_partition_that_cannot_be_read_is_at_its_end)
{
    memset(next_of, 0, sizeof(next_of));
    memset(ends_of, 0, sizeof(ends_of));
    begin();
    produce_to(brokers);
    send_from(0, SOME);
    ck_assert_int_eq(ft_kafka_flush(producer, GIVE_UP_NS), 0);
    rd_kafka_mock_push_request_errors(cluster, FETCH, 1,
                                      RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    snprintf(text, sizeof(text), "topic '" TOPIC "', partition ");
    wanted = 0;
    consume_held();
    ck_assert_int_eq(ft_loop_run(loop), 0);
    ck_assert_uint_ge(errors, 1);
    wanted = SOME;
    while (taken < SOME)
        ck_assert_int_eq(ft_loop_run(loop), 0);
    end();
}
END_TEST

#ifndef __SANITIZE_ADDRESS__
/* Brokers in a process of their own, whose partitions are full; says where it is. What librdkafka's
 * brokers keep is 5 MiB a partition. */
static void host_much(int out)
{
    struct ft_kafka_outgoing m = {.topic = "much.v1", .len = MUCH_MESSAGE};
    struct ft_kafka_stats s;

    begin();
    rd_kafka_mock_topic_create(cluster, "much.v1", MUCH_PARTITIONS, 1);
    produce_to(brokers);
    m.value = calloc(1, MUCH_MESSAGE);
    for (int i = 0; i < MUCH_PARTITIONS * MUCH_EACH; i++) {
        m.partition = i % MUCH_PARTITIONS;
        if (ft_kafka_send(producer, &m) || ft_kafka_flush(producer, GIVE_UP_NS))
            _exit(1);
    }
    ft_kafka_stats(producer, &s);
    if (s.delivered != MUCH_PARTITIONS * MUCH_EACH ||
        write(out, brokers, strlen(brokers)) != (ssize_t)strlen(brokers))
        _exit(1);
    for (;;)
        pause();
}

static size_t resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long all, resident;

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%lu %lu", &all, &resident), 2);
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* Of a consumer whose loop stands still, by what the kernel says that this process has. */
static size_t read_ahead_of(const char *of)
{
    struct ft_kafka_part parts[MUCH_PARTITIONS];
    const struct ft_kafka_consumer_config config = {.brokers = of,
                                                    .client_id = "check",
                                                    .group = "check",
                                                    .parts = parts,
                                                    .part_count = MUCH_PARTITIONS,
                                                    .on_message = on_message,
                                                    .on_error = on_error};
    size_t before, most = 0;
    char error[256];

    for (int i = 0; i < MUCH_PARTITIONS; i++)
        parts[i] = (struct ft_kafka_part){"much.v1", i, false};
    loop = ft_loop_new();
    before = resident_bytes();
    consumer = ft_kafka_consumer_new(loop, &config, error, sizeof(error));
    ck_assert_msg(consumer, "%s", error);
    /* Until it reads no more: for two seconds, after it read much. */
    for (int still = 0; still < 20;) {
        size_t now = resident_bytes() - before;

        still = now > most || now < MUCH_READ ? 0 : still + 1;
        most = now > most ? now : most;
        ck_assert_uint_lt(most, FT_KAFKA_CONSUMER_BYTES);
        usleep(100000);
    }
    ft_kafka_consumer_free(consumer);
    consumer = NULL;
    ft_loop_free(loop);
    return most;
}
#endif

/* AddressSanitizer keeps what is freed: there the kernel's number says nothing. */
START_TEST(what_is_read_ahead_is_bounded)
{
#ifndef __SANITIZE_ADDRESS__
    char of[256] = "";
    int ends[2];
    pid_t child;

    ck_assert_int_eq(pipe(ends), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        host_much(ends[1]);
    close(ends[1]);
    ck_assert_int_gt(read(ends[0], of, sizeof(of) - 1), 0);
    printf("%zu of %zu bytes are read ahead\n", read_ahead_of(of),
           (size_t)MUCH_PARTITIONS * MUCH_EACH * MUCH_MESSAGE);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ends[0]);
#endif
}
END_TEST

static void on_spin(void *arg)
{
    struct ft_kafka_stats s;

    (void)arg;
    ft_kafka_stats(producer, &s);
    if (s.pending == 0)
        ft_loop_exit(loop, 0);
}

static void wait_for_reports(void)
{
    struct ft_watch *spin = ft_watch_timer(loop, 10000000, on_spin, NULL);

    ck_assert_int_eq(ft_loop_run(loop), 0);
    ft_watch_free(spin);
}

/* Those that come when it is known to be missing as those that showed it; a partition likewise. */
START_TEST(a_missing_topic_is_its_own_reason)
{
    static const char *const properties[] = {"topic.metadata.propagation.max.ms=0", NULL};
    struct ft_kafka_config config = {.on_error = on_error, .properties = properties};
    struct ft_kafka_outgoing m = {.topic = "none.v1", .value = "x", .len = 1, .partition = -1};
    struct ft_kafka_stats s;
    char error[256];
    int rc;

    begin();
    snprintf(text, sizeof(text), "a message was lost");
    rd_kafka_mock_topic_set_error(cluster, m.topic, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    config.brokers = brokers;
    producer = ft_kafka_new(loop, &config, error, sizeof(error));
    ck_assert_msg(producer, "%s", error);
    /* Its list of topics may be there before the first message. */
    rc = ft_kafka_send(producer, &m);
    ck_assert_msg(rc == 0 || rc == -ENOENT, "%d", rc);
    wait_for_reports();
    for (int i = 0; i < SOME; i++)
        ck_assert_int_eq(ft_kafka_send(producer, &m), -ENOENT);
    ck_assert_str_eq(last_key, "kafka.topic_prefix");
    m.topic = TOPIC;
    m.partition = 0;
    ck_assert_int_eq(ft_kafka_send(producer, &m), 0);
    wait_for_reports();
    m.partition = PARTITIONS;
    ck_assert_int_eq(ft_kafka_send(producer, &m), -ENOENT);
    ck_assert_str_eq(last_key, "kafka.partitions");
    ft_kafka_stats(producer, &s);
    ck_assert_uint_eq(s.no_topic, 1 + SOME + 1);
    ck_assert_uint_eq(s.refused, 0);
    ck_assert_uint_eq(s.delivered, 1);
    ck_assert_uint_eq(s.taken, s.delivered + s.no_topic);
    end();
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

FT_UNIT_MAIN("kafka_consumer", who_ends_without_brokers_ends,
             a_coordinator_that_is_not_ready_is_asked_again, a_message_that_is_held_comes_again,
             a_partition_that_cannot_be_read_is_at_its_end, a_wakeup_that_is_lost_costs_a_second,
             nothing_is_read_while_we_are_busy,
             a_consumer_sees_what_was_there_before_it_could_be_woken,
             a_producer_sees_what_was_there_before_it_could_be_woken,
             a_missing_topic_is_its_own_reason, what_is_read_ahead_is_bounded,
             an_error_names_its_setting)
#endif
