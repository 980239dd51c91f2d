// SPDX-License-Identifier: Apache-2.0
/* Tables of ranks that are late once, of jobs that only send and receive, and of jobs that pause.
 */
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "tests/unit/table_rig.h"

#define RANKS 16
#define STEPS 40
#define WORK  (20 * MS)
#define SEND  (2 * MS)
#define AWAY  (3000 * MS)

static uint64_t now[RANKS];
static int64_t ahead[RANKS]; /* of each rank's clock */

static void setup(void)
{
    begin_table();
    memset(ahead, 0, sizeof(ahead));
    for (uint32_t r = 0; r < RANKS; r++)
        now[r] = 1000 * MS;
}

static void put(uint32_t rank, const char *comm, const char *function, uint64_t sequence,
                uint64_t start_ns, uint64_t end_ns, uint32_t peer)
{
    put_row((struct ft_operation_row){.comm = comm,
                                      .function = function,
                                      .rank = rank,
                                      .peer = peer,
                                      .sequence = sequence,
                                      .bytes = 1 << 20,
                                      .start_ns = start_ns + (uint64_t)ahead[rank],
                                      .end_ns =
                                          end_ns == NEVER ? NEVER : end_ns + (uint64_t)ahead[rank]},
            4);
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* So many ranks from the first on, each so far from the one before, enter and leave together; or do
 * not leave. */
static void join(const char *comm, uint64_t k, uint32_t first, uint32_t count, uint32_t apart,
                 bool ends)
{
    uint64_t all = 0;

    for (uint32_t i = 0; i < count; i++)
        all = later(all, now[first + i * apart]);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t r = first + i * apart;

        put(r, comm, "AllReduce", k, now[r], ends ? all + SEND : NEVER, NONE);
        now[r] = ends ? all + SEND : now[r];
    }
}

/* A rank sends to another, which waits for it; or the other way round. */
static void pass(uint64_t k, uint32_t from, uint32_t to)
{
    uint64_t end = later(now[from], now[to]) + SEND;

    put(from, "pp", "Send", k, now[from], end, to);
    put(to, "pp", "Recv", k, now[to], end, from);
    now[from] = now[to] = end;
}

static void work(uint64_t k)
{
    for (uint32_t r = 0; r < RANKS; r++)
        now[r] += WORK + some(k, r);
}

static void expect(enum ft_syndrome syndrome, uint32_t process)
{
    ck_assert_int_eq(found.items[0].syndrome, syndrome);
    ck_assert_uint_eq(found.items[0].process, process);
}

/* Who is away before a step, for how many times as long. */
static void a_job(uint32_t (*away)(uint64_t k, uint32_t rank), size_t expected)
{
    setup();
    for (uint64_t k = 0; k < STEPS; k++) {
        for (uint32_t r = 0; r < RANKS; r++)
            now[r] += away(k, r) * AWAY;
        work(k);
        join("world", k, 0, RANKS, 1, true);
    }
    diagnose(expected);
}

static uint32_t one(uint64_t k, uint32_t rank)
{
    return k == 20 && rank == 5;
}

static uint32_t a_host(uint64_t k, uint32_t rank)
{
    return k == 20 && rank / 4 == 2;
}

static uint32_t beside_a_saver(uint64_t k, uint32_t rank)
{
    return one(k, rank) || (k % 10 == 9 && rank == 0) ? 1 + (rank == 0) : 0;
}

START_TEST(who_was_late_once)
{
    a_job(one, 1);
    expect(FT_SYNDROME_NONCOMM_SLOW, 5);
    ck_assert_uint_ge(found.items[0].since_ns, (1000 + 20 * 22) * MS);
    ck_assert_uint_le(found.items[0].since_ns, (1000 + 20 * 23) * MS);
    teardown();
    a_job(a_host, 1);
    ck_assert_uint_eq(found.items[0].process / 4, 2);
    ck_assert_uint_eq(found.items[0].others, 3);
    teardown();
    a_job(beside_a_saver, 1);
    expect(FT_SYNDROME_NONCOMM_SLOW, 5);
    teardown();
}
END_TEST

static uint32_t the_first(uint64_t k, uint32_t rank)
{
    return k == 20 && rank == 0;
}

static uint32_t again(uint64_t k, uint32_t rank)
{
    return (k == 20 || k == 30) && rank == 5;
}

static uint32_t two(uint64_t k, uint32_t rank)
{
    return (k == 20 && rank == 5) || (k == 30 && rank == 11);
}

static uint32_t all(uint64_t k, uint32_t rank)
{
    return k % 10 == 9 ? 4 + rank % 2 : 0;
}

/* The first of each host saves, once. */
static uint32_t savers(uint64_t k, uint32_t rank)
{
    return k == 20 && rank % 4 == 0;
}

static uint32_t at_first(uint64_t k, uint32_t rank)
{
    return k == 2 && rank == 5;
}

/* What else looks like it. */
START_TEST(who_is_not_said_to_have_been)
{
    uint32_t (*const jobs[])(uint64_t, uint32_t) = {the_first, again, two, all, savers, at_first};

    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        a_job(jobs[i], 0);
        teardown();
    }
}
END_TEST

