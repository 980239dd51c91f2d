// SPDX-License-Identifier: Apache-2.0
/* Tables in which all is slow: sends and receives from host to host, or the ranks' own work. */
#include "config.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/table_rig.h"

#define RANKS 16
#define STEPS 40
#define SEND  (4 * MS)

static uint64_t now[RANKS];
static uint32_t of_host; /* ranks */

static void setup(uint32_t ranks_of_host)
{
    of_host = ranks_of_host;
    begin_table();
    for (size_t r = 0; r < RANKS; r++)
        now[r] = 1000 * MS;
}

static void put(uint32_t rank, const char *function, uint64_t sequence, uint64_t end_ns,
                uint32_t peer)
{
    put_row((struct ft_operation_row){.comm = "p",
                                      .function = function,
                                      .rank = rank,
                                      .peer = peer,
                                      .sequence = sequence,
                                      .bytes = 1 << 20,
                                      .start_ns = now[rank],
                                      .end_ns = end_ns},
            of_host);
}

/* A chance that repeats, between 0 and 1 (splitmix64). */
static double jitter(uint64_t a, uint64_t b)
{
    uint64_t x = (a << 32 | b) * UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((x ^ x >> 31) >> 11) / (double)(UINT64_C(1) << 53);
}

static void transfer(uint64_t k, uint32_t from, uint32_t to, double longer)
{
    uint64_t both = now[from] > now[to] ? now[from] : now[to];
    uint64_t end = both + (uint64_t)((double)SEND * longer * (1 + 0.1 * jitter(k, from)));

    put(from, "Send", k, end, to);
    put(to, "Recv", k, end, from);
    now[from] = now[to] = end;
}

/* To the next rank and back; between hosts, and from a slow rank, so many times as long from two
 * thirds of the steps on. */
static void chain(double all, uint32_t slow, double longer)
{
    for (uint64_t k = 0; k < STEPS; k++)
        for (uint32_t i = 0; i < 2 * (RANKS - 1); i++) {
            bool back = i >= RANKS - 1;
            uint32_t from = back ? 2 * (RANKS - 1) - i : i, to = back ? from - 1 : from + 1;
            double times = 1;

            if (k > STEPS / 3 * 2 && from / of_host != to / of_host)
                times *= all;
            if (k > STEPS / 3 * 2 && from == slow)
                times *= longer;
            now[from] += 10 * MS + (uint64_t)(MS * jitter(k, i));
            transfer(k, from, to, times * (1 + 0.1 * jitter(i, k / 8)));
        }
    ck_assert_int_eq(ft_operations_finish(ops), 0);
    ck_assert_int_eq(ft_diagnose(ops, ft_operations_newest_ns(ops), true, &found), 0);
}

/* As chain(); in the last steps all are twice as long, more or less by step, direction and rank. */
static void noisy_chain(uint64_t seed, uint32_t slow)
{
    for (uint64_t k = 0; k < STEPS; k++)
        for (uint32_t i = 0; i < 2 * (RANKS - 1); i++) {
            bool back = i >= RANKS - 1, noisy = k >= STEPS - 7;
            uint32_t from = back ? 2 * (RANKS - 1) - i : i, to = back ? from - 1 : from + 1;
            double times = 1 + 0.1 * jitter(seed + i, k);

            if (noisy)
                times = (1 + 2 * jitter(seed, 2 * k + back)) *
                        (0.7 + 0.6 * jitter(seed, 1000 + k * RANKS + from));
            if (k > STEPS / 3 && from == slow)
                times *= 2;
            now[from] += 10 * MS;
            transfer(k, from, to, times);
        }
    ck_assert_int_eq(ft_operations_finish(ops), 0);
    ck_assert_int_eq(ft_diagnose(ops, ft_operations_newest_ns(ops), true, &found), 0);
}

/* Each rank sends to those of its place on the other hosts; in the last steps all are slower, more
 * or less by step, direction and host. */
static void noisy_exchange(uint64_t seed, uint32_t slow)
{
    for (uint64_t k = 0; k < STEPS; k++)
        for (uint32_t i = 0; i < RANKS * (RANKS / of_host - 1); i++) {
            uint32_t from = i % RANKS, hop = i / RANKS + 1, to = (from + hop * of_host) % RANKS;
            double times = 1 + 0.1 * jitter(seed + i, k);

            if (k >= STEPS - 7)
                times *= (1 + 2 * jitter(seed, 2 * k + (from < to))) *
                         (0.6 + 0.8 * jitter(seed, 1000 + k * RANKS + from / of_host)) *
                         (0.6 + 0.8 * jitter(seed, 2000 + k * RANKS + to / of_host)) *
                         (0.8 + 0.4 * jitter(seed, 3000 + k * RANKS + from));
            if (k > STEPS / 3 && from == slow)
                times *= 2.5;
            now[from] += 10 * MS;
            transfer(k * 4 + hop, from, to, times);
        }
    ck_assert_int_eq(ft_operations_finish(ops), 0);
    ck_assert_int_eq(ft_diagnose(ops, ft_operations_newest_ns(ops), true, &found), 0);
}

