// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/jobs/collectives.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/jobs/collective_record.h"
#include "agent/jobs/tally.h"
#include "proto/record.h"
#include "tests/unit/unit.h"

#define MS INT64_C(1000000)

static struct {
    size_t reports;
    uint64_t operations, events, sent, left_out, left_out_bytes, unknown;
    struct ft_collective last;
    char json[8192];
} got;

static uint32_t pid = 7;

static void emit(void *arg, const struct ft_collective *c)
{
    const struct ft_job_identity who = {.host = "gpu01", .job = "88", .pid = pid, .offset_ms = 5};
    static struct ft_collective_record record;
    struct ft_writer w;

    (void)arg;
    got.reports++;
    got.operations += c->operations;
    got.events += c->events;
    for (size_t i = 0; i < c->peer_count; i++)
        got.sent += c->peers[i].sent_bytes;
    got.left_out += c->left_out.transfers;
    got.left_out_bytes += c->left_out.sent_bytes;
    got.unknown += !c->has_op;
    got.last = *c;
    ft_collective_record_fill(&record, c, &who);
    ft_writer_init(&w, sizeof(got.json) - 1);
    ck_assert_int_eq(ft_record_to_json(&record.record, &w), 0);
    snprintf(got.json, sizeof(got.json), "%.*s", (int)w.len, (const char *)w.bytes);
    ft_writer_free(&w);
}

static struct ft_collectives *make(size_t ops, size_t peers, uint32_t reports)
{
    const struct ft_collectives_config config = {
        .ops_max = ops, .peers_max = peers, .hold_ns = 100 * MS, .reports_per_s = reports};
    struct ft_collectives *c = ft_collectives_new(&config, emit, NULL);

    memset(&got, 0, sizeof(got));
    ck_assert_ptr_nonnull(c);
    return c;
}

static void op(struct ft_collectives *c, uint64_t number, int64_t at_ms)
{
    struct ft_segment_record r = {.kind = FT_SEGMENT_OP,
                                  .events = 1,
                                  .comm_id = 0xab,
                                  .rank = 1,
                                  .ranks = 4,
                                  .op = number,
                                  .comm = 3,
                                  .number = number,
                                  .start_ns = at_ms * MS,
                                  .end_ns = at_ms * MS};

    r.u.op.sequence = number;
    r.u.op.count = 250;
    r.u.op.channels = 2;
    snprintf(r.u.op.func, sizeof(r.u.op.func), "AllGather");
    snprintf(r.u.op.datatype, sizeof(r.u.op.datatype), "ncclFloat32");
    ft_collectives_record(c, 1, &r, (struct ft_mono){at_ms * MS});
}

static void proxy(struct ft_collectives *c, uint64_t number, int32_t peer, uint32_t channel,
                  int64_t at_ms)
{
    struct ft_segment_record r = {.kind = FT_SEGMENT_PROXY,
                                  .flags = FT_SEGMENT_SEND,
                                  .events = 5,
                                  .comm_id = 0xab,
                                  .rank = 1,
                                  .ranks = 4,
                                  .op = number,
                                  .start_ns = at_ms * MS,
                                  .end_ns = (at_ms + 3) * MS};

    r.u.proxy = (struct ft_segment_proxy){.peer = peer,
                                          .channel = channel,
                                          .steps = 3,
                                          .bytes = 3000,
                                          .step_min_ns = 1000,
                                          .step_max_ns = 9000};
    r.u.proxy.buckets[ft_segment_bucket(1000)]++;
    r.u.proxy.buckets[ft_segment_bucket(4000)]++;
    r.u.proxy.buckets[ft_segment_bucket(9000)]++;
    ft_collectives_record(c, 1, &r, (struct ft_mono){at_ms * MS});
}

