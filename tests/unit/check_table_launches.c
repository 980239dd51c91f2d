// SPDX-License-Identifier: Apache-2.0
/* Tables of jobs that launch several sends and receives at once, or that call ahead of their GPUs.
 */
#include "config.h"

#include <stdbool.h>
#include <stdlib.h>

#include "tests/unit/table_rig.h"

#define RANKS 8
#define STEPS 30

static void put(uint32_t rank, const char *comm, const char *function, uint64_t sequence,
                uint64_t start_ns, uint64_t end_ns, uint32_t peer)
{
    put_row((struct ft_operation_row){.comm = comm,
                                      .function = function,
                                      .rank = rank,
                                      .peer = peer,
                                      .sequence = sequence,
                                      .bytes = 1 << 20,
                                      .start_ns = start_ns,
                                      .end_ns = end_ns},
            4);
}

/* At 30 s, long after what stands. */
static void diagnose_late(size_t expected)
{
    diagnose_at(30000 * MS, expected);
}

/* Each rank sends to all others of its four and receives from them in one launch, which ends when
 * the last of these is done. From the 12th on one rank launches 40 ms later: the others of its four
 * wait for it. */
START_TEST(launches_wait_for_a_late_rank)
{
    begin_table();
    for (uint64_t k = 0; k < STEPS; k++)
        for (uint32_t r = 0; r < RANKS; r++)
            for (uint32_t q = r / 4 * 4; q < r / 4 * 4 + 4; q++) {
                uint64_t begin = (1000 + 100 * k) * MS;
                uint64_t late = begin + (k >= 12 && r < 4 ? 40 : 1) * MS;
                uint64_t start = r == 1 ? late : begin + some(k, r);
                uint64_t end = late + 3 * MS + some(k, r) / 50;

                if (q == r)
                    continue;
                put(r, r < 4 ? "ep0" : "ep1", "Send", k, start, end, q);
                put(r, r < 4 ? "ep0" : "ep1", "Recv", k, start, end, q);
            }
    diagnose_late(0);
    teardown();
}
END_TEST

/* An odd rank sends to the rank before it, then receives from it; that one does both in one launch.
 * Of two ranks the launch comes later than the send, and takes as long as both transfers. */
START_TEST(a_launch_is_as_long_as_both_of_its_transfers)
{
    begin_table();
    for (uint64_t k = 0; k < STEPS; k++)
        for (uint32_t r = 0; r < RANKS; r += 2) {
            uint64_t send = (1000 + 100 * k) * MS, launch = r == 0 ? send + 5 * MS : send - 3 * MS;
            uint64_t begin = launch > send ? launch : send, noise = some(k, r) / 10;

            put(r + 1, "pp", "Send", k, send, begin + 4 * MS + noise, r);
            put(r + 1, "pp", "Recv", k, begin + 4 * MS + noise, begin + 8 * MS + noise, r);
            put(r, "pp", "Recv", k, launch, begin + 8 * MS + noise, r + 1);
            put(r, "pp", "Send", k, launch, begin + 8 * MS + noise, r + 1);
        }
    diagnose_late(0);
    teardown();
}
END_TEST

/* Rank 0 sends and receives in one launch; what it receives stands, so that rank 1 does not come to
 * receive. */
START_TEST(a_transfer_of_a_launch_stands)
{
    begin_table();
    for (uint64_t k = 0; k <= STEPS; k++) {
        uint64_t begin = (1000 + 100 * k) * MS, end = begin + 4 * MS + some(k, 1) / 10;
        bool last = k == STEPS;

        put(0, "pp", "Send", k, begin, last ? NEVER : end + 4 * MS, 1);
        put(0, "pp", "Recv", k, begin, last ? NEVER : end + 4 * MS, 1);
        put(1, "pp", "Send", k, begin + MS, last ? NEVER : end, 0);
        if (!last)
            put(1, "pp", "Recv", k, end, end + 4 * MS, 0);
    }
    diagnose_late(1);
    ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_COMM_HANG);
    ck_assert_uint_eq(found.items[0].process, 1);
    ck_assert_uint_eq(found.items[0].peer, 0);
    teardown();
}
END_TEST

/* All send to each other at once; at last either all transfers of one rank stand, or, as launches
 * end as a whole, all of them. */
