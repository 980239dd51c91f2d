// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/snmp/walk.h"
#include "tests/unit/snmp_answers.h"
#include "tests/unit/unit.h"

static size_t cells;
static uint32_t last_index;

static void count_cell(void *arg, const struct ft_walk_cell *cell)
{
    (void)arg;
    cells++;
    last_index = cell->index[cell->index_len - 1];
}

static void start(struct ft_walk *walk, enum ft_mib_table table, size_t rows_max)
{
    cells = 0;
    ft_walk_start(walk, table, 56, rows_max);
}

static size_t next(struct ft_walk *walk)
{
    struct ft_snmp_oid names[FT_WALK_COLUMNS_MAX];
    unsigned repetitions;

    return ft_walk_next(walk, names, &repetitions);
}

static void take(struct ft_walk *walk, const struct answers *a)
{
    ft_walk_take(walk, a->varbinds, a->count, count_cell, NULL);
}

START_TEST(columns_side_by_side)
{
    struct ft_snmp_oid names[FT_WALK_COLUMNS_MAX];
    struct answers a = {0};
    struct ft_walk walk;
    unsigned repetitions;

    start(&walk, FT_MIB_PAUSE, 100);
    ck_assert_uint_eq(ft_walk_next(&walk, names, &repetitions), 4);
    ck_assert_uint_eq(repetitions, 14);
    for (uint32_t row = 1; row <= 2; row++)
        for (size_t column = 0; column < 4; column++)
            set_string(answer(&a, FT_MIB_PAUSE, column, INDEX(row)), "x", 1);
    take(&walk, &a);
    ck_assert_uint_eq(cells, 8);
    /* It goes on after the last row of each column. */
    ck_assert_uint_eq(ft_walk_next(&walk, names, &repetitions), 4);
    ck_assert_uint_eq(names[3].ids[names[3].len - 1], 2);
}
END_TEST

START_TEST(columns_end_one_by_one)
{
    struct answers a = {0};
    struct ft_walk walk;

    start(&walk, FT_MIB_PAUSE, 100);
    next(&walk);
    for (size_t column = 0; column < 3; column++)
        set_string(answer(&a, FT_MIB_PAUSE, column, INDEX(1)), "x", 1);
    /* The last column has left its table. */
    set_string(answer(&a, FT_MIB_LAG, 0, INDEX(1)), "x", 1);
    take(&walk, &a);
    ck_assert_uint_eq(cells, 3);
    ck_assert_uint_eq(next(&walk), 3);
    a.count = 0;
    for (size_t column = 0; column < 3; column++)
        answer(&a, FT_MIB_PAUSE, column, INDEX(1))->type = FT_SNMP_END;
    take(&walk, &a);
    ck_assert_uint_eq(cells, 3);
    ck_assert_uint_eq(next(&walk), 0);
    ck_assert(!walk.not_increasing);
}
END_TEST

/* An agent that answers the same, or something before it, must not be asked for ever. */
START_TEST(not_increasing)
{
    static const uint32_t bad[] = {7, 6};

    for (size_t i = 0; i < 2; i++) {
        struct answers a = {0};
        struct ft_walk walk;

        start(&walk, FT_MIB_LAG, 100);
        next(&walk);
        set_number(answer(&a, FT_MIB_LAG, 0, INDEX(7)), FT_SNMP_INTEGER, 1);
        take(&walk, &a);
        next(&walk);
        a.count = 0;
        set_number(answer(&a, FT_MIB_LAG, 0, INDEX(bad[i])), FT_SNMP_INTEGER, 1);
        set_number(answer(&a, FT_MIB_LAG, 0, INDEX(9)), FT_SNMP_INTEGER, 1);
        take(&walk, &a);
        ck_assert_uint_eq(cells, 1);
        ck_assert_uint_eq(next(&walk), 0);
        ck_assert(walk.not_increasing);
    }
}
END_TEST

/* A time filter answers each row again for each time mark: increasing, and without end. */
START_TEST(time_marks_without_end)
{
    struct ft_walk walk;
    uint32_t mark = 0;

    start(&walk, FT_MIB_LLDP_REMOTE_ADDRESSES, 50);
    while (next(&walk) && mark < 1000) {
        struct answers a = {0};

        for (int i = 0; i < 10; i++)
            set_number(answer(&a, FT_MIB_LLDP_REMOTE_ADDRESSES, 0,
                              INDEX(++mark, 1, 1, 1, 4, 192, 0, 2, 1)),
                       FT_SNMP_INTEGER, 2);
        take(&walk, &a);
    }
    ck_assert_uint_eq(cells, 50);
    ck_assert(walk.truncated);
    ck_assert_uint_le(mark, 60);
}
END_TEST

START_TEST(nothing_answered)
{
    struct answers a = {0};
    struct ft_walk walk;

    start(&walk, FT_MIB_PAUSE, 100);
    next(&walk);
    take(&walk, &a);
    ck_assert_uint_eq(next(&walk), 0);
    ck_assert_uint_eq(cells, 0);
}
END_TEST

/* Small messages: fewer varbinds than columns, which go on the next time. */
START_TEST(cut_short)
{
    struct answers a = {0};
    struct ft_walk walk;

    start(&walk, FT_MIB_PAUSE, 100);
    next(&walk);
    set_string(answer(&a, FT_MIB_PAUSE, 0, INDEX(3)), "x", 1);
    take(&walk, &a);
    ck_assert_uint_eq(cells, 1);
    ck_assert_uint_eq(last_index, 3);
    ck_assert_uint_eq(next(&walk), 4);
}
END_TEST

START_TEST(too_big)
{
    struct ft_snmp_oid names[FT_WALK_COLUMNS_MAX];
    struct ft_walk walk;
    unsigned repetitions;

    start(&walk, FT_MIB_PAUSE, 100);
    ft_walk_next(&walk, names, &repetitions);
    ck_assert(ft_walk_shrink(&walk));
    ft_walk_next(&walk, names, &repetitions);
    ck_assert_uint_eq(repetitions, 7);
    ck_assert(ft_walk_shrink(&walk) && ft_walk_shrink(&walk) && ft_walk_shrink(&walk));
    ft_walk_next(&walk, names, &repetitions);
    ck_assert_uint_eq(repetitions, 1);
    ck_assert(!ft_walk_shrink(&walk));
}
END_TEST

FT_UNIT_MAIN("snmp_walk", columns_side_by_side, columns_end_one_by_one, not_increasing,
             time_marks_without_end, nothing_answered, cut_short, too_big)
