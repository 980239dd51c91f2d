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
#define NONE     UINT32_MAX

static struct ft_diagnoser *diagnoser;
static struct ft_events *events;
static int64_t now_ms;
static uint64_t number[RANKS];
static uint32_t sends_to[RANKS]; /* what a rank has sent and is not completed; NONE: it receives */
/* What came out. */
static unsigned raised, cleared;
static Fabrictrace__Syndrome syndrome;
static double confidence;
static uint32_t rank_named, ranks, ranks_known;
static size_t chain;           /* ranks in the chain of waits */
static size_t others, waiting; /* of its host, and that wait */
static char message[512], doubts[2048], advice[256];

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
    chain = d->n_wait_chain;
    others = d->has_others ? d->others : 0;
    waiting = d->n_ranks_waiting;
    snprintf(advice, sizeof(advice), "%s", d->advice);
    rank_named = d->has_rank ? d->rank : NONE;
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
    rank_named = NONE;
    for (uint32_t r = 0; r < RANKS; r++)
        sends_to[r] = NONE;
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
    Fabrictrace__Transfer t = FABRICTRACE__TRANSFER__INIT, *list[] = {&t};
    bool sends = sends_to[rank] != NONE;
    char host[8];

    host_of(rank, host);
    t.has_peer = t.has_state = t.has_since_ms = t.has_send = t.has_number = true;
    t.number = number[rank] + 1;
    t.peer = sends ? sends_to[rank] : (rank + RANKS - 1) % RANKS;
    t.send = sends;
    t.state = sends ? FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_WAIT
                    : FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_RECV_WAIT;
    t.since_ms = (uint64_t)(START_MS + since_ms);
    p.transfers = list;
    p.n_transfers = flies;
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

/* From a step on all that are reported stand, but for those that are in none. */
static void hang_from(unsigned from, uint32_t reported, uint32_t away, int64_t length_ms)
{
    int64_t since = (int64_t)from * STEP_MS;

    for (int64_t t = 1000; t <= length_ms; t += 1000) {
        now_ms = START_MS + since + t;
        for (uint32_t r = 0; r < RANKS; r++)
            if (reported & 1u << r)
                stand(r, since, !(away & 1u << r));
        step();
    }
}

static void hang(uint32_t reported, uint32_t away, int64_t length_ms)
{
    hang_from(STEPS, reported, away, length_ms);
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
    ck_assert_uint_eq(rank_named, NONE);
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

/* The agent of the last host is down, and the job runs. */
START_TEST(an_agent_that_is_silent_is_no_hang)
{
    open_diagnoser();
    run(0, STEPS, 0xff);
    run(STEPS, STEPS + 200, 0x3f);
    ck_assert_uint_eq(raised, 0);
    close_diagnoser();
}
END_TEST

/* Where its ranks are, nobody says: since the job stands, or since before. */
START_TEST(where_ranks_of_a_silent_agent_are_is_not_known)
{
    for (unsigned before = 0; before <= 200; before += 100) {
        open_diagnoser();
        run(0, STEPS, 0xff);
        run(STEPS, STEPS + before, 0x3f);
        hang_from(STEPS + before, 0x3f, 0, 30000);
        ck_assert_uint_eq(raised, 1);
        ck_assert_double_le(confidence, 0.5);
        ck_assert_ptr_nonnull(strstr(doubts, "the agent of gpu03 has said nothing for"));
        ck_assert_ptr_nonnull(strstr(message, "nothing shows that rank "));
        ck_assert_ptr_null(strstr(message, "never entered"));
        close_diagnoser();
    }
}
END_TEST

/* What it said before it fell silent is over where others have ended operations since. */
START_TEST(the_last_word_of_an_agent_may_be_old)
{
    open_diagnoser();
    run(0, STEPS, 0xff);
    stand(6, 0, false);
    stand(7, 0, false);
    run(STEPS, STEPS + 100, 0x3f);
    hang_from(STEPS + 100, 0x3f, 0, 30000);
    ck_assert_uint_eq(raised, 1);
    ck_assert_double_le(confidence, 0.5);
    ck_assert_ptr_nonnull(strstr(doubts, "the agent of gpu03 has said nothing for"));
    close_diagnoser();
}
END_TEST

/* Of a rank that is in no operation agents say so once a minute. */
START_TEST(an_agent_that_rests_is_not_silent)
{
    open_diagnoser();
    run(0, STEPS, 0xff);
    now_ms += 1000;
    stand(6, 0, false);
    stand(7, 0, false);
    hang(0x3f, 0, 40000);
    ck_assert_uint_eq(raised, 1);
    ck_assert_int_eq(syndrome, FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_HANG);
    ck_assert_double_gt(confidence, 0.9);
    ck_assert_ptr_null(strstr(doubts, "says nothing"));
    close_diagnoser();
}
END_TEST

/* Its host takes nothing any more, either. */
START_TEST(what_others_sent_shows_a_host_that_is_gone)
{
    open_diagnoser();
    run(0, STEPS, 0xff);
    sends_to[5] = 6;
    hang(0x3f, 0, 30000);
    ck_assert_uint_eq(raised, 1);
    ck_assert_int_eq(syndrome, FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_HANG);
    ck_assert_uint_ge(rank_named, 6);
    ck_assert_double_eq_tol(confidence, 0.8, 1e-9);
    ck_assert_ptr_nonnull(strstr(message, "the agent of gpu03 has said nothing for"));
    ck_assert_ptr_nonnull(
        strstr(message, "what rank 5 of communicator " COMM " has sent to rank 6"));
    ck_assert_uint_ge(others, 1);
    ck_assert_ptr_nonnull(strstr(advice, "whether this host and its links are up"));
    ck_assert_ptr_null(strstr(advice, "the network is not the cause"));
    close_diagnoser();
}
END_TEST

/* The job stands since a transfer elsewhere does, and an agent happens to be down. */
START_TEST(what_stands_elsewhere_is_not_the_silent_host)
{
    open_diagnoser();
    run(0, STEPS, 0xff);
    sends_to[1] = 2;
    hang(0x3f, 0, 30000);
    ck_assert_uint_eq(raised, 1);
    ck_assert_int_eq(syndrome, FABRICTRACE__SYNDROME__SYNDROME_COMM_HANG);
    ck_assert_uint_eq(rank_named, 1);
    ck_assert_uint_eq(chain, 0);
    /* Those are of the silent host. */
    ck_assert_uint_eq(others, 0);
    ck_assert_uint_eq(waiting, 0);
    ck_assert_ptr_null(strstr(advice, "whether this host and its links are up"));
    ck_assert_ptr_nonnull(strstr(message, "rank 1 on gpu00 with rank 2"));
    ck_assert_ptr_null(strstr(message, "never entered"));
    ck_assert_double_le(confidence, 0.5);
    ck_assert_ptr_nonnull(strstr(doubts, "the agent of gpu03 has said nothing for"));
    close_diagnoser();
}
END_TEST

FT_UNIT_MAIN("diagnoser_known", an_agent_that_is_silent_is_no_hang,
             where_ranks_of_a_silent_agent_are_is_not_known, the_last_word_of_an_agent_may_be_old,
             an_agent_that_rests_is_not_silent, what_others_sent_shows_a_host_that_is_gone,
             what_stands_elsewhere_is_not_the_silent_host,
             of_all_ranks_that_are_known_nothing_is_partial,
             a_rank_that_nobody_reports_may_be_the_cause, who_stays_away_may_not_be_alone)
