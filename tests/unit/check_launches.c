// SPDX-License-Identifier: Apache-2.0
/* Operations within a host, of which only the launch is known: daemon/diagnosis/. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "daemon/diagnosis/diagnoser.h"
#include "tests/unit/unit.h"

#define WORK     1000
#define RANKS    8
#define HOST     4 /* ranks of one */
#define START_MS INT64_C(1700000000000)
#define STEP_MS  300
#define OWN_US   100000 /* of computation */
#define SENDS_US 50000
#define WORLD    "0000000000000fab"
#define NOBODY   RANKS

static struct ft_diagnoser *diagnoser;
static struct ft_events *events;
static uint64_t number[2][RANKS]; /* of the last operation, within the host and of all */
static unsigned raised;
static bool dies; /* of whom is reported next */
static uint32_t named;
static Fabrictrace__Syndrome syndrome;
static char comm[FT_RECENT_ID];

static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    if (record->kind_case != FABRICTRACE__RECORD__KIND_DIAGNOSIS || record->diagnosis->cleared)
        return;
    raised++;
    named = record->diagnosis->has_rank ? record->diagnosis->rank : UINT32_MAX;
    syndrome = record->diagnosis->syndrome;
    snprintf(comm, sizeof(comm), "%s", record->diagnosis->communicator);
}

static const struct ft_emitter emitter = {on_record, NULL};

static void open_diagnoser(void)
{
    const struct ft_diagnoser_config config = {
        .recent = {.ranks_max = 64, .rows_max = 8192}, .standing_max = 16, .hang_ms = 10000};

    diagnoser = ft_diagnoser_new(&config);
    events = ft_events_new(16, &emitter);
    ck_assert(diagnoser && events);
    memset(number, 0, sizeof(number));
    raised = 0;
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

    while (ft_diagnoser_step(diagnoser, ms, WORK, &around))
        ;
}

/* A record of a rank: of all ranks, or within its host. sends: whether transfers are known of it.
 */
static void end(uint32_t rank, bool all, bool sends, uint64_t start_us, uint64_t length_us,
                uint64_t operations)
{
    Fabrictrace__PeerTraffic peer = FABRICTRACE__PEER_TRAFFIC__INIT, *list[] = {&peer};
    Fabrictrace__Collective c = FABRICTRACE__COLLECTIVE__INIT;
    char host[16], tensor[FT_RECENT_ID];

    snprintf(host, sizeof(host), "gpu%02u", rank / HOST);
    snprintf(tensor, sizeof(tensor), "%016x", 16 + rank / HOST);
    c.job = text("88");
    c.comm_id = all ? text(WORLD) : tensor;
    c.host = host;
    c.op = text("AllReduce");
    c.has_rank = c.has_ranks = c.has_pid = c.has_sequence = c.has_number = c.has_bytes = true;
    c.has_start_ms = c.has_duration_us = c.has_started_ns = c.has_operations = true;
    c.rank = all ? rank : rank % HOST;
    c.ranks = all ? RANKS : HOST;
    c.pid = 100 + rank;
    c.number = c.sequence = number[all][rank] + 1;
    number[all][rank] += operations;
    c.bytes = 1 << 20;
    c.start_ms = (uint64_t)START_MS + start_us / 1000;
    c.started_ns = start_us * 1000 + 5;
    c.duration_us = length_us;
    c.operations = operations;
    c.peers = list;
    c.n_peers = sends;
    ft_diagnoser_collective(diagnoser, &c, START_MS + (int64_t)((start_us + length_us) / 1000));
}

/* Steps of a job: each rank computes, `late` for so much longer, all of its host wait for it, which
 * nothing in the network shows, and then the hosts for each other. Those of one host that is
 * `quiet` need no network in the operation of all, but for the first. sums: of the operations
 * within hosts. */
static void run(unsigned from, unsigned to, uint32_t late, uint64_t late_us, bool quiet,
                uint64_t sums)
{
    for (unsigned i = from; i < to; i++) {
        uint64_t begin = (uint64_t)i * STEP_MS * 1000, there = begin + OWN_US + late_us + 200;

        for (uint32_t r = 0; r < RANKS; r++) {
            uint64_t noise = (i * 7919 + r * 104729) % 97;
            uint64_t own = OWN_US + noise + (r == late ? late_us : 0);
            bool waits = late < RANKS && r / HOST == late / HOST;
            uint64_t enter = begin + OWN_US + 100 + noise + (waits ? late_us : 0);
            bool sends = !quiet || r % HOST == 0;

            end(r, false, false, begin + own, 1, sums);
            end(r, true, sends, enter, sends ? there + SENDS_US - enter : 1, 1);
        }
        step(START_MS + (int64_t)(i + 1) * STEP_MS);
    }
}

