// SPDX-License-Identifier: Apache-2.0
/* Which rank of a running job hangs or is slow: daemon/diagnosis/. */
#include "config.h"

#include "daemon/diagnosis/diagnoser.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

#define RANKS      4
#define MANY_RANKS 64
#define ROWS_EACH  1024 /* operations of a rank that are kept */
#define START_MS   INT64_C(1700000000000)
#define STEP_MS    200
#define LENGTH_MS  50
#define COMM       "0000000000000fab"
#define HANG_MS    10000
#define NS_PER_MS  UINT64_C(1000000)
#define WORK       37 /* so little that a look pauses everywhere */

static struct ft_diagnoser *diagnoser;
static struct ft_events *events;
static uint32_t ranks = RANKS;
static uint64_t number[MANY_RANKS]; /* of the last operation that ended */
static int64_t now_ms;
static size_t rows_look;
/* What came out. */
static unsigned raised, cleared, events_raised, events_cleared;
static char last[512];
static uint32_t last_rank, last_peer;
static Fabrictrace__Syndrome last_syndrome;

static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    const Fabrictrace__Diagnosis *d = record->diagnosis;

    (void)arg;
    if (record->kind_case == FABRICTRACE__RECORD__KIND_EVENT) {
        events_raised += !record->event->cleared;
        events_cleared += record->event->cleared;
        return;
    }
    ck_assert_int_eq(record->kind_case, FABRICTRACE__RECORD__KIND_DIAGNOSIS);
    raised += !d->cleared;
    cleared += d->cleared;
    last_syndrome = d->syndrome;
    last_rank = d->has_rank ? d->rank : UINT32_MAX;
    last_peer = d->has_peer ? d->peer : UINT32_MAX;
    snprintf(last, sizeof(last), "%s", d->message);
}

static const struct ft_emitter emitter = {on_record, NULL};

static void open_diagnoser(size_t ranks_max, size_t rows_max)
{
    const struct ft_diagnoser_config config = {
        .recent = {.ranks_max = ranks_max, .rows_max = rows_max},
        .standing_max = 16,
        .rows_look = rows_look,
        .hang_ms = HANG_MS,
    };

    diagnoser = ft_diagnoser_new(&config);
    events = ft_events_new(16, &emitter);
    ck_assert(diagnoser && events);
    memset(number, 0, sizeof(number));
    now_ms = START_MS;
    raised = cleared = events_raised = events_cleared = 0;
    last[0] = '\0';
}

static void close_diagnoser(void)
{
    ft_diagnoser_free(diagnoser);
    ft_events_free(events);
}

static void step(int64_t ms)
{
    const struct ft_diagnoser_surroundings around = {
        .fabric = "lab", .events = events, .emitter = &emitter};

    for (now_ms = ms; ft_diagnoser_step(diagnoser, now_ms, WORK, &around);)
        ;
}

static void host_of(uint32_t rank, char host[8])
{
    snprintf(host, 8, "gpu%02u", rank / 2);
}

/* An operation of a rank that ended, in microseconds after the start. */
static void end(uint32_t rank, uint64_t start_us, uint64_t length_us, uint64_t operations)
{
    Fabrictrace__Collective c = FABRICTRACE__COLLECTIVE__INIT;
    Fabrictrace__PeerTraffic peer = FABRICTRACE__PEER_TRAFFIC__INIT, *list[] = {&peer};
    char host[8];

    host_of(rank, host);
    c.job = text("88");
    c.comm_id = text(COMM);
    c.host = host;
    c.op = text("AllReduce");
    c.has_rank = c.has_ranks = c.has_pid = c.has_sequence = c.has_number = c.has_bytes = true;
    c.has_start_ms = c.has_duration_us = c.has_started_ns = c.has_operations = true;
    c.rank = rank;
    c.ranks = ranks;
    c.pid = 100 + rank;
    c.number = ++number[rank];
    c.sequence = c.number;
    c.bytes = 1 << 20;
    c.start_ms = (uint64_t)START_MS + start_us / 1000;
    c.started_ns = start_us * 1000 + 5;
    c.duration_us = length_us;
    c.operations = operations;
    c.peers = list;
    c.n_peers = 1;
    ft_diagnoser_collective(diagnoser, &c, START_MS + (int64_t)((start_us + length_us) / 1000));
}

