// SPDX-License-Identifier: Apache-2.0
/* The way over Kafka: what envelopes may say, what settings may be, and where records end without a
 * broker. */
#include "config.h"

#include "lib/topics/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/diag.h"
#include "lib/topics/envelope.h"
#include "proto/record.h"
#include "tests/unit/unit.h"

#define RECORDS 3

static uint8_t batch_bytes[] = "x";

static Fabrictrace__Envelope sound(void)
{
    Fabrictrace__Envelope e = FABRICTRACE__ENVELOPE__INIT;

    e.program = (char *)(uintptr_t) "fabrictrace-agent";
    e.source = (char *)(uintptr_t) "h1";
    e.has_boot_id = e.has_sequence = e.has_record_last = e.has_records = e.has_partitions = true;
    e.has_batch = true;
    e.sequence = 7;
    e.record_last = 20;
    e.records = 20;
    e.partitions = FT_INGEST_PARTITIONS_MAX;
    e.batch.data = batch_bytes;
    e.batch.len = 1;
    return e;
}

static bool is_read(const Fabrictrace__Envelope *e)
{
    Fabrictrace__Envelope *got;
    struct ft_writer w;

    ft_writer_init(&w, 4096);
    ck_assert_int_eq(ft_envelope_write(&w, e), 0);
    got = ft_envelope_read(w.bytes, w.len);
    if (got)
        ck_assert_uint_eq(got->sequence, e->sequence);
    ft_envelope_free(got);
    ft_writer_free(&w);
    return got != NULL;
}

