// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/snmp/counters.h"
#include "tests/unit/unit.h"

static uint64_t total(const struct ft_snmp_counters *c, enum ft_mib_counters column)
{
    uint64_t value = 0;

    ck_assert(ft_counters_get(c, column, &value));
    return value;
}

START_TEST(moves)
{
    struct ft_snmp_counters c = {0};
    uint64_t value;

    ck_assert(!ft_counters_get(&c, FT_MIB_IN_OCTETS, &value));
    ck_assert_int_eq(ft_snmp_counters_take(&c, FT_MIB_IN_OCTETS, 10, false), FT_COUNTERS_FIRST);
    ck_assert_int_eq(ft_snmp_counters_take(&c, FT_MIB_IN_OCTETS, 10, false), FT_COUNTERS_SAME);
    ck_assert_int_eq(ft_snmp_counters_take(&c, FT_MIB_IN_OCTETS, 25, false), FT_COUNTERS_MOVED);
    ck_assert_uint_eq(total(&c, FT_MIB_IN_OCTETS), 25);
    ck_assert(!ft_counters_get(&c, FT_MIB_OUT_ERRORS, &value));
}
END_TEST

START_TEST(wraps_at_32_bits)
{
    struct ft_snmp_counters c = {0};

    ft_snmp_counters_take(&c, FT_MIB_IN_DISCARDS, 0xfffffff0, false);
    ck_assert_int_eq(ft_snmp_counters_take(&c, FT_MIB_IN_DISCARDS, 0x10, false),
                     FT_COUNTERS_WRAPPED);
    ck_assert_uint_eq(total(&c, FT_MIB_IN_DISCARDS), UINT64_C(0x100000010));
    ck_assert_int_eq(ft_snmp_counters_take(&c, FT_MIB_IN_DISCARDS, 0x20, false), FT_COUNTERS_MOVED);
    ck_assert_uint_eq(total(&c, FT_MIB_IN_DISCARDS), UINT64_C(0x100000020));
}
END_TEST

/* A wrap is not a reset, and a reset is no wrap. */
START_TEST(resets)
{
    struct ft_snmp_counters c = {0};

    ft_snmp_counters_take(&c, FT_MIB_IN_DISCARDS, 0xfffffff0, false);
    ck_assert_int_eq(ft_snmp_counters_take(&c, FT_MIB_IN_DISCARDS, 0x10, true), FT_COUNTERS_RESET);
    ck_assert_uint_eq(total(&c, FT_MIB_IN_DISCARDS), 0x10);
    /* From low to lower: 2^32 in between would be a lot. */
    ft_snmp_counters_take(&c, FT_MIB_IN_ERRORS, 1000, false);
    ck_assert_int_eq(ft_snmp_counters_take(&c, FT_MIB_IN_ERRORS, 3, false), FT_COUNTERS_RESET);
    /* 64 bits do not wrap in the life of a switch. */
    ft_snmp_counters_take(&c, FT_MIB_IN_OCTETS, 0xfffffff0, false);
    ck_assert_int_eq(ft_snmp_counters_take(&c, FT_MIB_IN_OCTETS, 5, false), FT_COUNTERS_RESET);
    ck_assert_uint_eq(total(&c, FT_MIB_IN_OCTETS), 5);
}
END_TEST

/* More than before a restart is no growth: what came before is not in it. */
START_TEST(what_a_restarted_switch_counted_is_no_growth)
{
    struct ft_snmp_counters c = {0};

    ft_snmp_counters_take(&c, FT_MIB_IN_DISCARDS, 0xfffffff0, false);
    ft_snmp_counters_take(&c, FT_MIB_IN_DISCARDS, 0x10, false);
    ck_assert_int_eq(ft_snmp_counters_take(&c, FT_MIB_IN_DISCARDS, 0x20, true), FT_COUNTERS_RESET);
    ck_assert_uint_eq(total(&c, FT_MIB_IN_DISCARDS), 0x20);
    ck_assert_int_eq(ft_snmp_counters_take(&c, FT_MIB_IN_DISCARDS, 0x30, false), FT_COUNTERS_MOVED);
    ck_assert_uint_eq(total(&c, FT_MIB_IN_DISCARDS), 0x30);
    ft_snmp_counters_take(&c, FT_MIB_IN_OCTETS, 0, false);
    ck_assert_int_eq(ft_snmp_counters_take(&c, FT_MIB_IN_OCTETS, 0, true), FT_COUNTERS_SAME);
}
END_TEST

FT_UNIT_MAIN("snmp_counters", moves, wraps_at_32_bits, resets,
             what_a_restarted_switch_counted_is_no_growth)
