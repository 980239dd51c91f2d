// SPDX-License-Identifier: Apache-2.0
/* Small jobs in which every rank computes for 10 ms and then joins a collective of 2 ms. */
#include "config.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/diagnosis/found.h"
#include "tests/unit/table_rig.h"

#define RANKS    8
#define STEPS    30
#define COMPUTE  (10 * MS)
#define TRANSFER (2 * MS)

static uint64_t now[RANKS];

static void setup(void)
{
    begin_table();
    for (size_t r = 0; r < RANKS; r++)
        now[r] = 1000 * MS;
}

static void row(uint32_t rank, const char *comm, const char *function, uint64_t sequence,
                uint64_t end_ns, uint32_t peer)
{
    put_row((struct ft_operation_row){.comm = comm,
                                      .function = function,
                                      .rank = rank,
                                      .peer = peer,
                                      .sequence = sequence,
                                      .bytes = 1 << 20,
                                      .start_ns = now[rank],
                                      .end_ns = end_ns},
            4);
}

/* All ranks but those of a mask compute and join; extra: what one of them computes longer. */
static void step(uint64_t k, uint32_t late, uint64_t extra, uint64_t transfer)
{
    uint64_t all = 0;

    for (uint32_t r = 0; r < RANKS; r++) {
        now[r] += COMPUTE + some(k, r) + (r == late ? extra : 0);
        all = all > now[r] ? all : now[r];
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        row(r, "world", "AllReduce", k, all + transfer + some(k, r) / 20, FT_OPERATIONS_NONE);
        now[r] = all + transfer + some(k, r) / 20;
    }
}

START_TEST(nothing_is_wrong)
{
    setup();
    for (uint64_t k = 0; k < STEPS; k++)
        step(k, 0, k % 10 == 9 ? 500 * MS : 0, TRANSFER);
    diagnose(0);
    teardown();
}
END_TEST

START_TEST(a_rank_that_never_enters)
{
    setup();
    for (uint64_t k = 0; k < STEPS; k++)
        step(k, RANKS, 0, TRANSFER);
    for (uint32_t r = 0; r < RANKS; r++) {
        now[r] += COMPUTE + some(STEPS, r);
        if (r != 5)
            row(r, "world", "AllReduce", STEPS, FT_OPERATIONS_NEVER, FT_OPERATIONS_NONE);
    }
    diagnose(1);
    ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_NONCOMM_HANG);
    ck_assert_uint_eq(found.items[0].process, 5);
    ck_assert_uint_eq(found.items[0].sequence, STEPS);
    ck_assert_uint_eq(found.items[0].waiting_count, RANKS - 1);
    ck_assert_double_eq(found.items[0].slowdown, 0);
    teardown();
}
END_TEST

/* After a pause of 20 minutes that was none, one of half an hour is a hang for certain. */
START_TEST(a_pause_does_not_hide_a_hang_for_long)
{
    const uint64_t minute = 60000 * MS;

    for (uint64_t longer = 0; longer <= 1; longer++) {
        setup();
        for (uint64_t k = 0; k < STEPS; k++)
            step(k, 2, k == 10 ? 20 * minute : 0, TRANSFER);
        for (uint32_t r = 0; r < RANKS; r++) {
            now[r] += COMPUTE + some(STEPS, r);
            if (r != 5)
                row(r, "world", "AllReduce", STEPS, FT_OPERATIONS_NEVER, FT_OPERATIONS_NONE);
        }
        diagnose_at(ft_operations_newest_ns(ops) + (29 + 2 * longer) * minute, 1);
        ck_assert_uint_eq(found.items[0].process, 5);
        ck_assert_int_eq(found.items[0].confidence >= 0.9, longer);
        teardown();
    }
}
END_TEST

/* The table ends when all are in an operation, for no longer than usual: that it stands is
 * possible. At a time that is known it is not. */
START_TEST(the_last_operation_does_not_end)
{
    for (uint64_t known = 0; known < 2; known++) {
        setup();
        for (uint64_t k = 0; k < STEPS; k++)
            step(k, RANKS, 0, TRANSFER);
        for (uint32_t r = 0; r < RANKS; r++) {
            now[r] += COMPUTE + some(STEPS, r);
            row(r, "world", "AllReduce", STEPS, FT_OPERATIONS_NEVER, FT_OPERATIONS_NONE);
        }
        diagnose_at(ft_operations_newest_ns(ops) + known, 1 - known);
        if (!known) {
            ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_COMM_HANG);
            ck_assert_uint_eq(found.items[0].process, FT_OPERATIONS_NONE);
            ck_assert_double_eq_tol(found.items[0].confidence, 0.6, 1e-9);
        }
        teardown();
    }
}
END_TEST