START_TEST(one_report_an_operation)
{
    struct ft_collectives *c = make(16, 64, 100);
    struct ft_collectives_stats stats;

    op(c, 7, 1000);
    proxy(c, 7, 2, 0, 1001);
    proxy(c, 7, 2, 1, 1002);
    proxy(c, 7, 2, 1, 1003);
    ft_collectives_tick(c, (struct ft_mono){1100 * MS});
    ck_assert_uint_eq(got.reports, 0); /* heard of too lately */
    ft_collectives_tick(c, (struct ft_mono){1103 * MS});
    ck_assert_uint_eq(got.reports, 1);
    ck_assert_uint_eq(got.last.peer_count, 2);
    ck_assert_uint_eq(got.sent, 9000);
    ck_assert_uint_eq(got.events, 16);
    ck_assert_ptr_nonnull(strstr(got.json, "\"comm_id\":\"00000000000000ab\""));
    ck_assert_ptr_nonnull(strstr(got.json, "\"bytes\":4000")); /* 250 x 4 x 4 ranks */
    ck_assert_ptr_nonnull(strstr(got.json, "\"start_ms\":1005"));
    ck_assert_ptr_nonnull(strstr(got.json, "\"duration_us\":6000"));
    ft_collectives_stats(c, &stats);
    ck_assert_uint_eq(stats.events_in, stats.events_out);
    ck_assert_uint_eq(stats.events_pending, 0);
    ft_collectives_free(c);
}
END_TEST

static uint64_t flying;
static size_t asked;

static bool is_flying(void *arg, uint32_t comm, uint64_t number)
{
    (void)arg;
    asked++;
    return flying == UINT64_MAX || (comm == 3 && number == flying);
}

START_TEST(what_is_in_flight_has_not_ended)
{
    const struct ft_collectives_config config = {.ops_max = 16,
                                                 .peers_max = 64,
                                                 .hold_ns = 100 * MS,
                                                 .reports_per_s = 100,
                                                 .in_flight = is_flying};
    struct ft_collectives *c = ft_collectives_new(&config, emit, NULL);

    memset(&got, 0, sizeof(got));
    flying = 7;
    op(c, 6, 1000);
    op(c, 7, 1000);
    ft_collectives_tick(c, (struct ft_mono){1200 * MS});
    ck_assert_uint_eq(got.reports, 1);
    ck_assert_uint_eq(got.last.number, 6);
    ft_collectives_tick(c, (struct ft_mono){60000 * MS});
    ck_assert_uint_eq(got.reports, 1);
    proxy(c, 7, 2, 0, 60010);
    flying = 0;
    ft_collectives_tick(c, (struct ft_mono){60200 * MS});
    ck_assert_uint_eq(got.reports, 2);
    ck_assert_uint_eq(got.last.number, 7);
    ck_assert(!got.last.incomplete);
    ck_assert_ptr_nonnull(strstr(got.json, "\"number\":7"));
    /* Where the process ends over it, that is told. */
    flying = 8;
    op(c, 8, 61000);
    ft_collectives_flush(c, (struct ft_mono){61001 * MS});
    ck_assert_uint_eq(got.reports, 3);
    ck_assert(got.last.incomplete);
    ft_collectives_free(c);
}
END_TEST

START_TEST(above_the_limit_like_goes_with_like)
{
    struct ft_collectives *c = make(1024, 8192, 10);
    struct ft_collectives_stats stats;

    ft_collectives_tick(c, (struct ft_mono){5000 * MS});
    for (uint64_t i = 1; i <= 500; i++) {
        op(c, i, 5001);
        proxy(c, i, 2, 0, 5001);
    }
    ft_collectives_tick(c, (struct ft_mono){5200 * MS});
    ck_assert_uint_eq(got.reports, 10);
    ft_collectives_tick(c, (struct ft_mono){6000 * MS});
    ck_assert_uint_eq(got.reports, 11);
    ck_assert_uint_eq(got.last.operations, 490);
    ck_assert_uint_eq(got.operations, 500);
    ck_assert_uint_eq(got.sent, 500 * 3000);
    ft_collectives_stats(c, &stats);
    ck_assert_uint_eq(stats.events_in, 500 * 6);
    ck_assert_uint_eq(stats.events_out, 500 * 6);
    ft_collectives_free(c);
}
END_TEST

