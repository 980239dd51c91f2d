// SPDX-License-Identifier: Apache-2.0
/* Tables of jobs in which one rank calls two communicators in another order, and continues. */
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "tests/unit/table_rig.h"

#define RANKS    16
#define HOST     4 /* ranks of one, which are a communicator; so are those of one place in it */
#define STEPS    20
#define WORK     (20 * MS)
#define TRANSFER (5 * MS)
#define ODD      6 /* rank */
#define AT       12
#define STALL    (60 * MS)

/* What a rank does in a step: within its host, then over hosts; the latter beside the former, too.
 */
enum how { IN_TURN, BESIDE };

struct place {
    uint64_t start_ns[RANKS], end_ns[RANKS];
};

static void put(uint32_t rank, bool over, uint64_t k, const struct place *p)
{
    char comm[16];

    snprintf(comm, sizeof(comm), over ? "dp%u" : "tp%u", over ? rank % HOST : rank / HOST);
    put_row((struct ft_operation_row){.comm = comm,
                                      .function = "AllReduce",
                                      .rank = rank,
                                      .peer = NONE,
                                      .sequence = k,
                                      .bytes = 1 << 20,
                                      .start_ns = p->start_ns[rank],
                                      .end_ns = p->end_ns[rank]},
            HOST);
}

static bool together(uint32_t a, uint32_t b, bool over)
{
    return over ? a % HOST == b % HOST : a / HOST == b / HOST;
}

/* All start at their own time, and end when the last of their communicator has started. */
static void end_all(struct place *p, bool over)
{
    for (uint32_t r = 0; r < RANKS; r++) {
        p->end_ns[r] = 0;
        for (uint32_t q = 0; q < RANKS; q++)
            if (together(r, q, over) && p->end_ns[r] < p->start_ns[q] + TRANSFER)
                p->end_ns[r] = p->start_ns[q] + TRANSFER;
    }
}

/* The odd ranks of a step call what is over hosts first. */
static void turn(uint64_t k, uint64_t now[RANKS], const bool odd[RANKS])
{
    struct place in = {0}, over = {0};

    /* What depends on what ends after as many rounds. */
    for (int round = 0; round < 4; round++) {
        for (uint32_t r = 0; r < RANKS; r++) {
            in.start_ns[r] = odd[r] ? over.end_ns[r] + WORK : now[r];
            over.start_ns[r] = odd[r] ? now[r] : in.end_ns[r] + WORK;
        }
        end_all(&in, false);
        end_all(&over, true);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        put(r, false, k, &in);
        put(r, true, k, &over);
        now[r] = (odd[r] ? in.end_ns[r] : over.end_ns[r]) + WORK + some(k, r);
    }
}

/* What is over hosts is called by itself, at the same time in each step; a rank that stalls calls
 * the other after it. */
static void beside(uint64_t k, uint64_t now[RANKS], const bool odd[RANKS])
{
    struct place in = {0}, over = {0};

    for (uint32_t r = 0; r < RANKS; r++) {
        in.start_ns[r] = now[r] + (odd[r] ? STALL : 0);
        over.start_ns[r] = now[r] + (odd[r] ? WORK : 2 * WORK);
    }
    end_all(&in, false);
    end_all(&over, true);
    for (uint32_t r = 0; r < RANKS; r++) {
        put(r, false, k, &in);
        put(r, true, k, &over);
        now[r] += 6 * WORK + some(k, r);
    }
}

/* In the middle of it so many ranks are odd, on a host each, in so many steps. */
static void run(enum how how, uint32_t ranks, uint64_t steps)
{
    uint64_t now[RANKS];

    begin_table();
    for (uint32_t r = 0; r < RANKS; r++)
        now[r] = 1000 * MS + some(r, 1);
    for (uint64_t k = 0; k < STEPS; k++) {
        bool odd[RANKS] = {false};

        for (uint32_t i = 0; i < ranks && k >= AT && k < AT + steps; i++)
            odd[ODD + i * HOST] = true;
        (how == IN_TURN ? turn : beside)(k, now, odd);
    }
}

START_TEST(who_calls_in_another_order)
{
    run(IN_TURN, 1, 1);
    diagnose(1);
    ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_MISMATCH);
    ck_assert_uint_eq(found.items[0].process, ODD);
    ck_assert_uint_eq(found.items[0].peer / HOST, ODD / HOST);
    ck_assert_uint_eq(found.items[0].sequence, AT);
    ck_assert_str_eq(ft_operations_comm(ops, found.items[0].comm), "tp1");
    teardown();
    /* Of a job that continues nobody knows yet what else it calls, though rows are newer than now
     * by the clock of their host. */
    for (uint32_t ahead = 0; ahead < 2; ahead++) {
        run(IN_TURN, 1, 1);
        diagnose_live(ahead ? ft_operations_newest_ns(ops) - 1 : UINT64_MAX / 2, 0);
        teardown();
    }
}
END_TEST

START_TEST(whose_order_is_no_mistake)
{
    run(IN_TURN, 0, 0);
    diagnose(0);
    teardown();
    /* It does so more than once, or others do. */
    run(IN_TURN, 1, 2);
    diagnose(0);
    teardown();
    run(IN_TURN, 2, 1);
    diagnose(0);
    teardown();
    /* What another thread calls does not wait for the first. */
    run(BESIDE, 1, 1);
    diagnose(0);
    teardown();
}
END_TEST

FT_UNIT_MAIN("order in a table", who_calls_in_another_order, whose_order_is_no_mistake)
