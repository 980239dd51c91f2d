// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <string.h>

#include "cli/output/grid.h"
#include "cli/output/units.h"
#include "lib/fabric/verdict.h"
#include "tests/unit/unit.h"

static const struct ft_column columns[] = {
    {.title = "NAME"},
    {.title = "RATE", .right = true, .give_up = 1},
    {.title = "JOB", .give_up = 2},
    {.title = "PATH", .elastic = true},
};

static void row(struct ft_grid *grid, const char *name, const char *rate, const char *job,
                const char *path)
{
    ft_grid_cell(grid, FT_PLAIN, "%s", name);
    ft_grid_cell(grid, FT_RED, "%s", rate);
    ft_grid_cell(grid, FT_PLAIN, "%s", job);
    ft_grid_cell(grid, FT_PLAIN, "%s", path);
}

/* Prints the grid at a width and compares. */
static void prints(const struct ft_grid *grid, unsigned width, bool colour, const char *expected)
{
    struct ft_screen screen = {.width = width, .colour = colour};
    char *text;
    size_t bytes;

    screen.out = open_memstream(&text, &bytes);
    ck_assert_int_eq(ft_grid_print(grid, &screen, 0), 0);
    fclose(screen.out);
    ck_assert_str_eq(text, expected);
    free(text);
}

START_TEST(columns_align_and_empty_ones_are_left_out)
{
    struct ft_grid *grid = ft_grid_new(columns, 4);

    row(grid, "a", "1.0 Gb/s", "", "leaf1 > spine1");
    row(grid, "bcdef", "999", "", "");
    prints(grid, 0, false,
           "NAME       RATE  PATH\n"
           "a      1.0 Gb/s  leaf1 > spine1\n"
           "bcdef       999\n");
    ck_assert_uint_eq(ft_grid_rows(grid), 2);
    ft_grid_free(grid);
}
END_TEST

START_TEST(narrow_screens_lose_columns_then_text_but_never_wrap)
{
    struct ft_grid *grid = ft_grid_new(columns, 4);

    row(grid, "flow", "12", "88", "leaf1 > spine1 > leaf4");
    prints(grid, 39, false,
           "NAME  RATE  JOB  PATH\n"
           "flow    12  88   leaf1 > spine1 > leaf4\n");
    /* Columns go before text is cut. */
    prints(grid, 38, false,
           "NAME  RATE  PATH\n"
           "flow    12  leaf1 > spine1 > leaf4\n");
    prints(grid, 28, false, "NAME  PATH\nflow  leaf1 > spine1 > leaf4\n");
    prints(grid, 20, false, "NAME  PATH\nflow  leaf1 > spi...\n");
    ft_grid_free(grid);
}
END_TEST

START_TEST(what_wraps_continues_below_between_words)
{
    static const struct ft_column two[] = {{.title = NULL}, {.elastic = true, .wraps = true}};
    struct ft_grid *grid = ft_grid_new(two, 2);

    ft_grid_cell(grid, FT_PLAIN, "leaf1");
    ft_grid_cell(grid, FT_YELLOW, "the link to spine1 is down");
    ft_grid_skip(grid);
    ft_grid_cell(grid, FT_PLAIN, "  lo\303\266k at abcdefghijklmnopqrs");
    prints(grid, 0, false,
           "leaf1  the link to spine1 is down\n"
           "         lo\303\266k at abcdefghijklmnopqrs\n");
    prints(grid, 22, true,
           "leaf1  \033[33mthe link to\033[0m\n"
           "       \033[33mspine1 is down\033[0m\n"
           "         lo\303\266k at\n"
           "         abcdefghijklm\n"
           "         nopqrs\n");
    ft_grid_free(grid);
}
END_TEST

/* Prints the grid by a layout and compares. */
static void prints_by(const struct ft_grid *grid, struct ft_layout layout, const char *expected)
{
    struct ft_screen screen = {.layout = layout};
    char *text;
    size_t bytes;

    screen.out = open_memstream(&text, &bytes);
    ck_assert_int_eq(ft_grid_print(grid, &screen, 0), 0);
    fclose(screen.out);
    ck_assert_str_eq(text, expected);
    free(text);
}

