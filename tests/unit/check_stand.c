// SPDX-License-Identifier: Apache-2.0
/* Where an operation stands that all have entered, by both ends of its transfers. */
#include "config.h"

#include "daemon/diagnosis/stand.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

#define RANKS  4
#define COMM   "0000000000000fab"
#define NOW    INT64_C(1700000000000)
#define NUMBER 7
#define STEPS  6

#define GPU_WAIT  FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_GPU_WAIT
#define PEER_WAIT FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_PEER_WAIT
#define SEND_WAIT FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_SEND_WAIT
#define RECV_WAIT FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_RECV_WAIT
#define QUEUED    FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_QUEUED

static struct ft_recent *recent;
static struct ft_stand found;

/* A ring: each rank sends to the next. */
struct rank {
    Fabrictrace__TransferState send, recv;
    uint32_t sent, received;    /* steps that ended */
    uint64_t finished;          /* operations; then it is in none */
    int64_t heard_ms, moved_ms; /* before NOW */
    Fabrictrace__ProcessState process;
};

static struct rank ring[RANKS];

static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

/* Rank 2 stands since it has sent and received two steps; how far the others then come. */
static void begin(void)
{
    for (uint32_t r = 0; r < RANKS; r++)
        ring[r] = (struct rank){.send = GPU_WAIT,
                                .recv = RECV_WAIT,
                                .sent = 3,
                                .received = 3,
                                .heard_ms = 1000,
                                .moved_ms = 12000,
                                .process = FABRICTRACE__PROCESS_STATE__PROCESS_STATE_RUNNING};
    ring[1].send = PEER_WAIT;
    ring[2].sent = ring[2].received = 2;
    ring[3].received = 2;
}

static void fill(Fabrictrace__Transfer *t, bool send, uint32_t peer,
                 Fabrictrace__TransferState state, uint32_t done)
{
    fabrictrace__transfer__init(t);
    t->has_peer = t->has_channel = t->has_send = t->has_state = t->has_since_ms = true;
    t->has_steps_done = t->has_steps = t->has_number = true;
    t->peer = peer;
    t->send = send;
    t->state = state;
    t->since_ms = NOW - 12000;
    t->steps_done = done;
    t->steps = STEPS;
    t->number = NUMBER;
}

static void report(uint32_t rank, const struct rank *of)
{
    Fabrictrace__Progress p = FABRICTRACE__PROGRESS__INIT;
    Fabrictrace__Transfer transfers[2], *list[] = {&transfers[0], &transfers[1]};
    char host[16];

    snprintf(host, sizeof(host), "gpu%u", rank);
    p.job = text("88");
    p.comm_id = text(COMM);
    p.host = host;
    p.has_pid = p.has_rank = p.has_ranks = p.has_time_ms = p.has_moved_ms = p.has_process = true;
    p.has_standing = p.has_begun = p.has_finished = p.has_state = true;
    p.pid = 100 + rank;
    p.rank = rank;
    p.ranks = RANKS;
    /* Each host's clock is another one. */
    p.time_ms = (uint64_t)(NOW - of->heard_ms + 5000 * rank);
    p.moved_ms = (uint64_t)(NOW - of->moved_ms + 5000 * rank);
    p.process = of->process;
    p.standing = true;
    p.finished = of->finished ? of->finished : NUMBER - 1;
    p.begun = NUMBER;
    p.state = FABRICTRACE__OPERATION_STATE__OPERATION_STATE_FINISHED;
    if (!of->finished) {
        p.state = FABRICTRACE__OPERATION_STATE__OPERATION_STATE_IN_FLIGHT;
        p.has_number = p.has_sequence = p.has_start_ms = p.has_bytes = true;
        p.number = p.sequence = NUMBER;
        p.start_ms = NOW - 13000;
        p.op = text("AllReduce");
        p.bytes = 1 << 20;
        fill(&transfers[0], true, (rank + 1) % RANKS, of->send, of->sent);
        fill(&transfers[1], false, (rank + RANKS - 1) % RANKS, of->recv, of->received);
        p.transfers = list;
        p.n_transfers = 2;
    }
    ck_assert_int_eq(ft_recent_progress(recent, &p, NOW - of->heard_ms), 0);
}

/* Frees the last one first; the newest is the program's. */
static void find(void)
{
    const struct ft_recent_config config = {.ranks_max = 16, .rows_max = 1024};
    uint32_t index = 0;

    ft_recent_free(recent);
    recent = ft_recent_new(&config);
    ck_assert_ptr_nonnull(recent);
    for (uint32_t r = 0; r < RANKS; r++)
        report(r, &ring[r]);
    ft_stand_find(recent, ft_recent_next(recent, &index), COMM, &found);
}