/* The trace ends while two ranks of a host still compute: they are not late yet. Where all of its
 * ranks do, for as long as usual, it may have stopped. */
START_TEST(two_are_under_way)
{
    for (uint32_t whole = 0; whole < 2; whole++) {
        setup();
        for (uint64_t k = 0; k < STEPS; k++)
            step(k, RANKS, 0, TRANSFER);
        for (uint32_t r = 0; r < RANKS; r++) {
            now[r] += COMPUTE + some(STEPS, r);
            if (whole ? r < 4 : r != 4 && r != 6)
                row(r, "world", "AllReduce", STEPS, FT_OPERATIONS_NEVER, FT_OPERATIONS_NONE);
        }
        diagnose(whole);
        if (whole) {
            ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_NONCOMM_HANG);
            ck_assert_uint_eq(found.items[0].process, 4);
            ck_assert_uint_eq(found.items[0].others, 3);
            ck_assert_double_eq_tol(found.items[0].confidence, 0.7, 1e-9);
        }
        teardown();
    }
}
END_TEST

/* Ranks 0 to 3 stand in a collective of their own while 4 to 7 go on. */
START_TEST(an_operation_that_stands)
{
    setup();
    for (uint64_t k = 0; k < STEPS; k++) {
        for (uint32_t r = 0; r < RANKS; r++)
            now[r] += COMPUTE;
        for (uint32_t r = 0; r < RANKS; r++) {
            bool stands = k >= 20 && r < 4;

            if (k > 20 && r < 4)
                continue;
            row(r, r < 4 ? "a" : "b", "AllReduce", k,
                stands ? FT_OPERATIONS_NEVER : now[r] + TRANSFER, FT_OPERATIONS_NONE);
            now[r] += TRANSFER;
        }
    }
    diagnose(1);
    ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_COMM_HANG);
    ck_assert_str_eq(ft_operations_comm(ops, found.items[0].comm), "a");
    ck_assert_uint_eq(found.items[0].process, FT_OPERATIONS_NONE);
    teardown();
}
END_TEST

START_TEST(another_operation_than_the_others)
{
    setup();
    for (uint64_t k = 0; k < STEPS; k++)
        step(k, RANKS, 0, TRANSFER);
    for (uint32_t r = 0; r < RANKS; r++) {
        now[r] += COMPUTE;
        row(r, "world", r == 3 ? "AllGather" : "AllReduce", STEPS, FT_OPERATIONS_NEVER,
            FT_OPERATIONS_NONE);
    }
    diagnose(1);
    ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_MISMATCH);
    ck_assert_uint_eq(found.items[0].process, 3);
    ck_assert_uint_ne(found.items[0].peer, 3);
    teardown();
}
END_TEST

START_TEST(a_rank_that_enters_late)
{
    setup();
    for (uint64_t k = 0; k < STEPS; k++)
        step(k, 6, k < 10 ? 0 : 4 * MS, TRANSFER);
    diagnose(1);
    ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_NONCOMM_SLOW);
    ck_assert_uint_eq(found.items[0].process, 6);
    ck_assert_double_eq_tol(found.items[0].slowdown, 1.4, 0.1);
    teardown();
}
END_TEST

/* What it computes grows from step to step until the table ends: that is no noise. */
START_TEST(a_rank_that_drifts)
{
    setup();
    for (uint64_t k = 0; k < 2 * STEPS; k++)
        step(k, 6, k < 46 ? 0 : (k - 46) * MS, TRANSFER);
    diagnose(1);
    ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_NONCOMM_SLOW);
    ck_assert_uint_eq(found.items[0].process, 6);
    teardown();
}
END_TEST

