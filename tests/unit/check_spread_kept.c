// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/spread/kept.h"

#include <string.h>

#include "tests/unit/unit.h"

static struct ft_spread_kept kept;
static uint16_t got[FT_SPREAD_RECORDS_MAX];
static unsigned count;

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    ck_assert_int_eq(record->kind_case, FABRICTRACE__RECORD__KIND_SPREAD);
    ck_assert_uint_lt(count, FT_SPREAD_RECORDS_MAX);
    got[count++] = (uint16_t)record->spread->flow->sport;
}

static bool add(uint32_t sport, const char *group)
{
    static uint8_t address[2][4] = {{10, 0, 0, 1}, {10, 0, 1, 1}};
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Spread s = FABRICTRACE__SPREAD__INIT;
    Fabrictrace__Flow flow = FABRICTRACE__FLOW__INIT;

    record.kind_case = FABRICTRACE__RECORD__KIND_SPREAD;
    record.spread = &s;
    s.flow = &flow;
    s.group = (char *)(uintptr_t)group;
    flow.has_src = flow.has_dst = flow.has_sport = true;
    flow.src = (ProtobufCBinaryData){4, address[0]};
    flow.dst = (ProtobufCBinaryData){4, address[1]};
    flow.sport = sport;
    return ft_spread_kept_add(&kept, &record);
}

static void read_from(uint64_t position, uint64_t *positions)
{
    const struct ft_emitter emitter = {on_record, NULL};

    count = 0;
    while (ft_spread_kept_next(&kept, &position, &emitter))
        if (positions)
            positions[count - 1] = position;
}

/* What is there in two windows has the same place between others in both. */
START_TEST(a_position_is_kept_over_windows)
{
    uint16_t first[100];
    unsigned same = 0;

    ft_spread_kept_init(&kept);
    for (unsigned i = 0; i < 100; i++)
        ck_assert(add(i, "leaf1/up"));
    ft_spread_kept_order(&kept);
    read_from(0, NULL);
    ck_assert_uint_eq(count, 100);
    memcpy(first, got, sizeof(first));
    ft_spread_kept_clear(&kept);
    read_from(0, NULL);
    ck_assert_uint_eq(count, 0);
    for (unsigned i = 1000; i > 0; i--)
        ck_assert(add(i - 1, "leaf1/up"));
    ft_spread_kept_order(&kept);
    read_from(0, NULL);
    ck_assert_uint_eq(count, 1000);
    for (unsigned i = 0; i < count; i++)
        if (got[i] < 100)
            ck_assert_uint_eq(got[i], first[same++]);
    ck_assert_uint_eq(same, 100);
    ft_spread_kept_free(&kept);
}
END_TEST

/* Whoever continues behind any of them misses none, also where several are of the same thing. */
START_TEST(each_comes_once_from_any_position)
{
    uint64_t positions[60];
    uint16_t all[60];

    ft_spread_kept_init(&kept);
    for (unsigned i = 0; i < 60; i++)
        ck_assert(add(i / 3, i % 2 ? "leaf1/up" : NULL));
    ft_spread_kept_order(&kept);
    read_from(0, positions);
    ck_assert_uint_eq(count, 60);
    memcpy(all, got, sizeof(all));
    for (unsigned i = 0; i < 60; i++) {
        ck_assert(i == 0 || positions[i] > positions[i - 1]);
        read_from(positions[i], NULL);
        ck_assert_uint_eq(count, 59 - i);
        ck_assert_int_eq(memcmp(got, all + i + 1, count * sizeof(*got)), 0);
    }
    read_from(UINT64_MAX, NULL);
    ck_assert_uint_eq(count, 0);
    ft_spread_kept_free(&kept);
}
END_TEST

START_TEST(records_and_bytes_are_capped)
{
    static char long_name[100000];
    size_t many = 0;

    ft_spread_kept_init(&kept);
    while (add((uint32_t)many, ""))
        ck_assert_uint_le(++many, FT_SPREAD_RECORDS_MAX);
    ck_assert_uint_eq(many, FT_SPREAD_RECORDS_MAX);
    ck_assert_uint_le(kept.records.size + kept.size * sizeof(*kept.order), FT_SPREAD_KEPT_MAX);
    ft_spread_kept_clear(&kept);
    memset(long_name, 'x', sizeof(long_name) - 1);
    for (many = 0; add((uint32_t)many, long_name); many++)
        ck_assert_uint_lt(many * sizeof(long_name), FT_SPREAD_RECORD_BYTES_MAX);
    ck_assert_uint_eq(many, FT_SPREAD_RECORD_BYTES_MAX / (sizeof(long_name) + 30));
    ck_assert_uint_le(kept.records.size + kept.size * sizeof(*kept.order), FT_SPREAD_KEPT_MAX);
    /* A shorter one finds room, and all are there. */
    ck_assert(add(60000, ""));
    ft_spread_kept_order(&kept);
    read_from(0, NULL);
    ck_assert_uint_eq(count, many + 1);
    ft_spread_kept_free(&kept);
}
END_TEST

FT_UNIT_MAIN("spread_kept", a_position_is_kept_over_windows, each_comes_once_from_any_position,
             records_and_bytes_are_capped)
