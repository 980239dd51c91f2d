// SPDX-License-Identifier: Apache-2.0
/* Ranks that wait for each other, and ranks between which something is lost: daemon/diagnosis/. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "daemon/diagnosis/diagnoser.h"
#include "tests/unit/unit.h"

#define WORK     1000
#define RANKS    4
#define START_MS INT64_C(1700000000000)
#define STEP_MS  200
#define STEPS    30
#define HANG_MS  10000
#define WORLD    "0000000000000fab"
#define PIPE     "0000000000000abc" /* ranks 0 and 1 */

#define SEND_WAIT FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_WAIT
#define PEER_WAIT FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_PEER_WAIT
#define RECV_WAIT FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_RECV_WAIT

static struct ft_diagnoser *diagnoser;
static struct ft_events *events;
static uint64_t number[2][RANKS]; /* of the last operation, of all and of the two */
static unsigned raised;
static Fabrictrace__Syndrome syndrome;
static uint32_t named, peer_named;
static uint32_t stopped;       /* the rank whose process is, UINT32_MAX */
static bool without_transfers; /* the next record comes so */
static char reasons[1024];

static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    const Fabrictrace__Diagnosis *m = record->diagnosis;
    size_t len = 0;

    (void)arg;
    if (record->kind_case != FABRICTRACE__RECORD__KIND_DIAGNOSIS || m->cleared)
        return;
    raised++;
    syndrome = m->syndrome;
    named = m->has_rank ? m->rank : UINT32_MAX;
    peer_named = m->has_peer ? m->peer : UINT32_MAX;
    for (size_t i = 0; i < m->n_evidence_for; i++)
        len += (size_t)snprintf(reasons + len, sizeof(reasons) - len, "%s\n", m->evidence_for[i]);
}

static const struct ft_emitter emitter = {on_record, NULL};

static void step(int64_t ms)
{
    const struct ft_diagnoser_surroundings around = {
        .fabric = "lab", .events = events, .emitter = &emitter};

    while (ft_diagnoser_step(diagnoser, ms, WORK, &around))
        ;
}

static void end(uint32_t rank, const char *op, uint64_t start_us, uint64_t length_us)
{
    Fabrictrace__PeerTraffic traffic = FABRICTRACE__PEER_TRAFFIC__INIT, *list[] = {&traffic};
    Fabrictrace__Collective c = FABRICTRACE__COLLECTIVE__INIT;
    bool pair = strcmp(op, "AllReduce") != 0;
    char host[16];

    snprintf(host, sizeof(host), "gpu%02u", rank);
    c.job = text("88");
    c.comm_id = text(pair ? PIPE : WORLD);
    c.host = host;
    c.op = text(op);
    c.has_rank = c.has_ranks = c.has_pid = c.has_number = c.has_bytes = true;
    c.has_start_ms = c.has_duration_us = c.has_started_ns = c.has_operations = true;
    c.rank = rank;
    c.ranks = pair ? 2 : RANKS;
    c.pid = 100 + rank;
    c.number = ++number[pair][rank];
    c.has_sequence = !pair;
    c.sequence = c.number;
    c.has_peer = pair;
    c.peer = !rank;
    c.bytes = 1 << 20;
    c.start_ms = (uint64_t)START_MS + start_us / 1000;
    c.started_ns = start_us * 1000 + 5;
    c.duration_us = length_us;
    c.operations = 1;
    c.peers = list;
    c.n_peers = !without_transfers;
    ft_diagnoser_collective(diagnoser, &c, START_MS + (int64_t)((start_us + length_us) / 1000));
}

/* Rank 0 sends to rank 1, that one back, then all reduce. */
static void run(unsigned steps)
{
    for (unsigned i = 0; i < steps; i++) {
        uint64_t begin = (uint64_t)i * STEP_MS * 1000;

        for (uint32_t r = 0; r < 2; r++) {
            end(r, r ? "Recv" : "Send", begin + 10000 + r, 20000);
            end(r, r ? "Send" : "Recv", begin + 50000 + r, 20000);
        }
        for (uint32_t r = 0; r < RANKS; r++)
            end(r, "AllReduce", begin + 90000 + 13 * r, 50000 - 13 * r);
        step(START_MS + (int64_t)(i + 1) * STEP_MS);
    }
}

