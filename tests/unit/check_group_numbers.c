// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/group/numbers.h"

#include "tests/unit/unit.h"

#define HOUR_MS    INT64_C(3600000)
#define PARTITIONS 12

static struct ft_group_numbers *numbers;
static int64_t now_ms;

static void open_numbers(size_t senders)
{
    now_ms = 1;
    numbers = ft_group_numbers_new(senders, PARTITIONS, 7);
    ck_assert_ptr_nonnull(numbers);
}

/* A message of a source: whether it is new. It is applied then. */
static bool take_of(enum ft_ingest_topic topic, bool old, const char *source, uint64_t boot_id,
                    uint32_t partition, uint64_t sequence, uint64_t last, uint32_t records)
{
    Fabrictrace__Envelope e = FABRICTRACE__ENVELOPE__INIT;
    bool fresh;

    e.program = (char *)(uintptr_t) "fabrictrace-agent";
    e.source = (char *)(uintptr_t)source;
    e.boot_id = boot_id;
    e.sequence = sequence;
    e.record_last = last;
    e.records = records;
    fresh = ft_group_numbers_begin(numbers, &e, topic, partition, old, now_ms);
    if (fresh)
        ft_group_numbers_end(numbers, &e, FT_GROUP_APPLIED);
    return fresh;
}

/* In a partition of flows. */
static bool take(const char *source, uint64_t boot_id, uint32_t partition, uint64_t sequence,
                 uint64_t last, uint32_t records)
{
    return take_of(FT_INGEST_FLOWS, false, source, boot_id, partition, sequence, last, records);
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

/* In every partition, and with what is not divided. */
START_TEST(there_is_room_for_all_that_a_sender_numbers)
{
    static const char *const names[] = {"h1", "h2", "h3", "h4"};

    open_numbers(4);
    for (uint64_t turn = 1; turn < 5; turn += 3)
        for (size_t i = 0; i < 4; i++) {
            for (uint32_t k = 0; k < PARTITIONS; k++) {
                ck_assert(take(names[i], 1, k, turn, 10 * turn, 10));
                ck_assert(!take(names[i], 1, k, turn, 10 * turn, 10));
            }
            ck_assert(take_of(FT_INGEST_STATE, false, names[i], 1, 3, turn, turn, 1));
            ck_assert(!take_of(FT_INGEST_STATE, false, names[i], 1, 3, turn, turn, 1));
            ck_assert(take_of(FT_INGEST_REPORTS, false, names[i], 1, 3, turn, turn, 1));
            ck_assert(!take_of(FT_INGEST_REPORTS, false, names[i], 1, 3, turn, turn, 1));
        }
    ck_assert_uint_eq(ft_group_numbers_stats(numbers)->unknown, 0);
    ck_assert_uint_eq(ft_group_numbers_stats(numbers)->skipped, 4 * (20 * PARTITIONS + 2 * 2));
    check_sum();
    ft_group_numbers_free(numbers);
}
END_TEST

/* Kafka removes what a later message of the same key replaces: a daemon that starts finds some of
 * each start of a sender, and nothing of the last minutes is missing. */
START_TEST(what_is_compacted_is_not_lost)
{
    open_numbers(4);
    ck_assert(take_of(FT_INGEST_STATE, true, "h1", 1, 3, 40, 40, 1));
    ck_assert(take_of(FT_INGEST_STATE, true, "h1", 1, 3, 90, 90, 1));
    ck_assert(take_of(FT_INGEST_STATE, true, "h1", 2, 3, 7, 7, 1));
    ck_assert(take_of(FT_INGEST_STATE, false, "h1", 2, 3, 1000, 1000, 1));
    ck_assert_uint_eq(ft_group_numbers_stats(numbers)->skipped, 0);
    ck_assert(take_of(FT_INGEST_STATE, false, "h1", 2, 3, 1005, 1005, 1));
    ck_assert_uint_eq(ft_group_numbers_stats(numbers)->skipped, 4);
    /* Of the other topics Kafka removes the oldest, which were not read. */
    ck_assert(take_of(FT_INGEST_REPORTS, true, "h1", 2, 3, 1, 1, 1));
    ck_assert(take_of(FT_INGEST_REPORTS, true, "h1", 2, 3, 4, 4, 1));
    ck_assert_uint_eq(ft_group_numbers_stats(numbers)->skipped, 4 + 2);
    check_sum();
    ft_group_numbers_free(numbers);
}
END_TEST

/* Its first ones, which it dropped while no broker took any. */
START_TEST(what_a_sender_lost_at_its_start_is_counted)
{
    open_numbers(4);
    ck_assert(take("h1", 1, 0, 1, 10, 10));
    ck_assert(take("h1", 2, 0, 5, 52, 12));
    ck_assert_uint_eq(ft_group_numbers_stats(numbers)->skipped, 40);
    /* Two of one name, in turn. */
    for (uint64_t i = 1; i < 10; i++)
        for (uint64_t boot = 1; boot <= 2; boot++)
            ck_assert(take("h1", boot, 0, 5 + i, 52 + 10 * i, 10));
    ck_assert_uint_eq(ft_group_numbers_stats(numbers)->skipped, 40);
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

FT_UNIT_MAIN("group_numbers", a_partition_that_comes_back_misses_nothing,
             there_is_room_for_all_that_a_sender_numbers, what_is_compacted_is_not_lost,
             what_a_sender_lost_at_its_start_is_counted, what_comes_twice_is_known,
             what_is_missing_is_counted, nobody_is_held_to_what_was_before,
             strangers_do_not_push_out_the_others)
