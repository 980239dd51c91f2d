// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/output/output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/io/loop.h"
#include "proto/record.h"
#include "tests/batch.h"
#include "tests/unit/unit.h"

static struct ft_loop *loop;
static uint64_t arrived;
static uint64_t next_ms;

static void emit(struct ft_output *out, uint64_t time_ms)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__PortCounters counters = FABRICTRACE__PORT_COUNTERS__INIT;

    counters.has_time_ms = counters.has_ifindex = counters.has_in_bytes = true;
    counters.time_ms = time_ms;
    counters.ifindex = 49;
    counters.in_bytes = UINT64_C(1) << 40;
    record.kind_case = FABRICTRACE__RECORD__KIND_COUNTERS;
    record.counters = &counters;
    ft_output_emit(out, &record);
}

static void check_balance(const struct ft_output *out, uint64_t received)
{
    struct ft_loss_transport s;

    ft_output_stats(out, &s);
    ck_assert_uint_eq(s.received, received);
    ck_assert_uint_eq(s.received, s.processed + s.pending + s.dropped);
}

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    ck_assert_uint_eq(record->counters->time_ms, next_ms++);
    arrived++;
}

static int apply(void *arg, void *known, const char *source_id, const char *program,
                 const uint8_t *payload, size_t len)
{
    uint64_t records = 0, unknown = 0;

    (void)arg;
    (void)known;
    (void)program;
    ck_assert_str_eq(source_id, "poller1");
    ck_assert_int_eq(ft_batch_unpack(payload, len, on_record, NULL, &records, &unknown), 0);
    ck_assert_uint_eq(unknown, 0);
    return 0;
}

static void on_done(void *arg)
{
    (void)arg;
    ft_loop_exit(loop, 0);
}

static void emit_observation(struct ft_output *out, uint32_t n)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Observation o = FABRICTRACE__OBSERVATION__INIT;
    Fabrictrace__Flow flow;
    const struct ft_tuple tuple = {.src = ft_ip4((uint8_t[]){10, 0, (uint8_t)(n >> 8), (uint8_t)n}),
                                   .dst = ft_ip4((uint8_t[]){10, 9, 0, 1}),
                                   .sport = (uint16_t)n,
                                   .dport = FT_ROCE_PORT,
                                   .proto = FT_PROTO_UDP};

    ft_flow_from_tuple(&flow, &tuple);
    o.flow = &flow;
    o.has_time_ms = o.has_interval_ms = o.has_agent = true;
    o.has_samples = o.has_packets = o.has_bytes = true;
    o.time_ms = 1700000000000;
    o.interval_ms = 1000;
    o.agent = flow.dst;
    o.samples = n;
    o.packets = UINT64_C(100) * n;
    o.bytes = 6400 * UINT64_C(100) * n;
    /* What columns cannot say travels alone. */
    o.ack_samples = n % 1000 == 999 ? n + 1 : 0;
    record.kind_case = FABRICTRACE__RECORD__KIND_OBSERVATION;
    record.observation = &o;
    ft_output_emit(out, &record);
}

static uint32_t next_observation;
static uint64_t singles;

static void on_observed(void *arg, const struct ft_observed *o)
{
    (void)arg;
    ck_assert_uint_eq(o->samples, next_observation++);
}

static void on_single(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    /* Counters went out between them. */
    if (record->kind_case == FABRICTRACE__RECORD__KIND_COUNTERS) {
        ck_assert_uint_eq(record->counters->time_ms, next_observation);
        return;
    }
    ck_assert_uint_eq(record->observation->samples, next_observation++);
    singles++;
}

static int apply_observations(void *arg, void *known, const char *source_id, const char *program,
                              const uint8_t *payload, size_t len)
{
    const struct ft_batch_sink sink = {on_single, on_observed, NULL};
    struct ft_batch *batch = ft_batch_new(len);
    int rc;

    (void)arg;
    (void)known;
    (void)source_id;
    (void)program;
    while ((rc = ft_batch_step(batch, payload, 100, &sink)) > 0)
        ;
    ck_assert_int_eq(rc, 0);
    ft_batch_free(batch);
    return 0;
}

/* Records go out one by one and come in as batches, each once and in order. */
struct line {
    struct ft_receiver *receiver;
    struct ft_sender *sender;
    struct ft_output *out;
};