/* Steps of a job whose rank `late` enters late_us after the others, each step looked at. */
static void run(unsigned from, unsigned to, uint32_t late, uint64_t late_us)
{
    for (unsigned i = from; i < to; i++) {
        uint64_t start = (uint64_t)i * STEP_MS * 1000;

        for (uint32_t r = 0; r < RANKS; r++) {
            /* Noise of some microseconds, other for each. */
            uint64_t noise = (i * 7919 + r * 104729) % 97;
            uint64_t own = r == late ? late_us + noise : noise;

            end(r, start + own, late_us + LENGTH_MS * 1000 - own, 1);
        }
        step(START_MS + (int64_t)(i + 1) * STEP_MS);
    }
}

struct flight {
    Fabrictrace__OperationState state;
    Fabrictrace__ProcessState process;
    Fabrictrace__TransferState transfer;
    uint32_t peer;
};

/* What a rank's agent says of it: that its operation after the last is in flight since then. */
static void stand(uint32_t rank, const struct flight *f, int64_t since_ms)
{
    Fabrictrace__Progress p = FABRICTRACE__PROGRESS__INIT;
    Fabrictrace__Transfer t = FABRICTRACE__TRANSFER__INIT, *list[] = {&t};
    bool flies = f->state == FABRICTRACE__OPERATION_STATE__OPERATION_STATE_IN_FLIGHT;
    char host[8];

    host_of(rank, host);
    p.job = text("88");
    p.comm_id = text(COMM);
    p.host = host;
    p.has_pid = p.has_rank = p.has_ranks = p.has_time_ms = p.has_process = p.has_state = true;
    p.has_standing = p.has_begun = p.has_finished = true;
    p.pid = 100 + rank;
    p.rank = rank;
    p.ranks = RANKS;
    p.time_ms = (uint64_t)now_ms;
    p.process = f->process;
    p.state = f->state;
    p.standing = true;
    p.finished = number[rank];
    p.begun = number[rank] + flies;
    if (flies) {
        p.has_number = p.has_sequence = p.has_start_ms = p.has_bytes = true;
        p.number = p.sequence = number[rank] + 1;
        p.start_ms = (uint64_t)since_ms;
        p.op = text("AllReduce");
        p.bytes = 1 << 20;
        t.has_peer = t.has_state = t.has_since_ms = t.has_send = true;
        t.peer = f->peer;
        t.state = f->transfer;
        t.since_ms = (uint64_t)since_ms;
        t.send = f->transfer == FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_WAIT;
        p.transfers = list;
        p.n_transfers = f->transfer != FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_UNKNOWN;
    }
    ft_diagnoser_progress(diagnoser, &p, now_ms);
}

static const struct flight away = {FABRICTRACE__OPERATION_STATE__OPERATION_STATE_FINISHED,
                                   FABRICTRACE__PROCESS_STATE__PROCESS_STATE_RUNNING, 0, 0};

static struct flight waits(uint32_t rank)
{
    return (struct flight){FABRICTRACE__OPERATION_STATE__OPERATION_STATE_IN_FLIGHT,
                           FABRICTRACE__PROCESS_STATE__PROCESS_STATE_RUNNING,
                           FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_RECV_WAIT,
                           (rank + RANKS - 1) % RANKS};
}

/* Twenty operations ended; from then on a rank is as in `odd`, or says nothing where that is NULL,
 * and the others wait, for so long. */
static void hang(uint32_t rank, const struct flight *odd, int64_t length_ms)
{
    int64_t since = START_MS + 20 * STEP_MS;

    run(0, 20, RANKS, 0);
    for (int64_t t = since + 1000; t <= since + length_ms; t += 1000) {
        now_ms = t;
        for (uint32_t r = 0; r < RANKS; r++) {
            struct flight f = waits(r);

            if (r != rank)
                stand(r, &f, since);
            else if (odd)
                stand(r, odd, since);
        }
        step(t);
    }
}

START_TEST(a_healthy_job_is_left_alone)
{
    open_diagnoser(64, 4096);
    run(0, 300, RANKS, 0);
    ck_assert_uint_eq(raised, 0);
    ck_assert_uint_gt(ft_diagnoser_stats(diagnoser)->looks, 5);
    ck_assert_uint_eq(ft_diagnoser_stats(diagnoser)->gaps, 0);
    close_diagnoser();
}
END_TEST

