// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/publish/findings.h"

#include <string.h>

#include "tests/unit/unit.h"

START_TEST(a_finding_has_what_it_was_given)
{
    struct ft_findings f = {.items = NULL};
    struct ft_finding *one =
        ft_findings_add(&f, FT_FINDING_LINK_DOWN, "leaf1", NULL, "look", "%u of %s", 7, "nine");

    ck_assert_ptr_nonnull(one);
    ck_assert_ptr_eq(one, &f.items[0]);
    ck_assert_int_eq(one->kind, FT_FINDING_LINK_DOWN);
    ck_assert_str_eq(one->switch_name, "leaf1");
    ck_assert_str_eq(one->port, "");
    ck_assert_str_eq(one->peer, "");
    ck_assert_str_eq(one->text, "7 of nine");
    ck_assert_str_eq(one->advice, "look");
    ck_assert(!one->blind && !one->of_host && one->since_ms == 0);
    /* A freed list is an empty one. */
    ft_findings_free(&f);
    ck_assert_uint_eq(f.count, 0);
    ck_assert_ptr_nonnull(ft_findings_add(&f, FT_FINDING_NOTE, NULL, NULL, NULL, "x"));
    ck_assert_str_eq(f.items[0].switch_name, "");
    ck_assert_ptr_null(f.items[0].advice);
    ft_findings_free(&f);
    ft_findings_free(&f);
}
END_TEST

/* Names and texts of the network are cut to their room, and end. */
START_TEST(long_names_and_texts_are_cut)
{
    struct ft_findings f = {.items = NULL};
    struct ft_finding *one;
    char name[1000];

    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    one = ft_findings_add(&f, FT_FINDING_NOTE, name, name, NULL, "%s%%s", name);
    ck_assert_ptr_nonnull(one);
    ck_assert_uint_eq(strlen(one->switch_name), sizeof(one->switch_name) - 1);
    ck_assert_uint_eq(strlen(one->port), sizeof(one->port) - 1);
    ck_assert_uint_eq(strlen(one->text), sizeof(one->text) - 1);
    ck_assert_str_eq(one->peer, "");
    one = ft_findings_add(&f, FT_FINDING_NOTE, "%s%n", "%d", NULL, "%s", "%s%n");
    ck_assert_str_eq(one->switch_name, "%s%n");
    ck_assert_str_eq(one->text, "%s%n");
    ft_findings_free(&f);
}
END_TEST

START_TEST(what_is_over_the_cap_is_counted)
{
    struct ft_findings f = {.items = NULL};

    for (unsigned i = 0; i < FT_FINDINGS_MAX; i++)
        ck_assert_ptr_nonnull(ft_findings_add(&f, FT_FINDING_NOTE, "s", NULL, NULL, "%u", i));
    for (unsigned i = 0; i < 5; i++)
        ck_assert_ptr_null(ft_findings_add(&f, FT_FINDING_NOTE, "s", NULL, NULL, "more"));
    ck_assert_uint_eq(f.count, FT_FINDINGS_MAX);
    ck_assert_uint_eq(f.dropped, 5);
    ck_assert_str_eq(f.items[0].text, "0");
    ck_assert_str_eq(f.items[FT_FINDINGS_MAX - 1].text, "1999");
    ft_findings_free(&f);
    ck_assert_uint_eq(f.dropped, 0);
}
END_TEST

FT_UNIT_MAIN("findings", a_finding_has_what_it_was_given, long_names_and_texts_are_cut,
             what_is_over_the_cap_is_counted)