/* How far a rank is, as its agent says while it stands: in its next operation, or after its last.
 */
static void stand(uint32_t rank, bool all, bool begun, bool sends, int64_t since_ms, int64_t ms)
{
    Fabrictrace__Progress p = FABRICTRACE__PROGRESS__INIT;
    Fabrictrace__Transfer t = FABRICTRACE__TRANSFER__INIT, *list[] = {&t};
    char host[16], tensor[FT_RECENT_ID];

    snprintf(host, sizeof(host), "gpu%02u", rank / HOST);
    snprintf(tensor, sizeof(tensor), "%016x", 16 + rank / HOST);
    p.job = text("88");
    p.comm_id = all ? text(WORLD) : tensor;
    p.host = host;
    p.has_pid = p.has_rank = p.has_ranks = p.has_time_ms = p.has_process = p.has_state = true;
    p.has_standing = p.has_begun = p.has_finished = p.standing = true;
    p.pid = 100 + rank;
    p.rank = all ? rank : rank % HOST;
    p.ranks = all ? RANKS : HOST;
    p.time_ms = (uint64_t)ms;
    p.process = FABRICTRACE__PROCESS_STATE__PROCESS_STATE_RUNNING;
    if (dies) {
        p.process = FABRICTRACE__PROCESS_STATE__PROCESS_STATE_GONE;
        p.standing = false;
    }
    p.finished = number[all][rank];
    p.begun = p.finished + begun;
    p.state = !begun  ? FABRICTRACE__OPERATION_STATE__OPERATION_STATE_FINISHED
              : sends ? FABRICTRACE__OPERATION_STATE__OPERATION_STATE_IN_FLIGHT
                      : FABRICTRACE__OPERATION_STATE__OPERATION_STATE_BEGUN;
    if (begun) {
        p.has_number = p.has_sequence = p.has_start_ms = p.has_bytes = true;
        p.number = p.sequence = p.begun;
        p.start_ms = (uint64_t)since_ms;
        p.op = text("AllReduce");
        p.bytes = 1 << 20;
        t.has_peer = t.has_state = t.has_since_ms = t.has_send = true;
        t.peer = (rank + RANKS - 1) % RANKS;
        t.state = FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_RECV_WAIT;
        t.since_ms = (uint64_t)since_ms;
        p.transfers = list;
        p.n_transfers = sends;
    }
    ft_diagnoser_progress(diagnoser, &p, ms);
}

START_TEST(without_a_fault_nobody_is_named)
{
    open_diagnoser();
    run(0, 200, NOBODY, 0, false, 1);
    run(200, 300, NOBODY, 0, true, 1);
    ck_assert_uint_eq(raised, 0);
    ck_assert_uint_eq(ft_diagnoser_stats(diagnoser)->gaps, 0);
    ck_assert_uint_gt(ft_diagnoser_stats(diagnoser)->looks, 5);
    close_diagnoser();
}
END_TEST

/* Its whole host enters late what goes through the network. */
START_TEST(of_a_host_the_rank_is_named_that_the_others_wait_for)
{
    open_diagnoser();
    run(0, 60, NOBODY, 0, false, 1);
    run(60, 200, 5, 60000, false, 1);
    ck_assert_uint_eq(raised, 1);
    ck_assert_int_eq(syndrome, FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_SLOW);
    ck_assert_uint_eq(named, 5);
    ck_assert_str_eq(comm, "0000000000000011");
    close_diagnoser();
}
END_TEST

/* One host is in the operation of all; of the other nobody is, as they wait for one of them;
 * whether that one is said to stand, or its process is gone, which is said before it could stand.
 */