/* Nothing is over for certain while more may come. */
START_TEST(nothing_is_over_in_a_table_that_goes_on)
{
    setup();
    for (uint64_t k = 0; k < STEPS; k++) {
        now[5] += k == 20 ? AWAY : 0;
        work(k);
        join("world", k, 0, RANKS, 1, true);
    }
    diagnose_at(now[0] + MS, 0);
}
END_TEST

/* Four copies of a pipeline of four stages, each a host; no collective. */
static void pipelines(uint32_t slow, uint64_t since, uint64_t once)
{
    setup();
    for (uint64_t k = 0; k < STEPS; k++)
        for (uint32_t way = 0; way < 2; way++)
            for (uint32_t i = 0; i < 4; i++)
                for (uint32_t copy = 0; copy < 4; copy++) {
                    uint32_t stage = way ? 3 - i : i, r = stage * 4 + copy;

                    now[r] += WORK + some(k, r) + (r == slow && k >= since ? WORK : 0) +
                              (r == slow && k == once && !way ? AWAY : 0);
                    if (i < 3)
                        pass(2 * k + way, r, way ? r - 4 : r + 4);
                }
}

START_TEST(who_is_late_without_collectives)
{
    for (uint32_t r = 1; r < RANKS; r += 7)
        for (uint64_t since = 0; since <= STEPS / 2; since += STEPS / 4) {
            pipelines(r, since, STEPS);
            diagnose(1);
            expect(FT_SYNDROME_NONCOMM_SLOW, r);
            teardown();
        }
    pipelines(6, STEPS, 20);
    diagnose(1);
    expect(FT_SYNDROME_NONCOMM_SLOW, 6);
    teardown();
    pipelines(0, STEPS, STEPS);
    diagnose(0);
}
END_TEST

/* All send to the next, and receive from the one before. */
static void ring(uint64_t k)
{
    uint64_t start[RANKS];

    memcpy(start, now, sizeof(start));
    for (uint32_t r = 0; r < RANKS; r++) {
        uint32_t to = (r + 1) % RANKS, from = (r + RANKS - 1) % RANKS;
        uint64_t sent = later(start[r], start[to]) + SEND;
        uint64_t got = later(start[r], start[from]) + SEND;

        put(r, "cp", "Send", k, start[r], sent, to);
        put(r, "cp", "Recv", k, start[r], got, from);
        now[r] = later(sent, got);
    }
}

START_TEST(who_is_late_in_a_ring_alone)
{
    for (int late = 0; late < 2; late++) {
        setup();
        for (uint64_t k = 0; k < STEPS; k++) {
            work(k);
            now[9] += late ? WORK / 2 : 0;
            ring(k);
        }
        diagnose((size_t)late);
        if (late)
            expect(FT_SYNDROME_NONCOMM_SLOW, 9);
        teardown();
    }
    setup();
}
END_TEST

/* All send up a tree and down again; inner ranks call more than leaves. One is late from a step on,
 * at once or more and more; all pause now and then. */
static void tree(uint32_t late, uint64_t since, bool grows)
{
    setup();
    for (uint64_t k = 0; k < STEPS; k++) {
        for (uint32_t r = 0; r < RANKS; r++)
            now[r] += k % 10 == 9 ? AWAY + some(k, r) * 100 : 0;
        work(k);
        if (k >= since)
            now[late] += grows ? (k - since) * WORK / 16 : WORK;
        for (uint32_t r = RANKS; r-- > 1;)
            pass(k, r, (r - 1) / 2);
        for (uint32_t r = 1; r < RANKS; r++)
            pass(k, (r - 1) / 2, r);
    }
}

START_TEST(who_becomes_late_in_a_tree_alone)
{
    const uint32_t without_like[] = {0, 2, 15};

    for (size_t i = 0; i < 3; i++) {
        for (int grows = 0; grows < 2; grows++) {
            tree(without_like[i], STEPS / 4, grows);
            diagnose(1);
            expect(FT_SYNDROME_NONCOMM_SLOW, without_like[i]);
            teardown();
        }
        /* It may be built so. */
        tree(without_like[i], 0, false);
        diagnose(0);
        teardown();
    }
    tree(0, STEPS, false);
    diagnose(0);
}
END_TEST

/* Two hosts' ranks in pairs; one saves every eighth step, or all do while another is late. */
START_TEST(pauses_are_no_period)
{
    for (int late = 0; late < 2; late++) {
        setup();
        for (uint64_t k = 0; k < 10 * STEPS / 4; k++) {
            for (uint32_t r = 0; r < RANKS; r++)
                now[r] += k % 8 == 7 && (late || r == 0) ? AWAY + some(k, r) * (k % 3) * 100 : 0;
            work(k);
            now[6] += late ? WORK / 2 : 0;
            for (uint32_t host = 0; host < RANKS; host += 4)
                join(host == 0   ? "h0"
                     : host == 4 ? "h1"
                     : host == 8 ? "h2"
                                 : "h3",
                     k, host, 4, 1, true);
            for (uint32_t r = 0; r < 8; r++)
                join((const char *[]){"a", "b", "c", "d", "e", "f", "g", "h"}[r], k, r, 2, 8, true);
        }
        diagnose((size_t)late);
        if (late)
            expect(FT_SYNDROME_NONCOMM_SLOW, 6);
        teardown();
    }
    setup();
}
END_TEST