START_TEST(a_rank_that_does_not_enter_is_named_until_it_does)
{
    open_diagnoser(64, 4096);
    hang(2, &away, HANG_MS - 1000);
    ck_assert_uint_eq(raised, 0);
    close_diagnoser();
    open_diagnoser(64, 4096);
    hang(2, &away, HANG_MS + 2000);
    ck_assert_uint_eq(raised, 1);
    ck_assert_uint_eq(events_raised, 1);
    ck_assert_int_eq(last_syndrome, FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_HANG);
    ck_assert_uint_eq(last_rank, 2);
    ck_assert_ptr_nonnull(strstr(last, "rank 2 on gpu01"));
    ck_assert_uint_eq(ft_diagnoser_count(diagnoser, FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_HANG),
                      1);
    /* It goes on. */
    run(90, 120, RANKS, 0);
    ck_assert_uint_eq(cleared, 1);
    ck_assert_uint_eq(events_cleared, 1);
    ck_assert_uint_eq(raised, 1);
    ck_assert_uint_eq(ft_events_count(events), 0);
    close_diagnoser();
}
END_TEST

/* Where a look has room for few rows of each rank, as for 16,384 ranks: it takes more, less often.
 */
START_TEST(a_job_of_very_many_ranks_is_no_exception)
{
    rows_look = RANKS;
    open_diagnoser(64, 4096);
    rows_look = 0;
    hang(2, &away, HANG_MS + 16000);
    ck_assert_uint_eq(raised, 1);
    ck_assert_uint_eq(last_rank, 2);
    close_diagnoser();
}
END_TEST

START_TEST(a_process_that_is_stopped_is_named)
{
    struct flight f = waits(1);

    f.process = FABRICTRACE__PROCESS_STATE__PROCESS_STATE_STOPPED;
    open_diagnoser(64, 4096);
    hang(1, &f, HANG_MS + 2000);
    ck_assert_uint_eq(raised, 1);
    ck_assert_int_eq(last_syndrome, FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_HANG);
    ck_assert_uint_eq(last_rank, 1);
    ck_assert_ptr_nonnull(strstr(last, "101 on gpu00, is stopped"));
    close_diagnoser();
}
END_TEST

START_TEST(a_transfer_in_the_network_is_named_with_both_ends)
{
    struct flight f = waits(3);

    f.transfer = FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_WAIT;
    f.peer = 0;
    open_diagnoser(64, 4096);
    hang(3, &f, HANG_MS + 2000);
    ck_assert_uint_eq(raised, 1);
    ck_assert_int_eq(last_syndrome, FABRICTRACE__SYNDROME__SYNDROME_COMM_HANG);
    ck_assert_uint_eq(last_rank, 3);
    ck_assert_uint_eq(last_peer, 0);
    close_diagnoser();
}
END_TEST

START_TEST(a_gpu_that_gives_no_data_is_named)
{
    struct flight f = waits(0);

    f.transfer = FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_GPU_WAIT;
    open_diagnoser(64, 4096);
    hang(0, &f, HANG_MS + 2000);
    ck_assert_uint_eq(raised, 1);
    ck_assert_int_eq(last_syndrome, FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_HANG);
    ck_assert_uint_eq(last_rank, 0);
    close_diagnoser();
}
END_TEST

START_TEST(a_job_that_was_killed_does_not_hang)
{
    int64_t since = START_MS + 20 * STEP_MS;

    open_diagnoser(64, 4096);
    run(0, 20, RANKS, 0);
    for (int64_t t = since + 1000; t <= since + 3 * HANG_MS; t += 1000) {
        now_ms = t;
        for (uint32_t r = 0; r < RANKS; r++) {
            struct flight f = waits(r);

            f.process = FABRICTRACE__PROCESS_STATE__PROCESS_STATE_GONE;
            stand(r, &f, since);
        }
        step(t);
    }
    ck_assert_uint_eq(raised, 0);
    close_diagnoser();
}
END_TEST

START_TEST(a_process_that_died_is_named_however_long)
{
    struct flight f = waits(1), dead = waits(1);
    int64_t since = START_MS + 20 * STEP_MS;

    dead.process = FABRICTRACE__PROCESS_STATE__PROCESS_STATE_GONE;
    open_diagnoser(64, 4096);
    hang(1, &dead, HANG_MS + 2000);
    ck_assert_uint_eq(raised, 1);
    ck_assert_uint_eq(last_rank, 1);
    /* Its agent says so once. */
    for (int64_t t = now_ms + 1000; t < since + 300000; t += 1000) {
        now_ms = t;
        for (uint32_t r = 0; r < RANKS; r++) {
            f = waits(r);
            if (r != 1)
                stand(r, &f, since);
        }
        step(t);
    }
    ck_assert_uint_eq(raised, 1);
    ck_assert_uint_eq(cleared, 0);
    close_diagnoser();
}
END_TEST