/* All wander by as much, each for itself: none of them stands out. */
START_TEST(ranks_that_all_drift)
{
    uint64_t extra[RANKS] = {0};

    setup();
    for (uint64_t k = 0; k < 2 * STEPS; k++) {
        for (uint32_t r = 0; r < RANKS; r++) {
            uint64_t phase = (k + r * 11) % 88;

            extra[r] = (phase < 44 ? phase : 88 - phase) * MS / 4;
            now[r] += extra[r];
        }
        step(k, RANKS, 0, TRANSFER);
    }
    diagnose(0);
    teardown();
}
END_TEST

/* Of each rank what it computes goes up and down by a fifth, a sine of its own. */
static void wander(uint64_t table, uint64_t k)
{
    for (uint64_t r = 0; r < RANKS; r++) {
        double period = 15 + (double)((table * 7919 + r * 104729 + table * r * 31) % 106);
        double phase = (double)((table * 611953 + r * 7907 + table * r * 17) % 1000) / 1000;

        now[r] += (uint64_t)((1 + sin(2 * M_PI * ((double)k / period + phase))) * 2 * MS);
    }
}

/* In any of many jobs one of many ranks is later than the others, through one of many stretches. */
START_TEST(ranks_that_wander)
{
    for (uint64_t table = 0; table < 40; table++) {
        setup();
        for (uint64_t k = 0; k < 4 * STEPS; k++) {
            wander(table, k);
            step(k, RANKS, 0, TRANSFER);
        }
        diagnose(0);
        teardown();
    }
}
END_TEST

/* One that is late by more than that stands out. */
START_TEST(a_late_rank_among_those_that_wander)
{
    for (uint64_t table = 0; table < 10; table++) {
        setup();
        for (uint64_t k = 0; k < 4 * STEPS; k++) {
            wander(table, k);
            step(k, 6, k < 60 ? 0 : 3 * COMPUTE, TRANSFER);
        }
        diagnose(1);
        ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_NONCOMM_SLOW);
        ck_assert_uint_eq(found.items[0].process, 6);
        teardown();
    }
}
END_TEST

/* Ranks r of two hosts reduce among their host and with rank r of the other host, and compute for
 * next to no time; one such pair is slow from step 12 on. */
static void rings(uint64_t k)
{
    for (uint32_t host = 0; host < RANKS; host += 4) {
        uint64_t all = 0;
        char name[8];

        for (uint32_t r = host; r < host + 4; r++) {
            now[r] += some(k, r) / 4;
            all = all > now[r] ? all : now[r];
        }
        snprintf(name, sizeof(name), "tp%u", host / 4);
        for (uint32_t r = host; r < host + 4; r++) {
            row(r, name, "AllReduce", k, all + TRANSFER + some(k, r) / 20, FT_OPERATIONS_NONE);
            now[r] = all + TRANSFER + some(k, r) / 20;
        }
    }
    for (uint32_t r = 0; r < 4; r++) {
        uint64_t all = now[r] > now[r + 4] ? now[r] : now[r + 4];
        uint64_t end = all + (r == 2 && k >= 12 ? 9 : 4) * MS + some(k, r + RANKS) / 20;
        char name[8];

        snprintf(name, sizeof(name), "dp%u", r);
        for (uint32_t m = r; m < RANKS; m += 4) {
            row(m, name, "AllReduce", k, end + some(k, m) / 20, FT_OPERATIONS_NONE);
            now[m] = end + some(k, m) / 20;
        }
    }
}

/* Both ranks of the slow communicator come late to the others of their host. That is no work of
 * theirs, though operations cover nearly all the time. */
START_TEST(ranks_behind_a_slow_collective)
{
    setup();
    for (uint64_t k = 0; k < STEPS; k++)
        rings(k);
    diagnose(1);
    ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_COMM_SLOW);
    ck_assert_uint_eq(found.items[0].process, FT_OPERATIONS_NONE);
    ck_assert_str_eq(ft_operations_comm(ops, found.items[0].comm), "dp2");
    teardown();
}
END_TEST

/* Ranks go on while their operation runs, and wait for it before the next. */
START_TEST(a_rank_whose_work_runs_beside_operations)
{
    uint64_t ended = 0;

    setup();
    for (uint64_t k = 0; k < STEPS; k++) {
        uint64_t all = 0;

        for (uint32_t r = 0; r < RANKS; r++) {
            now[r] += COMPUTE + some(k, r) / 4 + (r == 6 && k >= 10 ? 4 * MS : 0);
            now[r] = now[r] > ended ? now[r] : ended;
            all = all > now[r] ? all : now[r];
        }
        ended = all + COMPUTE - MS / 4;
        for (uint32_t r = 0; r < RANKS; r++)
            row(r, "world", "AllReduce", k, ended, FT_OPERATIONS_NONE);
    }
    diagnose(1);
    ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_NONCOMM_SLOW);
    ck_assert_uint_eq(found.items[0].process, 6);
    teardown();
}
END_TEST

