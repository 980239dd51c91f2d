// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <string.h>

#include "lib/base/near.h"
#include "tests/unit/unit.h"

static const char *nearest(const char *text)
{
    static const char *const known[] = {"events", "explain", "paths", "probe", "probes"};
    struct ft_near near;

    ft_near_begin(&near, text);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        ft_near_try(&near, known[i], strlen(known[i]));
    ck_assert(!near.name || near.len == strlen(near.name));
    return near.name;
}

START_TEST(a_third_of_the_letters_may_differ)
{
    ck_assert_str_eq(nearest("evnts"), "events");
    ck_assert_str_eq(nearest("eventss"), "events");
    ck_assert_str_eq(nearest("pahts"), "paths");
    ck_assert_str_eq(nearest("explian"), "explain");
    ck_assert_str_eq(nearest("probe"), "probe");
    ck_assert_str_eq(nearest("proobes"), "probes");
    ck_assert_ptr_null(nearest("fabric"));
    ck_assert_ptr_null(nearest(""));
    ck_assert_ptr_null(nearest("x"));
}
END_TEST

START_TEST(long_texts_are_near_to_nothing)
{
    char text[4096];
    struct ft_near near;

    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    ft_near_begin(&near, text);
    ft_near_try(&near, text, sizeof(text) - 1);
    ft_near_try(&near, text, 64);
    ck_assert_ptr_null(near.name);
    text[64] = '\0';
    ft_near_begin(&near, text);
    ft_near_try(&near, "b", 1);
    ft_near_try(&near, text, 64);
    ck_assert_ptr_eq(near.name, text);
    /* Of a name as many bytes count as are said. */
    ft_near_begin(&near, "kafca");
    ft_near_try(&near, "kafka.brokers", 5);
    ck_assert_uint_eq(near.len, 5);
}
END_TEST

FT_UNIT_MAIN("near", a_third_of_the_letters_may_differ, long_texts_are_near_to_nothing)