/* The sum of one stage stands; the table ends when the last of it has entered, for which all
 * wait. */
START_TEST(a_sum_of_some_ranks_stands_at_the_end)
{
    setup();
    for (uint64_t k = 0; k < STEPS; k++) {
        work(k);
        for (uint32_t r = 0; r < 4; r++)
            now[r] += WORK;
        for (uint32_t r = 4; r < RANKS; r += 4)
            join(r == 4 ? "s1" : r == 8 ? "s2" : "s3", k, r, 4, 1, true);
        join("s0", k, 0, 4, 1, k + 1 < STEPS);
        for (uint32_t r = 0; r < RANKS && k + 1 == STEPS; r += 4)
            for (uint32_t i = 0; i < 4 && r; i++)
                put(r + i, "pp", "Recv", k, now[r + i], NEVER, r + i - 4);
        for (uint32_t r = 0; r + 4 < RANKS && k + 1 < STEPS; r++)
            pass(k, r, r + 4);
    }
    diagnose(1);
    ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_COMM_HANG);
    ck_assert_str_eq(ft_operations_comm(ops, found.items[0].comm), "s0");
}
END_TEST

/* All but one have entered when the table ends: it has been away for as long as it usually takes,
 * nearly, or for half of that. */
START_TEST(who_has_as_good_as_taken_its_time)
{
    for (size_t half = 0; half < 2; half++) {
        setup();
        for (uint64_t k = 0; k < STEPS; k++) {
            for (uint32_t r = 0; r < RANKS; r++)
                now[r] += WORK;
            join("world", k, 0, RANKS, 1, true);
        }
        for (uint32_t r = 0; r < RANKS; r++)
            if (r != 5)
                put(r, "world", "AllReduce", STEPS, now[r] + (half ? WORK / 2 : WORK - MS), NEVER,
                    NONE);
        diagnose(1 - half);
        if (!half)
            expect(FT_SYNDROME_NONCOMM_HANG, 5);
        teardown();
    }
}
END_TEST

/* A rank that receives at once from another, but computes before it sends: what counts is how long
 * it takes before it receives. */
START_TEST(who_does_not_receive)
{
    setup();
    for (uint64_t k = 0; k < STEPS; k++) {
        work(k);
        for (uint32_t r = 0; r < RANKS; r += 2)
            pass(2 * k, r + 1, r);
        for (uint32_t r = 0; r < RANKS; r += 2) {
            if (k + 1 < STEPS || r != 6)
                pass(2 * k + 1, r, r + 1);
            else
                put(r, "pp", "Send", 2 * k + 1, now[r], NEVER, r + 1);
        }
        if (k + 1 < STEPS)
            join("world", k, 0, RANKS, 1, true);
        for (uint32_t r = 0; r < RANKS && k + 1 == STEPS; r++)
            if (r != 6 && r != 7)
                put(r, "world", "AllReduce", k, now[r], NEVER, NONE);
    }
    diagnose(1);
    expect(FT_SYNDROME_NONCOMM_HANG, 7);
}
END_TEST

/* A healthy table is cut at one moment, by clocks that differ by more than a transfer takes. */
START_TEST(clocks_that_sends_connect)
{
    uint64_t cut;

    setup();
    for (uint32_t r = 0; r < RANKS; r++)
        ahead[r] = (int64_t)(r / 4 * 400 * MS);
    for (uint64_t k = 0; k < STEPS; k++) {
        for (uint32_t r = 0; r < RANKS; r++)
            now[r] += WORK + some(k, r);
        for (uint32_t r = 0; r + 4 < RANKS; r++)
            pass(k, r, r + 4);
    }
    cut = now[12] + WORK;
    for (uint32_t r = 0; r < 4; r++) {
        put(r, "pp", "Send", STEPS, cut - MS, NEVER, r + 4);
        put(r + 4, "pp", "Recv", STEPS, cut - MS, NEVER, r);
        put(r + 8, "pp", "Recv", STEPS, cut - 2 * MS, NEVER, r + 4);
        put(r + 12, "pp", "Recv", STEPS, cut - 2 * MS, NEVER, r + 8);
    }
    diagnose(0);
}
END_TEST

FT_UNIT_MAIN("tables of ranks that are late once", who_was_late_once, who_is_not_said_to_have_been,
             nothing_is_over_in_a_table_that_goes_on, who_is_late_without_collectives,
             who_is_late_in_a_ring_alone, who_becomes_late_in_a_tree_alone, pauses_are_no_period,
             who_has_as_good_as_taken_its_time, who_does_not_receive,
             a_sum_of_some_ranks_stands_at_the_end, clocks_that_sends_connect)