struct transfer {
    bool send;
    Fabrictrace__TransferState state;
};

/* What a rank's agent says of it: it stands in its next operation. */
static void stand(uint32_t rank, const char *op, const struct transfer *its, size_t count,
                  int64_t since_ms, int64_t ms)
{
    Fabrictrace__Progress p = FABRICTRACE__PROGRESS__INIT;
    Fabrictrace__Transfer transfers[2], *list[] = {&transfers[0], &transfers[1]};
    bool pair = strcmp(op, "AllReduce") != 0;
    char host[16];

    snprintf(host, sizeof(host), "gpu%02u", rank);
    p.job = text("88");
    p.comm_id = text(pair ? PIPE : WORLD);
    p.host = host;
    p.has_pid = p.has_rank = p.has_ranks = p.has_time_ms = p.has_process = p.has_state = true;
    p.has_standing = p.standing = p.has_begun = p.has_finished = p.has_number = true;
    p.has_start_ms = p.has_bytes = true;
    p.pid = 100 + rank;
    p.rank = rank;
    p.ranks = pair ? 2 : RANKS;
    p.time_ms = (uint64_t)ms;
    p.process = rank == stopped ? FABRICTRACE__PROCESS_STATE__PROCESS_STATE_STOPPED
                                : FABRICTRACE__PROCESS_STATE__PROCESS_STATE_RUNNING;
    p.state = FABRICTRACE__OPERATION_STATE__OPERATION_STATE_IN_FLIGHT;
    p.finished = number[pair][rank];
    p.begun = p.number = p.finished + 1;
    p.has_sequence = !pair;
    p.sequence = p.number;
    p.has_peer = pair;
    p.peer = !rank;
    p.start_ms = (uint64_t)since_ms;
    p.op = text(op);
    p.bytes = 1 << 20;
    for (size_t i = 0; i < count; i++) {
        fabrictrace__transfer__init(&transfers[i]);
        transfers[i].has_peer = transfers[i].has_state = transfers[i].has_send = true;
        transfers[i].has_number = true;
        transfers[i].peer = !rank;
        transfers[i].send = its[i].send;
        transfers[i].state = its[i].state;
        transfers[i].number = p.number;
    }
    p.transfers = list;
    p.n_transfers = count;
    ft_diagnoser_progress(diagnoser, &p, ms);
}

static void open_diagnoser(void)
{
    const struct ft_diagnoser_config config = {
        .recent = {.ranks_max = 64, .rows_max = 8192}, .standing_max = 16, .hang_ms = HANG_MS};

    diagnoser = ft_diagnoser_new(&config);
    events = ft_events_new(16, &emitter);
    ck_assert(diagnoser && events);
    memset(number, 0, sizeof(number));
    raised = 0;
    stopped = UINT32_MAX;
    run(STEPS);
    ck_assert_uint_eq(raised, 0);
}

static void close_diagnoser(void)
{
    ft_diagnoser_free(diagnoser);
    ft_events_free(events);
}

/* Ranks 0 and 1 stand in a send each, the others in the operation of all. */
static void hang(const struct transfer *of_0, size_t count_0, const struct transfer *of_1,
                 size_t count_1)
{
    const struct transfer waits = {.state = RECV_WAIT};
    int64_t since = START_MS + STEPS * STEP_MS;

    for (int64_t t = since + 1000; t <= since + HANG_MS + 3000; t += 1000) {
        stand(0, "Send", of_0, count_0, since + 10, t);
        stand(1, "Send", of_1, count_1, since + 50, t);
        for (uint32_t r = 2; r < RANKS; r++)
            stand(r, "AllReduce", &waits, 1, since, t);
        step(t);
    }
}

/* It is received, and its acknowledgement is lost: the receiver, which goes on to send, waits for
 * the sender, and the sender for the network. That the receiver is past it was reported later than
 * what others did last. */
START_TEST(what_was_received_is_not_waited_for)
{
    const struct transfer sent = {true, SEND_WAIT}, waits = {true, PEER_WAIT};

    open_diagnoser();
    end(1, "Recv", STEPS * STEP_MS * 1000 + 10000, 20000);
    hang(&sent, 1, &waits, 1);
    ck_assert_uint_eq(raised, 1);
    ck_assert_int_eq(syndrome, FABRICTRACE__SYNDROME__SYNDROME_COMM_HANG);
    ck_assert_uint_eq(named, 0);
    ck_assert_uint_eq(peer_named, 1);
    close_diagnoser();
}
END_TEST