START_TEST(a_process_that_died_between_operations_is_named)
{
    struct flight f = away;
    int64_t since = START_MS + 20 * STEP_MS;

    f.process = FABRICTRACE__PROCESS_STATE__PROCESS_STATE_GONE;
    open_diagnoser(64, 4096);
    run(0, 20, RANKS, 0);
    /* Its agent says so once, before the others wait. */
    now_ms = since - 10;
    stand(1, &f, since);
    for (int64_t t = since + 1000; t <= since + HANG_MS + 3000; t += 1000) {
        now_ms = t;
        for (uint32_t r = 0; r < RANKS; r++) {
            f = waits(r);
            if (r != 1)
                stand(r, &f, since);
        }
        step(t);
    }
    ck_assert_uint_eq(raised, 1);
    ck_assert_int_eq(last_syndrome, FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_HANG);
    ck_assert_uint_eq(last_rank, 1);
    close_diagnoser();
}
END_TEST

START_TEST(of_a_rank_that_nobody_speaks_of_nothing_is_known)
{
    open_diagnoser(64, 4096);
    /* The agent of its host still tells of the other rank there: it would tell of this one. */
    hang(2, NULL, HANG_MS + 20000);
    ck_assert_uint_eq(raised, 0);
    close_diagnoser();
}
END_TEST

START_TEST(a_late_rank_is_named_and_who_waits_is_not)
{
    open_diagnoser(64, 4096);
    run(0, 60, RANKS, 0);
    ck_assert_uint_eq(raised, 0);
    run(60, 240, 1, 60000);
    ck_assert_uint_eq(raised, 1);
    ck_assert_int_eq(last_syndrome, FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_SLOW);
    ck_assert_uint_eq(last_rank, 1);
    close_diagnoser();
}
END_TEST

START_TEST(a_lost_record_blames_nobody)
{
    open_diagnoser(64, 4096);
    run(0, 40, RANKS, 0);
    /* One of rank 1 does not come in: it looks as if it had worked for two periods. */
    for (uint32_t r = 0; r < RANKS; r++) {
        if (r == 1)
            number[r]++;
        else
            end(r, 40 * STEP_MS * 1000, LENGTH_MS * 1000, 1);
    }
    run(41, 100, RANKS, 0);
    ck_assert_uint_gt(ft_diagnoser_stats(diagnoser)->gaps, 0);
    ck_assert_uint_eq(raised, 0);
    close_diagnoser();
}
END_TEST

START_TEST(operations_in_sums_are_not_judged)
{
    open_diagnoser(64, 4096);
    run(0, 40, RANKS, 0);
    end(0, 40 * STEP_MS * 1000, LENGTH_MS * 1000, 7);
    run(41, 140, 1, 60000);
    ck_assert_uint_gt(ft_diagnoser_stats(diagnoser)->folded, 0);
    ck_assert_uint_eq(raised, 0);
    close_diagnoser();
}
END_TEST

START_TEST(tables_have_bounds)
{
    const struct ft_recent_rank *r;

    open_diagnoser(RANKS - 1, 40);
    run(0, 50, RANKS, 0);
    ck_assert_uint_eq(ft_recent_ranks(ft_diagnoser_recent(diagnoser)), RANKS - 1);
    ck_assert_uint_gt(ft_recent_refused(ft_diagnoser_recent(diagnoser)), 0);
    for (uint32_t i = 0; i < RANKS - 1; i++) {
        r = ft_recent_find(ft_diagnoser_recent(diagnoser), COMM, i);
        ck_assert_ptr_nonnull(r);
        ck_assert_uint_le(r->count, 16);
        if (r->count)
            ck_assert_uint_eq(ft_recent_row(r, r->count - 1)->number, 50);
    }
    close_diagnoser();
}
END_TEST

/* The memory that is taken at a time, by the linker's replacements of the allocator's functions. */
void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void __real_free(void *old);
void __wrap_free(void *old);

static size_t taken, most_taken;

static void *took(void *p)
{
    taken += malloc_usable_size(p);
    most_taken = taken > most_taken ? taken : most_taken;
    return p;
}

