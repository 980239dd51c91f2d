// SPDX-License-Identifier: Apache-2.0
/* Plain tables: one communicator, or as many as there have to be, 2 to 16 ranks and 5 to 40 steps,
 * no noise to speak of, and one thing that is wrong, or none. */
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "tests/unit/table_rig.h"

#define RANKS  16
#define STEPS  20
#define WORK   (20 * MS)
#define LENGTH (5 * MS)

static uint64_t now[RANKS];
static uint64_t calls[8]; /* of each communicator */
static const char *const comms[] = {"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"};

static void setup(void)
{
    begin_table();
    memset(calls, 0, sizeof(calls));
    for (uint32_t r = 0; r < RANKS; r++)
        now[r] = 1000 * MS;
}

static void put(uint32_t rank, uint32_t comm, const char *function, uint64_t end_ns, uint32_t peer)
{
    put_row((struct ft_operation_row){.comm = comms[comm],
                                      .function = function,
                                      .rank = rank,
                                      .peer = peer,
                                      .sequence = calls[comm],
                                      .bytes = 1 << 20,
                                      .start_ns = now[rank],
                                      .end_ns = end_ns},
            8);
}

/* Ranks from the first on, each so far from the one before, but for those from gone on. */
static void sum(uint32_t comm, uint32_t first, uint32_t count, uint32_t apart, uint64_t length,
                uint32_t gone, uint32_t gone_count)
{
    uint64_t all = 0;

    for (uint32_t r = first; r < first + count * apart; r += apart)
        all = now[r] > all ? now[r] : all;
    for (uint32_t r = first; r < first + count * apart; r += apart) {
        uint64_t end = all + length + some(calls[comm], r) / 50;

        if (r >= gone && r < gone + gone_count)
            continue;
        put(r, comm, "AllReduce", gone_count ? NEVER : end, NONE);
        now[r] = end;
    }
    calls[comm]++;
}

static void work(uint32_t ranks)
{
    for (uint32_t r = 0; r < ranks; r++)
        now[r] += WORK + some(calls[0], r) / 2;
}

static void expect(enum ft_syndrome syndrome, uint32_t process)
{
    ck_assert_int_eq(found.items[0].syndrome, syndrome);
    ck_assert_uint_eq(found.items[0].process, process);
}

/* Gradients are summed in so many buckets one after the other; ranks stop before the last step's
 * bucket of that number. */
static void stops(uint32_t ranks, uint64_t buckets, uint64_t at, uint32_t gone, uint32_t count)
{
    setup();
    for (uint64_t k = 0; k < STEPS; k++) {
        work(ranks);
        for (uint64_t b = 0; b < buckets && (k + 1 < STEPS || b < at); b++)
            sum(0, 0, ranks, 1, LENGTH, 0, 0);
    }
    sum(0, 0, ranks, 1, LENGTH, gone, count);
    diagnose(1);
    expect(FT_SYNDROME_NONCOMM_HANG, gone);
    ck_assert_uint_eq(found.items[0].others, count - 1);
    teardown();
}

START_TEST(who_stops)
{
    static const uint32_t jobs[] = {2, 4, 8, 16};

    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
        for (uint64_t buckets = 1; buckets <= 3; buckets++)
            for (uint64_t at = 0; at < buckets; at++)
                stops(jobs[i], buckets, at, jobs[i] / 2, 1);
    stops(16, 2, 0, 8, 8);
}
END_TEST

/* Two ranks, of which the table ends before the second has been away for as long as usual. */
START_TEST(who_may_come_still)
{
    setup();
    for (uint64_t k = 0; k < STEPS; k++) {
        work(2);
        sum(0, 0, 2, 1, LENGTH, 0, 0);
    }
    now[0] += WORK / 2;
    put(0, 0, "AllReduce", NEVER, NONE);
    diagnose(0);
    teardown();
}
END_TEST

/* Stages pass on what they computed, forth and back; from the one to the other it stands. */
static void pipeline(uint32_t stages, uint32_t from, uint32_t to)
{
    setup();
    for (uint64_t k = 0; k < STEPS; k++)
        for (uint32_t i = 0; i < 2 * (stages - 1); i++) {
            bool back = i >= stages - 1;
            uint32_t a = back ? 2 * (stages - 1) - i : i, b = back ? a - 1 : a + 1;
            bool stands = k + 1 == STEPS && a == from && b == to;
            uint64_t end;

            now[a] += WORK + some(k, i) / 2;
            end = (now[a] > now[b] ? now[a] : now[b]) + LENGTH;
            put(a, 0, "Send", stands ? NEVER : end, b);
            put(b, 0, "Recv", stands ? NEVER : end, a);
            if (stands) {
                for (uint32_t r = 0; r < stages; r++)
                    if (r != a && r != b)
                        put(r, 0, "Recv", NEVER, r > a ? r - 1 : r + 1);
                diagnose(1);
                expect(FT_SYNDROME_COMM_HANG, from);
                ck_assert_uint_eq(found.items[0].peer, to);
                ck_assert_double_eq_tol(found.items[0].confidence, 0.6, 1e-9);
                teardown();
                return;
            }
            now[a] = now[b] = end;
            calls[0]++;
        }
}

