// SPDX-License-Identifier: Apache-2.0
/* However many ranks a job has, a look at it is done in steps, none of which does more than its
 * share: counted by the comparisons of sorts, the values that medians are taken of and the uses of
 * tables (the linker puts this program's own functions before those of the C library, of
 * lib/diagnosis/stats.c and of lib/base/table.c), not by time. What comes of the steps is what
 * comes of one. */
#include "config.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/diagnosis/diagnoser.h"
#include "lib/base/table.h"
#include "tests/unit/unit.h"

#define RANKS    16384
#define GPUS     8
#define START_MS INT64_C(1700000000000)
#define HANG_MS  10000
#define CULPRIT  77
#define ENDED    20 /* operations of each rank */
/* The daemon's steps, and how much may be compared and looked up in one: several times for what
 * counts as one. */
#define WORK      2000
#define USES_MAX  (16 * WORK)
#define PEERS_MAX 8

typedef int (*compare_fn)(const void *a, const void *b);
typedef int (*compare_arg_fn)(const void *a, const void *b, void *arg);

void __real_qsort_r(void *items, size_t count, size_t bytes, compare_arg_fn compare, void *arg);
void __wrap_qsort_r(void *items, size_t count, size_t bytes, compare_arg_fn compare, void *arg);
void __wrap_qsort(void *items, size_t count, size_t bytes, compare_fn compare);
void *__real_ft_table_find(const struct ft_table *t, const void *key);
void *__wrap_ft_table_find(const struct ft_table *t, const void *key);
void *__real_ft_table_insert(struct ft_table *t, const void *key, bool *fresh);
void *__wrap_ft_table_insert(struct ft_table *t, const void *key, bool *fresh);

double __real_ft_quantile(double *values, size_t count, double share);
double __wrap_ft_quantile(double *values, size_t count, double share);

static uint64_t uses;

struct sort {
    compare_fn compare;
    compare_arg_fn compare_arg;
    void *arg;
};

static int counted(const void *a, const void *b, void *arg)
{
    const struct sort *s = arg;

    uses++;
    return s->compare ? s->compare(a, b) : s->compare_arg(a, b, s->arg);
}

void __wrap_qsort_r(void *items, size_t count, size_t bytes, compare_arg_fn compare, void *arg)
{
    struct sort s = {.compare_arg = compare, .arg = arg};

    __real_qsort_r(items, count, bytes, counted, &s);
}

void __wrap_qsort(void *items, size_t count, size_t bytes, compare_fn compare)
{
    struct sort s = {.compare = compare};

    __real_qsort_r(items, count, bytes, counted, &s);
}

void *__wrap_ft_table_find(const struct ft_table *t, const void *key)
{
    uses++;
    return __real_ft_table_find(t, key);
}

void *__wrap_ft_table_insert(struct ft_table *t, const void *key, bool *fresh)
{
    uses++;
    return __real_ft_table_insert(t, key, fresh);
}

double __wrap_ft_quantile(double *values, size_t count, double share)
{
    uses += count / 2;
    return __real_ft_quantile(values, count, share);
}

static struct ft_diagnoser *diagnoser;
static struct ft_events *events;
static uint32_t ranks;
static uint64_t *number;
static int64_t now_ms;
static uint64_t longest, steps, in_calm;
static uint32_t peers = 1; /* that each rank sends to */
static bool measures;
static size_t most_taken;
static unsigned raised;
static uint32_t last_rank;
static Fabrictrace__Syndrome last_syndrome;
static char last[512];

static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    const Fabrictrace__Diagnosis *d = record->diagnosis;

    (void)arg;
    if (record->kind_case != FABRICTRACE__RECORD__KIND_DIAGNOSIS)
        return;
    raised += !d->cleared;
    last_rank = d->has_rank ? d->rank : UINT32_MAX;
    last_syndrome = d->syndrome;
    snprintf(last, sizeof(last), "%s", d->message);
}

static const struct ft_emitter emitter = {on_record, NULL};
static const struct ft_diagnoser_surroundings around = {.fabric = "lab", .emitter = &emitter};

static void begin(uint32_t all)
{
    const struct ft_diagnoser_config config = {
        .recent = {.ranks_max = 2 * (size_t)all, .rows_max = 4000000, .seed = 1},
        .standing_max = 64,
        .hang_ms = HANG_MS,
    };

    ranks = all;
    diagnoser = ft_diagnoser_new(&config);
    events = ft_events_new(64, &emitter);
    number = calloc(all, sizeof(*number));
    ck_assert(diagnoser && events && number);
    longest = steps = raised = 0;
    last[0] = '\0';
}