/* With two hosts all is between the same ones; with four there are two others. */
START_TEST(few_hosts_that_differ_name_nobody)
{
    size_t named = 0;

    for (uint64_t seed = 1; seed <= 60; seed++) {
        setup(seed % 2 ? 8 : 4);
        noisy_exchange(seed, RANKS);
        ck_assert_msg(found.count == 0, "seed %d: rank %u", (int)seed, found.items[0].process);
        teardown();
        setup(seed % 2 ? 8 : 4);
        noisy_exchange(seed, 5);
        for (size_t i = 0; i < found.count; i++)
            ck_assert(found.items[i].process == 5 || found.items[i].peer == 5);
        named += found.count > 0;
        teardown();
    }
    ck_assert_uint_eq(named, 60);
}
END_TEST

START_TEST(what_differs_as_much_between_others_names_nobody)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        setup(1);
        noisy_chain(seed, RANKS);
        ck_assert_msg(found.count == 0, "seed %d: rank %u", (int)seed, found.items[0].process);
        teardown();
        setup(1);
        noisy_chain(seed, 5);
        ck_assert_uint_eq(found.count, 1);
        ck_assert_uint_eq(found.items[0].process, 5);
        teardown();
    }
}
END_TEST

/* Another job takes its part of all links: that is the fault of no rank. */
START_TEST(what_slows_down_all_names_nobody)
{
    static const double all[] = {1.2, 1.3, 1.5, 2, 4};

    for (size_t i = 0; i < 2 * sizeof(all) / sizeof(all[0]); i++) {
        setup(i % 2 ? 4 : 1);
        chain(all[i / 2], RANKS, 1);
        for (size_t k = 0; k < found.count; k++)
            ck_assert_msg(found.items[k].process == FT_OPERATIONS_NONE, "%g times: rank %u",
                          all[i / 2], found.items[k].process);
        teardown();
    }
}
END_TEST

START_TEST(who_is_slower_than_all_is_named)
{
    static const double all[] = {1, 1.3, 2};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        setup(1);
        chain(all[i], 5, 2);
        ck_assert_uint_eq(found.count, 1);
        ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_COMM_SLOW);
        ck_assert_int_eq(found.items[0].side, FT_SIDE_SENDER);
        ck_assert_uint_eq(found.items[0].process, 5);
        teardown();
    }
}
END_TEST

/* Another job comes and goes, and what is left by it varies. */
START_TEST(what_comes_and_goes_names_nobody)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        setup(1);
        for (uint64_t k = 0; k < STEPS; k++) {
            double all = jitter(seed, k / 6) < 0.4 ? 1.6 : 1;

            for (uint32_t i = 0; i < 2 * (RANKS - 1); i++) {
                bool back = i >= RANKS - 1;
                uint32_t from = back ? 2 * (RANKS - 1) - i : i, to = back ? from - 1 : from + 1;
                double left = 0.7 + 0.6 * jitter(k * 31 + seed * 17, i * 13 + 5);

                now[from] += 10 * MS;
                transfer(k, from, to, all > 1 ? all * left : 1);
            }
        }
        ck_assert_int_eq(ft_operations_finish(ops), 0);
        ck_assert_int_eq(ft_diagnose(ops, ft_operations_newest_ns(ops), true, &found), 0);
        for (size_t k = 0; k < found.count; k++)
            ck_assert_msg(found.items[k].process == FT_OPERATIONS_NONE, "seed %d: rank %u",
                          (int)seed, found.items[k].process);
        teardown();
    }
}
END_TEST

/* Each operation is called when the one before it has ended; the work before it becomes longer. Of
 * one communicator alone nobody knows whether all of the network is slow. */
START_TEST(work_may_be_in_lengths)
{
    for (int calls = 0; calls < 2; calls++) {
        setup(1);
        for (uint64_t k = 0; k < STEPS; k++) {
            uint64_t work = (k < STEPS / 2 || !calls ? 10 : 20) * MS;
            uint64_t end = now[0] + work + (k < STEPS / 2 || calls ? SEND : 2 * SEND);

            for (uint32_t r = 0; r < RANKS; r++) {
                now[r] += calls ? 0 : work;
                put(r, "AllReduce", k, end, FT_OPERATIONS_NONE);
                now[r] = end;
            }
        }
        ck_assert_int_eq(ft_operations_finish(ops), 0);
        ck_assert_int_eq(ft_diagnose(ops, ft_operations_newest_ns(ops), true, &found), 0);
        ck_assert_uint_eq(found.count, 1);
        ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_COMM_SLOW);
        ck_assert_uint_eq(found.items[0].process, FT_OPERATIONS_NONE);
        ck_assert_double_eq_tol(found.items[0].confidence, calls ? 0.5 : 0.6, 1e-9);
        ck_assert_uint_eq(found.items[0].doubts.count, calls ? 3 : 2);
        teardown();
    }
}
END_TEST

FT_UNIT_MAIN("slow tables", what_slows_down_all_names_nobody, what_comes_and_goes_names_nobody,
             what_differs_as_much_between_others_names_nobody, few_hosts_that_differ_name_nobody,
             who_is_slower_than_all_is_named, work_may_be_in_lengths)
