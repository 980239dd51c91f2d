// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/api/metrics.h"
#include "daemon/api/window_figures.h"
#include "tests/unit/unit.h"

static struct ft_window_figures *figures;
static struct ft_writer page;

static void begin(enum ft_metrics_links which, size_t links_max)
{
    figures = ft_window_figures_new(which, links_max, 100, 1);
    ck_assert_ptr_nonnull(figures);
    ft_writer_init(&page, 1 << 20);
}

static void end(void)
{
    ft_window_figures_free(figures);
    ft_writer_free(&page);
}

/* The page as it is now. */
static const char *text(void)
{
    struct ft_prom p = {&page, &ft_daemon_metrics, NULL};
    struct ft_window_figures_position position = {.metric = 0};

    ft_writer_reset(&page);
    while (ft_window_figures_write(figures, &position, &p))
        ;
    ft_write_u8(&page, 0);
    ck_assert(ft_writer_ok(&page));
    return (const char *)page.bytes;
}

/* The value of a series; NAN: it is not there. */
static double value(const char *series)
{
    char line[300];
    const char *at;

    snprintf(line, sizeof(line), "\nfabrictraced_%s ", series);
    at = strstr(text(), line);
    return at ? strtod(at + strlen(line), NULL) : NAN;
}

static void feed_link(const char *port, const char *direction, uint64_t bytes, int discards)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Link link = FABRICTRACE__LINK__INIT;
    char names[3][32];

    snprintf(names[0], sizeof(names[0]), "leaf1");
    snprintf(names[1], sizeof(names[1]), "%s", port);
    snprintf(names[2], sizeof(names[2]), "%s", direction);
    link.switch_ = names[0];
    link.port = names[1];
    link.direction = names[2];
    link.window_start_ms = 10000;
    link.window_end_ms = 20000;
    link.bytes = bytes;
    link.has_discards = discards >= 0;
    link.discards = (uint64_t)discards;
    link.has_utilization = true;
    link.utilization = 0.5;
    record.kind_case = FABRICTRACE__RECORD__KIND_LINK;
    record.link = &link;
    ft_window_figures_take(figures, &record);
}

static void feed_imbalance(Fabrictrace__Scope scope, double fim, Fabrictrace__Verdict verdict)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Imbalance imbalance = FABRICTRACE__IMBALANCE__INIT;
    char name[] = "leaf1/up";

    imbalance.scope = scope;
    imbalance.name = name;
    imbalance.window_start_ms = 10000;
    imbalance.window_end_ms = 20000;
    imbalance.has_fim = fim >= 0;
    imbalance.fim = fim;
    imbalance.verdict = verdict;
    imbalance.has_spine_crossings_avoidable = true;
    imbalance.spine_crossings_avoidable = 3;
    record.kind_case = FABRICTRACE__RECORD__KIND_IMBALANCE;
    record.imbalance = &imbalance;
    ft_window_figures_take(figures, &record);
}

static void end_window(void)
{
    feed_imbalance(FABRICTRACE__SCOPE__SCOPE_FABRIC, -1, FABRICTRACE__VERDICT__VERDICT_IDLE);
}

#define LINK(metric)  "link_" metric "{switch=\"leaf1\",port=\"Ethernet51\"}"
#define GROUP(metric) "imbalance_" metric "{scope=\"group\",name=\"leaf1/up\"}"