/* What was held when its process died goes out one by one, though the second's limit is used up. */
START_TEST(the_last_operations_are_told_one_by_one)
{
    struct ft_collectives *c = make(1024, 8192, 10);

    ft_collectives_tick(c, (struct ft_mono){5000 * MS});
    for (uint64_t i = 1; i <= 12; i++)
        op(c, i, 5001);
    ft_collectives_tick(c, (struct ft_mono){5200 * MS});
    ck_assert_uint_eq(got.reports, 10);
    for (uint64_t i = 13; i <= 20; i++)
        op(c, i, 5201);
    ft_collectives_flush(c, (struct ft_mono){5210 * MS});
    ck_assert_uint_eq(got.reports, 10 + 8 + 1);
    ck_assert_uint_eq(got.last.operations, 2);
    ck_assert_uint_eq(got.operations, 20);
    ft_collectives_free(c);
}
END_TEST

START_TEST(caps_hold_and_nothing_is_lost)
{
    struct ft_collectives *c = make(4, 8, 1000);
    struct ft_collectives_stats stats;

    for (uint64_t i = 1; i <= 9; i++) {
        op(c, i, 1000);
        for (uint32_t channel = 0; channel < 5; channel++)
            proxy(c, i, 2, channel, 1000);
    }
    ft_collectives_flush(c, (struct ft_mono){1000 * MS});
    ft_collectives_stats(c, &stats);
    ck_assert_uint_eq(got.operations, 9);
    ck_assert_uint_gt(stats.early, 0);
    ck_assert_uint_eq(got.events, 9 * (1 + 5 * 5));
    ck_assert_uint_eq(got.sent, UINT64_C(9) * 5 * 3000);
    ck_assert_uint_eq(got.events, stats.events_in);
    ft_collectives_free(c);
}
END_TEST

/* Sixty large ones are enqueued at once and move their bytes one by one for longer than the hold
 * time, as NCCL's are; many small ones come in between. No bytes are without an operation. */
static void check_mixed(size_t ops_max, size_t peers_max, uint32_t reports)
{
    struct ft_collectives *c = make(ops_max, peers_max, reports);
    struct ft_collectives_stats stats;
    uint64_t small = 1000;

    for (uint64_t i = 1; i <= 60; i++)
        op(c, i, 1000);
    for (int64_t ms = 1000; ms < 1060; ms++) {
        for (int i = 0; i < 20; i++, small++) {
            op(c, small, ms);
            for (uint32_t channel = 0; channel < 4; channel++)
                proxy(c, small, (int32_t)(small % 2), channel, ms);
        }
        for (uint32_t channel = 0; channel < 4; channel++)
            proxy(c, (uint64_t)(ms - 999), 2, channel, ms);
        if (ms % 10 == 9)
            ft_collectives_tick(c, (struct ft_mono){ms * MS});
    }
    ft_collectives_flush(c, (struct ft_mono){1060 * MS});
    ft_collectives_stats(c, &stats);
    ck_assert_uint_gt(stats.early, 0);
    ck_assert_uint_eq(got.operations, 60 + 60 * 20);
    ck_assert_uint_eq(got.sent, UINT64_C(60) * 21 * 4 * 3000);
    ck_assert_uint_eq(got.left_out, 0);
    ck_assert_uint_eq(stats.transfers_in, UINT64_C(60) * 21 * 4);
    ck_assert_uint_eq(stats.transfers_in, stats.transfers_out);
    ck_assert_uint_eq(got.unknown, 0);
    ck_assert_uint_eq(stats.events_in, stats.events_out);
    ft_collectives_free(c);
}

START_TEST(without_room_those_end_that_are_over)
{
    check_mixed(1024, 500, 100000);
    check_mixed(1024, 500, 10);
    check_mixed(256, 100000, 10);
}
END_TEST

