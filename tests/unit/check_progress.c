// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/jobs/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/jobs/process.h"
#include "agent/jobs/progress_record.h"
#include "proto/record.h"
#include "tests/unit/unit.h"

#define MS INT64_C(1000000)
#define S  (1000 * MS)

static struct {
    size_t reports;
    enum ft_progress_state state;
    enum ft_progress_process process;
    uint64_t number, finished;
    uint32_t open;
    bool standing, has_op, stands;
    size_t count, dropped;
    enum ft_segment_wait wait[FT_PROGRESS_TRANSFERS];
    uint32_t channel[FT_PROGRESS_TRANSFERS];
    char json[65536];
} got;

static int fd = -1;
static struct ft_segment *job;
static struct ft_rings *rings;
static struct ft_progress *progress;

static uint32_t pid = 7;

static void emit(void *arg, const struct ft_progress_report *r)
{
    const struct ft_job_identity who = {.host = "gpu01", .job = "88", .pid = pid, .offset_ms = 5};
    static struct ft_progress_record record;
    struct ft_writer w;

    (void)arg;
    got.reports++;
    got.state = r->state;
    got.process = r->process;
    got.number = r->number;
    got.finished = r->finished;
    got.open = r->open;
    got.standing = r->standing;
    got.has_op = r->op;
    got.stands = r->op && r->op->sequence_stands;
    got.count = r->count;
    got.dropped = r->dropped;
    for (size_t i = 0; i < r->count; i++) {
        ck_assert_int_lt(r->transfers[i]->wait, FT_WAITS);
        got.wait[i] = r->transfers[i]->wait;
        got.channel[i] = r->transfers[i]->channel;
    }
    ft_progress_record_fill(&record, r, &who, 1000);
    ft_writer_init(&w, sizeof(got.json) - 1);
    ck_assert_int_eq(ft_record_to_json(&record.record, &w), 0);
    snprintf(got.json, sizeof(got.json), "%.*s", (int)w.len, (const char *)w.bytes);
    ft_writer_free(&w);
}