static void end(void)
{
    ft_diagnoser_free(diagnoser);
    ft_events_free(events);
    free(number);
}

/* By the allocator's own count. */
static size_t memory_taken(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* Looks until nothing is due; notes the longest step. */
static void look(int64_t ms, uint64_t work)
{
    struct ft_diagnoser_surroundings all = around;
    bool more = true;

    all.events = events;
    for (now_ms = ms; more; steps++) {
        uses = 0;
        more = ft_diagnoser_step(diagnoser, now_ms, work, &all);
        longest = uses > longest ? uses : longest;
        if (measures && memory_taken() > most_taken)
            most_taken = memory_taken();
    }
}

static void finish(uint32_t rank, uint64_t start_us, uint64_t length_us)
{
    Fabrictrace__Collective c = FABRICTRACE__COLLECTIVE__INIT;
    Fabrictrace__PeerTraffic room[PEERS_MAX], *list[PEERS_MAX];
    char host[16];

    snprintf(host, sizeof(host), "gpu%05u", rank / GPUS);
    c.job = text("large");
    c.comm_id = text("0000000000000fab");
    c.host = host;
    c.op = text("AllReduce");
    c.has_rank = c.has_ranks = c.has_pid = c.has_sequence = c.has_number = c.has_bytes = true;
    c.has_start_ms = c.has_duration_us = c.has_started_ns = c.has_operations = true;
    c.rank = rank;
    c.ranks = ranks;
    c.pid = 100 + rank % GPUS;
    c.sequence = c.number = ++number[rank];
    c.bytes = 64 << 20;
    c.start_ms = (uint64_t)START_MS + start_us / 1000;
    c.started_ns = start_us * 1000 + 5;
    c.duration_us = length_us;
    c.operations = 1;
    for (uint32_t i = 0; i < peers; i++) {
        Fabrictrace__PeerTraffic *peer = list[i] = &room[i];

        fabrictrace__peer_traffic__init(peer);
        peer->has_peer = peer->has_sent_bytes = peer->has_sent_messages = true;
        peer->has_step_median_ns = true;
        peer->peer = (rank + 1 + i) % ranks;
        peer->sent_bytes = 64 << 20;
        peer->sent_messages = 128;
        peer->step_median_ns = 26000 + (rank * 7919U + (unsigned)c.number * 131U) % 2600;
    }
    c.peers = list;
    c.n_peers = peers;
    ft_diagnoser_collective(diagnoser, &c, START_MS + (int64_t)(start_us + length_us) / 1000);
}

/* What an agent says of a rank that stands, or is behind. */
static void stand(uint32_t rank, uint64_t since_us, bool enters)
{
    Fabrictrace__Progress p = FABRICTRACE__PROGRESS__INIT;
    char host[16];

    snprintf(host, sizeof(host), "gpu%05u", rank / GPUS);
    p.job = text("large");
    p.comm_id = text("0000000000000fab");
    p.host = host;
    p.op = enters ? text("AllReduce") : NULL;
    p.has_rank = p.has_ranks = p.has_pid = p.has_time_ms = p.has_standing = p.has_begun = true;
    p.has_finished = p.has_state = p.has_process = p.standing = true;
    p.rank = rank;
    p.ranks = ranks;
    p.pid = 100 + rank % GPUS;
    p.time_ms = (uint64_t)now_ms;
    p.finished = number[rank];
    p.begun = p.finished + enters;
    p.state = enters ? FABRICTRACE__OPERATION_STATE__OPERATION_STATE_IN_FLIGHT
                     : FABRICTRACE__OPERATION_STATE__OPERATION_STATE_FINISHED;
    p.process = FABRICTRACE__PROCESS_STATE__PROCESS_STATE_RUNNING;
    p.has_number = p.has_sequence = p.has_start_ms = p.has_bytes = enters;
    p.number = p.sequence = p.begun;
    p.bytes = 64 << 20;
    p.start_ms = (uint64_t)START_MS + since_us / 1000;
    ft_diagnoser_progress(diagnoser, &p, now_ms);
}

/* A step of the job a second, of so long transfers from the half of them on. */
static void work_on(uint64_t late_us)
{
    for (unsigned s = 0; s < ENDED; s++) {
        uint64_t length = 50000 + (s >= ENDED / 2 ? late_us : 0);

        for (uint32_t r = 0; r < ranks; r++) {
            uint64_t noise = (s * 7919U + r * 104729U) % 97;

            finish(r, s * UINT64_C(1000000) + noise, length - noise);
        }
    }
}

/* Then one rank stays away. */
static void hang(uint64_t work)
{
    uint64_t since_us = ENDED * UINT64_C(1000000);

    work_on(0);
    look(START_MS + ENDED * 1000, work);
    for (unsigned s = 1; s <= 20; s++) {
        now_ms = START_MS + (ENDED + s) * 1000;
        for (uint32_t r = 0; s % 4 == 0 && r < ranks; r++)
            stand(r, since_us, r != CULPRIT);
        look(now_ms, work);
    }
}

START_TEST(no_step_of_a_look_is_long)
{
    char whole[sizeof(last)];
    uint64_t in_one;

    begin(RANKS);
    hang(UINT64_MAX);
    in_one = longest;
    snprintf(whole, sizeof(whole), "%s", last);
    ck_assert_uint_eq(raised, 1);
    ck_assert_uint_eq(last_rank, CULPRIT);
    end();
    begin(RANKS);
    hang(WORK);
    ck_assert_uint_eq(raised, 1);
    ck_assert_uint_eq(last_rank, CULPRIT);
    ck_assert_int_eq(last_syndrome, FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_HANG);
    ck_assert_str_eq(last, whole);
    ck_assert_uint_ge(in_one, 20 * USES_MAX);
    ck_assert_uint_le(longest, USES_MAX);
    end();
}
END_TEST

static void look_a_little(void)
{
    struct ft_diagnoser_surroundings all = around;

    all.events = events;
    /* Before it, each rank is looked at whether it has been silent for long. */
    for (uint32_t i = 0; i < 4 * ranks && !ft_diagnoser_looking(diagnoser); i++)
        ft_diagnoser_step(diagnoser, now_ms, 1, &all);
    ck_assert(ft_diagnoser_looking(diagnoser));
}

/* A record that comes while a look is in progress ends it first, so that nothing changes under it;
 * so does the program's end. */
START_TEST(a_record_finds_no_look_in_progress)
{
    begin(RANKS);
    work_on(0);
    now_ms = START_MS + ENDED * 1000;
    look_a_little();
    ck_assert_uint_eq(ft_diagnoser_stats(diagnoser)->looks, 1);
    finish(0, ENDED * UINT64_C(1000000), 50000);
    ck_assert(!ft_diagnoser_looking(diagnoser));
    now_ms += 10000;
    look_a_little();
    end();
}
END_TEST

/* Who leaves a slow operation late is found without comparing each rank with all others for each:
 * with 2,048 ranks that was 100 million comparisons. */
START_TEST(a_slow_job_is_no_search)
{
    begin(2048);
    work_on(0);
    uses = 0;
    look(START_MS + ENDED * 1000, UINT64_MAX);
    in_calm = longest;
    end();
    begin(2048);
    work_on(200000);
    longest = 0;
    look(START_MS + ENDED * 1000, UINT64_MAX);
    look(START_MS + ENDED * 1000 + 6000, UINT64_MAX);
    ck_assert_uint_le(longest, 4 * in_calm);
    end();
}
END_TEST

/* What a look takes at a time is within what the budget gives it for the ranks of the job; with as
 * many pairs in the matrix as are ever compared, within all that it gives. */
START_TEST(a_look_is_within_the_budget)
{
    size_t before;

    begin(RANKS);
    hang(UINT64_MAX);
    measures = true;
    before = most_taken = memory_taken();
    look(now_ms + 10000, WORK);
    /* A sanitizer's allocator does not count. */
    ck_assert_uint_ge(most_taken - before, before ? 1000 * RANKS : 0);
    ck_assert_uint_le(most_taken - before, FT_DIAGNOSER_RANK_BYTES * RANKS);
    ck_assert_uint_eq(ft_diagnoser_stats(diagnoser)->pairs_left_out, 0);
    end();
    measures = false;
    peers = PEERS_MAX;
    begin(RANKS);
    work_on(0);
    measures = true;
    before = most_taken = memory_taken();
    look(START_MS + ENDED * 1000, WORK);
    ck_assert_uint_eq(ft_diagnoser_stats(diagnoser)->looks, 1);
    ck_assert_uint_eq(ft_diagnoser_stats(diagnoser)->pairs_left_out,
                      PEERS_MAX * RANKS - FT_DELAYS_JUDGED);
    ck_assert_uint_le(most_taken - before,
                      FT_DIAGNOSER_BYTES_MAX + FT_DIAGNOSER_RANK_BYTES * RANKS);
    end();
    measures = false;
    peers = 1;
}
END_TEST

FT_UNIT_MAIN("diagnoser_large", no_step_of_a_look_is_long, a_record_finds_no_look_in_progress,
             a_slow_job_is_no_search, a_look_is_within_the_budget)