/* A job all of whose transfers are in flight for good cannot keep the agent searching for room. */
START_TEST(a_search_in_vain_is_not_made_again_and_again)
{
    const struct ft_collectives_config config = {.ops_max = 64,
                                                 .peers_max = 256,
                                                 .hold_ns = 100 * MS,
                                                 .reports_per_s = 10,
                                                 .in_flight = is_flying};
    struct ft_collectives *c = ft_collectives_new(&config, emit, NULL);
    struct ft_collectives_stats stats;

    memset(&got, 0, sizeof(got));
    flying = UINT64_MAX;
    asked = 0;
    for (uint64_t i = 1; i <= 60; i++)
        op(c, i, 1000);
    for (int32_t i = 0; i < 60000; i++)
        proxy(c, 1 + (uint64_t)i % 60, i / 60 % 20, 0, 1000);
    ck_assert_uint_lt(asked, 2000);
    ft_collectives_stats(c, &stats);
    ck_assert_uint_eq(stats.transfers_in, stats.transfers_pending + stats.transfers_no_room);
    ft_collectives_flush(c, (struct ft_mono){1000 * MS});
    ck_assert_uint_gt(got.left_out, 0);
    ck_assert_uint_eq(got.sent + got.left_out_bytes, UINT64_C(60000) * 3000);
    ck_assert_ptr_nonnull(strstr(got.json, "\"sent_bytes_dropped\":"));
    ck_assert_ptr_null(strstr(got.json, "\"received_bytes_dropped\":"));
    ft_collectives_stats(c, &stats);
    ck_assert_uint_eq(stats.events_in, stats.events_out);
    ck_assert_uint_eq(stats.transfers_in, 60000);
    ck_assert_uint_eq(stats.transfers_no_room, got.left_out);
    ck_assert_uint_eq(stats.transfers_in, stats.transfers_out + stats.transfers_no_room);
    ck_assert_uint_eq(stats.transfers_pending, 0);
    ft_collectives_free(c);
}
END_TEST

START_TEST(what_has_no_operation)
{
    struct ft_collectives *c = make(16, 64, 100);
    struct ft_segment_record r = {.kind = FT_SEGMENT_END, .events = 1, .op = 99};
    const struct ft_mono now = {1000 * MS};
    struct ft_collectives_stats stats;

    ck_assert_uint_eq(ft_collectives_record(c, 1, &r, now), 1);
    r.kind = 77;
    r.events = 4;
    ck_assert_uint_eq(ft_collectives_record(c, 1, &r, now), 4);
    /* A transfer whose operation was dropped, and one of another process: bytes count. */
    proxy(c, 50, 3, 0, 1000);
    proxy(c, 0, 3, 0, 1000);
    ft_collectives_flush(c, now);
    ck_assert_uint_eq(got.reports, 2);
    ck_assert_uint_eq(got.sent, 6000);
    ck_assert_ptr_null(strstr(got.json, "\"op\""));
    ft_collectives_stats(c, &stats);
    ck_assert_uint_eq(stats.unknown, 1);
    ck_assert_uint_eq(stats.events_stray, 5);
    ck_assert_uint_eq(stats.events_in, stats.events_out + stats.events_stray);
    ft_collectives_free(c);
}
END_TEST

START_TEST(hostile_numbers_stay_out_of_records)
{
    struct ft_collectives *c = make(16, 64, 100);
    struct ft_segment_record r;

    memset(&r, 0xff, sizeof(r));
    r.kind = FT_SEGMENT_OP;
    memcpy(r.u.op.func, "\x1b[2J\"<&\\AllReduc", 16);
    r.u.op.func[15] = r.u.op.datatype[15] = r.u.op.algo[15] = r.u.op.proto[15] = 0;
    ft_collectives_record(c, 1, &r, (struct ft_mono){MS});
    r.kind = FT_SEGMENT_PROXY;
    ft_collectives_record(c, 1, &r, (struct ft_mono){MS});
    pid = 0; /* as the kernel has it of another PID namespace */
    ft_collectives_flush(c, (struct ft_mono){MS});
    pid = 7;
    ck_assert_uint_eq(got.reports, 1);
    ck_assert_ptr_null(strchr(got.json, 0x1b));
    ck_assert_ptr_null(strstr(got.json, "\"pid\""));
    ck_assert_ptr_null(strstr(got.json, "\"rank\""));
    ck_assert_ptr_null(strstr(got.json, "\"datatype\""));
    ft_collectives_free(c);
}
END_TEST