static void open_line(struct line *line,
                      int (*take)(void *arg, void *known, const char *source_id,
                                  const char *program, const uint8_t *payload, size_t len))
{
    struct ft_receiver_config receiving = {
        .listen = "127.0.0.1:0", .connections_max = 4, .sources_max = 4, .apply = take};
    struct ft_sender_config sending = {.source_id = "poller1",
                                       .program = "fabrictrace-switchpoll",
                                       .boot_id = 1,
                                       .queue_bytes_max = 16u << 20,
                                       .retry_min_ns = 10000000,
                                       .retry_max_ns = 100000000};
    char error[256] = "", endpoint[32];

    loop = ft_loop_new();
    line->receiver = ft_receiver_new(loop, &receiving, error, sizeof(error));
    ck_assert_msg(line->receiver, "%s", error);
    snprintf(endpoint, sizeof(endpoint), "127.0.0.1:%u", ft_receiver_port(line->receiver));
    sending.endpoint = endpoint;
    line->sender = ft_sender_new(loop, &sending, error, sizeof(error));
    ck_assert_msg(line->sender, "%s", error);
    line->out = ft_output_sender(line->sender, 1u << 20);
}

/* Sends what is left, and closes. All of it has arrived. */
static void close_line(struct line *line, uint64_t count)
{
    struct ft_loss_transport stats;

    ft_output_flush(line->out);
    check_balance(line->out, count);
    ft_sender_flush(line->sender, INT64_C(20000000000), on_done, NULL);
    ck_assert_int_eq(ft_loop_run(loop), 0);
    ft_output_stats(line->out, &stats);
    ck_assert_uint_eq(stats.processed, count);
    check_balance(line->out, count);
    ft_output_free(line->out);
    ft_sender_free(line->sender);
    ft_receiver_free(line->receiver);
    ft_loop_free(loop);
}

START_TEST(records_reach_a_receiver_in_order)
{
    const uint64_t count = 20000;
    struct line line;

    open_line(&line, apply);
    for (uint64_t i = 0; i < count; i++) {
        emit(line.out, i);
        if (i % 999 == 0)
            check_balance(line.out, i + 1);
    }
    close_line(&line, count);
    ck_assert_uint_eq(arrived, count);
}
END_TEST

/* Each observation is a record in the account, however many share a message. */
START_TEST(observations_travel_in_columns_and_are_counted_one_by_one)
{
    const uint32_t count = 100000;
    struct line line;

    open_line(&line, apply_observations);
    for (uint32_t i = 0; i < count; i++) {
        emit_observation(line.out, i);
        if (i % 10000 == 0)
            check_balance(line.out, i + 1 + i / 50000);
        if (i % 50000 == 49999)
            emit(line.out, i + 1);
    }
    close_line(&line, count + 2);
    ck_assert_uint_eq(next_observation, count);
    ck_assert_uint_eq(singles, count / 1000);
}
END_TEST

START_TEST(lines_reach_a_file)
{
    char file[] = "check_output.XXXXXX";
    char line[256], error[256];
    struct ft_output *out;
    unsigned lines = 0;
    FILE *in;

    close(mkstemp(file));
    out = ft_output_file(file, error, sizeof(error));
    ck_assert_ptr_nonnull(out);
    for (unsigned i = 0; i < 5000; i++)
        emit(out, i);
    check_balance(out, 5000);
    ft_output_flush(out);
    ck_assert_int_eq(ft_output_error(out, error, sizeof(error)), 0);
    ft_output_free(out);
    in = fopen(file, "r");
    while (fgets(line, sizeof(line), in)) {
        char want[256];

        snprintf(want, sizeof(want),
                 "{\"schema\":\"fabrictrace.counters.v1\",\"time_ms\":%u,\"ifindex\":49,"
                 "\"in_bytes\":1099511627776}\n",
                 lines++);
        ck_assert_str_eq(line, want);
    }
    ck_assert_uint_eq(lines, 5000);
    fclose(in);
    unlink(file);
}
END_TEST

START_TEST(a_failed_write_is_reported_and_counted)
{
    struct ft_loss_transport stats;
    char error[256] = "";
    struct ft_output *out = ft_output_file("/dev/full", error, sizeof(error));

    ck_assert_ptr_nonnull(out);
    emit(out, 1);
    ck_assert_int_eq(ft_output_error(out, error, sizeof(error)), 0);
    ft_output_flush(out);
    ck_assert_int_eq(ft_output_error(out, error, sizeof(error)), -ENOSPC);
    ck_assert_ptr_nonnull(strstr(error, "/dev/full"));
    emit(out, 2);
    ft_output_flush(out);
    ft_output_stats(out, &stats);
    ck_assert_uint_eq(stats.dropped, 2);
    check_balance(out, 2);
    ft_output_free(out);
    ck_assert_ptr_null(ft_output_file("/nowhere/file", error, sizeof(error)));
    ck_assert_ptr_nonnull(strstr(error, "/nowhere/file"));
}
END_TEST

FT_UNIT_MAIN("output", records_reach_a_receiver_in_order,
             observations_travel_in_columns_and_are_counted_one_by_one, lines_reach_a_file,
             a_failed_write_is_reported_and_counted)