START_TEST(a_collective_that_becomes_slow)
{
    setup();
    for (uint64_t k = 0; k < STEPS; k++)
        step(k, RANKS, 0, k < 15 ? TRANSFER : 2 * TRANSFER);
    diagnose(1);
    ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_COMM_SLOW);
    ck_assert_uint_eq(found.items[0].process, FT_OPERATIONS_NONE);
    ck_assert_double_eq_tol(found.items[0].slowdown, 2, 0.1);
    teardown();
}
END_TEST

/* Every rank sends to every other in turn; factor of what a transfer takes. */
static void exchange(uint64_t (*takes)(uint32_t from, uint32_t to))
{
    for (uint64_t k = 0; k < STEPS; k++) {
        for (uint32_t by = 1; by < RANKS; by++) {
            uint64_t begin = (k * RANKS + by) * 100 * MS;

            for (uint32_t from = 0; from < RANKS; from++) {
                uint32_t to = (from + by) % RANKS;
                /* The receiver is there 20 ms before: that is no transfer. */
                uint64_t end = begin + 20 * MS + takes(from, to) + some(k, from * RANKS + to) / 20;

                now[from] = begin + 20 * MS;
                row(from, "pp", "Send", k * RANKS + by, end, to);
                now[to] = begin;
                row(to, "pp", "Recv", k * RANKS + by, end, from);
            }
        }
    }
}

static uint64_t slow_sender(uint32_t from, uint32_t to)
{
    return from == 2 && to != 3 ? 6 * MS : 2 * MS;
}

static uint64_t slow_receiver(uint32_t from, uint32_t to)
{
    (void)from;
    return to == 7 ? 5 * MS : 2 * MS;
}

static uint64_t slow_pair(uint32_t from, uint32_t to)
{
    return from == 1 && to == 4 ? 6 * MS : 2 * MS;
}

START_TEST(sender_receiver_or_pair)
{
    static uint64_t (*const takes[])(uint32_t, uint32_t) = {slow_sender, slow_receiver, slow_pair};
    static const enum ft_side sides[] = {FT_SIDE_SENDER, FT_SIDE_RECEIVER, FT_SIDE_PAIR};
    static const uint32_t culprits[] = {2, 7, 1};

    setup();

    for (size_t i = 0; i < 3; i++) {
        exchange(takes[i]);
        diagnose(1);
        ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_COMM_SLOW);
        ck_assert_int_eq(found.items[0].side, sides[i]);
        ck_assert_uint_eq(found.items[0].process, culprits[i]);
        ck_assert_uint_eq(found.items[0].peer, sides[i] == FT_SIDE_PAIR ? 4 : FT_OPERATIONS_NONE);
        teardown();
        setup();
    }
    teardown();
}
END_TEST

/* Its operations end late, while the others have gone on: nobody enters late. */
START_TEST(a_rank_that_leaves_late)
{
    setup();
    for (uint64_t k = 0; k < STEPS; k++) {
        uint64_t all = (1000 + 20 * k) * MS;

        for (uint32_t r = 0; r < RANKS; r++) {
            now[r] = all - some(k, r);
            row(r, "world", "AllReduce", k, all + TRANSFER + (r == 5 && k >= 12 ? 3 * MS : 0),
                FT_OPERATIONS_NONE);
        }
    }
    diagnose(1);
    ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_COMM_SLOW);
    ck_assert_uint_eq(found.items[0].process, 5);
    teardown();
}
END_TEST

