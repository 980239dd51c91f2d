// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/join/names.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

static struct ft_names *names;

static void setup(size_t cap)
{
    names = ft_names_new(cap);
    ck_assert_ptr_nonnull(names);
}

START_TEST(a_text_has_one_copy)
{
    char mine[] = "gpu01";
    const char *kept;

    setup(10);
    kept = ft_names_intern(names, mine);
    ck_assert_str_eq(kept, "gpu01");
    ck_assert_ptr_ne(kept, mine);
    ck_assert_ptr_eq(ft_names_intern(names, "gpu01"), kept);
    ck_assert_ptr_ne(ft_names_intern(names, "gpu02"), kept);
    ck_assert_ptr_null(ft_names_intern(names, NULL));
    ck_assert_ptr_null(ft_names_intern(names, ""));
    ft_names_free(names);
    ft_names_free(NULL);
}
END_TEST

START_TEST(long_texts_are_cut)
{
    char text[100];
    const char *kept;

    setup(10);
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    kept = ft_names_intern(names, text);
    ck_assert_uint_eq(strlen(kept), 63);
    text[70] = 'b';
    ck_assert_ptr_eq(ft_names_intern(names, text), kept);
    text[60] = 'b';
    ck_assert_ptr_ne(ft_names_intern(names, text), kept);
    ft_names_free(names);
}
END_TEST

START_TEST(a_full_table_knows_the_old_names_alone)
{
    const char *first;
    char text[16];

    setup(4);
    first = ft_names_intern(names, "name 0");
    for (int i = 1; i < 4; i++) {
        ck_assert(ft_names_crowded(names) == (i > 2));
        snprintf(text, sizeof(text), "name %d", i);
        ck_assert_ptr_nonnull(ft_names_intern(names, text));
    }
    ck_assert_ptr_null(ft_names_intern(names, "one more"));
    ck_assert_ptr_eq(ft_names_intern(names, "name 0"), first);
    ft_names_free(names);
}
END_TEST

START_TEST(a_sweep_keeps_what_is_used_or_new)
{
    const char *held, *fresh;

    setup(4);
    held = ft_names_intern(names, "held");
    ft_names_intern(names, "dropped");
    ft_names_intern(names, "dropped too");
    ft_names_begin(names);
    fresh = ft_names_intern(names, "fresh");
    ft_names_use(names, held);
    ft_names_use(names, NULL);
    ft_names_sweep(names);
    /* Two found room again, and no more. */
    ck_assert_ptr_nonnull(ft_names_intern(names, "third"));
    ck_assert_ptr_nonnull(ft_names_intern(names, "fourth"));
    ck_assert_ptr_null(ft_names_intern(names, "fifth"));
    ck_assert_str_eq(held, "held");
    ck_assert_ptr_eq(ft_names_intern(names, "held"), held);
    ck_assert_ptr_eq(ft_names_intern(names, "fresh"), fresh);
    ft_names_free(names);
}
END_TEST

FT_UNIT_MAIN("names", a_text_has_one_copy, long_texts_are_cut,
             a_full_table_knows_the_old_names_alone, a_sweep_keeps_what_is_used_or_new)