static void wait_within_a_host(bool gone)
{
    int64_t since = START_MS + 60 * STEP_MS + OWN_US / 1000;

    open_diagnoser();
    run(0, 60, NOBODY, 0, false, 1);
    for (uint32_t r = 0; r < RANKS; r++)
        if (r != 6)
            end(r, false, false, 60 * STEP_MS * 1000 + OWN_US, 1, 1);
    for (int64_t ms = since + 1000; ms < since + 16000; ms += 1000) {
        for (uint32_t r = 0; r < RANKS; r++) {
            /* Its record came out, and that it ended nobody knows. */
            number[0][r] -= r / HOST == 1 && r != 6;
            dies = gone && r == 6;
            stand(r, false, r / HOST == 1 && r != 6, false, since, ms);
            number[0][r] += r / HOST == 1 && r != 6;
            stand(r, true, r / HOST == 0, true, since, ms);
        }
        step(ms);
    }
    dies = false;
    ck_assert_uint_eq(raised, 1);
    ck_assert_int_eq(syndrome, FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_HANG);
    ck_assert_uint_eq(named, 6);
    close_diagnoser();
}

START_TEST(who_waits_within_a_host_did_not_stay_away)
{
    wait_within_a_host(false);
    wait_within_a_host(true);
}
END_TEST

/* Of operations within hosts fewer are kept than of others. */
START_TEST(of_a_long_run_the_same_is_known)
{
    open_diagnoser();
    run(0, 500, NOBODY, 0, false, 1);
    ck_assert_uint_eq(raised, 0);
    run(500, 640, 2, 60000, false, 1);
    ck_assert_uint_eq(raised, 1);
    ck_assert_uint_eq(named, 2);
    close_diagnoser();
}
END_TEST

/* Rings that leave a host by one card: the other ranks of it have no transfers. */
START_TEST(ranks_without_transfers_leave_no_gap)
{
    open_diagnoser();
    run(0, 60, NOBODY, 0, true, 1);
    run(60, 200, 5, 60000, true, 1);
    ck_assert_uint_eq(ft_diagnoser_stats(diagnoser)->gaps, 0);
    ck_assert_uint_eq(raised, 1);
    ck_assert_uint_eq(named, 5);
    close_diagnoser();
}
END_TEST

/* Where they are too many to be reported one by one, the rest is judged all the same. */
START_TEST(sums_of_launches_hide_nothing_else)
{
    open_diagnoser();
    run(0, 60, NOBODY, 0, false, 50);
    run(60, 200, 5, 60000, false, 50);
    ck_assert_uint_eq(ft_diagnoser_stats(diagnoser)->folded, 0);
    ck_assert_uint_gt(raised, 0);
    ck_assert_int_eq(syndrome, FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_SLOW);
    ck_assert_uint_eq(named / HOST, 1);
    close_diagnoser();
}
END_TEST

/* Of the operation that a rank stood in the record of its end was lost, and so was what its agent
 * said when it continued: whatever it launches from then on says nothing of it. */
START_TEST(what_is_not_said_again_is_over)
{
    const struct ft_recent_rank *r;
    int64_t since = START_MS + 60 * STEP_MS + OWN_US / 1000;

    open_diagnoser();
    run(0, 60, NOBODY, 0, true, 1);
    stand(5, true, true, true, since, since + 4000);
    for (uint32_t i = 0; i < RANKS; i++) {
        uint64_t start_us = 60 * STEP_MS * 1000 + OWN_US;

        if (i == 5)
            number[1][i]++;
        else
            end(i, true, i % HOST == 0, start_us, i % HOST == 0 ? 4100000 : 1, 1);
    }
    run(75, 76, NOBODY, 0, true, 1);
    r = ft_recent_find(ft_diagnoser_recent(diagnoser), WORLD, 5);
    ck_assert(r->progress.in_flight);
    ck_assert_uint_eq(ft_recent_outdated(ft_diagnoser_recent(diagnoser)), 0);
    run(76, 300, NOBODY, 0, true, 1);
    ck_assert_uint_eq(raised, 0);
    /* The job does not hang: who is late in it is named. */
    run(300, 440, 6, 60000, true, 1);
    ck_assert_uint_eq(raised, 1);
    ck_assert_uint_eq(named, 6);
    ck_assert(!r->progress.in_flight && !r->progress.standing);
    ck_assert_uint_eq(ft_recent_outdated(ft_diagnoser_recent(diagnoser)), 1);
    close_diagnoser();
}
END_TEST

FT_UNIT_MAIN("launches", what_is_not_said_again_is_over, without_a_fault_nobody_is_named,
             of_a_host_the_rank_is_named_that_the_others_wait_for,
             who_waits_within_a_host_did_not_stay_away, of_a_long_run_the_same_is_known,
             ranks_without_transfers_leave_no_gap, sums_of_launches_hide_nothing_else)
