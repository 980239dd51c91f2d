// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/process.h"
#include "lib/base/prometheus.h"
#include "tests/unit/unit.h"

enum { LOAD, DROPS, DELAY, UP };

static const struct ft_prom_metric metrics[] = {
    [LOAD] = {"some_load_ratio", FT_PROM_GAUGE, "ratio", "link,way", "link", 2, "A load."},
    [DROPS] = {"some_drops_total", FT_PROM_COUNTER, "packets", "reason", NULL, 3, "Drops."},
    [DELAY] = {"some_delay_seconds", FT_PROM_SUMMARY, "seconds", NULL, NULL, 0, "A delay."},
    [UP] = {"some_up", FT_PROM_GAUGE, "0 or 1", NULL, NULL, 0, "Whether it is."},
    {.name = NULL},
};
static const struct ft_prom_table table = {metrics};

static const char *text(struct ft_writer *w)
{
    ft_write_u8(w, 0);
    ck_assert(ft_writer_ok(w));
    return (const char *)w->bytes;
}

START_TEST(a_page_as_prometheus_reads_it)
{
    struct ft_writer w;
    struct ft_prom p = {&w, &table, NULL};

    ft_writer_init(&w, 4096);
    ft_prom_family(&p, LOAD);
    ft_prom_double(&p, FT_PROM_LABELS("leaf1/\"a\\b\"\nc", "out"), 0.25);
    ft_prom_double(&p, FT_PROM_LABELS("", "out"), NAN);
    ft_prom_double(&p, FT_PROM_LABELS("x", "out"), INFINITY);
    ft_prom_double_of(&p, "link=\"y\",way=\"in\"", -3);
    ft_prom_family(&p, DROPS);
    ft_prom_u64(&p, FT_PROM_LABELS("late"), UINT64_MAX);
    ft_prom_family(&p, DELAY);
    ft_prom_summary(&p, 1.5, 3);
    ft_prom_one(&p, UP, 1);
    ck_assert_str_eq(text(&w), "# HELP some_load_ratio A load.\n"
                               "# TYPE some_load_ratio gauge\n"
                               "some_load_ratio{link=\"leaf1/\\\"a\\\\b\\\"\\nc\",way=\"out\"} "
                               "0.25\n"
                               "some_load_ratio{link=\"y\",way=\"in\"} -3\n"
                               "# HELP some_drops_total Drops.\n"
                               "# TYPE some_drops_total counter\n"
                               "some_drops_total{reason=\"late\"} 18446744073709551615\n"
                               "# HELP some_delay_seconds A delay.\n"
                               "# TYPE some_delay_seconds summary\n"
                               "some_delay_seconds_sum 1.5\n"
                               "some_delay_seconds_count 3\n"
                               "# HELP some_up Whether it is.\n"
                               "# TYPE some_up gauge\n"
                               "some_up 1\n");
    ft_writer_free(&w);
}
END_TEST

/* Switches are called as their operators like. */
START_TEST(names_of_switches_break_no_page)
{
    static const char *const names[][2] = {
        {"le\"af\\1/up", "n=\"le\\\"af\\\\1/up\""},
        {"caf\xe9/up", "n=\"caf\xef\xbf\xbd/up\""},
        {"caf\xc3\xa9", "n=\"caf\xc3\xa9\""},
        /* A label takes any other character as it is. */
        {"a\tb\nc\033", "n=\"a\tb\\nc\033\""},
        {"cut\xe2\x82", "n=\"cut\xef\xbf\xbd\xef\xbf\xbd\""},
    };
    struct ft_writer w;

    ft_writer_init(&w, 4096);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ft_writer_reset(&w);
        ft_prom_write_label(&w, "n", names[i][0]);
        ck_assert_str_eq(text(&w), names[i][1]);
    }
    ft_writer_free(&w);
}
END_TEST

START_TEST(series_are_counted_by_what_there_is)
{
    const struct ft_prom_things none[] = {{NULL, 0}}, ten[] = {{"link", 10}, {"job", 7}, {NULL, 0}};

    ck_assert_uint_eq(ft_prom_series(&table, none), 3 + 2 + 1);
    ck_assert_uint_eq(ft_prom_series(&table, ten), 3 + 2 + 1 + 10 * 2);
    ck_assert_uint_eq(ft_prom_series_each(&table, "link"), 2);
    ck_assert_uint_eq(ft_prom_series_each(&table, "job"), 0);
}
END_TEST

START_TEST(the_manual_page_has_each_metric)
{
    char *page = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&page, &size);

    ft_prom_mdoc(&table, out);
    fclose(out);
    ck_assert_str_eq(page, ".Bl -tag -width Ds\n"
                           ".It Va some_load_ratio Brq Ar link , way\n"
                           "gauge, ratio; up to 2 for each link.\nA load.\n"
                           ".It Va some_drops_total Brq Ar reason\n"
                           "counter, packets; up to 3.\nDrops.\n"
                           ".It Va some_delay_seconds\nsummary, seconds.\nA delay.\n"
                           ".It Va some_up\ngauge, 0 or 1.\nWhether it is.\n"
                           ".El\n");
    free(page);
}
END_TEST

START_TEST(a_process_as_the_kernel_tells)
{
    /* The name is the program's own choice. */
    const char *self = "7 (a) R 1 2) S 1 7 7 0 -1 4194304 10 0 0 0 250 50 0 0 20 0 1 0 1000 "
                       "40960000 300 18446744073709551615 1 1\n";
    double ticks = (double)sysconf(_SC_CLK_TCK);
    struct ft_process p;

    ck_assert(ft_process_parse(self, "cpu 1 2\nintr 5\nbtime 1700000000\nprocesses 9\n", &p));
    ck_assert_double_eq_tol(p.cpu_seconds, 300 / ticks, 1e-9);
    ck_assert_double_eq_tol(p.start_seconds, 1700000000 + 1000 / ticks, 1e-6);
    ck_assert_uint_eq(p.virtual_bytes, 40960000);
    ck_assert_uint_eq(p.resident_bytes, 300 * (uint64_t)sysconf(_SC_PAGESIZE));
    ck_assert(!ft_process_parse("7 (a) S 1 7", "", &p));
    ck_assert(!ft_process_parse("", "", &p));
    ck_assert(ft_process_look(&p));
    ck_assert_uint_gt(p.resident_bytes, 100000);
    ck_assert_uint_gt(p.open_files, 1);
}
END_TEST

FT_UNIT_MAIN("prometheus", a_page_as_prometheus_reads_it, names_of_switches_break_no_page,
             series_are_counted_by_what_there_is, the_manual_page_has_each_metric,
             a_process_as_the_kernel_tells)