START_TEST(which_transfer_stands)
{
    pipeline(2, 0, 1);
    pipeline(2, 1, 0);
    pipeline(4, 1, 2);
    pipeline(4, 2, 1);
}
END_TEST

/* Tensor and data communicators of one shape, function and size, which take different times. */
START_TEST(purposes_of_one_shape)
{
    setup();
    for (uint64_t k = 0; k < STEPS; k++) {
        for (uint32_t i = 0; i < 4; i++) {
            work(4);
            sum(0, 0, 2, 1, LENGTH, 0, 0);
            sum(1, 2, 2, 1, LENGTH, 0, 0);
        }
        for (uint32_t i = 0; i < 4; i++)
            sum(2 + i % 2, i % 2, 2, 2, 4 * LENGTH, 0, 0);
    }
    diagnose(0);
    teardown();
}
END_TEST

/* Tensor communicators and those of data of one shape, one of which is slow. */
START_TEST(one_of_one_purpose)
{
    setup();
    for (uint64_t k = 0; k < 2 * STEPS; k++) {
        work(RANKS);
        for (uint32_t i = 0; i < 4; i++)
            sum(i, 4 * i, 4, 1, LENGTH, 0, 0);
        for (uint32_t i = 0; i < 4; i++)
            sum(4 + i, i, 4, 4, i == 2 ? 4 * LENGTH : LENGTH, 0, 0);
    }
    diagnose(1);
    ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_COMM_SLOW);
    ck_assert_str_eq(ft_operations_comm(ops, found.items[0].comm), "c6");
    teardown();
}
END_TEST

/* A rank computes for longer: by so much, in some of the steps. */
static void late(uint32_t ranks, uint64_t steps, uint64_t since, uint64_t until, uint64_t by_ns)
{
    setup();
    for (uint64_t k = 0; k < steps; k++) {
        work(ranks);
        now[1] += k >= since && k < until ? by_ns : 0;
        sum(0, 0, ranks, 1, LENGTH, 0, 0);
        sum(0, 0, ranks, 1, LENGTH, 0, 0);
    }
}

START_TEST(who_is_late)
{
    static const struct {
        uint32_t ranks;
        uint64_t steps, since, until, by_ns;
    } jobs[] = {
        {2, 20, 5, 20, WORK},       {2, 20, 0, 20, WORK / 2},   {2, 5, 0, 5, WORK},
        {4, 6, 0, 6, WORK},         {8, 8, 3, 8, WORK},         {16, 6, 1, 6, WORK / 2},
        {4, 20, 12, 13, 10 * WORK}, {16, 40, 30, 31, 5 * WORK},
    };

    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        late(jobs[i].ranks, jobs[i].steps, jobs[i].since, jobs[i].until, jobs[i].by_ns);
        diagnose(1);
        expect(FT_SYNDROME_NONCOMM_SLOW, 1);
        teardown();
    }
    /* Of a job that goes on few steps say nothing. */
    late(4, 6, 0, 6, WORK);
    diagnose_at(now[0] + MS, 0);
    teardown();
    /* Not once by so little, nor for three steps. */
    late(4, 20, 12, 13, 2 * WORK);
    diagnose(0);
    teardown();
    late(8, 8, 3, 6, WORK / 2);
    diagnose(0);
    teardown();
}
END_TEST

/* Lengths of inputs differ by up to 30 % from rank to rank and step to step, in few steps. */
START_TEST(uneven_lengths)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        setup();
        for (uint64_t k = 0; k < 5 + seed % 8; k++) {
            for (uint32_t r = 0; r < RANKS; r++)
                now[r] += WORK * 7 / 10 + WORK * 6 / 10 * some(seed * 64 + k, r * 17 + 5) / MS;
            sum(0, 0, 2 + seed % 15, 1, LENGTH, 0, 0);
        }
        diagnose(0);
        teardown();
    }
}
END_TEST

FT_UNIT_MAIN("plain tables", who_stops, who_may_come_still, which_transfer_stands,
             purposes_of_one_shape, one_of_one_purpose, who_is_late, uneven_lengths)