static void expect_proxy(uint32_t rank, uint32_t peer, enum ft_side side)
{
    ck_assert(found.known && found.in_network && found.proxy);
    ck_assert_uint_eq(found.rank->rank, rank);
    ck_assert_int_eq(found.side, side);
    if (peer == RANKS)
        ck_assert_ptr_null(found.peer);
    else
        ck_assert_uint_eq(found.peer->rank, peer);
}

/* Rank 1 has sent a step that rank 2 waits for. */
START_TEST(what_was_sent_and_is_not_taken_is_the_receivers_proxy)
{
    begin();
    find();
    expect_proxy(2, 1, FT_SIDE_RECEIVER);
    ck_assert_ptr_nonnull(strstr(found.reason, "after 2 of 6 steps for rank 1"));
    ck_assert_ptr_nonnull(strstr(found.reason, "sent more"));
}
END_TEST

/* Rank 3 waits for rank 2, which says that rank 3 gave it no room. */
START_TEST(room_that_is_given_and_not_used_is_the_senders_proxy)
{
    begin();
    ring[2].send = PEER_WAIT;
    ring[2].recv = FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_IDLE;
    find();
    expect_proxy(2, 3, FT_SIDE_SENDER);
    ck_assert_ptr_nonnull(strstr(found.reason, "given room"));
    /* Where the receiver did not ask for it, it is not the sender's. */
    ring[3].recv = FABRICTRACE__TRANSFER_STATE__TRANSFER_STATE_RECV_GPU_WAIT;
    ring[3].send = RECV_WAIT;
    find();
    ck_assert(!found.proxy);
}
END_TEST

START_TEST(a_peer_that_is_past_the_operation_has_sent_it)
{
    begin();
    ring[1].finished = NUMBER;
    find();
    expect_proxy(2, 1, FT_SIDE_RECEIVER);
}
END_TEST

START_TEST(transfers_that_were_never_begun_are_the_proxys)
{
    begin();
    ring[2] = (struct rank){.send = QUEUED,
                            .recv = QUEUED,
                            .heard_ms = 1000,
                            .moved_ms = 13000,
                            .process = ring[1].process};
    find();
    expect_proxy(2, RANKS, FT_SIDE_NONE);
    ck_assert_ptr_nonnull(strstr(found.reason, "none of its transfers of AllReduce 7"));
    /* One that was begun shows that it runs. */
    ring[2].recv = RECV_WAIT;
    ring[1].send = GPU_WAIT;
    ring[1].sent = 0;
    find();
    ck_assert(!found.proxy);
}
END_TEST

/* All wait for each other, as far as the network has carried it. */
START_TEST(who_waits_for_what_was_not_sent_is_not_named)
{
    begin();
    ring[1].send = GPU_WAIT;
    ring[1].sent = 2;
    find();
    ck_assert(!found.known);
    /* It is on the wire. */
    ring[1].send = SEND_WAIT;
    find();
    ck_assert(found.known && found.in_network && !found.proxy);
    ck_assert_uint_eq(found.rank->rank, 1);
    ck_assert_uint_eq(found.peer->rank, 2);
}
END_TEST

/* A report from before the peer moved says nothing; by the clock of one's own host, whatever those
 * of the others show. */
START_TEST(an_older_report_is_not_compared)
{
    begin();
    ring[1].moved_ms = 2500;
    ring[2].heard_ms = 3000;
    find();
    ck_assert(!found.known);
    ring[2].heard_ms = 100;
    find();
    expect_proxy(2, 1, FT_SIDE_RECEIVER);
}
END_TEST

START_TEST(a_process_that_does_not_run_explains_its_proxy)
{
    begin();
    ring[2].process = FABRICTRACE__PROCESS_STATE__PROCESS_STATE_STOPPED;
    find();
    ck_assert(found.known && !found.in_network && !found.proxy);
    ck_assert_uint_eq(found.rank->rank, 2);
    /* Nor is one blamed for what a stopped peer does not do. */
    begin();
    ring[1].process = FABRICTRACE__PROCESS_STATE__PROCESS_STATE_STOPPED;
    find();
    ck_assert_uint_eq(found.rank->rank, 1);
}
END_TEST

/* Two that could be it: nobody is named. */
START_TEST(two_candidates_are_none)
{
    begin();
    ring[3].sent = 3;
    ring[0].received = 2;
    find();
    ck_assert(!found.known);
}
END_TEST

FT_UNIT_MAIN("stand", what_was_sent_and_is_not_taken_is_the_receivers_proxy,
             room_that_is_given_and_not_used_is_the_senders_proxy,
             a_peer_that_is_past_the_operation_has_sent_it,
             transfers_that_were_never_begun_are_the_proxys,
             who_waits_for_what_was_not_sent_is_not_named, an_older_report_is_not_compared,
             a_process_that_does_not_run_explains_its_proxy, two_candidates_are_none)