START_TEST(transfers_of_launches_that_stand)
{
    for (int all = 0; all < 2; all++) {
        begin_table();
        for (uint64_t k = 0; k <= STEPS; k++)
            for (uint32_t r = 0; r < RANKS; r++)
                for (uint32_t q = 0; q < RANKS; q++) {
                    uint64_t begin = (1000 + 100 * k) * MS, end = begin + 3 * MS + some(k, r) / 50;

                    if (q == r)
                        continue;
                    if (k == STEPS && (all || r == 4 || q == 4))
                        end = NEVER;
                    put(r, "ep", "Send", k, begin, end, q);
                    put(r, "ep", "Recv", k, begin, end, q);
                }
        diagnose_late(1);
        ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_COMM_HANG);
        ck_assert_uint_eq(found.items[0].process, all ? NONE : 4);
        ck_assert_uint_eq(found.items[0].peer, NONE);
        teardown();
    }
}
END_TEST

/* Four collectives a step, called at once; only the first of a step begins when it is called. */
static void call_ahead(uint64_t k, bool stands)
{
    for (uint32_t r = 0; r < RANKS; r++)
        for (uint64_t i = 0; i < 4; i++) {
            uint64_t called = (1000 + 100 * k) * MS + i * MS / 50 + some(k, r) / 50;
            uint64_t end = (1000 + 100 * k + 20 * (i + 1)) * MS + some(k, i);

            put(r, "world", "AllReduce", 4 * k + i, called, stands ? NEVER : end, NONE);
        }
}

/* Who has called an operation may not have begun it: its own work may be what does not end. */
START_TEST(what_was_called_may_not_have_begun)
{
    begin_table();
    for (uint64_t k = 0; k <= STEPS; k++)
        call_ahead(k, k == STEPS);
    diagnose_late(1);
    ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_COMM_HANG);
    ck_assert_uint_eq(found.items[0].process, NONE);
    ck_assert(found.items[0].confidence < 0.7);
    ck_assert_uint_eq(found.items[0].doubts.count, 2);
    teardown();
}
END_TEST

/* One rank calls two collectives in another order; all have called both, and none ends. */
START_TEST(another_order_of_calls)
{
    begin_table();
    for (uint64_t k = 0; k <= STEPS; k++) {
        bool last = k == STEPS;

        if (!last)
            call_ahead(k, false);
        for (uint32_t r = 0; r < RANKS; r++) {
            uint64_t called = (1000 + 100 * k) * MS + MS + some(k, r) / 50;
            uint64_t end = (1000 + 100 * k + 85) * MS + some(k, 7);
            bool turned = last && r == 6;

            put(r, "shards", "ReduceScatter", k, called + turned * MS, last ? NEVER : end, NONE);
            put(r, "sums", "AllReduce", k, called + !turned * MS, last ? NEVER : end + 2 * MS,
                NONE);
        }
    }
    diagnose_late(1);
    ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_MISMATCH);
    ck_assert_uint_eq(found.items[0].process, 6);
    teardown();
}
END_TEST

/* A chain of ranks adds up to rank 0: each sends when it has received. Rank 1 becomes late, so that
 * rank 0 leaves later than others, which have left before rank 1 came. */
START_TEST(the_root_waits_for_a_late_rank)
{
    begin_table();
    for (uint64_t k = 0; k < STEPS; k++) {
        uint64_t begin = (1000 + 200 * k) * MS, at = 0;

        for (uint32_t r = RANKS; r-- > 0;) {
            uint64_t start = begin + 10 * MS + some(k, r) / 10 + (r == 1 && k >= 15 ? 20 * MS : 0);

            at = at > start ? at : start;
            put(r, "sum", "Reduce", k, start, at + 4 * MS, NONE);
        }
    }
    ck_assert_int_eq(ft_operations_finish(ops), 0);
    ck_assert_int_eq(ft_diagnose(ops, ft_operations_newest_ns(ops), true, &found), 0);
    for (size_t i = 0; i < found.count; i++)
        ck_assert_int_ne(found.items[i].syndrome, FT_SYNDROME_COMM_SLOW);
    teardown();
}
END_TEST

FT_UNIT_MAIN("launches in tables", launches_wait_for_a_late_rank,
             a_launch_is_as_long_as_both_of_its_transfers, a_transfer_of_a_launch_stands,
             transfers_of_launches_that_stand, what_was_called_may_not_have_begun,
             another_order_of_calls, the_root_waits_for_a_late_rank)