/* Sends and receives in one group, of which an agent reports the oldest: data of both are lost. */
START_TEST(two_that_have_sent_do_not_wait_for_each_other)
{
    const struct transfer both[] = {{true, SEND_WAIT}, {false, RECV_WAIT}};

    open_diagnoser();
    hang(both, 2, both, 2);
    ck_assert_uint_eq(raised, 1);
    ck_assert_int_eq(syndrome, FABRICTRACE__SYNDROME__SYNDROME_COMM_HANG);
    ck_assert_uint_eq(named + peer_named, 1);
    ck_assert_ptr_nonnull(strstr(reasons, "send_wait"));
    ck_assert_ptr_null(strstr(reasons, "wait for each other"));
    close_diagnoser();
}
END_TEST

static void check_mismatch(Fabrictrace__TransferState state)
{
    const struct transfer sends = {true, state};

    open_diagnoser();
    hang(&sends, 1, &sends, 1);
    ck_assert_uint_eq(raised, 1);
    ck_assert_int_eq(syndrome, FABRICTRACE__SYNDROME__SYNDROME_MISMATCH);
    ck_assert_uint_eq(named + peer_named, 1);
    close_diagnoser();
}

/* Both send first. Over sockets that leaves, though nobody asked for it. */
START_TEST(two_that_send_and_do_not_receive_do)
{
    check_mismatch(PEER_WAIT);
    check_mismatch(SEND_WAIT);
}
END_TEST

/* Rank 0 has sent twice and waits for the answer, rank 1 stands in the second of its receives. */
static void stand_in_receive(bool is_stopped)
{
    const struct transfer waits = {.state = RECV_WAIT};
    int64_t since = START_MS + STEPS * STEP_MS;

    end(1, "Recv", STEPS * STEP_MS * 1000 + 10000, 20000);
    stopped = is_stopped ? 1 : UINT32_MAX;
    for (int64_t t = since + 1000; t <= since + HANG_MS + 3000; t += 1000) {
        stand(0, "Recv", &waits, 1, since + 70, t);
        stand(1, "Recv", &waits, 1, since + 40, t);
        for (uint32_t r = 2; r < RANKS; r++)
            stand(r, "AllReduce", &waits, 1, since, t);
        step(t);
    }
}

static void send_twice(bool second_is_lost)
{
    const uint64_t us = STEPS * STEP_MS * 1000;

    end(0, "Send", us + 10000, 20000);
    if (second_is_lost)
        number[1][0]++;
    else
        end(0, "Send", us + 40000, 20000);
}

static void check_stopped(void)
{
    stand_in_receive(true);
    ck_assert_uint_eq(raised, 1);
    ck_assert_int_eq(syndrome, FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_HANG);
    ck_assert_uint_eq(named, 1);
    ck_assert_ptr_nonnull(strstr(reasons, "stopped"));
}

/* Also where the record of what the other has sent was lost, so that the two seem to wait for each
 * other. */
START_TEST(one_that_is_stopped_is_waited_for)
{
    for (int lost = 0; lost < 2; lost++) {
        open_diagnoser();
        send_twice(lost);
        check_stopped();
        close_diagnoser();
    }
}
END_TEST

/* What a rank did in an operation that was not reported, or without its transfers, nobody knows:
 * not that it has not sent. */
START_TEST(what_was_not_reported_proves_nothing)
{
    open_diagnoser();
    send_twice(true);
    stand_in_receive(false);
    ck_assert_uint_eq(raised, 0);
    close_diagnoser();

    open_diagnoser();
    end(0, "Send", STEPS * STEP_MS * 1000 + 10000, 20000);
    without_transfers = true;
    end(0, "Send", STEPS * STEP_MS * 1000 + 40000, 20000);
    without_transfers = false;
    stand_in_receive(false);
    ck_assert_uint_eq(raised, 0);
    close_diagnoser();
}
END_TEST

FT_UNIT_MAIN("circle", what_was_received_is_not_waited_for,
             two_that_have_sent_do_not_wait_for_each_other, two_that_send_and_do_not_receive_do,
             one_that_is_stopped_is_waited_for, what_was_not_reported_proves_nothing)
