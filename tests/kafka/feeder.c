// SPDX-License-Identifier: Apache-2.0
/*
 * Sends records of a file to several daemons at once as a program of ours would, each second of
 * them when it is over: their times are moved to now. So all get the same records, over TCP or over
 * Kafka. At the end it waits until all is acknowledged, and writes a line of JSON: what it sent to
 * each, what of it was dropped, and how far it was behind at most. Records that are no observations
 * go at once, as they are.
 *
 * usage: feeder FILE (tcp HOST:PORT[,STANDBY] | kafka BROKERS PREFIX PARTITIONS)...
 * FILE has lines of NDJSON in the order of their time_ms.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/io/transport/transport.h"
#include "lib/topics/sender.h"
#include "proto/columns.h"
#include "proto/record.h"

#define TARGETS_MAX  16
#define TICK_NS      INT64_C(20000000)
#define TICK_RECORDS 2000
#define FLUSH_NS     (INT64_C(240) * 1000000000)
#define BATCH_BYTES  ((size_t)1 << 20)
#define LINE_BYTES   ((size_t)1 << 20)
#define WINDOW_MS    10000 /* of the daemons, or a multiple */

struct feeder {
    struct ft_loop *loop;
    FILE *file;
    struct ft_sender *targets[TARGETS_MAX];
    size_t count, flushed;
    struct ft_columns *columns;
    struct ft_writer batch;
    uint32_t records;           /* in the batch, rows too */
    Fabrictrace__Record *ahead; /* read, and not due yet */
    int64_t shift_ms;
    int64_t behind_ms; /* at most */
    bool shifted;
};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "feeder: %s: %s\n", what, why);
    exit(1);
}

static void send_batch(struct feeder *f)
{
    if (ft_columns_pack(f->columns, &f->batch))
        fail("batch", "too large");
    for (size_t i = 0; f->records && i < f->count; i++)
        ft_sender_send(f->targets[i], f->batch.bytes, f->batch.len, f->records);
    ft_writer_reset(&f->batch);
    f->records = 0;
}

static Fabrictrace__Record *read_record(struct feeder *f)
{
    static char line[LINE_BYTES];
    Fabrictrace__Record *record;
    char error[256];

    if (!fgets(line, sizeof(line), f->file))
        return NULL;
    if (ft_record_from_json(line, strcspn(line, "\n"), &record, error, sizeof(error)))
        fail(line, error);
    return record;
}

static bool is_observation(const Fabrictrace__Record *record)
{
    return record && record->kind_case == FABRICTRACE__RECORD__KIND_OBSERVATION;
}

/* Moves an observation's times; its end is when it goes out. */
static int64_t move(struct feeder *f, Fabrictrace__Observation *o)
{
    int64_t end_ms = (int64_t)(o->time_ms + o->interval_ms);

    if (!f->shifted) {
        /* By whole windows, which begin where they did; none has begun yet. */
        f->shift_ms = (ft_wall_now().ms - end_ms) / WINDOW_MS * WINDOW_MS + 2 * WINDOW_MS;
        f->shifted = true;
    }
    o->time_ms += (uint64_t)f->shift_ms;
    o->first_ms += o->has_first_ms ? (uint64_t)f->shift_ms : 0;
    o->last_ms += o->has_last_ms ? (uint64_t)f->shift_ms : 0;
    return end_ms + f->shift_ms;
}

static void add(struct feeder *f, const Fabrictrace__Observation *o)
{
    int rc = ft_columns_add(f->columns, o);

    if (rc == -ENOSPC) {
        send_batch(f);
        rc = ft_columns_add(f->columns, o);
    }
    if (rc)
        fail("observation", strerror(-rc));
    f->records++;
}

static void add_as_it_is(struct feeder *f, Fabrictrace__Record *record)
{
    if (f->batch.len > BATCH_BYTES / 2)
        send_batch(f);
    if (ft_batch_pack(&record, 1, &f->batch))
        fail("record", "too large");
    f->records++;
}

