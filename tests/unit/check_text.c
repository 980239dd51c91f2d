// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/diag.h"
#include "lib/base/log.h"
#include "lib/base/tuple.h"
#include "tests/unit/unit.h"

static void same(const char *text, const char *expected)
{
    struct ft_tuple t;
    char out[FT_TUPLE_TEXT_BYTES];

    ck_assert_msg(ft_tuple_parse(text, &t) == 0, "%s", text);
    ft_tuple_format(&t, out);
    ck_assert_str_eq(out, expected);
}

START_TEST(tuples_as_people_write_them)
{
    same("10.0.1.1:49441-10.0.3.1", "10.0.1.1:49441-10.0.3.1:4791");
    same("10.0.1.1:49441-10.0.3.1:4791", "10.0.1.1:49441-10.0.3.1:4791");
    same("10.0.1.1:49441-10.0.3.1:80/6", "10.0.1.1:49441-10.0.3.1:80/6");
    same("10.0.1.1:49441-10.0.3.1:4791/17", "10.0.1.1:49441-10.0.3.1:4791");
    same("[fd00::1]:49152-[fd00::2]:80/6", "[fd00::1]:49152-[fd00::2]:80/6");
    same("[fd00::1]:49152-[fd00::2]", "[fd00::1]:49152-[fd00::2]:4791");
    same("[fd00::1]:49152-fd00::2", "[fd00::1]:49152-[fd00::2]:4791");
    same("10.0.1.1,10.0.3.1,49441,4791,17", "10.0.1.1:49441-10.0.3.1:4791");
    same("fd00::1,fd00::2,1,2,6", "[fd00::1]:1-[fd00::2]:2/6");
}
END_TEST

START_TEST(tuples_refused)
{
    static const char *const texts[] = {"",
                                        "10.0.1.1",
                                        "10.0.1.1-10.0.3.1",
                                        "10.0.1.1:70000-10.0.3.1",
                                        "10.0.1.1:+1-10.0.3.1",
                                        "10.0.1.1:1-10.0.3",
                                        "[fd00::1:49152-fd00::2",
                                        "10.0.1.1,10.0.3.1,49441,4791",
                                        "10.0.1.1,10.0.3.1,49441,4791,17,1",
                                        "10.0.1.1,10.0.3.1,49441,4791,256",
                                        "10.0.1.1:49441-10.0.3.1:80/",
                                        "10.0.1.1:49441-10.0.3.1:80/256",
                                        "10.0.1.1:49441-10.0.3.1:80/6/6",
                                        "10.0.1.1:49441/6-10.0.3.1:80",
                                        "10.0.1.1:49441-/6"};
    struct ft_tuple t;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        ck_assert_msg(ft_tuple_parse(texts[i], &t) < 0, "%s", texts[i]);
}
END_TEST

START_TEST(keys_parse_back)
{
    struct ft_tuple a, b;
    char key[FT_TUPLE_TEXT_BYTES];

    ck_assert_int_eq(ft_tuple_parse("[fd00::1]:49152-[fd00::2]", &a), 0);
    ft_tuple_format_key(&a, key);
    ck_assert_str_eq(key, "fd00::1,fd00::2,49152,4791,17");
    ck_assert_int_eq(ft_tuple_parse(key, &b), 0);
    ck_assert(ft_tuple_equal(&a, &b));
}
END_TEST

START_TEST(complaints_name_their_location)
{
    struct ft_diag *d = ft_diag_new();

    ft_diag_add(d, "t.yaml", 7, "unknown switch '%s'", "leaf9");
    ft_diag_add(d, NULL, 0, "no memory");
    for (int i = 0; i < 200; i++)
        ft_diag_add(d, "t.yaml", 0, "more");
    ck_assert_uint_eq(ft_diag_count(d), 202);
    ck_assert_str_eq(ft_diag_text(d, 0), "t.yaml:7: unknown switch 'leaf9'");
    ck_assert_str_eq(ft_diag_text(d, 1), "no memory");
    ck_assert_ptr_null(ft_diag_text(d, 150));
    ft_diag_free(d);
}
END_TEST

START_TEST(limit_holds_back_and_tells)
{
    struct ft_log_limit limit = {.interval_ns = 1000, .burst = 2};
    uint64_t held = 99;

    ck_assert(ft_log_limit_pass(&limit, (struct ft_mono){0}, &held));
    ck_assert(ft_log_limit_pass(&limit, (struct ft_mono){1}, &held));
    ck_assert(!ft_log_limit_pass(&limit, (struct ft_mono){2}, &held));
    ck_assert(!ft_log_limit_pass(&limit, (struct ft_mono){999}, &held));
    ck_assert(ft_log_limit_pass(&limit, (struct ft_mono){1000}, &held));
    ck_assert_uint_eq(held, 2);
}
END_TEST

FT_UNIT_MAIN("text", tuples_as_people_write_them, tuples_refused, keys_parse_back,
             complaints_name_their_location, limit_holds_back_and_tells)
