// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/table.h"
#include "tests/unit/unit.h"

struct item {
    uint32_t key;
    uint32_t value;
};

static void hold_against_an_array(bool has_index)
{
    enum { KEYS = 5000, STEPS = 200000 };
    static uint32_t want[KEYS];
    struct ft_table *t = ft_table_new(sizeof(struct item), sizeof(uint32_t), KEYS, 7);
    size_t count = 0, found = 0;
    uint32_t state = 1, index = 0;
    struct item *each;

    ck_assert_ptr_nonnull(t);
    if (!has_index)
        ft_table_without_index(t);
    for (int i = 0; i < STEPS; i++) {
        uint32_t key;
        struct item *item;
        bool fresh;

        state = state * 1664525 + 1013904223;
        key = (state >> 8) % KEYS;
        item = ft_table_find(t, &key);
        ck_assert(!!item == !!want[key]);
        if (item)
            ck_assert_uint_eq(item->value, want[key]);
        if (state >> 31) {
            item = ft_table_insert(t, &key, &fresh);
            ck_assert_ptr_nonnull(item);
            ck_assert(fresh == !want[key]);
            ck_assert_uint_eq(item->value, want[key]);
            count += fresh;
            item->value = want[key] = (uint32_t)i + 1;
            if (has_index)
                ck_assert_ptr_eq(ft_table_at(t, ft_table_index(t, item)), item);
        } else if (item) {
            ft_table_remove(t, item);
            want[key] = 0;
            count--;
        }
        ck_assert_uint_eq(ft_table_count(t), count);
    }
    while ((each = ft_table_next(t, &index)))
        found += want[each->key] == each->value;
    ck_assert_uint_eq(found, count);
    ft_table_free(t);
}

START_TEST(finds_what_a_plain_array_holds)
{
    hold_against_an_array(true);
}
END_TEST

START_TEST(entries_without_an_index_are_8_bytes_smaller)
{
    struct ft_table *with = ft_table_new(sizeof(struct item), sizeof(uint32_t), 1, 7);
    struct ft_table *without = ft_table_new(sizeof(struct item), sizeof(uint32_t), 1, 7);
    bool fresh;
    uint32_t key = 1;

    ft_table_without_index(without);
    ft_table_insert(with, &key, &fresh);
    ft_table_insert(without, &key, &fresh);
    ck_assert_uint_ge(ft_table_bytes(with), ft_table_bytes(without) + 8);
    ft_table_free(with);
    ft_table_free(without);
    hold_against_an_array(false);
}
END_TEST

START_TEST(refuses_over_its_cap_and_counts)
{
    struct ft_table *t = ft_table_new(sizeof(struct item), sizeof(uint32_t), 10, 0);
    bool fresh;

    for (uint32_t i = 0; i < 15; i++)
        ck_assert(!!ft_table_insert(t, &i, &fresh) == (i < 10));
    ck_assert_uint_eq(ft_table_refused(t), 5);
    ck_assert_uint_eq(ft_table_count(t), 10);
    ft_table_free(t);
}
END_TEST

START_TEST(iterates_in_the_order_of_inserts)
{
    struct ft_table *t = ft_table_new(sizeof(struct item), sizeof(uint32_t), 5000, 99);
    uint32_t index = 0, expected = 0;
    struct item *item;
    bool fresh;

    for (uint32_t i = 0; i < 5000; i++)
        ft_table_insert(t, &i, &fresh);
    while ((item = ft_table_next(t, &index))) {
        ck_assert_uint_eq(item->key, expected++);
        if (item->key % 2)
            ft_table_remove(t, item);
    }
    ck_assert_uint_eq(expected, 5000);
    ck_assert_uint_eq(ft_table_count(t), 2500);
    ft_table_clear(t);
    index = 0;
    ck_assert_ptr_null(ft_table_next(t, &index));
    ft_table_free(t);
}
END_TEST

/* Keys of every length that is treated by itself, and of others; by steps and at once. */
START_TEST(every_byte_of_a_key_counts)
{
    static const size_t lengths[] = {4, 12, 20, 40, 80, 100};

    for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
        uint8_t key[100] = {0};
        struct ft_table *t = ft_table_new(192, lengths[l], 1000, 7);
        bool fresh;

        ck_assert_ptr_nonnull(t);
        ft_table_hint_only(t, 64);
        for (size_t at = 0; at < lengths[l]; at++) {
            uint64_t hash;
            void *likely, *entry;

            key[at] = 1;
            hash = ft_table_hash(t, key);
            ft_table_hint_slot(t, hash);
            likely = ft_table_hint_entry(t, hash);
            ck_assert_ptr_null(likely);
            entry = ft_table_insert_likely(t, key, hash, likely, &fresh);
            ck_assert(entry && fresh);
            ck_assert_ptr_eq(ft_table_hint_entry(t, hash), entry);
            ck_assert_ptr_eq(ft_table_insert_likely(t, key, hash, entry, &fresh), entry);
            ck_assert(!fresh);
            ck_assert_ptr_eq(ft_table_find(t, key), entry);
            key[at] = 2;
            ck_assert_ptr_null(ft_table_find(t, key));
            /* Another's entry is no hindrance. */
            ck_assert_ptr_ne(ft_table_insert_likely(t, key, ft_table_hash(t, key), entry, &fresh),
                             entry);
            ck_assert(fresh);
            key[at] = 0;
        }
        ck_assert_uint_eq(ft_table_count(t), 2 * lengths[l]);
        ft_table_free(t);
    }
}
END_TEST

