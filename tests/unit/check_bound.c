// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdint.h>

#include "lib/base/bound.h"
#include "tests/unit/unit.h"

struct item {
    uint32_t number;
    char pad;
};

static int by_number(const void *item, const void *key)
{
    uint32_t a = ((const struct item *)item)->number, b = *(const uint32_t *)key;

    return (a > b) - (a < b);
}

static size_t bound(const struct item *items, size_t count, uint32_t number)
{
    return ft_lower_bound(&number, items, count, sizeof(*items), by_number);
}

/* Every key against lists of every length, as a search from the front finds it. */
START_TEST(the_first_that_is_not_below)
{
    struct item items[40];

    for (size_t count = 0; count <= 40; count++) {
        /* 2, 2, 4, 4, 4, 6, 8, 8, ...: some twice or more, and none that is odd. */
        for (size_t i = 0; i < count; i++)
            items[i].number = (uint32_t)(2 + (i * 3 / 5) / 2 * 2);
        for (uint32_t number = 0; number < 30; number++) {
            size_t first = 0;

            while (first < count && items[first].number < number)
                first++;
            ck_assert_uint_eq(bound(items, count, number), first);
        }
    }
}
END_TEST

START_TEST(an_empty_list_needs_no_items)
{
    ck_assert_uint_eq(bound(NULL, 0, 7), 0);
}
END_TEST

FT_UNIT_MAIN("bound", the_first_that_is_not_below, an_empty_list_needs_no_items)
