// SPDX-License-Identifier: Apache-2.0
/* Hosts whose clocks differ by seconds: when a table ends, by each of them. */
#include "config.h"

#include <stdlib.h>

#include "lib/diagnosis/clocks.h"
#include "lib/diagnosis/diagnosis.h"
#include "tests/unit/unit.h"

#define MS    1000000ULL
#define RANKS 8 /* two on each of four hosts */
#define STEPS 30
#define BEGIN (100000 * MS)
#define NEVER FT_OPERATIONS_NEVER

static const uint64_t ahead[RANKS / 2] = {50, 4000, 0, 2000}; /* [ms] */
static bool agree;
static struct ft_operations *ops;

static uint64_t clock_of(uint32_t rank, uint64_t at)
{
    return at + (agree ? 0 : ahead[rank / 2] * MS);
}

static void put(uint32_t rank, const char *comm, uint64_t sequence, uint64_t start_ns,
                uint64_t end_ns)
{
    char host[8];
    struct ft_operation_row row = {.host = host,
                                   .comm = comm,
                                   .function = "AllReduce",
                                   .rank = rank,
                                   .peer = FT_OPERATIONS_NONE,
                                   .sequence = sequence,
                                   .bytes = 1 << 20,
                                   .start_ns = clock_of(rank, start_ns),
                                   .end_ns = end_ns == NEVER ? NEVER : clock_of(rank, end_ns)};

    snprintf(host, sizeof(host), "h%u", rank / 2);
    ck_assert_int_eq(ft_operations_add(ops, &row), 0);
}

/* Each step the ranks of a host sum twice, then all of them; the table ends while those of the
 * third host are in such a sum since two milliseconds. */
static void run(bool world)
{
    static const char *const inside[] = {"a", "b", "c", "d"};

    ops = ft_operations_new();
    for (uint64_t k = 0; k < STEPS; k++)
        for (uint32_t r = 0; r < RANKS; r++) {
            uint64_t at = BEGIN + k * 100 * MS + r * MS / 10;

            put(r, inside[r / 2], 2 * k, at + 30 * MS, at + 33 * MS);
            put(r, inside[r / 2], 2 * k + 1, at + 60 * MS, at + 63 * MS);
            if (world)
                put(r, "w", k, at + 80 * MS, BEGIN + k * 100 * MS + 90 * MS);
        }
    for (uint32_t r = 0; r < RANKS; r++)
        put(r, inside[r / 2], 2 * STEPS, BEGIN + STEPS * 100 * MS + 30 * MS,
            r / 2 == 2 ? NEVER : BEGIN + STEPS * 100 * MS + 32 * MS);
    ck_assert_int_eq(ft_operations_finish(ops), 0);
}

static void expect_end(bool late)
{
    uint64_t newest = ft_operations_newest_ns(ops), *end;
    struct ft_matched *m = ft_matched_new(ops);

    ck_assert_ptr_nonnull(m);
    end = ft_clocks_end(m, newest + (late ? 1 : 0));
    ck_assert_ptr_nonnull(end);
    for (uint32_t r = 0; r < RANKS; r++) {
        uint64_t is = clock_of(r, BEGIN + STEPS * 100 * MS + 32 * MS);

        if (late || agree)
            ck_assert_uint_eq(end[r], newest + (late ? 1 : 0));
        else
            ck_assert(end[r] + FT_CLOCKS_SKEW_NS > is && end[r] < is + FT_CLOCKS_SKEW_NS);
    }
    free(end);
    ft_matched_free(m);
}

START_TEST(a_table_ends_for_each_host_by_its_clock)
{
    for (int is = 0; is < 2; is++) {
        agree = is;
        run(true);
        expect_end(false);
        /* Who looked at it later knows what time it is. */
        expect_end(true);
        ft_operations_free(ops);
    }
}
END_TEST

START_TEST(without_collectives_in_common_they_agree)
{
    struct ft_matched *m;
    uint64_t *end;

    agree = false;
    run(false);
    m = ft_matched_new(ops);
    end = ft_clocks_end(m, ft_operations_newest_ns(ops));
    for (uint32_t r = 0; r < RANKS; r++)
        ck_assert_uint_eq(end[r], ft_operations_newest_ns(ops));
    free(end);
    ft_matched_free(m);
    ft_operations_free(ops);
}
END_TEST

START_TEST(what_others_clocks_are_ahead_by_is_no_hang)
{
    struct ft_diagnoses found;

    agree = false;
    run(true);
    ck_assert_int_eq(ft_diagnose(ops, ft_operations_newest_ns(ops), true, &found), 0);
    ck_assert_uint_eq(found.count, 0);
    ft_diagnoses_free(&found);
    ft_operations_free(ops);
}
END_TEST

FT_UNIT_MAIN("table_clocks", a_table_ends_for_each_host_by_its_clock,
             without_collectives_in_common_they_agree, what_others_clocks_are_ahead_by_is_no_hang)
