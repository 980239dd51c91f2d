// SPDX-License-Identifier: Apache-2.0
/* How far an aggregator with transactions says that it read what members said; Kafka is played by
 * the test, which stands where the consumers and the producer do. */
#include "config.h"

#include "daemon/group/reader.h"

#include "daemon/group/role.h"
#include "daemon/pipeline/stages.h"
#include "daemon/settings.h"
#include "lib/io/kafka/consumer.h"
#include "lib/io/kafka/producer.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define TOPIC     "fabrictrace.partial.v1"
#define WINDOW_MS INT64_C(10000)
#define NS_PER_MS INT64_C(1000000)

struct ft_kafka_consumer *__wrap_ft_kafka_consumer_new(struct ft_loop *loop,
                                                       const struct ft_kafka_consumer_config *c,
                                                       char *error, size_t error_bytes);
void __wrap_ft_kafka_consumer_free(struct ft_kafka_consumer *consumer);
int __wrap_ft_kafka_commit(struct ft_kafka *kafka, const struct ft_kafka_offsets *offsets,
                           size_t count);

static char consumers[2], producer; /* of which nothing but the address is used */
static struct ft_kafka_consumer_config shared;
static int64_t committed, note;

struct ft_kafka_consumer *__wrap_ft_kafka_consumer_new(struct ft_loop *loop,
                                                       const struct ft_kafka_consumer_config *c,
                                                       char *error, size_t error_bytes)
{
    (void)loop;
    (void)error;
    (void)error_bytes;
    if (!c->subscribe)
        return (struct ft_kafka_consumer *)&consumers[0];
    shared = *c;
    return (struct ft_kafka_consumer *)&consumers[1];
}

void __wrap_ft_kafka_consumer_free(struct ft_kafka_consumer *consumer)
{
    (void)consumer;
}

int __wrap_ft_kafka_commit(struct ft_kafka *kafka, const struct ft_kafka_offsets *offsets,
                           size_t count)
{
    ck_assert_ptr_eq(kafka, &producer);
    ck_assert_uint_eq(count, 2);
    ck_assert_ptr_eq(offsets[0].consumer, &consumers[1]);
    ck_assert_uint_eq(offsets[0].count, 1);
    committed = offsets[0].list[0].offset;
    note = offsets[0].list[0].note;
    return 0;
}

static struct ft_settings settings = {.window_ns = WINDOW_MS * NS_PER_MS,
                                      .grace_ns = 3000 * NS_PER_MS,
                                      .evidence_ns = 30000 * NS_PER_MS,
                                      .kafka_partitions = 1,
                                      .kafka_ingest = true,
                                      .sources_max = 10,
                                      .group_role = FT_GROUP_AGGREGATOR};
static struct ft_group_role role;
static struct ft_pipeline *pipeline;
static struct ft_group_reader *reader;
static int64_t offset;

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    (void)record;
}

static void open_reader(int64_t now_ms)
{
    struct ft_pipeline_config config = {
        .join = {.flows_max = 1000,
                 .window_ms = WINDOW_MS,
                 .evidence_ms = 30000,
                 .idle_ms = 60000,
                 .policy = {.hold_down_ms = 2000, .tolerance_ms = 2000}},
        .window = {.loads = {.window_ms = WINDOW_MS,
                             .floor_share = 0.001,
                             .elephant_share = 0.1,
                             .elephants_max = 1000},
                   .refresh_ms = 60000,
                   .victims_max = 32},
        .discovery = {.switches_max = 100},
        .counters_max = 100,
        .grace_ms = 3000,
        .events_max = 100,
        .sources_max = 100,
        .source_id = "sums",
    };
    struct ft_emitter emitter = {on_record, NULL};
    struct ft_group_reader_config ours = {.settings = &settings,
                                          .role = &role,
                                          .source_id = "sums",
                                          .kafka = (struct ft_kafka *)&producer};
    const struct ft_kafka_owned all = {.partition = 0, .from = 0, .until = 0, .note = -1};

    ck_assert_int_eq(ft_group_role_open(&role, &settings, "sums", &config, &emitter), 0);
    pipeline = ft_pipeline_new(&config, leafspine(2, 2, 1), &emitter);
    ck_assert_ptr_nonnull(pipeline);
    ft_pipeline_begin(pipeline, now_ms);
    ours.pipeline = pipeline;
    reader = ft_group_reader_new(NULL, &ours);
    ck_assert_ptr_nonnull(reader);
    ck_assert_str_eq(shared.subscribe, TOPIC);
    shared.on_owned(shared.arg, &all, 1);
    offset = 0;
    committed = note = -1;
}

static void close_reader(void)
{
    ft_group_reader_free(reader);
    ft_pipeline_free(pipeline);
    ft_group_role_close(&role);
}

/* The member of all flows says its part of a window. */
static void say(int64_t window_ms)
{
    Fabrictrace__Partial part = FABRICTRACE__PARTIAL__INIT;
    uint32_t partition = 0;
    uint8_t bytes[256];
    struct ft_kafka_message m = {.value = bytes, .partition = 0, .offset = offset++, .time_ms = -1};

    part.has_window_start_ms = part.has_window_end_ms = part.has_partitions_all = true;
    part.window_start_ms = (uint64_t)window_ms;
    part.window_end_ms = (uint64_t)(window_ms + WINDOW_MS);
    part.source = (char *)(uintptr_t) "member";
    part.partitions = &partition;
    part.n_partitions = part.partitions_all = 1;
    part.has_piece = part.has_pieces = true;
    part.pieces = 1;
    ck_assert_uint_le(fabrictrace__partial__get_packed_size(&part), sizeof(bytes));
    m.len = fabrictrace__partial__pack(&part, bytes);
    shared.on_message(shared.arg, TOPIC, &m);
}

static void go_on(int64_t now_ms)
{
    while (ft_pipeline_advance(pipeline, now_ms, UINT32_MAX))
        ;
    ft_group_reader_look(reader);
}

/* A member whose clock is a day ahead, and one that says it twice: what they say is not kept, and
 * what is committed goes on. */
START_TEST(a_part_that_is_not_kept_is_not_read_again)
{
    int64_t now_ms = ft_wall_now().ms, window_ms = now_ms / WINDOW_MS * WINDOW_MS;

    open_reader(window_ms);
    say(window_ms + 8640 * WINDOW_MS);
    say(window_ms);
    say(window_ms);
    say(window_ms + WINDOW_MS);
    ck_assert_uint_eq(ft_partials_stats(role.partials)->taken, 2);
    ck_assert_uint_eq(ft_partials_stats(role.partials)->duplicates, 1);
    go_on(window_ms + WINDOW_MS + 3000);
    /* The first window is published, and the second is to be read again. */
    ck_assert_int_eq(note, window_ms + WINDOW_MS);
    ck_assert_int_eq(committed, 3);
    go_on(window_ms + 2 * WINDOW_MS + 3000);
    ck_assert_int_eq(note, window_ms + 2 * WINDOW_MS);
    ck_assert_int_eq(committed, 4);
    close_reader();
}
END_TEST

FT_UNIT_MAIN("group_reader", a_part_that_is_not_kept_is_not_read_again)
