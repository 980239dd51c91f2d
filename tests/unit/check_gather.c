// SPDX-License-Identifier: Apache-2.0
/* Which operations of a job are looked at: daemon/diagnosis/gather.h. */
#include "config.h"

#include "daemon/diagnosis/gather.h"

#include <stdint.h>
#include <stdio.h>

#include "tests/unit/unit.h"

#define RANKS    2
#define STEPS    40
#define ROWS     4096
#define STEP_US  UINT64_C(200000)
#define START_MS INT64_C(1700000000000)

static struct ft_recent *recent;
static uint64_t number[RANKS];
static uint64_t ahead_us[RANKS]; /* of the ranks' clocks */
static const char *job[RANKS] = {"88", "88"};

static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

static int64_t ms_of(uint64_t us)
{
    return START_MS + (int64_t)(us / 1000);
}

/* The rank's next operation; sequence: NCCL's, of collectives. */
static void end(uint32_t rank, const char *op, uint64_t sequence, uint64_t start_us)
{
    Fabrictrace__Collective c = FABRICTRACE__COLLECTIVE__INIT;
    Fabrictrace__PeerTraffic peer = FABRICTRACE__PEER_TRAFFIC__INIT, *list[] = {&peer};
    char host[8];

    start_us += ahead_us[rank];
    snprintf(host, sizeof(host), "gpu%02u", rank);
    c.job = text(job[rank]);
    c.comm_id = text("0000000000000fab");
    c.host = host;
    c.op = text(op);
    c.has_rank = c.has_ranks = c.has_pid = c.has_number = c.has_bytes = true;
    c.has_start_ms = c.has_duration_us = c.has_started_ns = c.has_operations = true;
    c.has_sequence = op[0] == 'A';
    c.has_peer = !c.has_sequence;
    c.rank = rank;
    c.peer = 1 - rank;
    c.ranks = RANKS;
    c.pid = 100 + rank;
    c.number = ++number[rank];
    c.sequence = sequence;
    c.bytes = 1 << 20;
    c.start_ms = (uint64_t)ms_of(start_us);
    c.started_ns = start_us * 1000 + 5;
    c.duration_us = 5000;
    c.operations = 1;
    c.peers = list;
    c.n_peers = 1;
    ck_assert_int_eq(ft_recent_collective(recent, &c, ms_of(start_us + 5000)), 0);
}

/* Steps of training, each a collective and a message to each other. */
static void run(bool by_graph)
{
    const struct ft_recent_config config = {.ranks_max = 16, .rows_max = ROWS};

    recent = ft_recent_new(&config);
    ck_assert_ptr_nonnull(recent);
    for (uint64_t i = 0; i < STEPS; i++)
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            number[rank] = 3 * i;
            end(rank, "AllReduce", by_graph ? 0 : i, i * STEP_US);
            end(rank, "Send", 0, i * STEP_US + 10);
            end(rank, "Recv", 0, i * STEP_US + 20);
        }
}

/* Where NCCL's number of a collective stands still, as in a CUDA graph, it is known by its rank's.
 */
START_TEST(a_number_that_stands_still_is_no_gap)
{
    for (int by_graph = 0; by_graph <= 1; by_graph++) {
        struct ft_gathered g;
        uint32_t cursor = 0;

        run(by_graph);
        ck_assert_int_eq(ft_gather(recent, ft_recent_next(recent, &cursor), ROWS,
                                   ms_of(STEPS * STEP_US), NULL, &g),
                         0);
        ck_assert_uint_eq(g.gaps, 0);
        /* Not all have told of what came after the last one. */
        ck_assert_uint_ge(g.rows, RANKS * 3 * (STEPS - 1));
        ft_operations_free(g.ops);
        ft_recent_free(recent);
    }
}
END_TEST

/* A rank whose host's clock is ahead has not done what its peer did not: what both have reported is
 * looked at, with both ends of each transfer. */
START_TEST(clocks_that_are_apart_leave_nothing_out)
{
    for (uint32_t ahead = 0; ahead < RANKS; ahead++)
        for (int alone = 0; alone <= 1; alone++) {
            const struct ft_recent_config config = {.ranks_max = 16, .rows_max = ROWS};
            size_t each = alone ? 2 : 3;
            struct ft_gathered g;
            uint32_t cursor = 0;

            ahead_us[ahead] = 4000000;
            recent = ft_recent_new(&config);
            for (uint64_t i = 0; i < STEPS; i++)
                for (uint32_t rank = 0; rank < RANKS; rank++) {
                    number[rank] = each * i;
                    if (!alone)
                        end(rank, "AllReduce", i, i * STEP_US);
                    end(rank, rank ? "Recv" : "Send", 0, i * STEP_US + 10);
                    end(rank, rank ? "Send" : "Recv", 0, i * STEP_US + 20);
                }
            ck_assert_int_eq(ft_gather(recent, ft_recent_next(recent, &cursor), ROWS,
                                       ms_of(STEPS * STEP_US), NULL, &g),
                             0);
            ck_assert_uint_eq(g.gaps, 0);
            ck_assert_uint_ge(g.rows, RANKS * each * (STEPS - 1));
            ft_operations_free(g.ops);
            ft_recent_free(recent);
            ahead_us[ahead] = 0;
        }
}
END_TEST

