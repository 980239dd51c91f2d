// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/prefix.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

static struct ft_prefix prefix(const char *text)
{
    struct ft_prefix p;

    ck_assert_msg(ft_prefix_parse(text, strlen(text), &p) == 0, "%s", text);
    return p;
}

static struct ft_ip ip(const char *text)
{
    struct ft_ip address;

    ck_assert_int_eq(ft_ip_parse(text, &address), 0);
    return address;
}

static bool has(const char *text, const char *address)
{
    const struct ft_prefix p = prefix(text);
    const struct ft_ip a = ip(address);

    return ft_prefix_has(&p, &a);
}

START_TEST(reads_prefixes)
{
    static const char *const bad[] = {"",
                                      "/",
                                      "192.0.2.0/",
                                      "192.0.2.0/33",
                                      "192.0.2.0/-1",
                                      "192.0.2/24",
                                      "2001:db8::/129",
                                      "192.0.2.0/ 8",
                                      "192.0.2.0/8x",
                                      "leaf1"};
    struct ft_prefix p = {.bits = 7};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(ft_prefix_parse(bad[i], strlen(bad[i]), &p) == -EINVAL, "%s", bad[i]);
    ck_assert_uint_eq(p.bits, 7);
    ck_assert_uint_eq(prefix("192.0.2.0/24").bits, 120);
    ck_assert_uint_eq(prefix("192.0.2.1").bits, 128);
    ck_assert_uint_eq(prefix("0.0.0.0/0").bits, 96);
    ck_assert_uint_eq(prefix("::/0").bits, 0);
    /* Of a longer text as much as is said. */
    ck_assert_int_eq(ft_prefix_parse("10.0.0.0/8,x", 10, &p), 0);
    ck_assert_uint_eq(p.bits, 104);
}
END_TEST

START_TEST(holds_addresses)
{
    ck_assert(has("192.0.2.0/24", "192.0.2.255"));
    ck_assert(!has("192.0.2.0/24", "192.0.3.0"));
    ck_assert(has("192.0.2.128/25", "192.0.2.128"));
    ck_assert(!has("192.0.2.128/25", "192.0.2.127"));
    ck_assert(has("192.0.2.77/25", "192.0.2.1")); /* bits behind the prefix count for nothing */
    ck_assert(has("192.0.2.1", "192.0.2.1"));
    ck_assert(!has("192.0.2.1", "192.0.2.2"));
    ck_assert(has("0.0.0.0/0", "203.0.113.9"));
    ck_assert(!has("0.0.0.0/0", "2001:db8::1"));
    ck_assert(has("::/0", "203.0.113.9"));
    ck_assert(has("2001:db8:8000::/33", "2001:db8:ffff::1"));
    ck_assert(!has("2001:db8:8000::/33", "2001:db8:7fff::1"));
}
END_TEST

START_TEST(a_sorted_list_is_as_the_list)
{
    enum { COUNT = 40, ASKED = 2000 };
    struct ft_prefix list[COUNT], sorted[COUNT];
    size_t kept;

    srandom(7);
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < COUNT; i++) {
            list[i] = prefix("10.0.0.0/8");
            list[i].ip.b[13] = (uint8_t)(random() % 4);
            list[i].ip.b[14] = (uint8_t)random();
            list[i].ip.b[15] = (uint8_t)random();
            list[i].bits = (unsigned)(112 + random() % 17);
        }
        memcpy(sorted, list, sizeof(list));
        kept = ft_prefixes_sort(sorted, COUNT);
        ck_assert_uint_gt(kept, 0);
        ck_assert_uint_le(kept, COUNT);
        for (int i = 0; i < ASKED; i++) {
            struct ft_ip asked = list[random() % COUNT].ip;
            bool one = false;

            asked.b[15] ^= (uint8_t)(random() % 8);
            asked.b[14] ^= (uint8_t)(random() % 3);
            for (int k = 0; k < COUNT; k++)
                one = one || ft_prefix_has(&list[k], &asked);
            ck_assert(ft_prefixes_have(sorted, kept, &asked) == one);
        }
    }
    ck_assert_uint_eq(ft_prefixes_sort(list, 0), 0);
    ck_assert(!ft_prefixes_have(list, 0, &list[0].ip));
}
END_TEST

FT_UNIT_MAIN("prefix", reads_prefixes, holds_addresses, a_sorted_list_is_as_the_list)