START_TEST(a_window_is_shown_completely)
{
    begin(FT_METRICS_LINKS_ALL, 100);
    feed_link("Ethernet51", "up", 1000, 4);
    feed_imbalance(FABRICTRACE__SCOPE__SCOPE_GROUP, 62.5, FABRICTRACE__VERDICT__VERDICT_FAULT);
    ck_assert_ptr_null(strchr(text(), '{'));
    end_window();
    ck_assert_double_eq(value(LINK("load_bytes_per_second")), 100);
    ck_assert_double_eq(value(LINK("bytes_total")), 1000);
    ck_assert_double_eq(value(LINK("discards_total")), 4);
    ck_assert_double_eq(value(LINK("utilization_ratio")), 0.5);
    ck_assert(isnan(value(LINK("errors_total"))));
    ck_assert_double_eq(value(GROUP("fim_ratio")), 0.625);
    ck_assert(isnan(value(GROUP("p_value"))));
    ck_assert_double_eq(
        value("imbalance_verdict{scope=\"group\",name=\"leaf1/up\",verdict=\"fault\"}"), 1);
    ck_assert_double_eq(
        value("imbalance_verdict{scope=\"group\",name=\"leaf1/up\",verdict=\"even\"}"), 0);
    ck_assert_double_eq(value("spine_crossings_avoidable"), 3);

    /* Half of the next changes nothing. */
    feed_link("Ethernet51", "up", 500, 1);
    feed_imbalance(FABRICTRACE__SCOPE__SCOPE_GROUP, 0, FABRICTRACE__VERDICT__VERDICT_EVEN);
    ck_assert_double_eq(value(LINK("bytes_total")), 1000);
    ck_assert_double_eq(value(GROUP("fim_ratio")), 0.625);
    end_window();
    ck_assert_double_eq(value(LINK("bytes_total")), 1500);
    ck_assert_double_eq(value(LINK("discards_total")), 5);
    ck_assert_double_eq(value(GROUP("fim_ratio")), 0);
    end();
}
END_TEST

/* A counter that a window does not bring stands still; a link that is gone is gone. */
START_TEST(sums_outlive_a_gap_and_links_do_not)
{
    begin(FT_METRICS_LINKS_ALL, 100);
    feed_link("Ethernet51", "up", 1000, 4);
    end_window();
    feed_link("Ethernet51", "up", 1000, -1);
    end_window();
    ck_assert_double_eq(value(LINK("discards_total")), 4);
    ck_assert_uint_eq(ft_window_figures_links(figures), 1);
    end_window();
    ck_assert(isnan(value(LINK("bytes_total"))));
    ck_assert_uint_eq(ft_window_figures_links(figures), 0);
    feed_link("Ethernet51", "up", 7, 0);
    end_window();
    ck_assert_double_eq(value(LINK("bytes_total")), 7);
    end();
}
END_TEST

START_TEST(links_are_chosen_and_capped)
{
    begin(FT_METRICS_LINKS_FABRIC, 2);
    feed_link("Ethernet1", "host", 1, 0);
    feed_link("Ethernet51", "up", 1, 0);
    feed_link("Ethernet52", "down", 1, 0);
    feed_link("Ethernet53", "up", 1, 0);
    end_window();
    ck_assert_uint_eq(ft_window_figures_links(figures), 2);
    ck_assert_uint_eq(ft_window_figures_refused(figures), 1);
    ck_assert_ptr_null(strstr(text(), "Ethernet1\""));
    end();
    begin(FT_METRICS_LINKS_NONE, 2);
    feed_link("Ethernet51", "up", 1, 0);
    end_window();
    ck_assert_uint_eq(ft_window_figures_links(figures), 0);
    ck_assert_uint_eq(ft_window_figures_refused(figures), 0);
    end();
}
END_TEST

/* What is written is never more than the table says: the bound that --check prints. */
START_TEST(a_link_and_a_scope_have_the_series_of_the_table)
{
    size_t links = 0, scopes = 0;
    const char *at;

    begin(FT_METRICS_LINKS_ALL, 2);
    feed_link("Ethernet51", "up", 1, 0);
    feed_imbalance(FABRICTRACE__SCOPE__SCOPE_GROUP, 1, FABRICTRACE__VERDICT__VERDICT_EVEN);
    end_window();
    for (at = text(); (at = strstr(at, "{switch=")); at++)
        links++;
    for (at = text(); (at = strstr(at, "{scope=\"group\"")); at++)
        scopes++;
    ck_assert_uint_gt(links, 5);
    ck_assert_uint_le(links, ft_prom_series_each(&ft_daemon_metrics, "link"));
    ck_assert_uint_ge(scopes, 5);
    ck_assert_uint_le(scopes, ft_prom_series_each(&ft_daemon_metrics, "scope"));
    end();
}
END_TEST

FT_UNIT_MAIN("window_figures", a_window_is_shown_completely, sums_outlive_a_gap_and_links_do_not,
             links_are_chosen_and_capped, a_link_and_a_scope_have_the_series_of_the_table)