static void on_flushed(void *arg)
{
    struct feeder *f = arg;
    struct ft_sender_stats s;

    /* One after the other, those over TCP first: with Kafka it blocks the loop. */
    if (++f->flushed < f->count) {
        ft_sender_flush(f->targets[f->flushed], FLUSH_NS, on_flushed, f);
        return;
    }
    printf("[");
    for (size_t i = 0; i < f->count; i++) {
        ft_sender_stats(f->targets[i], &s);
        printf("%s{\"records\": %" PRIu64 ", \"acked\": %" PRIu64 ", \"dropped\": %" PRIu64
               ", \"repeated\": %" PRIu64 ", \"payloads\": %" PRIu64 ", \"shift_ms\": %" PRId64
               ", \"behind_ms\": %" PRId64 "}",
               i ? ", " : "", s.records, s.records_acked, s.records_dropped, s.records_repeated,
               s.payloads, f->shift_ms, f->behind_ms);
    }
    printf("]\n");
    ft_loop_exit(f->loop, 0);
}

static void on_tick(void *arg)
{
    struct feeder *f = arg;
    static int64_t due_ms;
    int64_t behind_ms;

    /* The loop has others to serve, also where this is behind. */
    for (int taken = 0; f->file && taken < TICK_RECORDS; taken++) {
        if (!f->ahead) {
            f->ahead = read_record(f);
            if (is_observation(f->ahead))
                due_ms = move(f, f->ahead->observation);
        }
        behind_ms = ft_wall_now().ms - due_ms;
        if (f->ahead && behind_ms < 0)
            break;
        if (!f->ahead) {
            fclose(f->file);
            f->file = NULL;
            send_batch(f);
            ft_sender_flush(f->targets[0], FLUSH_NS, on_flushed, f);
            return;
        }
        if (is_observation(f->ahead) && behind_ms > f->behind_ms)
            f->behind_ms = behind_ms;
        if (is_observation(f->ahead))
            add(f, f->ahead->observation);
        else
            add_as_it_is(f, f->ahead);
        ft_record_free(f->ahead);
        f->ahead = NULL;
    }
    if (f->file)
        send_batch(f);
}

static void add_target(struct feeder *f, char **argv, bool kafka)
{
    const struct ft_topic_sender_config topics = {
        .kafka = {.brokers = argv[0], .message_timeout_ns = FLUSH_NS},
        .topic_prefix = kafka ? argv[1] : NULL,
        .source_id = "feeder",
        .program = "fabrictrace-switchpoll",
        .boot_id = 1,
        .partitions = kafka ? (uint32_t)strtoul(argv[2], NULL, 10) : 1,
    };
    char *standby = kafka ? NULL : strchr(argv[0], ',');
    const char *const others[] = {standby ? standby + 1 : NULL, NULL};
    struct ft_sender_config config = {.endpoint = argv[0],
                                      .others = others,
                                      .source_id = "feeder",
                                      .program = "fabrictrace-switchpoll",
                                      .boot_id = 1,
                                      .queue_bytes_max = (size_t)1 << 30};
    struct ft_sender_transport transport;
    char error[512];

    if (standby)
        *standby = '\0';
    if (kafka && ft_topic_sender_open(f->loop, &topics, &transport, error, sizeof(error)))
        fail("kafka", error);
    config.transport = kafka ? &transport : NULL;
    f->targets[f->count] = ft_sender_new(f->loop, &config, error, sizeof(error));
    if (!f->targets[f->count++])
        fail(argv[0], error);
}

int main(int argc, char **argv)
{
    struct feeder f = {.loop = ft_loop_new(), .columns = ft_columns_new(BATCH_BYTES)};
    struct ft_watch *tick;
    int code;

    ft_writer_init(&f.batch, 4 * BATCH_BYTES);
    f.file = argc > 1 ? fopen(argv[1], "re") : NULL;
    if (!f.file || !f.loop || !f.columns)
        fail("file", "cannot be opened");
    for (int i = 2; i < argc && f.count < TARGETS_MAX;) {
        bool kafka = strcmp(argv[i], "kafka") == 0;
        int words = kafka ? 4 : 2;

        if (i + words > argc)
            fail(argv[i],
                 "usage: feeder FILE (tcp HOST:PORT | kafka BROKERS PREFIX PARTITIONS)...");
        add_target(&f, argv + i + 1, kafka);
        i += words;
    }
    tick = ft_watch_timer(f.loop, TICK_NS, on_tick, &f);
    code = ft_loop_run(f.loop);
    ft_watch_free(tick);
    for (size_t i = 0; i < f.count; i++)
        ft_sender_free(f.targets[i]);
    ft_columns_free(f.columns);
    ft_writer_free(&f.batch);
    ft_loop_free(f.loop);
    return code;
}
