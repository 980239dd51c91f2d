// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdint.h>
#include <stdlib.h>

#include "lib/base/grow.h"
#include "tests/unit/unit.h"

START_TEST(what_was_there_stays)
{
    uint32_t *items = NULL;
    size_t count = 0, size = 0, moves = 0;

    for (uint32_t i = 0; i < 100000; i++) {
        size_t before = size;
        uint32_t *grown = ft_grow(items, count, &size, sizeof(*grown));

        ck_assert_ptr_nonnull(grown);
        ck_assert_uint_gt(size, count);
        moves += size != before;
        items = grown;
        items[count++] = i;
    }
    for (uint32_t i = 0; i < count; i++)
        ck_assert_uint_eq(items[i], i);
    /* Doubled each time. */
    ck_assert_uint_le(moves, 14);
    free(items);
}
END_TEST

START_TEST(without_memory_the_array_stays)
{
    size_t size = SIZE_MAX / 16;
    int item = 7;

    ck_assert_ptr_eq(ft_grow(&item, 0, &size, 16), &item);
    ck_assert_ptr_null(ft_grow(&item, size, &size, 16));
    ck_assert_uint_eq(size, SIZE_MAX / 16);
    ck_assert_int_eq(item, 7);
}
END_TEST

FT_UNIT_MAIN("grow", what_was_there_stays, without_memory_the_array_stays)