START_TEST(what_is_short_is_not_padded_on_a_narrow_screen)
{
    static const struct ft_column two[] = {{.title = "HOST", .elastic = true}, {.title = "FLOW"}};
    struct ft_grid *grid = ft_grid_new(two, 2);

    ft_grid_cell(grid, FT_PLAIN, "gpu1");
    ft_grid_cell(grid, FT_PLAIN, "10.0.1.2:50003-10.0.4.6");
    prints(grid, 20, false, "HOST  FLOW\ngpu1  10.0.1.2:50003-10.0.4.6\n");
    ft_grid_free(grid);
}
END_TEST

START_TEST(numbers_come_in_their_order)
{
    static const struct ft_column two[] = {{.title = "T", .right = true},
                                           {.title = "P", .number = true}};
    static const char *const cells[][2] = {
        {"500 us", "0.031"}, {"1.5 ms", "<1e-6"}, {"2.00 s", "2.1e-5"}, {"12.5 us", "0.41"}};
    struct ft_grid *grid = ft_grid_new(two, 2);

    for (size_t i = 0; i < 4; i++) {
        ft_grid_cell(grid, FT_PLAIN, "%s", cells[i][0]);
        ft_grid_cell(grid, FT_PLAIN, "%s", cells[i][1]);
    }
    prints_by(grid, (struct ft_layout){"t", "t", 0},
              "      T\n 2.00 s\n 1.5 ms\n 500 us\n12.5 us\n");
    prints_by(grid, (struct ft_layout){"t", "t", 2}, "      T\n 2.00 s\n 1.5 ms\n");
    prints_by(grid, (struct ft_layout){"p", "p", 0}, "P\n0.41\n0.031\n2.1e-5\n<1e-6\n");
    ft_grid_free(grid);
}
END_TEST

START_TEST(columns_of_one_title_are_chosen_together)
{
    static const struct ft_column three[] = {{.title = "QP"}, {.title = "HOST"}, {.title = "QP"}};
    struct ft_grid *grid = ft_grid_new(three, 3);

    ft_grid_cell(grid, FT_PLAIN, "7");
    ft_grid_cell(grid, FT_PLAIN, "gpu1");
    ft_grid_cell(grid, FT_PLAIN, "9");
    prints_by(grid, (struct ft_layout){NULL, "qp", 0}, "QP  QP\n7   9\n");
    ft_grid_free(grid);
}
END_TEST

START_TEST(what_records_hold_cannot_drive_the_terminal)
{
    struct ft_grid *grid = ft_grid_new(columns, 4);

    row(grid, "a\033[2Jb", "\xc3\xa9", "\xc2\x9b", "x\ny\xff\x7f");
    prints(grid, 0, false, "NAME    RATE  JOB  PATH\na?[2Jb     \xc3\xa9  ?    x?y??\n");
    ft_grid_free(grid);
}
END_TEST

START_TEST(colour_is_outside_of_the_padding)
{
    struct ft_grid *grid = ft_grid_new(columns, 4);

    row(grid, "a", "1", "", "");
    prints(grid, 0, true,
           "\033[1mNAME\033[0m  \033[1mRATE\033[0m\n"
           "a     "
           "   "
           "\033[1;31m1\033[0m\n");
    ft_grid_free(grid);
}
END_TEST

START_TEST(numbers_as_people_read_them)
{
    char t[FT_UNIT_BYTES];

    ck_assert_str_eq(ft_unit_rate(t, 0), "0 b/s");
    ck_assert_str_eq(ft_unit_rate(t, 999), "999 b/s");
    ck_assert_str_eq(ft_unit_rate(t, 999.96), "1.0 kb/s");
    ck_assert_str_eq(ft_unit_rate(t, 24.1e9), "24.1 Gb/s");
    ck_assert_str_eq(ft_unit_rate(t, 999.96e6), "1.0 Gb/s");
    ck_assert_str_eq(ft_unit_rate(t, 5e21), "5000.0 Eb/s");
    ck_assert_str_eq(ft_unit_rate_like(t, 900e6, 24e9), "0.9");
    ck_assert_str_eq(ft_unit_size(t, 1234567), "1.2 MB");
    ck_assert_str_eq(ft_unit_percent(t, 0), "0 %");
    ck_assert_str_eq(ft_unit_percent(t, 0.0312), "3.1 %");
    ck_assert_str_eq(ft_unit_percent(t, 0.41), "41 %");
    ck_assert_str_eq(ft_unit_duration(t, 0), "0 us");
    ck_assert_str_eq(ft_unit_duration(t, 12.54e3), "12.5 us");
    ck_assert_str_eq(ft_unit_duration(t, 999.4e3), "999 us");
    ck_assert_str_eq(ft_unit_duration(t, 999.6e3), "1 ms");
    ck_assert_str_eq(ft_unit_duration(t, 12345e3), "12.3 ms");
    ck_assert_str_eq(ft_unit_duration(t, 999.6e6), "1.00 s");
    ck_assert_str_eq(ft_unit_duration(t, 31.04e9), "31.0 s");
    ck_assert_str_eq(ft_unit_duration(t, 640.4e9), "640 s");
    ck_assert_str_eq(ft_unit_p(t, 1), "1.00");
    ck_assert_str_eq(ft_unit_p(t, 0.974), "0.97");
    ck_assert_str_eq(ft_unit_p(t, 0.0311), "0.031");
    ck_assert_str_eq(ft_unit_p(t, 2.1e-5), "2.1e-5");
    ck_assert_str_eq(ft_unit_p(t, 1e-6), "1e-6");
    ck_assert_str_eq(ft_unit_p(t, 9.9e-7), "<1e-6");
}
END_TEST