/* Ranks of one communicator whose agents name two jobs: each is looked at by itself. */
START_TEST(ranks_of_two_jobs)
{
    struct ft_gathered g;
    uint32_t cursor = 0;

    job[1] = "89";
    run(false);
    job[1] = "88";
    for (uint32_t rank = 0; rank < RANKS; rank++)
        ft_recent_find(recent, "0000000000000fab", rank)->process->number = UINT32_MAX / 2;
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(ft_gather(recent, ft_recent_next(recent, &cursor), ROWS,
                                   ms_of(STEPS * STEP_US), NULL, &g),
                         0);
        ck_assert_uint_ge(g.rows, 3 * (STEPS - 1));
        ft_operations_free(g.ops);
    }
    ft_recent_free(recent);
}
END_TEST

/* An agent hands out what ended within a second in any order, and an operation in progress before
 * those that ended. */
START_TEST(operations_are_in_the_order_of_their_numbers)
{
    const uint64_t came[] = {3, 1, 2, 5, 4};
    const struct ft_recent_config config = {.ranks_max = 16, .rows_max = ROWS};
    const struct ft_recent_rank *rank;
    Fabrictrace__Progress p = FABRICTRACE__PROGRESS__INIT;

    recent = ft_recent_new(&config);
    p.comm_id = text("0000000000000fab");
    p.host = text("gpu00");
    p.op = text("Send");
    p.has_rank = p.has_peer = p.has_number = p.has_state = p.has_start_ms = p.has_pid = true;
    p.peer = 1;
    p.pid = 100;
    p.number = 6;
    p.state = FABRICTRACE__OPERATION_STATE__OPERATION_STATE_IN_FLIGHT;
    p.start_ms = START_MS;
    ck_assert_int_eq(ft_recent_progress(recent, &p, START_MS), 0);
    for (size_t i = 0; i < sizeof(came) / sizeof(*came); i++) {
        number[0] = came[i] - 1;
        end(0, "Send", 0, came[i] * STEP_US);
    }
    rank = ft_recent_find(recent, "0000000000000fab", 0);
    for (size_t i = 0; i < rank->count; i++) {
        ck_assert_uint_eq(ft_recent_row(rank, i)->number, i + 1);
        ck_assert_uint_eq(ft_recent_row(rank, i)->sequence, i);
    }
    ck_assert_uint_eq(rank->progress.row.sequence, 5);
    ft_recent_free(recent);
}
END_TEST

/* An operation of a rank whose process its agent does not know; host: gpu00 throughout. */
static void end_unknown(const char *comm, uint32_t rank, uint64_t sequence, uint64_t start_us)
{
    Fabrictrace__Collective c = FABRICTRACE__COLLECTIVE__INIT;
    Fabrictrace__PeerTraffic peer = FABRICTRACE__PEER_TRAFFIC__INIT, *list[] = {&peer};

    c.job = text("88");
    c.comm_id = text(comm);
    c.host = text("gpu00");
    c.op = text("AllReduce");
    c.has_rank = c.has_ranks = c.has_number = c.has_bytes = c.has_sequence = true;
    c.has_start_ms = c.has_duration_us = c.has_started_ns = c.has_operations = true;
    /* As agents said it before. */
    c.has_pid = rank % 2;
    c.rank = rank;
    c.ranks = RANKS;
    c.number = sequence + 1;
    c.sequence = sequence;
    c.bytes = 1 << 20;
    c.start_ms = (uint64_t)ms_of(start_us);
    c.started_ns = start_us * 1000 + 5;
    c.duration_us = 5000 + 100 * rank;
    c.operations = 1;
    c.peers = list;
    c.n_peers = 1;
    ck_assert_int_eq(ft_recent_collective(recent, &c, ms_of(start_us + 5000)), 0);
}

static void gather(struct ft_gathered *g)
{
    uint32_t cursor = 0;

    ck_assert_int_eq(
        ft_gather(recent, ft_recent_next(recent, &cursor), ROWS, ms_of(STEPS * STEP_US), NULL, g),
        0);
    ck_assert_uint_eq(g->gaps, 0);
}

START_TEST(ranks_of_processes_that_are_not_known_are_taken_by_themselves)
{
    const struct ft_recent_config config = {.ranks_max = 16, .rows_max = ROWS};
    const struct ft_recent_rank *a, *b;
    struct ft_gathered g;
    size_t count;

    recent = ft_recent_new(&config);
    for (uint64_t i = 0; i < STEPS; i++)
        for (uint32_t rank = 0; rank < RANKS; rank++)
            end_unknown("0000000000000fab", rank, i, i * STEP_US + 7 * rank);
    a = ft_recent_find(recent, "0000000000000fab", 0);
    b = ft_recent_find(recent, "0000000000000fab", 1);
    ck_assert_ptr_ne(a->process, b->process);
    ck_assert_uint_eq(a->process->pid, 0);
    gather(&g);
    ck_assert(g.numbered && !g.apart);
    ft_operations_processes(g.ops, &count);
    ck_assert_uint_eq(count, RANKS);
    ft_operations_free(g.ops);
    /* Another communicator, which rests after a step: whose ranks these are, nobody knows. */
    for (uint32_t rank = 0; rank < RANKS; rank++)
        end_unknown("00000000000000aa", rank, 0, STEP_US + 7 * rank);
    gather(&g);
    ck_assert(!g.numbered && g.apart);
    ck_assert_uint_ge(g.rows, RANKS * (STEPS - 1));
    ft_operations_processes(g.ops, &count);
    ck_assert_uint_eq(count, 2 * RANKS);
    ft_operations_free(g.ops);
    ft_recent_free(recent);
}
END_TEST

FT_UNIT_MAIN("gather", a_number_that_stands_still_is_no_gap,
             clocks_that_are_apart_leave_nothing_out, ranks_of_two_jobs,
             operations_are_in_the_order_of_their_numbers,
             ranks_of_processes_that_are_not_known_are_taken_by_themselves)
