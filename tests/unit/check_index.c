// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/index.h"

#include <errno.h>
#include <string.h>

#include "lib/fabric/topology.h"
#include "tests/unit/unit.h"

static struct ft_index ix;

static void begin(void)
{
    memset(&ix, 0, sizeof(ix));
    ck_assert_int_eq(ft_index_init(&ix), 0);
}

START_TEST(names_are_of_their_namespace)
{
    begin();
    ck_assert_uint_eq(ft_index_name(&ix, FT_NAMESPACE_SWITCHES, "x"), FT_NONE);
    ck_assert_int_eq(ft_index_add_name(&ix, FT_NAMESPACE_SWITCHES, "x", 1), 0);
    ck_assert_int_eq(ft_index_add_name(&ix, FT_NAMESPACE_HOSTS, "x", 2), 0);
    ck_assert_int_eq(ft_index_add_name(&ix, 7, "x", 3), 0);
    ck_assert_int_eq(ft_index_add_name(&ix, 7 + FT_NAMESPACE_LAGS, "x", 4), 0);
    ck_assert_int_eq(ft_index_add_name(&ix, 7, "x", 9), -EEXIST);
    ck_assert_uint_eq(ft_index_name(&ix, FT_NAMESPACE_SWITCHES, "x"), 1);
    ck_assert_uint_eq(ft_index_name(&ix, FT_NAMESPACE_HOSTS, "x"), 2);
    ck_assert_uint_eq(ft_index_name(&ix, 7, "x"), 3);
    ck_assert_uint_eq(ft_index_name(&ix, 7 + FT_NAMESPACE_LAGS, "x"), 4);
    ck_assert_uint_eq(ft_index_name(&ix, 8, "x"), FT_NONE);
    ck_assert_uint_eq(ft_index_name(&ix, 7, "xx"), FT_NONE);
    ck_assert_uint_eq(ft_index_name(&ix, 7, ""), FT_NONE);
    ft_index_free(&ix);
}
END_TEST

/* The longest one, and one that is cut to it. */
START_TEST(names_have_an_end)
{
    char name[FT_NAME_MAX + 3];

    begin();
    memset(name, 'n', sizeof(name));
    name[FT_NAME_MAX] = '\0';
    ck_assert_int_eq(ft_index_add_name(&ix, 0, name, 5), 0);
    name[FT_NAME_MAX] = 'n';
    name[FT_NAME_MAX + 1] = '\0';
    ck_assert_int_eq(ft_index_add_name(&ix, 0, name, 6), -ENAMETOOLONG);
    ck_assert_uint_eq(ft_index_name(&ix, 0, name), FT_NONE);
    name[FT_NAME_MAX] = '\0';
    ck_assert_uint_eq(ft_index_name(&ix, 0, name), 5);
    name[FT_NAME_MAX - 1] = '\0';
    ck_assert_uint_eq(ft_index_name(&ix, 0, name), FT_NONE);
    ft_index_free(&ix);
}
END_TEST

START_TEST(addresses_are_of_their_namespace)
{
    const struct ft_ip a = ft_ip4((uint8_t[4]){10, 0, 0, 1}), b = ft_ip4((uint8_t[4]){10, 0, 0, 2});

    begin();
    ck_assert_int_eq(ft_index_add_address(&ix, FT_NAMESPACE_NICS, &a, 1), 0);
    ck_assert_int_eq(ft_index_add_address(&ix, FT_NAMESPACE_SWITCHES, &a, 2), 0);
    ck_assert_int_eq(ft_index_add_address(&ix, FT_NAMESPACE_NICS, &a, 3), -EEXIST);
    ck_assert_uint_eq(ft_index_address(&ix, FT_NAMESPACE_NICS, &a), 1);
    ck_assert_uint_eq(ft_index_address(&ix, FT_NAMESPACE_SWITCHES, &a), 2);
    ck_assert_uint_eq(ft_index_address(&ix, FT_NAMESPACE_NICS, &b), FT_NONE);
    ft_index_free(&ix);
}
END_TEST

/* Low ones are in arrays that grow, others in a table: each is found at both sides of the border,
 * and none of them where none was added. */
START_TEST(ifindexes_low_and_high)
{
    static const uint32_t indexes[] = {0, 1, 31, 32, 33, 1023, 1024, 1025, 65536, UINT32_MAX};
    static const uint32_t switches[] = {0, 5, 600, (1u << 20) - 1, 1u << 20, UINT32_MAX};
    const size_t n = sizeof(indexes) / sizeof(*indexes), m = sizeof(switches) / sizeof(*switches);

    begin();
    for (size_t s = 0; s < m; s++)
        for (size_t i = n; i-- > 0;) {
            uint32_t id = (uint32_t)(s * n + i);

            ck_assert_uint_eq(ft_index_ifindex(&ix, switches[s], indexes[i]), FT_NONE);
            ck_assert_int_eq(ft_index_add_ifindex(&ix, switches[s], indexes[i], id), 0);
            ck_assert_int_eq(ft_index_add_ifindex(&ix, switches[s], indexes[i], 99), -EEXIST);
        }
    for (size_t s = 0; s < m; s++) {
        for (size_t i = 0; i < n; i++)
            ck_assert_uint_eq(ft_index_ifindex(&ix, switches[s], indexes[i]), s * n + i);
        ck_assert_uint_eq(ft_index_ifindex(&ix, switches[s], 2), FT_NONE);
        ck_assert_uint_eq(ft_index_ifindex(&ix, switches[s], 1022), FT_NONE);
        ck_assert_uint_eq(ft_index_ifindex(&ix, switches[s], 65535), FT_NONE);
    }
    ck_assert_uint_eq(ft_index_ifindex(&ix, 6, 1), FT_NONE);
    ck_assert_uint_eq(ft_index_ifindex(&ix, 6, 70000), FT_NONE);
    ft_index_free(&ix);
}
END_TEST

START_TEST(free_takes_what_is_half_built)
{
    memset(&ix, 0, sizeof(ix));
    ft_index_free(&ix);
    begin();
    ft_index_free(&ix);
    ft_index_free(&ix);
    ck_assert_uint_eq(ix.row_count, 0);
}
END_TEST

FT_UNIT_MAIN("index", names_are_of_their_namespace, names_have_an_end,
             addresses_are_of_their_namespace, ifindexes_low_and_high,
             free_takes_what_is_half_built)
