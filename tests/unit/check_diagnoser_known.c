// SPDX-License-Identifier: Apache-2.0
/* A job of which not all is known: ranks that nobody reports, agents that are silent. */
#include "config.h"

#include "daemon/diagnosis/diagnoser.h"
#include "daemon/diagnosis/partial.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

#define RANKS    8
#define ON_HOST  2
#define STEPS    20
#define START_MS INT64_C(1700000000000)
#define STEP_MS  200
#define HANG_MS  10000
#define COMM     "0000000000000fab"

static struct ft_diagnoser *diagnoser;
static struct ft_events *events;
static int64_t now_ms;
static uint64_t number[RANKS];
/* What came out. */
static unsigned raised, cleared;
static Fabrictrace__Syndrome syndrome;
static double confidence;
static uint32_t rank_named, ranks, ranks_known;
static char message[512], doubts[2048];

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
    cleared += d->cleared;
    syndrome = d->syndrome;
    confidence = d->confidence;
    rank_named = d->has_rank ? d->rank : UINT32_MAX;
    ranks = d->has_ranks ? d->ranks : 0;
    ranks_known = d->has_ranks_known ? d->ranks_known : 0;
    snprintf(message, sizeof(message), "%s", d->message);
    doubts[0] = '\0';
    for (size_t i = 0; i < d->n_evidence_against; i++)
        snprintf(doubts + strlen(doubts), sizeof(doubts) - strlen(doubts), "%s\n",
                 d->evidence_against[i]);
}

static const struct ft_emitter emitter = {on_record, NULL};

static void open_diagnoser(void)
{
    const struct ft_diagnoser_config config = {
        .recent = {.ranks_max = 64, .rows_max = 4096}, .standing_max = 16, .hang_ms = HANG_MS};

    diagnoser = ft_diagnoser_new(&config);
    events = ft_events_new(16, &emitter);
    ck_assert(diagnoser && events);
    memset(number, 0, sizeof(number));
    raised = cleared = 0;
    message[0] = doubts[0] = '\0';
    rank_named = UINT32_MAX;
}

static void close_diagnoser(void)
{
    ft_diagnoser_free(diagnoser);
    ft_events_free(events);
}

static void step(void)
{
    const struct ft_diagnoser_surroundings around = {
        .fabric = "lab", .events = events, .emitter = &emitter};

    while (ft_diagnoser_step(diagnoser, now_ms, 1000, &around))
        ;
}

static void host_of(uint32_t rank, char host[8])
{
    snprintf(host, 8, "gpu%02u", rank / ON_HOST);
}

/* The rank's next operation, of some milliseconds after the start. */
static void end(uint32_t rank, int64_t start_ms)
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
    c.ranks = RANKS;
    c.pid = 100 + rank;
    c.number = c.sequence = ++number[rank];
    c.bytes = 1 << 20;
    c.start_ms = (uint64_t)(START_MS + start_ms);
    c.started_ns = (uint64_t)start_ms * 1000000 + 5 + (uint64_t)((start_ms * 31 + rank * 17) % 97);
    c.duration_us = 50000;
    c.operations = 1;
    c.peers = list;
    c.n_peers = 1;
    ft_diagnoser_collective(diagnoser, &c, START_MS + start_ms + 50);
}

/* What its agent says of a rank: its next operation is in flight since then; or it is in none. */
static void stand(uint32_t rank, int64_t since_ms, bool flies)
{
    Fabrictrace__Progress p = FABRICTRACE__PROGRESS__INIT;
    char host[8];

    host_of(rank, host);
    p.job = text("88");
    p.comm_id = text(COMM);
    p.host = host;
    p.op = text("AllReduce");
    p.has_pid = p.has_rank = p.has_ranks = p.has_time_ms = p.has_process = p.has_state = true;
    p.has_standing = p.has_begun = p.has_finished = p.standing = true;
    p.has_number = p.has_sequence = p.has_start_ms = p.has_bytes = flies;
    p.pid = 100 + rank;
    p.rank = rank;
    p.ranks = RANKS;
    p.time_ms = (uint64_t)now_ms;
    p.process = FABRICTRACE__PROCESS_STATE__PROCESS_STATE_RUNNING;
    p.state = flies ? FABRICTRACE__OPERATION_STATE__OPERATION_STATE_IN_FLIGHT
                    : FABRICTRACE__OPERATION_STATE__OPERATION_STATE_FINISHED;
    p.finished = number[rank];
    p.begun = number[rank] + flies;
    p.number = p.sequence = number[rank] + 1;
    p.start_ms = (uint64_t)(START_MS + since_ms);
    p.bytes = 1 << 20;
    ft_diagnoser_progress(diagnoser, &p, now_ms);
}