/* Ranks 2 and 3 enter their common communicators in different order; the others wait for them. */
START_TEST(ranks_that_wait_for_each_other)
{
    setup();
    for (uint64_t k = 0; k < STEPS; k++) {
        for (uint32_t r = 2; r < 4; r++) {
            row(r, "x", "AllReduce", k, now[r] + MS, FT_OPERATIONS_NONE);
            now[r] += MS;
            row(r, "y", "AllReduce", k, now[r] + MS, FT_OPERATIONS_NONE);
            now[r] += MS;
        }
        step(k, RANKS, 0, TRANSFER);
    }
    row(2, "x", "AllReduce", STEPS, FT_OPERATIONS_NEVER, FT_OPERATIONS_NONE);
    row(3, "y", "AllReduce", STEPS, FT_OPERATIONS_NEVER, FT_OPERATIONS_NONE);
    for (uint32_t r = 0; r < RANKS; r++)
        if (r != 2 && r != 3)
            row(r, "world", "AllReduce", STEPS, FT_OPERATIONS_NEVER, FT_OPERATIONS_NONE);
    diagnose(1);
    ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_MISMATCH);
    ck_assert_uint_eq(found.items[0].process + found.items[0].peer, 5);
    ck_assert_uint_eq(found.items[0].waiting_count, RANKS - 1);
    teardown();
}
END_TEST

/* One pipeline of four stages, the last the longest: each hands on what it has computed. */
static void pipeline(uint64_t k, uint32_t late, uint64_t extra)
{
    for (uint32_t r = 0; r < 4; r++) {
        if (r > 0) {
            uint64_t both = now[r] > now[r - 1] ? now[r] : now[r - 1];

            row(r - 1, "pp", "Send", k, both + TRANSFER, r);
            row(r, "pp", "Recv", k, both + TRANSFER, r - 1);
            now[r - 1] = now[r] = both + TRANSFER;
        }
        now[r] += COMPUTE + some(k, r) + (r == 3 ? COMPUTE : 0) + (r == late ? extra : 0);
    }
}

START_TEST(a_stage_without_its_like)
{
    setup();
    for (uint64_t k = 0; k < 2 * STEPS; k++)
        pipeline(k, 1, 0);
    diagnose(0);
    teardown();
    setup();
    for (uint64_t k = 0; k < 2 * STEPS; k++)
        pipeline(k, 1, k < STEPS ? 0 : 15 * MS);
    diagnose(1);
    ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_NONCOMM_SLOW);
    ck_assert_uint_eq(found.items[0].process, 1);
    ck_assert_double_gt(found.items[0].slowdown, 1.5);
    teardown();
}
END_TEST

/* Each stage goes up and down by a fifth, slowly: each is far above its own past at times. */
START_TEST(wandering_stages)
{
    for (uint64_t table = 0; table < 40; table++) {
        setup();
        for (uint64_t k = 0; k < 4 * STEPS; k++) {
            wander(table, k);
            pipeline(k, 1, 0);
        }
        diagnose(0);
        teardown();
    }
}
END_TEST

/* What is found is bounded: each further one takes the room of the last, and is counted. */
START_TEST(what_is_found_is_bounded)
{
    struct ft_diagnoses all = {0};

    for (uint32_t i = 0; i < FT_DIAGNOSES_MAX + 44; i++) {
        struct ft_diagnosis *d = ft_diagnoses_add(&all, FT_SYNDROME_COMM_SLOW);

        ck_assert_ptr_nonnull(d);
        d->process = i;
        d->waiting = calloc(FT_DIAGNOSIS_WAITING, sizeof(*d->waiting));
    }
    ck_assert_uint_eq(all.count, FT_DIAGNOSES_MAX);
    ck_assert_uint_eq(all.left_out, 44);
    ck_assert_uint_eq(all.items[0].process, 0);
    ck_assert_uint_eq(all.items[FT_DIAGNOSES_MAX - 1].process, FT_DIAGNOSES_MAX + 43);
    ft_diagnoses_free(&all);
}
END_TEST

FT_UNIT_MAIN("diagnosis", nothing_is_wrong, a_rank_that_never_enters,
             a_pause_does_not_hide_a_hang_for_long, the_last_operation_does_not_end,
             two_are_under_way, an_operation_that_stands, another_operation_than_the_others,
             a_rank_that_enters_late, a_rank_that_drifts, ranks_that_all_drift, ranks_that_wander,
             a_late_rank_among_those_that_wander, wandering_stages, ranks_behind_a_slow_collective,
             a_rank_whose_work_runs_beside_operations, a_collective_that_becomes_slow,
             sender_receiver_or_pair, a_rank_that_leaves_late, ranks_that_wait_for_each_other,
             a_stage_without_its_like, what_is_found_is_bounded)