/* A job with one communicator, opened at 1 s; a rank is told after 3 s without a movement. */
static void begin(void)
{
    const struct ft_progress_config config = {.quiet_ns = 3 * S};

    fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_eq(ftruncate(fd, sizeof(*job)), 0);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    job = mmap(NULL, sizeof(*job), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(job, MAP_FAILED);
    job->magic = FT_SEGMENT_MAGIC;
    job->version = FT_SEGMENT_VERSION;
    job->rings = FT_SEGMENT_RINGS;
    job->slots = FT_SEGMENT_SLOTS;
    job->comms = FT_SEGMENT_COMMS;
    job->record_bytes = sizeof(struct ft_segment_record);
    job->flight_bytes = sizeof(struct ft_segment_flight);
    job->comm[2].sequence = 2;
    job->comm[2].open = 1;
    job->comm[2].comm_id = 0xab;
    job->comm[2].rank = 1;
    job->comm[2].ranks = 4;
    job->comm[2].opened_ns = 1 * S;
    ck_assert_int_eq(ft_rings_open(fd, &rings), 0);
    progress = ft_progress_new(&config, emit, NULL);
    ck_assert_ptr_nonnull(progress);
    memset(&got, 0, sizeof(got));
}

static void end(void)
{
    ft_progress_free(progress);
    ft_rings_free(rings);
    munmap(job, sizeof(*job));
    close(fd);
}

static void look(int64_t at_ms)
{
    ft_progress_look(progress, rings, FT_PROCESS_RUNNING, (struct ft_mono){at_ms * MS});
}

static void record(enum ft_segment_kind kind, uint64_t number, uint64_t sequence, int64_t at_ms)
{
    struct ft_segment_record r = {.kind = (uint16_t)kind,
                                  .events = 1,
                                  .comm_id = 0xab,
                                  .rank = 1,
                                  .ranks = 4,
                                  .comm = 2,
                                  .number = number,
                                  .start_ns = at_ms * MS,
                                  .end_ns = at_ms * MS};

    if (kind == FT_SEGMENT_OP) {
        job->comm[2].begun = number;
        r.u.op.sequence = sequence;
        snprintf(r.u.op.func, sizeof(r.u.op.func), "AllGather");
    }
    ft_progress_record(progress, &r, (struct ft_mono){at_ms * MS});
}

/* A transfer in the place i of the first ring, with one step. */
static struct ft_segment_flight *flight(unsigned i, uint64_t number, enum ft_segment_wait wait,
                                        int64_t at_ms)
{
    struct ft_segment_flight *f = &job->flight[0][i];

    f->sequence = 2;
    f->kind = FT_SEGMENT_PROXY;
    f->flags = FT_SEGMENT_SEND;
    f->number = number;
    f->start_ns = at_ms * MS;
    f->comm = 2;
    f->peer = 2;
    f->channel = i;
    f->expected = 8;
    f->done = 1;
    f->moved = ft_segment_step(FT_WAIT_IDLE, at_ms * MS);
    f->step[0] = ft_segment_step(wait, at_ms * MS);
    job->ring[0].open[i / 64] |= UINT64_C(1) << i % 64;
    return f;
}

START_TEST(what_moves_is_not_reported_what_stands_is)
{
    begin();
    record(FT_SEGMENT_OP, 1, 0, 2000);
    flight(0, 1, FT_WAIT_SEND, 2000);
    look(4900);
    ck_assert_uint_eq(got.reports, 0);
    look(5000);
    ck_assert_uint_eq(got.reports, 1);
    ck_assert(got.standing && got.has_op);
    ck_assert_int_eq(got.state, FT_PROGRESS_IN_FLIGHT);
    ck_assert_uint_eq(got.number, 1);
    ck_assert_uint_eq(got.open, 1);
    ck_assert_uint_eq(got.count, 1);
    ck_assert_int_eq(got.wait[0], FT_WAIT_SEND);
    ck_assert_ptr_nonnull(strstr(got.json, "\"state\":\"send_wait\",\"since_ms\":2005"));
    ck_assert_ptr_nonnull(strstr(got.json, "\"started_ns\":2000000000"));
    /* The same is told again after a while, a change within a second. */
    look(9900);
    ck_assert_uint_eq(got.reports, 1);
    look(10000);
    ck_assert_uint_eq(got.reports, 2);
    job->flight[0][0].step[0] = ft_segment_step(FT_WAIT_SEND_PEER, 2000 * MS);
    look(10500);
    ck_assert_uint_eq(got.reports, 2);
    look(11000);
    ck_assert_uint_eq(got.reports, 3);
    ck_assert_int_eq(got.wait[0], FT_WAIT_SEND_PEER);
    /* It ends: told once, then nothing. */
    job->ring[0].open[0] = 0;
    record(FT_SEGMENT_PROXY, 1, 0, 11100);
    look(11500);
    ck_assert_uint_eq(got.reports, 4);
    ck_assert(!got.standing && got.count == 0);
    ck_assert_int_eq(got.state, FT_PROGRESS_FINISHED);
    look(12000);
    ck_assert_uint_eq(got.reports, 4);
    end();
}
END_TEST

/* Nor does it stand for ever: the next operation begins when it is seen. */
START_TEST(a_process_that_is_not_known_has_no_number)
{
    begin();
    record(FT_SEGMENT_OP, 1, 0, 2000);
    flight(0, 1, FT_WAIT_SEND, 2000);
    look(5000);
    ck_assert_ptr_nonnull(strstr(got.json, "\"pid\":7"));
    pid = 0;
    look(10000);
    pid = 7;
    ck_assert_uint_eq(got.reports, 2);
    ck_assert_ptr_null(strstr(got.json, "\"pid\""));
    end();
}
END_TEST

START_TEST(what_begins_in_the_future_stands_from_when_it_is_seen)
{
    static const int64_t odd_ns[] = {INT64_MAX, 900 * S, -1};

    for (size_t i = 0; i < 3; i++) {
        begin();
        record(FT_SEGMENT_OP, 1, 0, 2000);
        flight(0, 1, FT_WAIT_SEND, 2000)->start_ns = odd_ns[i];
        job->flight[0][0].moved = ft_segment_step(FT_WAIT_IDLE, 900 * S);
        job->flight[0][0].step[0] = ft_segment_step(FT_WAIT_SEND, 900 * S);
        for (int64_t ms = 2000; ms < 5000; ms += 500)
            look(ms);
        ck_assert_uint_eq(got.reports, 0);
        look(5000);
        ck_assert_uint_eq(got.reports, 1);
        ck_assert(got.standing);
        job->flight[0][0].number = 2;
        record(FT_SEGMENT_OP, 2, 1, 5500);
        look(5500);
        look(8000);
        ck_assert(!got.standing);
        look(8500);
        ck_assert(got.standing);
        end();
    }
}
END_TEST

START_TEST(an_operation_that_takes_long_is_reported_while_it_moves)
{
    struct ft_segment_flight *f;

    begin();
    record(FT_SEGMENT_OP, 1, 0, 2000);
    f = flight(0, 1, FT_WAIT_SEND, 2000);
    f->step[0] = ft_segment_step(FT_WAIT_SEND, 4900 * MS);
    look(5000);
    ck_assert_uint_eq(got.reports, 1);
    ck_assert(!got.standing);
    for (int64_t at = 5100; at < 10000; at += 100) {
        f->step[0] = ft_segment_step(FT_WAIT_SEND, at * MS);
        look(at);
    }
    ck_assert_uint_eq(got.reports, 1);
    look(10000);
    ck_assert_uint_eq(got.reports, 2);
    end();
}
END_TEST

START_TEST(pauses_are_reported_rarely)
{
    size_t told = 0;

    begin();
    /* A step of training every four seconds, for a minute. */
    for (int64_t at = 2000; at < 62000; at += 500) {
        if (at % 4000 == 0) {
            record(FT_SEGMENT_OP, (uint64_t)at / 4000, (uint64_t)at, at);
            record(FT_SEGMENT_PROXY, (uint64_t)at / 4000, 0, at);
        }
        got.reports = 0;
        look(at);
        told += got.reports && got.standing;
    }
    ck_assert_uint_ge(told, 4);
    ck_assert_uint_le(told, 6);
    /* One that lasts. */
    told = 0;
    for (int64_t at = 62000; at < 262000; at += 500) {
        got.reports = 0;
        look(at);
        told += got.reports;
    }
    ck_assert_uint_ge(told, 3);
    ck_assert_uint_le(told, 5);
    ck_assert_int_eq(got.state, FT_PROGRESS_FINISHED);
    end();
}
END_TEST

START_TEST(the_first_operation_in_flight_is_the_one)
{
    begin();
    for (uint64_t n = 1; n <= 9; n++)
        record(FT_SEGMENT_OP, n, n, 2000);
    record(FT_SEGMENT_PROXY, 6, 0, 2100);
    flight(3, 5, FT_WAIT_RECV, 2000);
    flight(1, 7, FT_WAIT_RECV, 2000);
    look(6000);
    ck_assert_uint_eq(got.number, 5);
    ck_assert_uint_eq(got.finished, 4);
    ck_assert_uint_eq(got.open, 1);
    ck_assert_uint_eq(got.count, 2);
    ck_assert_uint_eq(got.channel[0], 3);
    /* Without it the next one is, and then what no transfer was seen of. */
    job->ring[0].open[0] = 2;
    look(8000);
    ck_assert_uint_eq(got.number, 7);
    ck_assert_uint_eq(got.finished, 6);
    job->ring[0].open[0] = 0;
    look(10000);
    ck_assert_uint_eq(got.number, 7);
    ck_assert_int_eq(got.state, FT_PROGRESS_BEGUN);
    end();
}
END_TEST

START_TEST(the_furthest_step_holds_up_a_transfer)
{
    struct ft_segment_flight *f;

    begin();
    record(FT_SEGMENT_OP, 1, 0, 2000);
    f = flight(0, 1, FT_WAIT_SEND_GPU, 2000);
    f->step[5] = ft_segment_step(FT_WAIT_SEND_PEER, 2500 * MS);
    f->step[9] = ft_segment_step(FT_WAIT_SEND_PEER, 2400 * MS);
    f->step[2] = ft_segment_step(FT_WAIT_SEND_GPU, 2100 * MS);
    look(6000);
    ck_assert_int_eq(got.wait[0], FT_WAIT_SEND_PEER);
    ck_assert_ptr_nonnull(strstr(got.json, "\"since_ms\":2405"));
    ck_assert_ptr_nonnull(strstr(got.json, "\"steps_open\":4"));
    for (int i = 0; i < FT_SEGMENT_STEPS; i++)
        f->step[i] = 0;
    look(8000);
    ck_assert_int_eq(got.wait[0], FT_WAIT_IDLE);
    end();
}
END_TEST

START_TEST(graphs_and_lost_records_are_reported_as_such)
{
    begin();
    record(FT_SEGMENT_OP, 1, 7, 2000);
    record(FT_SEGMENT_OP, 2, 8, 2000);
    flight(0, 2, FT_WAIT_RECV, 2000);
    look(6000);
    ck_assert(got.has_op && !got.stands);
    record(FT_SEGMENT_OP, 3, 8, 6000);
    flight(0, 3, FT_WAIT_RECV, 6000);
    look(12000);
    ck_assert(got.has_op && got.stands);
    /* The ring was full. */
    job->comm[2].begun = 4;
    flight(0, 4, FT_WAIT_RECV, 12000);
    look(18000);
    ck_assert_uint_eq(got.number, 4);
    ck_assert(!got.has_op);
    ck_assert_ptr_null(strstr(got.json, "\"op\":"));
    end();
}
END_TEST

START_TEST(a_process_that_is_stopped_or_gone_is_reported_at_once)
{
    begin();
    record(FT_SEGMENT_OP, 1, 0, 2000);
    flight(0, 1, FT_WAIT_RECV_GPU, 2000);
    ft_progress_look(progress, rings, FT_PROCESS_STOPPED, (struct ft_mono){2100 * MS});
    ck_assert_uint_eq(got.reports, 1);
    ck_assert_int_eq(got.process, FT_PROCESS_STOPPED);
    ft_progress_look(progress, rings, FT_PROCESS_GONE, (struct ft_mono){2200 * MS});
    ck_assert_uint_eq(got.reports, 2);
    ck_assert_int_eq(got.process, FT_PROCESS_GONE);
    ck_assert_ptr_nonnull(strstr(got.json, "recv_gpu_wait"));
    job->comm[2].open = 0;
    ft_progress_look(progress, rings, FT_PROCESS_GONE, (struct ft_mono){2300 * MS});
    ck_assert_uint_eq(got.reports, 2);
    end();
}
END_TEST

/* As of one that nobody waits for: it may be for hours. */
START_TEST(a_process_that_is_gone_is_reported_as_one_that_is_stopped)
{
    begin();
    record(FT_SEGMENT_OP, 1, 0, 2000);
    flight(0, 1, FT_WAIT_SEND, 2000);
    for (int64_t at_ms = 2500; at_ms < 62500; at_ms += 500)
        ft_progress_look(progress, rings, FT_PROCESS_GONE, (struct ft_mono){at_ms * MS});
    /* At once, when it stands, and from then on every 5 s. */
    ck_assert_uint_eq(got.reports, 13);
    /* Stopped a moment before it is killed, it is gone at once. */
    ft_progress_look(progress, rings, FT_PROCESS_STOPPED, (struct ft_mono){70000 * MS});
    ft_progress_look(progress, rings, FT_PROCESS_GONE, (struct ft_mono){70100 * MS});
    ck_assert_uint_eq(got.reports, 15);
    end();
}
END_TEST

START_TEST(another_communicator_in_the_same_slot_begins_anew)
{
    begin();
    for (uint64_t n = 1; n <= 5; n++)
        record(FT_SEGMENT_OP, n, n, 2000);
    record(FT_SEGMENT_PROXY, 5, 0, 2000);
    look(3000);
    job->comm[2].comm_id = 0xcd;
    job->comm[2].opened_ns = 4 * S;
    job->comm[2].begun = 2;
    flight(0, 2, FT_WAIT_SEND, 4500);
    look(8000);
    ck_assert_uint_eq(got.number, 2);
    ck_assert_uint_eq(got.finished, 0);
    ck_assert(!got.has_op);
    end();
}
END_TEST

START_TEST(what_finds_no_room_is_counted)
{
    begin();
    record(FT_SEGMENT_OP, 1, 0, 2000);
    for (unsigned i = 0; i < 100; i++)
        flight(i, i < 36 ? 2 : 1, FT_WAIT_SEND, 2000);
    look(6000);
    ck_assert_uint_eq(got.count, FT_PROGRESS_TRANSFERS);
    ck_assert_uint_eq(got.count + got.dropped, 100);
    for (size_t i = 0; i < got.count; i++)
        ck_assert_uint_ge(got.channel[i], 36);
    end();
}
END_TEST

START_TEST(what_is_being_written_is_not_read)
{
    begin();
    record(FT_SEGMENT_OP, 1, 0, 2000);
    flight(0, 1, FT_WAIT_SEND, 2000)->sequence = 3;
    look(6000);
    ck_assert_uint_eq(got.count, 0);
    ck_assert_int_eq(got.state, FT_PROGRESS_BEGUN);
    end();
}
END_TEST

/* Whatever stands in the memory: a record that can be written and read. */
START_TEST(garbage_is_bounded)
{
    for (unsigned seed = 1; seed <= 20; seed++) {
        begin();
        srandom(seed);
        for (size_t at = 0; at < sizeof(job->flight[0]); at += sizeof(uint32_t)) {
            uint32_t word = (uint32_t)random() << (random() % 2 ? 1 : 0);

            memcpy((uint8_t *)job->flight[0] + at, &word, sizeof(word));
        }
        for (int i = 0; i < FT_SEGMENT_OPEN; i++) {
            job->flight[0][i].sequence = 4;
            job->flight[0][i].kind = FT_SEGMENT_PROXY;
            job->flight[0][i].start_ns = 1500 * MS;
            job->flight[0][i].comm = random() % 3 ? 2 : (uint32_t)random();
        }
        memset((void *)job->ring[0].open, 0xff, sizeof(job->ring[0].open));
        job->comm[2].begun = UINT64_MAX;
        for (int64_t at = 2000; at < 20000; at += 500)
            look(at);
        ck_assert_uint_gt(got.reports, 0);
        ck_assert_uint_gt(got.dropped, 0);
        end();
    }
}
END_TEST

START_TEST(the_kernel_says_how_a_process_is)
{
    const char *text = "7 (a) R) b) T 1 7 7 0 -1 4194560 120 0 0 0 3 4 0 0 20 0 1 0 4711 1 2 3";
    struct ft_process_seen seen;

    ck_assert_int_eq(ft_process_read(text, &seen), 0);
    ck_assert_int_eq(seen.state, 'T');
    ck_assert_uint_eq(seen.start_ticks, 4711);
    ck_assert_int_eq(ft_process_read("7 (a) T 1 7", &seen), -EBADMSG);
    ck_assert_int_eq(ft_process_read("", &seen), -EBADMSG);
    ck_assert_int_eq(ft_process_see((uint32_t)getpid(), &seen), 0);
    ck_assert_int_eq(seen.state, 'R');
    ck_assert_int_eq(ft_process_see(0x7fffffff, &seen), -ESRCH);
}
END_TEST

START_TEST(who_was_never_seen_is_not_gone)
{
    const uint32_t own = (uint32_t)getpid(), nobody = 0x7fffffff;
    struct ft_process_seen before = {.start_ticks = 0}, seen;

    /* Of another PID namespace the kernel says 0. */
    ck_assert_int_eq(ft_process_see_again(0, &before, &seen), -EACCES);
    ck_assert_int_eq(ft_process_see_again(nobody, &before, &seen), -EACCES);
    ck_assert_int_eq(ft_process_see_again(own, &before, &before), 0);
    ck_assert_uint_gt(before.start_ticks, 0);
    ck_assert_int_eq(ft_process_see_again(own, &before, &seen), 0);
    ck_assert_int_eq(seen.state, 'R');
    ck_assert_int_eq(ft_process_see_again(nobody, &before, &seen), -ESRCH);
    /* Its number is another's. */
    before.start_ticks++;
    ck_assert_int_eq(ft_process_see_again(own, &before, &seen), -ESRCH);
}
END_TEST

FT_UNIT_MAIN("progress", what_begins_in_the_future_stands_from_when_it_is_seen,
             what_moves_is_not_reported_what_stands_is, a_process_that_is_not_known_has_no_number,
             an_operation_that_takes_long_is_reported_while_it_moves, pauses_are_reported_rarely,
             the_first_operation_in_flight_is_the_one, the_furthest_step_holds_up_a_transfer,
             graphs_and_lost_records_are_reported_as_such,
             a_process_that_is_stopped_or_gone_is_reported_at_once,
             a_process_that_is_gone_is_reported_as_one_that_is_stopped,
             another_communicator_in_the_same_slot_begins_anew, what_finds_no_room_is_counted,
             what_is_being_written_is_not_read, garbage_is_bounded,
             the_kernel_says_how_a_process_is, who_was_never_seen_is_not_gone)