START_TEST(buckets_and_median)
{
    struct ft_collective_steps steps = {.count = 3, .min_ns = 1, .max_ns = 1000000};
    unsigned last = 0;

    for (int64_t ns = 0; ns < INT64_C(10000000000); ns += 1 + ns / 7) {
        unsigned b = ft_segment_bucket(ns);

        ck_assert_uint_ge(b, last);
        ck_assert_uint_lt(b, FT_RECORD_BUCKETS);
        ck_assert_int_le(ft_segment_bucket_ns(b), ns);
        if (b + 1 < FT_RECORD_BUCKETS)
            ck_assert_int_gt(ft_segment_bucket_ns(b + 1), ns);
        last = b;
    }
    ck_assert_uint_eq(ft_segment_bucket(-5), 0);
    steps.buckets[ft_segment_bucket(1000)] = 1;
    steps.buckets[ft_segment_bucket(50000)] = 1;
    steps.buckets[ft_segment_bucket(900000)] = 1;
    ck_assert_int_ge(ft_collective_median_ns(&steps), 40000);
    ck_assert_int_le(ft_collective_median_ns(&steps), 60000);
    steps = (struct ft_collective_steps){0};
    ck_assert_int_eq(ft_collective_median_ns(&steps), 0);
}
END_TEST

/* Everything that a job may write into a record. */
START_TEST(times_and_sums_of_a_lying_job_do_not_overflow)
{
    const struct ft_mono now = {5000 * MS};
    struct ft_collectives *c = make(8, 64, 10);
    struct ft_segment_record r = {.kind = FT_SEGMENT_PROXY,
                                  .flags = FT_SEGMENT_SEND,
                                  .events = 1,
                                  .op = 3,
                                  .start_ns = INT64_MIN,
                                  .end_ns = INT64_MAX};

    r.u.proxy = (struct ft_segment_proxy){.peer = 1,
                                          .steps = UINT32_MAX,
                                          .bytes = UINT64_MAX - 1,
                                          .step_min_ns = UINT64_MAX,
                                          .step_max_ns = UINT64_MAX};
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(ft_collectives_record(c, 1, &r, now), 0);
    ft_collectives_flush(c, now);
    ck_assert_uint_eq(got.reports, 1);
    ck_assert_int_eq(got.last.start_ns, 0);
    ck_assert_int_eq(got.last.end_ns, now.ns + 10000 * MS);
    ck_assert_uint_eq(got.sent, UINT64_C(1) << 53);
    ck_assert_ptr_nonnull(strstr(got.json, "\"duration_us\":15000000,"));
    ck_assert_ptr_nonnull(strstr(got.json, "\"step_max_ns\":9007199254740992"));
    ft_collectives_free(c);
}
END_TEST

/* A job that invents a kind of operation for each: no more than the caps go out a second. */
START_TEST(kinds_without_end_are_capped)
{
    struct ft_collectives *c = make(64, 10000, 10);
    struct ft_collectives_stats stats;

    for (uint64_t i = 1; i <= 5000; i++) {
        struct ft_segment_record r = {
            .kind = FT_SEGMENT_OP, .events = 1, .comm_id = 0xab, .ranks = 4, .op = i};

        r.u.op.count = i;
        ft_collectives_record(c, 1, &r, (struct ft_mono){10 * MS});
        proxy(c, i, 2, 0, 10);
    }
    ft_collectives_flush(c, (struct ft_mono){10 * MS});
    ft_collectives_stats(c, &stats);
    ck_assert_uint_le(got.reports, 2 * 10 + 256);
    ck_assert_uint_gt(stats.events_capped, 4000);
    ck_assert_uint_eq(stats.events_pending, 0);
    ck_assert_uint_eq(stats.events_in, stats.events_out + stats.events_capped);
    ck_assert_uint_gt(stats.transfers_capped, 4000);
    ck_assert_uint_eq(stats.transfers_in, stats.transfers_out + stats.transfers_capped);
    ck_assert_uint_eq(stats.transfers_pending, 0);
    ft_collectives_free(c);
}
END_TEST

static uint64_t out_of(const struct ft_account_stage *stage)
{
    uint64_t n = stage->processed + stage->pending;

    for (size_t i = 0; i < stage->drop_count; i++)
        ck_assert(!__builtin_add_overflow(n, stage->drops[i].count, &n));
    return n;
}

/* Counters of any size, that jump and go back, of many jobs: received = processed + pending +
 * drops, in numbers that do not wrap. */