/* Steps of a job; ranks that are not in the mask are reported by nobody. */
static void run(unsigned from, unsigned to, uint32_t reported)
{
    for (unsigned i = from; i < to; i++) {
        for (uint32_t r = 0; r < RANKS; r++)
            if (reported & 1u << r)
                end(r, (int64_t)i * STEP_MS);
        now_ms = START_MS + ((int64_t)i + 1) * STEP_MS;
        step();
    }
}

/* From step STEPS on all that are reported stand, but for those that are in none. */
static void hang(uint32_t reported, uint32_t away, int64_t length_ms)
{
    int64_t since = STEPS * STEP_MS;

    for (int64_t t = 1000; t <= length_ms; t += 1000) {
        now_ms = START_MS + since + t;
        for (uint32_t r = 0; r < RANKS; r++)
            if (reported & 1u << r)
                stand(r, since, !(away & 1u << r));
        step();
    }
}

START_TEST(of_all_ranks_that_are_known_nothing_is_partial)
{
    open_diagnoser();
    run(0, STEPS, 0xff);
    hang(0xff, 0, HANG_MS + 3000);
    ck_assert_uint_eq(raised, 1);
    ck_assert_int_eq(syndrome, FABRICTRACE__SYNDROME__SYNDROME_COMM_HANG);
    ck_assert_double_gt(confidence, FT_PARTIAL_CONFIDENCE);
    ck_assert_uint_eq(ranks, 0);
    ck_assert_ptr_null(strstr(message, "known"));
    close_diagnoser();
}
END_TEST

/* There is no agent on the last rank's host: whether it entered, nobody knows. */
START_TEST(a_rank_that_nobody_reports_may_be_the_cause)
{
    open_diagnoser();
    run(0, STEPS, 0x7f);
    hang(0x7f, 0, HANG_MS + 3000);
    ck_assert_uint_eq(raised, 1);
    ck_assert_int_eq(syndrome, FABRICTRACE__SYNDROME__SYNDROME_COMM_HANG);
    ck_assert_uint_eq(rank_named, UINT32_MAX);
    ck_assert_double_le(confidence, FT_PARTIAL_CONFIDENCE);
    ck_assert_uint_eq(ranks, RANKS);
    ck_assert_uint_eq(ranks_known, RANKS - 1);
    ck_assert_ptr_nonnull(strstr(message, "7 of 8 ranks known"));
    ck_assert_ptr_nonnull(strstr(message, "all 7 known ranks of communicator"));
    ck_assert_ptr_nonnull(strstr(doubts, "7 of 8 ranks of communicator " COMM " are known"));
    ck_assert_ptr_nonnull(strstr(doubts, "nobody reported rank 7,"));
    close_diagnoser();
}
END_TEST

/* One that is known stays away, and another may as well. */
START_TEST(who_stays_away_may_not_be_alone)
{
    open_diagnoser();
    run(0, STEPS, 0x1f);
    hang(0x1f, 0x04, HANG_MS + 3000);
    ck_assert_uint_eq(raised, 1);
    ck_assert_int_eq(syndrome, FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_HANG);
    ck_assert_uint_eq(rank_named, 2);
    ck_assert_double_le(confidence, FT_PARTIAL_CONFIDENCE);
    ck_assert_uint_eq(ranks_known, 5);
    ck_assert_ptr_nonnull(strstr(doubts, "nobody reported rank 5, 6, 7,"));
    close_diagnoser();
}
END_TEST

FT_UNIT_MAIN("diagnoser_known", of_all_ranks_that_are_known_nothing_is_partial,
             a_rank_that_nobody_reports_may_be_the_cause, who_stays_away_may_not_be_alone)
