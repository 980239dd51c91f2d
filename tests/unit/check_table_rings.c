// SPDX-License-Identifier: Apache-2.0
/* Rings of which one is slow, or all are. */
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "lib/diagnosis/diagnosis.h"
#include "tests/unit/unit.h"

#define MS        1000000ULL
#define RINGS_MAX 8
#define RANKS     4 /* of a ring, on as many hosts */
#define STEPS     40

static struct ft_operations *ops;
static struct ft_diagnoses found;
/* The slow ring is slow after one step and before another; another job passes before that step. */
static uint64_t after = STEPS / 3 * 2, until = STEPS, passes;

/* A chance that repeats, between 0 and 1 (splitmix64). */
static double some(uint64_t a, uint64_t b)
{
    uint64_t x = (a << 32 | b) * UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((x ^ x >> 31) >> 11) / (double)(UINT64_C(1) << 53);
}

static void put(uint32_t ring, uint32_t member, uint64_t sequence, uint64_t start_ns,
                uint64_t end_ns)
{
    char host[16], comm[16];
    struct ft_operation_row r = {.host = host,
                                 .comm = comm,
                                 .function = "AllReduce",
                                 .rank = member * RINGS_MAX + ring,
                                 .peer = FT_OPERATIONS_NONE,
                                 .sequence = sequence,
                                 .bytes = 1 << 26,
                                 .start_ns = start_ns,
                                 .end_ns = end_ns};

    snprintf(host, sizeof(host), "h%u", member);
    snprintf(comm, sizeof(comm), "ring%u", ring);
    ck_assert_int_eq(ft_operations_add(ops, &r), 0);
}

/* In the last ten steps all rings take twice as long where noisy, more or less by step and ring;
 * the slow one takes four times as long besides from two thirds of the steps on. */
static void run(uint64_t seed, uint32_t rings, bool noisy, uint32_t slow)
{
    uint64_t now[RINGS_MAX];

    ops = ft_operations_new();
    found = (struct ft_diagnoses){0};
    for (uint32_t i = 0; i < RINGS_MAX; i++)
        now[i] = 1000 * MS;
    for (uint64_t k = 0; k < STEPS; k++)
        for (uint32_t i = 0; i < rings; i++) {
            double times = 1 + 0.1 * some(seed + i, k);

            if (noisy && k >= STEPS - 10)
                times *= (1.5 + 1.5 * some(seed, k)) * (0.8 + 0.4 * some(seed + i, 1000 + k));
            if (i == slow && k > after && k < until)
                times *= 4;
            if (k + 10 >= passes && k < passes)
                times *= 2;
            for (uint32_t m = 0; m < RANKS; m++)
                put(i, m, k, now[i] + (uint64_t)(MS * some(seed, (k * RANKS + m) * 8 + i)),
                    now[i] + MS + (uint64_t)(10 * (double)MS * times));
            now[i] += (uint64_t)((double)MS * (21 + 10 * times));
        }
    ck_assert_int_eq(ft_operations_finish(ops), 0);
    ck_assert_int_eq(ft_diagnose(ops, ft_operations_newest_ns(ops), true, &found), 0);
}

static void end(void)
{
    ft_diagnoses_free(&found);
    ft_operations_free(ops);
}

START_TEST(what_slows_down_all_rings_names_none)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        run(seed, seed % 2 ? RINGS_MAX : 2, true, RINGS_MAX);
        ck_assert_msg(found.count == 0, "seed %d: %s of rank %d, %.2f times", (int)seed,
                      ft_operations_comm(ops, found.items[0].comm), (int)found.items[0].process,
                      found.items[0].slowdown);
        end();
    }
}
END_TEST

START_TEST(a_ring_that_is_slower_than_others_is_named)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        bool noisy = seed % 4 > 1;

        run(seed, seed % 2 || noisy ? RINGS_MAX : 2, noisy, 1);
        ck_assert_uint_eq(found.count, 1);
        ck_assert_int_eq(found.items[0].syndrome, FT_SYNDROME_COMM_SLOW);
        ck_assert_str_eq(ft_operations_comm(ops, found.items[0].comm), "ring1");
        end();
    }
}
END_TEST

/* Of one ring nobody knows whether it is slow, or all of the network: another job may pass. */
START_TEST(the_only_ring_is_named_while_it_is_slow)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        until = seed % 2 ? STEPS : STEPS - 3 - seed % 4;
        run(seed, 1, false, 0);
        ck_assert_uint_eq(found.count, seed % 2);
        ck_assert(found.count == 0 || found.items[0].process == FT_OPERATIONS_NONE);
        end();
    }
    until = STEPS;
    after = STEPS / 5;
    passes = STEPS - 10;
    run(1, 1, false, 0);
    ck_assert_uint_eq(found.count, 1);
    ck_assert_uint_le(found.items[0].since_ns, 1300 * MS);
    end();
    after = STEPS / 3 * 2;
    passes = 0;
}
END_TEST

FT_UNIT_MAIN("rings of a table", what_slows_down_all_rings_names_none,
             a_ring_that_is_slower_than_others_is_named, the_only_ring_is_named_while_it_is_slow)
