// SPDX-License-Identifier: Apache-2.0
/* Messages on disk while no broker takes them: what stays, where it finds no room, and what is said
 * of both. Nobody listens at the port. */
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
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MESSAGES 5
#define BYTES    1000
#define WEIGHT   7

static char folder[64], error[512], said[512];
static struct ft_loop *loop;
static struct ft_kafka *producer;

static void on_error(void *arg, const char *key, const char *text)
{
    (void)arg;
    if (key && strcmp(key, "kafka.spool") == 0)
        snprintf(said, sizeof(said), "%s", text);
}

static void produce(void)
{
    const struct ft_kafka_config config = {.brokers = "127.0.0.1:1",
                                           .on_error = on_error,
                                           .spool = folder,
                                           .spool_bytes_max = 1u << 20,
                                           .spool_after_ns = 1,
                                           .message_bytes_max = 4096};

    producer = ft_kafka_new(loop, &config, error, sizeof(error));
}

static void begin(void)
{
    snprintf(folder, sizeof(folder), "/tmp/check_kafka_spool.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    *said = '\0';
    loop = ft_loop_new();
    produce();
    ck_assert_msg(producer, "%s", error);
}

static void end(void)
{
    DIR *dir = opendir(folder);
    char path[512];

    for (const struct dirent *e; (e = readdir(dir));) {
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.')
            ck_assert_int_eq(unlink(path), 0);
    }
    closedir(dir);
    rmdir(folder);
    ft_loop_free(loop);
}

static int send_one(const char *topic)
{
    static const char value[BYTES] = "x";
    const struct ft_kafka_outgoing m = {.topic = topic,
                                        .key = "k",
                                        .key_len = 1,
                                        .value = value,
                                        .len = sizeof(value),
                                        .partition = -1,
                                        .weight = WEIGHT};

    return ft_kafka_send(producer, &m);
}

/* Over a restart, with what their records count. */
START_TEST(what_no_broker_took_stays_and_is_said)
{
    struct ft_kafka_stats s;
    char expected[256];

    begin();
    for (int i = 0; i < MESSAGES; i++)
        ck_assert_int_eq(send_one("spool.v1"), 0);
    ck_assert_int_eq(ft_kafka_flush(producer, 1000000), 0);
    ft_kafka_stats(producer, &s);
    ck_assert_uint_eq(s.spool_kept, MESSAGES);
    ck_assert_uint_ge(s.spool_bytes, MESSAGES * BYTES);
    ck_assert_uint_eq(s.weight_pending + s.weight_spooled, MESSAGES * WEIGHT);
    ck_assert_uint_eq(s.delivered, 0);
    ft_kafka_free(producer);
    snprintf(expected, sizeof(expected),
             "%d messages stay in the spool '%s' for the next start, 0 did not fit and are lost",
             MESSAGES, folder);
    ck_assert_ptr_nonnull(strstr(said, expected));
    produce();
    ck_assert_msg(producer, "%s", error);
    ft_kafka_stats(producer, &s);
    ck_assert_uint_eq(s.found, MESSAGES);
    ck_assert_uint_eq(s.taken, 0);
    ft_kafka_free(producer);
    end();
}
END_TEST

/* Files may not grow beyond three messages: those are kept, the others counted as the disk's. */
START_TEST(a_full_disk_is_counted_and_said)
{
    struct rlimit little = {3 * (BYTES + 100), RLIM_INFINITY},
                  much = {RLIM_INFINITY, RLIM_INFINITY};
    int rcs[MESSAGES];
    struct ft_kafka_stats s;
    uint64_t refused = 0;

    begin();
    ck_assert_int_eq(send_one("spool.v1"), 0);
    ck_assert_int_eq(ft_kafka_flush(producer, 1000000), 0);
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &little), 0);
    for (int i = 0; i < MESSAGES; i++) {
        rcs[i] = send_one("spool.v1");
        ft_kafka_flush(producer, 1000000);
    }
    ft_kafka_stats(producer, &s);
    ft_kafka_free(producer);
    /* What Check writes is not to be cut. */
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &much), 0);
    for (int i = 0; i < MESSAGES; i++)
        refused += rcs[i] != 0;
    ck_assert_uint_le(s.spool_kept, 4);
    ck_assert_uint_ge(s.spool_kept, 2);
    /* Each is somewhere. */
    ck_assert_uint_eq(s.spool_disk, refused);
    ck_assert_uint_eq(s.taken, 1 + MESSAGES);
    ck_assert_uint_eq(s.pending + s.spooled + s.spool_disk, s.taken);
    ck_assert_ptr_nonnull(strstr(said, "did not fit and are lost"));
    end();
}
END_TEST

/* No topic can have such a name, no broker takes such a message. */
START_TEST(what_cannot_be_sent_is_not_kept)
{
    struct ft_kafka_outgoing m = {.topic = "spool.v1", .value = "x", .len = 1, .partition = -1};
    struct ft_kafka_stats s;

    begin();
    ck_assert_int_eq(send_one("spool v1"), -EINVAL);
    m.key_len = UINT16_MAX + 1;
    m.key = calloc(1, m.key_len);
    ck_assert_int_eq(ft_kafka_send(producer, &m), -EINVAL);
    free((void *)(uintptr_t)m.key);
    m.key = NULL;
    m.key_len = 0;
    m.len = 5u << 20;
    m.value = calloc(1, m.len);
    ck_assert_int_eq(ft_kafka_send(producer, &m), -EMSGSIZE);
    free((void *)(uintptr_t)m.value);
    ft_kafka_stats(producer, &s);
    ck_assert_uint_eq(s.taken, 3);
    ck_assert_uint_eq(s.refused, 2);
    ck_assert_uint_eq(s.too_large, 1);
    ck_assert_uint_eq(s.spool_kept + s.pending, 0);
    ft_kafka_free(producer);
    ck_assert_str_eq(said, "");
    end();
}
END_TEST

START_TEST(a_spool_that_cannot_be_opened_is_said)
{
    begin();
    ft_kafka_free(producer);
    end();
    loop = ft_loop_new();
    snprintf(folder, sizeof(folder), "/nonexistent/spool");
    produce();
    ck_assert_ptr_null(producer);
    ck_assert_ptr_nonnull(strstr(error, "/nonexistent/spool"));
    ft_loop_free(loop);
}
END_TEST

FT_UNIT_MAIN("kafka_spool", what_no_broker_took_stays_and_is_said, a_full_disk_is_counted_and_said,
             what_cannot_be_sent_is_not_kept, a_spool_that_cannot_be_opened_is_said)
#endif
