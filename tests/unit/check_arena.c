// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/arena.h"

#include <stdint.h>
#include <string.h>

#include "tests/unit/unit.h"

static struct ft_arena arena;

static void *take(size_t size)
{
    return arena.allocator.alloc(arena.allocator.allocator_data, size);
}

static void give(void *pointer)
{
    arena.allocator.free(arena.allocator.allocator_data, pointer);
}

START_TEST(pieces_are_aligned_and_apart)
{
    uint8_t *pieces[300];

    ft_arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < 300; i++) {
        pieces[i] = take(i);
        ck_assert_ptr_nonnull(pieces[i]);
        ck_assert_uint_eq((uintptr_t)pieces[i] % _Alignof(max_align_t), 0);
        memset(pieces[i], (int)i, i);
    }
    for (size_t i = 0; i < 300; i++)
        for (size_t k = 0; k < i; k++)
            ck_assert_uint_eq(pieces[i][k], (uint8_t)i);
    ft_arena_release(&arena);
}
END_TEST

/* What a message may cost is bounded, by many small pieces or by a large one; that is not the same
 * as a machine without memory. */
START_TEST(the_budget_holds)
{
    size_t all = 0;

    ft_arena_init(&arena, 256 << 10);
    ck_assert_ptr_null(take(257 << 10));
    while (take(100))
        all += 100;
    ck_assert_uint_le(all, 256 << 10);
    ck_assert_uint_ge(all, 128 << 10);
    ck_assert(!arena.no_memory);
    ft_arena_release(&arena);
    ft_arena_init(&arena, 0);
    ck_assert_ptr_null(take(1));
    ft_arena_release(&arena);
}
END_TEST

/* A refused piece takes nothing: smaller ones are given after it. */
START_TEST(a_refusal_costs_nothing)
{
    ft_arena_init(&arena, 64 << 10);
    for (int i = 0; i < 100; i++)
        ck_assert_ptr_null(take(100 << 10));
    ck_assert_ptr_nonnull(take(40 << 10));
    ck_assert_ptr_null(take(SIZE_MAX));
    ck_assert_ptr_null(take(SIZE_MAX - 15));
    ck_assert_ptr_null(take(SIZE_MAX / 2));
    ck_assert(!arena.no_memory);
    ft_arena_release(&arena);
}
END_TEST

/* Tables that a decoder takes and gives back by turns are the same memory, of their size alone. */
START_TEST(large_pieces_come_back)
{
    void *a, *b, *c;

    ft_arena_init(&arena, 96 << 10);
    a = take(4096);
    b = take(8192);
    give(a);
    give(b);
    give(NULL);
    ck_assert_ptr_eq(take(4096), a);
    ck_assert_ptr_eq(take(8192), b);
    c = take(4096);
    ck_assert_ptr_ne(c, a);
    for (int i = 0; i < 1000; i++) {
        give(c);
        ck_assert_ptr_eq(take(4090), c); /* rounded to the same size */
    }
    a = take(16);
    give(a);
    ck_assert_ptr_ne(take(16), a);
    ft_arena_release(&arena);
}
END_TEST

FT_UNIT_MAIN("arena", pieces_are_aligned_and_apart, the_budget_holds, a_refusal_costs_nothing,
             large_pieces_come_back)
