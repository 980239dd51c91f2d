// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_UNIT_TABLE_RIG_H
#define FT_TESTS_UNIT_TABLE_RIG_H
/* A table of operations that a test fills, and what is diagnosed of it: lib/diagnosis/diagnosis.h.
 */
#include <stdio.h>

#include "lib/diagnosis/diagnosis.h"
#include "tests/unit/unit.h"

#define MS    1000000ULL
#define NEVER FT_OPERATIONS_NEVER
#define NONE  FT_OPERATIONS_NONE

static struct ft_operations *ops;
static struct ft_diagnoses found;

static inline void begin_table(void)
{
    ops = ft_operations_new();
    found = (struct ft_diagnoses){0};
}

static inline void teardown(void)
{
    ft_diagnoses_free(&found);
    ft_operations_free(ops);
}

/* The host of the row is that of its rank, of so many ranks each. */
static inline void put_row(struct ft_operation_row row, uint32_t ranks_of_host)
{
    char host[16];

    snprintf(host, sizeof(host), "h%u", row.rank / ranks_of_host);
    row.host = host;
    ck_assert_int_eq(ft_operations_add(ops, &row), 0);
}

/* A chance that repeats, between 0 and 1 ms. */
static inline uint64_t some(uint64_t a, uint64_t b)
{
    return (a * 7919 + b * 104729 + a * b * 31) % 1000 * MS / 1000;
}

static inline void judge(uint64_t now_ns, bool ended, size_t expected)
{
    ck_assert_int_eq(ft_operations_finish(ops), 0);
    ck_assert_int_eq(ft_diagnose(ops, now_ns, ended, &found), 0);
    for (size_t i = 0; i < found.count && found.count != expected; i++)
        fprintf(stderr, "%s\n", found.items[i].reasons.text[0]);
    ck_assert_uint_eq(found.count, expected);
}

/* Of a job that continues. */
static inline void diagnose_live(uint64_t now_ns, size_t expected)
{
    judge(now_ns, false, expected);
}

static inline void diagnose_at(uint64_t now_ns, size_t expected)
{
    judge(now_ns, now_ns <= ft_operations_newest_ns(ops), expected);
}

/* At the end of the newest row. */
static inline void diagnose(size_t expected)
{
    diagnose_at(ft_operations_newest_ns(ops), expected);
}

#endif
