// SPDX-License-Identifier: Apache-2.0
/* Tables in which rows are missing at the end, and jobs whose ranks all stand still for a while:
 * what others did later, and what they do next, says that no operation stands and that nobody is
 * late.
 */
#include "config.h"

#include <stdbool.h>

#include "tests/unit/table_rig.h"

#define RANKS 8
#define HOST  4
#define STEPS 40
#define WORK  (20 * MS)
#define LONG  (10000 * MS)
#define AT    30 /* step of the pause, or of the rank that is late */
#define LATE  6  /* rank, not of the first host */

static void put(const char *comm, uint32_t rank, uint64_t k, uint64_t start_ns, uint64_t end_ns)
{
    put_row((struct ft_operation_row){.comm = comm,
                                      .function = "AllReduce",
                                      .rank = rank,
                                      .peer = NONE,
                                      .sequence = k,
                                      .bytes = 1 << 20,
                                      .start_ns = start_ns,
                                      .end_ns = end_ns},
            HOST);
}

/* One communicator; of the second host nothing is known from a time on. */
static void run_cut(uint64_t known_ns)
{
    begin_table();
    for (uint64_t k = 0; k < STEPS; k++)
        for (uint32_t r = 0; r < RANKS; r++) {
            uint64_t start_ns = k * WORK + some(r, k), end_ns = k * WORK + 5 * MS;

            if (r < HOST)
                put("all", r, k, start_ns, end_ns);
            else if (start_ns < known_ns)
                put("all", r, k, start_ns, end_ns < known_ns ? end_ns : NEVER);
        }
}

START_TEST(what_others_ended_later_does_not_stand)
{
    /* Within an operation of the second host; others ended 19 after it. */
    run_cut(20 * WORK + 3 * MS);
    diagnose(0);
    teardown();
    /* Between two. */
    run_cut(20 * WORK + 8 * MS);
    diagnose(0);
    teardown();
}
END_TEST

START_TEST(what_nobody_ended_later_stands)
{
    begin_table();
    for (uint64_t k = 0; k < STEPS; k++)
        for (uint32_t r = 0; r < RANKS; r++)
            put("all", r, k, k * WORK + some(r, k), k + 1 < STEPS ? k * WORK + 5 * MS : NEVER);
    diagnose_at(STEPS * WORK + LONG, 1);
    ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_COMM_HANG);
    teardown();
}
END_TEST

static void put_side(uint32_t rank, uint32_t peer, uint64_t k, uint64_t end_ns)
{
    put_row((struct ft_operation_row){.comm = "pipe",
                                      .function = rank < peer ? "Send" : "Recv",
                                      .rank = rank,
                                      .peer = peer,
                                      .sequence = k,
                                      .bytes = 1 << 20,
                                      .start_ns = k * WORK + some(rank, k),
                                      .end_ns = end_ns},
            HOST);
}

/* Of a sender whose rows begin later than those of its receiver nothing is missing at the end. */
START_TEST(a_sender_whose_first_rows_are_missing_stands)
{
    begin_table();
    for (uint64_t k = 0; k < STEPS; k++) {
        uint64_t end_ns = k + 1 < STEPS ? k * WORK + 5 * MS : NEVER;

        if (k >= AT)
            put_side(0, HOST, k, end_ns);
        put_side(HOST, 0, k, end_ns);
    }
    diagnose_at(STEPS * WORK + LONG, 1);
    ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_COMM_HANG);
    teardown();
}
END_TEST

/* Two sums a step, the second of which is called while the first runs, and does not wait for it.
 * One rank calls the first late; meanwhile the others call the second, or stand still as well. */
static void run_two(bool all_pause)
{
    uint64_t after_ns = 0;

    begin_table();
    for (uint64_t k = 0; k < STEPS; k++) {
        uint64_t now_ns = k * 5 * WORK + after_ns, away_ns = k == AT ? LONG : 0;

        for (uint32_t r = 0; r < RANKS; r++) {
            uint64_t own_ns = all_pause || r == LATE ? away_ns : 0;
            uint64_t first_ns = now_ns + WORK + some(r, k) + (r == LATE ? MS + away_ns : 0);

            put("first", r, k, first_ns, now_ns + 2 * WORK + away_ns);
            put("second", r, k, now_ns + WORK + 10 * MS + own_ns, now_ns + 3 * WORK + away_ns);
        }
        after_ns += away_ns;
    }
}

START_TEST(a_pause_of_all_is_nobody)
{
    run_two(true);
    diagnose(0);
    teardown();
}
END_TEST

START_TEST(one_that_is_late_once_is_told)
{
    run_two(false);
    diagnose(1);
    ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_NONCOMM_SLOW);
    ck_assert_uint_eq(found.items[0].process, LATE);
    teardown();
}
END_TEST

FT_UNIT_MAIN("ends of a table", a_sender_whose_first_rows_are_missing_stands,
             what_others_ended_later_does_not_stand, what_nobody_ended_later_stands,
             a_pause_of_all_is_nobody, one_that_is_late_once_is_told)