START_TEST(lying_counters_leave_the_account_balanced)
{
    static const uint64_t odd[] = {0, 1, 1000, UINT64_MAX, UINT64_MAX / 2, UINT64_C(1) << 63};
    struct ft_tally sum = {0};
    uint64_t before = 0;

    srandom(7);
    for (int i = 0; i < 20000; i++) {
        struct ft_rings_stats now = {.stray = 2}, then = {.events = odd[random() % 6]};
        struct ft_collectives_stats made = {.events_out = 5,
                                            .events_pending = 1,
                                            .transfers_in = 10,
                                            .transfers_out = 4,
                                            .transfers_pending = 3,
                                            .transfers_no_room = 2,
                                            .transfers_capped = 1};
        struct ft_account account = {.stage_count = 0};
        struct ft_tally_counts counts = {0};
        struct ft_tally job;

        now.events = odd[random() % 6];
        now.lost = odd[random() % 6];
        now.outside = odd[random() % 6];
        for (int d = 0; d < FT_DROPS; d++)
            now.drops[d] = odd[random() % 6];
        ck_assert_uint_le(ft_tally_believe(&counts, &now, &then, UINT64_MAX), 3 + FT_DROPS);
        ft_tally_job(&job, &counts, &now, &made, random() % 2);
        ck_assert_uint_eq(job.published, 5);
        ft_tally_add(&sum, &job);
        ft_tally_account(&sum, &account);
        ck_assert_uint_eq(account.stages[0].received, out_of(&account.stages[0]));
        ck_assert_uint_eq(account.stages[1].received, out_of(&account.stages[1]));
        ck_assert_uint_ge(account.stages[1].received, 10);
        ck_assert_uint_ge(account.stages[0].received, before);
        before = account.stages[0].received;
    }
}
END_TEST

/* A process of ten seconds cannot have lost more than it can have called. */
START_TEST(what_no_process_can_do_does_not_count)
{
    struct ft_rings_stats then = {.events = 0}, now = {.events = 4000, .lost = 7, .drops = {30}};
    const struct ft_collectives_stats made = {.events_out = 5};
    struct ft_tally_counts counts = {0};
    struct ft_account account = {.stage_count = 0};
    struct ft_tally job, sum = {0};

    ck_assert_uint_eq(ft_tally_believe(&counts, &now, &then, 10), 0);
    now.events = UINT64_C(1) << 50;
    now.lost = UINT64_C(1) << 55;
    now.drops[0] = UINT64_C(1) << 40;
    now.drops[1] = 12;
    ck_assert_uint_eq(ft_tally_believe(&counts, &now, &then, 10), 3);
    ft_tally_job(&job, &counts, &now, &made, true);
    ft_tally_add(&sum, &job);
    ck_assert_uint_eq(sum.events, 4000);
    ck_assert_uint_eq(sum.lost, 7);
    ck_assert_uint_eq(sum.drops[0], 30);
    ck_assert_uint_eq(sum.drops[1], 12);
    ft_tally_account(&sum, &account);
    ck_assert_uint_eq(account.stages[0].received, out_of(&account.stages[0]));
    /* Told once; what can be after all counts, as it does of a process that is that old. */
    ck_assert_uint_eq(ft_tally_believe(&counts, &now, &then, 10), 0);
    now.drops[0] = 31;
    ck_assert_uint_eq(ft_tally_believe(&counts, &now, &then, 10), 0);
    ck_assert_uint_eq(counts.drops[0], 31);
    now.drops[0] = UINT64_C(1) << 40;
    ck_assert_uint_eq(ft_tally_believe(&counts, &now, &then, 2000), 0);
    ck_assert_uint_eq(counts.drops[0], UINT64_C(1) << 40);
}
END_TEST

FT_UNIT_MAIN("collectives", what_no_process_can_do_does_not_count, kinds_without_end_are_capped,
             times_and_sums_of_a_lying_job_do_not_overflow,
             lying_counters_leave_the_account_balanced, one_report_an_operation,
             what_is_in_flight_has_not_ended, above_the_limit_like_goes_with_like,
             the_last_operations_are_told_one_by_one, caps_hold_and_nothing_is_lost,
             without_room_those_end_that_are_over, a_search_in_vain_is_not_made_again_and_again,
             what_has_no_operation, hostile_numbers_stay_out_of_records, buckets_and_median)
