// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/group/numbers.h"

#include "tests/unit/unit.h"

#define HOUR_MS INT64_C(3600000)

static struct ft_group_numbers *numbers;
static int64_t now_ms;

static void open_numbers(size_t senders)
{
    now_ms = 1;
    numbers = ft_group_numbers_new(senders, 7);
    ck_assert_ptr_nonnull(numbers);
}

/* A message of a source in a partition of flows: whether it is new. It is applied then. */
static bool take(const char *source, uint64_t boot_id, uint32_t partition, uint64_t sequence,
                 uint64_t last, uint32_t records)
{
    Fabrictrace__Envelope e = FABRICTRACE__ENVELOPE__INIT;
    bool fresh;

    e.program = (char *)(uintptr_t) "fabrictrace-agent";
    e.source = (char *)(uintptr_t)source;
    e.boot_id = boot_id;
    e.sequence = sequence;
    e.record_last = last;
    e.records = records;
    fresh = ft_group_numbers_begin(numbers, &e, FT_INGEST_FLOWS, partition, now_ms);
    if (fresh)
        ft_group_numbers_end(numbers, &e, FT_GROUP_APPLIED);
    return fresh;
}

static void check_sum(void)
{
    const struct ft_group_numbers_stats *s = ft_group_numbers_stats(numbers);

    ck_assert_uint_eq(s->numbered, s->applied + s->refused + s->stale + s->skipped);
}

START_TEST(what_comes_twice_is_known)
{
    open_numbers(10);
    ck_assert(take("h1", 1, 0, 1, 10, 10));
    ck_assert(take("h1", 1, 0, 2, 15, 5));
    ck_assert(!take("h1", 1, 0, 1, 10, 10));
    ck_assert(!take("h1", 1, 0, 2, 15, 5));
    ck_assert(take("h1", 1, 0, 3, 16, 1));
    ck_assert_uint_eq(ft_group_numbers_stats(numbers)->applied, 16);
    ck_assert_uint_eq(ft_group_numbers_stats(numbers)->skipped, 0);
    check_sum();
    ft_group_numbers_free(numbers);
}
END_TEST

/* Partitions and senders are numbered for themselves. */
START_TEST(what_is_missing_is_counted)
{
    open_numbers(10);
    ck_assert(take("h1", 1, 0, 1, 10, 10));
    ck_assert(take("h1", 1, 1, 1, 3, 3));
    ck_assert(take("h2", 1, 0, 1, 7, 7));
    ck_assert(take("h1", 1, 0, 4, 40, 5));
    ck_assert_uint_eq(ft_group_numbers_stats(numbers)->skipped, 25);
    ck_assert(take("h1", 1, 1, 2, 4, 1));
    ck_assert(take("h2", 1, 0, 2, 8, 1));
    ck_assert_uint_eq(ft_group_numbers_stats(numbers)->skipped, 25);
    ck_assert_uint_eq(ft_group_numbers_stats(numbers)->applied, 10 + 3 + 7 + 5 + 1 + 1);
    check_sum();
    ft_group_numbers_free(numbers);
}
END_TEST

/* Another start of the sender begins anew, as does a daemon that hears of it late. */
START_TEST(nobody_is_held_to_what_was_before)
{
    open_numbers(10);
    ck_assert(take("h1", 1, 0, 900, 10000, 10));
    ck_assert(take("h1", 2, 0, 1, 10, 10));
    ck_assert(!take("h1", 2, 0, 1, 10, 10));
    ck_assert_uint_eq(ft_group_numbers_stats(numbers)->skipped, 0);
    ck_assert_uint_eq(ft_group_numbers_stats(numbers)->restarts, 1);
    check_sum();
    ft_group_numbers_free(numbers);
}
END_TEST

/* Those that are not heard any more make room; while there is none, nothing is lost. */
START_TEST(strangers_do_not_push_out_the_others)
{
    char name[16];

    open_numbers(4);
    ck_assert(take("h1", 1, 0, 1, 10, 10));
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "x%d", i);
        ck_assert(take(name, 1, 0, 1, 1, 1));
    }
    ck_assert(!take("h1", 1, 0, 1, 10, 10));
    ck_assert_uint_eq(ft_group_numbers_stats(numbers)->unknown, 97);
    now_ms += HOUR_MS;
    ck_assert(take("h1", 1, 0, 2, 11, 1));
    now_ms += 2;
    ck_assert(take("h2", 1, 0, 1, 1, 1));
    ck_assert(!take("h2", 1, 0, 1, 1, 1));
    ck_assert(!take("h1", 1, 0, 2, 11, 1));
    check_sum();
    ft_group_numbers_free(numbers);
}
END_TEST

/* What another daemon had in between is not missing, what comes twice is still known. */
START_TEST(a_partition_that_comes_back_misses_nothing)
{
    open_numbers(10);
    ck_assert(take("h1", 1, 0, 1, 10, 10));
    ck_assert(take("h1", 1, 1, 1, 10, 10));
    ft_group_numbers_resume(numbers, 0);
    ck_assert(!take("h1", 1, 0, 1, 10, 10));
    ck_assert_uint_eq(ft_group_numbers_stats(numbers)->skipped, 0);
    ck_assert(take("h1", 1, 0, 5, 50, 10));
    ck_assert_uint_eq(ft_group_numbers_stats(numbers)->skipped, 0);
    ck_assert(take("h1", 1, 0, 7, 65, 5));
    ck_assert_uint_eq(ft_group_numbers_stats(numbers)->skipped, 10);
    ck_assert(take("h1", 1, 1, 3, 25, 5));
    ck_assert_uint_eq(ft_group_numbers_stats(numbers)->skipped, 20);
    ck_assert_uint_eq(ft_group_numbers_stats(numbers)->restarts, 0);
    check_sum();
    ft_group_numbers_free(numbers);
}
END_TEST

FT_UNIT_MAIN("group_numbers", a_partition_that_comes_back_misses_nothing, what_comes_twice_is_known,
             what_is_missing_is_counted, nobody_is_held_to_what_was_before,
             strangers_do_not_push_out_the_others)