static bool is_odd(void *arg, void *entry)
{
    ++*(uint32_t *)arg;
    return ((struct item *)entry)->value % 2;
}

START_TEST(a_full_table_is_aged_in_short_steps)
{
    enum { CAP = 1000, LOOKS = 8 };
    struct ft_table *t = ft_table_new(sizeof(struct item), sizeof(uint32_t), CAP, 0);
    uint32_t hand = 0, looked = 0;
    bool fresh;

    for (uint32_t i = 0; i < CAP; i++) {
        ck_assert(ft_table_make_room(t, &hand, LOOKS, is_odd, &looked));
        ((struct item *)ft_table_insert(t, &i, &fresh))->value = 2 * i;
    }
    ck_assert_uint_eq(looked, 0);
    ck_assert(!ft_table_make_room(t, &hand, LOOKS, is_odd, &looked));
    ck_assert_uint_eq(looked, LOOKS);
    /* Wherever the one is that may go, it is found within a round. */
    for (uint32_t gone = 0; gone < CAP; gone += 37) {
        uint32_t steps = 0, other = CAP + gone;

        ((struct item *)ft_table_find(t, &gone))->value = 1;
        do {
            looked = 0;
            ck_assert_uint_le(++steps, CAP / LOOKS + 1);
        } while (!ft_table_make_room(t, &hand, LOOKS, is_odd, &looked) && looked == LOOKS);
        ck_assert_ptr_null(ft_table_find(t, &gone));
        ck_assert_ptr_nonnull(ft_table_insert(t, &other, &fresh));
    }
    ft_table_free(t);
}
END_TEST

/* Slots of before a table grew are moved a few at a time: at every moment of it all is found that
 * is there, and nothing else, with indices that are used anew meanwhile. */
static void grow_and_shrink(bool indexed, uint32_t seed)
{
    enum { KEYS = 300 };
    struct ft_table *t = ft_table_new(sizeof(struct item), sizeof(uint32_t), KEYS, seed);
    struct item *entries[KEYS] = {NULL};
    uint32_t state = seed, there = 0;
    bool fresh;

    if (!indexed)
        ft_table_without_index(t);
    for (int step = 0; step < 2000; step++) {
        uint32_t key;

        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        key = state % KEYS;
        /* More come than go at first. */
        if (state >> 16 & 1 || (step < 700 && state >> 17 & 1)) {
            struct item *e = ft_table_insert(t, &key, &fresh);

            ck_assert(fresh == !entries[key]);
            ck_assert(fresh || e == entries[key]);
            e->value = key + 1;
            there += fresh;
            entries[key] = e;
        } else if (entries[key]) {
            ft_table_remove(t, entries[key]);
            entries[key] = NULL;
            there--;
        }
        ck_assert_uint_eq(ft_table_count(t), there);
        for (uint32_t k = 0; k < KEYS; k++) {
            const struct item *found = ft_table_find(t, &k);

            ck_assert_ptr_eq(found, entries[k]);
            ck_assert(!entries[k] || entries[k]->value == k + 1);
        }
        if (step == 1500) {
            ft_table_clear(t);
            memset(entries, 0, sizeof(entries));
            there = 0;
        }
    }
    ft_table_free(t);
}

START_TEST(a_table_that_grows_finds_all)
{
    for (uint32_t seed = 1; seed < 5; seed++)
        grow_and_shrink(seed & 1, seed * 2654435761u);
}
END_TEST

/* Slots of before are given back though nothing is added any more. */
START_TEST(a_table_that_grew_is_looked_through_once)
{
    enum { GROWN = 97 }; /* 128 slots hold 96 */
    struct ft_table *t = ft_table_new(sizeof(struct item), sizeof(uint32_t), 5000, 7);
    size_t grown;
    bool fresh;

    for (uint32_t key = 0; key < GROWN; key++)
        ck_assert_ptr_nonnull(ft_table_insert(t, &key, &fresh));
    grown = ft_table_bytes(t);
    for (uint32_t key = 0; key < GROWN; key++)
        ck_assert_ptr_nonnull(ft_table_find(t, &key));
    ck_assert_uint_eq(ft_table_bytes(t), grown - 128 * 8);
    ft_table_free(t);
}
END_TEST

START_TEST(a_large_table_is_freed_in_steps)
{
    struct ft_table *t = ft_table_new(sizeof(struct item), sizeof(uint32_t), 5000, 7);
    unsigned steps = 0;
    bool fresh;

    for (uint32_t i = 0; i < 3000; i++)
        ck_assert_ptr_nonnull(ft_table_insert(t, &i, &fresh));
    while (ft_table_free_some(t))
        steps++;
    ck_assert_uint_eq(steps, 4); /* three times 1,024 entries, and what finds them */
    ck_assert(!ft_table_free_some(t));
    ck_assert(!ft_table_free_some(NULL));
    ft_table_free(t);
}
END_TEST

FT_UNIT_MAIN("table", a_table_that_grew_is_looked_through_once, a_large_table_is_freed_in_steps,
             a_table_that_grows_finds_all, a_full_table_is_aged_in_short_steps,
             entries_without_an_index_are_8_bytes_smaller, every_byte_of_a_key_counts,
             finds_what_a_plain_array_holds, refuses_over_its_cap_and_counts,
             iterates_in_the_order_of_inserts)
