// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/config/asking.h"

#include <string.h>

#include "tests/unit/unit.h"

START_TEST(a_command_needs_a_program)
{
    ck_assert_ptr_null(ft_asking_complaint("leaf*=/bin/ask -x"));
    ck_assert_ptr_nonnull(ft_asking_complaint("leaf*=ask"));
    ck_assert_ptr_nonnull(ft_asking_complaint("=/bin/ask"));
    ck_assert_ptr_nonnull(ft_asking_complaint("leaf*"));
    ck_assert_ptr_nonnull(ft_asking_complaint(
        "x=/a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f g h i j k l m n o"));
}
END_TEST

START_TEST(the_first_pattern_that_fits_counts)
{
    char *items[] = {(char[]){"leaf1=/bin/one"}, (char[]){"leaf*= /bin/two -x"},
                     (char[]){"[ab]?=/bin/three"}, NULL};
    const struct ft_strings commands = {items, 3};

    ck_assert_str_eq(ft_asking_command(&commands, "leaf1"), "/bin/one");
    ck_assert_str_eq(ft_asking_command(&commands, "leaf12"), "/bin/two -x");
    ck_assert_str_eq(ft_asking_command(&commands, "b7"), "/bin/three");
    ck_assert_ptr_null(ft_asking_command(&commands, "spine1"));
}
END_TEST

START_TEST(arguments_are_no_shell_words)
{
    static const char *const words[] = {"/bin/ask", "a; b",    "$(c)", "leaf1", "Eth1/1",
                                        "10.0.0.1", "fd00::2", "17",   "49152", "4791"};
    struct ft_tuple tuple = {.sport = 49152, .dport = FT_ROCE_PORT, .proto = FT_PROTO_UDP};
    struct ft_asking q;
    char many[FT_ASKING_TEXT + 1];

    ck_assert_int_eq(ft_ip_parse("10.0.0.1", &tuple.src), 0);
    ck_assert_int_eq(ft_ip_parse("fd00::2", &tuple.dst), 0);
    ck_assert(ft_asking_write(&q, "/bin/ask 'a; b' $(c)", "leaf1", "Eth1/1", &tuple));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        ck_assert_str_eq(q.argv[i], words[i]);
    ck_assert_ptr_null(q.argv[sizeof(words) / sizeof(words[0])]);
    memset(many, 'x', sizeof(many));
    many[sizeof(many) - 1] = '\0';
    ck_assert(!ft_asking_write(&q, many, "leaf1", "Eth1/1", &tuple));
}
END_TEST

START_TEST(names_are_names)
{
    static const char *const bad[] = {"",     "-x", "a b", "a;b",     "a`b",
                                      "a\nb", "$a", "a'b", "\xc3\xa9"};
    char name[FT_ASKING_NAME], longest[FT_ASKING_NAME + 1];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!ft_asking_is_safe(bad[i]), "%s", bad[i]);
    ck_assert(ft_asking_is_safe("Ethernet1/1.20:3_a-b"));
    memset(longest, 'a', sizeof(longest));
    longest[FT_ASKING_NAME] = '\0';
    ck_assert(!ft_asking_is_safe(longest));
    ck_assert(!ft_asking_read(longest, name));
    longest[FT_ASKING_NAME - 1] = '\0';
    ck_assert(ft_asking_is_safe(longest));
    ck_assert(ft_asking_read(longest, name));
    ck_assert(ft_asking_read(" Ethernet49\r\n", name));
    ck_assert_str_eq(name, "Ethernet49");
    ck_assert(!ft_asking_read(" \n", name));
    ck_assert(!ft_asking_read("Ethernet49 Ethernet50", name));
}
END_TEST

FT_UNIT_MAIN("asking", a_command_needs_a_program, the_first_pattern_that_fits_counts,
             arguments_are_no_shell_words, names_are_names)