void *__wrap_malloc(size_t bytes)
{
    return took(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return took(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *old, size_t bytes)
{
    taken -= malloc_usable_size(old);
    return took(__real_realloc(old, bytes));
}

void __wrap_free(void *old)
{
    taken -= malloc_usable_size(old);
    __real_free(old);
}

/* A look at as many operations as one takes is within what the budget of the program gives it. */
START_TEST(a_look_takes_what_the_budget_gives_it)
{
    size_t before;

    ck_assert_uint_eq(MANY_RANKS * ROWS_EACH, FT_DIAGNOSER_ROWS_LOOK);
    ranks = MANY_RANKS;
    open_diagnoser(MANY_RANKS, 2 * FT_DIAGNOSER_ROWS_LOOK);
    for (uint64_t i = 0; i < ROWS_EACH; i++)
        for (uint32_t r = 0; r < MANY_RANKS; r++)
            end(r, 1000 * i + (i * 7919 + r * 104729) % 97, 500, 1);
    before = most_taken = taken;
    step(START_MS + ROWS_EACH);
    ck_assert_uint_gt(most_taken - before, 100 * FT_DIAGNOSER_ROWS_LOOK);
    ck_assert_uint_le(most_taken - before, FT_DIAGNOSER_BYTES_MAX);
    close_diagnoser();
    ranks = RANKS;
}
END_TEST

START_TEST(a_job_that_is_gone_takes_its_diagnoses_along)
{
    open_diagnoser(64, 4096);
    hang(2, &away, HANG_MS + 2000);
    ck_assert_uint_eq(raised, 1);
    step(now_ms + 200000);
    ck_assert_uint_eq(cleared, 1);
    ck_assert_uint_eq(ft_recent_ranks(ft_diagnoser_recent(diagnoser)), 0);
    close_diagnoser();
}
END_TEST

/* Killed while a rank is late: nobody is left to wait for who died. */
START_TEST(a_job_of_which_all_died_takes_its_diagnoses_along)
{
    struct flight dead = away;

    dead.process = FABRICTRACE__PROCESS_STATE__PROCESS_STATE_GONE;
    open_diagnoser(64, 4096);
    run(0, 60, RANKS, 0);
    run(60, 240, 1, 60000);
    ck_assert_uint_eq(raised, 1);
    for (uint32_t r = 0; r < RANKS; r++)
        stand(r, &dead, now_ms);
    step(now_ms + 200000);
    ck_assert_uint_eq(cleared, 1);
    ck_assert_uint_eq(ft_recent_ranks(ft_diagnoser_recent(diagnoser)), 0);
    close_diagnoser();
}
END_TEST

START_TEST(nonsense_is_refused)
{
    Fabrictrace__Collective c = FABRICTRACE__COLLECTIVE__INIT;
    Fabrictrace__Progress p = FABRICTRACE__PROGRESS__INIT;

    open_diagnoser(64, 4096);
    ft_diagnoser_collective(diagnoser, &c, START_MS);
    ft_diagnoser_progress(diagnoser, &p, START_MS);
    c.comm_id = p.comm_id = text(COMM);
    c.host = p.host = text("gpu00");
    c.has_rank = p.has_rank = true;
    c.op = p.op = text("AllReduce");
    c.has_start_ms = c.has_duration_us = c.has_started_ns = p.has_start_ms = true;
    c.start_ms = c.duration_us = c.started_ns = p.start_ms = UINT64_MAX;
    c.sequence = c.number = c.bytes = p.number = p.begun = UINT64_MAX;
    p.state = FABRICTRACE__OPERATION_STATE__OPERATION_STATE_IN_FLIGHT;
    for (uint32_t r = 0; r < RANKS; r++) {
        c.rank = p.rank = r;
        ft_diagnoser_collective(diagnoser, &c, START_MS);
        ft_diagnoser_progress(diagnoser, &p, START_MS);
    }
    for (int64_t t = START_MS; t < START_MS + 60000; t += 1000)
        step(t);
    ck_assert_uint_eq(raised, 0);
    close_diagnoser();
}
END_TEST

FT_UNIT_MAIN("diagnoser", a_look_takes_what_the_budget_gives_it, a_healthy_job_is_left_alone,
             a_rank_that_does_not_enter_is_named_until_it_does, a_process_that_is_stopped_is_named,
             a_job_of_very_many_ranks_is_no_exception,
             a_transfer_in_the_network_is_named_with_both_ends, a_gpu_that_gives_no_data_is_named,
             a_process_that_died_between_operations_is_named, a_job_that_was_killed_does_not_hang,
             a_process_that_died_is_named_however_long,
             of_a_rank_that_nobody_speaks_of_nothing_is_known,
             a_late_rank_is_named_and_who_waits_is_not, a_lost_record_blames_nobody,
             operations_in_sums_are_not_judged, tables_have_bounds,
             a_job_that_is_gone_takes_its_diagnoses_along,
             a_job_of_which_all_died_takes_its_diagnoses_along, nonsense_is_refused)