START_TEST(what_an_envelope_says_goes_together)
{
    Fabrictrace__Envelope e = sound();

    ck_assert(is_read(&e));
#define REFUSED(change)                                                                            \
    do {                                                                                           \
        e = sound();                                                                               \
        change;                                                                                    \
        ck_assert_msg(!is_read(&e), "%s", #change);                                                \
    } while (0)
    REFUSED(e.has_boot_id = false);
    REFUSED(e.has_batch = false);
    REFUSED(e.sequence = 0);
    REFUSED(e.sequence = UINT64_C(1) << 53);
    REFUSED(e.record_last = UINT64_C(1) << 53);
    REFUSED(e.records = 21);
    REFUSED(e.records = e.record_last = FT_ENVELOPE_RECORDS_MAX + 1);
    REFUSED(e.partitions = 0);
    REFUSED(e.partitions = FT_INGEST_PARTITIONS_MAX + 1);
    REFUSED(e.program = (char *)(uintptr_t) "two words");
    REFUSED(e.source = (char *)(uintptr_t) "");
    REFUSED(e.source = (char *)(uintptr_t) "h\xc3\xa4");
    REFUSED(e.source = NULL);
#undef REFUSED
    ck_assert_ptr_null(ft_envelope_read(batch_bytes, 1));
}
END_TEST

START_TEST(an_envelope_that_is_too_large_is_not_written)
{
    const Fabrictrace__Envelope e = sound();
    struct ft_writer w;

    ft_writer_init(&w, 16);
    ck_assert_int_eq(ft_envelope_write(&w, &e), -ENOSPC);
    ft_writer_free(&w);
}
END_TEST

#ifdef HAVE_KAFKA
static char *linger[] = {(char *)(uintptr_t) "linger.ms=5", NULL};

static struct ft_topic_settings settings(void)
{
    return (struct ft_topic_settings){.brokers = (char *)(uintptr_t) "127.0.0.1:1",
                                      .partitions = 4,
                                      .message_timeout_ns = INT64_C(500000000),
                                      .properties = {linger, 1}};
}

/* "": nothing is complained of. */
static void expect_complaint(const struct ft_topic_settings *s, const char *text)
{
    struct ft_diag *diag = ft_diag_new();

    ft_topic_settings_check(s, NULL, diag);
    ck_assert_uint_eq(ft_diag_count(diag), *text ? 1 : 0);
    if (*text)
        ck_assert_msg(strstr(ft_diag_text(diag, 0), text) != NULL, "%s", ft_diag_text(diag, 0));
    ft_diag_free(diag);
}

START_TEST(what_is_wrong_is_said_by_its_key)
{
    char *unknown[] = {(char *)(uintptr_t) "no.such=1", NULL};
    char *missing[] = {(char *)(uintptr_t) "sasl.password=/nonexistent/password", NULL};
    char *together[] = {(char *)(uintptr_t) "enable.idempotence=true", (char *)(uintptr_t) "acks=1",
                        NULL};
    const struct ft_sender_config sender = {.program = "check", .source_id = "h1"};
    struct ft_sender_transport transport = {.self = NULL};
    struct ft_topic_settings s = settings();
    struct ft_loop *loop = ft_loop_new();

    expect_complaint(&s, "");
    s.properties = (struct ft_strings){unknown, 1};
    expect_complaint(&s, "key 'kafka.properties.no.such': ");
    s.brokers = NULL;
    expect_complaint(&s, "");
    s = settings();
    s.secrets = (struct ft_strings){missing, 1};
    expect_complaint(&s, "key 'kafka.secrets.sasl.password': ");
    ck_assert_int_eq(ft_topic_settings_open(&s, NULL, loop, &sender, &transport), -ENOENT);
    /* What is wrong together alone. */
    s = settings();
    s.properties = (struct ft_strings){together, 2};
    expect_complaint(&s, "key 'kafka.brokers': ");
    ck_assert_int_eq(ft_topic_settings_open(&s, NULL, loop, &sender, &transport), -EINVAL);
    ck_assert_ptr_null(transport.self);
    ft_loop_free(loop);
}
END_TEST

/* Without a word of the brokers: it would not be seen before records are missing. */
START_TEST(what_could_not_send_is_said)
{
    static const struct {
        const char *brokers, *text;
    } brokers[] = {
        {"", "it names no broker"},
        {" , ", "it names no broker"},
        {"k1:9092,k2:99092", "'k2:99092' is not HOST:PORT"},
        {"k1:0", "'k1:0' is not HOST:PORT"},
        {"k1:", "'k1:' is not HOST:PORT"},
        {"k1:kafka", "'k1:kafka' is not HOST:PORT"},
        {":9092", "':9092' is not HOST:PORT"},
        {"k1", ""},
        {"k1:9092, k2:9092", ""},
        {"[fd00::1]:65535,fd00::1,10.0.0.1:1", ""},
        {"sasl_ssl://k1:9093", ""},
    };
    char prefix[256];
    struct ft_topic_settings s;

    for (size_t i = 0; i < sizeof(brokers) / sizeof(brokers[0]); i++) {
        s = settings();
        s.brokers = (char *)(uintptr_t)brokers[i].brokers;
        expect_complaint(&s, brokers[i].text);
    }
    s = settings();
    s.topic_prefix = (char *)(uintptr_t) "lab 1.";
    expect_complaint(&s, "key 'kafka.topic_prefix': 'lab 1.': names of topics have ");
    s.topic_prefix = prefix;
    snprintf(prefix, sizeof(prefix), "%0223d", 0);
    expect_complaint(&s, "");
    snprintf(prefix, sizeof(prefix), "%0224d", 0);
    expect_complaint(&s, "key 'kafka.topic_prefix': longer than 223 characters");
    s = settings();
    s.spool = (char *)(uintptr_t) "/nonexistent/agent.spool";
    expect_complaint(&s, "key 'kafka.spool': '/nonexistent': No such file or directory");
    s.spool = (char *)(uintptr_t) "/dev/null";
    expect_complaint(&s, "key 'kafka.spool': '/dev/null' is not a folder");
}
END_TEST

/* A reload opens another way where one of them changed. */
START_TEST(each_setting_makes_a_difference)
{
    const struct ft_topic_settings a = settings();
    struct ft_topic_settings b = settings();

    ck_assert(ft_topic_settings_equal(&a, &b));
#define DIFFERS(change)                                                                            \
    do {                                                                                           \
        b = settings();                                                                            \
        change;                                                                                    \
        ck_assert_msg(!ft_topic_settings_equal(&a, &b), "%s", #change);                            \
        ck_assert_msg(!ft_topic_settings_equal(&b, &a), "%s", #change);                            \
    } while (0)
    DIFFERS(b.brokers = (char *)(uintptr_t) "127.0.0.1:2");
    DIFFERS(b.brokers = NULL);
    DIFFERS(b.topic_prefix = (char *)(uintptr_t) "lab.");
    DIFFERS(b.partitions++);
    DIFFERS(b.message_timeout_ns++);
    DIFFERS(b.spool = (char *)(uintptr_t) "/tmp/spool");
    DIFFERS(b.spool_bytes++);
    DIFFERS(b.spool_after_ns++);
    DIFFERS(b.spool_full++);
    DIFFERS(b.properties.count = 0);
    DIFFERS(b.secrets = a.properties);
#undef DIFFERS
}
END_TEST

static struct ft_sender_transport way;

static void look(void *arg)
{
    struct ft_sender_stats s;

    way.stats(way.self, &s);
    if (s.payloads_queued == 0)
        ft_loop_exit(arg, 0);
}

static void expect_stats(uint64_t queued, uint64_t dropped)
{
    struct ft_sender_stats s;

    way.stats(way.self, &s);
    ck_assert_uint_eq(s.records, RECORDS);
    ck_assert_uint_eq(s.records_queued, queued);
    ck_assert_uint_eq(s.records_dropped, dropped);
    ck_assert_uint_eq(s.records_acked, 0);
    ck_assert_uint_eq(s.payloads, 1);
    ck_assert_uint_eq(s.payloads_dropped, dropped > 0);
    ck_assert(!s.connected);
}

/* Nobody listens at the port. */
START_TEST(what_no_broker_takes_in_time_is_dropped_and_counted)
{
    const struct ft_sender_config sender = {.program = "check", .source_id = "h1", .boot_id = 1};
    const struct ft_topic_settings s = settings();
    struct ft_loop *loop = ft_loop_new();
    Fabrictrace__Record records[RECORDS], *list[RECORDS];
    Fabrictrace__Loss losses[RECORDS];
    struct ft_writer batch;
    struct ft_watch *timer;

    for (int i = 0; i < RECORDS; i++) {
        fabrictrace__loss__init(&losses[i]);
        fabrictrace__record__init(&records[i]);
        records[i].kind_case = FABRICTRACE__RECORD__KIND_LOSS;
        records[i].loss = &losses[i];
        list[i] = &records[i];
    }
    ft_writer_init(&batch, 4096);
    ck_assert_int_eq(ft_batch_pack(list, RECORDS, &batch), 0);
    ck_assert_int_eq(ft_topic_settings_open(&s, NULL, loop, &sender, &way), 0);
    ck_assert_int_eq(way.send(way.self, batch.bytes, batch.len, RECORDS), 0);
    expect_stats(RECORDS, 0);
    way.flush(way.self, 1000000);
    timer = ft_watch_timer(loop, 10000000, look, loop);
    ck_assert_int_eq(ft_loop_run(loop), 0);
    expect_stats(0, RECORDS);
    ft_watch_free(timer);
    way.free(way.self);
    ft_writer_free(&batch);
    ft_loop_free(loop);
}
END_TEST
#define KAFKA_TESTS                                                                                \
    , what_is_wrong_is_said_by_its_key, what_could_not_send_is_said,                               \
        each_setting_makes_a_difference, what_no_broker_takes_in_time_is_dropped_and_counted
#else
#define KAFKA_TESTS
#endif

FT_UNIT_MAIN("topics", what_an_envelope_says_goes_together,
             an_envelope_that_is_too_large_is_not_written KAFKA_TESTS)
