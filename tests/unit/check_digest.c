// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/digest.h"

#include <string.h>

#include "tests/unit/unit.h"

/* What xxhsum -H3 prints. */
START_TEST(known_answers)
{
    ck_assert_uint_eq(ft_digest_text("", 0), UINT64_C(0x2d06800538d394c2));
    ck_assert_uint_eq(ft_digest_text("a", 0), UINT64_C(0xe6c632b61e964e1f));
    ck_assert_uint_eq(ft_digest_text("abc", 0), UINT64_C(0x78af5f94892f3950));
}
END_TEST

START_TEST(a_text_is_its_bytes)
{
    static const char text[] = "leaf1/Ethernet51, and what is longer than a block of 16 bytes";

    for (size_t len = 0; len < sizeof(text); len++) {
        char part[sizeof(text)];

        memcpy(part, text, len);
        part[len] = '\0';
        ck_assert_uint_eq(ft_digest_text(part, 7), ft_digest_bytes(text, len, 7));
    }
    ck_assert_uint_ne(ft_digest_bytes("a\0b", 3, 0), ft_digest_bytes("a\0c", 3, 0));
}
END_TEST

/* Chained: where one name ends and the next begins is a part of it, and so is their order. */
START_TEST(chains_keep_names_apart)
{
    uint64_t ab_c = ft_digest_text("c", ft_digest_text("ab", 0));
    uint64_t a_bc = ft_digest_text("bc", ft_digest_text("a", 0));
    uint64_t c_ab = ft_digest_text("ab", ft_digest_text("c", 0));

    ck_assert_uint_ne(ab_c, a_bc);
    ck_assert_uint_ne(ab_c, c_ab);
    ck_assert_uint_ne(ft_digest_text("ab", 1), ft_digest_text("ab", 2));
    /* An empty one counts, too. */
    ck_assert_uint_ne(ft_digest_text("", ft_digest_text("a", 0)), ft_digest_text("a", 0));
}
END_TEST

FT_UNIT_MAIN("digest", known_answers, a_text_is_its_bytes, chains_keep_names_apart)