START_TEST(times_have_a_date_when_it_is_not_today)
{
    struct ft_wall now = {1795171290000}; /* 2026-11-20 10:41:30 UTC */
    char t[FT_UNIT_BYTES];

    setenv("TZ", "UTC", 1);
    ck_assert_str_eq(ft_unit_time(t, 1795171282000, now), "10:41:22");
    ck_assert_str_eq(ft_unit_time(t, 1795171282000 - 86400000, now), "2026-11-19 10:41:22");
}
END_TEST

START_TEST(verdicts_turn_at_their_thresholds)
{
    ck_assert_str_eq(ft_verdict_name(ft_verdict_of(1)), "even");
    ck_assert_str_eq(ft_verdict_name(ft_verdict_of(0.05)), "even");
    ck_assert_str_eq(ft_verdict_name(ft_verdict_of(0.0499)), "uneven");
    ck_assert_str_eq(ft_verdict_name(ft_verdict_of(1e-6)), "uneven");
    ck_assert_str_eq(ft_verdict_name(ft_verdict_of(9.9e-7)), "fault");
    ck_assert_str_eq(ft_verdict_name(ft_verdict_of(0.0 / 0.0)), "even");
}
END_TEST

/* The example of Benjamini and Hochberg 1995, section 3.2: four of fifteen at 5 %. */
START_TEST(of_many_groups_few_are_luck)
{
    double p[] = {0.0095, 1.0000, 0.0001, 0.4262, 0.0004, 0.0019, 0.0201, 0.0278,
                  0.0298, 0.0344, 0.0459, 0.3240, 0.5719, 0.6528, 0.7590};
    double even[1024], some[] = {0.04, 0.02}, one = 0.049, none = 0.051, t;

    t = ft_verdict_threshold(p, 15);
    ck_assert_double_eq(t, 0.0095);
    ck_assert_int_eq(ft_verdict_among(0.0095, t), FT_VERDICT_UNEVEN);
    ck_assert_int_eq(ft_verdict_among(0.0201, t), FT_VERDICT_EVEN);
    ck_assert_int_eq(ft_verdict_among(1e-7, 0), FT_VERDICT_FAULT);
    /* As chance spreads them: 51 are below 0.05, and none is uneven. */
    for (int i = 0; i < 1024; i++)
        even[i] = (i + 0.5) / 1024;
    t = ft_verdict_threshold(even, 1024);
    ck_assert_int_eq(ft_verdict_among(0.5 / 1024, t), FT_VERDICT_EVEN);
    ck_assert_double_eq(ft_verdict_threshold(some, 2), 0.04);
    ck_assert_double_eq(ft_verdict_threshold(&one, 1), 0.049);
    ck_assert_double_eq(ft_verdict_threshold(&none, 1), 0);
    ck_assert_double_eq(ft_verdict_threshold(NULL, 0), 0);
}
END_TEST

FT_UNIT_MAIN("grid", numbers_come_in_their_order, what_is_short_is_not_padded_on_a_narrow_screen,
             columns_of_one_title_are_chosen_together, columns_align_and_empty_ones_are_left_out,
             narrow_screens_lose_columns_then_text_but_never_wrap,
             what_wraps_continues_below_between_words, what_records_hold_cannot_drive_the_terminal,
             colour_is_outside_of_the_padding, numbers_as_people_read_them,
             times_have_a_date_when_it_is_not_today, verdicts_turn_at_their_thresholds,
             of_many_groups_few_are_luck)
